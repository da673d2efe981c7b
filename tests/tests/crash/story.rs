//! One run in a store of its own, and the hosts that drive it.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, ExitStatus},
};

use blueproof_core::{
    domain::{RequestKey, RunId, RunRequest, RunState},
    ports::{self, StoreClient},
    sqlite::SqliteStore,
    view::RunView,
};
use blueproof_tests::{checkout::Checkout, processes};

/// A run whose notebook counts how often it is executed, and leaves a process behind that nobody waits for.
pub(crate) struct Story {
    checkout: Checkout,
    home: tempfile::TempDir,
    marker: String,
}

impl Story {
    /// Makes a story whose notebook ends by itself.
    pub(crate) fn new() -> Self {
        Self::ending_with("print('done')", "")
    }

    /// Makes a story whose notebook ends with this cell; `spec` is YAML below `spec:`, each line indented by two.
    pub(crate) fn ending_with(last: &str, spec: &str) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let name = home.path().file_name().expect("a name").to_string_lossy();
        let marker = format!("marker-{name}");
        let count = home.path().join("executions");
        let leave = format!(
            "import subprocess\nopen({count:?}, 'a').write('x')\n\
             subprocess.Popen(['sh', '-c', 'sleep 600; : {marker}'], start_new_session=True)"
        );
        Self {
            checkout: Checkout::new(&[&leave, last], spec),
            home,
            marker,
        }
    }

    fn store_path(&self) -> PathBuf {
        self.home.path().join("b.db")
    }

    fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.store_path()).expect("a store")
    }

    /// Returns the request for the run.
    pub(crate) fn request(&self) -> RunRequest {
        self.checkout.request("story")
    }

    /// Asks for the run.
    pub(crate) async fn ask(&self) {
        self.ask_for(self.request()).await;
    }

    /// Asks for the run in other words.
    pub(crate) async fn ask_for(&self, request: RunRequest) {
        let request = Box::new(request);
        self.submit(ports::Command::Run { request }).await;
    }

    /// Leaves a wish.
    pub(crate) async fn submit(&self, wish: ports::Command) {
        let submitted = self.store().submit(jiff::Timestamp::now(), wish).await;
        submitted.expect("a wish");
    }

    /// Drives until nothing remains to be done, or until it is killed at a moment.
    pub(crate) fn drive(&self, crash: Option<&str>) -> ExitStatus {
        self.begin_to_drive(crash).wait().expect("it can be waited for")
    }

    /// Drives in a process that nobody waits for yet.
    pub(crate) fn begin_to_drive(&self, crash: Option<&str>) -> Child {
        let mut host = Command::new(env!("CARGO_BIN_EXE_host"));
        let host = host.arg("drive").arg(self.store_path()).args(crash);
        host.spawn().expect("it starts")
    }

    /// Waits until the run is in a state.
    pub(crate) async fn until(&self, state: RunState) {
        let store = self.store();
        let mut seen = None;
        loop {
            seen = Some(store.changed(seen).await);
            let run = store.run(RunId(1)).await.expect("a read");
            if run.is_some_and(|run| run.state == state) {
                return;
            }
        }
    }

    /// Returns the run as it stands.
    pub(crate) async fn end(&self) -> RunView {
        let run = self.store().run_of(&RequestKey("story".into())).await;
        run.expect("a read").expect("it is known")
    }

    /// Returns how often the notebook was executed.
    pub(crate) fn executions(&self) -> usize {
        fs::read(self.home.path().join("executions")).map_or(0, |count| count.len())
    }

    /// Asserts that no process of the notebook is there any more, and no working copy.
    pub(crate) fn assert_nothing_is_left(&self, at: &str) {
        let processes = processes::with_marker(&self.marker);
        assert_eq!(processes, Vec::<u32>::new(), "{at}: no orphan");
        for attempt in self.attempts() {
            assert!(!attempt.join("work").exists(), "{at}: no working copy");
        }
    }

    /// Returns the folders of the run's attempts. The folder of a run lies in one that is named after the store.
    fn attempts(&self) -> Vec<PathBuf> {
        let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
        let stores = entries(self.home.path().join("runs"));
        let runs = stores.map(|store| store.path().join("r-1/attempts"));
        let attempts: Vec<_> = runs.flat_map(entries).map(|entry| entry.path()).collect();
        assert!(
            self.executions() == 0 || !attempts.is_empty(),
            "what was executed has a folder"
        );
        attempts
    }
}
