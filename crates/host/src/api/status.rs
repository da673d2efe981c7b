//! Whether the scheduler lives, is ready, and how it stands.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use blueproof_core::metrics::{Exposition, Format, families};
use blueproof_diagnostic::{Code, Diagnostic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Api, ApiError};
use crate::ServiceStatus;

/// How a scheduler stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// What it does.
    pub standing: StandingKind,
    /// What keeps it from deciding, if anything does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Diagnostic>,
}

/// What a scheduler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StandingKind {
    /// It has not come to lead or to follow yet.
    Starting,
    /// It leads.
    Leading,
    /// Another process leads.
    Following,
    /// Nothing can be decided or written; it is tried again.
    Failing,
    /// It was told to stop.
    Stopped,
}

impl Status {
    fn of(version: &str, standing: &ServiceStatus) -> Self {
        let (standing, problem) = match standing {
            ServiceStatus::Starting => (StandingKind::Starting, None),
            ServiceStatus::Leading => (StandingKind::Leading, None),
            ServiceStatus::Following => (StandingKind::Following, None),
            ServiceStatus::Failing(problem) => (StandingKind::Failing, Some((**problem).clone())),
            ServiceStatus::Stopped => (StandingKind::Stopped, None),
        };
        Self {
            version: version.into(),
            standing,
            problem,
        }
    }
}

pub(super) async fn status(State(api): State<Arc<Api>>) -> Json<Status> {
    Json(Status::of(&api.version, &api.service.standing().borrow()))
}

/// Answers that the process lives, whatever it does: nothing is looked at.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Answers whether this process leads, and so decides what it is asked for, and whether its store can be read.
pub(super) async fn readyz(State(api): State<Arc<Api>>) -> Result<&'static str, ApiError> {
    if let Some(why) = not_leading(&api) {
        return Err(ApiError::unavailable(why));
    }
    api.store.runs_before(None, 1).await?;
    Ok("ok\n")
}

/// Returns why this process does not lead, where it does not.
fn not_leading(api: &Api) -> Option<Diagnostic> {
    let not_serving = |why| Some(Diagnostic::error(Code::NotServing, why));
    match api.service.standing().borrow().clone() {
        ServiceStatus::Leading => None,
        ServiceStatus::Failing(problem) => Some(*problem),
        ServiceStatus::Starting => not_serving("the scheduler is starting"),
        ServiceStatus::Stopped => not_serving("the scheduler was told to stop"),
        ServiceStatus::Following => Some(led_by_another()),
    }
}

/// Refuses what another process would decide, by a policy that may approve what this scheduler's does not.
pub(super) fn check_own_decision(api: &Api) -> Result<(), ApiError> {
    let is_following = *api.service.standing().borrow() == ServiceStatus::Following;
    match is_following {
        true => Err(ApiError::unavailable(led_by_another())),
        false => Ok(()),
    }
}

fn led_by_another() -> Diagnostic {
    let why = "another process leads this store, by a policy of its own";
    Diagnostic::error(Code::NotServing, why)
        .hint("this scheduler takes over when that process ends; until then it accepts no commands")
}

/// Answers with what Prometheus reads, as `blueproof metrics` prints it.
pub(super) async fn metrics(State(api): State<Arc<Api>>, headers: HeaderMap) -> Result<Response, ApiError> {
    let accepts = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    let format = match accepts.is_some_and(|accepts| accepts.contains("application/openmetrics-text")) {
        true => Format::OpenMetrics,
        false => Format::Prometheus,
    };
    let page = api
        .service
        .ask(blueproof_core::scheduler::Scheduler::metrics)
        .await;
    let page = page.ok_or_else(|| match not_leading(&api) {
        Some(why) => ApiError::unavailable(why),
        None => {
            let message = "the scheduler ended while it was asked";
            ApiError::unavailable(Diagnostic::error(Code::NotServing, message))
        }
    })?;
    let mut exposition = Exposition::new(format);
    page.write(families(), &mut exposition);
    for write in &api.metrics {
        write(&mut exposition);
    }
    Ok((
        StatusCode::OK,
        [(header::CONTENT_TYPE, format.content_type())],
        exposition.finish(),
    )
        .into_response())
}
