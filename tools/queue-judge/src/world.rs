//! What a case describes, as the queue's own objects: names become workload ids, plain numbers exact amounts.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use blueproof_queue::{
    PodSet, Quantity, Queues, Workload, WorkloadId,
    objects::{
        AdmissionFairSharing, AdmissionMode, BorrowWithinCohort, ClusterQueue, Cohort, FairRule, FairSharing,
        FlavorFungibility, FlavorPreference, FlavorQuotas, LocalQueue, Objects, Preemption, QueueingStrategy,
        Quota, ReclaimWithinCohort, ResourceFlavor, ResourceGroup, StopPolicy, Taint, TaintEffect,
        Toleration, Weight, WhenCanBorrow, WhenCanPreempt, WithinClusterQueue,
    },
};
use jiff::{SignedDuration, Timestamp};

use crate::format::{self, Entry, Group, PodSetEntry, Setup};

/// The flavor of whoever does not say.
const DEFAULT_FLAVOR: &str = "default";

/// Workload names and their ids; ids are in the order of names, as UIDs are in the oracle.
#[derive(Debug, Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let sorted: BTreeSet<String> = names.into_iter().collect();
        Self(sorted.into_iter().collect())
    }

    pub(crate) fn id(&self, name: &str) -> Result<WorkloadId> {
        let at = self.0.binary_search_by(|known| known.as_str().cmp(name)).ok();
        let at = at.with_context(|| format!("there is no workload `{name}`"))?;
        Ok(WorkloadId(at as u64))
    }

    pub(crate) fn name(&self, id: WorkloadId) -> &str {
        &self.0[usize::try_from(id.0).expect("ids are places in a list")]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Returns an amount as the case writes it, in the queue's units.
pub(crate) fn quantity(resource: &str, amount: f64) -> Quantity {
    #[expect(clippy::cast_possible_truncation, reason = "case amounts are small")]
    Quantity((amount * unit(resource)).round() as i64)
}

/// Returns an amount of the queue's as a case writes it.
pub(crate) fn amount(resource: &str, quantity: Quantity) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "case amounts are small")]
    let amount = quantity.0 as f64;
    amount / unit(resource)
}

fn unit(resource: &str) -> f64 {
    match resource {
        "cpu" => 1000.0,
        "mem" => 1024.0 * 1024.0 * 1024.0,
        _ => 1.0,
    }
}

/// Splits `flavor/resource`.
pub(crate) fn flavor_resource(text: &str) -> Result<(&str, &str)> {
    text.split_once('/')
        .with_context(|| format!("`{text}` is no flavor/resource"))
}

/// Returns the time of a case's second.
pub(crate) fn at(second: i32) -> Timestamp {
    Timestamp::from_second(i64::from(second)).expect("a case's seconds are few")
}

/// Returns the rules of fair sharing; none given is Kueue's default.
pub(crate) fn fair_sharing(strategies: &[String]) -> Result<FairSharing> {
    let mut rules = strategies.iter().map(|name| match name.as_str() {
        "LessThanOrEqualToFinalShare" => Ok(FairRule::LessThanOrEqualToFinalShare),
        "LessThanInitialShare" => Ok(FairRule::LessThanInitialShare),
        other => bail!("`{other}` is no preemption strategy"),
    });
    let Some(first) = rules.next() else {
        return Ok(FairSharing::default());
    };
    Ok(FairSharing {
        first: first?,
        then: rules.next().transpose()?,
    })
}

/// Returns the objects of a setup; what it names but does not describe is there, and empty.
pub(crate) fn objects(setup: &Setup, fair_sharing: Option<FairSharing>) -> Result<Objects> {
    let mut objects = Objects {
        fair_sharing,
        ..Objects::default()
    };
    for (name, cohort) in &setup.cohorts {
        objects.cohorts.insert(name.clone(), self::cohort(cohort)?);
    }
    for (name, queue) in &setup.queues {
        if !queue.users.is_empty() {
            objects.admission_fair_sharing = Some(charged_on_entry());
        }
        set_queue(&mut objects, name, queue)?;
    }
    for (name, flavor) in &setup.flavors {
        let flavor = self::flavor(flavor).with_context(|| format!("flavor `{name}`"))?;
        objects.flavors.insert(name.clone(), flavor);
    }
    Ok(objects)
}

/// Makes a queue, or changes it. In front of one that is made is a LocalQueue of its name, and one of each of its users.
pub(crate) fn set_queue(objects: &mut Objects, name: &str, queue: &format::Queue) -> Result<()> {
    if !objects.cluster_queues.contains_key(name) {
        for (user, weight) in &queue.users {
            let local = LocalQueue {
                cluster_queue: name.to_owned(),
                weight: Weight(*weight),
                ..LocalQueue::default()
            };
            objects.local_queues.insert(user.clone(), local);
        }
    }
    let mut queue = cluster_queue(queue).with_context(|| format!("queue `{name}`"))?;
    if let Some(old) = objects.cluster_queues.get(name) {
        queue.stop_policy = old.stop_policy;
    }
    for flavor in queue.resource_groups.iter().flat_map(|group| &group.flavors) {
        objects.flavors.entry(flavor.name.clone()).or_default();
    }
    let local = LocalQueue {
        cluster_queue: name.to_owned(),
        ..LocalQueue::default()
    };
    objects.local_queues.entry(name.to_owned()).or_insert(local);
    objects.cluster_queues.insert(name.to_owned(), queue);
    Ok(())
}

fn flavor(flavor: &format::Flavor) -> Result<ResourceFlavor> {
    let taints = flavor.taints.iter().map(|taint| {
        Ok(Taint {
            key: taint.key.clone(),
            value: taint.value.clone(),
            effect: effect(&taint.effect)?,
        })
    });
    Ok(ResourceFlavor {
        node_labels: flavor.labels.clone(),
        node_taints: taints.collect::<Result<_>>()?,
        tolerations: tolerations(&flavor.tolerations)?,
    })
}

/// Returns the stopPolicy of this name.
pub(crate) fn stop_policy(word: &str) -> Result<StopPolicy> {
    match word {
        "None" => Ok(StopPolicy::None),
        "Hold" => Ok(StopPolicy::Hold),
        "HoldAndDrain" => Ok(StopPolicy::HoldAndDrain),
        other => bail!("`{other}` is no stopPolicy"),
    }
}

fn tolerations(tolerations: &[format::Toleration]) -> Result<Vec<Toleration>> {
    let read = |toleration: &format::Toleration| {
        let value = match toleration.operator {
            format::Operator::Equal => Some(toleration.value.clone()),
            format::Operator::Exists => None,
        };
        let said = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Ok(Toleration {
            key: said(&toleration.key),
            value,
            effect: said(&toleration.effect).map(|word| effect(&word)).transpose()?,
        })
    };
    tolerations.iter().map(read).collect()
}

fn effect(word: &str) -> Result<TaintEffect> {
    Ok(match word {
        "NoSchedule" => TaintEffect::NoSchedule,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        other => bail!("`{other}` is no effect of a taint"),
    })
}

fn cohort(cohort: &format::Cohort) -> Result<Cohort> {
    Ok(Cohort {
        parent: cohort.parent.clone(),
        resource_groups: groups(&cohort.groups)?,
        weight: weight(cohort.weight),
    })
}

fn cluster_queue(queue: &format::Queue) -> Result<ClusterQueue> {
    Ok(ClusterQueue {
        cohort: queue.cohort.clone(),
        resource_groups: groups(&queue.groups)?,
        queueing_strategy: match queue.strategy.as_deref() {
            None | Some("BestEffortFIFO") => QueueingStrategy::BestEffortFIFO,
            Some("StrictFIFO") => QueueingStrategy::StrictFIFO,
            Some(other) => bail!("`{other}` is no queueing strategy"),
        },
        preemption: preemption(queue)?,
        flavor_fungibility: fungibility(queue.fungibility.as_ref())?,
        weight: weight(queue.weight),
        admission_mode: if queue.users.is_empty() {
            AdmissionMode::NoAdmissionFairSharing
        } else {
            AdmissionMode::UsageBasedAdmissionFairSharing
        },
        ..ClusterQueue::default()
    })
}

/// As the oracle has it: half of what is asked for is charged on entry, and what is held for a few nanoseconds counts for
/// nothing beside a half-life of centuries.
fn charged_on_entry() -> AdmissionFairSharing {
    AdmissionFairSharing {
        usage_half_life_time: SignedDuration::from_nanos(i64::MAX),
        usage_sampling_interval: SignedDuration::from_nanos(i64::MAX),
        resource_weights: BTreeMap::new(),
    }
}

fn weight(weight: Option<f64>) -> Weight {
    weight.map_or_else(Weight::default, Weight)
}

fn preemption(queue: &format::Queue) -> Result<Preemption> {
    Ok(Preemption {
        within_cluster_queue: match queue.within.as_deref() {
            None | Some("Never") => WithinClusterQueue::Never,
            Some("LowerPriority") => WithinClusterQueue::LowerPriority,
            Some("LowerOrNewerEqualPriority") => WithinClusterQueue::LowerOrNewerEqualPriority,
            Some(other) => bail!("`{other}` is no policy within a queue"),
        },
        reclaim_within_cohort: match queue.reclaim.as_deref() {
            None | Some("Never") => ReclaimWithinCohort::Never,
            Some("LowerPriority") => ReclaimWithinCohort::LowerPriority,
            Some("Any") => ReclaimWithinCohort::Any,
            Some(other) => bail!("`{other}` is no policy within a cohort"),
        },
        borrow_within_cohort: match &queue.bwc {
            Some(bwc) if bwc.policy == "LowerPriority" => Some(BorrowWithinCohort {
                max_priority_threshold: bwc.max,
            }),
            Some(_) | None => None,
        },
    })
}

fn fungibility(fungibility: Option<&format::Fungibility>) -> Result<FlavorFungibility> {
    let Some(given) = fungibility else {
        return Ok(FlavorFungibility::default());
    };
    Ok(FlavorFungibility {
        when_can_borrow: match given.when_can_borrow.as_deref() {
            None | Some("MayStopSearch") => WhenCanBorrow::MayStopSearch,
            Some("TryNextFlavor") => WhenCanBorrow::TryNextFlavor,
            Some(other) => bail!("`{other}` is no whenCanBorrow"),
        },
        when_can_preempt: match given.when_can_preempt.as_deref() {
            None | Some("TryNextFlavor") => WhenCanPreempt::TryNextFlavor,
            Some("MayStopSearch") => WhenCanPreempt::MayStopSearch,
            Some(other) => bail!("`{other}` is no whenCanPreempt"),
        },
        preference: match given.preference.as_deref() {
            None | Some("BorrowingOverPreemption") => FlavorPreference::BorrowingOverPreemption,
            Some("PreemptionOverBorrowing") => FlavorPreference::PreemptionOverBorrowing,
            Some(other) => bail!("`{other}` is no preference"),
        },
    })
}

fn groups(groups: &[Group]) -> Result<Vec<ResourceGroup>> {
    groups.iter().map(group).collect()
}

fn group(group: &Group) -> Result<ResourceGroup> {
    let flavors = group.0.iter().map(|(name, resources)| {
        let resources = resources
            .iter()
            .map(|(resource, quota)| Ok((resource.clone(), self::quota(resource, quota)?)));
        Ok(FlavorQuotas {
            name: name.clone(),
            resources: resources.collect::<Result<_>>()?,
        })
    });
    Ok(ResourceGroup {
        flavors: flavors.collect::<Result<_>>()?,
    })
}

fn quota(resource: &str, quota: &format::Quota) -> Result<Quota> {
    let limit = |amount: Option<f64>| amount.map(|amount| quantity(resource, amount));
    match quota {
        format::Quota::Nominal(amount) => Ok(Quota {
            nominal: quantity(resource, *amount),
            ..Quota::default()
        }),
        format::Quota::Limits(limits) => {
            let nominal = limits
                .first()
                .copied()
                .flatten()
                .context("a quota has a nominal amount")?;
            Ok(Quota {
                nominal: quantity(resource, nominal),
                borrowing_limit: limit(limits.get(1).copied().flatten()),
                lending_limit: limit(limits.get(2).copied().flatten()),
            })
        }
    }
}

/// Returns the workload that an entry describes.
pub(crate) fn workload(names: &Names, queue: &str, entry: &Entry, queued_at: Timestamp) -> Result<Workload> {
    let pod_sets = sets(entry).into_iter().enumerate().map(|(number, set)| {
        let amounts = set.amounts.iter();
        Ok(PodSet {
            name: format!("set-{number}"),
            count: set.count,
            min_count: set.min,
            requests: amounts
                .map(|(resource, amount)| (resource.clone(), quantity(resource, *amount)))
                .collect(),
            node_selector: set.selector.unwrap_or_default(),
            tolerations: tolerations(set.tolerations.as_deref().unwrap_or_default())?,
        })
    });
    Ok(Workload {
        id: names.id(&entry.n)?,
        cluster_queue: queue.to_owned(),
        local_queue: entry.u.clone().unwrap_or_else(|| queue.to_owned()),
        user: None,
        priority: entry.p,
        queued_at,
        evictions: 0,
        evicted_by: None,
        pod_sets: pod_sets.collect::<Result<_>>()?,
    })
}

/// Returns the pod sets of an entry, each with what the entry says of all.
fn sets(entry: &Entry) -> Vec<PodSetEntry> {
    let mut sets = entry.sets.clone();
    if sets.is_empty() {
        sets.push(PodSetEntry {
            count: 1,
            amounts: entry.amounts.clone(),
            ..PodSetEntry::default()
        });
    }
    for set in &mut sets {
        set.f = set.f.take().or_else(|| entry.f.clone());
        set.selector.get_or_insert_with(|| entry.selector.clone());
        set.tolerations.get_or_insert_with(|| entry.tolerations.clone());
    }
    sets
}

/// Lets a workload run that a case says runs.
pub(crate) fn restore(queues: &mut Queues, names: &Names, queue: &str, entry: &Entry) -> Result<()> {
    let workload = workload(names, queue, entry, at(entry.c))?;
    let pod_sets = sets(entry).into_iter().map(|set| {
        let flavor = |resource: &str| set.f.as_ref().and_then(|choice| choice.of(resource));
        let flavors = set.amounts.keys().map(|resource| {
            let flavor = flavor(resource).unwrap_or(DEFAULT_FLAVOR);
            (resource.clone(), flavor.to_owned())
        });
        (set.count, flavors.collect())
    });
    let assigned = workload.pod_sets.iter().zip(pod_sets);
    let assigned = assigned.map(|(set, (count, flavors))| set.assigned(count, flavors));
    queues.restore(&workload, &assigned.collect::<Vec<_>>(), at(entry.t))?;
    if entry.evicted {
        queues.evict(workload.id);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_made_later_has_a_local_queue_of_each_user_and_one_that_is_changed_gets_none() {
        let asked = |users: &str| -> format::Queue {
            serde_json::from_str(&format!(r#"{{"groups": [], "users": {{{users}}}}}"#)).expect("a queue")
        };
        let mut objects = Objects::default();
        set_queue(&mut objects, "new", &asked(r#""u": 2.0"#)).expect("it is made");
        set_queue(&mut objects, "new", &asked(r#""u": 2.0, "v": 1.0"#)).expect("it is changed");
        let local: Vec<_> = objects
            .local_queues
            .iter()
            .map(|(name, local)| (&**name, local.weight.0))
            .collect();
        assert_eq!(local, [("new", 1.0), ("u", 2.0)]);
        assert!(
            objects
                .local_queues
                .values()
                .all(|local| local.cluster_queue == "new")
        );
    }
}
