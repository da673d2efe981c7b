//! Random trees of cohorts, and what happens to them.

use std::collections::BTreeMap;

use proptest::{collection::vec, option, prelude::*, sample::select};

use crate::{
    objects::{
        AdmissionFairSharing, AdmissionMode, BorrowWithinCohort, ClusterQueue, Cohort, FairSharing,
        FlavorFungibility, FlavorPreference, FlavorQuotas, LocalQueue, Preemption, QueueingStrategy, Quota,
        ReclaimWithinCohort, ResourceFlavor, ResourceGroup, Weight, WhenCanBorrow, WhenCanPreempt,
        WithinClusterQueue,
    },
    *,
};

const FLAVORS: [&str; 2] = ["a10", "h200"];
pub(crate) const QUEUES: [&str; 4] = ["q0", "q1", "q2", "q3"];
const COHORTS: [&str; 3] = ["root", "left", "right"];
pub(crate) const USERS: [&str; 3] = ["ann", "bob", "cy"];
pub(super) const RESOURCES: [&str; 2] = ["cpu", "gpu"];

/// Something that happens to the queues.
#[derive(Debug, Clone)]
pub(super) enum Happening {
    Submit {
        queue: usize,
        user: usize,
        priority: i32,
        /// What one pod asks for of each resource.
        asks: [i64; RESOURCES.len()],
        pods: u32,
        /// How few pods will do.
        min_pods: Option<u32>,
    },
    Cycle,
    /// One of those told to go is gone.
    Gone(usize),
    /// One of those who have quota ends.
    End(usize),
    /// One of those who wait is not tried for so many seconds.
    BackOff(usize, i64),
}

pub(super) fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (0..QUEUES.len(), 0..USERS.len(), -1..3_i32, (0..4_i64, 1..5_i64), pods())
            .prop_map(|(queue, user, priority, (cpus, gpus), (pods, min_pods))| Happening::Submit {
                queue,
                user,
                priority,
                asks: [cpus, gpus],
                pods,
                min_pods,
            }),
        4 => Just(Happening::Cycle),
        2 => any::<usize>().prop_map(Happening::Gone),
        1 => any::<usize>().prop_map(Happening::End),
        1 => (any::<usize>(), 0..9_i64).prop_map(|(number, span)| Happening::BackOff(number, span)),
    ]
}

/// How many pods, and how few will do.
pub(super) fn pods() -> impl Strategy<Value = (u32, Option<u32>)> {
    prop_oneof![
        3 => (1..3_u32).prop_map(|pods| (pods, None)),
        1 => (2..5_u32).prop_flat_map(|pods| (Just(pods), (1..pods).prop_map(Some))),
    ]
}

fn quota() -> impl Strategy<Value = Quota> {
    let limit = || option::weighted(0.3, (0..5_i64).prop_map(Quantity));
    ((0..6_i64).prop_map(Quantity), limit(), limit()).prop_map(|(nominal, borrowing_limit, lending_limit)| {
        Quota {
            nominal,
            borrowing_limit,
            lending_limit,
        }
    })
}

fn group() -> impl Strategy<Value = Vec<ResourceGroup>> {
    vec(vec(quota(), RESOURCES.len()), FLAVORS.len()).prop_map(|quotas| {
        let flavors = FLAVORS.iter().zip(quotas).map(|(name, quotas)| FlavorQuotas {
            name: (*name).into(),
            resources: RESOURCES.iter().map(|name| (*name).into()).zip(quotas).collect(),
        });
        vec![ResourceGroup {
            flavors: flavors.collect(),
        }]
    })
}

/// Policies of preemption; `borrow` is whether one who borrows may evict, and up to which priority.
pub(crate) fn preemption(
    borrow: impl Strategy<Value = Option<Option<i32>>>,
) -> impl Strategy<Value = Preemption> {
    let within = select(vec![
        WithinClusterQueue::Never,
        WithinClusterQueue::LowerPriority,
        WithinClusterQueue::LowerOrNewerEqualPriority,
    ]);
    let reclaim = select(vec![
        ReclaimWithinCohort::Never,
        ReclaimWithinCohort::LowerPriority,
        ReclaimWithinCohort::Any,
    ]);
    (within, reclaim, borrow).prop_map(
        |(within_cluster_queue, reclaim_within_cohort, borrow)| Preemption {
            within_cluster_queue,
            reclaim_within_cohort,
            borrow_within_cohort: borrow
                .filter(|_| reclaim_within_cohort != ReclaimWithinCohort::Never)
                .map(|max_priority_threshold| BorrowWithinCohort {
                    max_priority_threshold,
                }),
        },
    )
}

fn fungibility() -> impl Strategy<Value = FlavorFungibility> {
    let borrow = select(vec![WhenCanBorrow::MayStopSearch, WhenCanBorrow::TryNextFlavor]);
    let preempt = select(vec![WhenCanPreempt::MayStopSearch, WhenCanPreempt::TryNextFlavor]);
    let preference = select(vec![
        FlavorPreference::BorrowingOverPreemption,
        FlavorPreference::PreemptionOverBorrowing,
    ]);
    (borrow, preempt, preference).prop_map(|(when_can_borrow, when_can_preempt, preference)| {
        FlavorFungibility {
            when_can_borrow,
            when_can_preempt,
            preference,
        }
    })
}

pub(super) fn cluster_queue() -> impl Strategy<Value = ClusterQueue> {
    let strategy = select(vec![
        QueueingStrategy::StrictFIFO,
        QueueingStrategy::BestEffortFIFO,
    ]);
    let cohort = option::weighted(0.9, select(COHORTS.to_vec()));
    let mode = select(vec![
        AdmissionMode::NoAdmissionFairSharing,
        AdmissionMode::UsageBasedAdmissionFairSharing,
    ]);
    let order = (strategy, mode);
    (
        cohort,
        group(),
        order,
        preemption(option::weighted(0.3, option::of(-1..2_i32))),
        fungibility(),
        weight(),
    )
        .prop_map(
            |(cohort, resource_groups, order, preemption, flavor_fungibility, weight)| ClusterQueue {
                cohort: cohort.map(str::to_owned),
                resource_groups,
                queueing_strategy: order.0,
                admission_mode: order.1,
                preemption,
                flavor_fungibility,
                weight,
                ..ClusterQueue::default()
            },
        )
}

fn admission_fair_sharing() -> impl Strategy<Value = AdmissionFairSharing> {
    let half_life = select(vec![0, 1, 10, 1000]);
    (half_life, 1..20_i64).prop_map(|(half_life, interval)| AdmissionFairSharing {
        usage_half_life_time: SignedDuration::from_secs(half_life),
        usage_sampling_interval: SignedDuration::from_secs(interval),
        resource_weights: BTreeMap::new(),
    })
}

fn local_queues() -> impl Strategy<Value = BTreeMap<String, LocalQueue>> {
    vec(weight(), USERS.len()).prop_map(|weights| {
        let local = weights.into_iter().map(|weight| LocalQueue {
            weight,
            ..LocalQueue::default()
        });
        USERS.iter().map(|user| (*user).into()).zip(local).collect()
    })
}

fn weight() -> impl Strategy<Value = Weight> {
    select(vec![Weight(0.0), Weight(0.5), Weight(1.0), Weight(2.0)])
}

fn cohort(parent: Option<&'static str>) -> impl Strategy<Value = Cohort> {
    (group(), weight()).prop_map(move |(resource_groups, weight)| Cohort {
        parent: parent.map(str::to_owned),
        resource_groups,
        weight,
    })
}

pub(crate) fn configured() -> impl Strategy<Value = Objects> {
    let cohorts = (cohort(None), cohort(Some("root")), cohort(Some("root")));
    let fair = option::of(Just(FairSharing::default()));
    let usage = (option::of(admission_fair_sharing()), local_queues());
    (cohorts, vec(cluster_queue(), QUEUES.len()), fair, usage).prop_map(
        |(cohorts, queues, fair_sharing, usage)| {
            let cohorts = [cohorts.0, cohorts.1, cohorts.2];
            Objects {
                flavors: FLAVORS
                    .iter()
                    .map(|name| ((*name).into(), ResourceFlavor::default()))
                    .collect(),
                cohorts: COHORTS.iter().map(|name| (*name).into()).zip(cohorts).collect(),
                cluster_queues: QUEUES.iter().map(|name| (*name).into()).zip(queues).collect(),
                local_queues: usage.1,
                fair_sharing,
                admission_fair_sharing: usage.0,
                ..Objects::default()
            }
        },
    )
}

pub(super) fn story() -> impl Strategy<Value = (Objects, Vec<Happening>)> {
    (configured(), vec(happening(), 1..40))
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("small")
}

pub(super) fn workload(
    id: usize,
    (queue, user): (usize, usize),
    priority: i32,
    asks: [i64; RESOURCES.len()],
    pods: u32,
) -> Workload {
    Workload {
        id: WorkloadId(id as u64),
        cluster_queue: QUEUES[queue].into(),
        local_queue: USERS[user].into(),
        user: None,
        priority,
        queued_at: at(i64::try_from(id).expect("small")),
        evictions: 0,
        evicted_by: None,
        pod_sets: vec![PodSet {
            name: "main".into(),
            count: pods,
            requests: RESOURCES
                .iter()
                .map(|name| (*name).into())
                .zip(asks.map(Quantity))
                .collect(),
            ..PodSet::default()
        }],
    }
}
