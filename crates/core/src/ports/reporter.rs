//! Where results go.

use async_trait::async_trait;

use super::CallError;
use crate::{domain::RunRequest, view::RunView};

/// Tells the world how a run ended.
#[async_trait]
pub trait Reporter: Send + Sync {
    /// Makes what the world sees equal to `view`. Repeating it does no harm; a later view replaces an earlier one.
    ///
    /// `passed` is the run of the view's [`LastPass`](crate::view::LastPass), for comparison.
    async fn report(
        &self,
        view: &RunView,
        request: &RunRequest,
        passed: Option<&RunView>,
    ) -> Result<(), CallError>;
}
