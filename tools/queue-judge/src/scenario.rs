//! What both sides are asked: a scenario, as a line of JSON for the oracle, and the answer in one form.

mod trees;

use std::io::{self, Write};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Serializer, ser::Formatter};

use crate::{
    decide::{self, Fair, Victims},
    format::{CycleCase, CycleOutcome, Entry, Script, Setup, Share, Step, StepOutcome},
};

/// A scenario.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Scenario {
    /// One cycle.
    Cycle(CycleCase),
    /// Steps; victims are back in their queues before the next cycle.
    Script(Script),
    /// Steps; victims stay until they are said to be gone.
    Linger(Script),
}

/// What a scenario comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    /// Deciding again gave something else.
    Unstable { unstable: bool },
    /// Deciding with other numbers of idle cycles gave something else.
    IdleDependent { idle_dependent: bool },
    /// A step has no end.
    Unsettled { unsettled: bool },
    /// It is nothing that Kueue would accept.
    Refused { error: String },
    /// What holds after each step.
    Steps { steps: Vec<StepOutcome> },
    /// What the cycle decided.
    Cycle(CycleOutcome),
}

impl Scenario {
    /// Returns it as the oracle reads it.
    pub(crate) fn line(&self) -> String {
        line(self)
    }

    /// Returns its queues and cohorts.
    pub(crate) fn setup(&self) -> &Setup {
        match self {
            Self::Cycle(case) => &case.setup,
            Self::Script(script) | Self::Linger(script) => &script.setup,
        }
    }

    /// Returns who is in it, each with its queue.
    pub(crate) fn entries(&self) -> Box<dyn Iterator<Item = (&str, &Entry)> + '_> {
        match self {
            Self::Cycle(case) => {
                let queues = case.running.iter().chain(&case.pending);
                Box::new(
                    queues.flat_map(|(queue, entries)| {
                        entries.iter().map(move |entry| (queue.as_str(), entry))
                    }),
                )
            }
            Self::Script(script) | Self::Linger(script) => {
                let entries = script.steps.iter().flat_map(|step| &step.submit);
                Box::new(entries.map(|entry| (entry.q.as_deref().unwrap_or_default(), entry)))
            }
        }
    }

    /// Returns the scenario with a change made to everybody in it, who is given with their queue.
    pub(crate) fn changed(&self, mut change: impl FnMut(&str, &mut Entry)) -> Self {
        let mut changed = self.clone();
        match &mut changed {
            Self::Cycle(case) => {
                for (queue, entries) in case.running.iter_mut().chain(&mut case.pending) {
                    entries.iter_mut().for_each(|entry| change(queue, entry));
                }
            }
            Self::Script(script) | Self::Linger(script) => {
                for entry in script.steps.iter_mut().flat_map(|step| &mut step.submit) {
                    let queue = entry.q.clone().unwrap_or_default();
                    change(&queue, entry);
                }
            }
        }
        changed
    }

    /// Returns the scenario in which the oracle wakes those whom Kueue forgets; `None` is that there are none, or that it is
    /// that scenario already.
    pub(crate) fn waking(&self) -> Option<Self> {
        let mut waking = self.clone();
        let (Self::Script(script) | Self::Linger(script)) = &mut waking else {
            return None;
        };
        let forgets = |step: &Step| step.set_local_stop.is_some() || step.set_queue.is_some();
        let any = script.steps.iter().any(forgets);
        (any && !std::mem::replace(&mut script.wakes, true)).then_some(waking)
    }

    /// Returns what our queue makes of it.
    pub(crate) fn decide(&self) -> Result<Answer> {
        let (script, victims) = match self {
            Self::Cycle(case) => {
                let fair = if case.fair { Fair::Yes } else { Fair::No };
                return decide::cycle(case, &case.setup, fair).map(Answer::Cycle);
            }
            Self::Script(script) => (script, Victims::Leave),
            Self::Linger(script) => (script, Victims::Linger),
        };
        Ok(match decide::script(script, victims)? {
            Some(steps) => Answer::Steps {
                steps: steps
                    .into_iter()
                    .map(|step| as_told(step, script.fair, victims))
                    .collect(),
            },
            None => Answer::Unsettled { unsettled: true },
        })
    }
}

/// Returns data as a line of JSON.
pub(crate) fn line(data: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    data.serialize(&mut Serializer::with_formatter(&mut bytes, Plainly))
        .expect("plain data");
    String::from_utf8(bytes).expect("JSON is text")
}

/// Writes whole numbers without a point, as in the case files.
struct Plainly;

impl Formatter for Plainly {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        write!(writer, "{value}")
    }
}

/// Returns of a step's outcome what the oracle tells, too.
fn as_told(mut step: StepOutcome, fair: bool, victims: Victims) -> StepOutcome {
    step.running_count = None;
    step.available = None;
    step.leaving = step.leaving.filter(|_| victims == Victims::Linger);
    step.shares = step.shares.filter(|_| fair);
    if let Some(shares) = &mut step.shares {
        shares.retain(|_, share| *share != Share::Number(0));
    }
    step
}
