//! How long attempts took, by what they were of.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::{Basis, sample::Sample};
use crate::domain::{BlueprintName, ProfileName, Project, RunRequest};

/// Fewer tell nothing: one may have failed in its first cell, and two agree by chance.
const RUNS_AT_LEAST: usize = 3;

/// How long attempts that ended by themselves took, from their quota to their end, and how long it took to clear away
/// what any attempt left.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    by_kind: BTreeMap<Kind, Sample>,
    clearing: Sample,
}

/// A blueprint under a profile with its parameters: a notebook that is told to train on more takes longer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    project: Project,
    blueprint: BlueprintName,
    profile: Option<ProfileName>,
    /// As JSON, in the order of their names.
    parameters: Option<String>,
}

impl Durations {
    /// Notes how long an attempt took.
    pub(crate) fn note(&mut self, request: &RunRequest, took: SignedDuration) {
        self.by_kind.entry(Kind::of(request)).or_default().add(took);
    }

    /// Notes how long an attempt still held its quota after its end.
    pub(crate) fn note_clearing(&mut self, took: SignedDuration) {
        self.clearing.add(took);
    }

    /// Returns how long attempts of the same kind as a request took; `None` where there are too few to go by.
    pub(crate) fn like(&self, request: &RunRequest) -> Option<(Basis, &Sample)> {
        let sample = self.by_kind.get(&Kind::of(request))?;
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
            project: subject.project.clone(),
            blueprint: subject.blueprint.clone(),
            profile: subject.profile.clone(),
            parameters: request.job.work.get("parameters").map(ToString::to_string),
        }
    }
}
