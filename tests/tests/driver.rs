//! The driver of this machine, with real agents and real kernels, keeps what every cluster driver promises.

use std::{os::unix::process::ExitStatusExt, path::Path, time::Duration};

use blueproof_cluster::local::{AgentCommand, LocalDriver};
use blueproof_core::{
    action::StartAction,
    attempt::{Cgroup, LogWriter, ProcessName, Record, RecordKind, RunsFolder, StoreIdentity},
    domain::{FailureClass, RunId, Verdict},
    event::Call,
    ports::{AttemptNews, ClusterDriver, Retry},
    testing::{
        contract::{self, NewsOf},
        outcome as outcome_of, start_action,
    },
};
use blueproof_diagnostic::Code;
use blueproof_tests::{checkout, checkout::Checkout};

/// A driver of a store of its own, with that agent.
fn driver(home: &Path, agent: &str) -> LocalDriver {
    let agent = AgentCommand {
        program: env!("CARGO_BIN_EXE_host").into(),
        arguments: vec![agent.into()],
    };
    LocalDriver::new(runs(home, "a-store"), checkout::environments(), agent)
}

fn runs(home: &Path, store: &str) -> RunsFolder {
    let identity = StoreIdentity {
        id: store.into(),
        folder: store.into(),
        secret: [7; 32],
    };
    RunsFolder::new(home.join("runs"), identity)
}

#[tokio::test]
async fn the_local_driver_keeps_the_contract() {
    the_contract_is_kept().await;
}

async fn the_contract_is_kept() {
    let home = tempfile::tempdir().expect("a folder");
    let driver = driver(home.path(), "agent");
    let passing = Checkout::new(&["print('done')"], "");
    let endless = Checkout::new(&["import time\ntime.sleep(600)"], "");
    let first = start_action(1, passing.request("a"));
    let second = start_action(2, endless.request("b"));
    let third = start_action(3, endless.request("c"));
    contract::cluster_keeps_its_promises(&driver, &first, &second, &third).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_local_driver_keeps_the_contract_on_several_threads() {
    the_contract_is_kept().await;
}

#[tokio::test]
async fn an_attempt_whose_agents_cannot_write_down_how_it_ended_is_over_all_the_same() {
    let home = tempfile::tempdir().expect("a folder");
    let driver = driver(home.path(), "agent-on-a-full-disk");
    let checkout = Checkout::new(&["print('done')"], "");
    let start = start_action(1, checkout.request("a"));
    let mut news = NewsOf::listen(&driver);
    news.place(&start).await;
    driver.start(&start).await.expect("the agent begins");

    let outcome = news.outcome(start.attempt).await;

    let Verdict::Failed(failure) = outcome.verdict else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Infrastructure, Code::AgentLost)
    );
    assert_eq!(failure.diagnostic.causes, ["Error: \"full\""]);
}

/// Runs an attempt to its end, and returns how it ended.
async fn outcome(driver: &LocalDriver, start: &StartAction) -> Verdict {
    let mut news = NewsOf::listen(driver);
    news.place(start).await;
    driver.start(start).await.expect("it starts");
    let outcome = news.outcome(start.attempt).await;
    // Its agent may still be there for a moment.
    news.release(start.attempt).await;
    outcome.verdict
}

/// Checks that the notebook itself ran, and raised.
fn assert_raised(verdict: &Verdict) {
    let Verdict::Failed(failure) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(failure.class, FailureClass::Notebook, "{failure:?}");
    assert!(
        failure.diagnostic.message.contains("ZeroDivisionError"),
        "{failure:?}"
    );
}

#[tokio::test]
async fn an_attempts_folder_belongs_to_its_store_and_its_request_and_is_never_taken_over() {
    let home = tempfile::tempdir().expect("a folder");
    let (good, bad) = (
        Checkout::new(&["print('done')"], ""),
        Checkout::new(&["1 / 0"], ""),
    );
    let passing = start_action(1, good.request("a"));
    let failing = start_action(1, bad.request("b"));
    let driver = driver(home.path(), "agent");
    assert_eq!(outcome(&driver, &passing).await, Verdict::Passed);

    // The store was put back as it was before, and counts from one again.
    assert_raised(&outcome(&driver, &failing).await);
    let mut aside = driver.layout(passing.attempt).root().to_owned();
    aside.set_file_name("1.aside-1");
    assert!(aside.join("executed.ipynb").exists(), "nothing of it is lost");

    // What somebody has put there before the attempt began is not the attempt's either.
    let planted = start_action(2, bad.request("c"));
    let before = driver.layout(planted.attempt);
    std::fs::create_dir_all(before.root()).expect("a folder");
    for file in ["spec.json", "log.ndjson", "executed.ipynb"] {
        std::fs::copy(aside.join(file), before.root().join(file)).expect("a copy");
    }
    assert_raised(&outcome(&driver, &planted).await);
}

#[tokio::test]
async fn a_folder_in_which_another_attempt_still_runs_is_refused() {
    let home = tempfile::tempdir().expect("a folder");
    let driver = driver(home.path(), "agent");
    let sleeping = Checkout::new(&["import time\ntime.sleep(600)"], "");
    let endless = start_action(1, sleeping.request("a"));
    let other = start_action(1, sleeping.request("b"));
    let mut news = NewsOf::listen(&driver);
    news.place(&endless).await;
    driver.start(&endless).await.expect("it starts");

    let refused = driver.start(&other).await.expect_err("it is another's");

    assert_eq!(
        (refused.diagnostic.code, refused.retry),
        (Code::AttemptFolderTaken, Retry::Never)
    );
    news.release(endless.attempt).await;
}

#[tokio::test]
async fn an_agent_that_does_nothing_any_more_is_ended_by_force() {
    let home = tempfile::tempdir().expect("a folder");
    let driver = driver(home.path(), "agent").with_release_grace(Duration::from_secs(1));
    let stopping =
        "import os, signal, time\nprint('x')\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(600)";
    let checkout = Checkout::new(&[stopping], "");
    let start = start_action(1, checkout.request("a"));
    let mut news = NewsOf::listen(&driver);
    news.place(&start).await;
    driver.start(&start).await.expect("it starts");
    assert_eq!(news.next(start.attempt).await, AttemptNews::Running);
    let records = runs(home.path(), "a-store").log(start.attempt).read_to_foreign();
    let agent = records.iter().find_map(|record| {
        let RecordKind::Begun { process, .. } = &record.kind else {
            return None;
        };
        Some(process.pid)
    });
    let stat = format!("/proc/{}/stat", agent.expect("it has begun"));
    while !std::fs::read_to_string(&stat)
        .expect("it is there")
        .contains(") T ")
    {
        tokio::task::yield_now().await;
    }

    news.release(start.attempt).await;

    driver.observe(start.attempt).await.expect("it is asked for");
    let outcome = news.outcome(start.attempt).await;
    assert!(matches!(outcome.verdict, Verdict::Failed(_)), "{outcome:?}");
    assert!(!runs(home.path(), "a-store").work(start.attempt).exists());
}

#[tokio::test]
async fn what_an_agent_that_was_killed_left_in_its_cgroup_is_ended_where_no_other_agent_can() {
    let home = tempfile::tempdir().expect("a folder");
    // It ends at once, and so ends nothing.
    let driver = driver(home.path(), "no-agent");
    let runs = runs(home.path(), "a-store");
    let attempt = RunId(1).attempt(1);
    let layout = runs.attempt(attempt);
    std::fs::create_dir_all(layout.root()).expect("a folder");
    // It looks as one does: a kernel writes the files of a real one.
    let cgroup = home.path().join("cgroup");
    std::fs::create_dir(&cgroup).expect("a folder");
    let mut left = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .expect("it starts");
    std::fs::write(cgroup.join("cgroup.procs"), left.id().to_string()).expect("a file");
    let (mut log, _) = LogWriter::open(&layout.log(), runs.log_key(attempt)).expect("a file");
    let kind = RecordKind::Begun {
        process: ProcessName {
            started: 0,
            ..ProcessName::of(left.id()).expect("it is there")
        },
        version: "0".into(),
        marker: String::new(),
        sockets: layout.root().join("sockets"),
        cgroup: Some(Cgroup::new(cgroup.clone())),
    };
    let at = jiff::Timestamp::UNIX_EPOCH;
    log.append(&Record { at, kind }).expect("it is written");

    let mut news = NewsOf::listen(&driver);
    driver.release(attempt).await.expect("it is handed over");

    let AttemptNews::Failed { call, error } = news.next(attempt).await else {
        panic!("a folder with files is no cgroup that could be removed")
    };
    assert_eq!(left.wait().expect("it ran").signal(), Some(9));
    assert_eq!(
        (call, error.diagnostic.code),
        (Call::Release(attempt), Code::AttemptFolder)
    );
}

#[tokio::test]
async fn an_agent_that_runs_elsewhere_is_waited_for_and_not_replaced() {
    let home = tempfile::tempdir().expect("a folder");
    let runs = runs(home.path(), "a-store");
    let attempt = RunId(1).attempt(1);
    let layout = runs.attempt(attempt);
    std::fs::create_dir_all(layout.root()).expect("a folder");
    let lock = std::fs::File::create(layout.lock()).expect("a file");
    lock.lock().expect("nobody else has it");
    let (mut log, _) = LogWriter::open(&layout.log(), runs.log_key(attempt)).expect("a file");
    let mut write = |kind| {
        let at = jiff::Timestamp::UNIX_EPOCH;
        log.append(&Record { at, kind }).expect("it is written");
    };
    write(RecordKind::Begun {
        process: ProcessName {
            pid: std::process::id(),
            started: 0,
            host: "another machine".into(),
        },
        version: "0".into(),
        marker: String::new(),
        sockets: layout.root().join("sockets"),
        cgroup: None,
    });
    write(RecordKind::KernelReady { pid: 1, cells: 1 });
    // One that would come in its place ends at once, and the attempt would be taken for lost.
    let driver = driver(home.path(), "no-agent");
    let ended = outcome_of(Verdict::Stopped);
    let mut news = NewsOf::listen(&driver);
    driver.observe(attempt).await.expect("it is asked for");
    assert_eq!(news.next(attempt).await, AttemptNews::Running);
    write(RecordKind::Finished {
        outcome: Box::new(ended.clone()),
    });
    assert_eq!(news.outcome(attempt).await, ended);
}
