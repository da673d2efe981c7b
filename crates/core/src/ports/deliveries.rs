//! What came from outside, kept whole until it is worked on.

use async_trait::async_trait;
use blueproof_diagnostic::Diagnostic;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::StoreError;

/// How often a delivery is tried in its turn. After that the others go first.
pub const TRIED_OFTEN: u32 = 5;

/// Deliveries as everybody sees them, whether or not they lead.
#[async_trait]
pub trait DeliveryClient: Send + Sync {
    /// Returns deliveries without their bodies, the newest first, at most `limit`.
    async fn deliveries(&self, limit: usize) -> Result<Vec<StoredDelivery>, StoreError>;

    /// Returns a delivery with its body.
    async fn delivery(&self, id: &str) -> Result<Option<(StoredDelivery, Vec<u8>)>, StoreError>;

    /// Has a delivery worked on once more. Returns whether there is one.
    async fn replay_delivery(&self, id: &str) -> Result<bool, StoreError>;
}

/// Deliveries of webhooks, as they came.
///
/// One is stored before its sender is told that it arrived, and is worked on afterwards, by whoever leads.
#[async_trait]
pub trait Deliveries: DeliveryClient {
    /// Stores a delivery, and returns once it would outlive a power cut. One whose id is known changes nothing, unless it was given up:
    /// its sender asks for another try then.
    async fn receive(&self, delivery: ReceivedDelivery) -> Result<Receipt, StoreError>;

    /// Returns those that are still to be worked on, the one that came first first, at most `limit`. Those that were tried
    /// [often](TRIED_OFTEN) come last, so that they keep no other waiting.
    async fn pending_deliveries(&self, limit: usize) -> Result<Vec<PendingDelivery>, StoreError>;

    /// Notes what came of a delivery. Of one that is not there nothing is noted.
    async fn note_delivery(&self, id: &str, at: Timestamp, state: DeliveryState) -> Result<(), StoreError>;

    /// Removes deliveries that were received before a time and are not to be worked on any more. Returns how many there were.
    async fn prune_deliveries(&self, before: Timestamp) -> Result<usize, StoreError>;
}

/// A delivery that has just come.
#[derive(Clone, PartialEq, Eq)]
pub struct ReceivedDelivery {
    /// Its sender's name for it, by which it is known when it comes again.
    pub id: String,
    /// What kind of event it tells of.
    pub event: String,
    /// When it came.
    pub received_at: Timestamp,
    /// Its body, byte for byte.
    pub body: Vec<u8>,
}

/// What was done with a delivery that has just come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// It is stored.
    Stored,
    /// It was stored before, and was given up: it is tried again.
    Again,
    /// It was stored before, and is or was worked on.
    Duplicate,
}

/// A delivery that is still to be worked on.
#[derive(Clone, PartialEq, Eq)]
pub struct PendingDelivery {
    /// Its sender's name for it.
    pub id: String,
    /// What kind of event it tells of.
    pub event: String,
    /// When it came.
    pub received_at: Timestamp,
    /// How often that was tried.
    pub attempts: u32,
    /// Its body.
    pub body: Vec<u8>,
}

/// A delivery as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StoredDelivery {
    /// Its sender's name for it.
    pub id: String,
    /// What kind of event it tells of.
    pub event: String,
    /// What was done, such as `opened`, where its body says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The name of the repository that it was done in, where its body says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// When it came.
    pub received_at: Timestamp,
    /// How many bytes its body has.
    pub size: u64,
    /// How often it was tried to work on it.
    pub attempts: u32,
    /// When something of it was noted last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noted_at: Option<Timestamp>,
    /// How it stands.
    pub state: DeliveryState,
}

/// What a body says of itself, where it is JSON and says so. Lists show it; nothing is decided by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryAbout {
    /// What was done, such as `opened`.
    pub action: Option<String>,
    /// The name of the repository that it was done in.
    pub repository: Option<String>,
}

impl DeliveryAbout {
    /// The most bytes of a body that is looked into: a list is not to read gigabytes.
    pub const BODY_AT_MOST: usize = 1 << 20;

    /// The most bytes of a word. GitHub's are shorter.
    const WORD_AT_MOST: usize = 200;

    /// Reads what a body says of itself.
    pub fn of(body: &[u8]) -> Self {
        /// The members of a payload, as GitHub calls them.
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Said {
            action: Option<Value>,
            repository: Option<Value>,
        }
        if body.len() > Self::BODY_AT_MOST {
            return Self::default();
        }
        let said: Said = serde_json::from_slice(body).unwrap_or_default();
        let word = |value: Option<&Value>| {
            let word = value.and_then(Value::as_str)?;
            (word.len() <= Self::WORD_AT_MOST).then(|| word.to_owned())
        };
        let repository = said.repository.as_ref().and_then(|one| one.get("full_name"));
        Self {
            action: word(said.action.as_ref()),
            repository: word(repository),
        }
    }
}

/// How a delivery stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DeliveryState {
    /// It is to be worked on.
    Pending {
        /// Why it was not at the last try.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<Box<Diagnostic>>,
    },
    /// It was worked on.
    Done {
        /// What came of it, in words.
        outcome: String,
    },
    /// It is not worked on any more: it cannot be read, or was tried too often.
    GivenUp {
        /// Why.
        problem: Box<Diagnostic>,
    },
}

impl std::fmt::Debug for ReceivedDelivery {
    /// Says how long the body is: what it says is a stranger's.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { id, event, body, .. } = self;
        write!(f, "ReceivedDelivery({id}, {event}, {} bytes)", body.len())
    }
}

impl std::fmt::Debug for PendingDelivery {
    /// Says how long the body is: what it says is a stranger's.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            id,
            event,
            attempts,
            body,
            ..
        } = self;
        write!(
            f,
            "PendingDelivery({id}, {event}, {attempts} attempts, {} bytes)",
            body.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_says_what_it_is_about_whatever_else_it_is() {
        let about = |body: &str| {
            let DeliveryAbout { action, repository } = DeliveryAbout::of(body.as_bytes());
            (action.unwrap_or_default(), repository.unwrap_or_default())
        };
        let said = |action: &str, repository: &str| (action.to_owned(), repository.to_owned());
        let whole = r#"{"action": "opened", "repository": {"full_name": "a/b"}, "sender": {}}"#;
        assert_eq!(about(whole), said("opened", "a/b"));
        assert_eq!(about(r#"{"repository": {"full_name": "a/b"}}"#), said("", "a/b"));
        for nothing in [
            "",
            "{",
            "[]",
            "7",
            "\u{0}",
            r#"{"action": 7, "repository": "a/b"}"#,
            r#"{"action": null, "repository": {"full_name": {}}}"#,
        ] {
            assert_eq!(about(nothing), said("", ""), "{nothing}");
        }
        let long = format!(r#"{{"action": "{}"}}"#, "a".repeat(201));
        assert_eq!(about(&long), said("", ""));
        let huge = format!(
            r#"{{"action": "opened"{}}}"#,
            " ".repeat(DeliveryAbout::BODY_AT_MOST)
        );
        assert_eq!(about(&huge), said("", ""), "it is not looked into");
        assert_eq!(
            DeliveryAbout::of(b"{\"action\": \"\xff\"}"),
            DeliveryAbout::default()
        );
    }
}
