//! A call to GitHub that did not succeed.

use std::fmt;

use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;

/// A call to GitHub that did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing}{}", Answered(*.status, .request_id.as_deref()))]
pub struct ApiError {
    /// What was tried, on what.
    pub doing: String,
    /// Whether another attempt may help.
    pub retry: ApiRetry,
    /// GitHub's answer, where there was one.
    pub status: Option<u16>,
    /// GitHub's name for the request (`X-GitHub-Request-Id`), for those who ask GitHub about it.
    pub request_id: Option<String>,
    /// Why.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Whether another attempt may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiRetry {
    /// It may: GitHub was not reached, or erred.
    Later,
    /// Not before this time: a rate limit is used up.
    After(Timestamp),
    /// It will not: there is no such thing, or we have no right to it.
    Never,
}

/// What GitHub answered, as part of a sentence.
struct Answered<'a>(Option<u16>, Option<&'a str>);

impl ApiError {
    /// Returns an error of a call whose fate is unknown, or that GitHub erred at.
    pub fn later(doing: impl Into<String>) -> Self {
        Self::of(doing, ApiRetry::Later)
    }

    /// Returns an error of a call that fails every time.
    pub fn never(doing: impl Into<String>) -> Self {
        Self::of(doing, ApiRetry::Never)
    }

    fn of(doing: impl Into<String>, retry: ApiRetry) -> Self {
        Self {
            doing: doing.into(),
            retry,
            status: None,
            request_id: None,
            source: None,
        }
    }

    /// Returns it as it is shown to people.
    pub fn diagnostic(&self) -> Diagnostic {
        let diagnostic = match self.retry {
            ApiRetry::Later => Diagnostic::error(Code::GitHubNotReached, self.to_string()),
            ApiRetry::After(at) => {
                let rate_limited = Diagnostic::error(Code::GitHubRateLimited, self.to_string());
                rate_limited.because(format!("GitHub answers again from {at} on"))
            }
            ApiRetry::Never => Diagnostic::error(Code::GitHubRefuses, self.to_string())
                .hint("look at the App's permissions, and at the repositories that it is installed in"),
        };
        match &self.source {
            Some(source) => diagnostic.caused_by(&**source),
            None => diagnostic,
        }
    }

    /// Returns whether GitHub says that there is no such thing, or none that we may see.
    pub fn is_not_found(&self) -> bool {
        matches!(self.status, Some(404 | 410))
    }
}

impl fmt::Display for Answered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (None, _) => Ok(()),
            (Some(status), None) => write!(f, ": GitHub answered {status}"),
            (Some(status), Some(id)) => write!(f, ": GitHub answered {status} (request {id})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_was_tried_and_what_github_answered() {
        let mut error = ApiError::never("read pull request 12 of kubeflow/trainer");
        assert_eq!(
            error.to_string(),
            "could not read pull request 12 of kubeflow/trainer"
        );
        assert!(!error.is_not_found());
        error.status = Some(404);
        error.request_id = Some("ABCD:1234".into());
        let expected =
            "could not read pull request 12 of kubeflow/trainer: GitHub answered 404 (request ABCD:1234)";
        assert_eq!(error.to_string(), expected);
        assert!(error.is_not_found());
    }
}
