//! What the queue decides: which workload has quota, which has to give it back, and which is admitted.

use std::{sync::Arc, vec};

use jiff::{SignedDuration, Timestamp};

use super::{AdmissionEntry, AdmissionQueue, AdmissionStatus, Assignment};
use crate::{EvictionReason, PodSetAssignment, Preempted, WorkloadId};

/// How many cycles one decision may take. With fair sharing Kueue's rules can go round for ever; what is left is decided
/// with the next one.
const CYCLES_AT_MOST: u32 = 1_000;

/// What was decided, which the queue has applied to itself already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decisions {
    /// What was decided about quota, in order.
    pub quota: Vec<QuotaDecision>,
    /// The workloads whose quota is free for them now.
    pub admitted: Vec<WorkloadId>,
    /// The workloads whose back-off is over.
    pub retried: Vec<WorkloadId>,
    /// How many cycles reserved quota.
    pub cycles_admitted: u32,
    /// How many cycles tried workloads and reserved none.
    pub cycles_inadmissible: u32,
}

/// What was decided about quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuotaDecision {
    /// A workload has quota, which its victims may still use.
    Reserved(Reservation),
    /// A workload has to give its quota back.
    Evicted(Eviction),
    /// A workload goes first in its queue, and waits for the quota of others that were evicted before.
    PreemptionAwaited(WorkloadId),
}

/// Quota for a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The workload.
    pub workload: WorkloadId,
    /// What it has.
    pub assignment: Assignment,
    /// How long it had waited.
    pub waited: SignedDuration,
}

/// That a workload has to give its quota back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eviction {
    /// The workload.
    pub workload: WorkloadId,
    /// Why.
    pub reason: EvictionReason,
    /// For which workload, if for one.
    pub by: Option<WorkloadId>,
    /// Whether that one was itself evicted for this one when it was evicted last.
    pub reversal: bool,
    /// Whether it was admitted, and so keeps its quota until it is released; else it is pending again already.
    pub was_admitted: bool,
}

/// How far a decision is that is taken step by step, with [`AdmissionQueue::step`].
#[derive(Debug, Default)]
pub struct DecisionRound {
    phase: Phase,
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Beginning,
    /// So many cycles may still be run.
    Cycles(u32),
    /// These have quota, and are admitted if it is free.
    Admissions(vec::IntoIter<WorkloadId>),
}

/// A part of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionStep {
    /// What time and new objects lead to.
    Beginning {
        /// The workloads whose back-off is over.
        retried: Vec<WorkloadId>,
        /// The workloads whose queue is drained.
        drained: Vec<Eviction>,
    },
    /// A scheduling cycle.
    Cycle {
        /// How many workloads were tried.
        tried: usize,
        /// The quota that it reserved.
        reserved: Vec<Reservation>,
        /// The workloads that it evicted.
        evicted: Vec<Eviction>,
        /// The workloads that wait for others evicted in earlier cycles.
        preemptors: Vec<WorkloadId>,
    },
    /// A workload was admitted.
    Admitted(WorkloadId),
}

impl Decisions {
    /// Returns whether nothing was decided about any workload.
    pub fn is_empty(&self) -> bool {
        self.quota.is_empty() && self.admitted.is_empty() && self.retried.is_empty()
    }

    fn add(&mut self, step: DecisionStep) {
        match step {
            DecisionStep::Beginning { retried, drained } => {
                self.retried.extend(retried);
                self.quota.extend(drained.into_iter().map(QuotaDecision::Evicted));
            }
            DecisionStep::Cycle {
                tried,
                reserved,
                evicted,
                preemptors,
            } => {
                let gave = !reserved.is_empty();
                self.cycles_admitted += u32::from(gave);
                self.cycles_inadmissible += u32::from(tried > 0 && !gave);
                self.quota
                    .extend(reserved.into_iter().map(QuotaDecision::Reserved));
                self.quota.extend(evicted.into_iter().map(QuotaDecision::Evicted));
                self.quota
                    .extend(preemptors.into_iter().map(QuotaDecision::PreemptionAwaited));
            }
            DecisionStep::Admitted(id) => self.admitted.push(id),
        }
    }
}

impl AdmissionQueue {
    /// Decides which workloads get quota now, which have to give theirs back, and which are admitted.
    pub fn decide(&mut self, now: Timestamp) -> Decisions {
        let (mut round, mut decisions) = (DecisionRound::default(), Decisions::default());
        while let Some(step) = self.step(now, &mut round) {
            decisions.add(step);
        }
        decisions
    }

    /// Takes the next step of a decision, for a caller that acts between two steps; `None` is that it is complete.
    pub fn step(&mut self, now: Timestamp, round: &mut DecisionRound) -> Option<DecisionStep> {
        loop {
            match &mut round.phase {
                Phase::Beginning => {
                    round.phase = Phase::Cycles(CYCLES_AT_MOST);
                    let (retried, drained) = (self.end_back_offs(now), self.drain(now));
                    if !retried.is_empty() || !drained.is_empty() {
                        return Some(DecisionStep::Beginning { retried, drained });
                    }
                }
                Phase::Cycles(left) if *left > 0 && self.queues.has_work() => {
                    *left -= 1;
                    return Some(self.cycle(now));
                }
                Phase::Cycles(_) => {
                    let reserved: Vec<_> = self.reserved.iter().copied().collect();
                    round.phase = Phase::Admissions(reserved.into_iter());
                }
                Phase::Admissions(reserved) => {
                    let admitted = reserved.find(|id| self.admit_where_free(*id));
                    return admitted.map(DecisionStep::Admitted);
                }
            }
        }
    }

    /// Ends the back-offs whose time has come, and returns the workloads that may be tried again.
    pub(super) fn end_back_offs(&mut self, now: Timestamp) -> Vec<WorkloadId> {
        let mut over = self.queues.end_back_offs(now);
        over.extend(std::iter::from_fn(|| self.external_back_offs.pop_due(now)));
        for id in &over {
            self.entry_mut(*id).backs_off_until = None;
        }
        over
    }

    /// Evicts the workloads that hold quota through a queue whose stop policy drains it.
    fn drain(&mut self, now: Timestamp) -> Vec<Eviction> {
        if !std::mem::take(&mut self.drains) {
            return Vec::new();
        }
        let drained = self.queues.to_drain().into_iter();
        let evictions = drained.map(|(id, reason)| {
            self.queues.evict(id);
            let was_admitted = self.take_back(now, id, None);
            Eviction {
                workload: id,
                reason: reason.into(),
                by: None,
                reversal: false,
                was_admitted,
            }
        });
        evictions.collect()
    }

    fn cycle(&mut self, now: Timestamp) -> DecisionStep {
        let cycle = self.queues.cycle(now);
        let reserved = cycle.admitted.into_iter().map(|admission| {
            let (workload, waited) = (
                admission.workload,
                self.hold(now, admission.workload, admission.pod_sets),
            );
            let assignment = self.entries[&workload].assignment();
            Reservation {
                workload,
                assignment,
                waited,
            }
        });
        let reserved = reserved.collect();
        let evicted = cycle.preempted.into_iter().map(|preempted| {
            let Preempted {
                workload,
                reason,
                by,
                reversal,
            } = preempted;
            let was_admitted = self.take_back(now, workload, Some(by));
            Eviction {
                workload,
                reason: reason.into(),
                by: Some(by),
                reversal,
                was_admitted,
            }
        });
        DecisionStep::Cycle {
            tried: cycle.tried,
            evicted: evicted.collect(),
            reserved,
            preemptors: cycle.preemptors,
        }
    }

    /// Reserves quota for a workload, and returns how long it had waited.
    pub(super) fn hold(
        &mut self,
        now: Timestamp,
        id: WorkloadId,
        pod_sets: Vec<PodSetAssignment>,
    ) -> SignedDuration {
        let entry = self.entry_mut(id);
        entry.backs_off_until = None;
        entry.reserved_at = now;
        entry.pod_sets = pod_sets;
        let waited = now.duration_since(entry.entered_at);
        self.external_back_offs.cancel(id);
        self.set_status(id, AdmissionStatus::QuotaReserved);
        waited
    }

    /// Takes the quota of a workload back, which the queues know: at once where it was not admitted yet. Returns whether it
    /// was.
    pub(super) fn take_back(&mut self, now: Timestamp, id: WorkloadId, by: Option<WorkloadId>) -> bool {
        let entry = self.entry_mut(id);
        if by.is_some() {
            Arc::make_mut(&mut entry.workload).evicted_by = by;
        }
        let was_admitted = entry.status == AdmissionStatus::Admitted;
        if !was_admitted {
            self.requeue(now, id);
        }
        was_admitted
    }

    /// Puts a workload of which nothing runs back into its queue, if that still takes it.
    fn requeue(&mut self, now: Timestamp, id: WorkloadId) {
        let entry = self.entry_mut(id);
        entry.entered_at = now;
        entry.pod_sets.clear();
        Arc::make_mut(&mut entry.workload).evictions += 1;
        self.set_status(id, AdmissionStatus::Pending);
        self.queues.requeue(id);
        self.enqueue(id);
    }

    /// Admits a workload whose quota is reserved, if there is room for it beside all that are admitted, and returns whether
    /// it was.
    fn admit_where_free(&mut self, id: WorkloadId) -> bool {
        let is = |id, status| self.status(id) == Some(status);
        let has_it = |id| is(id, AdmissionStatus::Admitted);
        let is_free = is(id, AdmissionStatus::QuotaReserved) && self.queues.has_room_beside(id, has_it);
        if is_free {
            self.set_status(id, AdmissionStatus::Admitted);
        }
        is_free
    }

    fn entry_mut(&mut self, id: WorkloadId) -> &mut AdmissionEntry {
        let entry = self.entries.get_mut(&id);
        entry.expect("the queues know only workloads that are known here")
    }
}
