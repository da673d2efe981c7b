//! Text that must not be printed.

use std::fmt;

use serde::Deserialize;

/// A token, a key or a runner's configuration: its `Debug` shows nothing of it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Makes a secret of a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether there is nothing to keep secret.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_nothing_of_itself() {
        let secret = Secret::new("ghs_abc");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(format!("{:#?}", Some(secret)).matches("ghs").count(), 0);
    }
}
