//! Every class of verdict, with its cell, line and causal line.

use std::time::Duration;

use blueproof_core::{
    attempt::CellEnd,
    domain::{
        Failure,
        FailureClass::{self, Config, Notebook, Timeout, Workload},
        TimeLimit,
    },
};
use blueproof_diagnostic::Code::{
    self, CellExited, CellRaised, CellSyntax, CellTimeout, KernelEnded, KernelUnusable, ModuleMissing,
    RunTimeout, StartupTimeout, WorkloadFailed,
};
use blueproof_notebook::plan::Network;

use crate::support::Attempt;

/// Checks class, code, cell, line and message at once.
fn assert_is(failure: &Failure, fault: (FailureClass, Code), place: (u32, Option<u32>), message: &str) {
    let cell = failure.cell.as_ref().expect("it happened in a cell");
    let seen = (failure.class, failure.diagnostic.code);
    let said = failure.diagnostic.message.as_str();
    assert_eq!(
        (seen, (cell.cell, cell.line), said),
        (fault, place, message),
        "{failure:#?}"
    );
}

#[test]
fn an_exception_is_named_with_the_users_own_line() {
    let failure = Attempt::of(&["\n\ndef f():\n    return 1 / 0\n", "x = 1\n\nf()"])
        .text("between")
        .fails();
    let message = "ZeroDivisionError: division by zero";
    assert_is(&failure, (Notebook, CellRaised), (2, Some(3)), message);
    assert_eq!(failure.cell.unwrap().source.unwrap(), "f()");
}

#[test]
fn an_exception_that_cannot_say_anything_is_named_by_its_class() {
    let failure = Attempt::of(&[
        "class Mute(Exception):\n    def __str__(self):\n        raise RuntimeError('of the text')",
        "x = 1\nraise Mute()",
    ])
    .fails();
    let message = "Mute: its text could not be had: __str__ raised RuntimeError";
    assert_is(&failure, (Notebook, CellRaised), (2, Some(2)), message);
}

#[test]
fn the_root_of_a_chain_is_named_and_its_line_is_shown() {
    let source = "try:\n    {}['x']\nexcept KeyError as e:\n    raise RuntimeError('cannot load') from e";
    let failure = Attempt::of(&[source]).fails();
    let message = "RuntimeError: cannot load (from KeyError: 'x')";
    assert_is(&failure, (Notebook, CellRaised), (1, Some(2)), message);
    assert_eq!(failure.diagnostic.causes, ["KeyError: 'x'"]);
}

#[test]
fn what_fails_while_something_is_handled_is_the_failure() {
    let failure = Attempt::of(&["try:\n    1 / 0\nexcept Exception:\n    undefined"]).fails();
    let message =
        "NameError: name 'undefined' is not defined (while handling ZeroDivisionError: division by zero)";
    assert_is(&failure, (Notebook, CellRaised), (1, Some(4)), message);
}

#[test]
fn a_cell_that_is_not_python_is_shown_at_its_line() {
    let failure = Attempt::of(&["\n\nx = 1\nx = = 2"]).fails();
    let message = "SyntaxError: invalid syntax";
    assert_is(&failure, (Notebook, CellSyntax), (1, Some(4)), message);
}

#[test]
fn a_cell_magic_does_not_move_lines() {
    let failure = Attempt::of(&["%%time\nx = 1\n1 / 0"]).fails();
    let message = "ZeroDivisionError: division by zero";
    assert_is(&failure, (Notebook, CellRaised), (1, Some(3)), message);
}

#[test]
fn an_exception_while_a_value_is_shown_counts() {
    let source = "class A:\n    def __repr__(self):\n        raise ValueError('no picture')\nA()";
    let failure = Attempt::of(&[source]).fails();
    let message = "ValueError: no picture";
    assert_is(&failure, (Notebook, CellRaised), (1, Some(3)), message);
}

#[test]
fn system_exit_and_foreign_interrupts_are_exceptions_like_others() {
    let failure = Attempt::of(&["import sys\nsys.exit(0)"]).fails();
    assert_is(&failure, (Notebook, CellExited), (1, Some(2)), "SystemExit: 0");
    let failure = Attempt::of(&["raise KeyboardInterrupt"]).fails();
    assert_is(
        &failure,
        (Notebook, CellRaised),
        (1, Some(1)),
        "KeyboardInterrupt",
    );
}

#[test]
fn of_a_group_the_first_member_is_named() {
    let source = "def f():\n    raise OSError('disk')\ntry:\n    f()\nexcept OSError as e:\n    one = e\n\
                  raise type('MyGroup', (RuntimeError,), {'exceptions': (one,)})('several')";
    let failure = Attempt::of(&[source]).fails();
    assert!(
        failure
            .diagnostic
            .message
            .starts_with("MyGroup: several: OSError: disk"),
        "{failure:#?}"
    );
    assert_eq!(failure.class, Notebook);
}

#[test]
fn a_missing_module_names_the_package() {
    let failure = Attempt::of(&["import yaml.nodes"]).fails();
    let message = "ModuleNotFoundError: No module named 'yaml'";
    assert_is(&failure, (Notebook, ModuleMissing), (1, Some(1)), message);
    assert_eq!(
        failure.diagnostic.hints,
        ["add `PyYAML` to spec.env.requirements"]
    );
}

#[test]
fn a_limit_that_is_not_enforced_is_not_to_blame_for_a_host_that_cannot_be_reached() {
    let mut attempt =
        Attempt::of(&["import urllib.request\nurllib.request.urlopen('http://nothing.invalid')"]);
    attempt.plan.network = Network::None;
    let failure = attempt.fails();
    assert_eq!(failure.class, Notebook);
    let hint = &failure.diagnostic.hints[0];
    assert!(
        hint.contains("could not be reached from this machine"),
        "{failure:#?}"
    );
}

#[test]
fn the_kernels_own_end_is_named_also_with_status_0() {
    let failure = Attempt::of(&["x = 1", "import os\nos._exit(0)"]).fails();
    let message = "the kernel ended in this cell, with exit status 0";
    assert_is(&failure, (Notebook, KernelEnded), (2, None), message);
}

#[test]
fn a_signal_that_ends_the_kernel_is_named() {
    let failure = Attempt::of(&["import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"]).fails();
    let message = "the kernel was killed in this cell, by signal 9 (SIGKILL)";
    assert_is(&failure, (Notebook, KernelEnded), (1, None), message);
    assert!(
        failure.diagnostic.hints[0].contains("does not say who sent it"),
        "{failure:#?}"
    );
    let failure = Attempt::of(&["import ctypes\nctypes.string_at(0)"]).fails();
    let message = "the kernel was killed in this cell, by signal 11 (SIGSEGV)";
    assert_is(&failure, (Notebook, KernelEnded), (1, Some(2)), message);
}

#[test]
fn exit_ends_the_kernel_and_fails_the_last_cell_too() {
    let failure = Attempt::of(&["x = 1\nexit()"]).fails();
    let message = "the cell ended its kernel by `exit()`";
    assert_is(&failure, (Notebook, CellExited), (1, Some(2)), message);
}

#[test]
fn of_a_failed_child_its_own_error_is_the_cause() {
    let child = "[sys.executable, '-c', 'raise ValueError(\"no data\")']";
    for options in ["check=True", "check=True, capture_output=True"] {
        let source = format!("import subprocess, sys\nsubprocess.run({child}, {options})");
        let failure = Attempt::of(&[&source]).fails();
        assert_eq!(
            (failure.class, failure.diagnostic.code),
            (Workload, WorkloadFailed)
        );
        assert!(
            failure
                .diagnostic
                .message
                .ends_with("exited 1: ValueError: no data"),
            "{failure:#?}"
        );
        assert!(
            failure.diagnostic.causes[0].contains("CalledProcessError"),
            "{failure:#?}"
        );
        assert_eq!(failure.diagnostic.hints, [""; 0]);
        assert_eq!(failure.cell.unwrap().line, Some(2));
    }
}

#[test]
fn of_a_failed_shell_cell_the_shells_words_are_the_cause() {
    let failure = Attempt::of(&["%%bash\necho hello\nno_such_program\nexit 4"]).fails();
    assert_eq!(failure.class, Workload);
    let message = &failure.diagnostic.message;
    assert!(
        message.contains("exited 4") && message.contains("no_such_program"),
        "{message}"
    );
}

#[test]
fn an_exception_of_a_worker_process_is_the_workloads() {
    let source = "import multiprocessing\ndef f(x):\n    raise ValueError('bad row')\n\
                  with multiprocessing.get_context('fork').Pool(1) as pool:\n    pool.map(f, [1])";
    let failure = Attempt::of(&[source]).fails();
    let message = "in a worker process: ValueError: bad row";
    assert_is(&failure, (Workload, WorkloadFailed), (1, Some(5)), message);
}

#[test]
fn of_a_broken_pool_the_last_words_of_the_worker_are_the_cause() {
    let source = "import concurrent.futures as c, multiprocessing as m, os, sys\ndef f(x):\n    \
                  os.write(2, b'RuntimeError: out of tokens\\n')\n    os._exit(3)\n\
                  with c.ProcessPoolExecutor(1, mp_context=m.get_context('fork')) as pool:\n    list(pool.map(f, [1]))";
    let failure = Attempt::of(&[source]).fails();
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (Workload, WorkloadFailed)
    );
    let message = &failure.diagnostic.message;
    assert!(
        message.starts_with("the worker process ForkProcess-1 (pid "),
        "{message}"
    );
    assert!(
        message.ends_with(") exited 3: RuntimeError: out of tokens"),
        "{message}"
    );
}

#[test]
fn of_a_failed_job_the_pods_error_is_the_cause_and_not_who_waited() {
    let failure = Attempt::of(&[
        "print('[node-0] Traceback (most recent call last):')\n\
         print('[node-0] urllib.error.URLError: <urlopen error>')",
        "raise RuntimeError('TrainJob tb47aa0 is Failed')",
    ])
    .fails();
    let message = "urllib.error.URLError: <urlopen error>";
    assert_is(&failure, (Workload, WorkloadFailed), (2, Some(1)), message);
    assert_eq!(
        failure.diagnostic.causes,
        ["the notebook noticed: RuntimeError: TrainJob tb47aa0 is Failed"]
    );
}

#[test]
fn a_cell_that_takes_too_long_is_a_timeout_and_not_an_interrupt() {
    let failure =
        Attempt::of(&["import time\nprint('step 3', flush=True)\nwhile True:\n    time.sleep(600)"])
            .cell_within(Duration::from_secs(1))
            .fails();
    let message = "the cell was not done within 1s (timeouts.cell)";
    assert_is(
        &failure,
        (Timeout(TimeLimit::Cell), CellTimeout),
        (1, Some(4)),
        message,
    );
    assert_eq!(failure.diagnostic.causes, ["the last that it printed: step 3"]);
}

#[test]
fn cells_that_take_too_long_together_are_a_timeout() {
    let mut attempt = Attempt::of(&["x = 1", "import time\ntime.sleep(600)"]);
    attempt.timeouts.run = Some(jiff::SignedDuration::from_secs(4));
    let message = "the cells were not done within 4s (timeouts.run)";
    assert_is(
        &attempt.fails(),
        (Timeout(TimeLimit::Run), RunTimeout),
        (2, Some(2)),
        message,
    );
}

#[test]
fn a_start_that_takes_too_long_is_a_timeout() {
    let mut attempt = Attempt::of(&["x = 1"]).variable("TEST_ENDLESS_ENVIRONMENT", "1");
    attempt.timeouts.startup = Some(jiff::SignedDuration::from_millis(200));
    let failure = attempt.fails();
    assert_eq!(failure.class, Timeout(TimeLimit::Startup));
    assert_eq!(failure.diagnostic.code, StartupTimeout);
}

#[test]
fn what_failed_earlier_in_silence_is_named() {
    let done = Attempt::of(&[
        "!echo start\n!sh -c 'exit 3'\nx = 1",
        "import threading\nt = threading.Thread(target=lambda: {}['lost'])\nt.start()\nt.join()",
        "import subprocess\np = subprocess.run(['sh', '-c', 'exit 5'])",
        "raise FileNotFoundError('model.bin')",
    ])
    .run();
    let noticed: Vec<String> = done.noticed().iter().map(|d| d.message.clone()).collect();
    assert!(noticed[0].contains("`sh -c 'exit 3'` exited 3"), "{noticed:?}");
    assert!(noticed[1].contains("`sh -c exit 5` exited 5"), "{noticed:?}");
    assert!(noticed[2].starts_with("the thread "), "{noticed:?}");
    let failure = done.failure();
    assert_eq!(failure.class, Notebook);
    assert_eq!(failure.diagnostic.hints.len(), 3);
    assert!(
        failure.diagnostic.hints[2].contains("KeyError: 'lost'"),
        "{failure:#?}"
    );
}

#[test]
fn what_failed_in_silence_long_ago_is_noticed_at_the_end() {
    let lost = "import threading\nt = threading.Thread(target=lambda: {}['lost'])\nt.start()\nt.join()";
    let mut cells = vec![lost];
    cells.extend(["print(1)"; 11]);
    let done = Attempt::of(&cells).run();
    done.passed();
    let noticed: Vec<String> = done.noticed().iter().map(|d| d.message.clone()).collect();
    assert_eq!(noticed.len(), 1, "{noticed:?}");
    assert!(noticed[0].contains("KeyError: 'lost'"), "{noticed:?}");
}

#[test]
fn a_notebook_that_cannot_be_read_is_refused() {
    let mut attempt = Attempt::of(&["x"]);
    attempt.plan.notebook = "examples/none.ipynb".into();
    assert_eq!(attempt.fails().class, Config);
    let mut attempt = Attempt::of(&["x"]);
    attempt.plan.notebook = "../outside.ipynb".into();
    assert_eq!(attempt.fails().class, Config);
}

#[test]
fn a_kernel_that_cannot_load_is_a_matter_of_the_environment() {
    let failure = Attempt::of(&["x"])
        .variable("TEST_PYTHON", "/usr/bin/false")
        .fails();
    assert_eq!((failure.class, failure.diagnostic.code), (Config, KernelUnusable));
}

#[test]
fn a_published_error_counts_also_when_the_kernel_answers_ok() {
    let source = "try:\n    1 / 0\nexcept Exception:\n    get_ipython().showtraceback()";
    let failure = Attempt::of(&[source]).fails();
    let message = "ZeroDivisionError: division by zero";
    assert_is(&failure, (Notebook, CellRaised), (1, Some(2)), message);
}

#[test]
fn no_byte_of_what_a_kernel_says_is_lost() {
    let name = "import os, sys\nname = os.fsdecode(b'caf\\xe9')\n";
    let done = Attempt::of(&[
        &format!("{name}print(name, 'loss: 9.9')"),
        &format!("{name}sys.stderr.write(name + ' warned\\n')"),
        &format!("{name}name"),
        &format!("{name}raise FileNotFoundError(name)"),
    ])
    .run();
    let printed = done.printed();
    assert!(printed.contains("caf\\xe9 loss: 9.9\n"), "{printed}");
    assert!(printed.contains("caf\\xe9 warned\n"), "{printed}");
    let failure = done.failure();
    assert_eq!(failure.class, FailureClass::Notebook);
    assert_eq!(failure.diagnostic.message, "FileNotFoundError: caf\\xe9");
    assert_eq!(
        done.ends(),
        [CellEnd::Ok, CellEnd::Ok, CellEnd::Ok, CellEnd::Raised]
    );
}

#[test]
fn a_message_that_cannot_be_read_is_a_failure_that_says_why() {
    let sending = "from ipykernel.kernelapp import IPKernelApp\napp = IPKernelApp.instance()\n";
    let rows = [
        // JSON that is nested more deeply than is read.
        "deep = {}\nfor _ in range(5000):\n    deep = {'a': deep}\nimport json, sys\nsys.setrecursionlimit(100000)\n\
         display({'application/json': deep}, raw=True)",
        // What is no message at all.
        "app.iopub_socket.send_multipart([b'x', b'<IDS|MSG>', b'0' * 64, b'{', b'{}', b'{}', b'{}'])",
    ];
    for row in rows {
        let done = Attempt::of(&[&format!("{sending}{row}"), "print('later')"]).run();
        let failure = done.failure();
        assert_eq!(
            (failure.class, failure.diagnostic.code),
            (FailureClass::Notebook, Code::MessageUnreadable),
            "{failure:?}"
        );
        assert!(!failure.diagnostic.causes.is_empty(), "{failure:?}");
        assert!(!done.printed().contains("later"));
    }
}

#[test]
fn of_a_long_message_both_ends_are_shown_and_colours_are_not() {
    let source =
        "raise ValueError('\\x1b[31mBEGIN\\x1b[0m ' + 'x' * 200_000 + ' END\\n\\x1b]0;title\\x07more')";
    let failure = Attempt::of(&[source]).fails();
    let message = &failure.diagnostic.message;
    assert!(message.starts_with("ValueError: BEGIN xxx"), "{message}");
    assert!(message.contains(" characters left out … "), "{message}");
    assert!(message.len() < 1000, "{message}");
    let last = failure.diagnostic.causes.last().unwrap_or(message);
    assert!(last.ends_with("more") && !last.contains('\u{1b}'), "{failure:#?}");

    let failure = Attempt::of(&["raise ValueError('BEGIN ' + 'x' * 3000 + ' END')"]).fails();
    let message = &failure.diagnostic.message;
    assert!(
        message.contains("BEGIN") && message.ends_with("x END"),
        "{message}"
    );
}

#[test]
fn an_assertion_that_says_nothing_is_shown_with_its_values() {
    let failure = Attempt::of(&["loss, limit = 3.25, 1\nassert loss < limit and len('x')"]).fails();
    let message = "AssertionError";
    assert_is(&failure, (Notebook, CellRaised), (1, Some(2)), message);
    assert_eq!(
        failure.diagnostic.causes,
        ["where limit = 1", "where loss = 3.25"]
    );
}

#[test]
fn what_a_clean_start_lacks_is_explained_where_it_is_missed() {
    for (source, says) in [
        (
            "import os\nopen(os.path.expanduser('~/data/x.csv'))",
            "`~` is an empty folder in a run",
        ),
        ("import os\nos.environ['MY_DB_URL']", "{name: …, env: MY_DB_URL}"),
    ] {
        let failure = Attempt::of(&[source]).fails();
        let hints = failure.diagnostic.hints.join("\n");
        assert!(hints.contains(says), "{failure:#?}");
    }
}
