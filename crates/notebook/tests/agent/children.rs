//! What the processes that a notebook starts come to: named for what they are, with their own words.

use blueproof_core::domain::FailureClass::{Notebook, Workload};
use blueproof_diagnostic::Code::{CellRaised, WorkloadFailed};

use crate::support::{Attempt, Done};

fn noticed(done: &Done) -> Vec<String> {
    done.noticed().into_iter().map(|notice| notice.message).collect()
}

#[test]
fn a_program_that_never_ran_is_no_child_that_failed() {
    let done = Attempt::of(&[
        "import subprocess\ntry:\n    subprocess.run(['no-such-program'])\nexcept FileNotFoundError:\n    pass",
    ])
    .run();
    done.passed();
    assert_eq!(noticed(&done), [""; 0]);
}

#[test]
fn a_copy_of_the_kernels_process_is_called_one() {
    let source = "import os\npid = os.fork()\nif pid == 0:\n    os._exit(255)\nos.waitpid(pid, 0)";
    let done = Attempt::of(&[source]).run();
    done.passed();
    let noticed = noticed(&done);
    assert!(
        noticed[0].starts_with("a copy of the kernel's process (os.fork, pid "),
        "{noticed:?}"
    );
    assert!(
        noticed[0].ends_with(") exited 255, and its cell went on"),
        "{noticed:?}"
    );
}

#[test]
fn what_a_captured_child_said_is_quoted_when_something_else_is_raised() {
    let source = "import subprocess, sys\n\
                  r = subprocess.run([sys.executable, '-c', 'raise ValueError(\"no data\")'], capture_output=True)\n\
                  if r.returncode:\n    raise RuntimeError('training failed')";
    let failure = Attempt::of(&[source]).fails();
    assert_eq!((failure.class, failure.diagnostic.code), (Notebook, CellRaised));
    let hint = &failure.diagnostic.hints[0];
    assert!(
        hint.starts_with("earlier, in cell 1: the child process `python"),
        "{hint}"
    );
    assert!(hint.ends_with("exited 1: ValueError: no data"), "{hint}");
}

#[test]
fn the_worker_of_a_pool_that_died_is_named_with_its_signal() {
    for context in ["fork", "spawn", "forkserver"] {
        let source = format!(
            "import concurrent.futures as c, multiprocessing as m, subprocess, time\n\
             pool = c.ProcessPoolExecutor(3, mp_context=m.get_context('{context}'))\n\
             pool.submit(time.sleep, 0).result()\n\
             with pool:\n    future = pool.submit(time.sleep, 30)\n    \
             subprocess.run(['kill', '-9', str(next(iter(pool._processes)))])\n    future.result()"
        );
        let failure = Attempt::of(&[&source]).fails();
        assert_eq!(failure.class, Workload, "{context}: {failure:#?}");
        assert_eq!(failure.diagnostic.code, WorkloadFailed);
        let message = &failure.diagnostic.message;
        assert!(
            message.starts_with("the worker process "),
            "{context}: {failure:#?}"
        );
        assert!(
            message.ends_with(") was killed by signal 9 (SIGKILL)"),
            "{context}: {failure:#?}"
        );
        assert!(
            failure.diagnostic.causes[0].contains("BrokenProcessPool"),
            "{failure:#?}"
        );
        assert!(
            failure.diagnostic.hints[0].contains("lack of memory"),
            "{failure:#?}"
        );
    }
}

#[test]
fn a_worker_that_nobody_asks_about_is_noticed_and_one_that_was_ended_on_purpose_is_not() {
    let source = "import multiprocessing, os, signal, time\nm = multiprocessing.get_context('fork')\n\
                  lost = m.Process(target=lambda: os.kill(os.getpid(), signal.SIGSEGV), name='lost')\n\
                  ended = m.Process(target=time.sleep, args=(60,), name='ended')\n\
                  for p in (lost, ended): p.start()\nlost.join()\nended.terminate()\nended.join()";
    let done = Attempt::of(&[source]).run();
    done.passed();
    let noticed = noticed(&done);
    assert_eq!(noticed.len(), 1, "{noticed:?}");
    assert!(
        noticed[0].starts_with("the worker process lost (pid "),
        "{noticed:?}"
    );
    assert!(
        noticed[0].contains("was killed by signal 11 (SIGSEGV)"),
        "{noticed:?}"
    );
}

#[test]
fn a_background_child_that_fails_is_noticed_and_fails_nothing() {
    let done = Attempt::of(&[
        "import os, subprocess\nserver = subprocess.Popen(['sh', '-c', 'exit 7'])\n\
         ended = subprocess.Popen(['sleep', '60'])\nended.kill()\n\
         os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)",
        "server.wait()",
    ])
    .run();
    done.passed();
    assert_eq!(
        noticed(&done),
        [
            "the background process `sh -c exit 7`, for which nothing has waited, exited 7, and its cell went on"
        ]
    );
}

#[test]
fn the_place_in_a_file_of_the_checkout_is_named() {
    let attempt = Attempt::of(&[
        "import sys; sys.path.insert(0, 'lib')\nimport data",
        "x = 1\ndata.load()",
    ]);
    let module = "import json\n\ndef load():\n    return json.loads('{bad')\n";
    let failure = attempt.file("examples/lib/data.py", module).fails();
    assert_eq!(failure.cell.as_ref().unwrap().line, Some(2));
    let place = "in examples/lib/data.py, line 4, in load: return json.loads('{bad')";
    assert_eq!(failure.diagnostic.causes[0], place, "{failure:#?}");

    let broken = Attempt::of(&["import broken"]).file("examples/broken.py", "x = 1\ndef f(:\n    pass\n");
    let failure = broken.fails();
    assert_eq!(
        failure.diagnostic.causes,
        ["in examples/broken.py, line 2: def f(:"]
    );
    assert_eq!(failure.cell.unwrap().line, Some(1));
}

#[test]
fn a_cell_that_shuts_its_kernel_down_is_named() {
    let failure = Attempt::of(&[
        "x = 1",
        "get_ipython().kernel.do_shutdown(True)\nimport time; time.sleep(2)",
        "x = 1",
    ])
    .fails();
    assert_eq!(failure.cell.as_ref().unwrap().cell, 2, "{failure:#?}");
    assert_eq!(
        failure.diagnostic.message,
        "the cell ended its kernel by `do_shutdown()`"
    );
}

#[test]
fn what_fails_without_a_process_of_its_own_is_noticed_too() {
    let done = Attempt::of(&[
        "import os\nos.system('exit 4')\nos.system('true')",
        "%cd nosuchdir",
        "%cd .",
        "import asyncio, concurrent.futures as c\nasync def fails():\n    raise ValueError('of a task')\n\
         def throws(why):\n    raise KeyError(why)\n\
         task = asyncio.create_task(fails())\npool = c.ThreadPoolExecutor()\n\
         future, asked = pool.submit(throws, 'unasked'), pool.submit(throws, 'asked')\nasked.exception()",
        "pool.shutdown()",
    ])
    .run();
    done.passed();
    let noticed = noticed(&done);
    for said in [
        "the shell step `exit 4` (os.system) exited 4",
        "`%cd nosuchdir` did not change the folder",
        "a task ended with an exception that nothing asked for, and its cell went on: ValueError: of a task",
        "a future ended with an exception that nothing asked for, and its cell went on: KeyError: 'unasked'",
    ] {
        assert!(
            noticed.iter().any(|notice| notice.contains(said)),
            "{said}: {noticed:?}"
        );
    }
    assert_eq!(noticed.len(), 4, "{noticed:?}");
}
