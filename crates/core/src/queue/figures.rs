//! What the queues tell of themselves: who is in them, how much they hold, and how much they could.

use super::{Inactive, Quantity, Queues, UnknownQueue, WorkloadId, quotas::NodeId, share::Share};

impl Queues {
    /// Returns how much the queue's workloads hold of a resource in a flavor.
    pub fn usage(&self, queue: &str, flavor: &str, resource: &str) -> Result<Quantity, UnknownQueue> {
        let at = self.at(queue)?;
        let (tree, node) = (&self.trees[at.tree], self.queue(at).node);
        let place = tree.place(flavor, resource);
        Ok(place.map_or(Quantity::ZERO, |of| tree.quotas.usage(node, of)))
    }

    /// Returns who holds quota of the queue.
    pub fn holders(&self, queue: &str) -> Result<Vec<WorkloadId>, UnknownQueue> {
        let at = self.at(queue)?;
        Ok(self.queue(at).holders.keys().copied().collect())
    }

    /// Returns who waits for quota of the queue, the first one first.
    pub fn waiting(&self, queue: &str) -> Result<Vec<WorkloadId>, UnknownQueue> {
        let at = self.at(queue)?;
        let queue = self.queue(at);
        Ok(queue.line.in_order(&queue.users))
    }

    /// Returns why the queue admits nobody, or `None` where it admits.
    pub fn inactive(&self, queue: &str) -> Result<Option<&Inactive>, UnknownQueue> {
        let at = self.at(queue)?;
        Ok(self.queue(at).inactive.as_ref())
    }

    /// Returns what the queue could have now of a resource in a flavor, without evicting anybody.
    pub fn available(&self, queue: &str, flavor: &str, resource: &str) -> Result<Quantity, UnknownQueue> {
        let at = self.at(queue)?;
        let (tree, node) = (&self.trees[at.tree], self.queue(at).node);
        let place = tree.place(flavor, resource);
        Ok(place.map_or(Quantity::ZERO, |of| tree.quotas.available(node, of)))
    }

    /// Returns the most that the queue could ever have of a resource in a flavor.
    pub fn potential(&self, queue: &str, flavor: &str, resource: &str) -> Result<Quantity, UnknownQueue> {
        let at = self.at(queue)?;
        let (tree, node) = (&self.trees[at.tree], self.queue(at).node);
        let place = tree.place(flavor, resource);
        Ok(place.map_or(Quantity::ZERO, |of| tree.quotas.potential(node, of)))
    }

    /// Returns how much more than its own the queue has: thousandths of what its cohort could lend, by its weight.
    pub fn weighted_share(&self, queue: &str) -> Result<f64, UnknownQueue> {
        let at = self.at(queue)?;
        Ok(Share::of(&self.trees[at.tree].quotas, self.queue(at).node).weighted())
    }

    /// Returns the resource of which the queue borrows most in proportion, or `None` when it borrows nothing.
    pub fn dominant_resource(&self, queue: &str) -> Result<Option<&str>, UnknownQueue> {
        let at = self.at(queue)?;
        let tree = &self.trees[at.tree];
        let dominant = Share::of(&tree.quotas, self.queue(at).node).dominant;
        Ok(dominant.and_then(|number| tree.resource(number)))
    }

    /// Returns how much more than its own a cohort with queues has, as [`Queues::weighted_share`]; `None` where there
    /// is no such cohort.
    pub fn cohort_share(&self, cohort: &str) -> Option<f64> {
        self.trees.iter().find_map(|tree| {
            let at = tree.cohorts.iter().position(|name| name == cohort)?;
            Some(Share::of(&tree.quotas, NodeId(at)).weighted())
        })
    }
}
