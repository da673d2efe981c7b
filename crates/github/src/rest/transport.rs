//! octocrab's client at one address.

use std::time::Duration;

use octocrab::Octocrab;

use crate::api::ApiError;

/// How long GitHub has to take a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// How long GitHub has for an answer, and for each further part of it.
const READ: Duration = Duration::from_secs(30);

/// octocrab's client at one address.
pub(super) struct Transport {
    pub(super) client: Octocrab,
}

impl Transport {
    /// Returns a client that asks an API at an address. Nothing is asked yet.
    pub(super) fn to(address: &str) -> Result<Self, ApiError> {
        let client = Octocrab::builder()
            .base_uri(address)
            .map(|builder| {
                builder
                    .set_connect_timeout(Some(CONNECT))
                    .set_read_timeout(Some(READ))
            })
            .and_then(|builder| builder.build());
        let client = client.map_err(|source| ApiError {
            source: Some(Box::new(source)),
            ..ApiError::never(format!("use `{address}` as the address of GitHub's API"))
        })?;
        Ok(Self { client })
    }
}
