//! What can fail between GitHub and the scheduler.

use blueproof_core::ports::{CallError, Retry, StoreError};
use blueproof_diagnostic::Diagnostic;

use crate::{
    api::{ApiError, ApiRetry},
    entitlement::EntitlementError,
};

/// Something that failed between GitHub and the scheduler.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// GitHub could not be asked.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// A command could not be left, or a run not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The blueprints at a commit could not be read.
    #[error(transparent)]
    Blueprints(#[from] CallError),
    /// Who may approve could not be read.
    #[error(transparent)]
    Entitlement(#[from] EntitlementError),
}

impl IntakeError {
    /// Returns it as it is shown to people.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::Store(error) => (*error.diagnostic).clone(),
            Self::Blueprints(error) => (*error.diagnostic).clone(),
            Self::Api(error) => error.diagnostic(),
            Self::Entitlement(error) => error.diagnostic(),
        }
    }

    /// Returns whether another attempt may help.
    pub fn retry(&self) -> ApiRetry {
        match self {
            Self::Api(error) | Self::Entitlement(EntitlementError::Api(error)) => error.retry,
            Self::Store(_) => ApiRetry::Later,
            Self::Blueprints(error) => match error.retry {
                Retry::Later | Retry::WhenFree | Retry::WhenAvailable => ApiRetry::Later,
                Retry::Never => ApiRetry::Never,
            },
            Self::Entitlement(
                EntitlementError::Owners(_)
                | EntitlementError::TooManyOwners(_)
                | EntitlementError::Policy(_)
                | EntitlementError::NoBranch,
            ) => ApiRetry::Never,
        }
    }
}
