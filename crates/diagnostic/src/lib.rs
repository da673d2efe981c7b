//! What people are told when something is wrong: what, where, why, and what to do next, with a code.
//!
//! The same shape serves a mistake in a file, a failed notebook and a broken machine; whoever shows it (terminal,
//! JSON, report, check run) renders it in its own way. [`yaml`] reads what people write so that each mistake becomes one of
//! these, at its place; [`amount`] and [`name`] are what Kubernetes' documents are full of. [`character`] tells which letters are not what
//! they seem.
//!
//! Nothing of runs, queues or clusters is known here.

pub mod amount;
pub mod character;
mod code;
mod list;
pub mod name;
pub mod yaml;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use code::Code;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// Which kind of thing is wrong; `blueproof explain CODE` says more.
    pub code: Code,
    /// Whether it stops what was asked.
    pub severity: Severity,
    /// What is wrong, in one line: lower case, no full stop.
    pub message: String,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<SourceLocation>,
    /// Why, from the nearest cause to the root. Words of another side stand here as they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// What to do next, the likeliest first; commands can be pasted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

/// Whether a diagnostic stops what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Worth a look; nothing is stopped.
    Warning,
    /// What was asked cannot be done, or was not.
    Error,
}

/// A location in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SourceLocation {
    /// The file, or the object where there is no file.
    pub file: String,
    /// The line, counted from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column in characters, counted from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The text of that line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Diagnostic {
    /// Returns an error with nothing but its code and message.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message.into())
    }

    /// Returns a warning with nothing but its code and message.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message.into())
    }

    fn new(severity: Severity, code: Code, message: String) -> Self {
        Self {
            code,
            severity,
            message,
            place: None,
            causes: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// Says where.
    pub fn at(mut self, place: SourceLocation) -> Self {
        self.place = Some(place);
        self
    }

    /// Adds an error and all that it says of its own causes.
    pub fn caused_by(mut self, error: &dyn std::error::Error) -> Self {
        let mut next = Some(error);
        while let Some(cause) = next {
            self.causes.push(cause.to_string());
            next = cause.source();
        }
        self
    }

    /// Adds a cause in words.
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl SourceLocation {
    /// Returns the place that is a whole file.
    pub fn file(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line: None,
            column: None,
            source: None,
        }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let (Some(_), Some(column)) = (self.line, self.column) {
            write!(f, ":{column}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Diagnostic {
    /// Writes code and message on one line, for logs; with `{:#}` all of it, in the manner of rustc and without colours.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return write!(f, "{}: {}", self.code, self.message);
        }
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{word}[{}]: {}", self.code, self.message)?;
        if let Some(place) = &self.place {
            write!(f, "\n  --> {place}")?;
        }
        let causes = self.causes.iter().map(|cause| ("caused by", cause));
        let hints = self.hints.iter().map(|hint| ("hint", hint));
        causes
            .chain(hints)
            .try_for_each(|(label, note)| write!(f, "\n   = {label}: {note}"))
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_one_line_and_whoever_asks_gets_all() {
        let mut diagnostic = Diagnostic::warning(Code::FileMissing, "could not read `a.yaml`")
            .because("no such file")
            .hint("name a file");
        assert_eq!(diagnostic.to_string().lines().count(), 1);
        let code = diagnostic.code;
        let expected = format!(
            "warning[{code}]: could not read `a.yaml`\n   = caused by: no such file\n   = hint: name a file"
        );
        assert_eq!(format!("{diagnostic:#}"), expected);

        diagnostic = Diagnostic::error(code, "bad").at(SourceLocation::file("a.yaml"));
        assert_eq!(
            format!("{diagnostic:#}"),
            format!("error[{code}]: bad\n  --> a.yaml")
        );
    }
}
