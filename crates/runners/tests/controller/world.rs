//! GitHub's service as a model, a scale set with its listener and its controller, and machines that connect as GitHub's runner does.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use blueproof_core::{
    event::StopMode,
    ports::{CallError, Clock, Runner, RunnerName, RunnerNews, RunnerProvider, RunnerState},
    testing::FakeRunners,
};
use blueproof_runners::{
    Controller, ControllerHandle, ControllerPorts, FleetHandler, FleetInput, FleetSettings, Ledger,
    RegistrarError, RerunAnswer, Reruns, RunnerJob, ScaleSetRegistrar,
};
use blueproof_scale_set::{
    AppInstallation, AppKey, Client, ConfigUrl, Credentials, Inbox, Listener, ListenerOptions, NewScaleSet,
    RunnerRequestId, ScaleSetId,
    testing::{APP, APP_KEY, FakeJobState, FakeService, MemoryInbox, Model, ModelOptions},
};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::JoinSet,
};

/// The service's clock as core's.
pub(crate) struct ServiceClock(pub(crate) blueproof_scale_set::Clock);

#[async_trait]
impl Clock for ServiceClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn sleep_until(&self, until: Timestamp) {
        if let Ok(left) = Duration::try_from(until.duration_since(self.now())) {
            tokio::time::sleep(left).await;
        }
    }
}

/// Machines whose runner connects to the service as soon as it is started.
pub(crate) struct Machines {
    pub(crate) inner: FakeRunners,
    service: FakeService,
    /// What each runner was given by the service, or that its configuration was refused.
    pub(crate) jobs: Mutex<BTreeMap<RunnerName, Option<RunnerRequestId>>>,
    pub(crate) n_conflicts: Mutex<u32>,
    /// How many runners end before they connect.
    pub(crate) n_stillborn: Mutex<u32>,
}

impl Machines {
    /// Ends a runner before it connects, if one more is to.
    fn dies(&self, name: &RunnerName) -> bool {
        let mut left = lock(&self.n_stillborn);
        let dies = *left > 0;
        *left = left.saturating_sub(1);
        drop(left);
        if dies {
            let message = "it ended with exit code 1".into();
            self.inner.finish(name, RunnerState::Failed { message });
        }
        dies
    }
}

#[async_trait]
impl RunnerProvider for Machines {
    fn news(&self) -> mpsc::Receiver<RunnerNews> {
        self.inner.news()
    }

    async fn start(&self, runner: &Runner) -> Result<(), CallError> {
        let before = self.inner.starts(&runner.name);
        self.inner.start(runner).await?;
        if self.dies(&runner.name) {
            return Ok(());
        }
        if self.inner.starts(&runner.name) > before {
            let connected = self
                .service
                .with(|model, now| model.connect_runner(now, runner.config.expose()));
            match connected {
                Ok(job) => drop(lock(&self.jobs).insert(runner.name.clone(), job)),
                Err(_) => *lock(&self.n_conflicts) += 1,
            }
        }
        Ok(())
    }

    async fn observe(&self, name: &RunnerName) -> Result<(), CallError> {
        self.inner.observe(name).await
    }

    async fn stop(&self, name: &RunnerName, how: StopMode) -> Result<(), CallError> {
        self.inner.stop(name, how).await
    }

    async fn remove(&self, name: &RunnerName) -> Result<(), CallError> {
        self.inner.remove(name).await
    }
}

/// Remembers which jobs were to be run once more.
#[derive(Default)]
pub(crate) struct Asked(pub(crate) Mutex<Vec<RunnerName>>);

#[async_trait]
impl Reruns for Asked {
    async fn rerun(&self, runner: &RunnerName, _job: &RunnerJob) -> Result<RerunAnswer, RegistrarError> {
        lock(&self.0).push(runner.clone());
        Ok(RerunAnswer::Requested)
    }
}

pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) service: FakeService,
    pub(crate) machines: Arc<Machines>,
    pub(crate) asked: Arc<Asked>,
    pub(crate) set: ScaleSetId,
    client: Client,
    clock: blueproof_scale_set::Clock,
    inbox: Arc<MemoryInbox>,
    running: JoinSet<()>,
    pub(crate) handle: Option<ControllerHandle>,
    pub(crate) jobs: Vec<RunnerRequestId>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::delayed(Duration::ZERO).await
    }

    /// Returns a world whose service takes so long for each answer.
    pub(crate) async fn delayed(delay: Duration) -> Self {
        let clock = blueproof_scale_set::Clock::of_tokio("2026-11-25T10:00:00Z".parse().expect("a time"));
        let service = FakeService::new(Model::new(ModelOptions::default()), clock).delayed(delay);
        let client = client(&service, clock);
        let set = client
            .create_scale_set(&NewScaleSet::named("gpu"))
            .await
            .expect("it is made");
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            machines: Arc::new(Machines {
                inner: FakeRunners::default(),
                service: service.clone(),
                jobs: Mutex::default(),
                n_conflicts: Mutex::default(),
                n_stillborn: Mutex::default(),
            }),
            service,
            asked: Arc::default(),
            set: set.id,
            client,
            clock,
            inbox: Arc::default(),
            running: JoinSet::new(),
            handle: None,
            jobs: Vec::new(),
        }
    }

    fn ledger_file(&self) -> PathBuf {
        self.folder.path().join("runners.db")
    }

    /// Starts a controller and a listener, with room for so many runners.
    pub(crate) async fn start(&mut self, room: u32) {
        let ledger = Ledger::open(&self.ledger_file()).expect("it opens");
        let ports = ControllerPorts {
            registrar: Arc::new(ScaleSetRegistrar::new(self.client.clone(), self.set)),
            provider: Arc::clone(&self.machines) as _,
            reruns: Some(Arc::clone(&self.asked) as _),
            clock: Arc::new(ServiceClock(self.clock)),
            calls: Arc::new(Semaphore::new(100)),
            ledger,
        };
        let settings = FleetSettings {
            surplus_grace: SignedDuration::from_secs(30),
            ..FleetSettings::of("gpu", 10)
        };
        let (controller, handle) = Controller::open("gpu", settings, ports).await.expect("it opens");
        let inputs = handle.inputs.clone();
        self.running
            .spawn(tell_room(inputs.clone(), Arc::clone(&self.machines), room));
        let listener = Listener::new(
            &self.client,
            self.set,
            Arc::clone(&self.inbox) as Arc<dyn Inbox>,
            FleetHandler::new(inputs),
            handle.capacity.clone(),
            ListenerOptions::of("host"),
        );
        let (stop, stopped) = watch::channel(false);
        self.running.spawn(controller.run(stopped.clone()));
        self.running.spawn(async move {
            // It lives as long as both do.
            let _stop = stop;
            listener.run(stopped).await.map(drop).expect("it goes on");
        });
        self.handle = Some(handle);
    }

    /// Ends the process as the kernel does.
    pub(crate) async fn kill(&mut self) {
        self.running.shutdown().await;
        self.handle = None;
    }

    pub(crate) fn queue(&mut self, n_jobs: u32) {
        for _ in 0..n_jobs {
            let set = self.set;
            self.jobs
                .push(self.service.with(|model, now| model.queue_job(now, set)));
        }
    }

    /// Ends every job that runs, and its runner with it.
    pub(crate) fn finish_running(&self) {
        let taken: Vec<_> = lock(&self.machines.jobs)
            .iter()
            .filter_map(|(name, job)| job.map(|job| (name.clone(), job)))
            .collect();
        for (name, job) in taken {
            let is_running = self.service.with(|model, now| {
                let state = model.job(job).map(|job| job.state);
                let is_running = matches!(state, Some(FakeJobState::Running(_)));
                model.complete_job(now, job, "success");
                is_running
            });
            if is_running {
                self.machines.inner.finish(&name, RunnerState::Completed);
            }
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.service.with(|model, _| {
            self.jobs.iter().all(|job| {
                model
                    .job(*job)
                    .is_some_and(|job| job.state == FakeJobState::Completed)
            })
        })
    }

    /// Returns whether nothing is left of any runner, here or at the service.
    pub(crate) fn is_clean(&self) -> bool {
        self.machines.inner.left().is_empty() && self.service.with(|model, _| model.runners().is_empty())
    }

    /// Has each job that runs pass, until all are done and nothing is left of their runners.
    pub(crate) async fn until_done(&mut self) {
        let finishes = |world: &World| {
            world.finish_running();
            world.is_done() && world.is_clean()
        };
        self.until("all jobs are done", finishes).await;
    }

    /// Waits until a state is reached, two hours of the service's time at most, while jobs that run end.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        for _ in 0..7200 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("not reached: {what}; left {:?}", self.machines.inner.left());
    }
}

/// Tells each second how many of so many places are free.
async fn tell_room(inputs: mpsc::Sender<FleetInput>, machines: Arc<Machines>, places: u32) {
    loop {
        let used = u32::try_from(machines.inner.left().len()).expect("few");
        let room = FleetInput::Room(Some(places.saturating_sub(used)));
        if inputs.send(room).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

pub(crate) fn client(service: &FakeService, clock: blueproof_scale_set::Clock) -> Client {
    let app = AppInstallation {
        issuer: APP.into(),
        installation: 7,
        key: AppKey::from_pem(APP_KEY).expect("a key"),
    };
    let config = ConfigUrl::parse("https://github.com/owner/repository").expect("a URL");
    Client::builder(config, Credentials::App(app))
        .clock(clock)
        .build_with(Arc::new(service.clone()))
}

pub(crate) fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
