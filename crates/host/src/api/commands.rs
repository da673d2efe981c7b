//! What is asked for: left in the store, and taken up by whoever leads.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use blueproof_core::{
    domain::RequestKey,
    ports::{Command, StoredCommand},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Api, ApiError, Caller, Role,
    extract::{self, Path, Query},
    status::check_own_decision,
};
use crate::wire::COMMANDS_A_PAGE;

/// How many commands are returned at once where nobody says how many, and how many at most.
const COMMANDS: (u32, u32) = (100, COMMANDS_A_PAGE);

/// Which commands.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// How many at most.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<u32>,
}

/// Commands, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CommandList {
    items: Vec<StoredCommand>,
}

/// A command.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct OfCommand {
    /// Its key.
    key: RequestKey,
}

/// Stores a command. It is answered as soon as that outlives a power cut, which is before it is decided about. Refused while another
/// process leads: that would decide by its own policy, which may approve what this server's does not.
pub(super) async fn submit(
    State(api): State<Arc<Api>>,
    caller: Caller,
    extract::Json(command): extract::Json<Command>,
) -> Result<(StatusCode, Json<StoredCommand>), ApiError> {
    caller.check(needed(&command))?;
    command
        .check()
        .map_err(|why| ApiError::malformed(StatusCode::BAD_REQUEST, &why))?;
    check_own_decision(&api)?;
    let command = command.by(|claimed| caller.acts_as(claimed));
    let key = command.key().clone();
    let now = api.service.host().ports().clock.now();
    api.store.submit(now, command).await?;
    Ok((StatusCode::ACCEPTED, find(&api, key).await?))
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<CommandList>, ApiError> {
    let limit = super::bounded(wanted.limit, COMMANDS)?;
    let items = api.store.all_commands(limit).await?;
    Ok(Json(CommandList { items }))
}

pub(super) async fn get(
    State(api): State<Arc<Api>>,
    Path(OfCommand { key }): Path<OfCommand>,
) -> Result<Json<StoredCommand>, ApiError> {
    find(&api, key).await
}

async fn find(api: &Api, key: RequestKey) -> Result<Json<StoredCommand>, ApiError> {
    let found = api.store.command(&key).await?;
    found
        .map(Json)
        .ok_or_else(|| ApiError::missing(format_args!("command `{}`", key.0)))
}

/// Returns the role that a command needs.
fn needed(command: &Command) -> Role {
    match command {
        Command::Run { .. } | Command::Cancel { .. } | Command::Retry { .. } => Role::Run,
        Command::Approve { .. } | Command::Revoke { .. } | Command::Hold { .. } | Command::Resume { .. } => {
            Role::Approve
        }
        Command::ApplyQuota { .. }
        | Command::Entitle { .. }
        | Command::ChangeBase { .. }
        | Command::ClosePullRequest { .. }
        | Command::ReopenPullRequest { .. }
        | Command::Synchronize { .. } => Role::Admin,
    }
}
