//! What a request is answered with that cannot be met: a diagnostic, as everywhere.

use aide::{
    OperationOutput,
    generate::GenContext,
    openapi::{Operation, Response as Described, StatusCode as Code_},
};
use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use blueproof_core::ports::{OutputError, StoreError};
use blueproof_diagnostic::{Code, Diagnostic};

use crate::output_problem::{self, OUTPUT_PROBLEM};

/// Why a request is not met.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    diagnostic: Box<Diagnostic>,
    /// Which problem with output it is, for a client that goes by it.
    kind: Option<String>,
}

impl ApiError {
    fn new(status: StatusCode, diagnostic: Diagnostic) -> Self {
        Self {
            status,
            diagnostic: Box::new(diagnostic),
            kind: None,
        }
    }

    pub(super) fn unauthorized(diagnostic: Diagnostic) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, diagnostic)
    }

    pub(super) fn forbidden(diagnostic: Diagnostic) -> Self {
        Self::new(StatusCode::FORBIDDEN, diagnostic)
    }

    pub(super) fn too_many(diagnostic: Diagnostic) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, diagnostic)
    }

    pub(super) fn unavailable(diagnostic: Diagnostic) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, diagnostic)
    }

    /// Says that a request is not what the description says, with the status that says in which way.
    pub(super) fn malformed(status: StatusCode, why: &str) -> Self {
        let message = "the request is not what the API takes";
        let diagnostic = Diagnostic::error(Code::RequestMalformed, message).because(why);
        Self::new(status, diagnostic.hint("`/openapi.json` describes every request"))
    }

    pub(super) fn missing(what: impl std::fmt::Display) -> Self {
        let diagnostic = Diagnostic::error(Code::NotFound, format!("there is no {what}"));
        Self::new(StatusCode::NOT_FOUND, diagnostic)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let status = match error.diagnostic.code == Code::KeyReused {
            true => StatusCode::CONFLICT,
            false => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, *error.diagnostic)
    }
}

impl From<OutputError> for ApiError {
    fn from(error: OutputError) -> Self {
        let status = match &error {
            OutputError::Missing(_)
            | OutputError::Removed(_)
            | OutputError::NoFile(_)
            | OutputError::Position { .. } => StatusCode::NOT_FOUND,
            OutputError::Disturbed { .. } => StatusCode::CONFLICT,
            OutputError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            OutputError::Log { .. }
            | OutputError::File { .. }
            | OutputError::Artifacts { .. }
            | OutputError::NotAnswered(_)
            | OutputError::Run { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self {
            kind: output_problem::word(&error),
            ..Self::new(status, error.to_diagnostic())
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.diagnostic)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let asks = HeaderValue::from_static("Bearer realm=\"blueproof\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, asks);
        }
        if let Some(kind) = self.kind.and_then(|kind| HeaderValue::try_from(kind).ok()) {
            response.headers_mut().insert(OUTPUT_PROBLEM, kind);
        }
        response
    }
}

impl OperationOutput for ApiError {
    type Inner = Diagnostic;

    fn operation_response(context: &mut GenContext, operation: &mut Operation) -> Option<Described> {
        Json::<Diagnostic>::operation_response(context, operation)
    }

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Vec<(Option<Code_>, Described)> {
        Vec::new()
    }
}
