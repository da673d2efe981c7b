//! How much more than its own a queue or cohort has, in proportion: the dominant resource share.
//!
//! These are Kueue's floating-point operations in Kueue's order, bit for bit: with 11 GPUs in a pool a mathematical tie
//! is none, and who waits longer does not get to decide; with 12 it is one.

use std::cmp::Ordering;

use super::{
    Quantity,
    quotas::{FlavorResource, NodeId, Quotas},
};

/// The share of a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Share {
    weight: f64,
    unweighted: f64,
    /// The number of the resource that decides.
    pub(super) dominant: Option<usize>,
    /// What the node borrows.
    pub(super) borrowed: Vec<FlavorResource>,
}

impl Share {
    /// Returns the share of a node as things are. The root of a tree, and a queue without a cohort, have none.
    pub(super) fn of(quotas: &Quotas, node: NodeId) -> Self {
        let mut share = Self {
            weight: quotas.node(node).weight,
            unweighted: 0.0,
            dominant: None,
            borrowed: Vec::new(),
        };
        let Some(parent) = quotas.node(node).parent else {
            return share;
        };
        let mut by_resource = vec![Quantity::ZERO; quotas.n_resources()];
        for (of, amount) in quotas.borrowed(node) {
            let sum = &mut by_resource[quotas.resource_of(of)];
            *sum = sum.plus(amount);
            share.borrowed.push(of);
        }
        if share.borrowed.is_empty() {
            return share;
        }
        // Resources are numbered by name, and of equals the first by name decides.
        for (resource, borrowed) in by_resource.into_iter().enumerate() {
            let lendable = quotas.lendable(parent)[resource];
            if borrowed <= Quantity::ZERO || lendable <= Quantity::ZERO {
                continue;
            }
            let ratio = ratio(borrowed, lendable);
            if ratio > share.unweighted {
                share.unweighted = ratio;
                share.dominant = Some(resource);
            }
        }
        share
    }

    /// Returns a share that is less than every other.
    pub(super) fn least() -> Self {
        Self {
            weight: 1.0,
            unweighted: -1.0,
            dominant: None,
            borrowed: Vec::new(),
        }
    }

    pub(super) fn is_borrowing(&self) -> bool {
        !self.borrowed.is_empty()
    }

    /// Returns whether any of `asked` is borrowed.
    pub(super) fn is_borrowing_on(&self, asked: &[(FlavorResource, Quantity)]) -> bool {
        let wanted = asked.iter().filter(|(_, amount)| *amount > Quantity::ZERO);
        wanted.into_iter().any(|(of, _)| self.borrowed.contains(of))
    }

    /// Returns the share divided by the weight; infinite when the weight is zero and anything counts as borrowed.
    pub(super) fn weighted(&self) -> f64 {
        if self.unweighted == 0.0 {
            0.0
        } else if self.weight == 0.0 {
            f64::INFINITY
        } else {
            self.unweighted / self.weight
        }
    }

    fn is_infinite(&self) -> bool {
        self.weight == 0.0 && self.unweighted != 0.0
    }

    /// Compares two shares: the lesser one is to be served first, and evicted last.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        match (self.is_infinite(), other.is_infinite()) {
            (true, true) => self.unweighted.total_cmp(&other.unweighted),
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.weighted().total_cmp(&other.weighted()),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "Kueue loses it in the same way")]
fn ratio(borrowed: Quantity, lendable: Quantity) -> f64 {
    borrowed.0 as f64 * 1000.0 / lendable.0 as f64
}
