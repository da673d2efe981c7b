//! A notebook without a cell that is tagged `parameters`, and parameters that it does not have.

use blueproof_diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::analysis::At;

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    untagged(subject).into_iter().chain(unread(subject)).collect()
}

fn untagged(subject: &Subject<'_>) -> Option<Diagnostic> {
    let first = subject.notebook.code().next()?;
    let declared = &subject.loaded.blueprint.spec.parameters;
    // What a TrainJob asks for changes from profile to profile. Other notebooks may do without parameters.
    let needs_some = !declared.is_empty() || !subject.analysis.jobs.is_empty();
    if subject.analysis.has_parameters_cell || !needs_some {
        return None;
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
    Some(warning.hint(
        "put what changes from run to run (nodes, GPUs, samples) into one cell and tag it `parameters`",
    ))
}

fn unread(subject: &Subject<'_>) -> Option<Diagnostic> {
    let declared = &subject.loaded.blueprint.spec.parameters;
    let reads = &subject.analysis.reads;
    // What a later cell gives a value to is undone rather than unknown.
    let is_unread = |name: &&String| reads.leave_out(name) && !reads.bind(name);
    let names: Vec<String> = declared.keys().filter(is_unread).cloned().collect();
    let place = subject.loaded.place_of(&["spec", "parameters", names.first()?]);
    Some(without_effect(&names)?.at(place))
}

/// Says that values were put into the notebook that nothing reads.
pub(crate) fn without_effect(unread: &[String]) -> Option<Diagnostic> {
    if unread.is_empty() {
        return None;
    }
    let message = format!(
        "no cell reads the parameters {}: their values change nothing",
        unread.join(", ")
    );
    let warning = Diagnostic::warning(Code::ParameterUnused, message);
    Some(warning.hint(
        "give them the names that the cell tagged `parameters` has, or take them out of spec.parameters",
    ))
}
