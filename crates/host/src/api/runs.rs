//! Runs, as they are stored.

use std::sync::Arc;

use axum::{Json, extract::State};
use blueproof_core::{
    domain::{RequestKey, RunId, RunRequest},
    view::RunView,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Api, ApiError,
    extract::{Path, Query},
};
use crate::wire::RUNS_A_PAGE;

/// How many runs are returned at once where nobody says how many, and how many at most.
const RUNS: (u32, u32) = (100, RUNS_A_PAGE);

/// Which runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// How many at most.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<u32>,
    /// Only those that were asked for before this one: the last of the page before.
    before: Option<RunId>,
}

/// Runs, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunList {
    items: Vec<RunView>,
}

/// A run.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct OfRun {
    /// Its id.
    run: RunId,
}

/// The run that a request made.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct OfRequest {
    /// The key of the request.
    key: RequestKey,
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<RunList>, ApiError> {
    let limit = super::bounded(wanted.limit, RUNS)?;
    let items = api.store.runs_before(wanted.before, limit).await?;
    Ok(Json(RunList { items }))
}

pub(super) async fn get(
    State(api): State<Arc<Api>>,
    Path(OfRun { run }): Path<OfRun>,
) -> Result<Json<RunView>, ApiError> {
    let found = api.store.run(run).await?;
    found
        .map(Json)
        .ok_or_else(|| ApiError::missing(format_args!("run {run}")))
}

pub(super) async fn request(
    State(api): State<Arc<Api>>,
    Path(OfRun { run }): Path<OfRun>,
) -> Result<Json<RunRequest>, ApiError> {
    let found = api.store.request(run).await?;
    found
        .map(Json)
        .ok_or_else(|| ApiError::missing(format_args!("run {run}")))
}

pub(super) async fn of_request(
    State(api): State<Arc<Api>>,
    Path(OfRequest { key }): Path<OfRequest>,
) -> Result<Json<RunView>, ApiError> {
    let found = api.store.run_of(&key).await?;
    found
        .map(Json)
        .ok_or_else(|| ApiError::missing(format_args!("run of the request `{}`", key.0)))
}
