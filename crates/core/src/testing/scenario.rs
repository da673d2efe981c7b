//! Stories for the scheduler that anyone can write: time, what happened, and everything that is to be done about it.
//!
//! ```text
//! # A push takes the approval back.
//! 00:00  policy cpu 1 approver ada
//! 00:00  run a nano-lm pr 12 head aaaa          =>
//! 00:01  approve r-1 by ada                     => reserve r-1.1
//! 00:05  push pr 12 head bbbb
//!        r-1 is reserved
//! ```
//!
//! A line without a time says what holds after the one before: `RUN is STATE`, `RUN waits: TEXT`, `RUN struggles: TEXT` or
//! `refused: TEXT`.
//! After each event the scheduler is checked; at the end everything is replayed, and must come out the same.

mod external;
mod parse;

use std::fmt::Write as _;

use blueproof_queue::objects::Admission;
use jiff::Timestamp;

use crate::{
    action::Action,
    domain::{Actor, RunId},
    event::Event,
    fact::Fact,
    policy::Policy,
    scheduler::{Replay, Scheduler},
    testing::samples::isolating,
    view::FailingCall,
};
pub use external::play_externally;
use parse::{Line, Step};

/// Plays a story.
///
/// # Errors
/// Returns the line that does not hold, with what was expected and what came out.
///
/// # Panics
/// When the scheduler breaks one of its own rules.
pub fn play(story: &str) -> Result<(), String> {
    let mut stage = Stage::new();
    for (number, text) in story.lines().enumerate() {
        let line = parse::line(text).map_err(|why| format!("line {}: {why}\n  {text}", number + 1))?;
        let played = line.map_or(Ok(()), |line| stage.play(line));
        played.map_err(|why| format!("line {}: {text}\n{why}", number + 1))?;
    }
    stage.replay()
}

/// A scheduler, and the log of it.
struct Stage {
    scheduler: Scheduler,
    facts: Vec<(Timestamp, Fact)>,
    /// Why the gate refused what was asked for last, if it did.
    refusal: Option<String>,
}

impl Stage {
    fn new() -> Self {
        let mut stage = Self {
            scheduler: Scheduler::new(Policy::local(Default::default())),
            facts: Vec::new(),
            refusal: None,
        };
        // Stories are about who approved what, and not about what a machine can do.
        stage.handle(Timestamp::UNIX_EPOCH, isolating());
        stage
    }

    fn play(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Happens { at, step, expected } => {
                let mut actions = Vec::new();
                for event in self.events(step)? {
                    actions.extend(self.handle(at, event));
                }
                compare(&expected, &describe(&actions))
            }
            Line::Is { run, state } => {
                let view = self
                    .scheduler
                    .view(run)
                    .ok_or_else(|| format!("  {run} is not known"))?;
                compare(&state, &view.state.to_string())
            }
            Line::Waits { run, reason } => {
                let why = self
                    .scheduler
                    .why(run)
                    .map_or("it does not wait".into(), |why| why.to_string());
                compare(&reason, &why)
            }
            Line::Refused { reason } => {
                compare(&reason, self.refusal.as_deref().unwrap_or("it is not refused"))
            }
            Line::Struggles { run, with } => {
                let view = self
                    .scheduler
                    .view(run)
                    .ok_or_else(|| format!("  {run} is not known"))?;
                let told = |trouble: &FailingCall| trouble.told(&format!("{:.0}", trouble.again_at));
                let failing_calls: Vec<_> = view.failing_calls.iter().map(told).collect();
                compare(&with, &failing_calls.join("; "))
            }
        }
    }

    fn handle(&mut self, at: Timestamp, event: Event) -> Vec<Action> {
        let step = self.scheduler.handle(at, event);
        self.refusal = step.refusal().map(|refused| refused.causes.join(": "));
        self.facts
            .extend(step.facts.into_iter().map(|fact| (step.at, fact)));
        self.scheduler.check();
        step.actions
    }

    /// Returns what comes in with a step.
    fn events(&self, step: Step) -> Result<Vec<Event>, String> {
        let event = match step {
            Step::Policy {
                policy,
                admission: Admission::External,
            } => return Ok(with_external_admission(policy)),
            Step::Policy { policy, .. } => Event::Configured { policy },
            Step::Event(event) => *event,
            Step::Approve { run, words } => {
                let request = self
                    .scheduler
                    .request(run)
                    .ok_or_else(|| format!("  {run} is not known"))?;
                Event::Approved {
                    approval: parse::approval_of(request, &words)?,
                }
            }
            Step::Report(run) => {
                let attempts = self.scheduler.view(run).map_or(0, |view| view.attempts.len());
                Event::Reported {
                    run,
                    attempts: u32::try_from(attempts).expect("few attempts"),
                }
            }
        };
        Ok(vec![event])
    }

    /// Applies the log to a new scheduler: the same state and the same work left over must come of it, with nothing decided.
    fn replay(self) -> Result<(), String> {
        let mut replay = Replay::new();
        for (at, fact) in &self.facts {
            replay.apply(*at, fact);
        }
        let again = replay.finish();
        again.check();
        let same = self.scheduler.runs().eq(again.runs())
            && self.scheduler.outstanding() == again.outstanding()
            && self.scheduler.metrics() == again.metrics();
        if same && again.decided() == 0 {
            Ok(())
        } else {
            Err("a replay comes out otherwise".into())
        }
    }
}

/// Returns what sets a policy, with a queue about which its cluster decides.
fn with_external_admission(policy: Box<Policy>) -> Vec<Event> {
    let mut objects = policy.default_objects();
    for queue in objects.cluster_queues.values_mut() {
        queue.admission = Admission::External;
    }
    let by = Actor::Local("admin".into());
    let applied = Event::QuotaApplied {
        objects: Box::new(objects),
        by,
    };
    vec![Event::Configured { policy }, applied]
}

/// Writes actions as stories name them: `reserve r-1.1, stop r-2.1 end`.
pub fn describe(actions: &[Action]) -> String {
    let mut text = String::new();
    for action in actions {
        if !text.is_empty() {
            text.push_str(", ");
        }
        match action {
            Action::Reserve(reservation) => write!(text, "reserve {}", reservation.attempt),
            Action::Start(start) => write!(text, "start {}", start.attempt),
            Action::Observe { attempt, .. } => write!(text, "observe {attempt}"),
            Action::Stop { attempt, how, .. } => write!(text, "stop {attempt} {}", parse::stop_word(*how)),
            Action::Release { attempt, .. } => write!(text, "release {attempt}"),
            Action::Report { view, .. } => write!(text, "report {} {}", view.id, view.state),
        }
        .expect("a string takes any text");
    }
    text
}

fn compare(expected: &str, actual: &str) -> Result<(), String> {
    if expected == actual {
        Ok(())
    } else {
        Err(format!("  expected: {expected}\n    actual: {actual}"))
    }
}

/// Returns a run's id from a story.
fn run_id(text: &str) -> Result<RunId, String> {
    text.parse().map_err(|error| format!("{error}"))
}
