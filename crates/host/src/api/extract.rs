//! What is taken from a request: as axum does, with our own errors.

use aide::{OperationInput, generate::GenContext, openapi::Operation};
use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    http::{StatusCode, request::Parts},
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use super::ApiError;

/// The largest number up to which a floating point number is exactly the whole one that it stands for.
const MOST_EXACT: i64 = 1 << 53;

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
        let mut value: Value = match axum::Json::from_request(request, state).await {
            Ok(axum::Json(value)) => value,
            Err(wrong) => return Err(ApiError::malformed(wrong.status(), &wrong.body_text())),
        };
        be_whole(&mut value);
        serde_json::from_value(value)
            .map(Self)
            .map_err(|wrong| ApiError::malformed(StatusCode::UNPROCESSABLE_ENTITY, &wrong.to_string()))
    }
}

/// Writes each whole number as one: in JSON `3.0` is the same number as `3`.
fn be_whole(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|_| number.is_f64());
            // Each whole number up to here is exact.
            let whole = float.filter(|float| float.fract() == 0.0 && float.abs() <= MOST_EXACT as f64);
            if let Some(whole) = whole {
                *number = Number::from(whole as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(be_whole),
        Value::Object(members) => members.values_mut().for_each(be_whole),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        let mut value: Value =
            serde_json::from_str(r#"{"a": [3.0, 1e3, -0.0, 0.5], "b": 18446744073709551615}"#)
                .expect("it is JSON");
        be_whole(&mut value);
        assert_eq!(value, json!({ "a": [3, 1000, 0, 0.5], "b": u64::MAX }));
    }
}
