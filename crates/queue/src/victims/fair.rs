//! Victims by dominant resource share: from the queue that borrows most in proportion to its weight.
//!
//! The search goes from the root down into the child with the highest share. The preemptor counts as if it were admitted.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, VecDeque},
};

use super::{
    super::{
        Quantity,
        cycle_state::{CycleState, Request, Victim},
        objects::{FairRule, FairSharing, ReclaimWithinCohort, WithinClusterQueue},
        quotas::{FlavorResource, NodeId},
        share::Share,
        workload::{PreemptionReason, WorkloadId},
    },
    Borrowing, Rank, fits, give_back, reclaim_policy, uses, within_policy,
};

pub(super) fn find(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
    rules: &FairSharing,
) -> Vec<Victim> {
    let candidates = candidates(state, request, needs);
    if candidates.is_empty() {
        return Vec::new();
    }
    let node = state.queues[request.queue].node;
    state.quotas.add(node, usage);
    let mut hunt = Hunt {
        request,
        usage,
        victims: Vec::new(),
        refused: Vec::new(),
    };
    let mut found = hunt.by_first_rule(state, candidates, needs, rules.first);
    if !found && rules.then.is_some() {
        found = hunt.by_initial_share(state);
    }
    state.quotas.remove(node, usage);
    let mut victims = hunt.victims;
    if found {
        give_back(state, request, usage, Borrowing::Allowed, &mut victims);
    }
    state.add_all(&victims);
    if found { victims } else { Vec::new() }
}

/// The candidates by queue, in the order of preemption.
type Candidates = BTreeMap<usize, VecDeque<(Rank, WorkloadId)>>;

fn candidates(state: &CycleState<'_>, request: &Request<'_>, needs: &[FlavorResource]) -> Candidates {
    let own = &state.queues[request.queue];
    let mut found: BTreeMap<usize, Vec<(Rank, WorkloadId)>> = BTreeMap::new();
    let within = own.terms.preemption.within_cluster_queue;
    if within != WithinClusterQueue::Never {
        for (id, holder) in &own.holders {
            if within_policy(within, request, holder)
                && uses(holder, needs)
                && !state.rules.protect(holder, request)
            {
                found
                    .entry(request.queue)
                    .or_default()
                    .push((Rank::new(state, request, request.queue, *id, holder), *id));
            }
        }
    }
    let reclaim = own.terms.preemption.reclaim_within_cohort;
    if reclaim != ReclaimWithinCohort::Never {
        for (number, queue) in state.queues.iter().enumerate() {
            if number == request.queue || !queue.is_active() || state.quotas.within_nominal(queue.node, needs)
            {
                continue;
            }
            for (id, holder) in &queue.holders {
                let protected = state.rules.protect(holder, request);
                if reclaim_policy(reclaim, request, holder) && uses(holder, needs) && !protected {
                    found
                        .entry(number)
                        .or_default()
                        .push((Rank::new(state, request, number, *id, holder), *id));
                }
            }
        }
    }
    let sorted = found.into_iter().map(|(queue, mut list)| {
        list.sort_unstable();
        (queue, list.into())
    });
    sorted.collect()
}

/// A search for victims while the preemptor counts as admitted.
struct Hunt<'a> {
    request: &'a Request<'a>,
    usage: &'a [(FlavorResource, Quantity)],
    victims: Vec<Victim>,
    /// Candidates that the first rule refused, for the second rule.
    refused: Vec<(usize, Rank, WorkloadId)>,
}

impl Hunt<'_> {
    /// Evicts by the first rule until the preemptor fits, and returns whether it does.
    fn by_first_rule(
        &mut self,
        state: &mut CycleState<'_>,
        candidates: Candidates,
        needs: &[FlavorResource],
        rule: FairRule,
    ) -> bool {
        let own_node = state.queues[self.request.queue].node;
        let within_nominal = state.quotas.within_nominal(own_node, needs);
        let mut order = Order::new(state, self.request, candidates);
        while let Some(queue) = order.next(state) {
            if queue == self.request.queue || within_nominal {
                let reason = if queue == self.request.queue {
                    PreemptionReason::InClusterQueue
                } else {
                    PreemptionReason::InCohortReclamation
                };
                let (_, id) = order.pop(queue).expect("a queue that is next has candidates");
                if self.evict(state, queue, id, reason) {
                    return true;
                }
            } else if self.by_share(state, &mut order, queue, rule) {
                return true;
            }
        }
        false
    }

    /// Preempts the first candidate of a queue that the rule allows, and returns whether the preemptor fits then.
    fn by_share(
        &mut self,
        state: &mut CycleState<'_>,
        order: &mut Order,
        queue: usize,
        rule: FairRule,
    ) -> bool {
        let (ours, theirs) = order.below_common(state, queue);
        let our_share = Share::of(state.quotas, ours);
        let share_before = Share::of(state.quotas, theirs);
        while let Some((rank, id)) = order.pop(queue) {
            let victim = Victim {
                queue,
                id,
                reason: PreemptionReason::InCohortFairSharing,
            };
            let passes = match rule {
                FairRule::LessThanInitialShare => our_share.compare(&share_before).is_lt(),
                FairRule::LessThanOrEqualToFinalShare => {
                    state.remove(&victim);
                    let share_after = Share::of(state.quotas, theirs);
                    state.add(&victim);
                    our_share.compare(&share_after).is_le()
                }
            };
            if passes {
                return self.evict(state, queue, id, victim.reason);
            }
            self.refused.push((queue, rank, id));
        }
        false
    }

    /// Preempts, of the candidates that the first rule refused, at most one of each queue whose share is still higher, and
    /// returns whether the preemptor fits.
    fn by_initial_share(&mut self, state: &mut CycleState<'_>) -> bool {
        let mut candidates = Candidates::new();
        for (queue, rank, id) in self.refused.drain(..) {
            candidates.entry(queue).or_default().push_back((rank, id));
        }
        let mut order = Order::new(state, self.request, candidates);
        while let Some(queue) = order.next(state) {
            let (ours, theirs) = order.below_common(state, queue);
            let (_, id) = order.pop(queue).expect("a queue that is next has candidates");
            order.drop_queue(state, queue);
            let less = Share::of(state.quotas, ours)
                .compare(&Share::of(state.quotas, theirs))
                .is_lt();
            if less && self.evict(state, queue, id, PreemptionReason::InCohortFairSharing) {
                return true;
            }
        }
        false
    }

    /// Removes a victim, and returns whether the preemptor fits now.
    fn evict(
        &mut self,
        state: &mut CycleState<'_>,
        queue: usize,
        id: WorkloadId,
        reason: PreemptionReason,
    ) -> bool {
        let victim = Victim { queue, id, reason };
        state.remove(&victim);
        self.victims.push(victim);
        let node = state.queues[self.request.queue].node;
        state.quotas.remove(node, self.usage);
        let fits = fits(state, self.request, self.usage, Borrowing::Allowed);
        state.quotas.add(node, self.usage);
        fits
    }
}

/// From which queue the next victim is taken.
struct Order {
    own_queue: usize,
    own_node: NodeId,
    candidates: Candidates,
    /// Nodes without candidates that are left.
    pruned: Vec<bool>,
}

impl Order {
    fn new(state: &CycleState<'_>, request: &Request<'_>, candidates: Candidates) -> Self {
        Self {
            own_queue: request.queue,
            own_node: state.queues[request.queue].node,
            candidates,
            pruned: vec![false; state.quotas.n_nodes()],
        }
    }

    fn pop(&mut self, queue: usize) -> Option<(Rank, WorkloadId)> {
        self.candidates.get_mut(&queue)?.pop_front()
    }

    fn first(&self, queue: usize) -> Option<Rank> {
        self.candidates.get(&queue)?.front().map(|(rank, _)| *rank)
    }

    fn drop_queue(&mut self, state: &CycleState<'_>, queue: usize) {
        self.pruned[state.queues[queue].node.0] = true;
    }

    /// Returns the queue to take from; it has candidates.
    fn next(&mut self, state: &CycleState<'_>) -> Option<usize> {
        if !state.quotas.has_parent(self.own_node) {
            let live = !self.pruned[self.own_node.0] && self.first(self.own_queue).is_some();
            return live.then_some(self.own_queue);
        }
        let root = state.quotas.root(self.own_node);
        while !self.pruned[root.0] {
            if let Some(queue) = self.highest_below(state, root) {
                return Some(queue);
            }
        }
        None
    }

    /// Goes down into the child with the highest share; `None` is that something was pruned, and one has to look again.
    fn highest_below(&mut self, state: &CycleState<'_>, cohort: NodeId) -> Option<usize> {
        let (queue, queue_share) = self.highest_queue(state, cohort);
        let (child, cohort_share) = self.highest_cohort(state, cohort);
        match (child, queue) {
            (None, None) => {
                self.pruned[cohort.0] = true;
                None
            }
            // A cohort wins a tie: the queue with the highest share in it can be chosen there.
            (Some(child), _) if cohort_share.compare(&queue_share).is_ge() => {
                self.highest_below(state, child)
            }
            (_, queue) => queue,
        }
    }

    fn highest_queue(&mut self, state: &CycleState<'_>, cohort: NodeId) -> (Option<usize>, Share) {
        let mut highest = (None, Share::least());
        for node in &state.quotas.node(cohort).queues {
            if self.pruned[node.0] {
                continue;
            }
            let queue = state.queue_at(*node);
            let share = Share::of(state.quotas, *node);
            let Some(first) = self
                .first(queue)
                .filter(|_| share.is_borrowing() || queue == self.own_queue)
            else {
                self.pruned[node.0] = true;
                continue;
            };
            match share.compare(&highest.1) {
                Ordering::Less => {}
                Ordering::Equal => {
                    if highest
                        .0
                        .and_then(|queue| self.first(queue))
                        .is_none_or(|other| first < other)
                    {
                        highest = (Some(queue), share);
                    }
                }
                Ordering::Greater => highest = (Some(queue), share),
            }
        }
        highest
    }

    fn highest_cohort(&mut self, state: &CycleState<'_>, cohort: NodeId) -> (Option<NodeId>, Share) {
        let mut highest = (None, Share::least());
        for child in &state.quotas.node(cohort).cohorts {
            if self.pruned[child.0] {
                continue;
            }
            let share = Share::of(state.quotas, *child);
            let ours = state.quotas.ancestors(self.own_node).any(|above| above == *child);
            if !share.is_borrowing() && !ours {
                self.pruned[child.0] = true;
            } else if share.compare(&highest.1).is_ge() {
                highest = (Some(*child), share);
            }
        }
        highest
    }

    /// Returns the two children of the lowest cohort that has both queues: ours, and the other queue's.
    fn below_common(&self, state: &CycleState<'_>, queue: usize) -> (NodeId, NodeId) {
        let theirs = state.queues[queue].node;
        let is_ours = |node: NodeId| state.quotas.ancestors(self.own_node).any(|above| above == node);
        let common = state
            .quotas
            .ancestors(theirs)
            .find(|above| is_ours(*above))
            .expect("victims are of the same tree");
        let child = |from: NodeId| {
            std::iter::once(from)
                .chain(state.quotas.ancestors(from))
                .take_while(|node| *node != common)
                .last()
                .expect("a queue is no cohort")
        };
        (child(self.own_node), child(theirs))
    }
}
