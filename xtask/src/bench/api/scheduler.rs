//! The scheduler that is asked, in a process of its own.

use std::{
    io::{BufRead as _, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread,
};

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::memory::Memory;
use crate::{process::Invocation, workspace::Workspace};

/// A scheduler that serves on a loopback address and on a socket; it ends with this.
pub(super) struct Scheduler {
    child: Child,
    /// The command that asks it, on the socket.
    client: Invocation,
    folder: PathBuf,
    /// The loopback address.
    pub(super) address: String,
    /// What a request on that address has to bring.
    pub(super) token: String,
}

impl Scheduler {
    /// Starts one on a store, and returns once it leads. Its home is `folder`.
    pub(super) fn start(workspace: &Workspace, folder: &Path, store: &Path) -> Result<Self> {
        let release = workspace.target.join("release");
        let environments = workspace.target.join("bench/environments");
        let program = |arguments: &[&str]| {
            Invocation::of(release.join("blueproof-scheduler"), arguments.iter().copied())
                .env("HOME", &shown(folder))
                .env("XDG_CONFIG_HOME", &shown(&folder.join("config")))
        };
        let create = program(&["token", "create", "bench", "--role", "read"]);
        let token = create.ask(folder).with_context(|| format!("`{create}` failed"))?;
        let socket = format!("unix:{}", shown(&folder.join("scheduler.sock")));
        let serve = program(&[
            "serve",
            "--store",
            &shown(store),
            "--environments",
            &shown(&environments),
            "--listen",
            &format!("{socket},127.0.0.1:0"),
            "--self-approve",
            "true",
            "--log-format",
            "json",
        ]);
        let mut command = serve.command(folder);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("could not start `{serve}`"))?;
        let log = child.stderr.take().expect("it was asked for");
        let client = Invocation::of(release.join("blueproof"), ["--server", &socket]);
        let mut scheduler = Self {
            child,
            client: client.env("HOME", &shown(folder)),
            folder: folder.into(),
            address: String::new(),
            token: token.trim().into(),
        };
        scheduler.address = until_it_leads(log).with_context(|| format!("`{serve}` does not lead"))?;
        Ok(scheduler)
    }

    /// Asks for a run of a blueprint, and returns its id.
    pub(super) fn run(&self, blueprint: &Path) -> Result<String> {
        let answer = self.ask(&["run", &shown(blueprint), "--detach"])?;
        let mut words = answer.split_whitespace();
        let run = words.find(|word| word.starts_with("r-"));
        Ok(run.with_context(|| format!("no run in: {answer}"))?.to_owned())
    }

    /// Ends a run, and waits until it has ended.
    pub(super) fn cancel(&self, run: &str) -> Result<()> {
        self.ask(&["cancel", run])?;
        // A run that was cancelled did not pass, so that the exit code is no success.
        let wait = self
            .client
            .clone()
            .with(["wait", run, "--quiet", "--timeout", "1m"]);
        let _ = wait.ask(&self.folder);
        Ok(())
    }

    /// Returns what it holds now.
    pub(super) fn memory(&self) -> Result<Memory> {
        Memory::of_process(self.child.id())
    }

    fn ask(&self, arguments: &[&str]) -> Result<String> {
        let asked = self.client.clone().with(arguments.iter().copied());
        asked
            .ask(&self.folder)
            .with_context(|| format!("`{asked}` failed"))
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the loopback address once the log says that the scheduler leads. What it says after that is read and dropped.
fn until_it_leads(log: impl Read + Send + 'static) -> Result<String> {
    let (mut lines, mut address, mut said) = (BufReader::new(log).lines(), None, String::new());
    loop {
        let Some(line) = lines.next() else {
            anyhow::bail!("it has ended: {said}");
        };
        let line = line.context("its log is no text")?;
        let entry: Value = serde_json::from_str(&line).unwrap_or_default();
        match (entry["message"].as_str(), entry["address"].as_str()) {
            (Some("listening"), Some(named)) => {
                address = named.strip_prefix("http://").map(str::to_owned).or(address);
            }
            (Some("leads"), _) => break,
            _ => said += &line,
        }
    }
    thread::spawn(move || lines.for_each(drop));
    address.context("it listens on no address")
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_that_leads_says_where_it_listens() {
        let log = concat!(
            r#"{"message":"listening","address":"unix:/s.sock"}"#,
            "\n",
            r#"{"message":"listening","address":"http://127.0.0.1:9"}"#,
            "\n",
            r#"{"message":"leads"}"#,
            "\n",
        );
        assert_eq!(until_it_leads(log.as_bytes()).expect("it leads"), "127.0.0.1:9");
        let error = until_it_leads(&b"no store\n"[..]).expect_err("it has ended");
        assert!(error.to_string().contains("no store"), "{error}");
    }
}
