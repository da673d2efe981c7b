//! What the queues tell of themselves: who is in them, how much they hold, and how much they could.

use super::{
    At, Inactive, Quantity, Queues, UnknownQueue, WorkloadId,
    quotas::{FlavorResource, NodeId},
    share::Share,
    tree::Tree,
};

/// A cohort that has queues, itself or below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortFigures<'a> {
    /// Its name.
    pub name: &'a str,
    /// The cohorts that it is in, the nearest first.
    pub above: Vec<&'a str>,
    /// What it has, by flavor and resource.
    pub resources: Vec<CohortResource<'a>>,
}

/// What a cohort has of a resource in a flavor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CohortResource<'a> {
    /// The flavor.
    pub flavor: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// What the cohort and all below it have, without what they do not lend.
    pub quota: Quantity,
    /// What is held in the queues below it.
    pub held: Quantity,
}

impl Queues {
    /// Returns the names of all queues, also of one that is no longer configured, for as long as its quota is held.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let is_there = |at: &At| {
            let queue = self.queue(*at);
            queue.inactive != Some(Inactive::Removed) || !queue.holders.is_empty()
        };
        let there = self.queues.iter().filter(move |(_, at)| is_there(at));
        there.map(|(name, _)| name.as_str())
    }

    /// Returns what a workload holds, by flavor and resource.
    pub fn held_by(&self, id: WorkloadId) -> impl Iterator<Item = (&str, &str, Quantity)> {
        let at = self.workloads.get(&id);
        let held = at.and_then(|at| Some((*at, self.queue(*at).holders.get(&id)?)));
        held.into_iter().flat_map(|(at, holder)| {
            let places = &self.trees[at.tree].places;
            holder.usage.iter().map(|(of, amount)| {
                let (flavor, resource) = &places[of.0];
                (flavor.as_str(), resource.as_str(), *amount)
            })
        })
    }

    /// Returns the cohorts that a queue is in, the nearest first.
    pub fn cohorts_of(&self, queue: &str) -> Result<Vec<&str>, UnknownQueue> {
        let at = self.at(queue)?;
        Ok(self.trees[at.tree].above(self.queue(at).node))
    }

    /// Returns the cohorts that have queues.
    pub fn cohorts(&self) -> impl Iterator<Item = CohortFigures<'_>> {
        self.trees.iter().flat_map(|tree| {
            let cohorts = tree.cohorts.iter().enumerate();
            cohorts.map(|(at, name)| CohortFigures {
                name,
                above: tree.above(NodeId(at)),
                resources: tree.resources_below(NodeId(at)),
            })
        })
    }

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
        Ok(queue.pending.in_order(&queue.users))
    }

    /// Returns how many wait for quota of the queue. It costs the same however many they are.
    pub fn n_waiting(&self, queue: &str) -> Result<usize, UnknownQueue> {
        Ok(self.queue(self.at(queue)?).pending.len())
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

impl Tree {
    /// Returns the cohorts that a node is in, the nearest first.
    fn above(&self, node: NodeId) -> Vec<&str> {
        let above = self.quotas.ancestors(node);
        above.map(|cohort| self.cohorts[cohort.0].as_str()).collect()
    }

    fn resources_below(&self, cohort: NodeId) -> Vec<CohortResource<'_>> {
        let below = self.queues.iter().map(|queue| queue.node);
        let below: Vec<_> = below
            .filter(|queue| self.quotas.ancestors(*queue).any(|above| above == cohort))
            .collect();
        let places = self
            .places
            .iter()
            .enumerate()
            .map(|(at, place)| (FlavorResource(at), place));
        let resources = places.map(|(of, (flavor, resource))| {
            let held = below.iter().map(|queue| self.quotas.usage(*queue, of));
            CohortResource {
                flavor,
                resource,
                quota: self.quotas.subtree(cohort, of),
                held: held.fold(Quantity::ZERO, Quantity::plus),
            }
        });
        resources.collect()
    }
}
