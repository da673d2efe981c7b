//! However an attempt ends, it ends in order and leaves nothing.

use std::{fs, time::Duration};

use blueproof_core::{
    attempt::{CellEnd, RecordKind},
    domain::{FailureClass, TimeLimit, Verdict},
};
use blueproof_diagnostic::Code;

use crate::support::{Attempt, Done, eventually, is_alive};

/// Prints the kernel's id and those of a detached child, also without our marker in its environment, and of a double-forked one.
const DETACHED: &str = "import os, subprocess, time\n\
    a = subprocess.Popen(['setsid', 'sleep', '600'])\n\
    b = subprocess.Popen(['sh', '-c', 'setsid sleep 600 & echo $!'], stdout=subprocess.PIPE, text=True)\n\
    c = subprocess.Popen(['env', '-i', 'sleep', '600'], start_new_session=True)\n\
    d = subprocess.Popen(['sh', '-c', 'trap \"\" TERM INT; while :; do sleep 1; done'])\n\
    print('pids', os.getpid(), a.pid, int(b.stdout.readline()), c.pid, d.pid, 'end', flush=True)\n";

fn pids(printed: &str) -> Vec<String> {
    let between = printed
        .split("pids ")
        .nth(1)
        .unwrap()
        .split(" end")
        .next()
        .unwrap();
    between.split(' ').map(str::to_owned).collect()
}

fn assert_nothing_left(done: &Done, pids: &[String]) {
    let left: Vec<_> = pids.iter().filter(|pid| is_alive(pid)).collect();
    assert!(left.is_empty(), "still there: {left:?}");
    assert!(!done.work().exists());
}

#[test]
fn detached_children_do_not_outlive_a_passed_attempt() {
    let done = Attempt::of(&[DETACHED]).run();
    done.passed();
    assert_nothing_left(&done, &pids(&done.printed()));
}

#[test]
fn detached_children_do_not_outlive_a_kernel_that_died() {
    let done = Attempt::of(&[&format!("{DETACHED}time.sleep(0.3)\nos._exit(7)")]).run();
    assert_eq!(done.failure().class, FailureClass::Notebook);
    assert_nothing_left(&done, &pids(&done.printed()));
}

#[test]
fn an_agent_that_is_killed_takes_its_kernel_along_and_the_next_one_finishes() {
    let running = Attempt::of(&[&format!("{DETACHED}time.sleep(600)")]).start();
    let pids = pids(&running.until_printed(" end"));
    let sockets = running.sockets();
    assert!(sockets.exists());
    let kernel = pids[0].clone();
    let done = running.kill_and_recover();

    let failure = done.failure();
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Infrastructure, Code::AgentLost)
    );
    eventually(|| (!is_alive(&kernel)).then_some(()));
    assert_nothing_left(&done, &pids);
    assert!(!sockets.exists());
    let begun = |kind: &RecordKind| matches!(kind, RecordKind::CellBegun { .. });
    assert_eq!(
        done.records.iter().filter(|record| begun(&record.kind)).count(),
        1
    );
}

#[test]
fn a_second_agent_for_the_same_folder_ends_quietly() {
    let running = Attempt::of(&["import time\nprint('here', flush=True)\ntime.sleep(1)"]).start();
    running.until_printed("here");
    let mut second = running.another_agent();
    assert!(eventually(|| second.try_wait().unwrap()).success());
    let done = running.wait();
    done.passed();
    let begun = |kind: &RecordKind| matches!(kind, RecordKind::Begun { .. });
    assert_eq!(
        done.records.iter().filter(|record| begun(&record.kind)).count(),
        1
    );
}

#[test]
fn an_agent_for_a_finished_attempt_does_nothing() {
    let running = Attempt::of(&["print('once')"]).start();
    eventually(|| {
        let records = running.records();
        records
            .iter()
            .any(|record| matches!(record.kind, RecordKind::Finished { .. }))
            .then_some(())
    });
    let mut second = running.another_agent();
    assert!(eventually(|| second.try_wait().unwrap()).success());
    let done = running.wait();
    assert_eq!(done.printed(), "once\n");
}

#[test]
fn an_interrupt_stops_after_the_cell_that_it_interrupts() {
    let running = Attempt::of(&[
        "import time\nprint('here', flush=True)\ntime.sleep(600)",
        "print('never')",
    ])
    .start();
    running.until_printed("here");
    running.signal("INT");
    let done = running.wait();
    assert_eq!(done.outcome().verdict, Verdict::Stopped);
    assert_eq!(done.ends(), [CellEnd::Interrupted]);
    assert_eq!(done.printed(), "here\n");
    assert_eq!(done.notebook()["cells"][0]["outputs"][0]["text"], "here\n");
}

#[test]
fn a_termination_ends_everything_in_order() {
    let running = Attempt::of(&[&format!(
        "{DETACHED}while True:\n    try:\n        time.sleep(600)\n    except KeyboardInterrupt:\n        pass"
    )])
    .start();
    let pids = pids(&running.until_printed(" end"));
    running.signal("INT");
    running.signal("INT");
    let done = running.wait();
    assert_eq!(done.outcome().verdict, Verdict::Stopped);
    assert_nothing_left(&done, &pids);

    let running = Attempt::of(&[&format!("{DETACHED}time.sleep(600)")]).start();
    let pids = self::pids(&running.until_printed(" end"));
    running.signal("TERM");
    let done = running.wait();
    assert_eq!(done.outcome().verdict, Verdict::Stopped);
    assert_nothing_left(&done, &pids);
    done.notebook();
}

#[test]
fn a_cell_that_handles_interrupts_is_ended_all_the_same() {
    let source = "import time\nprint('kept', flush=True)\nwhile True:\n    try:\n        time.sleep(600)\n    except KeyboardInterrupt:\n        pass";
    let done = Attempt::of(&[source]).cell_within(Duration::from_secs(1)).run();
    let failure = done.failure();
    assert_eq!(failure.class, FailureClass::Timeout(TimeLimit::Cell));
    assert_eq!(done.ends(), [CellEnd::Interrupted]);
    let killed = "it did not end when it was interrupted, and its kernel was killed";
    assert!(
        failure.diagnostic.causes.iter().any(|cause| cause == killed),
        "{failure:?}"
    );
    assert_eq!(done.notebook()["cells"][0]["outputs"][0]["text"], "kept\n");
}

#[test]
fn a_cell_that_ends_well_when_it_is_interrupted_was_too_long_all_the_same() {
    let source = "import time\ntry:\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    pass";
    let failure = Attempt::of(&[source])
        .cell_within(Duration::from_millis(500))
        .fails();
    assert_eq!(failure.class, FailureClass::Timeout(TimeLimit::Cell));
    let causes = failure.diagnostic.causes;
    assert!(!causes.iter().any(|cause| cause.contains("killed")), "{causes:?}");
}

#[test]
fn a_stop_during_the_start_is_a_stop() {
    let running = Attempt::of(&["x"])
        .variable("TEST_ENDLESS_ENVIRONMENT", "1")
        .start();
    eventually(|| {
        let records = running.records();
        records
            .iter()
            .any(|record| matches!(record.kind, RecordKind::StageProgress { .. }))
            .then_some(())
    });
    running.signal("INT");
    assert_eq!(running.wait().outcome().verdict, Verdict::Stopped);
}

/// What a notebook leaves to the end of its interpreter: a class that writes a file when it goes, in a cycle and not, files that
/// nobody closes, in names, cycles, closures, classes and modules, threads, and what is registered for the end.
const LEFT_TO_THE_END: &str = "import atexit, gzip, logging, logging.handlers, sys, threading, time, weakref, zipfile\n\
    def file(name): return open(out + name, 'w')\n\
    class Thing: pass\n\
    name = file('name'); name.write('x')\n\
    ring = Thing(); ring.ring = ring; ring.file = file('ring'); ring.file.write('x')\n\
    def closed():\n\
    \x20   inner = file('closure'); inner.write('x')\n\
    \x20   def again(): return inner, again\n\
    \x20   return again\n\
    again = closed()\n\
    class Class: file = file('class')\n\
    Class.file.write('x')\n\
    def generator():\n\
    \x20   with file('generator') as there:\n\
    \x20       there.write('x'); yield\n\
    running = generator(); next(running)\n\
    archive = zipfile.ZipFile(out + 'zip', 'w'); archive.writestr('a', 'b')\n\
    packed = gzip.open(out + 'gzip', 'wt'); packed.write('x')\n\
    sys.kept = file('kept'); sys.kept.write('x')\n\
    class Last:\n\
    \x20   def __init__(self, name): self.name = name\n\
    \x20   def __del__(self, file=open, out=out):\n\
    \x20       with file(out + self.name, 'w') as there: there.write('x')\n\
    last, last_ring = Last('last'), Last('last-ring'); last_ring.ring = last_ring\n\
    atexit.register(lambda: Last('registered'))\n\
    weakref.finalize(ring, Last, 'finalized')\n\
    late = threading.Thread(target=lambda: (time.sleep(0.3), Last('thread'))); late.start()\n\
    held = logging.handlers.MemoryHandler(9, target=logging.FileHandler(out + 'log'), flushLevel=99)\n\
    logging.getLogger().addHandler(held); logging.getLogger().warning('x')\n\
    import helper";

#[test]
fn what_a_notebook_leaves_to_the_end_of_its_interpreter_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let out = format!("out = '{}/'", folder.path().display());
    let helper = format!("{out}\nfile = open(out + 'module', 'w'); file.write('x')\n");
    let done = Attempt::of(&[&out, LEFT_TO_THE_END])
        .file("examples/helper.py", &helper)
        .run();
    done.passed();
    let written = [
        "class",
        "closure",
        "finalized",
        "generator",
        "gzip",
        "kept",
        "last",
        "last-ring",
        "log",
        "module",
        "name",
        "registered",
        "ring",
        "thread",
        "zip",
    ];
    let is_empty =
        |name: &&str| fs::metadata(folder.path().join(name)).map_or(true, |found| found.len() == 0);
    let missing: Vec<_> = written.into_iter().filter(is_empty).collect();
    assert!(missing.is_empty(), "not written: {missing:?}");
}

#[test]
fn a_kernel_that_does_not_end_well_after_its_cells_is_noticed_and_fails_nothing() {
    let ends = [
        (
            "import atexit, os\natexit.register(os._exit, 3)",
            "after the last cell, the kernel ended with exit status 3",
        ),
        (
            "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGSEGV)",
            "after the last cell, the kernel ended with signal 11 (SIGSEGV)",
        ),
        (
            "import atexit\natexit.register(lambda: 1 / 0)",
            "what the notebook registered for its end (atexit) raised an exception: ZeroDivisionError: division by zero",
        ),
        (
            "import threading, time\nthreading.Thread(target=lambda: time.sleep(600)).start()",
            "after the last cell, the kernel did not end within 5 s and was ended by force: a thread or a process of \
             the notebook, or what it registered for the end, still ran",
        ),
    ];
    for (source, message) in ends {
        let done = Attempt::of(&[source]).run();
        done.passed();
        let notices: Vec<_> = done.noticed().into_iter().map(|notice| notice.message).collect();
        assert_eq!(notices, [message], "{source}");
    }
}

#[test]
fn what_is_printed_while_the_kernel_ends_belongs_to_the_last_cell() {
    let done = Attempt::of(&["import atexit\natexit.register(print, 'the last word')"]).run();
    done.passed();
    assert_eq!(done.printed(), "the last word\n");
}

#[test]
fn where_the_environment_was_changed_meanwhile_a_notebook_neither_passes_nor_fails() {
    for cell in ["print('on')", "import not_there_any_more"] {
        let failure = Attempt::of(&[cell])
            .variable("TEST_CHANGED_ENVIRONMENT", "1")
            .fails();
        assert_eq!(failure.class, FailureClass::Infrastructure, "{cell}");
        assert_eq!(failure.diagnostic.code, Code::EnvironmentChanged);
        let told = failure.diagnostic.causes.join("\n");
        assert_eq!(
            told.contains("ModuleNotFoundError"),
            cell.starts_with("import"),
            "{told}"
        );
    }
    // What it installs is for itself alone: then it changes nothing that others use.
    Attempt::of(&["print(1)  # pip install a"])
        .variable("TEST_CHANGED_ENVIRONMENT", "1")
        .run()
        .passed();
}
