//! One tree of cohorts and queues: what each has, uses, and could still get.
//!
//! The arithmetic is that of Kueue's `resource_node.go`, and is Kueue's to change. A node stores in its parent what it
//! may lend; what it uses beyond what it keeps for itself counts against the parent. Nobody is chosen here.

use super::{Quantity, objects::Quota};

/// A queue or cohort of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(pub(super) usize);

/// A resource in a flavor, by its place in the tree's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FlavorResource(pub(super) usize);

/// An amount of a resource in a flavor.
pub(super) type Usage = Vec<(FlavorResource, Quantity)>;

/// The quotas of a tree, and what is used of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quotas {
    nodes: Vec<Node>,
    /// The resource of each flavor's resource.
    resource_of: Vec<usize>,
    resources: usize,
}

/// What is known of a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) parent: Option<NodeId>,
    /// The cohorts directly in it, by name.
    pub(super) cohorts: Vec<NodeId>,
    /// The queues directly in it that admit, by name.
    pub(super) queues: Vec<NodeId>,
    pub(super) weight: f64,
    cells: Vec<Cell>,
    height: usize,
    /// The most that the node could ever have of each resource, over all flavors.
    lendable: Vec<Quantity>,
}

/// One resource of one flavor, at one node.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Cell {
    quota: Quota,
    /// Whether the node or one below it has the resource at all; having zero of it counts.
    present: bool,
    subtree: Quantity,
    usage: Quantity,
}

impl Cell {
    /// Returns what is kept from the parent, for this subtree alone.
    fn local(&self) -> Quantity {
        match self.quota.lending_limit {
            Some(limit) => self.subtree.minus(limit).or_zero(),
            None => Quantity::ZERO,
        }
    }

    fn local_available(&self) -> Quantity {
        self.local().minus(self.usage).or_zero()
    }
}

impl Quotas {
    /// Makes a tree without nodes, whose resources in flavors are of these resources.
    pub(super) fn new(resource_of: Vec<usize>) -> Self {
        let resources = resource_of.iter().max().map_or(0, |last| last + 1);
        Self {
            nodes: Vec::new(),
            resource_of,
            resources,
        }
    }

    /// Adds a node without quota.
    pub(super) fn add_node(&mut self, weight: f64) -> NodeId {
        self.nodes.push(Node {
            parent: None,
            cohorts: Vec::new(),
            queues: Vec::new(),
            weight,
            cells: vec![Cell::default(); self.resource_of.len()],
            height: 0,
            lendable: Vec::new(),
        });
        NodeId(self.nodes.len() - 1)
    }

    pub(super) fn set_parent(&mut self, child: NodeId, parent: NodeId) {
        self.nodes[child.0].parent = Some(parent);
    }

    pub(super) fn add_child_cohort(&mut self, parent: NodeId, child: NodeId) {
        self.nodes[parent.0].cohorts.push(child);
    }

    pub(super) fn add_child_queue(&mut self, parent: NodeId, child: NodeId) {
        self.nodes[parent.0].queues.push(child);
    }

    pub(super) fn set_quota(&mut self, node: NodeId, of: FlavorResource, quota: Quota) {
        let cell = &mut self.nodes[node.0].cells[of.0];
        cell.quota = quota;
        cell.present = true;
    }

    /// Works out what follows from quotas and parents; nothing is used yet. Parents come before their children.
    pub(super) fn settle(&mut self) {
        for node in &mut self.nodes {
            for cell in &mut node.cells {
                cell.subtree = cell.quota.nominal;
                cell.usage = Quantity::ZERO;
            }
        }
        for child in (0..self.nodes.len()).rev() {
            let node = &self.nodes[child];
            let below = node
                .cohorts
                .iter()
                .map(|cohort| self.nodes[cohort.0].height + 1)
                .max();
            let height = below.unwrap_or(0).max(usize::from(!node.queues.is_empty()));
            self.nodes[child].height = height;
            let Some(parent) = self.nodes[child].parent else {
                continue;
            };
            for of in 0..self.resource_of.len() {
                let cell = self.nodes[child].cells[of];
                let above = &mut self.nodes[parent.0].cells[of];
                above.present |= cell.present;
                above.subtree = above.subtree.plus(cell.subtree.minus(cell.local()));
            }
        }
        for node in 0..self.nodes.len() {
            self.nodes[node].lendable = self.sum_of_potentials(NodeId(node));
        }
    }

    fn sum_of_potentials(&self, node: NodeId) -> Vec<Quantity> {
        let root = self.root(node);
        let mut sums = vec![Quantity::ZERO; self.resources];
        for of in (0..self.resource_of.len()).map(FlavorResource) {
            if self.cell(root, of).present {
                let sum = &mut sums[self.resource_of[of.0]];
                *sum = sum.plus(self.potential(node, of));
            }
        }
        sums
    }

    /// Returns the most that the node could ever have of each resource, over all flavors.
    pub(super) fn lendable(&self, node: NodeId) -> &[Quantity] {
        &self.nodes[node.0].lendable
    }

    pub(super) fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.0]
    }

    pub(super) fn has_parent(&self, node: NodeId) -> bool {
        self.nodes[node.0].parent.is_some()
    }

    /// Returns the cohorts that a node is in, the nearest first.
    pub(super) fn ancestors(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(self.nodes[node.0].parent, |above| self.nodes[above.0].parent)
    }

    pub(super) fn root(&self, node: NodeId) -> NodeId {
        self.ancestors(node).last().unwrap_or(node)
    }

    /// Returns how far the furthest queue below is.
    pub(super) fn height(&self, node: NodeId) -> usize {
        self.nodes[node.0].height
    }

    fn cell(&self, node: NodeId, of: FlavorResource) -> &Cell {
        &self.nodes[node.0].cells[of.0]
    }

    pub(super) fn quota(&self, node: NodeId, of: FlavorResource) -> Quota {
        self.cell(node, of).quota
    }

    /// Returns what the node has with all below it, without what they do not lend.
    pub(super) fn subtree(&self, node: NodeId, of: FlavorResource) -> Quantity {
        self.cell(node, of).subtree
    }

    pub(super) fn usage(&self, node: NodeId, of: FlavorResource) -> Quantity {
        self.cell(node, of).usage
    }

    pub(super) fn local_available(&self, node: NodeId, of: FlavorResource) -> Quantity {
        self.cell(node, of).local_available()
    }

    /// Returns what a queue could have now, its own and borrowed, without evicting anybody.
    pub(super) fn available(&self, queue: NodeId, of: FlavorResource) -> Quantity {
        self.remaining(queue, of).or_zero()
    }

    /// As `available`, but below zero where more is used than there is.
    fn remaining(&self, node: NodeId, of: FlavorResource) -> Quantity {
        let cell = self.cell(node, of);
        let Some(parent) = self.nodes[node.0].parent else {
            return cell.subtree.minus(cell.usage);
        };
        let mut from_parent = self.remaining(parent, of);
        if let Some(limit) = cell.quota.borrowing_limit {
            let stored = cell.subtree.minus(cell.local());
            let used = cell.usage.minus(cell.local()).or_zero();
            from_parent = from_parent.min(stored.minus(used).plus(limit));
        }
        cell.local_available().plus(from_parent)
    }

    /// Returns the nearest node whose borrowing limit, and not what there is, keeps the queue from having more.
    pub(super) fn borrowing_limit_that_binds(&self, queue: NodeId, of: FlavorResource) -> Option<NodeId> {
        let mut chain = std::iter::once(queue).chain(self.ancestors(queue));
        chain.find(|node| {
            let cell = self.cell(*node, of);
            let (Some(limit), Some(parent)) = (cell.quota.borrowing_limit, self.node(*node).parent) else {
                return false;
            };
            let stored = cell.subtree.minus(cell.local());
            let used = cell.usage.minus(cell.local()).or_zero();
            stored.minus(used).plus(limit) < self.remaining(parent, of)
        })
    }

    /// Returns the most that a node could ever have, were nothing used.
    pub(super) fn potential(&self, node: NodeId, of: FlavorResource) -> Quantity {
        let cell = self.cell(node, of);
        let Some(parent) = self.nodes[node.0].parent else {
            return cell.subtree;
        };
        let all = cell.local().plus(self.potential(parent, of));
        match cell.quota.borrowing_limit {
            Some(limit) => all.min(cell.subtree.plus(limit)),
            None => all,
        }
    }

    /// Returns whether the node would use more than it and those below it have.
    pub(super) fn would_borrow(&self, node: NodeId, of: FlavorResource, more: Quantity) -> bool {
        let cell = self.cell(node, of);
        cell.subtree < cell.usage.plus(more)
    }

    pub(super) fn borrows(&self, node: NodeId, of: FlavorResource) -> bool {
        self.would_borrow(node, of, Quantity::ZERO)
    }

    /// Returns whether the node borrows nothing of these.
    pub(super) fn within_nominal(&self, node: NodeId, needs: &[FlavorResource]) -> bool {
        !needs.iter().any(|of| self.borrows(node, *of))
    }

    /// Counts something as used by a queue.
    pub(super) fn add(&mut self, queue: NodeId, usage: &[(FlavorResource, Quantity)]) {
        for (of, amount) in usage {
            self.add_one(queue, *of, *amount);
        }
    }

    fn add_one(&mut self, node: NodeId, of: FlavorResource, amount: Quantity) {
        let kept = self.local_available(node, of);
        let cell = &mut self.nodes[node.0].cells[of.0];
        cell.usage = cell.usage.plus(amount);
        if let Some(parent) = self.nodes[node.0].parent
            && amount > kept
        {
            self.add_one(parent, of, amount.minus(kept));
        }
    }

    /// Counts something as no longer used by a queue; undoes `add`.
    pub(super) fn remove(&mut self, queue: NodeId, usage: &[(FlavorResource, Quantity)]) {
        for (of, amount) in usage {
            self.remove_one(queue, *of, *amount);
        }
    }

    fn remove_one(&mut self, node: NodeId, of: FlavorResource, amount: Quantity) {
        let cell = &mut self.nodes[node.0].cells[of.0];
        let in_parent = cell.usage.minus(cell.local());
        cell.usage = cell.usage.minus(amount);
        if let Some(parent) = self.nodes[node.0].parent
            && in_parent > Quantity::ZERO
        {
            self.remove_one(parent, of, amount.min(in_parent));
        }
    }

    /// Undoes an `add` of what nobody has. An amount below zero had given a queue back what it uses beyond its limits,
    /// and its cohorts did not notice; nor do they now.
    pub(super) fn unreserve(&mut self, queue: NodeId, usage: &[(FlavorResource, Quantity)]) {
        for (of, amount) in usage {
            if *amount < Quantity::ZERO {
                let cell = &mut self.nodes[queue.0].cells[of.0];
                cell.usage = cell.usage.minus(*amount);
            } else {
                self.remove_one(queue, *of, *amount);
            }
        }
    }

    /// Returns how far up the lowest subtree is that has room for `more`, and whether it is less than the whole tree.
    /// Zero is the queue itself: nothing is borrowed.
    pub(super) fn lowest_fit(&self, queue: NodeId, of: FlavorResource, more: Quantity) -> (usize, bool) {
        if !self.has_parent(queue) || !self.would_borrow(queue, of, more) {
            return (0, self.has_parent(queue));
        }
        let mut rest = more.minus(self.local_available(queue, of));
        for cohort in self.ancestors(queue) {
            if !self.would_borrow(cohort, of, rest) {
                return (self.height(cohort), self.has_parent(cohort));
            }
            rest = rest.minus(self.local_available(cohort, of));
        }
        (self.height(self.root(queue)), false)
    }

    /// Returns whether `requests` fit beside what a node and those below it use, and what of it its parent would have to
    /// give.
    pub(super) fn fits_in_quota(
        &self,
        node: NodeId,
        requests: &[(FlavorResource, Quantity)],
    ) -> (bool, Usage) {
        let fits = !requests
            .iter()
            .any(|(of, amount)| self.would_borrow(node, *of, *amount));
        let rest = requests.iter().map(|(of, amount)| {
            let kept = self.local_available(node, *of);
            (*of, amount.minus(kept).or_zero())
        });
        (fits, rest.collect())
    }

    /// Returns which resource each of the tree's flavor resources is of.
    pub(super) fn resource_of(&self, of: FlavorResource) -> usize {
        self.resource_of[of.0]
    }

    /// Returns how many resources there are.
    pub(super) fn n_resources(&self) -> usize {
        self.resources
    }

    /// Returns what of each flavor's resource the node uses beyond what it and those below it have.
    pub(super) fn borrowed(&self, node: NodeId) -> impl Iterator<Item = (FlavorResource, Quantity)> {
        let cells = self.nodes[node.0].cells.iter().enumerate();
        cells.filter(|(_, cell)| cell.present).filter_map(|(of, cell)| {
            let borrowed = cell.usage.minus(cell.subtree);
            (borrowed > Quantity::ZERO).then_some((FlavorResource(of), borrowed))
        })
    }

    pub(super) fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns how much there is of a resource in a flavor in the whole tree.
    pub(super) fn total(&self, of: FlavorResource) -> Quantity {
        self.nodes.iter().fold(Quantity::ZERO, |sum, node| {
            sum.plus(node.cells[of.0].quota.nominal)
        })
    }

    /// Panics when cohorts do not use what those below them use beyond their own.
    pub(super) fn check_sums(&self) {
        for of in (0..self.resource_of.len()).map(FlavorResource) {
            for node in (0..self.nodes.len()).map(NodeId) {
                let children = self.nodes.iter().filter(|child| child.parent == Some(node));
                let cells: Vec<_> = children.map(|child| child.cells[of.0]).collect();
                let beyond = cells.iter().map(|cell| cell.usage.minus(cell.local()).or_zero());
                let used = beyond.fold(Quantity::ZERO, Quantity::plus);
                assert!(
                    cells.is_empty() || used == self.usage(node, of),
                    "a cohort uses what is beyond their own"
                );
            }
        }
    }

    /// Panics when more is used of a tree than there is, or somebody borrows beyond their limit.
    #[cfg(test)]
    pub(super) fn check_limits(&self) {
        for of in (0..self.resource_of.len()).map(FlavorResource) {
            for node in (0..self.nodes.len()).map(NodeId) {
                let cell = self.cell(node, of);
                let most = match (self.has_parent(node), cell.quota.borrowing_limit) {
                    (false, _) => cell.subtree,
                    (true, Some(limit)) => cell.subtree.plus(limit),
                    (true, None) => Quantity::UNLIMITED,
                };
                assert!(cell.usage <= most, "no more is used than there is: {cell:?}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cohort and a queue in it, which has two of the only resource and lends them all.
    fn cohort_and_queue() -> (Quotas, [NodeId; 2]) {
        let mut quotas = Quotas::new(vec![0]);
        let [cohort, queue] = [1.0; 2].map(|weight| quotas.add_node(weight));
        quotas.set_parent(queue, cohort);
        quotas.add_child_queue(cohort, queue);
        let two = Quota {
            nominal: Quantity(2),
            ..Quota::default()
        };
        quotas.set_quota(queue, FlavorResource(0), two);
        quotas.settle();
        (quotas, [cohort, queue])
    }

    #[test]
    fn a_cohort_has_and_uses_what_those_below_it_lend_and_use() {
        let (mut quotas, [cohort, queue]) = cohort_and_queue();
        quotas.add(queue, &[(FlavorResource(0), Quantity(1))]);
        assert_eq!(quotas.subtree(cohort, FlavorResource(0)), Quantity(2));
        assert_eq!(quotas.usage(cohort, FlavorResource(0)), Quantity(1));
        quotas.check_sums();
    }

    #[test]
    #[should_panic(expected = "a cohort uses what is beyond their own")]
    fn a_cohort_that_lost_count_is_noticed() {
        let (mut quotas, [cohort, _]) = cohort_and_queue();
        quotas.nodes[cohort.0].cells[0].usage = Quantity(1);
        quotas.check_sums();
    }
}
