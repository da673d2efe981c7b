//! How long attempts took, by what they were of.

use std::{borrow::Cow, collections::BTreeMap};

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::{Basis, sample::Sample};
use crate::domain::{BlueprintName, ProfileName, Repository, RunId, RunRequest};

/// Fewer tell nothing: one may have failed in its first cell, and two agree by chance.
const RUNS_AT_LEAST: usize = 3;

/// How long runs took that ended by themselves, from their last attempt's quota to its end, and how long it took to clear
/// away what any attempt left.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Durations {
    #[serde(with = "crate::pairs")]
    by_kind: BTreeMap<Kind, Sample>,
    by_run: BTreeMap<RunId, SignedDuration>,
    clearing: Sample,
}

/// A blueprint under a profile with its parameters: a notebook that is told to train on more takes longer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind {
    repository: Repository,
    blueprint: BlueprintName,
    profile: Option<ProfileName>,
    /// As JSON, in the order of their names.
    parameters: Option<String>,
}

impl Durations {
    /// Notes how long a run took; one that was tried once more counts once, with the last time.
    pub(crate) fn note(&mut self, run: RunId, request: &RunRequest, took: SignedDuration) {
        let sample = self.by_kind.entry(Kind::of(request)).or_default();
        if let Some(before) = self.by_run.insert(run, took) {
            sample.remove(before);
        }
        sample.add(took);
    }

    /// Notes how long an attempt still held its quota after its end.
    pub(crate) fn note_clearing(&mut self, took: SignedDuration) {
        self.clearing.add(took);
    }

    /// Returns how long other runs of the same kind as a run took; `None` where there are too few to go by.
    pub(crate) fn like(&self, run: RunId, request: &RunRequest) -> Option<(Basis, Cow<'_, Sample>)> {
        let mut sample = Cow::Borrowed(self.by_kind.get(&Kind::of(request))?);
        if let Some(own) = self.by_run.get(&run) {
            sample.to_mut().remove(*own);
        }
        let runs = sample.count();
        (runs >= RUNS_AT_LEAST).then_some((Basis::Blueprint { runs }, sample))
    }

    /// Returns how long clearing away takes as a rule.
    pub(crate) fn clearing(&self) -> SignedDuration {
        self.clearing
            .quantile(0.5, SignedDuration::ZERO)
            .unwrap_or_default()
    }
}

impl Kind {
    fn of(request: &RunRequest) -> Self {
        let subject = &request.subject;
        Self {
            repository: subject.repository.clone(),
            blueprint: subject.blueprint.clone(),
            profile: subject.profile.clone(),
            parameters: request.job.work.get("parameters").map(ToString::to_string),
        }
    }
}
