//! A notebook without a cell that is tagged `parameters`.

use blueproof_core::diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::survey::At;

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let Some(first) = subject.notebook.code().next() else {
        return Vec::new();
    };
    let declared = &subject.loaded.blueprint.spec.parameters;
    // What a TrainJob asks for changes from profile to profile. Other notebooks may do without parameters.
    let needs_some = !declared.is_empty() || !subject.survey.jobs.is_empty();
    if subject.survey.has_parameters_cell || !needs_some {
        return Vec::new();
    }
    let at = At {
        cell: first.number,
        line: 1,
    };
    let place = subject.notebook.place(at.cell, at.line);
    let mut warning = Diagnostic::warning(Code::NoParametersTag, "no cell is tagged `parameters`").at(place);
    if !declared.is_empty() {
        warning = warning
            .because("the blueprint's parameters are put in at the top, where later cells can undo them");
    }
    vec![warning.hint(
        "put what changes from run to run (nodes, GPUs, samples) into one cell and tag it `parameters`",
    )]
}
