//! The retry machine's cases: what their sentences mean, and whether our machine goes where they say.
//!
//! A sentence is known by its words and not by its wording, read in the light of the phase that the case starts from.
//! One that is not understood fails its case.

mod meaning;
mod samples;
#[cfg(test)]
mod tests;
mod words;

use anyhow::{Context, Result, bail, ensure};
use blueproof_simulation::retry::{
    Component, DesiredState, FaultTolerance, Machine, ObservedState, Phase, PodPhase, PodsReady, Quota, Step,
};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use crate::cases::differ;
use meaning::meaning;
use samples::{all_gone, on_bad_node, pods, second_component, wanted};
use words::Words;

/// One transition.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryCase {
    pub(crate) id: String,
    from: String,
    when: String,
    within: Option<i64>,
    after: Option<i64>,
    retries_now: Option<u32>,
    to: String,
    then: Option<String>,
    /// A change, such as `+1`.
    retries: Option<Value>,
    reason: Option<String>,
    quota: Option<String>,
    pods_ready: Option<bool>,
    recheck_s: Option<i64>,
    #[serde(rename = "note")]
    _note: Option<String>,
}

/// A machine, and what the time is.
struct Course {
    machine: Machine,
    terms: FaultTolerance,
    second: i64,
}

/// Returns what differs from what a case expects.
pub(crate) fn run(case: &RetryCase) -> Result<Vec<String>> {
    let from = phase(&case.from)?;
    let words = Words::of(&case.when);
    let meaning = meaning(from, &words, &FaultTolerance::default())
        .with_context(|| format!("from {from:?}, `{}` is not understood", case.when))?;
    let retries = case
        .retries_now
        .unwrap_or_else(|| match words.has_reached_limit() {
            Some(true) => meaning.terms.retry_limit,
            Some(false) | None => 0,
        });
    let mut course = Course::until(from, retries, meaning.terms)?;
    let step = course.last(&meaning.seen, lasted(case).or(meaning.lasted));
    let mut found = differences(case, &course.machine, retries, step)?;
    if course.machine.phase() == Phase::Failed {
        // A failure gives its quota back once it is deleted, and that is what the cases mean.
        course.look(0, &all_gone(meaning.seen.wanted));
    }
    if let Some(then) = &case.then {
        course.look(course.terms.retry_pause.as_secs(), &all_gone(meaning.seen.wanted));
        found.extend(differ("then", &phase(then)?, &course.machine.phase()));
    }
    if let Some(expected) = &case.quota {
        let actual = match course.machine.quota() {
            Quota::Held => "held",
            Quota::Released => "released",
        };
        found.extend(differ("quota", &expected.as_str(), &actual));
    }
    Ok(found)
}

/// Returns for how many seconds a case's sentence has been true, just short of `within` or just past `after`.
fn lasted(case: &RetryCase) -> Option<i64> {
    let within = case.within.map(|seconds| seconds - 1);
    within.or(case.after.map(|seconds| seconds + 1))
}

fn differences(case: &RetryCase, machine: &Machine, retries: u32, step: Step) -> Result<Vec<String>> {
    let mut found: Vec<_> = differ("to", &phase(&case.to)?, &machine.phase())
        .into_iter()
        .collect();
    if let Some(expected) = &case.retries {
        let actual = i64::from(machine.retries()) - i64::from(retries);
        found.extend(differ("retries", &change(expected)?, &actual));
    }
    if let Some(expected) = &case.reason {
        let actual = machine.reason().map(|reason| format!("{reason:?}"));
        found.extend(differ("reason", &Some(expected.clone()), &actual));
    }
    if let Some(expected) = case.pods_ready {
        let actual = machine.pods_ready() == PodsReady::Ready;
        found.extend(differ("pods_ready", &expected, &actual));
    }
    if let Some(expected) = case.recheck_s {
        let expected = SignedDuration::from_secs(expected);
        found.extend(differ("recheck_s", &Some(expected), &step.look_again));
    }
    Ok(found)
}

/// Reads `+1`, with or without quotes.
fn change(value: &Value) -> Result<i64> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let number = text.trim().trim_start_matches('+').parse();
    number.with_context(|| format!("`{text}` is not a change of the retries"))
}

fn phase(name: &str) -> Result<Phase> {
    Ok(match name {
        "Suspended" => Phase::Suspended,
        "Resuming" => Phase::Resuming,
        "Running" => Phase::Running,
        "Resetting" => Phase::Resetting,
        "Suspending" => Phase::Suspending,
        "Succeeded" => Phase::Succeeded,
        "Failed" => Phase::Failed,
        "Terminating" => Phase::Terminating,
        _ => bail!("there is no phase `{name}`"),
    })
}

impl Course {
    /// Leads a machine to a phase, with so many retries counted.
    fn until(phase: Phase, retries: u32, terms: FaultTolerance) -> Result<Self> {
        let machine = Machine::default();
        let mut course = Self {
            machine,
            terms,
            second: 0,
        };
        if phase == Phase::Resetting && retries > 0 {
            course.run(retries - 1);
            course.look(0, &second_component(Component::Failed));
        } else if phase != Phase::Suspended || retries > 0 {
            course.run(retries);
            course.leave_for(phase);
        }
        let reached = (course.machine.phase(), course.machine.retries());
        ensure!(
            reached == (phase, retries),
            "there is no {phase:?} after {retries} retries, only {reached:?}"
        );
        Ok(course)
    }

    /// Runs, and fails so often; not more often than it may.
    fn run(&mut self, retries: u32) {
        self.resume();
        self.look(0, &pods(&[]));
        for _ in 0..retries.min(self.terms.retry_limit) {
            self.look(0, &second_component(Component::Failed));
            self.look(self.terms.retry_pause.as_secs(), &all_gone(DesiredState::Running));
            self.look(0, &pods(&[]));
        }
    }

    fn resume(&mut self) -> Step {
        self.look(0, &all_gone(DesiredState::Running))
    }

    /// Goes from Running to another phase.
    fn leave_for(&mut self, phase: Phase) {
        match phase {
            Phase::Running => return,
            Phase::Resetting => self.look(0, &on_bad_node()),
            Phase::Suspending => self.look(0, &wanted(DesiredState::Suspended)),
            Phase::Succeeded => self.look(0, &pods(&[PodPhase::Succeeded; 2])),
            Phase::Failed => self.look(0, &second_component(Component::Missing)),
            Phase::Terminating => self.look(0, &wanted(DesiredState::Deleted)),
            Phase::Suspended => {
                self.leave_for(Phase::Suspending);
                self.look(0, &all_gone(DesiredState::Suspended))
            }
            Phase::Resuming => {
                self.leave_for(Phase::Suspended);
                self.resume()
            }
        };
    }

    /// Looks, so many seconds after the look before.
    fn look(&mut self, after: i64, seen: &ObservedState) -> Step {
        self.second += after;
        let now = Timestamp::from_second(self.second).unwrap_or(Timestamp::MAX);
        self.machine.observe(now, &self.terms, seen)
    }

    /// Looks at what is seen now, and again when it has lasted so long, unless that is another phase by then.
    fn last(&mut self, seen: &ObservedState, seconds: Option<i64>) -> Step {
        let from = self.machine.phase();
        let first = self.look(0, seen);
        match seconds {
            Some(seconds) if self.machine.phase() == from => self.look(seconds, seen),
            Some(_) | None => first,
        }
    }
}
