//! Cells that are no Python.

use blueproof_core::diagnostic::{Code, Diagnostic};

use super::Subject;

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let broken = subject.survey.broken.iter();
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
        .collect()
}
