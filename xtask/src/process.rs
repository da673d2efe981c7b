//! Other programs: what is called, and how it ended.

use std::{
    fmt,
    io::{BufRead as _, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
};

use anyhow::{Context, Result};

/// A program to run, with its arguments one by one: no shell sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invocation {
    /// The program.
    program: PathBuf,
    /// What it is told.
    arguments: Vec<String>,
    /// Environment variables that it has beyond ours.
    environment: Vec<(String, String)>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With exit status 0.
    Well,
    /// In any other way.
    Badly,
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Self {
        if status.success() {
            Ended::Well
        } else {
            Ended::Badly
        }
    }
}

impl Invocation {
    /// Describes a call of `program`; nothing runs yet.
    pub(crate) fn of<I>(program: impl Into<PathBuf>, arguments: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
        }
    }

    /// Describes a call of cargo.
    pub(crate) fn cargo<I>(arguments: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        Self::of("cargo", arguments)
    }

    /// Adds arguments behind those that there are.
    pub(crate) fn with<I>(mut self, arguments: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it in `folder`, hands each line of its standard output to `each_line` as it comes, and waits for its end.
    /// Its standard error is ours.
    pub(crate) fn run(&self, folder: &Path, mut each_line: impl FnMut(&str)) -> Result<Ended> {
        let mut child = self
            .command(folder)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("could not start `{self}`"))?;
        let output = child.stdout.take().expect("standard output was asked for");
        for line in BufReader::new(output).split(b'\n') {
            let line = line.with_context(|| format!("could not read what `{self}` prints"))?;
            each_line(&String::from_utf8_lossy(&line));
        }
        let status = child
            .wait()
            .with_context(|| format!("could not wait for `{self}`"))?;
        Ok(Ended::from(status))
    }

    /// Runs it in `folder`, shows its standard output, and waits for its end.
    pub(crate) fn show(&self, folder: &Path) -> Result<Ended> {
        self.run(folder, print_line)
    }

    /// Runs it in `folder` with our standard output, so that one that knows a terminal finds it, and waits for its end.
    pub(crate) fn watch(&self, folder: &Path) -> Result<Ended> {
        let status = self
            .command(folder)
            .status()
            .with_context(|| format!("could not start `{self}`"))?;
        Ok(Ended::from(status))
    }

    /// Runs it in `folder` with our standard input and output, for a program that is talked to, and waits for its end.
    pub(crate) fn talk(&self, folder: &Path) -> Result<Ended> {
        let status = self.command(folder).stdin(Stdio::inherit()).status();
        Ok(Ended::from(
            status.with_context(|| format!("could not start `{self}`"))?,
        ))
    }

    /// Runs it in `folder` without showing anything, and returns its standard output if it ended well. `None` is also a
    /// program that is not there.
    pub(crate) fn ask(&self, folder: &Path) -> Option<String> {
        let output = self.command(folder).stderr(Stdio::null()).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Returns it as the standard library starts it, in `folder`, with nothing to read.
    pub(crate) fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(folder)
            .stdin(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Prints a line. Unlike `println!` it does not panic when nobody reads any more.
pub(crate) fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever closed our output has seen enough; the exit status still says how it went.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

impl fmt::Display for Invocation {
    /// Writes what a person would type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}={} ", quoted(value))?;
        }
        write!(f, "{}", quoted(&self.program.to_string_lossy()))?;
        self.arguments
            .iter()
            .try_for_each(|argument| write!(f, " {}", quoted(argument)))
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invocation_reads_as_what_a_person_would_type() {
        let invocation = Invocation::cargo(["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(
            invocation.to_string(),
            "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps"
        );
        assert_eq!(Invocation::of("it's", [""]).to_string(), r"'it'\''s' ''");
    }

    #[test]
    fn lines_are_handed_on_and_a_failure_is_told_from_a_success() {
        let mut lines = Vec::new();
        let ended = Invocation::cargo(["--version"]).run(Path::new("."), |line| lines.push(line.to_owned()));
        assert_eq!(ended.expect("cargo is there"), Ended::Well);
        assert!(lines[0].starts_with("cargo "));

        let ended = Invocation::of("false", [""; 0]).run(Path::new("."), |_| {});
        assert_eq!(ended.expect("every Unix has it"), Ended::Badly);
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_that_names_it() {
        let missing = Invocation::of("no-such-program-anywhere", ["--version"]);
        let error = missing.run(Path::new("."), |_| {}).expect_err("it cannot start");
        assert_eq!(
            error.to_string(),
            "could not start `no-such-program-anywhere --version`"
        );
        assert_eq!(missing.ask(Path::new(".")), None);
    }
}
