//! Whether a cluster keeps the code of strangers from its machines and from other runs.

use blueproof_diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};

/// What a driver says of the attempts on its cluster whose content is a stranger's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Isolation {
    /// It says nothing, as drivers did before they were asked. It counts as [`Missing`](Self::Missing).
    #[default]
    Unknown,
    /// Each has an identity, namespaces and limits of its own, and nothing of ours or of another attempt is in its reach.
    Sandboxed,
    /// They run as anything else does: its admin has configured that nothing on it needs protection.
    Disposable,
    /// They cannot be run, and why.
    Missing {
        /// Why, and what to do.
        diagnostic: Box<Diagnostic>,
    },
}

impl Isolation {
    /// Returns whether content of strangers may run there.
    pub fn admits_strangers(&self) -> bool {
        match self {
            Isolation::Sandboxed | Isolation::Disposable => true,
            Isolation::Unknown | Isolation::Missing { .. } => false,
        }
    }

    /// Returns whether nothing was said.
    pub fn is_unknown(&self) -> bool {
        *self == Isolation::Unknown
    }
}
