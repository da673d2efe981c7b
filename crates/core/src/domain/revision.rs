//! Which commit a folder was checked out from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The commit that a folder was checked out from. What the folder holds may differ from it: what a run tests is its
/// [`Head`](super::Head).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// The commit, in hexadecimal digits.
    pub commit: String,
    /// The branch; absent where none is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Whether the folder holds what no commit has.
    #[serde(default)]
    pub has_uncommitted_changes: bool,
}

impl Revision {
    /// Returns the first digits of the commit, as git shows them.
    pub fn short(&self) -> &str {
        self.commit.get(..7).unwrap_or(&self.commit)
    }
}

impl fmt::Display for Revision {
    /// Writes `1a2b3c4 on main, with uncommitted changes`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short())?;
        if let Some(branch) = &self.branch {
            write!(f, " on {branch}")?;
        }
        if self.has_uncommitted_changes {
            f.write_str(", with uncommitted changes")?;
        }
        Ok(())
    }
}
