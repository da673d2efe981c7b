//! kill -9 at every point of a run, and start again: the end is that of a run that nobody disturbed.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
};

use blueproof_core::{
    domain::{Actor, Ending, RequestKey, RunId, RunState, Verdict},
    event::StopMode,
    ports::{self, Store},
    sqlite::SqliteStore,
    view::RunView,
};
use blueproof_tests::{checkout::Checkout, processes};

/// What every event of a run's life is called in the log.
const KINDS: [&str; 7] = [
    "configured",
    "requested",
    "reserved",
    "started",
    "finished",
    "released",
    "reported",
];

/// A run whose notebook counts how often it is executed, and leaves a process behind that nobody waits for.
struct Story {
    checkout: Checkout,
    home: tempfile::TempDir,
    marker: String,
}

impl Story {
    fn new(spec: &str) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let name = home
            .path()
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let marker = format!("marker-{name}");
        let count = home.path().join("executions");
        let leave = format!(
            "import subprocess\nopen({count:?}, 'a').write('x')\n\
             subprocess.Popen(['sh', '-c', 'sleep 600; : {marker}'], start_new_session=True)"
        );
        Self {
            checkout: Checkout::new(&[&leave, "print('done')"], spec),
            home,
            marker,
        }
    }

    fn store(&self) -> PathBuf {
        self.home.path().join("b.db")
    }

    async fn ask(&self) {
        let store = SqliteStore::open(&self.store()).expect("a store");
        let request = Box::new(self.checkout.request("story"));
        let wish = ports::Command::Run { request };
        store.submit(jiff::Timestamp::now(), wish).await.expect("a wish");
    }

    /// Leaves a wish about the run.
    async fn wish(&self, wish: impl FnOnce(RequestKey, RunId, Actor) -> ports::Command) {
        let store = SqliteStore::open(&self.store()).expect("a store");
        let wish = wish(RequestKey("wish".into()), RunId(1), Actor::Local("tester".into()));
        store.submit(jiff::Timestamp::now(), wish).await.expect("a wish");
    }

    fn drive(&self, crash: Option<&str>) -> ExitStatus {
        let mut host = Command::new(env!("CARGO_BIN_EXE_host"));
        host.arg("drive")
            .arg(self.store())
            .args(crash)
            .status()
            .expect("it starts")
    }

    /// Drives until it is killed at a moment, and then, in a new process, to the end.
    fn crash_and_go_on(&self, at: &str) {
        assert_eq!(
            self.drive(Some(at)).signal(),
            Some(9),
            "{at}: it was killed there"
        );
        assert!(self.drive(None).success(), "{at}: the next one comes to an end");
    }

    fn assert_no_orphan(&self, at: &str) {
        assert_eq!(
            processes::with_marker(&self.marker),
            Vec::<u32>::new(),
            "{at}: no orphan"
        );
    }

    async fn end(&self) -> RunView {
        let store = SqliteStore::open(&self.store()).expect("a store");
        store
            .run_of(&RequestKey("story".into()))
            .await
            .expect("a read")
            .expect("it is known")
    }

    fn executions(&self) -> usize {
        fs::read(self.home.path().join("executions")).map_or(0, |count| count.len())
    }
}

#[tokio::test]
async fn a_crash_at_any_event_changes_nothing_in_the_end() {
    for kind in KINDS {
        for moment in ["before", "after"] {
            let story = Story::new("");
            story.ask().await;
            let at = format!("{moment}:{kind}");
            story.crash_and_go_on(&at);

            let end = story.end().await;
            assert_eq!(
                end.state,
                RunState::Ended(Ending::Passed),
                "{at}: {:?}",
                end.failure
            );
            assert!(end.settled, "{at}");
            assert_eq!(end.attempts.len(), 1, "{at}: one attempt");
            assert_eq!(story.executions(), 1, "{at}: the notebook ran once");
            story.assert_no_orphan(&at);
            assert!(
                !working_copy(story.home.path(), &end).exists(),
                "{at}: no working copy is left"
            );
        }
    }
}

#[tokio::test]
async fn a_crash_while_a_run_is_cancelled_starts_nothing() {
    for at in ["before:cancelRequested", "after:cancelRequested"] {
        let story = Story::new("");
        story.ask().await;
        story
            .wish(|key, run, by| ports::Command::Cancel {
                key,
                run,
                by,
                how: StopMode::End,
            })
            .await;
        story.crash_and_go_on(at);
        let end = story.end().await;
        assert_eq!(
            (end.state, end.settled),
            (RunState::Ended(Ending::Cancelled), true),
            "{at}"
        );
        assert_eq!(story.executions(), 0, "{at}: the notebook never ran");
        story.assert_no_orphan(at);
    }
}

#[tokio::test]
async fn a_crash_while_a_run_is_tried_again_makes_one_more_attempt_and_no_other() {
    for at in ["before:retryRequested", "after:retryRequested"] {
        let story = Story::new("");
        story.ask().await;
        assert!(story.drive(None).success(), "{at}: the first attempt");
        story
            .wish(|key, run, by| ports::Command::Retry { key, run, by })
            .await;
        story.crash_and_go_on(at);
        let end = story.end().await;
        assert_eq!((end.attempts.len(), end.settled), (2, true), "{at}");
        assert_eq!(story.executions(), 2, "{at}: once for each attempt");
        story.assert_no_orphan(at);
    }
}

#[tokio::test]
async fn an_agent_that_is_killed_is_an_infrastructure_failure_and_leaves_nothing_behind() {
    let story = Story::new("  retries: {infrastructure: 0}\n");
    let kill_the_agent = "import os, signal, time
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(600)";
    let leave = format!(
        "import subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 600; : {}'], start_new_session=True)",
        story.marker
    );
    let checkout = Checkout::new(&[&leave, kill_the_agent], "  retries: {infrastructure: 0}\n");
    let story = Story { checkout, ..story };
    story.ask().await;
    assert!(story.drive(None).success());
    let end = story.end().await;
    assert_eq!(
        end.state,
        RunState::Ended(Ending::InfrastructureFailed),
        "{:?}",
        end.failure
    );
    let outcome = end.attempts[0].outcome.as_ref().expect("an outcome");
    assert!(matches!(outcome.verdict, Verdict::Failed(_)));
    story.assert_no_orphan("the agent was killed");
}

fn working_copy(home: &Path, run: &RunView) -> PathBuf {
    home.join("runs").join(run.id.to_string()).join("attempts/1/work")
}
