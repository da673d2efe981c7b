//! Which lines of an agent's log are the agent's.
//!
//! A notebook runs as the same user as its agent and can write where the agent writes. Each line therefore ends with a
//! signature: HMAC-SHA-256 (RFC 2104) over the signature before it and the line itself, cut to 128 bits. A line that was
//! added, changed, moved or taken out breaks the chain. What this does not keep away is named in
//! `docs/design/attempts.md`.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{domain::AttemptId, hex::hex};

/// What stands between a record and its signature: both together are one JSON object.
const FIELD: &[u8] = b",\"mac\":\"";
/// What ends a line.
const END: &[u8] = b"\"}";
/// How many hexadecimal digits a signature has.
const DIGITS: usize = 32;

/// What the records of one attempt's log are signed with. Only drivers and agents have it.
#[derive(Clone, PartialEq, Eq)]
pub struct LogKey([u8; 32]);

/// The last signature of a log up to some line: what the next one goes on from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Chain([u8; DIGITS / 2]);

impl LogKey {
    /// Returns the key of an attempt, made of its store's secret.
    pub fn of(secret: &[u8; 32], attempt: AttemptId) -> Self {
        let mut mac = keyed(secret);
        mac.update(attempt.to_string().as_bytes());
        Self(mac.finalize().into_bytes().into())
    }

    /// Reads what [`LogKey::to_hex`] wrote; `None` where it did not.
    pub fn from_hex(text: &str) -> Option<Self> {
        bytes(text.as_bytes()).map(Self)
    }

    /// Writes it for an agent, and for nobody else.
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }

    /// Returns a name that nobody without the key can tell, nor what it is the name of. It is no signature of any line: what is
    /// signed there is longer.
    pub(super) fn name(&self) -> String {
        let mut mac = keyed(&self.0);
        mac.update(b"working copy");
        let whole: [u8; 32] = mac.finalize().into_bytes().into();
        hex(&whole[..DIGITS / 2])
    }

    /// Returns `record`, a JSON object, as a signed line without its newline, and where the chain goes on.
    pub(super) fn sign(&self, chain: Chain, record: &[u8]) -> (Vec<u8>, Chain) {
        let chain = self.next(chain, record);
        let object = record.strip_suffix(b"}").expect("a record is an object");
        let line = [object, FIELD, hex(&chain.0).as_bytes(), END].concat();
        (line, chain)
    }

    /// Returns where the chain goes on behind `line`, or `None` where it is not signed as the next one.
    pub(super) fn verify(&self, chain: Chain, line: &[u8]) -> Option<Chain> {
        let (record, signature) = split(line)?;
        let expected = self.next(chain, &[record, b"}"].concat());
        (expected == signature).then_some(expected)
    }

    fn next(&self, chain: Chain, record: &[u8]) -> Chain {
        let mut mac = keyed(&self.0);
        mac.update(&chain.0);
        mac.update(record);
        let whole: [u8; 32] = mac.finalize().into_bytes().into();
        let mut cut = Chain::default();
        cut.0.copy_from_slice(&whole[..DIGITS / 2]);
        cut
    }
}

impl Chain {
    /// Reads what [`Chain::to_hex`] wrote; `None` where it did not.
    pub(super) fn from_hex(text: &str) -> Option<Self> {
        bytes(text.as_bytes()).map(Self)
    }

    /// Writes it as it stands in a line.
    pub(super) fn to_hex(self) -> String {
        hex(&self.0)
    }
}

/// Returns a signed line's record, without the brace that ends it, and the signature.
fn split(line: &[u8]) -> Option<(&[u8], Chain)> {
    let rest = line.strip_suffix(END)?;
    let (rest, digits) = rest.split_at_checked(rest.len().checked_sub(DIGITS)?)?;
    Some((rest.strip_suffix(FIELD)?, Chain(bytes(digits)?)))
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

/// Reads exactly `N` bytes in lower-case hexadecimal digits.
fn bytes<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    if digits.len() != 2 * N {
        return None;
    }
    let mut read = [0; N];
    for (byte, pair) in read.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(read)
}

impl fmt::Debug for LogKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogKey")
    }
}
