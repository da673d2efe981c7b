//! Whether a job may start on one of our runners: asked by GitHub's runner before the first step.
//!
//! What the runner says of itself only says which workflow run to look up: its event and its head are GitHub's to tell, since a workflow
//! sets variables as it likes. No answer is a refusal, and so is one that is not understood.

use std::sync::Arc;

use async_trait::async_trait;
use axum::{
    Json, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use blueproof_core::{approval::HeadStatus, ports::RunnerName};
use blueproof_diagnostic::{Code, Diagnostic};
use serde::Deserialize;

/// The path of the question.
pub const HOOK_PATH: &str = "/runner-hook/v1/job";

/// What a runner asks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobQuestion {
    /// The runner, by its name.
    pub runner: RunnerName,
    /// `OWNER/NAME` of the repository that the workflow is of.
    pub repository: String,
    /// The number of the workflow run.
    pub workflow_run: u64,
}

/// Judges whether jobs may start.
#[async_trait]
pub trait JobJudge: Send + Sync {
    /// Returns why a job may start.
    ///
    /// # Errors
    ///
    /// It may not, and why; also where that cannot be told.
    async fn judge(&self, question: &JobQuestion) -> Result<String, Diagnostic>;
}

/// Returns why a workflow run of an event may start with its head as that stands in the gate.
///
/// # Errors
///
/// It may not.
pub fn may_start(event: &str, trusted_events: &[String], head: &HeadStatus) -> Result<String, Diagnostic> {
    if trusted_events.iter().any(|trusted| trusted == event) {
        return Ok(format!(
            "`{event}` is of who may write to the repository, and needs no approval"
        ));
    }
    match head {
        HeadStatus::Approved { by, .. } => Ok(format!("its commit is approved by {by}")),
        HeadStatus::Refused(why) => Err(refusal(&format!("of the event `{event}`: {why}"))),
    }
}

/// Returns the refusal of a job.
pub fn refusal(why: &str) -> Diagnostic {
    let refused = Diagnostic::error(Code::JobRefused, format!("this job may not start: it is {why}"));
    refused.hint("have its commit approved, and run the job again")
}

/// Returns what answers runners.
pub fn router(judge: Arc<dyn JobJudge>) -> Router {
    Router::new().route(HOOK_PATH, get(answer)).with_state(judge)
}

async fn answer(State(judge): State<Arc<dyn JobJudge>>, Query(question): Query<JobQuestion>) -> Response {
    let JobQuestion {
        runner,
        repository,
        workflow_run,
    } = &question;
    match judge.judge(&question).await {
        Ok(why) => {
            tracing::info!(%runner, repository, workflow_run, why, "a job may start");
            why.into_response()
        }
        Err(refused) => {
            tracing::warn!(%runner, repository, workflow_run, code = %refused.code, "{}", refused.message);
            (StatusCode::FORBIDDEN, Json(refused)).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use blueproof_core::{approval::HeadRefusal, domain::Actor};

    use super::*;
    use crate::settings::TRUSTED_EVENTS;

    #[test]
    fn a_job_starts_where_its_event_is_trusted_or_its_head_is_approved() {
        let approved = HeadStatus::Approved {
            pull_request: 12,
            by: Actor::Local("grace".into()),
            expires_at: None,
        };
        let refused = HeadStatus::Refused(HeadRefusal::NotApproved);
        let trusted = TRUSTED_EVENTS.map(str::to_owned);
        for (event, head, starts) in [
            ("push", &refused, true),
            ("schedule", &refused, true),
            ("pull_request", &refused, false),
            ("pull_request", &approved, true),
            // These run with the rights of the base, and are used to carry out heads.
            ("pull_request_target", &refused, false),
            ("workflow_run", &refused, false),
            ("issue_comment", &refused, false),
            ("", &refused, false),
            ("Push", &refused, false),
        ] {
            assert_eq!(may_start(event, &trusted, head).is_ok(), starts, "{event}");
        }
        assert!(
            may_start("push", &[], &refused).is_err(),
            "an admin may trust none"
        );
    }
}
