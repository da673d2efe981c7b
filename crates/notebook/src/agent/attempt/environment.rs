//! The attempt's environment: whether others use it, too, and whether it is still as it was when the cells have ended.

use std::thread;

use blueproof_core::{
    attempt::read_regular,
    domain::{Failure, FailureClass, Verdict as Judgement},
};
use blueproof_diagnostic::{Code, Diagnostic};

use super::Attempt;
use crate::{
    agent::{Prepared, halt::Step},
    environment::installs,
    ipynb::LARGEST_NOTEBOOK,
};

impl Attempt<'_> {
    /// Returns whether the attempt shall share its environment with nobody: where its notebook installs packages, and where an
    /// earlier attempt may have ended because the shared one was changed meanwhile.
    pub(super) fn needs_own_environment(&self) -> Step<bool> {
        // In a sandbox it can be read alone, and nobody can change it.
        if self.is_sandboxed() {
            return Ok(false);
        }
        if self.spec.attempt.number > 1 {
            return Ok(true);
        }
        let notebook = read_regular(&self.notebook_path()?, LARGEST_NOTEBOOK);
        // What cannot be read is told where it is needed.
        Ok(notebook.is_ok_and(|text| installs(&String::from_utf8_lossy(&text))))
    }

    /// Begins to look whether the shared environment is as it was. The kernel may end meanwhile.
    pub(super) fn look_at_environment(&mut self, prepared: &Prepared) {
        if self.has_own_environment {
            return;
        }
        let (environment, prepared) = (self.dependencies.environment.clone(), prepared.clone());
        self.environment_look = Some(thread::spawn(move || environment.is_as_prepared(&prepared)));
    }

    /// Returns whether the shared environment was changed while the notebook ran, as far as can be told.
    pub(super) fn is_environment_changed(&mut self, prepared: &Prepared) -> bool {
        if self.environment_look.is_none() {
            self.look_at_environment(prepared);
        }
        let look = self.environment_look.take();
        look.is_some_and(|look| !look.join().expect("it does not panic"))
    }
}

/// Returns the verdict where the shared environment was changed meanwhile: what the notebook came to says nothing of it.
pub(super) fn blame_environment(verdict: Judgement) -> Judgement {
    match verdict {
        Judgement::Stopped => Judgement::Stopped,
        Judgement::Passed => Judgement::Failed(changed(None)),
        Judgement::Failed(failure) => Judgement::Failed(changed(Some(&failure))),
    }
}

/// Says that the environment was changed while the notebook ran.
pub(super) fn changed(failure: Option<&Failure>) -> Box<Failure> {
    let message = "the packages of the environment were changed while the notebook ran";
    let mut diagnostic = Diagnostic::error(Code::EnvironmentChanged, message)
        .hint("the next attempt has a copy of its own: another run that installs packages cannot reach it")
        .hint("list what the notebook needs under spec.env.requirements, in the place of installing it by other programs");
    if let Some(failure) = failure {
        diagnostic = diagnostic.because(format!("the notebook: {}", failure.diagnostic.message));
    }
    Box::new(Failure::outside_cells(FailureClass::Infrastructure, diagnostic))
}
