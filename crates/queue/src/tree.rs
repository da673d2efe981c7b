//! One tree of cohorts with its queues: which workloads hold quota in it, and which are pending. Trees are independent.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use jiff::Timestamp;

use super::{
    Quantity,
    names::quoted,
    objects::{ResourceFlavor, StopPolicy},
    pending_queue::{Entry, PendingQueue},
    quotas::{FlavorResource, NodeId, Quotas, Usage},
    terms::{Shape, Terms},
    users::Users,
    workload::{PodSet, PodSetAssignment, WorkloadId},
};

/// One tree.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub(super) quotas: Quotas,
    /// The flavor and the resource at each place of the tree's table.
    pub(super) places: Vec<(String, String)>,
    /// The names of the cohorts, whose nodes come first, in this order.
    pub(super) cohorts: Vec<String>,
    /// The queues; queue nodes come last among the tree's nodes, in this order.
    pub(super) queues: Vec<Queue>,
    /// The searches for flavors when something last changed, and after each cycle since.
    pub(super) searched: Vec<Searches>,
    /// How many cycles there were.
    pub(super) cycles: u64,
}

impl Tree {
    /// Returns where a resource of a flavor is in the tree's table.
    pub(super) fn place(&self, flavor: &str, resource: &str) -> Option<FlavorResource> {
        let at = self.places.iter().position(|(f, r)| f == flavor && r == resource);
        at.map(FlavorResource)
    }

    /// Returns what a workload uses whose pod sets have this.
    pub(super) fn usage_of(&self, pod_sets: &[PodSetAssignment]) -> Usage {
        let mut usage: BTreeMap<_, Quantity> = BTreeMap::new();
        for set in pod_sets {
            for (resource, flavor) in &set.flavors {
                let place = self.place(flavor, resource);
                let (Some(of), Some(amount)) = (place, set.resource_usage.get(resource)) else {
                    continue;
                };
                let sum = usage.entry(of).or_default();
                *sum = sum.plus(*amount);
            }
        }
        usage.into_iter().collect()
    }

    /// Returns the name of a resource by its number.
    pub(super) fn resource(&self, number: usize) -> Option<&str> {
        let at = (0..self.places.len()).find(|at| self.quotas.resource_of(FlavorResource(*at)) == number)?;
        Some(&self.places[at].1)
    }

    /// Returns the flavors and resources in use in each queue that has workloads.
    pub(super) fn held(&self) -> impl Iterator<Item = (String, BTreeSet<(String, String)>)> {
        let occupied = self
            .queues
            .iter()
            .filter(|queue| !queue.holders.is_empty() || !queue.pending.is_empty());
        occupied.map(|queue| {
            let usage = queue.holders.values().flat_map(|holder| &holder.usage);
            (
                queue.name.clone(),
                usage.map(|(of, _)| self.places[of.0].clone()).collect(),
            )
        })
    }

    /// Queues all inadmissible workloads of the tree to be tried again.
    pub(super) fn wake(&mut self) {
        self.searched.clear();
        for queue in &mut self.queues {
            queue.pending.queue_inadmissible();
        }
    }
}

/// The workloads with flavors left to try: the queue, the workload, and where its search goes on.
pub(super) type Searches = Vec<(usize, WorkloadId, Vec<Vec<usize>>)>;

/// A ClusterQueue.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    pub(super) name: String,
    pub(super) node: NodeId,
    /// Why it admits no workload, if so.
    pub(super) inactive: Option<Inactive>,
    pub(super) terms: Terms,
    pub(super) holders: BTreeMap<WorkloadId, Holder>,
    pub(super) pending: PendingQueue,
    pub(super) users: Users,
    pub(super) shapes: Vec<Arc<Shape>>,
    /// The pod sets of each shape.
    pub(super) shape_pod_sets: Vec<Arc<[PodSet]>>,
    pub(super) shape_numbers: BTreeMap<Arc<[PodSet]>, usize>,
    /// Counts what may have freed quota of this queue.
    pub(super) generation: u64,
}

impl Queue {
    pub(super) fn is_active(&self) -> bool {
        self.inactive.is_none()
    }

    /// Returns the head of the queue.
    pub(super) fn head(&self) -> Option<(WorkloadId, Entry)> {
        self.pending.head(&self.users).filter(|_| self.is_active())
    }

    /// Returns the number of the pod sets' shape.
    pub(super) fn shape_number(
        &mut self,
        pod_sets: &[PodSet],
        flavors: &BTreeMap<String, ResourceFlavor>,
    ) -> usize {
        if let Some(number) = self.shape_numbers.get(pod_sets) {
            return *number;
        }
        self.shapes.push(Arc::new(self.terms.shape(pod_sets, flavors)));
        let pod_sets: Arc<[PodSet]> = pod_sets.into();
        self.shape_pod_sets.push(Arc::clone(&pod_sets));
        self.shape_numbers.insert(pod_sets, self.shapes.len() - 1);
        self.shapes.len() - 1
    }
}

/// Why a queue admits nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inactive {
    /// An admin stopped it.
    Stopped(StopPolicy),
    /// It names flavors that are not there: these.
    FlavorNotFound(Vec<String>),
    /// These of its cohorts are each other's parents.
    CohortCycle(Vec<String>),
    /// It is no longer configured.
    Removed,
}

impl fmt::Display for Inactive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(policy) => write!(f, "it is stopped ({policy:?})"),
            Self::FlavorNotFound(flavors) => {
                write!(f, "there is no ResourceFlavor {}", quoted(flavors, "and no"))
            }
            Self::CohortCycle(cohorts) => match &cohorts[..] {
                [own] => write!(f, "the Cohort `{own}` is its own parent"),
                _ => write!(
                    f,
                    "the Cohorts {} are each other's parents",
                    quoted(cohorts, "and")
                ),
            },
            Self::Removed => f.write_str("it is removed"),
        }
    }
}

/// A workload that holds quota.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    pub(super) entry: Entry,
    pub(super) reserved_at: Timestamp,
    pub(super) usage: Usage,
    /// Whether it was told to go, and still holds its quota.
    pub(super) evicted: bool,
}

impl Holder {
    pub(super) fn priority(&self) -> i32 {
        self.entry.class.priority
    }

    pub(super) fn queued_at(&self) -> Timestamp {
        self.entry.queued_at
    }
}
