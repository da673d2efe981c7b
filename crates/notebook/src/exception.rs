//! An exception, as the kernel's probe describes it.

pub(crate) mod printed;
mod uncaught;

use serde::Deserialize;

pub(crate) use uncaught::{UNASKED_FUTURE, UNASKED_TASK, tells_of_failure, uncaught};

use crate::text::shown;

/// One exception of a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Exception {
    /// Its class.
    pub(crate) name: String,
    /// The module of its class.
    pub(crate) module: String,
    /// The names of its class and of every class above it.
    pub(crate) bases: Vec<String>,
    /// What it says.
    pub(crate) message: String,
    /// The class of what it raises itself when it is asked what it says: the kernel publishes that in its place.
    pub(crate) raises: Option<String>,
    /// What it is to the one before it in the chain.
    pub(crate) relation: Relation,
    /// Where it passed, the place where it was raised last.
    pub(crate) frames: Vec<Frame>,
    /// Where the source is wrong, for a syntax error.
    pub(crate) syntax: Option<SyntaxPlace>,
    /// What a process that failed left, for a CalledProcessError.
    pub(crate) process: Option<ProcessFacts>,
    /// The module that is missing, for a ModuleNotFoundError.
    pub(crate) missing: Option<String>,
    /// What the names in an assertion stood for, such as `loss = 3.2`, where it says nothing itself.
    pub(crate) values: Vec<String>,
    /// Its members, for a group.
    pub(crate) group: Vec<Exception>,
}

/// What an exception is to the one before it in the chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Relation {
    /// It is the one that left the cell.
    #[default]
    Head,
    /// The one before was raised from it.
    Cause,
    /// The one before came up while it was handled.
    Context,
    /// It is a member of a group.
    Member,
}

/// One place that an exception passed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Frame {
    /// The file, or whatever stands for one.
    pub(crate) file: String,
    /// The line, counted from one.
    pub(crate) line: u32,
    /// The text of the line, for code of cells and of the checkout.
    pub(crate) text: Option<String>,
    /// The number that the kernel gave the cell, for code of cells.
    pub(crate) count: Option<u64>,
    /// Whether it is a file of the checkout.
    pub(crate) own: bool,
    /// The function.
    pub(crate) function: String,
}

/// Where source is not Python.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct SyntaxPlace {
    /// The file, or whatever stands for one.
    pub(crate) file: Option<String>,
    /// The line, counted from one.
    pub(crate) line: Option<u32>,
    /// The text of the line.
    pub(crate) text: String,
    /// The number that the kernel gave the cell, for code of cells.
    pub(crate) count: Option<u64>,
    /// Whether it is a file of the checkout.
    pub(crate) own: bool,
}

/// What a process that failed left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ProcessFacts {
    /// Its command line.
    pub(crate) command: String,
    /// Its exit status; negative for a signal.
    pub(crate) status: i64,
    /// The end of its captured output.
    pub(crate) stdout: Option<String>,
    /// The end of its captured errors.
    pub(crate) stderr: Option<String>,
}

impl Exception {
    /// Returns class and message on one line.
    pub(crate) fn line(&self) -> String {
        let message = shown(&self.message);
        match message.trim().lines().next() {
            None => self.name.clone(),
            Some(first) => format!("{}: {}", self.name, printed::shortened(first)),
        }
    }

    /// Returns the lines of the message that come after the first.
    pub(crate) fn more_lines(&self) -> Vec<String> {
        let message = shown(&self.message);
        let lines = message
            .trim()
            .lines()
            .skip(1)
            .filter(|line| !line.trim().is_empty());
        lines.map(printed::shortened).collect()
    }

    /// Returns whether it is of this class or one below it.
    pub(crate) fn is(&self, class: &str) -> bool {
        self.bases.iter().any(|base| base == class)
    }
}
