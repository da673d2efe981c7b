//! Why an attempt has to give its quota back, in the word of whoever decided it.

use std::fmt;

use blueproof_queue::EvictionReason as Rule;
use serde::{Deserialize, Serialize};

/// The most characters of a word for a reason.
const MOST_OF_WORD: usize = 64;

/// Why an attempt has to give its quota back. It is written as one word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
#[serde(from = "String", into = "String")]
pub enum EvictionReason {
    /// By a rule that the embedded queue has too.
    Rule(Rule),
    /// For what only its cluster knows: `PodsReadyTimeout`, `NodeFailures`, `AdmissionCheck`, `Deactivated`.
    Cluster(ReasonWord),
}

/// A word as conditions of Kubernetes have it: a letter, and then letters, digits, `_`, `,` and `:`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReasonWord(String);

impl ReasonWord {
    /// Returns a word that a cluster said; what is no word, or a long one, is `Unknown`.
    pub fn new(said: &str) -> Self {
        let is_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':');
        let is_word = said.len() <= MOST_OF_WORD
            && said.starts_with(|c: char| c.is_ascii_alphabetic())
            && said.chars().all(is_of_word);
        Self(if is_word { said } else { "Unknown" }.to_owned())
    }

    /// Returns the word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl EvictionReason {
    /// Returns the word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Rule(rule) => rule.as_str(),
            Self::Cluster(word) => word.as_str(),
        }
    }

    /// Returns the reason in a few words.
    pub fn as_words(&self) -> &'static str {
        match self {
            Self::Rule(rule) => rule.as_words(),
            Self::Cluster(_) => "its cluster took its quota back",
        }
    }

    /// Returns the reason of Kueue's condition `Evicted`, which is the same for every preemption.
    pub fn condition_reason(&self) -> &str {
        match self {
            Self::Rule(rule) => rule.condition_reason(),
            Self::Cluster(word) => word.as_str(),
        }
    }
}

impl From<Rule> for EvictionReason {
    fn from(rule: Rule) -> Self {
        Self::Rule(rule)
    }
}

impl From<&str> for EvictionReason {
    fn from(word: &str) -> Self {
        let rules = [
            Rule::InClusterQueue,
            Rule::InCohortReclamation,
            Rule::InCohortFairSharing,
            Rule::InCohortReclaimWhileBorrowing,
            Rule::LocalQueueStopped,
            Rule::ClusterQueueStopped,
        ];
        let rule = rules.into_iter().find(|rule| rule.as_str() == word);
        rule.map_or_else(|| Self::Cluster(ReasonWord::new(word)), Self::Rule)
    }
}

impl From<String> for EvictionReason {
    fn from(word: String) -> Self {
        Self::from(word.as_str())
    }
}

impl From<EvictionReason> for String {
    fn from(reason: EvictionReason) -> Self {
        reason.as_str().to_owned()
    }
}

impl PartialEq<Rule> for EvictionReason {
    fn eq(&self, rule: &Rule) -> bool {
        *self == Self::Rule(*rule)
    }
}

impl fmt::Display for EvictionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_word_is_read_and_those_of_earlier_logs_mean_what_they_meant() {
        for (text, expected) in [
            ("\"InClusterQueue\"", EvictionReason::Rule(Rule::InClusterQueue)),
            (
                "\"LocalQueueStopped\"",
                EvictionReason::Rule(Rule::LocalQueueStopped),
            ),
            (
                "\"PodsReadyTimeout\"",
                EvictionReason::Cluster(ReasonWord::new("PodsReadyTimeout")),
            ),
        ] {
            let reason: EvictionReason = serde_json::from_str(text).expect("a word");
            assert_eq!(reason, expected);
            assert_eq!(serde_json::to_string(&reason).expect("a word"), text);
        }
    }

    #[test]
    fn what_is_no_word_is_unknown() {
        for said in ["", "two words", "<b>", "9lives", "\u{202e}x", &"x".repeat(65)] {
            assert_eq!(EvictionReason::from(said).as_str(), "Unknown", "{said}");
        }
    }
}
