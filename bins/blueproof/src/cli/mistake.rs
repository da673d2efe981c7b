//! What is said about a command that cannot be understood.

use blueproof_core::diagnostic::{Code, Diagnostic};
use clap::error::ErrorKind;

use crate::exit::Problem;

/// Returns what is wrong with what was typed, in the way of every other error. Help and the version are no mistakes:
/// they are printed, and the process ends.
pub(super) fn problem(error: &clap::Error) -> Problem {
    let asked_for = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if asked_for {
        error.exit();
    }
    Problem::usage(diagnostic(&error.render().to_string()))
}

/// Makes a diagnostic of clap's text: a paragraph that begins with `error:`, tips, the usage, and a farewell.
fn diagnostic(text: &str) -> Diagnostic {
    let mut paragraphs = text.split("\n\n");
    let mut lines = paragraphs.next().unwrap_or_default().lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    let message = first
        .strip_prefix("error: ")
        .unwrap_or(first)
        .trim_end_matches(':');
    let mut diagnostic = Diagnostic::error(Code::Usage, message);
    for line in lines {
        let values = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        diagnostic = match values {
            Some(values) => diagnostic.hint(values),
            None => diagnostic.because(line),
        };
    }
    for paragraph in paragraphs.map(str::trim) {
        if let Some(tips) = paragraph.strip_prefix("tip: ") {
            diagnostic = tips
                .split("tip: ")
                .fold(diagnostic, |said, tip| said.hint(tip.trim()));
        } else if let Some(usage) = paragraph.strip_prefix("Usage: ") {
            diagnostic = diagnostic.hint(format!("it is used as `{}`", usage.trim()));
        }
    }
    diagnostic.hint("`--help` behind a command shows all that it takes")
}
