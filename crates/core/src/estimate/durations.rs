//! How long attempts took, by what they were of.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::{Basis, sample::Sample};
use crate::domain::{BlueprintName, ProfileName, Project, QueueName, RunRequest, Subject};

/// How long attempts that ended by themselves took, from their quota to their end, and how long it took to clear away
/// what any attempt left.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    by_kind: BTreeMap<Kind, Sample>,
    by_queue: BTreeMap<QueueName, Sample>,
    clearing: Sample,
}

/// A blueprint under a profile: another profile is other parameters, and so another length.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    project: Project,
    blueprint: BlueprintName,
    profile: Option<ProfileName>,
}

impl Durations {
    /// Notes how long an attempt took.
    pub(crate) fn note(&mut self, request: &RunRequest, took: SignedDuration) {
        let kind = Kind::of(&request.subject);
        self.by_kind.entry(kind).or_default().add(took);
        self.by_queue.entry(request.queue.clone()).or_default().add(took);
    }

    /// Notes how long an attempt still held its quota after its end.
    pub(crate) fn note_clearing(&mut self, took: SignedDuration) {
        self.clearing.add(took);
    }

    /// Returns how long attempts took that are most like those of a request: of its blueprint, or else of its queue.
    pub(crate) fn like(&self, request: &RunRequest) -> Option<(Basis, &Sample)> {
        if let Some(sample) = self.by_kind.get(&Kind::of(&request.subject)) {
            let runs = sample.count();
            return Some((Basis::Blueprint { runs }, sample));
        }
        let sample = self.by_queue.get(&request.queue)?;
        let runs = sample.count();
        Some((Basis::Queue { runs }, sample))
    }

    /// Returns how long clearing away takes as a rule.
    pub(crate) fn clearing(&self) -> SignedDuration {
        self.clearing
            .quantile(0.5, SignedDuration::ZERO)
            .unwrap_or_default()
    }
}

impl Kind {
    fn of(subject: &Subject) -> Self {
        Self {
            project: subject.project.clone(),
            blueprint: subject.blueprint.clone(),
            profile: subject.profile.clone(),
        }
    }
}
