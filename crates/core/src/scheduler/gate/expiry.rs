//! When approvals expire, of each origin the next.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Origin;

/// The next expiry of each origin that has one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Expiry {
    by_time: BTreeSet<(Timestamp, Origin)>,
    #[serde(with = "crate::pairs")]
    by_origin: BTreeMap<Origin, Timestamp>,
}

impl Expiry {
    /// Notes when the next approval of an origin expires, in place of what was noted before.
    pub(super) fn set(&mut self, origin: &Origin, at: Option<Timestamp>) {
        let before = match at {
            Some(at) => self.by_origin.insert(origin.clone(), at),
            None => self.by_origin.remove(origin),
        };
        if let Some(before) = before {
            self.by_time.remove(&(before, origin.clone()));
        }
        if let Some(at) = at {
            self.by_time.insert((at, origin.clone()));
        }
    }

    /// Returns when the next one of all expires.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Returns the origins of which one has expired.
    pub(super) fn due(&self, now: Timestamp) -> impl Iterator<Item = &Origin> {
        let due = self.by_time.iter().take_while(move |(at, _)| *at <= now);
        due.map(|(_, origin)| origin)
    }
}
