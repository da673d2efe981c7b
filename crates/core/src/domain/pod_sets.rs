//! What a run consists of, in the queue's words: the pod set of the notebook's own kernel, and those of what it starts.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_queue::{PodSet, Quantity};
use serde::{Deserialize, Serialize};

use super::{
    Resources,
    quota::{Zeros, is_counted, requests, resources},
};

/// The name of the pod set of the notebook's own kernel.
pub const DRIVER: &str = "driver";

/// The name of the pod set of what the notebook starts, where the blueprint names none.
pub const WORKLOAD: &str = "workload";

/// The pod sets of a run: the driver, which is one pod, and then what the notebook starts. All of them are admitted, or none. A run
/// of which two have one [name](Self::repeated_name) is refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<PodSet>", into = "Vec<PodSet>")]
pub struct PodSets(Vec<PodSet>);

/// Pod sets that no run can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPodSets {
    /// The first one is another, or is not one pod.
    #[error("the first pod set is `{DRIVER}`, with one pod")]
    NoDriver,
    /// A pod set is without pods.
    #[error("the pod set `{0}` has no pods")]
    NoPods(String),
    /// A pod set could be admitted with fewer pods.
    #[error("the pod set `{0}` has a least count, and runs are admitted as a whole")]
    Partial(String),
    /// An amount is below zero.
    #[error("the pod set `{0}` asks for less than nothing")]
    Negative(String),
}

impl PodSets {
    /// Returns the pod sets of a driver, and of what the notebook starts if that is anything, by what one machine gives them.
    pub fn of_amounts(driver: Resources, workload: Resources) -> Self {
        let set = |name: &str, asked| PodSet {
            name: name.into(),
            count: 1,
            requests: requests(asked, Zeros::LeftOut),
            ..PodSet::default()
        };
        let mut sets = vec![set(DRIVER, driver)];
        if workload != Resources::default() {
            sets.push(set(WORKLOAD, workload));
        }
        Self(sets)
    }

    /// Returns all of them, the driver first.
    pub fn as_slice(&self) -> &[PodSet] {
        &self.0
    }

    /// Returns the pod set of the notebook's own kernel.
    pub fn driver(&self) -> &PodSet {
        &self.0[0]
    }

    /// Returns the pod sets of what the notebook starts.
    pub fn workload(&self) -> &[PodSet] {
        &self.0[1..]
    }

    /// Returns a name that two of them have, if there is one.
    pub fn repeated_name(&self) -> Option<&str> {
        let mut names = BTreeSet::new();
        let repeated = self.0.iter().find(|set| !names.insert(&set.name));
        repeated.map(|set| set.name.as_str())
    }

    /// Returns what all of them ask for of what every machine has; what cannot be counted is the most that can.
    pub fn resources(&self) -> Resources {
        of_machine(&self.0)
    }

    /// Returns what the driver asks for of what every machine has.
    pub fn driver_resources(&self) -> Resources {
        of_machine(&self.0[..1])
    }

    /// Returns what all pods that the notebook starts ask for of what every machine has.
    pub fn workload_resources(&self) -> Resources {
        of_machine(self.workload())
    }

    /// Returns what all of them ask for beside that, by its Kubernetes name, in Kueue's units.
    pub fn further(&self) -> BTreeMap<String, Quantity> {
        let mut total = total(&self.0);
        total.retain(|resource, amount| !is_counted(resource) && *amount > Quantity::ZERO);
        total
    }

    /// Returns how much of each resource all pods ask for together; what cannot be counted is the most that can.
    pub fn total(&self) -> BTreeMap<String, Quantity> {
        total(&self.0)
    }
}

fn total(sets: &[PodSet]) -> BTreeMap<String, Quantity> {
    let mut sum: BTreeMap<String, Quantity> = BTreeMap::new();
    for set in sets {
        for (resource, per_pod) in &set.requests {
            let of = sum.entry(resource.clone()).or_default();
            *of = of.plus(per_pod.times(set.count));
        }
    }
    sum
}

fn of_machine(sets: &[PodSet]) -> Resources {
    let total = total(sets);
    resources(|resource| total.get(resource).copied().unwrap_or_default())
}

impl TryFrom<Vec<PodSet>> for PodSets {
    type Error = InvalidPodSets;

    fn try_from(sets: Vec<PodSet>) -> Result<Self, Self::Error> {
        if !matches!(sets.first(), Some(first) if first.name == DRIVER && first.count == 1) {
            return Err(InvalidPodSets::NoDriver);
        }
        for set in &sets {
            let name = || set.name.clone();
            if set.count == 0 {
                return Err(InvalidPodSets::NoPods(name()));
            }
            if set.min_count.is_some() {
                return Err(InvalidPodSets::Partial(name()));
            }
            if set.requests.values().any(|amount| *amount < Quantity::ZERO) {
                return Err(InvalidPodSets::Negative(name()));
            }
        }
        Ok(Self(sets))
    }
}

impl From<PodSets> for Vec<PodSet> {
    fn from(sets: PodSets) -> Self {
        sets.0
    }
}

/// Says all that pod sets have to be. That no two of them have one name it has no words for, and so that is judged of a run.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for PodSets {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PodSets".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let set = generator.subschema_for::<PodSet>();
        let requests = schemars::json_schema!({ "additionalProperties": { "minimum": 0 } });
        schemars::json_schema!({
            "description": "The driver, which is one pod, and then what the notebook starts. All of them are admitted, or none.",
            "type": "array",
            "minItems": 1,
            "prefixItems": [{ "allOf": [set, { "properties": {
                "name": { "const": DRIVER },
                "count": { "const": 1 },
                "minCount": { "type": "null" },
                "requests": requests,
            } }] }],
            "items": { "allOf": [set, { "properties": {
                "count": { "minimum": 1 },
                "minCount": { "type": "null" },
                "requests": requests,
            } }] },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Bytes, Cpus, Gpus};

    fn set(name: &str, count: u32, requests: &[(&str, i64)]) -> PodSet {
        let requests = requests
            .iter()
            .map(|(resource, amount)| ((*resource).to_owned(), Quantity(*amount)));
        PodSet {
            name: name.into(),
            count,
            requests: requests.collect(),
            ..PodSet::default()
        }
    }

    #[test]
    fn the_amounts_of_all_pods_are_summed_up_by_resource() {
        let sets = PodSets::try_from(vec![
            set("driver", 1, &[("cpu", 500), ("memory", 1 << 30)]),
            set("trainer", 4, &[("cpu", 2000), ("nvidia.com/gpu", 8)]),
            set("loader", 2, &[("amd.com/gpu", 1), ("ephemeral-storage", 0)]),
        ])
        .expect("a run can have these");
        let machine = Resources {
            cpu: Cpus::millis(8500),
            memory: Bytes(1 << 30),
            gpu: Gpus(32),
        };
        assert_eq!(sets.resources(), machine);
        assert_eq!(sets.further(), [("amd.com/gpu".to_owned(), Quantity(2))].into());
        assert_eq!(sets.driver_resources().cpu, Cpus::millis(500));
        assert_eq!(sets.workload_resources().cpu, Cpus::cores(8));
    }

    #[test]
    fn a_sum_that_cannot_be_counted_is_the_most_that_can() {
        let most = set("driver", 1, &[("memory", i64::MAX)]);
        let more = set("trainer", u32::MAX, &[("memory", i64::MAX - 1)]);
        let sets = PodSets::try_from(vec![most, more]).expect("a run can have these");
        assert_eq!(sets.total()["memory"], Quantity::UNLIMITED);
    }

    #[test]
    fn pod_sets_that_no_run_can_have_are_refused() {
        let driver = || set("driver", 1, &[("cpu", 1000)]);
        let partial = PodSet {
            min_count: Some(1),
            ..set("trainer", 2, &[])
        };
        for (sets, why) in [
            (vec![], InvalidPodSets::NoDriver),
            (vec![set("trainer", 1, &[])], InvalidPodSets::NoDriver),
            (vec![set("driver", 2, &[])], InvalidPodSets::NoDriver),
            (
                vec![driver(), set("trainer", 0, &[])],
                InvalidPodSets::NoPods("trainer".into()),
            ),
            (vec![driver(), partial], InvalidPodSets::Partial("trainer".into())),
            (
                vec![set("driver", 1, &[("cpu", -1)])],
                InvalidPodSets::Negative("driver".into()),
            ),
        ] {
            assert_eq!(PodSets::try_from(sets), Err(why));
        }
    }
}
