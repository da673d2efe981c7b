//! Victims by priority and by who borrows.
//!
//! First those over whom the newcomer has a hierarchical advantage: they use what belongs to a cohort nearer to its
//! queue. Then those of other queues by priority, then those of its own.

use std::collections::BTreeMap;

use super::{
    super::{
        Quantity,
        objects::{BorrowWithinCohort, ReclaimWithinCohort, WithinClusterQueue},
        quotas::{FlavorResource, NodeId},
        scene::{Ask, Scene, Victim},
        tree::Holder,
        workload::PreemptionReason,
    },
    Borrowing, Rank, fits, give_back, reclaim_policy, uses, within_policy,
};

/// Somebody who may be evicted.
#[derive(Clone, Copy)]
struct Candidate {
    step: Step,
    rank: Rank,
    victim: Victim,
    /// Whether it may be evicted even when the newcomer's queue borrows.
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
    scene: &mut Scene<'_>,
    ask: &Ask<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
) -> (Vec<Victim>, Borrowing) {
    let candidates = candidates(scene, ask, usage, needs);
    for borrowing in attempts(scene, ask, needs, &candidates) {
        let mut victims = Vec::new();
        let found = take(scene, ask, usage, needs, (&candidates, borrowing), &mut victims);
        if found {
            give_back(scene, ask, usage, borrowing, &mut victims);
        }
        scene.add_all(&victims);
        if found {
            return (victims, borrowing);
        }
    }
    (Vec::new(), Borrowing::Allowed)
}

/// Takes away candidates in order until the newcomer fits, and returns whether it does.
fn take(
    scene: &mut Scene<'_>,
    ask: &Ask<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
    (candidates, borrowing): (&[Candidate], Borrowing),
    victims: &mut Vec<Victim>,
) -> bool {
    for candidate in candidates {
        if !is_valid(scene, candidate, needs, borrowing) {
            continue;
        }
        scene.remove(&candidate.victim);
        victims.push(candidate.victim);
        if fits(scene, ask, usage, borrowing) {
            return true;
        }
    }
    false
}

/// Returns with and without borrowing, in the order to be tried. Without, there are more candidates, but less room.
fn attempts(
    scene: &Scene<'_>,
    ask: &Ask<'_>,
    needs: &[FlavorResource],
    candidates: &[Candidate],
) -> Vec<Borrowing> {
    let forbidden = scene.queues[ask.queue]
        .terms
        .preemption
        .borrow_within_cohort
        .is_none();
    let node = scene.queues[ask.queue].node;
    let below_nominal = || {
        needs
            .iter()
            .all(|of| scene.quotas.usage(node, *of) < scene.quotas.quota(node, *of).nominal)
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

/// Returns whether evicting the candidate still takes from one who has too much.
fn is_valid(
    scene: &Scene<'_>,
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
    let node = scene.queues[candidate.victim.queue].node;
    let below_common = scene.quotas.ancestors(node).take_while(|above| *above != common);
    !std::iter::once(node)
        .chain(below_common)
        .any(|node| scene.quotas.within_nominal(node, needs))
}

fn candidates(
    scene: &Scene<'_>,
    ask: &Ask<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
) -> Vec<Candidate> {
    let mut found = Vec::new();
    let preemption = scene.queues[ask.queue].terms.preemption;
    if preemption.within_cluster_queue != WithinClusterQueue::Never {
        own_candidates(scene, ask, needs, &mut found);
    }
    if preemption.reclaim_within_cohort != ReclaimWithinCohort::Never {
        others(scene, ask, usage, needs, &mut found);
    }
    found.sort_unstable_by_key(|candidate| {
        (
            candidate.rank.stays(),
            candidate.step,
            candidate.rank.across_queues(),
        )
    });
    order_by_usage(scene, &mut found);
    found
}

/// Puts, of those of one queue in which usage counts, them first whose user had more. Among those of other queues each queue
/// keeps the places that it has: with users of several, Kueue's order goes round.
fn order_by_usage(scene: &Scene<'_>, found: &mut [Candidate]) {
    let mut places: BTreeMap<(bool, Step, usize), Vec<usize>> = BTreeMap::new();
    for (place, candidate) in found.iter().enumerate() {
        let queue = candidate.victim.queue;
        if scene.queues[queue].users.by_usage() {
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

fn own_candidates(scene: &Scene<'_>, ask: &Ask<'_>, needs: &[FlavorResource], found: &mut Vec<Candidate>) {
    let own = &scene.queues[ask.queue];
    let policy = own.terms.preemption.within_cluster_queue;
    for (id, holder) in &own.holders {
        if uses(holder, needs) && within_policy(policy, ask, holder) && !scene.rules.protect(holder, ask) {
            found.push(Candidate {
                step: Step::OwnQueue,
                rank: Rank::new(scene, ask, ask.queue, *id, holder),
                victim: Victim {
                    queue: ask.queue,
                    id: *id,
                    reason: PreemptionReason::InClusterQueue,
                },
                while_borrowing: true,
                common: None,
            });
        }
    }
}

/// Goes up from the newcomer's queue; from where its request fits into a subtree's own quota on, it has the advantage
/// over whoever is outside that subtree.
fn others(
    scene: &Scene<'_>,
    ask: &Ask<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
    found: &mut Vec<Candidate>,
) {
    let node = scene.queues[ask.queue].node;
    let (mut fits, mut rest) = scene.quotas.fits_in_quota(node, usage);
    let mut came_from = node;
    for cohort in scene.quotas.ancestors(node) {
        let step = if fits { Step::Hierarchy } else { Step::Priority };
        below(scene, ask, needs, (cohort, came_from, step), cohort, found);
        let (fits_here, beyond) = scene.quotas.fits_in_quota(cohort, &rest);
        fits |= fits_here;
        rest = beyond;
        came_from = cohort;
    }
}

/// Collects candidates below `at` from queues that use more than their own, through cohorts that do.
fn below(
    scene: &Scene<'_>,
    ask: &Ask<'_>,
    needs: &[FlavorResource],
    from: (NodeId, NodeId, Step),
    at: NodeId,
    found: &mut Vec<Candidate>,
) {
    let (common, came_from, step) = from;
    let node = scene.quotas.node(at);
    for cohort in &node.cohorts {
        if *cohort != came_from && !scene.quotas.within_nominal(*cohort, needs) {
            below(scene, ask, needs, from, *cohort, found);
        }
    }
    for queue in &node.queues {
        let number = scene.queue_at(*queue);
        if number == ask.queue || scene.quotas.within_nominal(*queue, needs) {
            continue;
        }
        for (id, holder) in &scene.queues[number].holders {
            if let Some((reason, while_borrowing)) = way(scene, ask, needs, step, holder) {
                let victim = Victim {
                    queue: number,
                    id: *id,
                    reason,
                };
                found.push(Candidate {
                    step,
                    rank: Rank::new(scene, ask, number, *id, holder),
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
    scene: &Scene<'_>,
    ask: &Ask<'_>,
    needs: &[FlavorResource],
    step: Step,
    holder: &Holder,
) -> Option<(PreemptionReason, bool)> {
    let preemption = scene.queues[ask.queue].terms.preemption;
    let allowed = reclaim_policy(preemption.reclaim_within_cohort, ask, holder);
    if !uses(holder, needs) || !allowed || scene.rules.protect(holder, ask) {
        return None;
    }
    if step == Step::Hierarchy {
        return Some((PreemptionReason::InCohortReclamation, true));
    }
    match preemption.borrow_within_cohort {
        Some(terms) if is_below_threshold(terms, ask, holder) => {
            Some((PreemptionReason::InCohortReclaimWhileBorrowing, true))
        }
        Some(_) | None => Some((PreemptionReason::InCohortReclamation, false)),
    }
}

fn is_below_threshold(terms: BorrowWithinCohort, ask: &Ask<'_>, holder: &Holder) -> bool {
    holder.priority() < ask.priority
        && terms
            .max_priority_threshold
            .is_none_or(|most| holder.priority() <= most)
}
