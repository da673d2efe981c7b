//! A run as it is shown to people and other programs.
//!
//! A projection of the log: it is kept so that it can be read without a replay, and can be made again from the events
//! at any time.

mod outlook;

use std::{collections::BTreeMap, fmt, path::PathBuf};

use blueproof_diagnostic::Diagnostic;
use blueproof_queue::Quantity;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    domain::{
        Actor, Amounts, AttemptId, EvictionReason, Failure, LOCAL_CLUSTER, Outcome, Placement, Priority,
        QueueName, RequestKey, Resources, Retry, Revision, RunId, RunState, Subject, Verdict,
    },
    event::Call,
    pending::{PendingReason, PlacePending},
};
pub use outlook::{OutlookView, QueuePosition};

/// One run as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunView {
    /// The run.
    pub id: RunId,
    /// Where it is in the pipeline.
    pub state: RunState,
    /// What it tests.
    pub subject: Subject,
    /// The commit that the folder was checked out from, where it lies in a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Who asked for it.
    pub requested_by: Actor,
    /// The folder on this machine in which it was asked for.
    #[serde(default)]
    pub asked_from: Option<PathBuf>,
    /// The key of the request that made it.
    pub request_key: RequestKey,
    /// The queue that it waits or waited in.
    pub queue: QueueName,
    /// Its place among the others there.
    pub priority: Priority,
    /// What is reserved for its whole gang.
    pub resources: Resources,
    /// What is reserved for it of further resources, by their Kubernetes names, in Kueue's units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub further_resources: BTreeMap<String, Quantity>,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// When somebody last asked for it to be tried once more.
    #[serde(default)]
    pub retried_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its attempts, the first one first.
    pub attempts: Vec<AttemptView>,
    /// Why it did not pass.
    pub failure: Option<Failure>,
    /// The attempt of the same blueprint that had passed last when this run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_pass: Option<LastPass>,
    /// What failed for it and is tried again.
    #[serde(default, alias = "troubles")]
    pub failing_calls: Vec<FailingCall>,
    /// Whether its report is written.
    pub report: ReportView,
    /// Whether it has ended and nothing remains to be done for it.
    pub settled: bool,
    /// How it waits and when it is likely to go on, as it was last worked out. Stored beside the rest, and written more often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlook: Option<Box<OutlookView>>,
}

impl RunView {
    /// Returns all that is reserved for it, to be told in words.
    pub fn asked(&self) -> Amounts<'_> {
        Amounts {
            resources: self.resources,
            further: &self.further_resources,
        }
    }

    /// Returns why it waits, as it was last worked out; `None` when it does not wait, or that is not known yet.
    pub fn waits(&self) -> Option<&PendingReason> {
        self.outlook.as_ref()?.reason.as_ref()
    }

    /// Returns the run without what is worked out about it: two that are equal so are of the same facts.
    pub fn without_outlook(mut self) -> Self {
        self.outlook = None;
        self
    }

    /// Returns when it was last asked for. What lies between the end of a run and the request to try it once more is
    /// nobody's wait.
    pub fn asked_at(&self) -> Timestamp {
        self.retried_at.unwrap_or(self.requested_at)
    }

    /// Returns since when it has been waiting for its next attempt: since that was asked for, or since the last one ended.
    pub fn waiting_since(&self) -> Timestamp {
        let ended_at = self.attempts.last().and_then(|attempt| attempt.ended_at);
        ended_at.map_or(self.asked_at(), |ended_at| ended_at.max(self.asked_at()))
    }

    /// Returns how long it waited for an attempt: from when that was asked for, or, where it was tried again by itself, from
    /// when it was back in the queue.
    pub fn waited_for(&self, attempt: &AttemptView) -> SignedDuration {
        let asked_at = if self.asked_at() <= attempt.reserved_at {
            self.asked_at()
        } else {
            self.requested_at
        };
        let requeued_at = attempt.queued_at.filter(|_| attempt.id.number > 1);
        let since = requeued_at.map_or(asked_at, |requeued_at| requeued_at.max(asked_at));
        attempt.reserved_at.duration_since(since)
    }

    /// Returns the attempt that came of the last request; `None` where that ended, or stands, before it had one.
    pub fn attempt_asked_for(&self) -> Option<&AttemptView> {
        let last = self.attempts.last();
        last.filter(|attempt| attempt.reserved_at >= self.asked_at())
    }

    /// Returns why the last request came to no pass; `None` where what failed is an attempt of an earlier request.
    pub fn failure_asked_for(&self) -> Option<&Failure> {
        let earlier = self
            .attempts
            .last()
            .filter(|_| self.attempt_asked_for().is_none());
        let failed_earlier = earlier.and_then(|attempt| match &attempt.outcome.as_ref()?.verdict {
            Verdict::Failed(failure) => Some(&**failure),
            Verdict::Passed | Verdict::Stopped => None,
        });
        let failure = self.failure.as_ref();
        failure.filter(|failure| Some(*failure) != failed_earlier)
    }

    /// Returns in words where it is in the pipeline, and that it is held where it is.
    pub fn state_in_words(&self) -> String {
        match self.waits() {
            Some(PendingReason::Held(_)) => "held".into(),
            Some(_) | None => self.state.to_string(),
        }
    }

    /// Returns, of a run that passed only after it had failed, in which attempt, and how those before it failed.
    pub fn passed_late(&self) -> Option<String> {
        let (last, before) = self.attempts.split_last()?;
        if last.outcome.as_ref()?.verdict != Verdict::Passed {
            return None;
        }
        let failed = before.iter().filter_map(|attempt| {
            let Verdict::Failed(failure) = &attempt.outcome.as_ref()?.verdict else {
                return None;
            };
            let number = attempt.id.number;
            Some(format!("attempt {number} failed: {}", failure.diagnostic.message))
        });
        let failed: Vec<String> = failed.collect();
        let number = last.id.number;
        (!failed.is_empty()).then(|| format!("in attempt {number} of {number}; {}", failed.join("; ")))
    }
}

/// A call that failed for a run, and is made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailingCall {
    /// The call.
    pub call: Call,
    /// How often it failed in a row.
    pub times: u32,
    /// With what it failed last.
    pub last: Box<Diagnostic>,
    /// What that says of another time.
    pub retry: Retry,
    /// When it is made again.
    pub again_at: Timestamp,
}

impl FailingCall {
    /// Returns what failed and why, with the time at which it is made again as whoever reads it tells the time.
    pub fn told(&self, again_at: &str) -> String {
        let doing = match self.call {
            Call::Reserve(id) => format!("making a place for {id}"),
            Call::Start(id) => format!("starting {id}"),
            Call::Observe(id) => format!("watching {id}"),
            Call::Stop(id) => format!("telling {id} to end"),
            Call::Release(id) => format!("clearing {id} away"),
            Call::Report(_) => "writing the report".into(),
        };
        let failed = match (self.retry, self.times) {
            (Retry::WhenFree, _) => {
                format!("waits for others, and is tried again when one ends, by {again_at}")
            }
            (Retry::Later | Retry::WhenAvailable | Retry::Never, 1) => {
                format!("failed and is tried again at {again_at}")
            }
            (Retry::Later | Retry::WhenAvailable | Retry::Never, times) => {
                format!("failed {times} times in a row and is tried again at {again_at}")
            }
        };
        format!("{doing} {failed}: {}", self.last.message)
    }
}

/// An attempt that passed, of the blueprint under the profile of another run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LastPass {
    /// The attempt.
    pub attempt: AttemptId,
    /// The parameters whose values differ, in the order of their names; none where one passed with the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<ParameterChange>,
}

/// A parameter that had another value in an earlier run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ParameterChange {
    /// Its name.
    pub name: String,
    /// The value in the earlier run; absent where it was given none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<serde_json::Value>,
    /// The value in this run; absent where it was given none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<serde_json::Value>,
}

/// One attempt as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    /// The attempt.
    pub id: AttemptId,
    /// Who approved the head that it tests.
    pub approved_by: Actor,
    /// Where it runs.
    pub place: Option<Placement>,
    /// Why it waits for a place, as its cluster says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<PlacePending>,
    /// When the run entered the queue for it, or entered it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_at: Option<Timestamp>,
    /// When quota was promised to it.
    pub reserved_at: Timestamp,
    /// When it began to run.
    pub started_at: Option<Timestamp>,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// That it had to give its quota back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction: Option<Eviction>,
    /// How it ended.
    pub outcome: Option<Outcome>,
}

impl RunView {
    /// Returns the last attempt and why it has to give its quota back, while it has not stopped yet. Its run waits in the
    /// queue again afterwards.
    pub fn being_evicted(&self) -> Option<(&AttemptView, &Eviction)> {
        let attempt = self.attempts.last()?;
        let goes_on = match self.state {
            RunState::Reserved | RunState::Starting | RunState::Running => true,
            RunState::AwaitingApproval | RunState::Queued | RunState::Ended(_) => false,
        };
        let outcome = attempt.outcome.as_ref();
        let stops = outcome.is_none_or(|outcome| outcome.verdict == Verdict::Stopped);
        let eviction = attempt.eviction.as_ref();
        eviction
            .filter(|_| goes_on && stops)
            .map(|eviction| (attempt, eviction))
    }
}

impl AttemptView {
    /// Returns in words where it runs, with what it has there of what its run asks for.
    pub fn place_in_words(&self, resources: Resources) -> Option<String> {
        let Placement {
            cluster,
            nodes,
            devices,
            flavors: _,
        } = self.place.as_ref()?;
        let mut words = match cluster.as_str() {
            LOCAL_CLUSTER => {
                let threads = resources.cpu.threads();
                vec![format!("process on this machine · threads capped at {threads}")]
            }
            other => vec![other.to_owned()],
        };
        words.extend(nodes.iter().cloned());
        words.extend(devices.iter().map(|device| device.0.clone()));
        Some(words.join(" · "))
    }

    /// Returns how long it took, or has taken until `now`: from when quota was promised to it until it was over.
    pub fn took(&self, now: Timestamp) -> SignedDuration {
        self.ended_at.unwrap_or(now).duration_since(self.reserved_at)
    }
}

/// That an attempt had to give its quota back before it was over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Eviction {
    /// Why.
    pub reason: EvictionReason,
    /// For which run, if for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<RunId>,
    /// When it was told to end.
    pub at: Timestamp,
    /// What its cluster says of it, where its cluster decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl fmt::Display for Eviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.by {
            Some(by) => write!(f, "for {by}: ")?,
            None => f.write_str("because ")?,
        }
        let words = self.message.as_deref().unwrap_or(self.reason.as_words());
        write!(f, "{words} ({})", self.reason)
    }
}

/// Whether a run's report is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ReportView {
    /// The run has not ended yet.
    NotDue,
    /// It is being written.
    Due,
    /// It is written.
    Written,
    /// It could not be written, however often it was tried.
    GivenUp(Box<Diagnostic>),
}

#[cfg(test)]
mod tests;
