//! Runners as processes of this machine keep what every provider of runners promises.
//!
//! The stand-in for GitHub's runner is a program of three lines, which says that it was started and with what.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command, time::Duration};

use blueproof_cluster::runner::{ProcessRunners, RunnerCommand};
use blueproof_core::{
    event::StopMode,
    ports::{JitConfig, Retry, Runner, RunnerName, RunnerNews, RunnerProvider, RunnerState},
    testing::{FakeRunners, contract},
};
use blueproof_diagnostic::Code;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// Longer than anything here takes on a slow machine.
const BOUND: Duration = Duration::from_secs(60);

/// Writes down that it was started, and does what its configuration says.
const PROGRAM: &str = r#"#!/bin/sh
printf '%s\n' "$PWD $ACTIONS_RUNNER_INPUT_JITCONFIG" >> "$1"
case "$ACTIONS_RUNNER_INPUT_JITCONFIG" in
    complete) exit 0 ;;
    fail) exit 7 ;;
    leave) (setsid sleep 600 &) ; sleep 600 ;;
esac
trap 'exit 0' TERM INT
while :; do sleep 0.05; done
"#;

/// A folder with a program and runners.
struct World {
    home: TempDir,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let program = home.path().join("run.sh");
        fs::write(&program, PROGRAM).expect("a file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a file of ours");
        Self { home }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join(name)
    }

    fn runners(&self) -> ProcessRunners {
        let command = RunnerCommand {
            program: self.path("run.sh").into(),
            arguments: vec![self.path("starts").into()],
        };
        ProcessRunners::new(self.path("runners"), command)
    }

    /// Returns what was started so far, a line for each.
    fn starts(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("starts")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn runner(name: &str, config: &str) -> Runner {
    Runner {
        name: name.parse().expect("a name"),
        config: JitConfig::new(config.into()),
    }
}

async fn next(news: &mut mpsc::Receiver<RunnerNews>, name: &RunnerName) -> RunnerState {
    loop {
        let told = tokio::time::timeout(BOUND, news.recv()).await;
        let told = told.expect("it is told in time").expect("news go on");
        if told.runner == *name {
            return told.state;
        }
    }
}

/// Waits until something holds.
async fn until(holds: impl Fn() -> bool) {
    let came = tokio::time::timeout(BOUND, async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    });
    came.await.expect("it holds in time");
}

async fn the_contract_is_kept() {
    let world = World::new();
    let runners = world.runners();
    let (one, two, three) = (
        runner("one", "complete"),
        runner("two", "wait"),
        runner("three", "wait"),
    );
    contract::runners_keep_their_promises(&runners, &one, &two, &three).await;
    // One that is stopped at once may not have come to say that it was started.
    let mut starts = world.starts();
    let said = starts.len();
    starts.dedup();
    assert_eq!(starts.len(), said, "none was started twice: {starts:?}");
    assert!(starts[0].ends_with(" complete"), "{starts:?}");
    let left = fs::read_dir(world.path("runners")).expect("it was made").count();
    assert_eq!(left, 0, "nothing is left of any");
}

#[tokio::test]
async fn processes_of_this_machine_keep_the_contract() {
    the_contract_is_kept().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_of_this_machine_keep_the_contract_on_several_threads() {
    the_contract_is_kept().await;
}

#[tokio::test]
async fn the_fake_keeps_the_contract() {
    let (one, two, three) = (runner("one", "c"), runner("two", "c"), runner("three", "c"));
    let fake = FakeRunners::default().ending(&one.name, RunnerState::Completed);
    contract::runners_keep_their_promises(&fake, &one, &two, &three).await;
    assert_eq!(fake.starts(&one.name), 1);
    assert_eq!(fake.left(), []);
}

#[tokio::test]
async fn a_runner_outlives_its_provider_and_is_not_started_again_by_the_next_one() {
    let world = World::new();
    let runner = runner("r-1", "wait");
    let first = world.runners();
    let mut news = first.news();
    first.start(&runner).await.expect("it starts");
    assert_eq!(next(&mut news, &runner.name).await, RunnerState::Running);
    until(|| world.starts().len() == 1).await;
    drop(first);

    let second = world.runners();
    let mut news = second.news();
    second.start(&runner).await.expect("it was started before");
    assert_eq!(next(&mut news, &runner.name).await, RunnerState::Running);
    second
        .stop(&runner.name, StopMode::Terminate)
        .await
        .expect("it is there");
    // How it ended only the first could have seen.
    let end = next(&mut news, &runner.name).await;
    assert!(matches!(end, RunnerState::Lost { .. }), "{end:?}");
    assert_eq!(world.starts().len(), 1);
    second.remove(&runner.name).await.expect("it is taken on");
    assert_eq!(next(&mut news, &runner.name).await, RunnerState::Removed);
}

#[tokio::test]
async fn one_that_was_begun_and_of_which_no_process_is_known_is_lost_and_not_started() {
    let world = World::new();
    let runner = runner("r-1", "complete");
    let folder = world.path("runners/r-1");
    fs::create_dir_all(folder.join("work")).expect("a folder");
    fs::write(folder.join("begun"), "").expect("a file");
    let runners = world.runners();
    let mut news = runners.news();
    runners.start(&runner).await.expect("it is told how it stands");
    let state = next(&mut news, &runner.name).await;
    assert!(matches!(state, RunnerState::Lost { .. }), "{state:?}");
    assert_eq!(world.starts(), [""; 0]);
}

#[tokio::test]
async fn a_runner_that_fails_says_how_and_finds_its_own_folder_and_configuration_and_nothing_of_ours() {
    let world = World::new();
    let runner = runner("r-1", "fail");
    let runners = world.runners();
    let mut news = runners.news();
    runners.start(&runner).await.expect("it starts");
    assert_eq!(next(&mut news, &runner.name).await, RunnerState::Running);
    let message = "it ended with exit code 7".into();
    assert_eq!(
        next(&mut news, &runner.name).await,
        RunnerState::Failed { message }
    );
    let work = world.path("runners/r-1/work");
    let work = work.canonicalize().expect("it is there");
    assert_eq!(world.starts(), [format!("{} fail", work.display())]);
    let of_owner = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o077 == 0;
    assert!(of_owner(&world.path("runners/r-1")) && of_owner(&world.path("runners/r-1/runner.log")));
}

#[tokio::test]
async fn a_program_that_is_not_there_uses_up_no_configuration() {
    let world = World::new();
    let runner = runner("r-1", "complete");
    let gone = world.path("gone.sh");
    fs::rename(world.path("run.sh"), &gone).expect("it is there");
    let runners = world.runners();
    let refused = runners.start(&runner).await.expect_err("there is no program");
    assert_eq!(
        (refused.retry, refused.diagnostic.code),
        (Retry::Later, Code::RunnerNotStarted)
    );
    fs::rename(&gone, world.path("run.sh")).expect("it is there");
    let mut news = runners.news();
    runners.start(&runner).await.expect("it starts now");
    assert_eq!(next(&mut news, &runner.name).await, RunnerState::Running);
    assert_eq!(next(&mut news, &runner.name).await, RunnerState::Completed);
}

#[tokio::test]
async fn what_a_runner_detached_is_gone_when_it_is_removed() {
    let world = World::new();
    let runner = runner("r-1", "leave");
    let runners = world.runners();
    let mut news = runners.news();
    runners.start(&runner).await.expect("it starts");
    assert_eq!(next(&mut news, &runner.name).await, RunnerState::Running);
    let mark = format!("BLUEPROOF_RUNNER={}", world.path("runners/r-1").display());
    let sleepers = || {
        let listed = Command::new("grep")
            .args(["-lsa", &mark])
            .args(environments())
            .output();
        String::from_utf8_lossy(&listed.expect("grep is there").stdout)
            .lines()
            .count()
    };
    until(|| sleepers() == 3).await;
    runners.remove(&runner.name).await.expect("it is taken on");
    assert_eq!(next(&mut news, &runner.name).await, RunnerState::Removed);
    assert_eq!(sleepers(), 0);
}

/// Returns the environment of each process.
fn environments() -> Vec<String> {
    let listed = fs::read_dir("/proc").expect("it is there").flatten();
    let pids = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.map(|pid| format!("/proc/{pid}/environ")).collect()
}
