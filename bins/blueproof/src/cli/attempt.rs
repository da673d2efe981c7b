//! Which attempt of a run is looked at: its last one, or an earlier one by its number.

use std::num::NonZeroU32;

use blueproof_core::{
    domain::{Ending, Outcome, RunState, Verdict},
    view::{AttemptView, RunView},
};
use blueproof_diagnostic::{Code, Diagnostic};
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
    let attempt = &run.attempts[at];
    let verdict = attempt.outcome.as_ref().map(|outcome: &Outcome| &outcome.verdict);
    let (state, failure) = match verdict {
        Some(Verdict::Passed) => (RunState::Ended(Ending::Passed), None),
        Some(Verdict::Failed(failure)) => (RunState::Ended(Ending::of(failure)), Some((**failure).clone())),
        // Whoever had to give its quota back waits again, and nobody cancelled it.
        Some(Verdict::Stopped) | None if attempt.eviction.is_some() => (RunState::Queued, None),
        Some(Verdict::Stopped) | None => (RunState::Ended(Ending::Cancelled), None),
    };
    let ended_at = attempt.ended_at.filter(|_| matches!(state, RunState::Ended(_)));
    RunView {
        state,
        ended_at,
        failure,
        // It was chosen for the attempt that ended the run.
        last_pass: None,
        failing_calls: Vec::new(),
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

#[cfg(test)]
mod tests {
    use blueproof_core::{testing::outcome, view::Eviction};
    use blueproof_queue::EvictionReason;

    use super::*;
    use crate::show::samples;

    #[test]
    fn a_run_after_an_attempt_that_was_evicted_waits_again_and_was_cancelled_by_nobody() {
        let views = samples::views();
        let run = views
            .into_iter()
            .find(|view| view.attempts.len() == 1)
            .expect("one of them ran");
        let eviction = Eviction {
            reason: EvictionReason::InCohortReclamation.into(),
            message: None,
            by: None,
            at: samples::at(1),
        };
        for (eviction, state) in [
            (Some(eviction), RunState::Queued),
            (None, RunState::Ended(Ending::Cancelled)),
        ] {
            for stopped in [None, Some(outcome(Verdict::Stopped))] {
                let mut run = run.clone();
                let mut again = run.attempts[0].clone();
                again.id = run.id.attempt(2);
                run.attempts[0].eviction = eviction.clone();
                run.attempts[0].outcome = stopped;
                run.attempts[0].ended_at = Some(samples::at(2));
                run.attempts.push(again);

                let first = AttemptChoice {
                    attempt: NonZeroU32::new(1),
                };
                let after = first.of(run).expect("it has two");

                assert_eq!(after.state, state);
                assert_eq!(after.ended_at.is_some(), state != RunState::Queued);
            }
        }
    }
}
