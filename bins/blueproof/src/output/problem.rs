//! What programs are told of a command that could not do what it was asked.
//!
//! Whoever asks for JSON or YAML gets a document on standard output, whatever becomes of the command: its answer, or this.

use std::env;

use blueproof_diagnostic::Diagnostic;
use serde::Serialize;

use super::{Document, Encoding, encode, print};
use crate::exit::Problem;

/// Why there is no answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Failed<'a> {
    /// What the process ends with.
    exit_code: u8,
    /// What is wrong, where, why, and what to do.
    errors: &'a [Diagnostic],
}

/// Prints the problem as a document, where this process was asked for documents.
pub(crate) fn print_problem(problem: &Problem) {
    // Where nothing is said, nobody reads any more.
    let Some(encoding) = asked(env::args()).filter(|_| !problem.diagnostics.is_empty()) else {
        return;
    };
    let failed = Failed {
        exit_code: problem.exit as u8,
        errors: &problem.diagnostics,
    };
    // Standard error has said it already.
    let _ = encode(&Document::new("Error", failed), encoding).and_then(|text| print(&text));
}

/// Returns the encoding that `-o` asks for. What was typed is read as it stands: it may be just what cannot be understood.
fn asked(arguments: impl IntoIterator<Item = String>) -> Option<Encoding> {
    let mut arguments = arguments
        .into_iter()
        .skip(1)
        .take_while(|argument| argument != "--");
    while let Some(argument) = arguments.next() {
        let value = match argument.as_str() {
            "-o" | "--output" => arguments.next()?,
            attached => {
                let value = attached
                    .strip_prefix("--output=")
                    .or_else(|| attached.strip_prefix("-o"));
                let Some(value) = value else { continue };
                value.trim_start_matches('=').to_owned()
            }
        };
        match value.as_str() {
            "json" => return Some(Encoding::Json),
            "yaml" => return Some(Encoding::Yaml),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_documents_is_known_even_where_the_rest_cannot_be_understood() {
        let rows = [
            ("run x -o json", Some(Encoding::Json)),
            ("-ojson run x", Some(Encoding::Json)),
            ("get runs -o=yaml", Some(Encoding::Yaml)),
            ("nonsense --output yaml", Some(Encoding::Yaml)),
            ("wait --output=json r-1", Some(Encoding::Json)),
            ("get runs -o wide", None),
            ("run x", None),
            ("run x -o", None),
            ("run -- -o json", None),
        ];
        for (typed, expected) in rows {
            let arguments = ["blueproof"]
                .into_iter()
                .chain(typed.split(' '))
                .map(str::to_owned);
            assert_eq!(asked(arguments), expected, "{typed}");
        }
    }
}
