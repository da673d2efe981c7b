//! From what is declared to what the queue goes by.

use std::collections::BTreeMap;

use blueproof_diagnostic::yaml::Located;
use jiff::SignedDuration;

use super::{
    documents::{Declared, Found},
    kinds::{
        AdmissionFairSharing, BorrowPolicy, ClusterQueueSpec, CohortSpec, FairSharing, FairSharingRules,
        LocalQueue, Preemption, RequeuingStrategy, ResourceFlavorSpec, ResourceGroup, ResourceQuota,
        Toleration,
    },
    local,
    values::{Amount, List, Operator},
};
use crate::objects::{self, FlavorQuotas, Objects, Quota, Requeuing, Weight};

/// Kueue's, where none is said.
const USUAL_SAMPLING_INTERVAL: SignedDuration = SignedDuration::from_mins(5);

/// Returns the objects. Names that are there twice were reported.
pub(super) fn objects(declared: Declared) -> Objects {
    let local_queues = local_queues(&declared.local_queues);
    let flavors = declared
        .flavors
        .into_iter()
        .map(|Found { object, .. }| (object.metadata.name.value.0, flavor(object.spec)));
    let cohorts = declared
        .cohorts
        .into_iter()
        .map(|Found { object, .. }| (object.metadata.name.value.0, cohort(object.spec)));
    let cluster_queues = declared.cluster_queues.into_iter().map(|Found { object, .. }| {
        let admission = object
            .metadata
            .admission
            .map_or_else(Default::default, |said| said.value);
        let cluster = object.metadata.cluster.map(|said| said.value.0);
        let queue = objects::ClusterQueue {
            admission,
            cluster,
            ..cluster_queue(object.spec)
        };
        (object.metadata.name.value.0, queue)
    });
    let priority_classes = declared
        .priority_classes
        .into_iter()
        .map(|Found { object, .. }| (object.metadata.name.value.0, object.value));
    let configurations = &declared.configurations;
    let mut configurations = configurations.iter().map(|found| &found.object);
    let configuration = configurations.next();
    Objects {
        flavors: flavors.collect(),
        cohorts: cohorts.collect(),
        cluster_queues: cluster_queues.collect(),
        local_queues,
        priority_classes: priority_classes.collect(),
        fair_sharing: configuration
            .and_then(|configuration| configuration.fair_sharing.as_ref())
            .and_then(fair_sharing),
        admission_fair_sharing: configuration
            .and_then(|configuration| configuration.admission_fair_sharing.as_ref())
            .map(|spec| admission_fair_sharing(&spec.value)),
        requeuing: configuration
            .and_then(|configuration| configuration.wait_for_pods_ready.as_ref())
            .map(|wait| requeuing(&wait.requeuing_strategy)),
    }
}

fn local_queues(found: &[Found<LocalQueue>]) -> BTreeMap<String, objects::LocalQueue> {
    let names = local::names(found);
    let queues = found.iter().zip(&names).map(|(found, name)| objects::LocalQueue {
        cluster_queue: behind(found).unwrap_or_default().to_owned(),
        stop_policy: found.object.spec.stop_policy,
        weight: weight(&found.object.spec.fair_sharing),
        users: found
            .object
            .metadata
            .users
            .as_ref()
            .map_or_else(Default::default, |users| users.value),
        namespace: found
            .object
            .metadata
            .namespace
            .clone()
            .filter(|namespace| namespace != objects::DEFAULT_NAMESPACE),
        own_name: Some(local::own_name(found))
            .filter(|own| own != name)
            .map(str::to_owned),
    });
    names.iter().cloned().zip(queues).collect()
}

fn behind(found: &Found<LocalQueue>) -> Option<&str> {
    let name = found.object.spec.cluster_queue.as_ref()?;
    Some(&name.value.0)
}

fn cluster_queue(spec: ClusterQueueSpec) -> objects::ClusterQueue {
    objects::ClusterQueue {
        cohort: spec.cohort_name.map(|name| name.value.0),
        resource_groups: groups(spec.resource_groups),
        queueing_strategy: spec.queueing_strategy,
        preemption: preemption(&spec.preemption),
        flavor_fungibility: objects::FlavorFungibility {
            when_can_borrow: spec.flavor_fungibility.when_can_borrow,
            when_can_preempt: spec.flavor_fungibility.when_can_preempt,
            preference: spec
                .flavor_fungibility
                .preference
                .map_or_else(Default::default, |preference| preference.value),
        },
        weight: weight(&spec.fair_sharing),
        stop_policy: spec.stop_policy,
        admission_mode: spec
            .admission_scope
            .map_or_else(Default::default, |scope| scope.value.admission_mode),
        admission: objects::Admission::default(),
        cluster: None,
    }
}

fn preemption(preemption: &Preemption) -> objects::Preemption {
    let borrow = preemption
        .borrow_within_cohort
        .as_ref()
        .map(|borrow| &borrow.value);
    let borrow = borrow.filter(|borrow| borrow.policy == BorrowPolicy::LowerPriority);
    objects::Preemption {
        within_cluster_queue: preemption.within_cluster_queue,
        reclaim_within_cohort: preemption.reclaim_within_cohort,
        borrow_within_cohort: borrow.map(|borrow| objects::BorrowWithinCohort {
            max_priority_threshold: borrow.max_priority_threshold,
        }),
    }
}

fn cohort(spec: CohortSpec) -> objects::Cohort {
    objects::Cohort {
        parent: spec.parent_name.map(|name| name.value.0),
        resource_groups: groups(spec.resource_groups),
        weight: weight(&spec.fair_sharing),
    }
}

fn weight(fair_sharing: &FairSharing) -> Weight {
    let weight = fair_sharing.weight.as_ref();
    weight.map_or_else(Weight::default, |weight| Weight(weight.value.to_f64()))
}

fn groups(groups: List<Located<ResourceGroup>, 0, 16>) -> Vec<objects::ResourceGroup> {
    let groups = groups.0.into_iter().map(|group| objects::ResourceGroup {
        flavors: group.value.flavors.0.into_iter().map(quotas).collect(),
    });
    groups.collect()
}

fn quotas(flavor: super::kinds::FlavorQuotas) -> FlavorQuotas {
    let resources = flavor.resources.value.0.iter();
    FlavorQuotas {
        name: flavor.name.value.0,
        resources: resources.map(|of| (of.name.value.clone(), quota(of))).collect(),
    }
}

fn quota(quota: &ResourceQuota) -> Quota {
    let resource = &quota.name.value;
    let limit = |limit: &Option<Located<_>>| {
        limit
            .as_ref()
            .map(|limit: &Located<Amount>| limit.value.of(resource))
    };
    Quota {
        nominal: quota.nominal_quota.of(resource),
        borrowing_limit: limit(&quota.borrowing_limit),
        lending_limit: limit(&quota.lending_limit),
    }
}

fn flavor(spec: ResourceFlavorSpec) -> objects::ResourceFlavor {
    let taints = spec.node_taints.0.into_iter().map(|taint| objects::Taint {
        key: taint.value.key,
        value: taint.value.value,
        effect: taint.value.effect,
    });
    objects::ResourceFlavor {
        node_labels: spec.node_labels.0,
        node_taints: taints.collect(),
        tolerations: spec
            .tolerations
            .0
            .into_iter()
            .map(|one| one.value.into())
            .collect(),
    }
}

impl From<Toleration> for objects::Toleration {
    fn from(toleration: Toleration) -> Self {
        Self {
            // To Kubernetes no key and an empty one are the same: any.
            key: toleration.key.filter(|key| !key.is_empty()),
            value: match toleration.operator {
                Operator::Equal => Some(toleration.value.unwrap_or_default()),
                Operator::Exists => None,
            },
            effect: toleration.effect,
        }
    }
}

/// The order of the two was checked.
fn fair_sharing(rules: &FairSharingRules) -> Option<objects::FairSharing> {
    let mut rules = rules.preemption_strategies.value.0.iter().copied();
    Some(objects::FairSharing {
        first: rules.next()?,
        then: rules.next(),
    })
}

fn admission_fair_sharing(spec: &AdmissionFairSharing) -> objects::AdmissionFairSharing {
    let weights = spec.resource_weights.iter();
    objects::AdmissionFairSharing {
        usage_half_life_time: spec.usage_half_life_time.0,
        usage_sampling_interval: match spec.usage_sampling_interval.0 {
            SignedDuration::ZERO => USUAL_SAMPLING_INTERVAL,
            interval => interval,
        },
        resource_weights: weights
            .map(|(resource, weight)| (resource.clone(), weight.value))
            .collect(),
    }
}

fn requeuing(strategy: &RequeuingStrategy) -> Requeuing {
    Requeuing {
        timestamp: strategy.timestamp,
        backoff_limit_count: strategy.backoff_limit_count.map(|count| count.0),
        backoff_base_seconds: strategy.backoff_base_seconds.0,
        backoff_max_seconds: strategy.backoff_max_seconds.0,
    }
}
