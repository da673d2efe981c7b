//! From an amount to a score: the bounds that it is put between.
//!
//! The formula is `Normalize` in `open-cluster-management-io/sdk-go:pkg/apis/cluster/v1alpha1/score.go`.

use blueproof_queue::Quantity;

use super::{ObservedNode, PerResource, Resource, Scope, names::GpuName};

pub(super) const MIN_SCORE: i32 = -100;
pub(super) const MAX_SCORE: i32 = 100;

/// The amounts that get the lowest and the highest score, in the units of [`Quantity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// What scores -100, as does everything below.
    pub min: Quantity,
    /// What scores 100, as does everything above.
    pub max: Quantity,
}

/// How much scores 100, by scope and resource; nothing at all scores -100.
///
/// A score tells 201 amounts apart at most, so a ceiling far above what clusters have makes them look alike, as does
/// one that many of them are above. Scores are comparable where they were made with the same ceilings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceilings {
    /// Of what is free on the best node.
    pub node: PerResource<Quantity>,
    /// Of what is free in the cluster.
    pub cluster: PerResource<Quantity>,
}

impl Bounds {
    /// Returns the score of a value, from -100 to 100:
    /// 100 above the maximum, -100 up to the minimum, else `200 * (value - min) / (max - min) - 100`, cut off towards
    /// zero. With the two equal, every value is above or not.
    ///
    /// ```
    /// use blueproof_queue::Quantity;
    /// use blueproof_gpu::placement::Bounds;
    ///
    /// let gpus = Bounds { min: Quantity(0), max: Quantity(20) };
    /// assert_eq!(gpus.normalise(Quantity(12)), 20);
    /// assert_eq!(gpus.normalise(Quantity(21)), 100);
    /// ```
    pub fn normalise(self, value: Quantity) -> i32 {
        if value > self.max {
            return MAX_SCORE;
        }
        if value <= self.min {
            return MIN_SCORE;
        }
        let above = difference(value, self.min);
        let span = difference(self.max, self.min);
        let (lowest, highest) = (f64::from(MIN_SCORE), f64::from(MAX_SCORE));
        ((highest - lowest) * above / span + lowest) as i32
    }
}

fn difference(more: Quantity, less: Quantity) -> f64 {
    (i128::from(more.0) - i128::from(less.0)) as f64
}

impl Ceilings {
    /// Those that the addon means to have, in both scopes: 100 cores, 1 TiB, 20 GPUs, 20 TPUs.
    pub const ADDON: Self = {
        let each = PerResource {
            cpu: Quantity(100_000),
            memory: Quantity(1 << 40),
            gpu: Quantity(20),
            tpu: Quantity(20),
        };
        Self {
            node: each,
            cluster: each,
        }
    };

    /// Returns the ceilings by which only the largest node, and the largest cluster, of a fleet can get to 100: the
    /// most that is allocatable on one node, and in one cluster.
    ///
    /// Every node counts, so that cordoning one does not change everybody's scores. Without clusters the ceilings are
    /// nothing, and all that is free is above them.
    pub fn of_fleet<'a>(
        clusters: impl IntoIterator<Item = &'a [ObservedNode]>,
        gpu_names: &[GpuName],
    ) -> Self {
        let mut most = Self {
            node: PerResource::default(),
            cluster: PerResource::default(),
        };
        for nodes in clusters {
            let mut all = PerResource::default();
            for node in nodes {
                let here = allocatable(node, gpu_names);
                all = combined(all, here, Quantity::plus);
                most.node = combined(most.node, here, Quantity::max);
            }
            most.cluster = combined(most.cluster, all, Quantity::max);
        }
        most
    }

    pub(super) fn bounds(&self, scope: Scope, resource: Resource) -> Bounds {
        let ceilings = match scope {
            Scope::Node => &self.node,
            Scope::Cluster => &self.cluster,
        };
        Bounds {
            min: Quantity::ZERO,
            max: ceilings.get(resource),
        }
    }
}

fn allocatable(node: &ObservedNode, gpu_names: &[GpuName]) -> PerResource<Quantity> {
    PerResource::from_fn(|resource| {
        let named = node.allocatable.iter();
        named
            .filter(|(name, _)| resource.is_named(name, gpu_names))
            .fold(Quantity::ZERO, |sum, (_, amount)| sum.plus(*amount))
    })
}

pub(super) fn combined(
    one: PerResource<Quantity>,
    other: PerResource<Quantity>,
    by: impl Fn(Quantity, Quantity) -> Quantity,
) -> PerResource<Quantity> {
    PerResource::from_fn(|resource| by(one.get(resource), other.get(resource)))
}
