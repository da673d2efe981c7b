//! How answers look: tables for people, documents for programs.
//!
//! Everything here is a pure function of what is to be shown, the time and the width, but for [`print()`].

mod document;
mod paint;
mod problem;
mod table;
mod time;

use std::io::{self, IsTerminal, Write};

use blueproof_diagnostic::{Code, Diagnostic};
use clap::ValueEnum;

use crate::exit::{Exit, Problem};

pub(crate) use blueproof_notebook::text::{block, line};
pub(crate) use document::{Document, Encoding, document_schema, encode, schema_of};
pub(crate) use paint::state;
pub(crate) use problem::print_problem;
pub(crate) use table::{Cell, Table, Width, shorten};
pub(crate) use time::{absolute, ago, clock, local};

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A JSON document; a stream is one document a line
    Json,
    /// A YAML document
    Yaml,
    /// A table with more columns
    Wide,
    /// Ids only, one a line
    Name,
}

/// How an answer is written that is no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// A JSON document
    Json,
    /// A YAML document
    Yaml,
}

impl From<DocumentFormat> for Encoding {
    fn from(format: DocumentFormat) -> Self {
        match format {
            DocumentFormat::Json => Encoding::Json,
            DocumentFormat::Yaml => Encoding::Yaml,
        }
    }
}

/// Writes an answer to stdout, without colour where none is wanted.
///
/// Nobody reading any more is an error with nothing to say: the command is over, and all is well.
pub(crate) fn print(answer: &str) -> Result<(), Problem> {
    let mut stdout = anstream::stdout().lock();
    let written = stdout.write_all(answer.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| unwritten(&error))
}

/// Returns what an answer comes to that could not be written.
pub(crate) fn unwritten(error: &io::Error) -> Problem {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Problem {
            diagnostics: Vec::new(),
            exit: Exit::Ok,
        };
    }
    let diagnostic = Diagnostic::error(Code::Unwritable, "the answer could not be written");
    Problem {
        diagnostics: vec![diagnostic.caused_by(error)],
        exit: Exit::Infrastructure,
    }
}

/// Returns a message in one line; what it lists, it lists between semicolons: `2 expectations do not hold: a; b`.
pub(crate) fn joined(diagnostic: &Diagnostic) -> String {
    let (head, items) = diagnostic.listed();
    let items: Vec<String> = items.into_iter().map(line).collect();
    format!("{} {}", line(head), items.join("; "))
        .trim_end()
        .to_owned()
}

/// Says something on stderr that is not the answer.
pub(crate) fn note(text: &str) {
    // Where stderr is gone there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Returns how wide lines on stdout may be.
pub(crate) fn width() -> Width {
    if !io::stdout().is_terminal() {
        return Width::Unlimited;
    }
    match terminal_size::terminal_size() {
        Some((terminal_size::Width(columns), _)) => Width::Columns(columns.into()),
        None => Width::Columns(80),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_lists_is_told_between_semicolons_in_one_line() {
        let joined = |message: &str| super::joined(&Diagnostic::error(Code::MetricOutOfBounds, message));
        assert_eq!(
            joined("2 do not hold:\n- a > 1\n- b\x1b"),
            "2 do not hold: a > 1; b\\u{1b}"
        );
        assert_eq!(joined("one\ntwo"), "one two");
        assert_eq!(joined("a - b"), "a - b");
    }
}
