//! What only a cgroup can do, where there can be one.

use std::fs;

use blueproof_core::{
    attempt::RecordKind,
    domain::{Bytes, FailureClass},
};
use blueproof_diagnostic::Code;

use crate::support::{Attempt, Running, is_alive};

/// Starts a process that nothing but its cgroup says anything of: it has another parent, session, folder, and environment.
const HIDDEN: &str = "import os, time\n\
    read, write = os.pipe()\n\
    if os.fork() == 0:\n    \
        os.setsid()\n    \
        os.chdir('/')\n    \
        pid = os.fork()\n    \
        if pid == 0:\n        \
            os.dup2(os.open('/dev/null', os.O_RDWR), 1)\n        \
            os.dup2(1, 2)\n        \
            os.execve('/bin/sleep', ['sleep', '600'], {})\n    \
        os.write(write, str(pid).encode())\n    \
        os._exit(0)\n\
    print('hidden', os.read(read, 20).decode(), 'end', flush=True)\n\
    time.sleep(600)";

fn hidden(running: &Running) -> String {
    let printed = running.until_printed(" end");
    let pid = printed
        .split("hidden ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let pid = pid.expect("it is printed").to_owned();
    assert!(is_alive(&pid));
    pid
}

#[test]
fn a_process_that_hides_is_gone_after_its_agent_was_killed() {
    let running = Attempt::of(&[HIDDEN]).start();
    let pid = hidden(&running);
    let Some(cgroup) = running.cgroup("the end of hidden processes") else {
        running.signal("TERM");
        running.wait();
        return;
    };
    assert!(cgroup.holds(pid.parse().expect("a number")));
    let done = running.kill_and_recover();
    assert!(!is_alive(&pid), "it is still there");
    assert!(!cgroup.folder().exists(), "its cgroup is still there");
    assert_eq!(done.failure().diagnostic.code, Code::AgentLost);
}

#[test]
fn a_process_that_hides_is_gone_also_where_the_log_that_names_its_cgroup_was_taken_away() {
    let running = Attempt::of(&[HIDDEN]).start();
    let pid = hidden(&running);
    let Some(cgroup) = running.cgroup("the end of hidden processes") else {
        running.signal("TERM");
        running.wait();
        return;
    };
    fs::remove_file(running.layout().log()).expect("it is ours");
    let done = running.kill_and_recover();
    assert!(!is_alive(&pid), "it is still there");
    assert!(!cgroup.folder().exists(), "its cgroup is still there");
    assert_eq!(done.failure().diagnostic.code, Code::AttemptTampered);
}

#[test]
fn a_cgroup_holds_the_kernel_and_not_the_agent_and_is_gone_at_the_end() {
    let running = Attempt::of(&["import time\nprint('here', flush=True)\ntime.sleep(1)"]).start();
    running.until_printed("here");
    let cgroup = running.cgroup("the place of kernel and agent");
    let agent = running.agent.id();
    let kernel = running.records().into_iter().find_map(|record| {
        let RecordKind::KernelReady { pid, .. } = record.kind else {
            return None;
        };
        Some(pid)
    });
    if let Some(cgroup) = &cgroup {
        assert!(cgroup.holds(kernel.expect("it runs")));
        assert!(!cgroup.holds(agent));
    }
    running.wait().passed();
    assert!(cgroup.is_none_or(|cgroup| !cgroup.folder().exists()));
}

#[test]
fn a_cell_that_holds_more_memory_than_was_granted_is_told_so() {
    const GRANTED: Bytes = Bytes(256 << 20);
    let running = Attempt::of(&[
        "print('x', flush=True)",
        "held = bytearray(1 << 30)\nprint(len(held))",
    ])
    .memory(GRANTED)
    .start();
    running.until_printed("x");
    let cgroup = running.cgroup("the limit of memory");
    let limit = cgroup.map(|cgroup| fs::read_to_string(cgroup.folder().join("memory.max")));
    let done = running.wait();
    if !matches!(limit, Some(Ok(limit)) if limit.trim() == GRANTED.0.to_string()) {
        eprintln!("NOT TESTED: the limit of memory, because cgroups here have no controller `memory`");
        done.passed();
        let notices = done.outcome().notices;
        let told = notices.iter().find(|notice| notice.code == Code::NotEnforced);
        assert!(told.is_some_and(|told| !told.causes.is_empty()), "{notices:?}");
        return;
    }
    let failure = done.failure();
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Notebook, Code::OutOfMemory)
    );
    assert_eq!(failure.cell.expect("it was in a cell").cell, 1);
    assert!(
        failure.diagnostic.message.contains("256Mi"),
        "{}",
        failure.diagnostic.message
    );
    assert_eq!(done.outcome().notices, []);
}

#[test]
fn a_cell_that_starts_more_processes_than_are_allowed_is_told_so() {
    let source = "import threading, time\n\
        for _ in range(6000):\n    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()";
    let running = Attempt::of(&["print('x', flush=True)\nimport time; time.sleep(0.5)", source]).start();
    running.until_printed("x");
    let cgroup = running.cgroup("the limit of processes");
    if !cgroup.is_some_and(|cgroup| cgroup.folder().join("pids.max").exists()) {
        eprintln!("NOT TESTED: the limit of processes, because cgroups here have no controller `pids`");
        running.signal("TERM");
        running.wait();
        return;
    }
    let failure = running.wait().failure();
    let told = |hint: &String| hint.contains("limit of 4096 processes");
    assert!(failure.diagnostic.hints.iter().any(told), "{failure:?}");
}

#[test]
fn a_stale_cgroup_of_the_same_attempt_does_not_keep_it_from_running() {
    let first = Attempt::of(&["print('x', flush=True)\nimport time; time.sleep(0.2)"]).start();
    first.until_printed("x");
    let Some(cgroup) = first.cgroup("a stale cgroup") else {
        first.wait().passed();
        return;
    };
    let layout = first.layout();
    let done = first.wait();
    done.passed();
    fs::create_dir(cgroup.folder()).expect("it is gone, and can be made again");
    fs::remove_file(layout.log()).expect("it is ours");
    done.again().passed();
    assert!(!cgroup.folder().exists());
}
