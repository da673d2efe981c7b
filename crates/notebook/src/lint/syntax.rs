//! Cells that are no Python, or too much of it.

use blueproof_diagnostic::{Code, Diagnostic};

use super::Subject;

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let broken = subject.analysis.broken.iter();
    let too_long = subject.analysis.too_long.iter().map(|at| {
        subject
            .warning(
                Code::StatementTooLong,
                *at,
                "this statement is too long to be looked at: it is data",
            )
            .hint("put the data into a file beside the notebook and read it")
    });
    broken
        .map(|at| {
            subject
                .warning(
                    Code::CellNotPython,
                    *at,
                    "this is not Python; the cell is left out of what is checked",
                )
                .hint("run the cell once, or begin it with the magic of its language, such as %%bash")
        })
        .chain(too_long)
        .collect()
}
