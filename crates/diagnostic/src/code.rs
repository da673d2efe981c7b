//! Every code that a person can meet, in one table. A code is never given a second meaning.
//!
//! The table lies in files, one for each hundred: what a code is about says which hundred, and so which file, it belongs
//! to. There it stands in the order of the numbers, and takes the next that was never used.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

#[macro_use]
mod api;
#[macro_use]
mod blueprint;
#[macro_use]
mod command_line;
#[macro_use]
mod environment;
#[macro_use]
mod github;
#[macro_use]
mod gpu;
#[macro_use]
mod machine;
#[macro_use]
mod queue;
#[macro_use]
mod store;
#[macro_use]
mod time_limit;
#[macro_use]
mod verdict;

macro_rules! codes {
    ([] $($number:literal $name:ident $title:literal $explanation:literal)*) => {
        /// Which kind of thing is wrong; shown as `BP0213`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(extend("pattern" = r"^BP[0-9]{4}$")))]
        #[serde(try_from = "String", into = "String")]
        pub enum Code {
            $(#[doc = $title] $name = $number,)*
        }

        impl Code {
            /// Every code, in the order of their numbers.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// Returns what the code stands for, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// Returns what `blueproof explain` says: why it comes about and how it is mended.
            pub fn explanation(self) -> &'static str {
                match self { $(Code::$name => $explanation,)* }
            }
        }
    };
}

// A list of names that macros are called by, the next first; each puts its own codes behind those of before.
command_line! { [blueprint environment verdict time_limit machine store queue gpu api github codes] }

/// A text that is not the code of anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a code; they look like BP0213")]
pub struct ParseCodeError(String);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BP{:04}", *self as u16)
    }
}

impl FromStr for Code {
    type Err = ParseCodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Code::ALL
            .iter()
            .find(|code| code.to_string().eq_ignore_ascii_case(text));
        known.copied().ok_or_else(|| ParseCodeError(text.into()))
    }
}

impl TryFrom<String> for Code {
    type Error = ParseCodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Code> for String {
    fn from(code: Code) -> Self {
        code.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_read_back_what_they_print() {
        assert!(Code::ALL.is_sorted());
        for code in Code::ALL {
            assert_eq!(code.to_string().parse(), Ok(*code));
            assert!(
                code.explanation().ends_with('.'),
                "{code}: explanations are sentences"
            );
        }
    }
}
