//! What is known of pull requests.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    approval::Hold,
    domain::{BaseRef, Head, PullRequest, Subject},
};

/// Every pull request of which there was news.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PullRequests {
    #[serde(with = "crate::pairs")]
    known: BTreeMap<PullRequest, Known>,
}

/// What is known of one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Known {
    pub(super) head: Option<Head>,
    /// The heads that it had before, and has not now.
    pub(super) earlier_heads: BTreeSet<Head>,
    /// The heads of its runs that are forgotten: until the next push one of them may be the head that it has.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    forgotten_heads: BTreeSet<Head>,
    pub(super) base: Option<BaseRef>,
    pub(super) openness: Openness,
    pub(super) hold: Option<Hold>,
}

/// Whether a pull request is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Openness {
    #[default]
    Open,
    Closed,
}

impl PullRequests {
    pub(super) fn get(&self, pull_request: &PullRequest) -> Option<&Known> {
        self.known.get(pull_request)
    }

    /// Returns what is known of a subject's pull request.
    pub(super) fn of(&self, subject: &Subject) -> Option<&Known> {
        self.get(&subject.of_pull_request()?)
    }

    pub(super) fn entry(&mut self, pull_request: &PullRequest) -> &mut Known {
        self.known.entry(pull_request.clone()).or_default()
    }

    /// Remembers the head of a run that is forgotten.
    pub(super) fn keep_head(&mut self, subject: &Subject) {
        if let Some(pull_request) = subject.of_pull_request() {
            let known = self.entry(&pull_request);
            if !known.earlier_heads.contains(&subject.head) {
                known.forgotten_heads.insert(subject.head.clone());
            }
        }
    }

    pub(super) fn synchronize(&mut self, pull_request: &PullRequest, head: &Head, earlier: BTreeSet<Head>) {
        let known = self.entry(pull_request);
        let before = known.head.replace(head.clone());
        known.earlier_heads.extend(earlier);
        known.earlier_heads.append(&mut known.forgotten_heads);
        known.earlier_heads.extend(before);
        known.earlier_heads.remove(head);
    }
}
