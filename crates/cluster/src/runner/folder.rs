//! The folder of a runner: that it was begun, which process it is, how it ended, and what it said.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::{fs::OpenOptionsExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::ExitStatus,
};

use blueproof_core::{
    attempt::{ProcessName, UNFOLLOWED, read_regular, remove_folder},
    ports::{CallError, RunnerName, RunnerState},
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::files;

/// The most that is read of a file of ours.
const MOST_OF_NOTE: u64 = 64 << 10;

/// The folder of a runner, which need not be there.
#[derive(Debug)]
pub(super) struct RunnerFolder(PathBuf);

/// Whether a runner is begun now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    Now,
    /// It was before.
    Before,
}

/// How a runner ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Ended {
    Code(i32),
    Signal(i32),
    Unknown(String),
}

impl Ended {
    pub(super) fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unknown(status.to_string()),
        }
    }
}

impl From<Ended> for RunnerState {
    fn from(ended: Ended) -> Self {
        let message = match ended {
            // GitHub's runner ends with 0 however its job ended.
            Ended::Code(0) => return Self::Completed,
            Ended::Code(code) => format!("it ended with exit code {code}"),
            Ended::Signal(signal) => format!("it was ended by signal {signal}"),
            Ended::Unknown(how) => how,
        };
        Self::Failed { message }
    }
}

impl RunnerFolder {
    pub(super) fn new(root: &Path, name: &RunnerName) -> Self {
        Self(root.join(name.as_str()))
    }

    pub(super) fn root(&self) -> &Path {
        &self.0
    }

    /// Returns where its program begins.
    pub(super) fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    fn begun(&self) -> PathBuf {
        self.0.join("begun")
    }

    /// Notes that the runner is begun, once and for all: when this has returned, that outlives a power cut.
    pub(super) fn begin(&self) -> Result<Begin, CallError> {
        let made = files::make(&self.work()).and_then(|()| {
            let mut options = File::options();
            options.write(true).create_new(true).mode(0o600);
            let mut file = options.open(self.begun())?;
            file.write_all(b"a runner is started once\n")?;
            file.sync_all()?;
            File::open(&self.0)?.sync_all()
        });
        match made {
            Ok(()) => Ok(Begin::Now),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.is_begun() => {
                Ok(Begin::Before)
            }
            Err(error) => Err(self.cannot("begin a runner in", &error)),
        }
    }

    pub(super) fn is_begun(&self) -> bool {
        self.begun().is_file()
    }

    /// Opens the file for what its program says.
    pub(super) fn output(&self) -> Result<File, CallError> {
        let mut options = File::options();
        options
            .create(true)
            .append(true)
            .mode(0o600)
            .custom_flags(UNFOLLOWED);
        let opened = options.open(self.0.join("runner.log"));
        opened.map_err(|error| self.cannot("open the output in", &error))
    }

    pub(super) fn note_process(&self, process: &ProcessName) -> Result<(), CallError> {
        self.write("process.json", process)
    }

    /// Returns the process of its program, where it was begun and that is written down.
    pub(super) fn process(&self) -> Result<Option<ProcessName>, CallError> {
        self.read("process.json")
    }

    pub(super) fn note_end(&self, ended: &Ended) -> Result<(), CallError> {
        self.write("end.json", ended)
    }

    /// Returns how its program ended, where that is written down.
    pub(super) fn ended(&self) -> Result<Option<Ended>, CallError> {
        self.read("end.json")
    }

    pub(super) fn remove(&self) -> Result<(), CallError> {
        remove_folder(&self.0).map_err(|error| self.cannot("remove", &error))
    }

    fn write(&self, name: &str, note: &impl Serialize) -> Result<(), CallError> {
        let bytes = serde_json::to_vec(note).expect("plain data");
        let written = files::write_whole(&self.0.join(name), &bytes);
        written.map_err(|error| self.cannot("write in", &error))
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, CallError> {
        let bytes = match read_regular(&self.0.join(name), MOST_OF_NOTE) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.cannot("read in", &error)),
        };
        let read = serde_json::from_slice(&bytes).map(Some);
        read.map_err(|error| self.cannot("understand what is in", &error.into()))
    }

    pub(super) fn cannot(&self, doing: &str, error: &io::Error) -> CallError {
        let message = format!("could not {doing} {}", self.0.display());
        let diagnostic = Diagnostic::error(Code::RunnerFolder, message).caused_by(error);
        CallError::later(
            diagnostic.hint("see that the disk has room and that nobody else changes the folder"),
        )
    }

    /// Says that it is a runner of another machine or container, which no signal reaches.
    pub(super) fn elsewhere(&self) -> CallError {
        let message = "the runner is on another machine, or in another container";
        let diagnostic = Diagnostic::error(Code::RunnerFolder, message);
        CallError::later(
            diagnostic
                .at(SourceLocation::file(self.0.display().to_string()))
                .hint("do the same where it was started"),
        )
    }
}
