//! Kueue's own code, as a process that answers a line for a line.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::scenario::{Answer, Scenario};

/// The process, and both ends of it.
pub(crate) struct Oracle {
    // In this order: the process ends once nobody asks it any more.
    questions: Questions,
    answers: Answers,
    process: Process,
}

/// The process. Whoever drops it waits for its end.
pub(crate) struct Process(Child);

/// Where scenarios go in.
pub(crate) struct Questions(ChildStdin);

/// Where answers come out, in the same order.
pub(crate) struct Answers(BufReader<ChildStdout>);

impl Oracle {
    /// Starts it; it decides each scenario `repeat` times, and says so if the outcomes differ.
    pub(crate) fn start(program: &Path, repeat: u32) -> Result<Self> {
        let mut child = Command::new(program)
            .args(["-repeat", &repeat.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| {
                let program = program.display();
                format!("could not start the oracle `{program}`; `cargo xtask kueue-diff` builds it")
            })?;
        let questions = child.stdin.take().expect("it was asked for");
        let answers = child.stdout.take().expect("it was asked for");
        Ok(Self {
            questions: Questions(questions),
            answers: Answers(BufReader::new(answers)),
            process: Process(child),
        })
    }

    /// Takes it apart, so that one thread asks while another reads the answers.
    pub(crate) fn split(self) -> (Questions, Answers, Process) {
        (self.questions, self.answers, self.process)
    }

    /// Returns what Kueue makes of a scenario.
    pub(crate) fn ask(&mut self, scenario: &Scenario) -> Result<Answer> {
        self.questions.put(scenario)?;
        self.answers.next()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It ends by itself when its input does; whether it was content does not matter any more.
        let _ = self.0.wait();
    }
}

impl Questions {
    /// Sends a scenario.
    pub(crate) fn put(&mut self, scenario: &Scenario) -> Result<()> {
        let line = scenario.line() + "\n";
        self.0
            .write_all(line.as_bytes())
            .context("the oracle does not listen")
    }
}

impl Answers {
    /// Returns the next answer.
    pub(crate) fn next(&mut self) -> Result<Answer> {
        let mut line = String::new();
        let length = self
            .0
            .read_line(&mut line)
            .context("the oracle does not answer")?;
        if length == 0 {
            bail!("the oracle ended before it had answered");
        }
        serde_json::from_str(&line).with_context(|| format!("the oracle answered `{}`", line.trim_end()))
    }
}
