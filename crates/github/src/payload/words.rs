//! Words of GitHub's that we know, beside those that it will have one day.

/// Declares an enumeration of GitHub's words. One that is not listed becomes `Other`, with the word, and is written as it came.
macro_rules! open_words {
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(from = "String", into = "String")]
        $vis enum $name {
            $($(#[$of])* $variant,)*
            /// A word that we do not know.
            Other(String),
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $($word => Self::$variant,)*
                    _ => Self::Other(word),
                }
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                match word {
                    $($name::$variant => $word.into(),)*
                    $name::Other(word) => word,
                }
            }
        }
    };
}

pub(super) use open_words;

#[cfg(test)]
mod tests {
    open_words! {
        /// A colour.
        enum Colour {
            /// Red.
            Red = "red",
        }
    }

    #[test]
    fn a_word_that_is_not_known_survives() {
        let both: Vec<Colour> = serde_json::from_str(r#"["red","ultraviolet"]"#).expect("words");
        assert_eq!(both, [Colour::Red, Colour::Other("ultraviolet".into())]);
        assert_eq!(
            serde_json::to_string(&both).expect("words"),
            r#"["red","ultraviolet"]"#
        );
    }
}
