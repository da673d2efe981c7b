//! Names of blueprints, profiles and queues: DNS labels, as Kubernetes wants them.

use std::{fmt, str::FromStr};

use blueproof_diagnostic::name::{self, ParseNameError};
use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// A DNS subdomain as Kubernetes has it: 1 to 63 of `a-z`, `0-9`, `-` and `.`, with a letter or digit at
        /// both ends.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(extend("pattern" = r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$")))]
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
                name::check(text).map(|()| Self(text.into()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseNameError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                name::check(&text).map(|()| Self(text))
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
