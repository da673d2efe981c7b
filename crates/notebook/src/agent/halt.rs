//! Where an attempt goes no further: why, and what its outcome is then.

use std::{io, path::Path};

use blueproof_core::{
    attempt::{AttemptLayout, AttemptSpec, Disturbance, read_regular},
    domain::{Failure, FailureClass, Outcome, Verdict},
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};

use crate::{disk, plan::Plan};

/// Why an attempt goes no further.
pub(super) enum Halt {
    /// It failed.
    Failed(Box<Failure>),
    /// Somebody asked for it.
    Stopped,
}

/// What a step of an attempt comes to.
pub(super) type Step<T> = Result<T, Halt>;

/// Reads what is to be done.
pub(super) fn read_spec(layout: &AttemptLayout) -> Result<(AttemptSpec, Plan), Box<Failure>> {
    let unreadable = |error: &dyn std::error::Error| {
        let place = SourceLocation::file(layout.spec().display().to_string());
        let message = "could not read what is to be done";
        let diagnostic = Diagnostic::error(Code::AttemptUnreadable, message)
            .at(place)
            .caused_by(error);
        failure(FailureClass::Config, diagnostic)
    };
    let text = read_regular(&layout.spec(), AttemptSpec::LONGEST).map_err(|error| unreadable(&error))?;
    let mut spec: AttemptSpec = serde_json::from_slice(&text).map_err(|error| unreadable(&error))?;
    let plan = serde_json::from_value(spec.work.take()).map_err(|error| unreadable(&error))?;
    Ok((spec, plan))
}

/// Refuses a notebook.
pub(super) fn unreadable(notebook: &Path, problems: Vec<Diagnostic>) -> Halt {
    let mut diagnostic = Diagnostic::error(Code::NotebookUnreadable, "the notebook cannot be run")
        .at(SourceLocation::file(notebook.display().to_string()));
    // Their hints name the working copy, which is gone by the time that they are read.
    for problem in problems {
        diagnostic.causes.push(problem.message);
        diagnostic.causes.extend(problem.causes);
    }
    config(diagnostic)
}

/// Says that files could not be written.
pub(super) fn halt_disk(error: &io::Error) -> Halt {
    Halt::Failed(disk::disk_failure(error))
}

/// Refuses what cannot be started as it is written.
pub(super) fn config(diagnostic: Diagnostic) -> Halt {
    Halt::Failed(failure(FailureClass::Config, diagnostic))
}

/// Says what failed outside of cells.
pub(super) fn failure(class: FailureClass, diagnostic: Diagnostic) -> Box<Failure> {
    Box::new(Failure::outside_cells(class, diagnostic))
}

/// Says that somebody else wrote where only the agent writes: a failure of the notebook's own.
pub(super) fn tampered(disturbance: Disturbance) -> Failure {
    let what = match disturbance {
        Disturbance::Appended => "something was added to",
        Disturbance::CutOff => "something was cut off",
        Disturbance::Changed => "something was changed in",
        Disturbance::Replaced => "something else was put in the place of",
    };
    let message = format!("{what} the attempt's log, where only blueproof writes");
    let diagnostic = Diagnostic::error(Code::AttemptTampered, message)
        .hint("a notebook has no business outside of its own folder: look for a cell that writes to `..`");
    Failure::outside_cells(FailureClass::Notebook, diagnostic)
}

/// Returns the outcome of an attempt that went no further.
pub(super) fn halted(halt: Halt) -> Outcome {
    match halt {
        Halt::Failed(failure) => failed(failure),
        Halt::Stopped => outcome(Verdict::Stopped),
    }
}

/// Returns the outcome of an attempt of which nothing ran.
pub(super) fn failed(failure: Box<Failure>) -> Outcome {
    outcome(Verdict::Failed(failure))
}

fn outcome(verdict: Verdict) -> Outcome {
    Outcome {
        verdict,
        usage: None,
        metrics: Default::default(),
        notices: Vec::new(),
    }
}
