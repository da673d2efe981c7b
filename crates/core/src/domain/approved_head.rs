//! Content that may run.

use super::{Actor, Head};

/// A head that somebody entitled has approved.
///
/// Only the scheduler's gate makes one, so whatever asks for one cannot run content that nobody read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedHead {
    head: Head,
    by: Actor,
}

impl ApprovedHead {
    /// Returns a head that the gate finds approved now, or found so when it was admitted, as the log says.
    pub(crate) fn new(head: Head, by: Actor) -> Self {
        Self { head, by }
    }

    /// Returns the head.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns who approved it.
    pub fn by(&self) -> &Actor {
        &self.by
    }
}
