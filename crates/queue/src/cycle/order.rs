//! In which order the heads of a tree's queues are served in a cycle.

use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

use super::{
    super::{quotas::NodeId, scene::Scene, share::Share},
    Nominee,
};

/// Orders by who borrows from nearer, then by priority, then by age.
pub(super) fn classical(nominees: &mut [Nominee]) {
    nominees.sort_by_key(|nominee| {
        (
            nominee.assignment.borrowing,
            Reverse(nominee.priority),
            nominee.queued_at,
            nominee.id,
        )
    });
}

/// Returns which of those who remain is served next under fair sharing: a tournament in each cohort, from the leaves up.
pub(super) fn fairest(scene: &mut Scene<'_>, remaining: &[Nominee]) -> usize {
    let root = scene.quotas.root(scene.queues[remaining[0].queue].node);
    let Some(tournament) = Tournament::new(scene, remaining, root) else {
        return 0;
    };
    tournament.winner(scene, root).expect("somebody remains")
}

struct Tournament<'a> {
    remaining: &'a [Nominee],
    by_node: BTreeMap<NodeId, usize>,
    /// The share of the child of a cohort that a nominee is below, were it admitted.
    shares: BTreeMap<(NodeId, usize), Share>,
}

impl<'a> Tournament<'a> {
    /// Works out the shares; `None` where there is no cohort and so no contest.
    fn new(scene: &mut Scene<'_>, remaining: &'a [Nominee], root: NodeId) -> Option<Self> {
        let mut tournament = Self {
            remaining,
            by_node: BTreeMap::new(),
            shares: BTreeMap::new(),
        };
        for (number, nominee) in remaining.iter().enumerate() {
            let node = scene.queues[nominee.queue].node;
            if node == root {
                return None;
            }
            tournament.by_node.insert(node, number);
            scene.quotas.add(node, &nominee.assignment.usage);
            let mut below = node;
            for cohort in scene.quotas.ancestors(node) {
                tournament
                    .shares
                    .insert((cohort, number), Share::of(scene.quotas, below));
                below = cohort;
            }
            scene.quotas.remove(node, &nominee.assignment.usage);
        }
        Some(tournament)
    }

    fn winner(&self, scene: &Scene<'_>, cohort: NodeId) -> Option<usize> {
        let node = scene.quotas.node(cohort);
        let of_cohorts = node.cohorts.iter().filter_map(|child| self.winner(scene, *child));
        let of_queues = node
            .queues
            .iter()
            .filter_map(|queue| self.by_node.get(queue).copied());
        of_cohorts
            .chain(of_queues)
            .min_by(|a, b| self.compare(cohort, *a, *b))
    }

    /// Compares two as children of a cohort: first who does not borrow what it asks for, then the lesser share, the
    /// higher priority, the longer wait.
    fn compare(&self, cohort: NodeId, a: usize, b: usize) -> Ordering {
        let (share_a, share_b) = (&self.shares[&(cohort, a)], &self.shares[&(cohort, b)]);
        let (a, b) = (&self.remaining[a], &self.remaining[b]);
        let borrows_a = share_a.is_borrowing_on(&a.assignment.usage);
        let borrows_b = share_b.is_borrowing_on(&b.assignment.usage);
        borrows_a
            .cmp(&borrows_b)
            .then_with(|| share_a.compare(share_b))
            .then_with(|| b.priority.cmp(&a.priority))
            .then_with(|| a.queued_at.cmp(&b.queued_at))
            .then_with(|| a.id.cmp(&b.id))
    }
}
