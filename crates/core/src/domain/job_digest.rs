//! What a job is, to the last of its values.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Job;
use crate::hex::hex;

/// How many hexadecimal digits a digest has.
const DIGITS: usize = 64;

/// The SHA-256 of a job: where its content is, what it asks for, its limits of time, and what is to be done.
///
/// It is taken of the job's JSON with the keys of each object in order, so two jobs have the same one exactly when they say the
/// same. An approval names it, because whoever asks for a run says what its job is: a head tells no more than which files there are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = r"^[0-9a-f]{64}$")))]
#[serde(try_from = "String", into = "String")]
pub struct JobDigest(String);

/// A text that is no digest of a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no digest of a job: it has {DIGITS} lower-case hexadecimal digits")]
pub struct ParseJobDigestError(String);

impl Job {
    /// Returns the digest of the job.
    pub fn digest(&self) -> JobDigest {
        let mut written = serde_json::to_value(self).expect("a job is plain data");
        written.sort_all_objects();
        JobDigest(hex(&Sha256::digest(written.to_string())))
    }
}

impl fmt::Display for JobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for JobDigest {
    type Err = ParseJobDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == DIGITS && text.bytes().all(is_hex) {
            return Ok(Self(text.into()));
        }
        Err(ParseJobDigestError(text.into()))
    }
}

impl TryFrom<String> for JobDigest {
    type Error = ParseJobDigestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<JobDigest> for String {
    fn from(digest: JobDigest) -> Self {
        digest.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::request;

    #[test]
    fn two_jobs_have_one_digest_exactly_when_they_say_the_same() {
        let mut job = request("a", "nano-lm").job;
        job.work =
            serde_json::from_str(r#"{"notebook":"a.ipynb","parameters":{"x":1,"y":2}}"#).expect("JSON");
        let digest = job.digest();
        let mut ordered_otherwise = job.clone();
        ordered_otherwise.work =
            serde_json::from_str(r#"{"parameters":{"y":2,"x":1},"notebook":"a.ipynb"}"#).expect("JSON");
        assert_eq!(ordered_otherwise.digest(), digest);
        let text = serde_json::to_string(&job).expect("plain data");
        let stored: Job = serde_json::from_str(&text).expect("it comes back");
        assert_eq!(
            stored.digest(),
            digest,
            "a job is the same when it comes from the store"
        );

        let changes: [fn(&mut Job); 3] = [
            |job| job.work["secrets"] = json!([{"name": "hf-token", "env": "HF_TOKEN"}]),
            |job| job.timeouts.run = Some(jiff::SignedDuration::from_hours(5)),
            |job| job.source = super::super::Source::Folder("/elsewhere".into()),
        ];
        for change in changes {
            let mut other = job.clone();
            change(&mut other);
            assert_ne!(other.digest(), digest, "{other:?}");
        }
        assert_eq!(digest.to_string().parse(), Ok(digest.clone()));
        for text in ["", "abc", &"A".repeat(64), &format!("{digest}0")] {
            assert!(text.parse::<JobDigest>().is_err(), "{text}");
        }
    }
}
