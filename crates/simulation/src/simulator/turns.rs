//! Jobs that evict each other by turns, without end, and without time passing.

use std::collections::BTreeMap;

use blueproof_queue::{AdmissionEntry, Workload};

use super::Simulator;
use crate::history::{EventKind, EvictionCause};

/// How often a job may be evicted at one instant. By Kueue's rules jobs can evict each other for ever; in a cluster each
/// eviction takes its time, so that one of them is done some day. Here none passes, and no job comes near this otherwise.
const EVICTIONS_AT_ONCE: usize = 100;

/// Who evicts whom at one instant.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// How often each job that ran was evicted.
    evicted: BTreeMap<usize, usize>,
    /// How often each job was evicted by another, also before it ran.
    by: BTreeMap<(usize, usize), usize>,
}

impl Turns {
    /// Notes that a job is evicted by another, whether it runs or has quota that others are still leaving.
    pub(super) fn note(&mut self, job: usize, by: usize) {
        *self.by.entry((job, by)).or_default() += 1;
    }

    /// Notes that a job that ran is evicted, and returns whether that goes on for ever.
    fn note_eviction(&mut self, job: usize) -> bool {
        let times = self.evicted.entry(job).or_default();
        *times += 1;
        *times >= EVICTIONS_AT_ONCE
    }

    /// Returns the jobs that go round. The others were evicted on the way there.
    fn jobs(&self) -> impl Iterator<Item = usize> {
        let often = self
            .by
            .iter()
            .filter(|(_, times)| **times > EVICTIONS_AT_ONCE / 2);
        often.flat_map(|((job, by), _)| [*job, *by])
    }
}

impl Simulator<'_> {
    /// Returns the workload of a job, which the queue knows better while it is there.
    fn workload(&self, job: usize) -> &Workload {
        let last = &self.states[job].workload;
        self.queue.get(last.id).map_or(last, AdmissionEntry::workload)
    }

    /// Notes that a job is evicted, and ends the course where that goes on for ever.
    pub(super) fn note_eviction(&mut self, job: usize, cause: EvictionCause) {
        let at = self.now;
        if let Some(period) = self.history.job_records[job].periods.last_mut() {
            period.evicted = period.evicted.take().or(Some((at, cause.clone())));
        }
        self.note(EventKind::Evicted { job, cause });
        if self.turns.note_eviction(job) && !self.history.cut_short {
            self.history.cut_short = true;
            let workloads = self.turns.jobs().map(|job| self.workload(job));
            self.history.by_turns = workloads.map(|workload| workload.cluster_queue.clone()).collect();
        }
    }
}
