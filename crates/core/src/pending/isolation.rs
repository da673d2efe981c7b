//! Why content of strangers does not run on its cluster.

use std::fmt;

use blueproof_diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};

use crate::domain::ClusterName;

/// What keeps content of a stranger from its cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IsolationPending {
    /// The cluster.
    pub cluster: ClusterName,
    /// Why it cannot run it, and what to do, as its driver says; absent where the driver says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Diagnostic>,
}

impl fmt::Display for IsolationPending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, why } = self;
        write!(
            f,
            "approved; {cluster} does not run the code of pull requests apart from the machine"
        )?;
        let Some(why) = why else {
            return f.write_str(", as far as is known");
        };
        for cause in &why.causes {
            write!(f, ": {cause}")?;
        }
        for hint in &why.hints {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}
