//! What processes write by themselves, past the kernel: it is shown in its cell and in its order, and no death loses it.

use std::{fs, time::Duration};

use blueproof_core::{
    attempt::Stream,
    domain::{Failure, FailureClass},
};
use blueproof_diagnostic::Code::{CellTimeout, KernelEnded};

use crate::support::Attempt;

/// C code that is called with the interpreter's lock held: no thread of the kernel gets a turn before the death.
const C: &str =
    "import ctypes, os, sys\nc = ctypes.PyDLL(None)\ndef say(text): c.write(2, text, len(text))\n";

fn assert_died(failure: &Failure, line: u32, message: &str) {
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Notebook, KernelEnded)
    );
    assert_eq!(failure.diagnostic.message, message, "{failure:#?}");
    assert_eq!(failure.cell.as_ref().unwrap().line, Some(line), "{failure:#?}");
}

#[test]
fn what_compiled_code_says_right_before_it_aborts_is_the_verdict() {
    let source =
        "say(b'terminate called after throwing an instance of oops\\n  what():  no device\\n')\nc.abort()";
    let done = Attempt::of(&[C, source]).run();
    let failure = done.failure();
    let message = "the kernel was killed in this cell, by signal 6 (SIGABRT): terminate called after throwing an \
                   instance of oops";
    assert_died(&failure, 2, message);
    assert_eq!(failure.diagnostic.causes[1], "  what():  no device");
    let log = done.layout().kernel_log();
    assert!(
        failure.diagnostic.hints[0].ends_with(log.to_str().unwrap()),
        "{failure:#?}"
    );
    assert!(fs::read_to_string(log).unwrap().contains("no device"));
    assert!(done.printed_to(Stream::Stderr).contains("  what():  no device\n"));
}

#[test]
fn a_crash_in_compiled_code_names_the_line_that_led_to_it() {
    let source = "def deep(n):\n    return deep(n - 1) if n else c.strlen(1)\nx = 1\ndeep(3)";
    let failure = Attempt::of(&[C, source]).fails();
    assert_died(
        &failure,
        4,
        "the kernel was killed in this cell, by signal 11 (SIGSEGV)",
    );
}

#[test]
fn what_is_written_right_before_an_exit_is_evidence() {
    let failure = Attempt::of(&[
        C,
        "say(b'not this one\\n')",
        "say(b'fatal: out of licences\\n')\nos._exit(3)",
    ])
    .fails();
    let message = "the kernel ended in this cell, with exit status 3: fatal: out of licences";
    assert_eq!(failure.diagnostic.message, message, "{failure:#?}");
    assert_eq!(failure.diagnostic.causes, ["fatal: out of licences"]);
}

#[test]
fn what_was_printed_before_an_abort_is_no_cause_of_it() {
    let source = "import os\nfor e in range(3):\n    print('epoch', e, 'done')\nos.abort()";
    let failure = Attempt::of(&[source]).fails();
    assert_died(
        &failure,
        4,
        "the kernel was killed in this cell, by signal 6 (SIGABRT)",
    );
    assert_eq!(
        failure.diagnostic.causes,
        ["the last that it printed: epoch 2 done"]
    );
}

#[test]
fn what_children_write_is_all_there_and_in_its_order() {
    let done = Attempt::of(&[
        "import subprocess, sys, os\nfor i in range(20):\n    print('before', i)\n    \
         subprocess.run(['sh', '-c', f'echo child {i}'])\n    print('after', i)",
        "subprocess.run(['echo', 'given'], stdout=sys.stdout)\nos.system('echo last >&2')",
    ])
    .run();
    done.passed();
    // Two channels bring it. On a machine without a moment to spare a child's line may come behind what was printed after it.
    let printed = done.printed_by(1);
    let of_children = |line: &&str| line.starts_with("child");
    let (children, kernels): (Vec<_>, Vec<_>) = printed.lines().partition(of_children);
    let expected: Vec<_> = (0..20).map(|i| format!("child {i}")).collect();
    assert_eq!(children, expected);
    let expected: Vec<_> = (0..20)
        .flat_map(|i| [format!("before {i}"), format!("after {i}")])
        .collect();
    assert_eq!(kernels, expected);
    assert_eq!(done.printed_by(2), "given\nlast\n");
    assert_eq!(done.printed_to(Stream::Stderr), "last\n");
}

#[test]
fn what_comes_after_our_own_interrupt_is_no_evidence() {
    let source = "import subprocess, sys, time\nprint('step 7', flush=True)\ntry:\n    time.sleep(600)\n\
                  except KeyboardInterrupt:\n    print('KeyboardInterrupt: caught', flush=True)\n    \
                  subprocess.run(['sh', '-c', 'echo saving; exit 4'])\n    raise";
    let done = Attempt::of(&[source]).cell_within(Duration::from_secs(1)).run();
    let failure = done.failure();
    assert_eq!(failure.diagnostic.code, CellTimeout);
    assert_eq!(failure.diagnostic.causes, ["the last that it printed: step 7"]);
    assert_eq!(done.noticed(), []);
    assert!(
        !failure
            .diagnostic
            .hints
            .iter()
            .any(|hint| hint.contains("earlier")),
        "{failure:#?}"
    );
    assert!(done.printed().contains("saving"));
}

#[test]
fn what_was_printed_right_before_an_exit_is_shown() {
    let done = Attempt::of(&["import os\nprint('step 12')\nos._exit(4)"]).run();
    assert_eq!(done.printed(), "step 12\n");
    assert_eq!(
        done.failure().diagnostic.causes,
        ["the last that it printed: step 12"]
    );
}
