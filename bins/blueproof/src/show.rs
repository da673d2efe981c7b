//! How things look in a terminal.

mod diagnostic;
pub(crate) mod progress;
pub(crate) mod stages;
pub(crate) mod text;
pub(crate) mod verdict;

use crate::exit::Problem;

/// Shows on stderr why a command could not do what it was asked.
pub(crate) fn problem(problem: &Problem) {
    for diagnostic in &problem.diagnostics {
        anstream::eprint!("{}", diagnostic::render(diagnostic));
    }
}
