//! A home of somebody who types commands, and what the program answers.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// A home with a store, and with nothing of whoever runs the tests but how packages are found.
#[derive(Debug)]
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

/// What a process answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// `None` is the end by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path().join("data/blueproof.db")
    }

    /// Returns the folder with what is kept of a run, whether it is there or not.
    pub(crate) fn run_folder(&self, run: &str) -> PathBuf {
        let runs = self.path().join("data/runs");
        let mut folders = fs::read_dir(&runs)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        let store = folders.find(|folder| folder.join(run).exists());
        store.unwrap_or(runs).join(run)
    }

    /// Returns a command of the program, typed in this home.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_blueproof"));
        command.args(arguments).current_dir(self.path());
        for variable in [
            "BLUEPROOF_CONFIG",
            "BLUEPROOF_PYTHON",
            "BLUEPROOF_LOCAL_CPU",
            "BLUEPROOF_LOCAL_MEMORY",
            "BLUEPROOF_LOCAL_SELF_APPROVE",
            "BLUEPROOF_LOCAL_APPROVERS",
            "GITHUB_ACTIONS",
            "NO_COLOR",
            "CLICOLOR_FORCE",
        ] {
            command.env_remove(variable);
        }
        command.env("HOME", self.path());
        for (variable, folder) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "share"),
            ("XDG_CACHE_HOME", "cache"),
        ] {
            command.env(variable, self.path().join(folder));
        }
        command.env("BLUEPROOF_STORE", self.store());
        command.env("BLUEPROOF_ENVIRONMENTS", environments());
        command.stdin(Stdio::null());
        command
    }

    /// Has the program do something, and waits for its end.
    pub(crate) fn blueproof(&self, arguments: &[&str]) -> Answer {
        self.start(arguments).end()
    }

    /// Returns the newest run as a program reads it.
    pub(crate) fn last(&self) -> Value {
        self.blueproof(&["get", "run", "last", "-o", "json"]).json()
    }
}

impl Answer {
    /// Returns the answer as the one document that it is.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("answers are text");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// Returns a folder for Python environments that all tests share: they take long to make.
fn environments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-environments")
}
