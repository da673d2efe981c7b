//! What is said of calls to GitHub that did not succeed.

use blueproof_core::ports::{CallError, RunStatus};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;

use crate::api::{ApiError, ApiRetry};

/// Returns the error of a status that could not be shown.
pub(super) fn call_error(error: &ApiError, status: &RunStatus) -> CallError {
    let run = status.view.id;
    let failed = |code, message: String| Diagnostic::error(code, message).caused_by(error);
    match error.retry {
        ApiRetry::Later => {
            let message = format!("could not show {run} on GitHub, which was not reached or erred");
            CallError::later(failed(Code::GitHubNotReached, message))
        }
        ApiRetry::After(until) => {
            let message = format!("could not show {run} on GitHub, which takes no requests before {until}");
            CallError::later(failed(Code::GitHubRateLimited, message))
        }
        ApiRetry::Never => {
            let message = format!("could not show {run} on GitHub, which refuses it");
            let hint = "the App needs write access to checks, and to be installed in the repository";
            CallError::never(failed(Code::GitHubRefuses, message).hint(hint))
        }
    }
}

/// Returns the error of a call that is not made because GitHub has named a time.
pub(super) fn limited(until: Timestamp) -> CallError {
    let message = format!("GitHub takes no requests before {until}");
    CallError::later(Diagnostic::error(Code::GitHubRateLimited, message))
}

/// Returns the error of an update that is too soon after the last one. Nothing is wrong, and yet it is not acknowledged: the engine
/// calls again only for what was not.
pub(super) fn too_soon(until: Timestamp) -> CallError {
    let message = format!("the check run is updated at {until}, 15 s after the last time");
    CallError::when_free(Diagnostic::warning(Code::CheckRunUpdateLater, message))
}
