//! A scheduler with its API on a socket of its own.

use std::{path::PathBuf, sync::Arc};

use blueproof_core::{
    engine::Ports,
    policy::Policy,
    ports::{Clusters, Leadership as _},
    testing::{
        FakeClock, FakeCluster, FakeLease, FakeOutput, FakeReporter, MemoryDeliveries, MemoryStore, two_cores,
    },
};
use blueproof_host::{
    Host, ServerAddress, ServerClient, Service, ServiceStatus,
    api::{Address, Api, Role, Tokens},
};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};

/// A scheduler that serves; it ends with this.
pub(crate) struct Served {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) deliveries: Arc<MemoryDeliveries>,
    pub(crate) output: Arc<FakeOutput>,
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) service: Arc<Service>,
    pub(crate) address: ServerAddress,
    pub(crate) folder: TempDir,
    end: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

/// Where a scheduler is to listen.
#[derive(Clone, Copy)]
pub(crate) enum On {
    Socket,
    Loopback,
}

impl Served {
    pub(crate) async fn on(on: On) -> Self {
        Self::with(on, tempfile::tempdir().expect("a folder"), Arc::default()).await
    }

    /// Returns one that follows: another process leads its store. It works in the background.
    pub(crate) async fn following(on: On) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let lease = FakeLease::default();
        let led = lease.try_lead().await.expect("a lease that works");
        let served = Self::led_by(on, folder, Arc::default(), lease).await;
        let service = Arc::clone(&served.service);
        tokio::spawn(async move {
            let _led = led;
            service.run().await;
        });
        let mut standing = served.service.standing();
        let follows = standing.wait_for(|standing| *standing == ServiceStatus::Following);
        follows.await.expect("the service is there");
        served
    }

    async fn with(on: On, folder: TempDir, store: Arc<MemoryStore>) -> Self {
        Self::led_by(on, folder, store, FakeLease::default()).await
    }

    async fn led_by(on: On, folder: TempDir, store: Arc<MemoryStore>, lease: FakeLease) -> Self {
        let clock = Arc::<FakeClock>::default();
        let output = Arc::<FakeOutput>::default();
        let deliveries = Arc::<MemoryDeliveries>::default();
        let service = Arc::new(Service::new(host(&store, &clock, lease)));
        let tokens = Tokens::at(tokens_file(&folder));
        let api = Api::new(
            store.clone(),
            deliveries.clone(),
            output.clone(),
            service.clone(),
            tokens,
            "1.2.3",
        );
        let listen = match on {
            On::Socket => Address::Unix(folder.path().join("scheduler.sock")),
            On::Loopback => "127.0.0.1:0".parse().expect("an address"),
        };
        let listening = listen.listen().await.expect("it is free");
        let address = listening.address().to_string().parse().expect("an address");
        let (end, ends) = oneshot::channel();
        let (app, _) = api.router();
        let serving = tokio::spawn(listening.serve(app, async { drop(ends.await) }));
        Self {
            store,
            deliveries,
            output,
            clock,
            service,
            address,
            folder,
            end: Some(end),
            serving,
        }
    }

    /// Returns a token of a role, named after it.
    pub(crate) fn token(&self, role: Role) -> String {
        self.token_of(role.as_str(), role)
    }

    pub(crate) fn token_of(&self, name: &str, role: Role) -> String {
        let tokens = Tokens::at(tokens_file(&self.folder));
        tokens.create(name, role, None).expect("a token")
    }

    pub(crate) fn remove_token(&self, name: &str) {
        let tokens = Tokens::at(tokens_file(&self.folder));
        assert!(
            tokens.remove(name).expect("a file of tokens"),
            "there is a token `{name}`"
        );
    }

    pub(crate) fn client(&self, token: Option<String>) -> ServerClient {
        ServerClient::new(self.address.clone(), token).expect("a client")
    }

    /// Returns a client that knows nothing of the API.
    pub(crate) fn http(&self) -> reqwest::Client {
        // It brings the cryptography that every client of a process shares.
        drop(self.client(None));
        reqwest::Client::new()
    }

    /// Returns the URL of a path, where it listens on an address.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// Ends what listens on a socket. What is returned has another process listen there.
    pub(crate) async fn end(mut self) -> impl Future<Output = Self> {
        drop(self.end.take());
        self.serving.await.expect("it ends");
        Self::with(On::Socket, self.folder, self.store)
    }
}

fn tokens_file(folder: &TempDir) -> PathBuf {
    folder.path().join("tokens.yaml")
}

fn host(store: &Arc<MemoryStore>, clock: &Arc<FakeClock>, lease: FakeLease) -> Host {
    let quota = two_cores();
    let ports = Ports {
        store: store.clone(),
        clusters: Clusters::one(Arc::new(FakeCluster::passing(quota))),
        reporters: vec![Arc::new(FakeReporter::default())],
        clock: clock.clone(),
    };
    Host::new(ports, Arc::new(lease), Policy::local(quota))
}
