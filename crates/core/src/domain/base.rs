//! The branch that a pull request is to be merged into.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The name of a pull request's base branch, such as `main`: what GitHub calls `base.ref`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = r"^(?!-)(?!@$)(?!.*(\.\.|@\{|//))(?!.*(^|/)\.)(?!.*(\.lock)(/|$))(?!.*[./]$)(?!/)[^\x00-\x20\x7f-\x9f~^:?*\\\[]{1,256}$")))]
#[serde(try_from = "String", into = "String")]
pub struct BaseRef(String);

/// A text that no branch of git's can be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name of a branch")]
pub struct ParseBaseRefError(String);

impl BaseRef {
    /// The most bytes of a name: more than a file system lets git keep.
    const LONGEST: usize = 1024;

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns whether git takes a name for a branch: `git check-ref-format`.
fn is_branch(name: &str) -> bool {
    let forbidden = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let parts = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    name.len() <= BaseRef::LONGEST
        && !name.contains(forbidden)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.starts_with('-')
        && !name.ends_with('.')
        && name != "@"
        && name.split('/').all(parts)
}

impl fmt::Display for BaseRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for BaseRef {
    type Err = ParseBaseRefError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for BaseRef {
    type Error = ParseBaseRefError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if is_branch(&text) {
            Ok(Self(text))
        } else {
            Err(ParseBaseRefError(text))
        }
    }
}

impl From<BaseRef> for String {
    fn from(base: BaseRef) -> Self {
        base.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_takes_for_a_branch_is_one_and_nothing_else() {
        for name in ["main", "release-1.2", "feature/a.b", "ümlaut"] {
            assert_eq!(name.parse::<BaseRef>().map(String::from), Ok(name.to_owned()));
        }
        let long = "a".repeat(1025);
        let refused = [
            "", "a b", "a..b", "a^", "a:b", "-a", "a/", "/a", "a//b", ".a", "a/.b", "a.lock", "a.", "@",
            "a@{b", "a\nb", &long,
        ];
        for name in refused {
            assert_eq!(name.parse::<BaseRef>(), Err(ParseBaseRefError(name.into())));
        }
    }
}
