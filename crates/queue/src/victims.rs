//! Who is evicted so that a workload fits: Kueue's `preemption`.
//!
//! Looking changes nothing: whatever is taken away to see whether it helps is put back.

mod classical;
mod fair;

use std::cmp::Reverse;

use jiff::Timestamp;

use super::{
    Quantity,
    objects::{ReclaimWithinCohort, WithinClusterQueue},
    quotas::FlavorResource,
    scene::{Ask, Scene, Victim},
    tree::Holder,
    users::Usage,
    workload::WorkloadId,
};

/// In which order those who may be evicted are: the least goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    stays: bool,
    own_queue: bool,
    /// What its user had lately, where that counts.
    usage: Reverse<Usage>,
    priority: i32,
    reserved_at: Reverse<Timestamp>,
    id: WorkloadId,
}

impl Rank {
    fn new(scene: &Scene<'_>, ask: &Ask<'_>, queue: usize, id: WorkloadId, holder: &Holder) -> Self {
        let usage = scene.queues[queue].users.usage(holder.entry.user);
        Self {
            stays: !holder.evicted,
            own_queue: queue == ask.queue,
            usage: Reverse(usage),
            priority: holder.priority(),
            reserved_at: Reverse(holder.reserved_at),
            id,
        }
    }

    /// Returns whether the holder was not told to go already; those who were go first in any case.
    fn stays(&self) -> bool {
        self.stays
    }

    /// Returns the rank among those of several queues, whose users are not compared.
    fn across_queues(self) -> Self {
        Self {
            usage: Reverse(Usage(0.0)),
            ..self
        }
    }
}

/// Returns a smallest set of workloads, in the rules' order, without which `usage` fits; none when there is no such.
///
/// `needs` are those parts of the usage for which others have to go: only who uses of them is looked at.
pub(super) fn find(
    scene: &mut Scene<'_>,
    ask: &Ask<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
) -> Vec<Victim> {
    find_in_mode(scene, ask, usage, needs).0
}

/// As `find`, and returns in which mode they are enough.
pub(super) fn find_in_mode(
    scene: &mut Scene<'_>,
    ask: &Ask<'_>,
    usage: &[(FlavorResource, Quantity)],
    needs: &[FlavorResource],
) -> (Vec<Victim>, Borrowing) {
    match scene.rules.fair {
        Some(rules) => (fair::find(scene, ask, usage, needs, rules), Borrowing::Allowed),
        None => classical::find(scene, ask, usage, needs),
    }
}

/// Whether the newcomer's own queue may borrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Borrowing {
    Allowed,
    Forbidden,
}

/// Returns whether the usage fits as things are.
pub(super) fn fits(
    scene: &Scene<'_>,
    ask: &Ask<'_>,
    usage: &[(FlavorResource, Quantity)],
    borrowing: Borrowing,
) -> bool {
    let node = scene.queues[ask.queue].node;
    usage.iter().all(|(of, amount)| {
        let forbidden = borrowing == Borrowing::Forbidden && scene.quotas.would_borrow(node, *of, *amount);
        !forbidden && *amount <= scene.quotas.available(node, *of)
    })
}

/// Gives back, the last taken first, whoever need not go. The very last one is needed, or it had not been taken.
///
/// The victims are gone from the scene before and after.
fn give_back(
    scene: &mut Scene<'_>,
    ask: &Ask<'_>,
    usage: &[(FlavorResource, Quantity)],
    borrowing: Borrowing,
    victims: &mut Vec<Victim>,
) {
    let Some(mut number) = victims.len().checked_sub(1) else {
        return;
    };
    while number > 0 {
        number -= 1;
        scene.add(&victims[number]);
        if fits(scene, ask, usage, borrowing) {
            victims.remove(number);
        } else {
            scene.remove(&victims[number]);
        }
    }
}

fn uses(holder: &Holder, needs: &[FlavorResource]) -> bool {
    holder.usage.iter().any(|(of, _)| needs.contains(of))
}

fn within_policy(policy: WithinClusterQueue, ask: &Ask<'_>, holder: &Holder) -> bool {
    let lower = holder.priority() < ask.priority;
    match policy {
        WithinClusterQueue::Never => false,
        WithinClusterQueue::LowerPriority => lower,
        WithinClusterQueue::LowerOrNewerEqualPriority => {
            lower || (holder.priority() == ask.priority && ask.queued_at < holder.queued_at())
        }
    }
}

fn reclaim_policy(policy: ReclaimWithinCohort, ask: &Ask<'_>, holder: &Holder) -> bool {
    match policy {
        ReclaimWithinCohort::Never => false,
        ReclaimWithinCohort::LowerPriority => holder.priority() < ask.priority,
        ReclaimWithinCohort::Any => true,
    }
}
