//! Which workloads are preempted so that another fits: Kueue's `preemption`.
//!
//! A search changes nothing: usage that it removes is put back.

mod classical;
mod fair;

use std::cmp::Reverse;

use jiff::Timestamp;

use super::{
    Quantity,
    cycle_state::{CycleState, Request, Victim},
    objects::{ReclaimWithinCohort, WithinClusterQueue},
    quotas::FlavorResource,
    tree::Holder,
    users::Usage,
    workload::WorkloadId,
};

/// The order of candidates for preemption: the least goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    stays: bool,
    own_queue: bool,
    /// The usage of its user, under admission fair sharing.
    usage: Reverse<Usage>,
    priority: i32,
    reserved_at: Reverse<Timestamp>,
    id: WorkloadId,
}

impl Rank {
    fn new(
        state: &CycleState<'_>,
        request: &Request<'_>,
        queue: usize,
        id: WorkloadId,
        holder: &Holder,
    ) -> Self {
        let usage = state.queues[queue].users.usage(holder.entry.user);
        Self {
            stays: !holder.evicted,
            own_queue: queue == request.queue,
            usage: Reverse(usage),
            priority: holder.priority(),
            reserved_at: Reverse(holder.reserved_at),
            id,
        }
    }

    /// Returns whether the holder is not evicted yet; evicted ones come first in any case.
    fn stays(&self) -> bool {
        self.stays
    }

    /// Returns the rank among candidates of several queues, whose users are not compared.
    fn across_queues(self) -> Self {
        Self {
            usage: Reverse(Usage(0.0)),
            ..self
        }
    }
}

/// Returns a smallest set of victims, in the rules' order, without which `usage` fits; an empty one if there is none.
///
/// `needs` are the flavors and resources that have to be freed: only workloads that use them are candidates.
pub(super) fn find(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
) -> Vec<Victim> {
    find_in_mode(state, request, usage, needs).0
}

/// As `find`, and returns with which borrowing the victims are enough.
pub(super) fn find_in_mode(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
) -> (Vec<Victim>, Borrowing) {
    match state.rules.fair {
        Some(rules) => (
            fair::find(state, request, usage, needs, rules),
            Borrowing::Allowed,
        ),
        None => classical::find(state, request, usage, needs),
    }
}

/// Whether the preemptor's own queue may borrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Borrowing {
    Allowed,
    Forbidden,
}

/// Returns whether the usage fits as things are.
pub(super) fn fits(
    state: &CycleState<'_>,
    request: &Request<'_>,
    usage: &[(FlavorResource, Quantity)],
    borrowing: Borrowing,
) -> bool {
    let node = state.queues[request.queue].node;
    usage.iter().all(|(of, amount)| {
        let forbidden = borrowing == Borrowing::Forbidden && state.quotas.would_borrow(node, *of, *amount);
        !forbidden && *amount <= state.quotas.available(node, *of)
    })
}

/// Puts back the victims that are not needed, the last removed first. The very last one is needed: without it the workload did
/// not fit.
///
/// The victims are gone from the state before and after.
fn give_back(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    usage: &[(FlavorResource, Quantity)],
    borrowing: Borrowing,
    victims: &mut Vec<Victim>,
) {
    let Some(mut number) = victims.len().checked_sub(1) else {
        return;
    };
    while number > 0 {
        number -= 1;
        state.add(&victims[number]);
        if fits(state, request, usage, borrowing) {
            victims.remove(number);
        } else {
            state.remove(&victims[number]);
        }
    }
}

fn uses(holder: &Holder, needs: &[FlavorResource]) -> bool {
    holder.usage.iter().any(|(of, _)| needs.contains(of))
}

fn within_policy(policy: WithinClusterQueue, request: &Request<'_>, holder: &Holder) -> bool {
    let lower = holder.priority() < request.priority;
    match policy {
        WithinClusterQueue::Never => false,
        WithinClusterQueue::LowerPriority => lower,
        WithinClusterQueue::LowerOrNewerEqualPriority => {
            lower || (holder.priority() == request.priority && request.queued_at < holder.queued_at())
        }
    }
}

fn reclaim_policy(policy: ReclaimWithinCohort, request: &Request<'_>, holder: &Holder) -> bool {
    match policy {
        ReclaimWithinCohort::Never => false,
        ReclaimWithinCohort::LowerPriority => holder.priority() < request.priority,
        ReclaimWithinCohort::Any => true,
    }
}
