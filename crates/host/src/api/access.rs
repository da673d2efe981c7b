//! Who asks, and what they may.

use std::sync::Arc;

use aide::OperationInput;
use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, header, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use blueproof_core::domain::Actor;
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Api, ApiError};

/// What a caller may. Each role has the rights of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read everything.
    Read,
    /// Ask for runs, cancel and retry them.
    Run,
    /// Approve, revoke, hold and resume, where the policy entitles whom the token names.
    Approve,
    /// Change queues and entitlements.
    Admin,
}

/// Who sends a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    /// What the token is called; whoever asks by a token acts as the local user of this name.
    pub(super) name: String,
    /// What it may.
    pub(super) role: Role,
    /// Whether it is the user that the scheduler runs as, on the unix socket: who acts is told by themselves then, as it is
    /// where they work on the store without a server.
    pub(super) is_owner: bool,
}

/// The user at the other end of a unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) uid: u32,
}

impl Caller {
    /// Returns an error unless it has a role.
    pub(super) fn check(&self, needed: Role) -> Result<(), ApiError> {
        if self.role >= needed {
            return Ok(());
        }
        let message = format!(
            "`{}` has the role {}, and this needs {}",
            self.name,
            self.role.as_str(),
            needed.as_str()
        );
        let hint = format!(
            "`blueproof-scheduler token create NAME --role {}` makes a token that may",
            needed.as_str()
        );
        Err(ApiError::forbidden(
            Diagnostic::error(Code::RoleTooLow, message).hint(hint),
        ))
    }

    /// Returns who a request of this caller is by, which says itself to be by `claimed`.
    pub(super) fn acts_as(&self, claimed: Actor) -> Actor {
        match self.is_owner {
            true => claimed,
            false => Actor::Local(self.name.clone()),
        }
    }
}

impl Role {
    /// Every role, the one with the fewest rights first.
    pub const ALL: [Role; 4] = [Role::Read, Role::Run, Role::Approve, Role::Admin];

    /// Returns it as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Read => "read",
            Role::Run => "run",
            Role::Approve => "approve",
            Role::Admin => "admin",
        }
    }
}

/// Lets through whoever is known and has not too many requests already, and notes who it is.
pub(super) async fn authenticate(State(api): State<Arc<Api>>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let known = caller(&api, peer, request.headers());
    match known.and_then(|caller| Ok((api.turns.take(&caller.name)?, caller))) {
        Ok((turn, caller)) => {
            request.extensions_mut().insert(caller);
            let token = bearer(request.headers()).map(str::to_owned);
            let response = next.run(request).await;
            let is_let_in = move || match &token {
                Some(token) => matches!(api.tokens.caller(token, Timestamp::now()), Ok(Some(_))),
                None => true,
            };
            turn.until_sent(response, Box::new(is_let_in))
        }
        Err(error) => error.into_response(),
    }
}

fn caller(api: &Api, peer: Option<Peer>, headers: &HeaderMap) -> Result<Caller, ApiError> {
    if let Some(token) = bearer(headers) {
        return api.tokens.caller(token, Timestamp::now())?.ok_or_else(unknown);
    }
    let own = rustix::process::geteuid().as_raw();
    match peer {
        // The superuser may do all that this user may, whatever is said here.
        Some(Peer { uid }) if uid == own || uid == 0 => Ok(Caller {
            name: format!("uid {uid}"),
            role: Role::Admin,
            is_owner: true,
        }),
        _ => Err(unknown()),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn unknown() -> ApiError {
    let diagnostic = Diagnostic::error(
        Code::NotAuthenticated,
        "no token that is known came with the request",
    );
    ApiError::unauthorized(diagnostic.hint("send one as `Authorization: Bearer TOKEN`"))
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Caller>().cloned().ok_or_else(unknown)
    }
}

impl OperationInput for Caller {}
