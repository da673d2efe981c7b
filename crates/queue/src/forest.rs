//! Makes the trees out of what an admin configured.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    objects::{ClusterQueue, Objects, ResourceGroup, StopPolicy},
    pending_queue::PendingQueue,
    quotas::{FlavorResource, NodeId, Quotas},
    terms::Terms,
    tree::{Inactive, Queue, Tree},
    users::Users,
};

/// The resources in flavors that workloads of a queue hold, by queue; they are counted whether configured or not.
pub(super) type Held = BTreeMap<String, BTreeSet<(String, String)>>;

/// Makes the trees, with nobody in them. A queue whose cohorts make a circle stands alone, and so does one that is held
/// though it is no longer configured.
pub(super) fn grow(objects: &Objects, held: &Held) -> Vec<Tree> {
    let mut members: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut alone = Vec::new();
    for (name, queue) in &objects.cluster_queues {
        match queue
            .cohort
            .as_deref()
            .and_then(|cohort| root_cohort(objects, cohort))
        {
            Some(root) => members.entry(root).or_default().push(name),
            None => alone.push(name.as_str()),
        }
    }
    let removed = held
        .keys()
        .filter(|name| !objects.cluster_queues.contains_key(*name));
    alone.extend(removed.map(String::as_str));
    let in_cohorts = members.into_iter().map(|(root, queues)| (Some(root), queues));
    let roots = in_cohorts.chain(alone.into_iter().map(|queue| (None, vec![queue])));
    roots
        .map(|(root, queues)| Builder::new(objects, root, &queues, held).build(&queues))
        .collect()
}

/// Returns whether a tree that was grown from other objects is like one that was grown from these: nothing that is
/// configured of it differs.
pub(super) fn is_same((before, old): (&Objects, &Tree), (after, new): (&Objects, &Tree)) -> bool {
    let names = |tree: &Tree| -> Vec<_> { tree.queues.iter().map(|queue| queue.name.clone()).collect() };
    let mut queues = old.queues.iter().map(|queue| &queue.name);
    let mut cohorts = old.cohorts.iter();
    let mut flavors = old.places.iter().map(|(flavor, _)| flavor);
    names(old) == names(new)
        && old.cohorts == new.cohorts
        && old.places == new.places
        && before.fair_sharing == after.fair_sharing
        && old.queues.iter().all(|queue| queue.users.is_same_under(after))
        && queues.all(|name| before.cluster_queues.get(name) == after.cluster_queues.get(name))
        && cohorts.all(|name| before.cohorts.get(name) == after.cohorts.get(name))
        && flavors.all(|name| before.flavors.get(name) == after.flavors.get(name))
}

/// Returns the root of the tree that a cohort is in, or `None` when its ancestors make a circle.
pub fn root_cohort<'a>(objects: &'a Objects, cohort: &'a str) -> Option<&'a str> {
    lineage(objects, cohort).ok()?.pop()
}

/// Returns the circle that the ancestors of a cohort make, from its first name on; `None` is that they make none.
fn circle(objects: &Objects, cohort: &str) -> Option<Vec<String>> {
    let circle = lineage(objects, cohort).err()?;
    let first = (0..circle.len()).min_by_key(|number| circle[*number])?;
    let names = circle[first..].iter().chain(&circle[..first]);
    Some(names.map(|name| (*name).to_owned()).collect())
}

/// Returns a cohort and those above it, or the circle that they make.
fn lineage<'a>(objects: &'a Objects, cohort: &'a str) -> Result<Vec<&'a str>, Vec<&'a str>> {
    let mut passed = vec![cohort];
    while let Some(parent) = parent(objects, passed[passed.len() - 1]) {
        if let Some(start) = passed.iter().position(|seen| *seen == parent) {
            return Err(passed.split_off(start));
        }
        passed.push(parent);
    }
    Ok(passed)
}

fn parent<'a>(objects: &'a Objects, cohort: &str) -> Option<&'a str> {
    objects.cohorts.get(cohort)?.parent.as_deref()
}

struct Builder<'a> {
    objects: &'a Objects,
    /// The cohorts, parents before children.
    cohorts: Vec<&'a str>,
    places: Vec<(String, String)>,
    quotas: Quotas,
}

impl<'a> Builder<'a> {
    fn new(objects: &'a Objects, root: Option<&'a str>, queues: &[&'a str], held: &Held) -> Self {
        let cohorts = root.map(|root| below(objects, root)).unwrap_or_default();
        let of_cohorts = cohorts.iter().filter_map(|name| objects.cohorts.get(*name));
        let of_queues = queues.iter().filter_map(|name| objects.cluster_queues.get(*name));
        let groups = of_cohorts
            .flat_map(|cohort| &cohort.resource_groups)
            .chain(of_queues.flat_map(|queue| &queue.resource_groups));
        let in_use = queues
            .iter()
            .filter_map(|name| held.get(*name))
            .flatten()
            .cloned();
        let places: BTreeSet<_> = groups.flat_map(places).chain(in_use).collect();
        let places: Vec<_> = places.into_iter().collect();
        let resources: BTreeSet<&String> = places.iter().map(|(_, resource)| resource).collect();
        let numbers: BTreeMap<_, _> = resources.into_iter().zip(0..).collect();
        let resource_of = places.iter().map(|(_, resource)| numbers[resource]).collect();
        Self {
            objects,
            cohorts,
            quotas: Quotas::new(resource_of),
            places,
        }
    }

    fn build(mut self, queues: &[&str]) -> Tree {
        for cohort in self.cohorts.clone() {
            self.add_cohort(cohort);
        }
        let queues = queues.iter().map(|name| self.add_queue(name)).collect();
        self.quotas.settle();
        Tree {
            quotas: self.quotas,
            places: self.places,
            cohorts: self.cohorts.into_iter().map(str::to_owned).collect(),
            queues,
            searched: Vec::new(),
            cycles: 0,
        }
    }

    fn cohort_node(&self, name: &str) -> Option<NodeId> {
        self.cohorts.iter().position(|cohort| *cohort == name).map(NodeId)
    }

    fn add_cohort(&mut self, name: &str) {
        let cohort = self.objects.cohorts.get(name);
        let node = self.quotas.add_node(cohort.map_or(1.0, |cohort| cohort.weight.0));
        let Some(cohort) = cohort else { return };
        self.set_quotas(node, &cohort.resource_groups);
        if let Some(parent) = cohort
            .parent
            .as_deref()
            .and_then(|parent| self.cohort_node(parent))
        {
            self.quotas.set_parent(node, parent);
            self.quotas.add_child_cohort(parent, node);
        }
    }

    fn add_queue(&mut self, name: &str) -> Queue {
        let configured = self.objects.cluster_queues.get(name);
        let removed = ClusterQueue::default();
        let queue = configured.unwrap_or(&removed);
        let node = self.quotas.add_node(queue.weight.0);
        self.set_quotas(node, &queue.resource_groups);
        let inactive = match configured {
            Some(queue) => inactive(self.objects, queue),
            None => Some(Inactive::Removed),
        };
        if let Some(parent) = queue
            .cohort
            .as_deref()
            .and_then(|cohort| self.cohort_node(cohort))
        {
            self.quotas.set_parent(node, parent);
            if inactive.is_none() {
                self.quotas.add_child_queue(parent, node);
            }
        }
        let users = Users::new(name, self.objects);
        Queue {
            name: name.to_owned(),
            node,
            inactive,
            terms: Terms::new(queue, |flavor, resource| place(&self.places, flavor, resource)),
            holders: BTreeMap::new(),
            pending: PendingQueue::new(queue.queueing_strategy, users.by_usage()),
            users,
            shapes: Vec::new(),
            shape_pod_sets: Vec::new(),
            shape_numbers: BTreeMap::new(),
            generation: 0,
        }
    }

    fn set_quotas(&mut self, node: NodeId, groups: &[ResourceGroup]) {
        for flavor in groups.iter().flat_map(|group| &group.flavors) {
            for (resource, quota) in &flavor.resources {
                let of = place(&self.places, &flavor.name, resource);
                self.quotas.set_quota(node, of, *quota);
            }
        }
    }
}

/// Returns a cohort and all below it, parents first.
fn below<'a>(objects: &'a Objects, root: &'a str) -> Vec<&'a str> {
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let children = objects
            .cohorts
            .iter()
            .filter(|(_, cohort)| cohort.parent.as_deref() == Some(found[next]));
        let children: Vec<_> = children.map(|(name, _)| name.as_str()).collect();
        found.extend(children);
        next += 1;
    }
    found
}

/// Returns every resource of every flavor of a group.
fn places(group: &ResourceGroup) -> Vec<(String, String)> {
    let resources = group.covered_resources();
    let flavors = group.flavors.iter();
    flavors
        .flat_map(|flavor| {
            resources
                .iter()
                .map(|resource| (flavor.name.clone(), (*resource).to_owned()))
        })
        .collect()
}

fn place(places: &[(String, String)], flavor: &str, resource: &str) -> FlavorResource {
    let found = places.binary_search_by(|(f, r)| (f.as_str(), r.as_str()).cmp(&(flavor, resource)));
    FlavorResource(found.expect("the table has all that is configured"))
}

fn inactive(objects: &Objects, queue: &ClusterQueue) -> Option<Inactive> {
    if queue.stop_policy != StopPolicy::None {
        return Some(Inactive::Stopped(queue.stop_policy));
    }
    let flavors = queue.resource_groups.iter().flat_map(|group| &group.flavors);
    let missing = flavors.filter(|flavor| !objects.flavors.contains_key(&flavor.name));
    let missing: Vec<String> = missing.map(|flavor| flavor.name.clone()).collect();
    if !missing.is_empty() {
        return Some(Inactive::FlavorNotFound(missing));
    }
    circle(objects, queue.cohort.as_deref()?).map(Inactive::CohortCycle)
}
