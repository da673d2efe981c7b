//! One scheduling cycle of a tree: the head of each queue is nominated; then, in order, each is admitted, preempts others, is
//! skipped or is inadmissible.
//!
//! Kueue's `scheduler.schedule`. What a cycle counts as used beside what is admitted lasts for the cycle only.

mod order;

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::{
    Quantity,
    assign::{self, Assignment, Mode},
    cycle_state::{CycleState, Request, Rules, Victim},
    objects::ReclaimWithinCohort,
    quotas::{NodeId, Usage},
    tree::{Holder, Searches, Tree},
    workload::{Preempted, WorkloadId},
};

/// What a cycle decided.
#[derive(Debug, Default)]
pub(super) struct TreeCycle {
    pub(super) admitted: Vec<(usize, WorkloadId, Assignment)>,
    pub(super) preempted: Vec<Preempted>,
    pub(super) preemptors: Vec<WorkloadId>,
    /// How many workloads were nominated.
    pub(super) tried: usize,
    /// Whether the next cycle could differ from this one.
    pub(super) changed: bool,
}

/// The head of a queue with its assignment and the victims that this needs.
struct NominatedWorkload {
    queue: usize,
    id: WorkloadId,
    priority: i32,
    queued_at: Timestamp,
    assignment: Assignment,
    victims: Vec<Victim>,
}

/// What a cycle decides about a nominated workload.
enum NominationOutcome {
    Admitted,
    /// It waits until the quota of its victims is released.
    Preempting,
    /// A workload before it in this cycle took the quota that it needs; it is tried again in the next one.
    Skipped,
    /// It neither fits nor has victims.
    Inadmissible,
}

/// The quota and the victims that a cycle has promised; they count for the rest of the cycle only.
#[derive(Default)]
struct CycleReservations {
    /// Usage that is reserved though no workload is admitted with it yet.
    usage: Vec<(NodeId, Usage)>,
    victims: Vec<Victim>,
    victim_ids: BTreeSet<WorkloadId>,
}

impl Tree {
    /// Runs one cycle.
    pub(super) fn cycle(&mut self, now: Timestamp, rules: Rules<'_>) -> TreeCycle {
        self.cycles += 1;
        for queue in &mut self.queues {
            queue.users.advance(now);
        }
        if self.searched.is_empty() {
            self.searched.push(self.searches());
        }
        let mut nominated = self.nominate(rules);
        if rules.fair.is_none() {
            order::classical(&mut nominated);
            nominated.reverse();
        }
        let mut result = TreeCycle {
            tried: nominated.len(),
            ..TreeCycle::default()
        };
        let mut reservations = CycleReservations::default();
        while !nominated.is_empty() {
            let workload = match rules.fair {
                None => nominated.pop().expect("some are left"),
                Some(_) => nominated.remove(order::fairest(&mut self.cycle_state(rules), &nominated)),
            };
            let outcome = decide(&mut self.cycle_state(rules), &workload, &mut reservations);
            self.carry_out(workload, &outcome, now, &mut result);
        }
        for (node, usage) in reservations.usage {
            self.quotas.unreserve(node, &usage);
        }
        if result.changed {
            self.searched = vec![self.searches()];
        } else {
            result.changed = self.searches_on();
        }
        result
    }

    /// Returns the pending workloads with flavors left to try, and where their searches go on.
    fn searches(&self) -> Searches {
        let queues = self.queues.iter().enumerate();
        queues
            .flat_map(|(number, queue)| queue.pending.searches().map(move |(id, next)| (number, id, next)))
            .collect()
    }

    /// Returns whether a cycle that decided nothing leaves searches for flavors where they have not been since something
    /// changed. Kueue would try the same flavors over and over; once round is enough.
    fn searches_on(&mut self) -> bool {
        let now = self.searches();
        if self.searched.contains(&now) {
            return false;
        }
        self.searched.push(now);
        true
    }

    /// Nominates the head of each queue, with the assignment that it would get.
    fn nominate(&mut self, rules: Rules<'_>) -> Vec<NominatedWorkload> {
        let number = self.cycles;
        let mut nominated = Vec::new();
        for queue in 0..self.queues.len() {
            let Some((id, entry)) = self.queues[queue].head() else {
                continue;
            };
            let shape = Arc::clone(&self.queues[queue].shapes[entry.class.shape]);
            let generation = self.queues[queue].generation;
            let mut state = self.cycle_state(rules);
            let request = Request {
                queue,
                evictions: entry.evictions,
                priority: entry.class.priority,
                queued_at: entry.queued_at,
                shape: &shape,
            };
            let progress = state.queues[queue].pending.progress(id);
            let progress = progress.filter(|last| number - last.cycle <= 1 || generation <= last.generation);
            let (mut assignment, victims) = assign::assign_with_victims(&mut state, &request, progress);
            assignment.progress.cycle = number;
            assignment.progress.generation = generation;
            nominated.push(NominatedWorkload {
                queue,
                id,
                priority: request.priority,
                queued_at: request.queued_at,
                assignment,
                victims,
            });
        }
        nominated
    }

    fn carry_out(
        &mut self,
        workload: NominatedWorkload,
        outcome: &NominationOutcome,
        now: Timestamp,
        result: &mut TreeCycle,
    ) {
        let queue = &mut self.queues[workload.queue];
        match outcome {
            NominationOutcome::Admitted => {
                let entry = queue.pending.remove(workload.id).expect("the head waits");
                let asked = queue.terms.asked(&queue.shapes[entry.class.shape]);
                let gets = workload.assignment.usage.iter();
                let gets = gets.map(|(of, amount)| (self.places[of.0].1.as_str(), *amount));
                queue.users.admit(now, entry.user, asked, gets);
                let holder = Holder {
                    entry,
                    reserved_at: now,
                    usage: workload.assignment.usage.clone(),
                    evicted: false,
                };
                queue.holders.insert(workload.id, holder);
                queue.generation += 1;
                result.changed = true;
                result
                    .admitted
                    .push((workload.queue, workload.id, workload.assignment));
            }
            NominationOutcome::Preempting => {
                let before = queue.pending.preemptor();
                queue.pending.set_preemptor(workload.id);
                queue.pending.forget_progress_of(workload.id);
                let is_new = queue.pending.preemptor() != before;
                let evicts = self.evict(&workload, result);
                result
                    .preemptors
                    .extend((is_new && !evicts).then_some(workload.id));
            }
            NominationOutcome::Skipped => {
                queue
                    .pending
                    .set_progress(workload.id, workload.assignment.progress);
            }
            NominationOutcome::Inadmissible => {
                queue
                    .pending
                    .set_progress(workload.id, workload.assignment.progress);
                result.changed |= queue.pending.mark_inadmissible(workload.id);
            }
        }
    }

    /// Preempts the victims of a nominated workload, and returns whether any of them was not evicted before.
    fn evict(&mut self, workload: &NominatedWorkload, result: &mut TreeCycle) -> bool {
        let before = result.preempted.len();
        let entry = self.queues[workload.queue].pending.entry(workload.id);
        let evicted_by = entry.and_then(|entry| entry.evicted_by);
        for victim in &workload.victims {
            let queue = &mut self.queues[victim.queue];
            let holder = queue.holders.get_mut(&victim.id).expect("a victim holds quota");
            if holder.evicted {
                continue;
            }
            holder.evicted = true;
            holder.entry.evicted_by = Some(workload.id);
            queue.generation += 1;
            result.changed = true;
            result.preempted.push(Preempted {
                workload: victim.id,
                reason: victim.reason,
                by: workload.id,
                reversal: evicted_by == Some(victim.id),
            });
        }
        result.preempted.len() > before
    }
}

/// Decides about a nominated workload after those before it in the cycle; its usage counts from now on.
fn decide(
    state: &mut CycleState<'_>,
    workload: &NominatedWorkload,
    reservations: &mut CycleReservations,
) -> NominationOutcome {
    let node = state.queues[workload.queue].node;
    let mode = workload.assignment.mode;
    if mode == Mode::NoFit {
        return NominationOutcome::Inadmissible;
    }
    if mode == Mode::Preempt && workload.victims.is_empty() {
        reserve_capacity(state, workload, reservations);
        return NominationOutcome::Inadmissible;
    }
    if workload
        .victims
        .iter()
        .any(|victim| reservations.victim_ids.contains(&victim.id))
    {
        return NominationOutcome::Skipped;
    }
    if !still_fits(state, workload, reservations) {
        return NominationOutcome::Skipped;
    }
    reservations.victims.extend(&workload.victims);
    reservations
        .victim_ids
        .extend(workload.victims.iter().map(|victim| victim.id));
    state.quotas.add(node, &workload.assignment.usage);
    if mode == Mode::Fit {
        return NominationOutcome::Admitted;
    }
    reservations.usage.push((node, workload.assignment.usage.clone()));
    NominationOutcome::Preempting
}

/// Returns whether the workload fits without the victims of this cycle and its own.
fn still_fits(
    state: &mut CycleState<'_>,
    workload: &NominatedWorkload,
    reservations: &CycleReservations,
) -> bool {
    let node = state.queues[workload.queue].node;
    state.remove_all(&reservations.victims);
    state.remove_all(&workload.victims);
    let fits = workload
        .assignment
        .usage
        .iter()
        .all(|(of, amount)| *amount <= state.quotas.available(node, *of));
    state.add_all(&workload.victims);
    state.add_all(&reservations.victims);
    fits
}

/// Reserves the request of a workload without victims, up to its queue's limits, so that other queues of the cohort do not
/// take that quota meanwhile. A queue that may reclaim from any workload in the cohort needs no such reservation.
fn reserve_capacity(
    state: &mut CycleState<'_>,
    workload: &NominatedWorkload,
    reservations: &mut CycleReservations,
) {
    let queue = &state.queues[workload.queue];
    if queue.terms.preemption.reclaim_within_cohort == ReclaimWithinCohort::Any {
        return;
    }
    let node = queue.node;
    let reserved = workload.assignment.usage.iter().map(|(of, amount)| {
        let quota = state.quotas.quota(node, *of);
        let used = state.quotas.usage(node, *of);
        let kept = match (workload.assignment.borrowing, quota.borrowing_limit) {
            (0, _) => (*amount).min(quota.nominal.minus(used)).or_zero(),
            (_, None) => *amount,
            (_, Some(limit)) => (*amount).min(quota.nominal.plus(limit).minus(used)),
        };
        (*of, kept)
    });
    let reserved: Usage = reserved.filter(|(_, kept)| *kept != Quantity::ZERO).collect();
    state.quotas.add(node, &reserved);
    reservations.usage.push((node, reserved));
}
