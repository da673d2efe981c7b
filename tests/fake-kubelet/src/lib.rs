//! A kubelet that tells who has which device, and does nothing else.
//!
//! It listens on a socket of its own and answers `v1.PodResourcesLister`, in a thread, so that tests need no runtime. It can
//! be told what to answer, to keep whoever asks waiting, to answer what is no answer, and to go away and come back. What it
//! cannot show is when a real kubelet forgets pods that ended.
//!
//! ```
//! use fake_kubelet::{FakeKubelet, Held, Pod};
//!
//! let kubelet = FakeKubelet::start().unwrap();
//! kubelet.lists(vec![Pod::with("ci", "runner", [Held::of("nvidia.com/gpu", ["GPU-1"])])]);
//! assert!(kubelet.socket().exists());
//! ```

mod service;
mod wire;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    net::UnixListener,
    sync::{oneshot, watch},
};
use tonic::{codegen::tokio_stream::wrappers::UnixListenerStream, transport::Server};

use service::Lister;

/// A pod.
#[derive(Debug, Clone, Default)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its containers.
    pub containers: Vec<Container>,
}

/// A container of a pod.
#[derive(Debug, Clone, Default)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// What it was given.
    pub held: Vec<Held>,
    /// What it was given by dynamic resource allocation: how many devices of each driver.
    pub dynamic: Vec<(String, usize)>,
}

/// Devices of one resource.
#[derive(Debug, Clone, Default)]
pub struct Held {
    /// The resource, such as `nvidia.com/gpu`.
    pub resource: String,
    /// The devices, as its plugin calls them.
    pub ids: Vec<String>,
}

/// What it answers.
#[derive(Debug, Clone)]
pub enum Allocatable {
    /// These.
    Devices(Vec<Held>),
    /// It does not know the call, as before Kubernetes 1.23.
    Unimplemented,
}

/// A kubelet. It ends with this.
#[derive(Debug)]
pub struct FakeKubelet {
    folder: TempDir,
    state: Arc<State>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) answers: Mutex<Answers>,
    pub(crate) waits: watch::Sender<bool>,
}

#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) pods: Vec<Pod>,
    pub(crate) allocatable: Allocatable,
    pub(crate) is_nonsense: bool,
    pub(crate) lists: usize,
    pub(crate) connections: usize,
    pub(crate) needs: Duration,
}

impl FakeKubelet {
    /// Starts one without pods and devices.
    pub fn start() -> io::Result<Self> {
        let answers = Answers {
            pods: Vec::new(),
            allocatable: Allocatable::Devices(Vec::new()),
            is_nonsense: false,
            lists: 0,
            connections: 0,
            needs: Duration::ZERO,
        };
        let mut kubelet = Self {
            folder: tempfile::tempdir()?,
            state: Arc::new(State {
                answers: Mutex::new(answers),
                waits: watch::channel(false).0,
            }),
            running: None,
        };
        kubelet.come_back()?;
        Ok(kubelet)
    }

    /// Returns where it listens.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("kubelet.sock")
    }

    /// Lists these pods from now on.
    pub fn lists(&self, pods: Vec<Pod>) {
        self.answers().pods = pods;
    }

    /// Has these devices to give from now on.
    pub fn has(&self, allocatable: Allocatable) {
        self.answers().allocatable = allocatable;
    }

    /// Answers what is no answer from now on.
    pub fn talks_nonsense(&self) {
        self.answers().is_nonsense = true;
    }

    /// Talks sense again.
    pub fn talks_sense(&self) {
        self.answers().is_nonsense = false;
    }

    /// Needs so long for each answer from now on.
    pub fn needs(&self, needs: Duration) {
        self.answers().needs = needs;
    }

    /// Keeps whoever asks waiting from now on.
    pub fn hangs(&self) {
        self.state.waits.send_replace(true);
    }

    /// Answers everybody again, those who wait too.
    pub fn goes_on(&self) {
        self.state.waits.send_replace(false);
    }

    /// Returns how often it was asked for its pods.
    pub fn lists_asked(&self) -> usize {
        self.answers().lists
    }

    /// Returns how often somebody connected.
    pub fn connections(&self) -> usize {
        self.answers().connections
    }

    /// Ends all connections, and takes the socket away.
    pub fn go_away(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(self.socket());
    }

    /// Listens again.
    pub fn come_back(&mut self) -> io::Result<()> {
        let (stop, stopped) = oneshot::channel();
        let (told, listens) = mpsc::channel();
        let (socket, state) = (self.socket(), Arc::clone(&self.state));
        let thread = std::thread::spawn(move || serve(&socket, state, stopped, &told));
        listens
            .recv()
            .map_err(|_| io::Error::other("its thread ended"))??;
        self.running = Some((stop, thread));
        Ok(())
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, Answers> {
        self.state
            .answers
            .lock()
            .expect("nobody panics while they hold it")
    }
}

impl Drop for FakeKubelet {
    fn drop(&mut self) {
        self.go_away();
    }
}

impl Pod {
    /// Returns a pod with one container, `main`.
    pub fn with(namespace: &str, name: &str, held: impl IntoIterator<Item = Held>) -> Self {
        let container = Container {
            name: "main".into(),
            held: held.into_iter().collect(),
            dynamic: Vec::new(),
        };
        Self {
            namespace: namespace.into(),
            name: name.into(),
            containers: vec![container],
        }
    }
}

impl Held {
    /// Returns devices of a resource.
    pub fn of<'a>(resource: &str, ids: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            resource: resource.into(),
            ids: ids.into_iter().map(str::to_owned).collect(),
        }
    }
}

/// Answers until it is stopped. With the runtime all connections end.
fn serve(
    socket: &Path,
    state: Arc<State>,
    stopped: oneshot::Receiver<()>,
    told: &mpsc::Sender<io::Result<()>>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = told.send(Err(error));
            return;
        }
    };
    runtime.block_on(async {
        let listener = match UnixListener::bind(socket) {
            Ok(listener) => listener,
            Err(error) => {
                let _ = told.send(Err(error));
                return;
            }
        };
        let _ = told.send(Ok(()));
        let counted = Arc::clone(&state);
        let connections = Counted {
            inner: UnixListenerStream::new(listener),
            state: counted,
        };
        let served = Server::builder()
            .add_service(Lister(state))
            .serve_with_incoming(connections);
        tokio::select! {
            _ = served => {}
            _ = stopped => {}
        }
    });
}

/// Connections, counted.
struct Counted {
    inner: UnixListenerStream,
    state: Arc<State>,
}

impl tonic::codegen::tokio_stream::Stream for Counted {
    type Item = io::Result<tokio::net::UnixStream>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        let next = std::pin::Pin::new(&mut self.inner).poll_next(context);
        if let std::task::Poll::Ready(Some(Ok(_))) = &next {
            let mut answers = self
                .state
                .answers
                .lock()
                .expect("nobody panics while they hold it");
            answers.connections += 1;
        }
        next
    }
}
