//! The hazards that `blueproof check` reports: what is allowed, and yet goes wrong sooner or later.
//!
//! Each rule has its own file. A rule says nothing where it cannot know: what a notebook computes is not guessed.

mod completion;
mod data;
mod driver;
mod gpu;
mod imports;
mod installs;
mod kernel;
mod loops;
mod machine;
mod makes;
mod names;
mod outputs;
pub(crate) mod parameters;
mod person;
pub(crate) mod placeholder;
mod secret;
mod syntax;
#[cfg(test)]
mod tests;
mod waits;

use std::path::{Path, PathBuf};

use blueproof_diagnostic::{Code, Diagnostic};

use crate::{
    analysis::{Analysis, At, Given, Missing},
    blueprint::Loaded,
    ipynb::Notebook,
};

/// What rules look at.
struct Subject<'a> {
    loaded: &'a Loaded,
    notebook: &'a Notebook,
    analysis: Analysis,
}

impl Subject<'_> {
    /// Begins a warning about a line of a cell.
    fn warning(&self, code: Code, at: At, message: impl AsRef<str>) -> Diagnostic {
        Diagnostic::warning(code, format!("cell {}: {}", at.cell, message.as_ref()))
            .at(self.notebook.place(at.cell, at.line))
    }

    /// Returns the folder that the notebook is run in.
    fn folder(&self) -> PathBuf {
        let notebook = self
            .loaded
            .folder()
            .join(&self.loaded.blueprint.spec.notebook.value.0);
        notebook.parent().map(Path::to_path_buf).unwrap_or_default()
    }

    /// Returns the names that are read without a value. The blueprint's parameters are given theirs.
    fn missing(&self) -> impl Iterator<Item = &Missing> {
        let parameters = &self.loaded.blueprint.spec.parameters;
        let all = self.analysis.missing.iter();
        all.filter(|missing| !parameters.contains_key(&missing.name))
    }

    /// Returns those among them that nothing gives a value.
    fn absent(&self) -> impl Iterator<Item = &Missing> {
        self.missing().filter(|missing| missing.given == Given::Never)
    }

    /// Returns whether a comment gives a name its value.
    fn is_disabled(&self, name: &str) -> bool {
        self.analysis.disabled.iter().any(|(_, known, _)| known == name)
    }
}

/// Returns the hazards of a blueprint and its notebook, in the order of the cells.
///
/// Each names its cell and the line of the .ipynb file. All are warnings: the blueprint can be run.
pub fn check(loaded: &Loaded) -> Vec<Diagnostic> {
    let subject = Subject {
        loaded,
        notebook: loaded.notebook(),
        analysis: Analysis::about(loaded.notebook(), loaded.blueprint.spec.parameters.keys()),
    };
    if loaded.notebook().foreign_kernel().is_some() {
        return [kernel::check, outputs::check]
            .iter()
            .flat_map(|rule| rule(&subject))
            .collect();
    }
    let rules = [
        parameters::check,
        syntax::check,
        installs::in_cells,
        installs::unpinned,
        placeholder::check,
        names::check,
        imports::check,
        data::check,
        secret::check,
        machine::check,
        person::asked,
        person::gpu_not_asked,
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
