//! What a hostile notebook takes of the machine: processes, disk, memory.

use std::{fs, path::Path};

use blueproof_core::domain::{Bytes, FailureClass};
use blueproof_diagnostic::Code;

use super::{can_sandbox, tried};
use crate::support::Attempt;

#[test]
fn a20_a_fork_bomb_stops_at_the_limit_and_is_gone_afterwards() {
    if !can_sandbox() {
        return;
    }
    let code = "children = []\ndef bomb():\n    while len(children) < 2000:\n        pid = os.fork()\n        if pid == 0:\n            time.sleep(300); os._exit(0)\n        children.append(pid)\n\
                print(tries(bomb), 20 < len(children) < 100)";
    let printed = tried(|attempt| attempt.variable("TEST_PROCESSES", "100"), code);
    if is_root() {
        assert_eq!(printed, "refused: BlockingIOError True\n");
    } else {
        eprintln!("NOT TESTED: the limit of processes without a cgroup, because this user is not root");
    }
}

/// Without a cgroup only a user of its own has a number of processes, and only root can be another user.
pub(super) fn is_root() -> bool {
    fs::read_to_string("/proc/self/status")
        .unwrap()
        .contains("\nUid:\t0\t")
}

#[test]
fn a20_a_disk_is_not_filled_with_many_files() {
    if !can_sandbox() {
        return;
    }
    let code = "import os\nfor i in range(1000):\n    with open(f'file-{i}', 'wb') as file:\n        file.write(os.urandom(8 << 20))\nprint('filled')";
    let done = Attempt::of(&[code])
        .variable("TEST_DISK", "67108864")
        .sandboxed()
        .run();
    let failure = done.failure();
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Notebook, Code::DiskLimit)
    );
    assert!(
        failure.diagnostic.message.contains("64Mi"),
        "{:?}",
        failure.diagnostic
    );
    assert!(!done.printed().contains("filled"));
    assert!(!done.work().exists());
}

#[test]
fn a_file_is_no_larger_than_what_all_may_take() {
    if !can_sandbox() {
        return;
    }
    let code = "def large():\n    with open('large', 'wb') as file:\n        for _ in range(100):\n            file.write(b'x' * (1 << 20)); file.flush()\nprint(tries(large), os.path.getsize('large') <= 16 << 20); os.remove('large')";
    let printed = tried(|attempt| attempt.variable("TEST_DISK", "16777216"), code);
    assert_eq!(printed, "refused: OSError True\n");
}

#[test]
fn folders_in_memory_are_limited_too() {
    if !can_sandbox() {
        return;
    }
    let code = "def fill(path):\n    with open(path, 'wb') as file:\n        while True: file.write(b'x' * (1 << 20))\n\
                print(tries(lambda: fill('/tmp/a')), tries(lambda: fill('/dev/shm/a')), tries(lambda: fill('/a')))";
    let printed = tried(|attempt| attempt.memory(Bytes(64 << 20)), code);
    assert_eq!(printed, "refused: OSError refused: OSError refused: OSError\n");
    assert!(!Path::new("/dev/shm/a").exists());
}

#[test]
fn more_memory_than_was_granted_ends_the_notebook_and_without_a_limit_it_does_not_start() {
    if !can_sandbox() {
        return;
    }
    let attempt = Attempt::of(&["held = b'x' * (1 << 30)\nprint('held')"]);
    let done = attempt.memory(Bytes(256 << 20)).sandboxed_with_limits().run();
    assert!(!done.printed().contains("held"), "{}", done.printed());
    let failure = done.failure();
    if failure.diagnostic.code == Code::SandboxUnavailable {
        eprintln!("NOT TESTED: a limit of memory in the sandbox, because no controller of cgroup v2 is here");
        assert_eq!(failure.class, FailureClass::Infrastructure);
        assert!(
            failure.diagnostic.causes[0].contains("nothing limits it"),
            "{failure:?}"
        );
    } else {
        assert_eq!(failure.diagnostic.code, Code::OutOfMemory);
    }
}
