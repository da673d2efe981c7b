//! What is taken from a request: as axum does, with our own errors.

use aide::{OperationInput, generate::GenContext, openapi::Operation};
use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    http::request::Parts,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::ApiError;

/// The parameters in a path.
pub(super) struct Path<T>(pub(super) T);

/// The parameters after the question mark.
pub(super) struct Query<T>(pub(super) T);

/// A body in JSON.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(wrong) => Err(ApiError::malformed(wrong.status(), &wrong.body_text())),
        }
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Query::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(wrong) => Err(ApiError::malformed(wrong.status(), &wrong.body_text())),
        }
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        match axum::Json::from_request(request, state).await {
            Ok(axum::Json(value)) => Ok(Self(value)),
            Err(wrong) => Err(ApiError::malformed(wrong.status(), &wrong.body_text())),
        }
    }
}

macro_rules! described_as {
    ($($ours:ident by $theirs:ty;)*) => {$(
        impl<T: JsonSchema> OperationInput for $ours<T> {
            fn operation_input(context: &mut GenContext, operation: &mut Operation) {
                <$theirs>::operation_input(context, operation);
            }
        }
    )*};
}

described_as! {
    Path by axum::extract::Path<T>;
    Query by axum::extract::Query<T>;
    Json by axum::Json<T>;
}
