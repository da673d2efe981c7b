//! Victims by share: from whoever has most beyond their own, in proportion to their weight.
//!
//! From the root one goes down into the child with the highest share. The newcomer counts as if it were there already.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, VecDeque},
};

use super::{
    super::{
        Quantity,
        objects::{FairRule, FairSharing, ReclaimWithinCohort, WithinClusterQueue},
        quotas::{FlavorResource, NodeId},
        scene::{Ask, Scene, Victim},
        share::Share,
        workload::{PreemptionReason, WorkloadId},
    },
    Borrowing, Rank, fits, give_back, reclaim_policy, uses, within_policy,
};

pub(super) fn find(
    scene: &mut Scene<'_>,
    ask: &Ask<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
    rules: &FairSharing,
) -> Vec<Victim> {
    let candidates = candidates(scene, ask, needs);
    if candidates.is_empty() {
        return Vec::new();
    }
    let node = scene.queues[ask.queue].node;
    scene.quotas.add(node, usage);
    let mut hunt = Hunt {
        ask,
        usage,
        victims: Vec::new(),
        refused: Vec::new(),
    };
    let mut found = hunt.by_first_rule(scene, candidates, needs, rules.first);
    if !found && rules.then.is_some() {
        found = hunt.by_initial_share(scene);
    }
    scene.quotas.remove(node, usage);
    let mut victims = hunt.victims;
    if found {
        give_back(scene, ask, usage, Borrowing::Allowed, &mut victims);
    }
    scene.add_all(&victims);
    if found { victims } else { Vec::new() }
}

/// Those who may be evicted, by queue, each queue's first first.
type Candidates = BTreeMap<usize, VecDeque<(Rank, WorkloadId)>>;

fn candidates(scene: &Scene<'_>, ask: &Ask<'_>, needs: &[FlavorResource]) -> Candidates {
    let own = &scene.queues[ask.queue];
    let mut found: BTreeMap<usize, Vec<(Rank, WorkloadId)>> = BTreeMap::new();
    let within = own.terms.preemption.within_cluster_queue;
    if within != WithinClusterQueue::Never {
        for (id, holder) in &own.holders {
            if within_policy(within, ask, holder) && uses(holder, needs) && !scene.rules.protect(holder, ask)
            {
                found
                    .entry(ask.queue)
                    .or_default()
                    .push((Rank::new(scene, ask, ask.queue, *id, holder), *id));
            }
        }
    }
    let reclaim = own.terms.preemption.reclaim_within_cohort;
    if reclaim != ReclaimWithinCohort::Never {
        for (number, queue) in scene.queues.iter().enumerate() {
            if number == ask.queue || !queue.is_active() || scene.quotas.within_nominal(queue.node, needs) {
                continue;
            }
            for (id, holder) in &queue.holders {
                let protected = scene.rules.protect(holder, ask);
                if reclaim_policy(reclaim, ask, holder) && uses(holder, needs) && !protected {
                    found
                        .entry(number)
                        .or_default()
                        .push((Rank::new(scene, ask, number, *id, holder), *id));
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

/// A search for victims while the newcomer counts as being there.
struct Hunt<'a> {
    ask: &'a Ask<'a>,
    usage: &'a [(FlavorResource, Quantity)],
    victims: Vec<Victim>,
    /// Those whom the first rule spared, for the second to look at.
    refused: Vec<(usize, Rank, WorkloadId)>,
}

impl Hunt<'_> {
    /// Evicts by the first rule until the newcomer fits, and returns whether it does.
    fn by_first_rule(
        &mut self,
        scene: &mut Scene<'_>,
        candidates: Candidates,
        needs: &[FlavorResource],
        rule: FairRule,
    ) -> bool {
        let own_node = scene.queues[self.ask.queue].node;
        let within_nominal = scene.quotas.within_nominal(own_node, needs);
        let mut order = Order::new(scene, self.ask, candidates);
        while let Some(queue) = order.next(scene) {
            if queue == self.ask.queue || within_nominal {
                let reason = if queue == self.ask.queue {
                    PreemptionReason::InClusterQueue
                } else {
                    PreemptionReason::InCohortReclamation
                };
                let (_, id) = order.pop(queue).expect("a queue that is next has candidates");
                if self.evict(scene, queue, id, reason) {
                    return true;
                }
            } else if self.by_share(scene, &mut order, queue, rule) {
                return true;
            }
        }
        false
    }

    /// Evicts the first of a queue whom the rule lets go, and returns whether the newcomer fits then.
    fn by_share(&mut self, scene: &mut Scene<'_>, order: &mut Order, queue: usize, rule: FairRule) -> bool {
        let (ours, theirs) = order.below_common(scene, queue);
        let our_share = Share::of(scene.quotas, ours);
        let share_before = Share::of(scene.quotas, theirs);
        while let Some((rank, id)) = order.pop(queue) {
            let victim = Victim {
                queue,
                id,
                reason: PreemptionReason::InCohortFairSharing,
            };
            let passes = match rule {
                FairRule::LessThanInitialShare => our_share.compare(&share_before).is_lt(),
                FairRule::LessThanOrEqualToFinalShare => {
                    scene.remove(&victim);
                    let share_after = Share::of(scene.quotas, theirs);
                    scene.add(&victim);
                    our_share.compare(&share_after).is_le()
                }
            };
            if passes {
                return self.evict(scene, queue, id, victim.reason);
            }
            self.refused.push((queue, rank, id));
        }
        false
    }

    /// Evicts, of those whom the first rule spared, at most one of each queue whose share is still the greater, and
    /// returns whether the newcomer fits.
    fn by_initial_share(&mut self, scene: &mut Scene<'_>) -> bool {
        let mut candidates = Candidates::new();
        for (queue, rank, id) in self.refused.drain(..) {
            candidates.entry(queue).or_default().push_back((rank, id));
        }
        let mut order = Order::new(scene, self.ask, candidates);
        while let Some(queue) = order.next(scene) {
            let (ours, theirs) = order.below_common(scene, queue);
            let (_, id) = order.pop(queue).expect("a queue that is next has candidates");
            order.drop_queue(scene, queue);
            let less = Share::of(scene.quotas, ours)
                .compare(&Share::of(scene.quotas, theirs))
                .is_lt();
            if less && self.evict(scene, queue, id, PreemptionReason::InCohortFairSharing) {
                return true;
            }
        }
        false
    }

    /// Takes a victim away, and returns whether the newcomer fits now.
    fn evict(
        &mut self,
        scene: &mut Scene<'_>,
        queue: usize,
        id: WorkloadId,
        reason: PreemptionReason,
    ) -> bool {
        let victim = Victim { queue, id, reason };
        scene.remove(&victim);
        self.victims.push(victim);
        let node = scene.queues[self.ask.queue].node;
        scene.quotas.remove(node, self.usage);
        let fits = fits(scene, self.ask, self.usage, Borrowing::Allowed);
        scene.quotas.add(node, self.usage);
        fits
    }
}

/// From which queue the next victim is taken.
struct Order {
    own_queue: usize,
    own_node: NodeId,
    candidates: Candidates,
    /// Nodes that will yield nobody any more.
    pruned: Vec<bool>,
}

impl Order {
    fn new(scene: &Scene<'_>, ask: &Ask<'_>, candidates: Candidates) -> Self {
        Self {
            own_queue: ask.queue,
            own_node: scene.queues[ask.queue].node,
            candidates,
            pruned: vec![false; scene.quotas.n_nodes()],
        }
    }

    fn pop(&mut self, queue: usize) -> Option<(Rank, WorkloadId)> {
        self.candidates.get_mut(&queue)?.pop_front()
    }

    fn first(&self, queue: usize) -> Option<Rank> {
        self.candidates.get(&queue)?.front().map(|(rank, _)| *rank)
    }

    fn drop_queue(&mut self, scene: &Scene<'_>, queue: usize) {
        self.pruned[scene.queues[queue].node.0] = true;
    }

    /// Returns the queue to take from; it has candidates.
    fn next(&mut self, scene: &Scene<'_>) -> Option<usize> {
        if !scene.quotas.has_parent(self.own_node) {
            let live = !self.pruned[self.own_node.0] && self.first(self.own_queue).is_some();
            return live.then_some(self.own_queue);
        }
        let root = scene.quotas.root(self.own_node);
        while !self.pruned[root.0] {
            if let Some(queue) = self.highest_below(scene, root) {
                return Some(queue);
            }
        }
        None
    }

    /// Goes down into the child with the highest share; `None` is that something was pruned, and one has to look again.
    fn highest_below(&mut self, scene: &Scene<'_>, cohort: NodeId) -> Option<usize> {
        let (queue, queue_share) = self.highest_queue(scene, cohort);
        let (child, cohort_share) = self.highest_cohort(scene, cohort);
        match (child, queue) {
            (None, None) => {
                self.pruned[cohort.0] = true;
                None
            }
            // A cohort wins a tie: whoever has most in it can be chosen there.
            (Some(child), _) if cohort_share.compare(&queue_share).is_ge() => {
                self.highest_below(scene, child)
            }
            (_, queue) => queue,
        }
    }

    fn highest_queue(&mut self, scene: &Scene<'_>, cohort: NodeId) -> (Option<usize>, Share) {
        let mut highest = (None, Share::least());
        for node in &scene.quotas.node(cohort).queues {
            if self.pruned[node.0] {
                continue;
            }
            let queue = scene.queue_at(*node);
            let share = Share::of(scene.quotas, *node);
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

    fn highest_cohort(&mut self, scene: &Scene<'_>, cohort: NodeId) -> (Option<NodeId>, Share) {
        let mut highest = (None, Share::least());
        for child in &scene.quotas.node(cohort).cohorts {
            if self.pruned[child.0] {
                continue;
            }
            let share = Share::of(scene.quotas, *child);
            let ours = scene.quotas.ancestors(self.own_node).any(|above| above == *child);
            if !share.is_borrowing() && !ours {
                self.pruned[child.0] = true;
            } else if share.compare(&highest.1).is_ge() {
                highest = (Some(*child), share);
            }
        }
        highest
    }

    /// Returns the two children of the lowest cohort that has both queues: ours, and the other queue's.
    fn below_common(&self, scene: &Scene<'_>, queue: usize) -> (NodeId, NodeId) {
        let theirs = scene.queues[queue].node;
        let is_ours = |node: NodeId| scene.quotas.ancestors(self.own_node).any(|above| above == node);
        let common = scene
            .quotas
            .ancestors(theirs)
            .find(|above| is_ours(*above))
            .expect("victims are of the same tree");
        let child = |from: NodeId| {
            std::iter::once(from)
                .chain(scene.quotas.ancestors(from))
                .take_while(|node| *node != common)
                .last()
                .expect("a queue is no cohort")
        };
        (child(self.own_node), child(theirs))
    }
}
