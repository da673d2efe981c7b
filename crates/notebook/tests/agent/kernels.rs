//! Notebooks in other languages than Python run in kernels of their own.

use std::{fs, time::Duration};

use blueproof_core::{
    attempt::RecordKind,
    domain::{FailureClass, TimeLimit},
};
use blueproof_diagnostic::Code;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{Attempt, Done, python};

/// A kernel of a small language. It knows no Python, and it is deaf to signals.
const ECHO: &str = r"
import os, signal, sys, time
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

class Echo(Kernel):
    implementation = banner = 'echo'
    implementation_version = '1'
    language_info = {'name': 'echo', 'mimetype': 'text/plain', 'file_extension': '.echo'}
    is_asked = False

    def pre_handler_hook(self):
        signal.signal(signal.SIGINT, lambda *_: self.say('signalled'))

    def post_handler_hook(self):
        pass

    def say(self, text):
        self.send_response(self.iopub_socket, 'stream', {'name': 'stdout', 'text': text + '\n'})

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **_):
        if silent or user_expressions:
            self.say('asked in another language')
        for line in code.splitlines():
            word, _, rest = line.partition(' ')
            if word == 'say':
                self.say(rest)
            elif word == 'environ':
                self.say(os.environ.get(rest, 'nothing'))
            elif word == 'detach':
                if os.fork() == 0:
                    os.setsid()
                    os.execve('/bin/sleep', ['sleep', '600'], {})
            elif word == 'wait':
                while not Echo.is_asked:
                    time.sleep(0.01)
                self.say('asked')
                return self.fail('Interrupted', '')
            elif word == 'answer':
                return {'status': 7 if rest == '7' else rest, 'execution_count': self.execution_count}
            elif word == 'die':
                os._exit(3)
            else:
                return self.fail('NoSuchWord', word)
        return {'status': 'ok', 'execution_count': self.execution_count, 'payload': [], 'user_expressions': {}}

    def fail(self, name, value):
        content = {'ename': name, 'evalue': value, 'traceback': [name + ': ' + value]}
        self.send_response(self.iopub_socket, 'error', content)
        return {'status': 'error', 'execution_count': self.execution_count, **content}

    async def interrupt_request(self, stream, ident, parent):
        Echo.is_asked = True
        self.session.send(stream, 'interrupt_reply', {'status': 'ok'}, parent, ident=ident)

IPKernelApp.launch_instance(kernel_class=Echo)
";

/// A folder for `JUPYTER_PATH` that has a kernelspec `echo`.
struct Jupyter(TempDir);

impl Jupyter {
    fn new(program: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("kernels/echo");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("echo.py"), ECHO).unwrap();
        let kernel = json!({
            "argv": [program, "{resource_dir}/echo.py", "-f", "{connection_file}"],
            "display_name": "Echo", "language": "echo", "interrupt_mode": "message",
            "env": {"WHERE": "below ${HOME}"},
        });
        fs::write(own.join("kernel.json"), kernel.to_string()).unwrap();
        Self(folder)
    }

    fn attempt(&self, cells: &[&str]) -> Attempt {
        Attempt::of(cells)
            .variable("JUPYTER_PATH", self.0.path().to_str().unwrap())
            .metadata(r#"{"kernelspec": {"name": "Echo", "display_name": "Echo 1", "language": "echo"}}"#)
    }

    fn run(&self, cells: &[&str]) -> Done {
        self.attempt(cells).run()
    }
}

#[test]
fn a_notebook_in_another_language_runs_in_its_own_kernel() {
    let echo = Jupyter::new("python");
    // What is a comment, an installation or nothing at all in Python is none of it here.
    for cell in ["# no comment", "!pip install ipykernel"] {
        assert_eq!(
            echo.run(&[cell]).failure().diagnostic.code,
            Code::CellRaised,
            "{cell}"
        );
    }
    let done = echo.run(&["say first", "environ WHERE\ndetach"]);
    done.passed();
    let printed = done.printed();
    assert!(
        printed.starts_with("first\nbelow ") && printed.contains("home"),
        "{printed}"
    );
    assert_eq!(printed.lines().count(), 2, "nothing of ours was asked: {printed}");
    assert_eq!(done.notebook()["cells"][0]["outputs"][0]["text"], "first\n");
}

#[test]
fn an_error_of_another_language_is_the_verdict_in_its_own_words() {
    let failure = Jupyter::new("python").attempt(&["say x", "shout y"]).fails();
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Notebook, Code::CellRaised)
    );
    assert_eq!(failure.diagnostic.message, "NoSuchWord: shout");
    assert_eq!(failure.cell.unwrap().cell, 2);
    for (cell, status) in [("answer aborted", "`aborted`"), ("answer 7", "`7`")] {
        let message = Jupyter::new("python").attempt(&[cell]).fails().diagnostic.message;
        assert!(message.contains(&format!("it answered {status}")), "{message}");
    }
    let failure = Jupyter::new("python").attempt(&["die"]).fails();
    assert_eq!(failure.diagnostic.code, Code::KernelEnded);
}

#[test]
fn a_kernel_that_wants_messages_is_interrupted_by_one_and_gets_no_signal() {
    let done = Jupyter::new("python")
        .attempt(&["say here\nwait"])
        .cell_within(Duration::from_secs(1))
        .run();
    assert_eq!(done.failure().class, FailureClass::Timeout(TimeLimit::Cell));
    assert_eq!(done.printed(), "here\nasked\n");
}

#[test]
fn a_kernelspec_whose_program_is_not_there_is_refused_before_anything_starts() {
    let done = Jupyter::new("/nowhere/echo").run(&["say x"]);
    let failure = done.failure();
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Config, Code::KernelSpecUnusable)
    );
    assert!(
        failure.diagnostic.message.contains("`/nowhere/echo`"),
        "{failure:?}"
    );
    let started = |kind: &RecordKind| matches!(kind, RecordKind::KernelReady { .. });
    assert!(!done.records.iter().any(|record| started(&record.kind)));
}

#[test]
fn a_kernel_that_does_not_answer_in_time_is_told_with_what_the_environment_took() {
    let mute = Jupyter::new("python");
    let program = mute.0.path().join("kernels/echo/echo.py");
    fs::write(program, "import time\ntime.sleep(600)").unwrap();
    let mut attempt = mute.attempt(&["say x"]);
    attempt.timeouts.startup = Some(jiff::SignedDuration::from_secs(4));
    let failure = attempt.fails();
    assert_eq!(failure.class, FailureClass::Timeout(TimeLimit::Startup));
    let diagnostic = failure.diagnostic;
    assert_eq!(
        diagnostic.message,
        "the kernel had not answered within 4s (timeouts.startup)"
    );
    let share = diagnostic.causes[0].strip_prefix("making the environment took ");
    let share = share.and_then(|share| share.strip_suffix(" of it")).unwrap();
    assert_eq!(share.split(' ').count(), 2, "a figure and its unit: {share}");
}

#[test]
fn parameters_are_refused_where_they_cannot_be_put_in() {
    let mut attempt = Jupyter::new("python").attempt(&["say x"]);
    attempt.plan.parameters.insert("n".into(), 3.into());
    let failure = attempt.fails();
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Config, Code::ParametersForeign)
    );
}

#[test]
fn a_python_kernelspec_of_any_name_means_the_environments_own_python() {
    let mut attempt = Attempt::of(&["import sys\nprint(sys.executable)"]);
    attempt =
        attempt.metadata(r#"{"kernelspec": {"name": "mine", "display_name": "Mine", "language": "python"}}"#);
    let done = attempt.run();
    done.passed();
    assert_eq!(done.printed().trim(), python().to_str().unwrap());
}

#[test]
fn a_parameter_whose_name_is_more_than_a_name_is_refused() {
    for name in ["a=print('injected')\nb", "a b", "1a", "", "a;b"] {
        let mut attempt = Attempt::of(&["print(1)"]);
        attempt.plan.parameters.insert(name.into(), 3.into());
        let failure = attempt.fails();
        assert_eq!(
            (failure.class, failure.diagnostic.code),
            (FailureClass::Config, Code::ParameterValue),
            "{name:?}"
        );
    }
}
