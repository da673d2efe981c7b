//! Messages about jobs: the envelope, what is in it, and the times that follow from it.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::types::{MessageId, RunnerId, RunnerRequestId, Statistics, open_enum, optional_time};

/// The only envelope that has news of jobs.
const JOB_MESSAGES: &str = "RunnerScaleSetJobMessages";

/// A message as it came, to be kept before anything is done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawMessage {
    /// Its number.
    pub id: MessageId,
    /// The whole of it, as JSON.
    pub text: String,
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its number.
    pub id: MessageId,
    /// The scale set's jobs and runners as of the answer.
    pub statistics: Option<Statistics>,
    /// What happened, in the order in which it was written. Empty for an envelope that is not about jobs.
    pub events: Vec<Event>,
}

/// Something that happened to a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// It is offered, and has to be acquired.
    Available(Job),
    /// It is assigned to the scale set and waits for a runner.
    Assigned(Job),
    /// A runner took it.
    Started {
        /// The job.
        job: Job,
        /// Who took it.
        runner: JobRunner,
    },
    /// It is done, or was taken back: no runner took it in time.
    Completed {
        /// The job.
        job: Job,
        /// What came of it.
        result: JobResult,
        /// Who had it; `None` if no runner ever did.
        runner: Option<JobRunner>,
    },
    /// A kind of message that is not known here.
    Unknown {
        /// Its type.
        kind: String,
        /// The job that it names, if any.
        job: RunnerRequestId,
        /// All of it.
        raw: Value,
    },
}

/// What an event is, as a word to keep.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKind(String);

/// The runner that an event names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRunner {
    /// Its number.
    pub id: RunnerId,
    /// Its name.
    pub name: String,
}

open_enum! {
    /// What came of a job.
    JobResult {
        /// It succeeded.
        Succeeded = "success",
        /// It was canceled, or taken back.
        Canceled = "canceled",
        /// It failed.
        Failed = "failure",
    }
}

/// A job as messages tell of it. No message has the commit that it is for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Job {
    /// What to acquire it by, and what tells it from others.
    pub runner_request_id: RunnerRequestId,
    /// The repository's name.
    pub repository_name: String,
    /// The repository's owner.
    pub owner_name: String,
    /// The job's id.
    pub job_id: String,
    /// The workflow: `{owner}/{repo}/.github/workflows/{file}@{ref}`.
    pub job_workflow_ref: String,
    /// The job's name.
    pub job_display_name: String,
    /// The workflow's run, by which GitHub's REST API tells the commit.
    pub workflow_run_id: i64,
    /// What started the workflow.
    pub event_name: String,
    /// The labels that the job asks for.
    pub request_labels: Vec<String>,
    /// When it was queued.
    #[serde(with = "optional_time")]
    pub queue_time: Option<Timestamp>,
    /// When the scale set got it.
    #[serde(with = "optional_time")]
    pub scale_set_assign_time: Option<Timestamp>,
    /// When a runner got it.
    #[serde(with = "optional_time")]
    pub runner_assign_time: Option<Timestamp>,
    /// When it was done.
    #[serde(with = "optional_time")]
    pub finish_time: Option<Timestamp>,
}

/// A text that is no message.
#[derive(Debug, thiserror::Error)]
#[error("could not read {what} of a message")]
pub struct MessageError {
    what: &'static str,
    #[source]
    source: serde_json::Error,
}

/// What is outside.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    message_id: MessageId,
    #[serde(default)]
    message_type: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    statistics: Option<Statistics>,
}

/// What an inner message has beyond the job.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inner {
    message_type: String,
    #[serde(default)]
    result: Option<JobResult>,
    #[serde(default)]
    runner_id: RunnerId,
    #[serde(default)]
    runner_name: Option<String>,
}

impl RawMessage {
    /// Takes in the text of a message; only its number is looked at.
    pub(crate) fn of(text: String) -> Result<Self, MessageError> {
        let envelope = envelope(&text)?;
        Ok(Self {
            id: envelope.message_id,
            text,
        })
    }

    /// Reads the message. An inner message of a type that is not known is kept; a body that is no list of messages is an error.
    pub fn read(&self) -> Result<Message, MessageError> {
        let Envelope {
            message_id,
            message_type,
            body,
            statistics,
        } = envelope(&self.text)?;
        let body = body.filter(|body| !body.trim().is_empty() && message_type == JOB_MESSAGES);
        let inner: Vec<Value> = match body {
            Some(body) => serde_json::from_str(&body).map_err(|source| MessageError {
                what: "the body",
                source,
            })?,
            None => Vec::new(),
        };
        let events: Result<_, _> = inner.into_iter().map(event).collect();
        Ok(Message {
            id: message_id,
            statistics,
            events: events?,
        })
    }
}

fn envelope(text: &str) -> Result<Envelope, MessageError> {
    serde_json::from_str(text).map_err(|source| MessageError {
        what: "the envelope",
        source,
    })
}

fn event(raw: Value) -> Result<Event, MessageError> {
    let wrong = |source| MessageError {
        what: "an event",
        source,
    };
    let inner = Inner::deserialize(&raw).map_err(wrong)?;
    let is_known =
        ["JobAvailable", "JobAssigned", "JobStarted", "JobCompleted"].contains(&&*inner.message_type);
    if !is_known {
        let job = raw.get("runnerRequestId").and_then(Value::as_i64);
        return Ok(Event::Unknown {
            kind: inner.message_type,
            job: RunnerRequestId(job.unwrap_or_default()),
            raw,
        });
    }
    let job = Job::deserialize(&raw).map_err(wrong)?;
    let name = inner.runner_name.unwrap_or_default();
    let runner = JobRunner {
        id: inner.runner_id,
        name,
    };
    Ok(match &*inner.message_type {
        "JobAvailable" => Event::Available(job),
        "JobAssigned" => Event::Assigned(job),
        "JobStarted" => Event::Started { job, runner },
        _ => Event::Completed {
            job,
            result: inner.result.unwrap_or(JobResult::Other(String::new())),
            runner: (!runner.name.is_empty()).then_some(runner),
        },
    })
}

impl Event {
    /// Returns the job that it is about, if it is of a known kind.
    pub fn job(&self) -> Option<&Job> {
        match self {
            Event::Available(job)
            | Event::Assigned(job)
            | Event::Started { job, .. }
            | Event::Completed { job, .. } => Some(job),
            Event::Unknown { .. } => None,
        }
    }

    /// Returns the number of the job that it is about; zero where it names none.
    pub fn request(&self) -> RunnerRequestId {
        match self {
            Event::Available(job)
            | Event::Assigned(job)
            | Event::Started { job, .. }
            | Event::Completed { job, .. } => job.runner_request_id,
            Event::Unknown { job, .. } => *job,
        }
    }

    /// Returns its kind, by the service's word.
    pub fn kind(&self) -> EventKind {
        let word = match self {
            Event::Available(_) => "JobAvailable",
            Event::Assigned(_) => "JobAssigned",
            Event::Started { .. } => "JobStarted",
            Event::Completed { .. } => "JobCompleted",
            Event::Unknown { kind, .. } => kind,
        };
        EventKind(word.to_owned())
    }
}

impl EventKind {
    /// Returns the word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for EventKind {
    fn from(word: String) -> Self {
        Self(word)
    }
}

impl Job {
    /// Returns the pull request that the job is for, where its workflow's ref names one.
    pub fn pull_request(&self) -> Option<u64> {
        let (_, reference) = self.job_workflow_ref.rsplit_once('@')?;
        let number = reference.strip_prefix("refs/pull/")?.strip_suffix("/merge")?;
        number.parse().ok()
    }

    /// Returns how long it waited for a scale set.
    pub fn queued(&self) -> Option<Duration> {
        between(self.queue_time, self.scale_set_assign_time)
    }

    /// Returns how long it waited for a runner.
    pub fn startup(&self) -> Option<Duration> {
        between(self.scale_set_assign_time, self.runner_assign_time)
    }

    /// Returns how long it ran; `None` if it never reached a runner.
    pub fn execution(&self) -> Option<Duration> {
        between(self.runner_assign_time, self.finish_time)
    }

    /// Returns how long it took in all.
    pub fn total(&self) -> Option<Duration> {
        between(self.queue_time, self.finish_time)
    }
}

/// Returns the time between two; `None` also where they are the wrong way round.
fn between(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<Duration> {
    to?.duration_since(from?).try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: &str) -> Message {
        let body = serde_json::to_string(body).expect("a text");
        let text = format!(
            r#"{{"messageId":100000001,"messageType":"RunnerScaleSetJobMessages","body":{body},"statistics":{{"totalAssignedJobs":2}}}}"#
        );
        let raw = RawMessage::of(text).expect("an envelope");
        raw.read().expect("a message")
    }

    #[test]
    fn all_kinds_are_read_and_one_that_is_not_known_survives() {
        let message = message(
            r#"[{"messageType":"JobAvailable","runnerRequestId":9000000000,"acquireJobUrl":"x"},
                {"messageType":"JobAssigned","runnerRequestId":2},
                {"messageType":"JobStarted","runnerRequestId":3,"runnerId":5,"runnerName":"r"},
                {"messageType":"JobCompleted","runnerRequestId":4,"result":"success","runnerId":0,"runnerName":""},
                {"messageType":"JobDreamt","runnerRequestId":5,"of":"sheep"}]"#,
        );
        let kinds: Vec<_> = message.events.iter().map(|event| event.kind().0).collect();
        assert_eq!(
            kinds,
            [
                "JobAvailable",
                "JobAssigned",
                "JobStarted",
                "JobCompleted",
                "JobDreamt"
            ]
        );
        let jobs: Vec<_> = message.events.iter().map(|event| event.request().0).collect();
        assert_eq!(jobs, [9_000_000_000, 2, 3, 4, 5]);
        assert!(matches!(
            &message.events[3],
            Event::Completed {
                runner: None,
                result: JobResult::Succeeded,
                ..
            }
        ));
        assert_eq!(
            message
                .statistics
                .map(|statistics| statistics.total_assigned_jobs),
            Some(2)
        );
    }

    #[test]
    fn an_empty_body_has_no_events() {
        assert_eq!(message("").events, []);
        assert_eq!(message("[]").events, []);
        let text = r#"{"messageId":1,"messageType":"Weather","body":"sunny"}"#.to_owned();
        let raw = RawMessage::of(text).expect("an envelope");
        assert_eq!(raw.read().expect("it is passed over").events, []);
    }

    #[test]
    fn a_body_that_is_no_list_is_an_error_and_keeps_its_number() {
        let text = r#"{"messageId":8,"messageType":"RunnerScaleSetJobMessages","body":"{"}"#.to_owned();
        let raw = RawMessage::of(text).expect("an envelope");
        assert_eq!(raw.id, MessageId(8));
        assert_eq!(
            raw.read().expect_err("no list").to_string(),
            "could not read the body of a message"
        );
    }

    #[test]
    fn times_and_the_pull_request_follow_from_a_job() {
        let at = |second: i64| Timestamp::from_second(second).ok();
        let job = Job {
            job_workflow_ref: "o/r/.github/workflows/gpu.yaml@refs/pull/41/merge".into(),
            queue_time: at(10),
            scale_set_assign_time: at(12),
            runner_assign_time: None,
            finish_time: at(60),
            ..Job::default()
        };
        assert_eq!(job.pull_request(), Some(41));
        assert_eq!(job.queued(), Some(Duration::from_secs(2)));
        assert_eq!((job.startup(), job.execution()), (None, None));
        assert_eq!(job.total(), Some(Duration::from_secs(50)));
        let backwards = Job {
            queue_time: at(90),
            ..job
        };
        assert_eq!(backwards.total(), None);
    }
}
