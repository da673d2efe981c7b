//! One delivery, as it came.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{SignatureProblem, WebhookSecrets};

/// A delivery of a webhook whose signature was good, whole.
#[derive(Clone, PartialEq, Eq)]
pub struct Delivery {
    /// GitHub's name for it. A redelivery has that of the first one.
    pub id: DeliveryId,
    /// What kind of event it tells of.
    pub event: EventName,
    /// When it came, by our clock.
    pub received_at: Timestamp,
    /// Its body, byte for byte: JSON, unless GitHub errs.
    pub body: Vec<u8>,
}

/// GitHub's name for a delivery (`X-GitHub-Delivery`): a GUID. It is part of keys and of lines of logs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeliveryId(String);

/// The kind of event that a delivery tells of (`X-GitHub-Event`), such as `pull_request`. Kinds that we do not know are kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventName(String);

/// The headers of a delivery that we read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Headers<'a> {
    /// `X-GitHub-Delivery`.
    pub delivery: Option<&'a str>,
    /// `X-GitHub-Event`.
    pub event: Option<&'a str>,
    /// `X-Hub-Signature-256`.
    pub signature: Option<&'a str>,
    /// `Content-Type`.
    pub content_type: Option<&'a str>,
}

/// Why what came is no delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryProblem {
    /// It is not GitHub's.
    #[error(transparent)]
    Signature(#[from] SignatureProblem),
    /// It has more bytes than GitHub sends.
    #[error("the delivery has more than {} bytes", Delivery::LARGEST)]
    TooLarge,
    /// Its header says nothing that could be its name.
    #[error("the header `X-GitHub-Delivery` is missing, or is no GUID")]
    Id,
    /// Its header says nothing that could be a kind of event.
    #[error("the header `X-GitHub-Event` is missing, or names no event")]
    Event,
    /// The webhook is set to send forms.
    #[error("the webhook sends forms: set its content type to `application/json`")]
    ContentType,
}

impl Delivery {
    /// The most bytes of a body. GitHub sends no more than 25 MB, and no delivery at all in place of a larger one.
    pub const LARGEST: usize = 25 << 20;

    /// Takes what came with a request. The signature is compared before anything else is looked at, so that whoever has no
    /// secret learns nothing but that.
    ///
    /// # Errors
    ///
    /// Why it is no delivery.
    pub fn receive(
        secrets: &WebhookSecrets,
        headers: Headers<'_>,
        body: Vec<u8>,
        received_at: Timestamp,
    ) -> Result<Self, DeliveryProblem> {
        if body.len() > Self::LARGEST {
            return Err(DeliveryProblem::TooLarge);
        }
        secrets.verify(&body, headers.signature)?;
        if headers.content_type.is_some_and(is_form) {
            return Err(DeliveryProblem::ContentType);
        }
        let id = headers.delivery.and_then(|id| id.parse().ok());
        let event = headers.event.and_then(|event| event.parse().ok());
        Ok(Self {
            id: id.ok_or(DeliveryProblem::Id)?,
            event: event.ok_or(DeliveryProblem::Event)?,
            received_at,
            body,
        })
    }
}

fn is_form(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default();
    kind.trim()
        .eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// Declares a word of a header that is checked once, where it comes in.
macro_rules! header_word {
    ($name:ident, $most:literal, $allowed:expr, $problem:expr) => {
        impl $name {
            /// Returns it as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = DeliveryProblem;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let allowed: fn(u8) -> bool = $allowed;
                match (1..=$most).contains(&text.len()) && text.bytes().all(allowed) {
                    true => Ok(Self(text.to_owned())),
                    false => Err($problem),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = DeliveryProblem;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

header_word!(
    DeliveryId,
    64,
    |byte| byte.is_ascii_alphanumeric() || byte == b'-',
    DeliveryProblem::Id
);
header_word!(
    EventName,
    64,
    |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_',
    DeliveryProblem::Event
);

impl fmt::Debug for Delivery {
    /// Says how long the body is: what it says is a stranger's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("id", &self.id)
            .field("event", &self.event)
            .field("received_at", &self.received_at)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::WebhookSecret;

    const ID: &str = "72d3162e-cc78-11e3-81ab-4c9367dc0958";

    fn receive(change: fn(&mut Headers<'_>)) -> Result<Delivery, DeliveryProblem> {
        let secret = WebhookSecret::new("0123456789abcdef").expect("it is long enough");
        let body = b"{\"zen\":\"It is not JSON".to_vec();
        let signature = secret.sign(&body);
        let mut headers = Headers {
            delivery: Some(ID),
            event: Some("pull_request"),
            signature: Some(&signature),
            content_type: Some("application/json; charset=utf-8"),
        };
        change(&mut headers);
        Delivery::receive(&WebhookSecrets::one(secret), headers, body, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_delivery_is_kept_as_it_came() {
        let delivery = receive(|_| {}).expect("it is signed");
        assert_eq!(
            (delivery.id.as_str(), delivery.event.as_str()),
            (ID, "pull_request")
        );
        assert_eq!(delivery.body, b"{\"zen\":\"It is not JSON");
        assert!(!format!("{delivery:?}").contains("zen"));
        let unknown = receive(|headers| headers.event = Some("event_of_next_year")).expect("it is signed");
        assert_eq!(unknown.event.as_str(), "event_of_next_year");
    }

    #[test]
    fn what_is_no_delivery_is_refused_and_an_unsigned_one_before_all_else() {
        let refused = |change| receive(change).expect_err("it is no delivery");
        assert_eq!(
            refused(|headers| headers.signature = None),
            DeliveryProblem::Signature(SignatureProblem::Missing)
        );
        assert_eq!(
            refused(|headers| *headers = Headers::default()),
            DeliveryProblem::Signature(SignatureProblem::Missing)
        );
        assert_eq!(refused(|headers| headers.delivery = None), DeliveryProblem::Id);
        for id in ["", "../../etc/passwd", "a b", "ä", "a\n"] {
            assert_eq!(id.parse::<DeliveryId>(), Err(DeliveryProblem::Id), "{id:?}");
        }
        assert_eq!(
            refused(|headers| headers.event = Some("Push\n")),
            DeliveryProblem::Event
        );
        assert_eq!(
            refused(|headers| headers.content_type = Some("application/x-www-form-urlencoded")),
            DeliveryProblem::ContentType
        );
        assert!(is_form("application/x-www-form-urlencoded; charset=utf-8"));
    }
}
