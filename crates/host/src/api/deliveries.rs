//! Deliveries of webhooks, as they are stored.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use blueproof_core::ports::StoredDelivery;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Api, ApiError, Caller, Role,
    extract::{Path, Query},
};
use crate::wire::DELIVERIES_A_PAGE;

/// How many deliveries are returned at once where nobody says how many, and how many at most.
const DELIVERIES: (u32, u32) = (100, DELIVERIES_A_PAGE);

/// Which deliveries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// How many at most.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<u32>,
}

/// Deliveries, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DeliveryList {
    items: Vec<StoredDelivery>,
}

/// A delivery.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct OfDelivery {
    /// Its sender's name for it.
    delivery: String,
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<DeliveryList>, ApiError> {
    let limit = super::bounded(wanted.limit, DELIVERIES)?;
    let items = api.deliveries.deliveries(limit).await?;
    Ok(Json(DeliveryList { items }))
}

pub(super) async fn get(
    State(api): State<Arc<Api>>,
    Path(OfDelivery { delivery }): Path<OfDelivery>,
) -> Result<Json<StoredDelivery>, ApiError> {
    let (stored, _) = find(&api, &delivery).await?;
    Ok(Json(stored))
}

/// Answers with the body as it came, which is a stranger's: nothing that is asked by a browser may take it for a page.
pub(super) async fn payload(
    State(api): State<Arc<Api>>,
    Path(OfDelivery { delivery }): Path<OfDelivery>,
) -> Result<Response, ApiError> {
    let (_, body) = find(&api, &delivery).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, body).into_response())
}

/// Has a delivery worked on once more, by whoever leads. What comes of it has the keys that it had before, so that nothing is done
/// twice.
pub(super) async fn replay(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Path(OfDelivery { delivery }): Path<OfDelivery>,
) -> Result<(StatusCode, Json<StoredDelivery>), ApiError> {
    caller.check(Role::Admin)?;
    match api.deliveries.replay_delivery(&delivery).await? {
        true => {}
        false => return Err(missing(&delivery)),
    }
    let (stored, _) = find(&api, &delivery).await?;
    Ok((StatusCode::ACCEPTED, Json(stored)))
}

async fn find(api: &Api, id: &str) -> Result<(StoredDelivery, Vec<u8>), ApiError> {
    let found = api.deliveries.delivery(id).await?;
    found.ok_or_else(|| missing(id))
}

fn missing(id: &str) -> ApiError {
    ApiError::missing(format_args!("delivery `{id}`"))
}
