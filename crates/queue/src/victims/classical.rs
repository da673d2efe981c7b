//! Victims by priority and by borrowing.
//!
//! First those over whom the preemptor has a hierarchical advantage: they use what belongs to a cohort nearer to its
//! queue. Then those of other queues by priority, then those of its own.

use std::collections::BTreeMap;

use super::{
    super::{
        Quantity,
        cycle_state::{CycleState, Request, Victim},
        objects::{BorrowWithinCohort, ReclaimWithinCohort, WithinClusterQueue},
        quotas::{FlavorResource, NodeId},
        tree::Holder,
        workload::PreemptionReason,
    },
    Borrowing, Rank, fits, give_back, reclaim_policy, uses, within_policy,
};

/// A workload that may be preempted.
#[derive(Clone, Copy)]
struct Candidate {
    step: Step,
    rank: Rank,
    victim: Victim,
    /// Whether it may be evicted even when the preemptor's queue borrows.
    while_borrowing: bool,
    /// The lowest cohort that has both queues; the own queue needs none.
    common: Option<NodeId>,
}

/// Which candidates come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Hierarchy,
    Priority,
    OwnQueue,
}

pub(super) fn find(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
) -> (Vec<Victim>, Borrowing) {
    let candidates = candidates(state, request, usage, needs);
    for borrowing in attempts(state, request, needs, &candidates) {
        let mut victims = Vec::new();
        let found = take(
            state,
            request,
            usage,
            needs,
            (&candidates, borrowing),
            &mut victims,
        );
        if found {
            give_back(state, request, usage, borrowing, &mut victims);
        }
        state.add_all(&victims);
        if found {
            return (victims, borrowing);
        }
    }
    (Vec::new(), Borrowing::Allowed)
}

/// Takes away candidates in order until the preemptor fits, and returns whether it does.
fn take(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
    (candidates, borrowing): (&[Candidate], Borrowing),
    victims: &mut Vec<Victim>,
) -> bool {
    for candidate in candidates {
        if !is_valid(state, candidate, needs, borrowing) {
            continue;
        }
        state.remove(&candidate.victim);
        victims.push(candidate.victim);
        if fits(state, request, usage, borrowing) {
            return true;
        }
    }
    false
}

/// Returns with and without borrowing, in the order to be tried. Without, there are more candidates, but less room.
fn attempts(
    state: &CycleState<'_>,
    request: &Request<'_>,
    needs: &[FlavorResource],
    candidates: &[Candidate],
) -> Vec<Borrowing> {
    let forbidden = state.queues[request.queue]
        .terms
        .preemption
        .borrow_within_cohort
        .is_none();
    let node = state.queues[request.queue].node;
    let below_nominal = || {
        needs
            .iter()
            .all(|of| state.quotas.usage(node, *of) < state.quotas.quota(node, *of).nominal)
    };
    let from_others = candidates
        .iter()
        .any(|candidate| candidate.step != Step::OwnQueue);
    if !from_others || (forbidden && !below_nominal()) {
        return vec![Borrowing::Allowed];
    }
    let hierarchical = candidates
        .iter()
        .any(|candidate| candidate.step == Step::Hierarchy);
    if forbidden && !hierarchical {
        return vec![Borrowing::Forbidden, Borrowing::Allowed];
    }
    vec![Borrowing::Allowed, Borrowing::Forbidden]
}

/// Returns whether the candidate's queue still uses more than its nominal quota.
fn is_valid(
    state: &CycleState<'_>,
    candidate: &Candidate,
    needs: &[FlavorResource],
    borrowing: Borrowing,
) -> bool {
    let Some(common) = candidate.common else {
        return true;
    };
    if borrowing == Borrowing::Allowed && !candidate.while_borrowing {
        return false;
    }
    let node = state.queues[candidate.victim.queue].node;
    let below_common = state.quotas.ancestors(node).take_while(|above| *above != common);
    !std::iter::once(node)
        .chain(below_common)
        .any(|node| state.quotas.within_nominal(node, needs))
}

fn candidates(
    state: &CycleState<'_>,
    request: &Request<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
) -> Vec<Candidate> {
    let mut found = Vec::new();
    let preemption = state.queues[request.queue].terms.preemption;
    if preemption.within_cluster_queue != WithinClusterQueue::Never {
        own_candidates(state, request, needs, &mut found);
    }
    if preemption.reclaim_within_cohort != ReclaimWithinCohort::Never {
        others(state, request, usage, needs, &mut found);
    }
    found.sort_unstable_by_key(|candidate| {
        (
            candidate.rank.stays(),
            candidate.step,
            candidate.rank.across_queues(),
        )
    });
    order_by_usage(state, &mut found);
    found
}

/// Puts, of those of one queue in which usage counts, them first whose user had more. Among those of other queues each queue
/// keeps the places that it has: with users of several, Kueue's order goes round.
fn order_by_usage(state: &CycleState<'_>, found: &mut [Candidate]) {
    let mut places: BTreeMap<(bool, Step, usize), Vec<usize>> = BTreeMap::new();
    for (place, candidate) in found.iter().enumerate() {
        let queue = candidate.victim.queue;
        if state.queues[queue].users.by_usage() {
            let among = (candidate.rank.stays(), candidate.step, queue);
            places.entry(among).or_default().push(place);
        }
    }
    for places in places.into_values() {
        let mut ordered: Vec<_> = places.iter().map(|place| found[*place]).collect();
        ordered.sort_unstable_by_key(|candidate| candidate.rank);
        for (place, candidate) in places.into_iter().zip(ordered) {
            found[place] = candidate;
        }
    }
}

fn own_candidates(
    state: &CycleState<'_>,
    request: &Request<'_>,
    needs: &[FlavorResource],
    found: &mut Vec<Candidate>,
) {
    let own = &state.queues[request.queue];
    let policy = own.terms.preemption.within_cluster_queue;
    for (id, holder) in &own.holders {
        if uses(holder, needs)
            && within_policy(policy, request, holder)
            && !state.rules.protect(holder, request)
        {
            found.push(Candidate {
                step: Step::OwnQueue,
                rank: Rank::new(state, request, request.queue, *id, holder),
                victim: Victim {
                    queue: request.queue,
                    id: *id,
                    reason: PreemptionReason::InClusterQueue,
                },
                while_borrowing: true,
                common: None,
            });
        }
    }
}

/// Goes up from the preemptor's queue; from where its request fits into a subtree's own quota on, it has the advantage
/// over workloads outside that subtree.
fn others(
    state: &CycleState<'_>,
    request: &Request<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
    found: &mut Vec<Candidate>,
) {
    let node = state.queues[request.queue].node;
    let (mut fits, mut rest) = state.quotas.fits_in_quota(node, usage);
    let mut came_from = node;
    for cohort in state.quotas.ancestors(node) {
        let step = if fits { Step::Hierarchy } else { Step::Priority };
        below(state, request, needs, (cohort, came_from, step), cohort, found);
        let (fits_here, beyond) = state.quotas.fits_in_quota(cohort, &rest);
        fits |= fits_here;
        rest = beyond;
        came_from = cohort;
    }
}

/// Collects candidates below `at` from queues that use more than their own, through cohorts that do.
fn below(
    state: &CycleState<'_>,
    request: &Request<'_>,
    needs: &[FlavorResource],
    from: (NodeId, NodeId, Step),
    at: NodeId,
    found: &mut Vec<Candidate>,
) {
    let (common, came_from, step) = from;
    let node = state.quotas.node(at);
    for cohort in &node.cohorts {
        if *cohort != came_from && !state.quotas.within_nominal(*cohort, needs) {
            below(state, request, needs, from, *cohort, found);
        }
    }
    for queue in &node.queues {
        let number = state.queue_at(*queue);
        if number == request.queue || state.quotas.within_nominal(*queue, needs) {
            continue;
        }
        for (id, holder) in &state.queues[number].holders {
            if let Some((reason, while_borrowing)) = way(state, request, needs, step, holder) {
                let victim = Victim {
                    queue: number,
                    id: *id,
                    reason,
                };
                found.push(Candidate {
                    step,
                    rank: Rank::new(state, request, number, *id, holder),
                    victim,
                    while_borrowing,
                    common: Some(common),
                });
            }
        }
    }
}

/// Returns why a holder of another queue may be evicted, and whether even while borrowing.
fn way(
    state: &CycleState<'_>,
    request: &Request<'_>,
    needs: &[FlavorResource],
    step: Step,
    holder: &Holder,
) -> Option<(PreemptionReason, bool)> {
    let preemption = state.queues[request.queue].terms.preemption;
    let allowed = reclaim_policy(preemption.reclaim_within_cohort, request, holder);
    if !uses(holder, needs) || !allowed || state.rules.protect(holder, request) {
        return None;
    }
    if step == Step::Hierarchy {
        return Some((PreemptionReason::InCohortReclamation, true));
    }
    match preemption.borrow_within_cohort {
        Some(terms) if is_below_threshold(terms, request, holder) => {
            Some((PreemptionReason::InCohortReclaimWhileBorrowing, true))
        }
        Some(_) | None => Some((PreemptionReason::InCohortReclamation, false)),
    }
}

fn is_below_threshold(terms: BorrowWithinCohort, request: &Request<'_>, holder: &Holder) -> bool {
    holder.priority() < request.priority
        && terms
            .max_priority_threshold
            .is_none_or(|most| holder.priority() <= most)
}
