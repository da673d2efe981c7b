//! What can go wrong with a call: what was tried, why it failed, and whether to try again.

use std::{fmt, time::Duration};

use reqwest::{StatusCode, header::HeaderMap};
use serde::Deserialize;

use crate::transport::{Response, TransportError};

/// The most of a refusal's text that is kept.
const MESSAGE_AT_MOST: usize = 1000;

/// A call that did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing}{correlation}")]
pub struct Error {
    doing: String,
    correlation: Correlation,
    #[source]
    cause: Box<Cause>,
}

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// No answer came.
    #[error("the service was not reached")]
    Transport(#[source] TransportError),
    /// The service refused it.
    #[error(transparent)]
    Refused(Refusal),
    /// The answer has no body: what came of the call is not known.
    #[error("the answer has no body")]
    EmptyBody,
    /// The answer is not what was asked for.
    #[error("the answer is not as expected")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The credentials cannot be used.
    #[error("the credentials cannot be used")]
    Credentials(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The session is not open: it was lost, and another has not been opened yet.
    #[error("the session is not open")]
    SessionClosed,
    /// Several have a name that one alone should have.
    #[error("{count} have that name, where one should")]
    Ambiguous {
        /// How many.
        count: usize,
    },
    /// The name belongs to a runner of another scale set.
    #[error("runner {runner} of another scale set has that name")]
    NameTaken {
        /// That runner's id.
        runner: i64,
    },
}

/// What the service said in refusing a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the service answered {status}{}", of_message(message))]
pub struct Refusal {
    /// The answer's status.
    pub status: StatusCode,
    /// Which refusal it is.
    pub kind: RefusalKind,
    /// The service's own words, cut to a thousand bytes.
    pub message: String,
    /// How long the service asks to be left alone.
    pub retry_after: Option<Duration>,
}

/// The refusals that callers tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// A runner of that name exists.
    RunnerExists,
    /// There is no such runner.
    RunnerNotFound,
    /// The runner has a job.
    JobStillRunning,
    /// Another session is open.
    SessionConflict,
    /// There is no such scale set.
    ScaleSetNotFound,
    /// There is no such thing; for a session: it is lost.
    NotFound,
    /// The token is not accepted, or no longer.
    Unauthorized,
    /// Too many requests, or the service is out of order for now.
    Unavailable,
    /// Any other.
    Unknown,
}

/// Whether a call that failed may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It may, not before this time where the service said one.
    Later(Option<Duration>),
    /// It will not without a change.
    Never,
}

/// The ids by which GitHub's support finds a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Correlation {
    /// `ActivityId`.
    pub activity: Option<String>,
    /// `X-GitHub-Request-Id`.
    pub request: Option<String>,
}

/// The body of a refusal.
#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "typeName", default)]
    type_name: String,
    #[serde(default)]
    message: String,
}

impl Error {
    pub(crate) fn new(doing: impl Into<String>, correlation: Correlation, cause: Cause) -> Self {
        Self {
            doing: doing.into(),
            correlation,
            cause: Box::new(cause),
        }
    }

    /// Returns why it did not succeed.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// Returns the ids by which GitHub's support finds the call.
    pub fn correlation(&self) -> &Correlation {
        &self.correlation
    }

    /// Returns what the service said, if it refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &*self.cause {
            Cause::Refused(refusal) => Some(refusal),
            Cause::Transport(_)
            | Cause::EmptyBody
            | Cause::Unreadable(_)
            | Cause::Credentials(_)
            | Cause::SessionClosed
            | Cause::Ambiguous { .. }
            | Cause::NameTaken { .. } => None,
        }
    }

    /// Returns which refusal it is, if the service refused.
    pub fn refusal_kind(&self) -> Option<RefusalKind> {
        self.refusal().map(|refusal| refusal.kind)
    }

    /// Returns whether the same call may succeed later.
    pub fn retry(&self) -> Retry {
        match &*self.cause {
            Cause::Transport(_) | Cause::EmptyBody | Cause::Unreadable(_) | Cause::SessionClosed => {
                Retry::Later(None)
            }
            Cause::Refused(refusal) => refusal.retry(),
            Cause::Credentials(_) | Cause::Ambiguous { .. } | Cause::NameTaken { .. } => Retry::Never,
        }
    }
}

impl Refusal {
    /// Reads a refusal from an answer.
    pub(crate) fn of(response: &Response) -> Self {
        let exception = exception(response);
        let Exception { type_name, message } = exception;
        Self {
            status: response.status,
            kind: RefusalKind::of(response.status, &type_name),
            message: shortened(&if message.is_empty() { type_name } else { message }),
            retry_after: retry_after(&response.headers),
        }
    }

    fn retry(&self) -> Retry {
        match self.kind {
            RefusalKind::Unavailable | RefusalKind::SessionConflict | RefusalKind::JobStillRunning => {
                Retry::Later(self.retry_after)
            }
            RefusalKind::RunnerExists
            | RefusalKind::RunnerNotFound
            | RefusalKind::ScaleSetNotFound
            | RefusalKind::NotFound
            | RefusalKind::Unauthorized
            | RefusalKind::Unknown => Retry::Never,
        }
    }
}

impl RefusalKind {
    fn of(status: StatusCode, type_name: &str) -> Self {
        let named = [
            ("AgentExistsException", RefusalKind::RunnerExists),
            ("AgentNotFoundException", RefusalKind::RunnerNotFound),
            ("JobStillRunningException", RefusalKind::JobStillRunning),
            ("RunnerScaleSetNotFoundException", RefusalKind::ScaleSetNotFound),
            ("SessionConflictException", RefusalKind::SessionConflict),
        ];
        let named = named.into_iter().find(|(name, _)| type_name.contains(name));
        named.map_or_else(|| Self::of_status(status), |(_, kind)| kind)
    }

    fn of_status(status: StatusCode) -> Self {
        if status == StatusCode::UNAUTHORIZED {
            RefusalKind::Unauthorized
        } else if status == StatusCode::NOT_FOUND {
            RefusalKind::NotFound
        } else if is_unavailable(status) {
            RefusalKind::Unavailable
        } else {
            RefusalKind::Unknown
        }
    }
}

fn is_unavailable(status: StatusCode) -> bool {
    let is_broken = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
    is_broken || status == StatusCode::TOO_MANY_REQUESTS
}

/// Reads a refusal's body; what is no JSON is a message as it is.
fn exception(response: &Response) -> Exception {
    let body = without_mark(&response.body);
    serde_json::from_slice(body).unwrap_or_else(|_| Exception {
        type_name: String::new(),
        message: String::from_utf8_lossy(body).trim().to_owned(),
    })
}

/// Returns a body without the byte order mark that the service sometimes puts in front.
pub(crate) fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(reqwest::header::RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

fn shortened(text: &str) -> String {
    let mut end = text.len().min(MESSAGE_AT_MOST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

fn of_message(message: &str) -> String {
    if message.is_empty() {
        return String::new();
    }
    format!(": {message}")
}

impl Correlation {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| Some(shortened(headers.get(name)?.to_str().ok()?));
        Self {
            activity: text("ActivityId"),
            request: text("X-GitHub-Request-Id"),
        }
    }
}

impl fmt::Display for Correlation {
    /// Writes ` (…)` to put behind a sentence, or nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.activity, &self.request) {
            (None, None) => Ok(()),
            (Some(activity), None) => write!(f, " (ActivityId {activity})"),
            (None, Some(request)) => write!(f, " (X-GitHub-Request-Id {request})"),
            (Some(activity), Some(request)) => {
                write!(f, " (ActivityId {activity}, X-GitHub-Request-Id {request})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &str) -> Response {
        Response {
            status: StatusCode::from_u16(status).expect("a status"),
            headers: HeaderMap::new(),
            body: body.into(),
        }
    }

    #[test]
    fn a_refusal_is_told_by_its_exception_first_and_by_its_status_then() {
        for (status, body, kind) in [
            (
                409,
                r#"{"typeName":"GitHub.X.AgentExistsException, X","message":"m"}"#,
                RefusalKind::RunnerExists,
            ),
            (
                404,
                r#"{"typeName":"GitHub.X.AgentNotFoundException, X"}"#,
                RefusalKind::RunnerNotFound,
            ),
            (
                400,
                r#"{"typeName":"GitHub.X.JobStillRunningException"}"#,
                RefusalKind::JobStillRunning,
            ),
            (
                404,
                r#"{"typeName":"RunnerScaleSetNotFoundException"}"#,
                RefusalKind::ScaleSetNotFound,
            ),
            (
                409,
                r#"{"typeName":"RunnerScaleSetSessionConflictException"}"#,
                RefusalKind::SessionConflict,
            ),
            (404, "", RefusalKind::NotFound),
            (401, "no", RefusalKind::Unauthorized),
            (429, "", RefusalKind::Unavailable),
            (502, "<html>", RefusalKind::Unavailable),
            (501, "", RefusalKind::Unknown),
            (403, "", RefusalKind::Unknown),
        ] {
            assert_eq!(Refusal::of(&response(status, body)).kind, kind, "{status} {body}");
        }
    }

    #[test]
    fn a_text_is_shown_as_it_came_without_its_mark_and_cut() {
        let refusal = Refusal::of(&response(403, "\u{feff}not you"));
        assert_eq!(refusal.to_string(), "the service answered 403 Forbidden: not you");
        assert_eq!(Refusal::of(&response(500, &"ä".repeat(5000))).message.len(), 1000);
    }

    #[test]
    fn an_error_says_what_was_tried_with_the_ids_that_support_asks_for() {
        let mut answer = response(500, "");
        answer
            .headers
            .insert("ActivityId", "a-1".parse().expect("a header"));
        answer
            .headers
            .insert("X-GitHub-Request-Id", "b:2".parse().expect("a header"));
        let correlation = Correlation::of(&answer.headers);
        let error = Error::new(
            "open a session",
            correlation,
            Cause::Refused(Refusal::of(&answer)),
        );
        assert_eq!(
            error.to_string(),
            "could not open a session (ActivityId a-1, X-GitHub-Request-Id b:2)"
        );
        assert_eq!(error.retry(), Retry::Later(None));
    }
}
