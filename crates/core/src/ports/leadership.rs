//! Who leads.

use async_trait::async_trait;

use super::StoreError;

/// The right to append to a store, which one process has at a time: a lock on its file, or a Lease of Kubernetes.
///
/// It spares work, and is no fence: what is appended is compared with the end of the log as well, so that a process that
/// still believes that it leads does no harm.
#[async_trait]
pub trait Leadership: Send + Sync {
    /// Takes the right, or returns `None` while somebody has it. Does not wait for whoever has it.
    async fn try_lead(&self) -> Result<Option<Box<dyn Term>>, StoreError>;
}

/// The right to append, for as long as it lasts. Dropping it gives it back, as the end of the process does.
#[async_trait]
pub trait Term: Send + Sync {
    /// Returns once the right is lost, such as a lease that could not be renewed. Safe to drop, and to call again.
    async fn lost(&self);
}
