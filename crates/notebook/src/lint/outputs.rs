//! Outputs and execution counts of an earlier run, left in the file.

use blueproof_diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::analysis::At;

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let stale: Vec<u32> = subject
        .notebook
        .code()
        .filter(|cell| cell.is_stale())
        .map(|cell| cell.number)
        .collect();
    let Some(first) = stale.first() else {
        return Vec::new();
    };
    let at = At {
        cell: *first,
        line: 1,
    };
    let message = match stale.len() {
        1 => "it is committed with what an earlier run left".to_owned(),
        n => format!(
            "it and {} more cells are committed with what an earlier run left",
            n - 1
        ),
    };
    vec![subject.warning(Code::StoredOutputs, at, message).hint(format!(
        "jupyter nbconvert --clear-output --inplace {}",
        subject.notebook.file()
    ))]
}
