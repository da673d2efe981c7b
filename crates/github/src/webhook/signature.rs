//! Whether GitHub sent a delivery: HMAC-SHA-256 of its raw body, in the header `X-Hub-Signature-256`.
//!
//! Source: <https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries>.

use std::fmt;

use blueproof_core::hex::hex;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What stands before the digits in the header.
const SCHEME: &str = "sha256=";
/// How many bytes a signature has.
const LENGTH: usize = 32;

/// What GitHub and we sign deliveries with. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

/// A text that is no secret: it is too short to be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a webhook's secret has at least {} bytes", WebhookSecret::SHORTEST)]
pub struct WebhookSecretTooShort;

/// The secrets that count: one, and while it is changed for another, both.
#[derive(Debug, Clone)]
pub struct WebhookSecrets {
    first: WebhookSecret,
    others: Vec<WebhookSecret>,
}

/// Why a delivery is not taken for GitHub's.
///
/// Neither the signature that was sent nor the one that was expected is part of it: whoever reads a log could sign with the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureProblem {
    /// There is no signature.
    #[error("the delivery has no header `X-Hub-Signature-256`: the webhook has no secret")]
    Missing,
    /// It is none.
    #[error("the header `X-Hub-Signature-256` is not `sha256=` with 64 hexadecimal digits")]
    Malformed,
    /// It is another's.
    #[error("the delivery is signed with another secret, or was changed on its way")]
    Mismatch,
}

impl WebhookSecret {
    /// The fewest bytes of a secret: 128 random bits as hexadecimal digits have twice as many.
    pub const SHORTEST: usize = 16;

    /// Takes a secret as it was given to GitHub.
    ///
    /// # Errors
    ///
    /// It is so short that it could be guessed.
    pub fn new(secret: impl Into<Vec<u8>>) -> Result<Self, WebhookSecretTooShort> {
        let secret = secret.into();
        match secret.len() < Self::SHORTEST {
            true => Err(WebhookSecretTooShort),
            false => Ok(Self(secret)),
        }
    }

    /// Returns what GitHub sends as `X-Hub-Signature-256` with a body.
    pub fn sign(&self, body: &[u8]) -> String {
        let digits = hex(&self.mac(body).finalize().into_bytes());
        format!("{SCHEME}{digits}")
    }

    fn mac(&self, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(body);
        mac
    }
}

impl WebhookSecrets {
    /// Returns the only one that counts.
    pub fn one(secret: WebhookSecret) -> Self {
        Self {
            first: secret,
            others: Vec::new(),
        }
    }

    /// Has another one count, too.
    pub fn or(mut self, secret: WebhookSecret) -> Self {
        self.others.push(secret);
        self
    }

    /// Compares a signature with that of the body, in a time that tells nothing of either.
    ///
    /// # Errors
    ///
    /// Why the delivery is not GitHub's.
    pub fn verify(&self, body: &[u8], header: Option<&str>) -> Result<(), SignatureProblem> {
        let header = header.ok_or(SignatureProblem::Missing)?;
        let signature = parse(header).ok_or(SignatureProblem::Malformed)?;
        let mut all = std::iter::once(&self.first).chain(&self.others);
        match all.any(|secret| secret.mac(body).verify_slice(&signature).is_ok()) {
            true => Ok(()),
            false => Err(SignatureProblem::Mismatch),
        }
    }
}

fn parse(header: &str) -> Option<[u8; LENGTH]> {
    let digits = header.strip_prefix(SCHEME)?.as_bytes();
    if digits.len() != 2 * LENGTH {
        return None;
    }
    let mut signature = [0; LENGTH];
    for (byte, pair) in signature.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
    }
    Some(signature)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        b'A'..=b'F' => Some(character - b'A' + 10),
        _ => None,
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> WebhookSecret {
        WebhookSecret::new(text).expect("it is long enough")
    }

    /// The example of GitHub's documentation.
    #[test]
    fn githubs_own_example_is_verified() {
        let secrets = WebhookSecrets::one(secret("It's a Secret to Everybody"));
        let header = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(secrets.verify(b"Hello, World!", Some(header)), Ok(()));
        assert_eq!(secrets.first.sign(b"Hello, World!"), header);
        assert_eq!(
            secrets.verify(b"Hello, World?", Some(header)),
            Err(SignatureProblem::Mismatch)
        );
    }

    /// A25 of the list of attacks.
    #[test]
    fn a25_what_is_signed_by_nobody_or_otherwise_is_refused() {
        let secrets = WebhookSecrets::one(secret("0123456789abcdef"));
        let body = b"{}";
        let good = secrets.first.sign(body);
        let of_another = secret("0123456789abcdeg").sign(body);
        let cases = [
            (None, SignatureProblem::Missing),
            (Some(""), SignatureProblem::Malformed),
            (Some("sha256="), SignatureProblem::Malformed),
            (Some(&good["sha256=".len()..]), SignatureProblem::Malformed),
            (Some(&good[..good.len() - 2]), SignatureProblem::Malformed),
            (
                Some("sha1=757107ea0eb2509fc211221cce984b8a37570b6d"),
                SignatureProblem::Malformed,
            ),
            (Some(&of_another), SignatureProblem::Mismatch),
        ];
        for (header, problem) in cases {
            assert_eq!(secrets.verify(body, header), Err(problem), "{header:?}");
        }
        let not_ascii = format!("sha256={}", "ß".repeat(32));
        assert_eq!(
            secrets.verify(body, Some(&not_ascii)),
            Err(SignatureProblem::Malformed)
        );
    }

    #[test]
    fn while_a_secret_is_changed_both_count() {
        let (old, new) = (secret("an old secret, long"), secret("a new secret, longer"));
        let secrets = WebhookSecrets::one(new.clone()).or(old.clone());
        for of in [old, new] {
            assert_eq!(secrets.verify(b"{}", Some(&of.sign(b"{}"))), Ok(()));
        }
    }

    /// A27 of the list of attacks.
    #[test]
    fn a27_neither_secrets_nor_signatures_are_shown() {
        let secrets = WebhookSecrets::one(secret("0123456789abcdef"));
        let shown = format!(
            "{secrets:?} {:?}",
            secrets.verify(b"{}", Some(&secret("fedcba9876543210").sign(b"{}")))
        );
        assert!(
            !shown.contains("0123456789abcdef") && !shown.contains("sha256"),
            "{shown}"
        );
        assert_eq!(
            WebhookSecret::new("short").expect_err("it is").to_string(),
            "a webhook's secret has at least 16 bytes"
        );
    }
}
