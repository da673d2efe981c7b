//! Names of blueprints, profiles and queues: DNS labels, as Kubernetes wants them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A text that cannot be a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a name: {rule}")]
pub struct ParseNameError {
    text: String,
    rule: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// A DNS subdomain as Kubernetes has it: 1 to 63 of `a-z`, `0-9`, `-` and `.`, with a letter or digit at
        /// both ends.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseNameError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                check(text).map(|()| Self(text.into()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseNameError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                check(&text).map(|()| Self(text))
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    };
}

name! {
    /// The name of a blueprint.
    BlueprintName
}
name! {
    /// The name of a blueprint's profile.
    ProfileName
}
name! {
    /// The name of a queue (Kueue: a LocalQueue).
    QueueName
}

fn check(text: &str) -> Result<(), ParseNameError> {
    let refuse = |rule| {
        Err(ParseNameError {
            text: text.into(),
            rule,
        })
    };
    if text.is_empty() || text.len() > 63 {
        return refuse("it must have 1 to 63 characters");
    }
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    if !text.bytes().all(inner) {
        return refuse("only a-z, 0-9, `-` and `.` are allowed");
    }
    let end = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    if !end(text.bytes().next()) || !end(text.bytes().last()) {
        return refuse("it must start and end with a letter or a digit");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_labels() {
        for good in ["nano-lm", "qwen2.5-alpaca", "a", "9"] {
            assert!(good.parse::<BlueprintName>().is_ok(), "{good}");
        }
        for bad in ["", "Nano", "a b", "-a", "a-", ".", "a/b", "ä", &"x".repeat(64)] {
            assert!(bad.parse::<BlueprintName>().is_err(), "{bad}");
        }
    }
}
