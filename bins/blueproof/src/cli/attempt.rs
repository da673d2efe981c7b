//! Which attempt of a run is looked at: its last one, or an earlier one by its number.

use std::num::NonZeroU32;

use blueproof_core::{
    diagnostic::{Code, Diagnostic},
    domain::{Ending, Outcome, RunState, Verdict},
    view::{AttemptView, RunView},
};
use clap::Args;

use crate::exit::Problem;

/// Which attempt of a run is looked at.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct AttemptChoice {
    /// This attempt instead of the last one; the first one is 1
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<NonZeroU32>,
}

impl AttemptChoice {
    /// Returns a run as it stood after the attempt that is meant.
    pub(crate) fn of(self, run: RunView) -> Result<RunView, Problem> {
        let Some(number) = self.attempt.map(NonZeroU32::get) else {
            return Ok(run);
        };
        match run
            .attempts
            .iter()
            .position(|attempt| attempt.id.number == number)
        {
            Some(at) if at + 1 == run.attempts.len() => Ok(run),
            Some(at) => Ok(after(run, at)),
            None => Err(Problem::usage(unknown(&run, number))),
        }
    }
}

fn after(mut run: RunView, at: usize) -> RunView {
    run.attempts.truncate(at + 1);
    run.ended_at = run.attempts[at].ended_at;
    let (ending, failure) = match run.attempts[at]
        .outcome
        .as_ref()
        .map(|outcome: &Outcome| &outcome.verdict)
    {
        Some(Verdict::Passed) => (Ending::Passed, None),
        Some(Verdict::Failed(failure)) => (Ending::of(failure), Some((**failure).clone())),
        // Without an outcome it had to give its quota back.
        Some(Verdict::Stopped) | None => (Ending::Cancelled, None),
    };
    RunView {
        state: RunState::Ended(ending),
        failure,
        // It was chosen for the attempt that ended the run.
        last_pass: None,
        troubles: Vec::new(),
        ..run
    }
}

fn unknown(run: &RunView, number: u32) -> Diagnostic {
    let error = Diagnostic::error(Code::NoSuchRun, format!("{} has no attempt {number}", run.id));
    let known = |attempt: &AttemptView| attempt.id.number.to_string();
    match run.attempts.as_slice() {
        [] => error.hint("it has none yet"),
        [only] => error.hint(format!("it has attempt {} alone", known(only))),
        all => {
            let known: Vec<String> = all.iter().map(known).collect();
            error.hint(format!("its attempts are {}", known.join(", ")))
        }
    }
}
