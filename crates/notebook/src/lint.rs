//! The hazards that `blueproof check` reports: what is allowed, and yet goes wrong sooner or later.
//!
//! Each rule has its own file. A rule says nothing where it cannot know: what a notebook computes is not guessed.

mod completion;
mod driver;
mod gpu;
mod installs;
mod loops;
mod outputs;
mod parameters;
pub(crate) mod placeholder;
mod syntax;
#[cfg(test)]
mod tests;
mod waits;

use blueproof_core::diagnostic::{Code, Diagnostic};

use crate::{
    blueprint::Loaded,
    ipynb::Notebook,
    survey::{At, Survey},
};

/// What rules look at.
struct Subject<'a> {
    loaded: &'a Loaded,
    notebook: &'a Notebook,
    survey: Survey,
}

impl Subject<'_> {
    /// Begins a warning about a line of a cell.
    fn warning(&self, code: Code, at: At, message: impl AsRef<str>) -> Diagnostic {
        Diagnostic::warning(code, format!("cell {}: {}", at.cell, message.as_ref()))
            .at(self.notebook.place(at.cell, at.line))
    }
}

/// Returns the hazards of a blueprint and its notebook, in the order of the cells.
///
/// Each names its cell and the line of the .ipynb file. All are warnings: the blueprint can be run.
pub fn check(loaded: &Loaded) -> Vec<Diagnostic> {
    let subject = Subject {
        loaded,
        notebook: loaded.notebook(),
        survey: Survey::of(loaded.notebook()),
    };
    let rules = [
        parameters::check,
        syntax::check,
        installs::in_cells,
        installs::unpinned,
        placeholder::check,
        gpu::check,
        driver::check,
        waits::for_running,
        waits::too_short,
        completion::check,
        loops::check,
        outputs::check,
    ];
    let mut found: Vec<Diagnostic> = rules.iter().flat_map(|rule| rule(&subject)).collect();
    found.sort_by_key(|diagnostic| diagnostic.place.as_ref().and_then(|place| place.line));
    found
}
