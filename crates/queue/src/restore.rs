//! From what was decided once to where the queues stood then: nothing here decides.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::{At, PodSetAssignment, Queues, UnknownQueue, Workload, WorkloadId, tree::Holder};

impl Queues {
    /// Gives a workload quota that it has already, as when a log is replayed; whether it fits is not asked.
    /// `pod_sets` is what its sets got, in their order.
    pub fn restore(
        &mut self,
        workload: &Workload,
        pod_sets: &[PodSetAssignment],
        reserved_at: Timestamp,
    ) -> Result<(), UnknownQueue> {
        let at = self.at(&workload.cluster_queue)?;
        let entry = self.entry(at, workload);
        let tree = &mut self.trees[at.tree];
        let usage = tree.usage_of(pod_sets);
        let queue = &mut tree.queues[at.queue];
        tree.quotas.add(queue.node, &usage);
        for (of, amount) in &usage {
            queue.users.note(entry.user, &tree.places[of.0].1, *amount);
        }
        let holder = Holder {
            entry,
            reserved_at,
            usage,
            evicted: false,
        };
        queue.holders.insert(workload.id, holder);
        self.workloads.insert(workload.id, at);
        Ok(())
    }

    /// Gives a waiting workload the quota that a cycle gave it, as when a log is replayed; whether it fits is not asked.
    /// `pod_sets` is what its sets got, in their order. One that has quota keeps what it has.
    pub fn admit(&mut self, workload: &Workload, pod_sets: &[PodSetAssignment], now: Timestamp) {
        if self.holds_quota(workload.id) {
            return;
        }
        let at = self.place_for(workload, pod_sets);
        self.back_offs.cancel(workload.id);
        if let Some(before) = self.workloads.remove(&workload.id) {
            self.queue_mut(before).pending.remove(workload.id);
        }
        let entry = self.entry(at, workload);
        let tree = &mut self.trees[at.tree];
        let usage = tree.usage_of(pod_sets);
        let queue = &mut tree.queues[at.queue];
        tree.quotas.add(queue.node, &usage);
        let asked = queue.terms.asked(&queue.shapes[entry.class.shape]);
        let gets = usage
            .iter()
            .map(|(of, amount)| (tree.places[of.0].1.as_str(), *amount));
        queue.users.admit(now, entry.user, asked, gets);
        queue.generation += 1;
        let holder = Holder {
            entry,
            reserved_at: now,
            usage,
            evicted: false,
        };
        queue.holders.insert(workload.id, holder);
        self.workloads.insert(workload.id, at);
    }

    /// Returns the queue that gave a workload this quota, which may be one that no object makes any more.
    fn place_for(&mut self, workload: &Workload, pod_sets: &[PodSetAssignment]) -> At {
        let name = &workload.cluster_queue;
        let places = pod_sets.iter().flat_map(|set| &set.flavors);
        let places: BTreeSet<(String, String)> = places
            .map(|(resource, flavor)| (flavor.clone(), resource.clone()))
            .collect();
        if let Ok(at) = self.at(name) {
            let tree = &self.trees[at.tree];
            if places
                .iter()
                .all(|(flavor, resource)| tree.place(flavor, resource).is_some())
            {
                return at;
            }
        }
        self.hold_place(name, places);
        self.at(name).expect("a queue that holds quota is there")
    }

    /// Notes that a workload was told to go for another one, which waits until it is gone, as a cycle does.
    pub fn evict_for(&mut self, id: WorkloadId, by: WorkloadId) {
        self.evict(id);
        if let Some(at) = self.workloads.get(&id).copied()
            && let Some(holder) = self.queue_mut(at).holders.get_mut(&id)
        {
            holder.entry.evicted_by = Some(by);
        }
        self.await_preemption(by);
    }

    /// Notes that a workload waits for others that were evicted, as a cycle does; one that does not wait is no mistake.
    pub fn await_preemption(&mut self, id: WorkloadId) {
        if let Some(at) = self.workloads.get(&id).copied() {
            let line = &mut self.queue_mut(at).pending;
            line.set_preemptor(id);
            line.forget_progress_of(id);
        }
    }

    /// Takes it that it is so late: where usage decides who goes first, it is worked out up to here.
    pub fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        for at in &self.by_usage {
            self.trees[at.tree].queues[at.queue].users.advance(now);
        }
    }

    /// Moves each back-off by a span of time, which may be negative: the clock was set.
    pub fn move_back_offs(&mut self, by: SignedDuration) {
        self.back_offs.move_by(by);
    }
}
