//! What a hostile notebook tries from its sandbox, and does not get: each row of what one may do without a sandbox.
//!
//! Each test is a real kernel in a real sandbox. They need bubblewrap and user namespaces, and say so where
//! these are not there.

mod packages;
mod reach;
mod resources;

use std::{fs, process::Command, sync::LazyLock, time::Duration};

use blueproof_core::{
    attempt::CellEnd,
    domain::{FailureClass, Verdict},
};
use blueproof_diagnostic::Code;
use blueproof_notebook::plan::Network;

use crate::support::{Attempt, eventually, is_alive};

/// Defines `tries`, which says what comes of a step: what it gives, or the name of the exception.
const TRIES: &str = "
import glob, os, signal, socket, subprocess, sys, time
def tries(step):
    try:
        return 'got ' + repr(step())
    except BaseException as error:
        return 'refused: ' + type(error).__name__
def wrote(path, text='x'):
    with open(path, 'a') as file:
        file.write(text)
def read(path):
    with open(path) as file:
        return file.read()
";

/// Returns whether a sandbox can be made here, or says that what needs one is not tested.
fn can_sandbox() -> bool {
    static CAN: LazyLock<bool> = LazyLock::new(|| {
        let arguments = ["--unshare-all", "--ro-bind", "/", "/", "true"];
        let ended = Command::new("bwrap").args(arguments).output();
        ended.is_ok_and(|ended| ended.status.success())
    });
    if !*CAN {
        eprintln!("NOT TESTED: the sandbox, because bubblewrap is not installed or makes none here");
    }
    *CAN
}

/// Runs what a hostile notebook tries in a sandbox, and returns what it printed.
fn tried(attempt: impl FnOnce(Attempt) -> Attempt, code: &str) -> String {
    let done = attempt(Attempt::of(&[TRIES, code]).sandboxed()).run();
    done.passed();
    done.printed()
}

#[test]
fn a_notebook_runs_in_a_sandbox_as_it_does_elsewhere() {
    if !can_sandbox() {
        return;
    }
    let done = Attempt::of(&[
        "import getpass, os, pathlib, tempfile; print(os.getuid(), getpass.getuser())",
        "pathlib.Path('out.txt').write_text('x'); pathlib.Path.home().joinpath('a').write_text('x'); tempfile.TemporaryFile()",
        "import multiprocessing as m; print(m.get_context('fork').Pool(2).map(abs, [-1, -2]))",
        "import subprocess; subprocess.run(['sh', '-c', 'echo from a shell'], check=True)",
    ])
    .file("examples/data.csv", "a,b")
    .sandboxed()
    .run();
    done.passed();
    for printed in ["1000 notebook", "[1, 2]"] {
        assert!(done.printed().contains(printed), "{}", done.printed());
    }
    assert!(
        !done.checkout().join("examples/out.txt").exists(),
        "the user's own checkout is not touched"
    );
    assert!(!done.work().exists(), "what it worked in is gone");
}

#[test]
fn a_cell_beyond_its_time_is_interrupted_and_one_that_ignores_that_is_killed() {
    if !can_sandbox() {
        return;
    }
    let cell =
        "import time\ntry:\n    time.sleep(30)\nexcept KeyboardInterrupt:\n    print('interrupted'); raise";
    let done = Attempt::of(&[cell])
        .cell_within(Duration::from_secs(1))
        .sandboxed()
        .run();
    assert!(matches!(done.failure().class, FailureClass::Timeout(_)));
    assert!(done.printed().contains("interrupted"), "{}", done.printed());
    assert_eq!(done.ends(), [CellEnd::Interrupted]);

    let deaf =
        "import time\nwhile True:\n    try:\n        time.sleep(30)\n    except BaseException:\n        pass";
    let failure = Attempt::of(&[deaf])
        .cell_within(Duration::from_secs(1))
        .sandboxed()
        .fails();
    assert!(matches!(failure.class, FailureClass::Timeout(_)), "{failure:?}");
}

#[test]
fn how_a_kernel_ends_is_told_as_elsewhere() {
    if !can_sandbox() {
        return;
    }
    let failure = Attempt::of(&["import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
        .sandboxed()
        .fails();
    let message = failure.diagnostic.message;
    assert!(message.contains("by signal 9 (SIGKILL)"), "{message}");
    let failure = Attempt::of(&["import os; os._exit(3)"]).sandboxed().fails();
    assert!(
        failure.diagnostic.message.contains("exit status 3"),
        "{:?}",
        failure.diagnostic
    );
}

#[test]
fn a15_nothing_of_a_sandbox_outlives_an_agent_that_was_killed() {
    if !can_sandbox() {
        return;
    }
    let escape = "import subprocess\nsubprocess.Popen(['sleep', '300.25'], start_new_session=True, cwd='/', env={})\n\
                  print('started', flush=True)\nimport time; time.sleep(60)";
    let running = Attempt::of(&[escape]).sandboxed().start();
    running.until_printed("started");
    let sleeping = || {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let line = |pid: &str| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
        pids.find(|pid| line(pid) == b"sleep\x00300.25\x00")
    };
    let left = sleeping().unwrap();
    let done = running.kill_and_recover();
    assert!(matches!(done.outcome().verdict, Verdict::Failed(_)));
    eventually(|| (!is_alive(&left)).then_some(()));
}

#[test]
fn what_a_sandbox_does_not_grant_is_refused_before_anything_runs() {
    if !can_sandbox() {
        return;
    }
    let refused = |attempt: Attempt| {
        let done = attempt.run();
        assert_eq!(done.ends(), []);
        let failure = done.failure();
        assert_eq!(
            (failure.class, failure.diagnostic.code),
            (FailureClass::Config, Code::SandboxRefused)
        );
        failure.diagnostic.message
    };
    let mut attempt = Attempt::of(&["print(1)"]);
    attempt.plan.network = Network::Hosts(vec!["huggingface.co".into()]);
    assert!(refused(attempt.sandboxed()).contains("huggingface.co"));
    let attempt = Attempt::of(&["print(1)"])
        .sandboxed()
        .secret("token", "GITHUB_TOKEN", "ghs_1234567890");
    assert!(refused(attempt).contains("the secret token"));
    let mut attempt = Attempt::of(&["print(1)"]);
    let address = "thing @ git+https://example.org/thing";
    attempt.plan.environment.requirements.push(address.into());
    assert!(refused(attempt.sandboxed_with_limits()).contains(address));
}

#[test]
fn a_machine_without_bubblewrap_runs_nothing_and_says_why() {
    let done = Attempt::of(&["print('ran')"])
        .variable("PATH", "/nowhere")
        .sandboxed()
        .run();
    let failure = done.failure();
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Infrastructure, Code::SandboxUnavailable)
    );
    assert!(
        failure.diagnostic.causes[0].contains("`bwrap`"),
        "{:?}",
        failure.diagnostic
    );
    assert_eq!(done.printed(), "");
}
