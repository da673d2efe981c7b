//! Where runs are reported to: files, GitHub, the program that embeds us.

use async_trait::async_trait;

use super::CallError;
use crate::{domain::RunRequest, view::RunView};

/// Makes what the world sees of a run equal to how it stands.
///
/// It is told states and no changes: several changes in a short time come as one call with the newest state. One call about
/// a run is under way at a time. Several reporters stand side by side, and none waits for another.
#[async_trait]
pub trait Reporter: Send + Sync {
    /// Returns its name, by which it is told apart from the others.
    fn name(&self) -> &str;

    /// Returns what it is called for.
    fn interest(&self) -> Interest {
        Interest::EveryChange
    }

    /// Makes what the world sees equal to `status`, and acknowledges its revision by that. Repeating it does no harm, and a
    /// later revision replaces an earlier one. After a restart the newest is told again.
    ///
    /// An error is no acknowledgement: it is called again, for the newest status by then.
    async fn report(&self, status: &RunStatus) -> Result<(), CallError>;
}

/// What a reporter is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Each change of a run, and its end.
    EveryChange,
    /// The end of a run alone.
    End,
}

/// A run as reporters are told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStatus {
    /// Grows with each change of the run. How it waits among the others may be told anew under the same one.
    pub revision: u64,
    /// How it stands, with its row.
    pub view: RunView,
    /// What was asked for.
    pub request: RunRequest,
    /// The run of the view's [`LastPass`](crate::view::LastPass), for comparison. It is given with the end of a run.
    pub passed: Option<RunView>,
}
