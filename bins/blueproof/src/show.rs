//! How things look in a terminal.

pub(crate) mod audit;
pub(crate) mod backtest;
pub(crate) mod changes;
pub(crate) mod chart;
pub(crate) mod comparison;
pub(crate) mod deliveries;
pub(crate) mod description;
mod diagnostic;
pub(crate) mod estimate;
pub(crate) mod events;
pub(crate) mod explanation;
pub(crate) mod github;
pub(crate) mod looking;
pub(crate) mod pace;
pub(crate) mod progress;
pub(crate) mod queue;
pub(crate) mod quotas;
pub(crate) mod runs;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod since;
pub(crate) mod stages;
pub(crate) mod text;
pub(crate) mod transcript;
pub(crate) mod verdict;
pub(crate) mod whatif;

use std::io::Write as _;

use blueproof_diagnostic::Diagnostic;

use crate::exit::Problem;

pub(crate) use diagnostic::render;

/// Shows on stderr why a command could not do what it was asked.
pub(crate) fn problem(problem: &Problem) {
    problem.diagnostics.iter().for_each(aside);
}

/// Shows on stderr something that is not the answer.
pub(crate) fn aside(diagnostic: &Diagnostic) {
    // Where stderr is gone, or a file on a full disk, there is nobody to tell.
    let _ = write!(anstream::stderr(), "{}", render(diagnostic));
}
