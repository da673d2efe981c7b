//! Stories in which a cluster decides about quota, and nobody here: told for the embedded queue, they come to the same end.
//!
//! The queues of the cluster decide by the same rules, so that a place that a story gives is there by then. Who is asked
//! for a place when is another matter: each run asks at once, and what it asked for is released when it waits no more.

use blueproof_queue::objects::{Admission, Objects};
use jiff::Timestamp;

use super::{
    Stage, compare, describe,
    parse::{self, Line, Step},
};
use crate::{
    action::{Action, ReservedQuota},
    domain::{AttemptId, Placement, RunState},
    event::Event,
    policy::Policy,
    ports::AttemptNews,
    testing::ExternalQueue,
};

/// Plays a story in which the cluster decides, and compares what is started, stopped and reported, and how runs end.
///
/// # Errors
/// Returns the line that does not hold, with what was expected and what came out.
///
/// # Panics
/// When the scheduler breaks one of its own rules.
pub fn play_externally(story: &str) -> Result<(), String> {
    let mut stage = ExternalStage {
        stage: Stage::new(),
        queue: ExternalQueue::new(Objects::default()),
    };
    for (number, text) in story.lines().enumerate() {
        let line = parse::line(text).map_err(|why| format!("line {}: {why}\n  {text}", number + 1))?;
        let played = line.map_or(Ok(()), |line| stage.play(line));
        played.map_err(|why| format!("line {}: {text}\n{why}", number + 1))?;
    }
    stage.stage.replay()
}

/// A scheduler, and a cluster that decides.
struct ExternalStage {
    stage: Stage,
    queue: ExternalQueue,
}

impl ExternalStage {
    fn play(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Happens { at, step, expected } => {
                let actions = self.happens(at, step)?;
                compare(&outcomes(&expected), &outcomes(&describe(&actions)))
            }
            Line::Is { run, state } => {
                let view = self.stage.scheduler.view(run).ok_or("  it is not known")?;
                // Before it has quota, a run is queued here.
                let same = [RunState::Reserved, RunState::Queued].map(|state| state.to_string());
                let queued = same.contains(&state) && same.contains(&view.state.to_string());
                if queued {
                    Ok(())
                } else {
                    compare(&state, &view.state.to_string())
                }
            }
            // Its cluster has words of its own.
            Line::Waits { .. } | Line::Struggles { .. } => Ok(()),
            refused @ Line::Refused { .. } => self.stage.play(refused),
        }
    }

    fn happens(&mut self, at: Timestamp, step: Step) -> Result<Vec<Action>, String> {
        let mut events = match step {
            Step::Policy { policy, .. } => {
                self.queue.set_objects(Policy::default_objects(&policy));
                let admission = Admission::External;
                self.stage.events(Step::Policy { policy, admission })?
            }
            other @ (Step::Event(_) | Step::Approve { .. } | Step::Report(_)) => self.stage.events(other)?,
        };
        if let [Event::Reserved { attempt, place }] = &mut events[..] {
            self.check_placed(*attempt, place)?;
        }
        let mut all = Vec::new();
        while !events.is_empty() {
            for event in std::mem::take(&mut events) {
                if let Event::Released { attempt } = event {
                    self.queue.remove(attempt);
                }
                let actions = self.stage.handle(at, event);
                events.extend(actions.iter().filter_map(|action| self.carry_out(action)));
                all.extend(actions);
            }
            events.extend(self.decided());
        }
        Ok(all)
    }

    /// What the story places has quota by now, if it asked for any.
    fn check_placed(&self, attempt: AttemptId, place: &mut Placement) -> Result<(), String> {
        if let Some(placed) = self.queue.placement(attempt) {
            place.clone_from(placed);
        } else if self.queue.waits(attempt) {
            return Err(format!("  {attempt} has no quota in its cluster yet"));
        }
        Ok(())
    }

    /// Does as a cluster does, and returns what comes of it at once.
    fn carry_out(&mut self, action: &Action) -> Option<Event> {
        match action {
            Action::Reserve(reservation) => {
                if let ReservedQuota::Requested(request) = &reservation.quota {
                    let pod_sets = &reservation.pod_sets;
                    self.queue.request(reservation.attempt, request, pod_sets);
                }
                None
            }
            // Of a request; that of an attempt the story tells.
            Action::Release { attempt, .. } => {
                let run = self.stage.scheduler.view(attempt.run)?;
                let begun = run.attempts.iter().any(|known| known.id == *attempt);
                (!begun).then_some(Event::Released { attempt: *attempt })
            }
            Action::Start(_) | Action::Observe { .. } | Action::Stop { .. } | Action::Report { .. } => None,
        }
    }

    /// Returns what the cluster decides now. That a place is there the story tells.
    fn decided(&mut self) -> Vec<Event> {
        let decided = self
            .queue
            .decide()
            .into_iter()
            .filter_map(|(attempt, news)| match news {
                AttemptNews::Pending { reason, message } => Some(Event::Pending {
                    attempt,
                    reason,
                    message,
                }),
                AttemptNews::Evicted { reason, message } => Some(Event::Evicted {
                    attempt,
                    reason,
                    message,
                }),
                AttemptNews::Reserved(_)
                | AttemptNews::Running
                | AttemptNews::Finished { .. }
                | AttemptNews::Lost { .. }
                | AttemptNews::Released
                | AttemptNews::Failed { .. } => None,
            });
        decided.collect()
    }
}

/// Returns what is done but for reserving and releasing, in the order of its words.
fn outcomes(actions: &str) -> String {
    let actions = actions.split(", ").map(str::trim);
    let mut kept: Vec<&str> = actions
        .filter(|action| !action.starts_with("reserve ") && !action.starts_with("release "))
        .collect();
    kept.sort_unstable();
    kept.join(", ")
}
