//! What is written is read back as it was.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
    sample::{select, subsequence},
};

use super::{super::super::objects::*, of};
use crate::{
    Quantity,
    manifest::{documents, write},
    tests::random::preemption,
};

const FLAVORS: [&str; 3] = ["a10", "h200", "spot.eu"];
const COHORTS: [&str; 3] = ["left", "right", "root"];
const QUEUES: [&str; 3] = ["q0", "q1", "true"];
const CLUSTERS: [&str; 3] = ["local", "oke.eu", "true"];
const RESOURCES: [&str; 4] = ["cpu", "memory", "nvidia.com/gpu", "pods"];

fn amount() -> impl Strategy<Value = Quantity> {
    prop_oneof![
        (0..2000_i64).prop_map(Quantity),
        (0..40_u32).prop_map(|power| Quantity(3 << power)),
        Just(Quantity::UNLIMITED),
    ]
}

/// Limits need a parent, and a queue lends at most its own.
fn quota(limited: bool) -> impl Strategy<Value = Quota> {
    (amount(), option::of(amount()), option::of(amount())).prop_map(move |(nominal, borrowing, lending)| {
        Quota {
            nominal,
            borrowing_limit: borrowing.filter(|_| limited),
            lending_limit: lending.filter(|limit| limited && *limit <= nominal),
        }
    })
}

fn groups(limited: bool) -> impl Strategy<Value = Vec<ResourceGroup>> {
    let flavors = subsequence(FLAVORS.to_vec(), 0..=3);
    let resources = subsequence(RESOURCES.to_vec(), 1..=4);
    (flavors, resources, vec(quota(limited), 12)).prop_map(|(flavors, resources, quotas)| {
        let mut quotas = quotas.into_iter().cycle();
        let flavors: Vec<_> = flavors
            .into_iter()
            .map(|name| FlavorQuotas {
                name: name.into(),
                resources: resources
                    .iter()
                    .map(|resource| ((*resource).into(), quotas.next().expect("it goes round")))
                    .collect(),
            })
            .collect();
        if flavors.is_empty() {
            Vec::new()
        } else {
            vec![ResourceGroup { flavors }]
        }
    })
}

fn weight() -> impl Strategy<Value = Weight> {
    prop_oneof![
        Just(Weight::default()),
        (0..5000_u32).prop_map(|thousandths| Weight(f64::from(thousandths) / 1000.0)),
    ]
}

fn fungibility() -> impl Strategy<Value = FlavorFungibility> {
    let borrow = select(vec![WhenCanBorrow::MayStopSearch, WhenCanBorrow::TryNextFlavor]);
    let preempt = select(vec![WhenCanPreempt::MayStopSearch, WhenCanPreempt::TryNextFlavor]);
    (borrow, preempt, any::<bool>()).prop_map(|(when_can_borrow, when_can_preempt, prefers)| {
        let tries_all = when_can_borrow == WhenCanBorrow::TryNextFlavor
            && when_can_preempt == WhenCanPreempt::TryNextFlavor;
        FlavorFungibility {
            when_can_borrow,
            when_can_preempt,
            preference: if prefers && tries_all {
                FlavorPreference::PreemptionOverBorrowing
            } else {
                FlavorPreference::default()
            },
        }
    })
}

fn stop_policy() -> impl Strategy<Value = StopPolicy> {
    select(vec![StopPolicy::None, StopPolicy::Hold, StopPolicy::HoldAndDrain])
}

fn cluster_queue() -> impl Strategy<Value = ClusterQueue> {
    let strategy = select(vec![
        QueueingStrategy::StrictFIFO,
        QueueingStrategy::BestEffortFIFO,
    ]);
    let mode = select(vec![
        AdmissionMode::NoAdmissionFairSharing,
        AdmissionMode::UsageBasedAdmissionFairSharing,
    ]);
    let rest = (
        strategy,
        preemption(option::of(option::of(any::<i32>()))),
        fungibility(),
        weight(),
        stop_policy(),
        (mode, any::<bool>(), option::of(select(CLUSTERS.to_vec()))),
    );
    (option::of(select(COHORTS.to_vec())), rest)
        .prop_flat_map(|(cohort, rest)| (Just(cohort), groups(cohort.is_some()), Just(rest)))
        .prop_map(|(cohort, resource_groups, rest)| ClusterQueue {
            cohort: cohort.map(str::to_owned),
            resource_groups,
            queueing_strategy: rest.0,
            preemption: rest.1,
            flavor_fungibility: rest.2,
            weight: rest.3,
            stop_policy: rest.4,
            admission_mode: rest.5.0,
            // Queues of one cohort may not differ in it.
            admission: match cohort {
                None if rest.5.1 => Admission::External,
                None | Some(_) => Admission::Embedded,
            },
            cluster: rest.5.2.filter(|_| cohort.is_none()).map(str::to_owned),
        })
}

fn cohort() -> impl Strategy<Value = Cohort> {
    option::of(select(COHORTS.to_vec())).prop_flat_map(|parent| {
        (groups(parent.is_some()), weight()).prop_map(move |(resource_groups, weight)| Cohort {
            parent: parent.map(str::to_owned),
            resource_groups,
            weight,
        })
    })
}

fn effect() -> impl Strategy<Value = TaintEffect> {
    select(vec![
        TaintEffect::NoSchedule,
        TaintEffect::PreferNoSchedule,
        TaintEffect::NoExecute,
    ])
}

fn word() -> impl Strategy<Value = String> {
    select(vec!["true", "1", "a10", "0x1", "1e3", "null", "No", "a.b-c_d"]).prop_map(str::to_owned)
}

fn toleration() -> impl Strategy<Value = Toleration> {
    (option::of(word()), option::of(word()), option::of(effect()))
        .prop_map(|(key, value, effect)| Toleration { key, value, effect })
}

fn flavor() -> impl Strategy<Value = ResourceFlavor> {
    let taint = (word(), effect(), prop_oneof![Just(String::new()), word()]);
    (
        btree_map(word(), word(), 0..3),
        vec(taint, 0..2),
        vec(toleration(), 0..3),
    )
        .prop_map(|(node_labels, mut taints, tolerations)| {
            taints.dedup_by(|a, b| (&a.0, a.1) == (&b.0, b.1));
            let taints = taints.into_iter();
            ResourceFlavor {
                node_labels,
                node_taints: taints
                    .map(|(key, effect, value)| Taint { key, value, effect })
                    .collect(),
                tolerations,
            }
        })
}

fn fair_sharing() -> impl Strategy<Value = FairSharing> {
    let one = |first| FairSharing { first, then: None };
    select(vec![
        FairSharing::default(),
        one(FairRule::LessThanInitialShare),
        one(FairRule::LessThanOrEqualToFinalShare),
    ])
}

fn admission_fair_sharing() -> impl Strategy<Value = AdmissionFairSharing> {
    let half_life = prop_oneof![
        Just(SignedDuration::ZERO),
        (0..10_000_000_i64, 0..2_i32)
            .prop_map(|(seconds, halves)| { SignedDuration::new(seconds, halves * 500_000_000) }),
    ];
    let weight = (0..4000_u32).prop_map(|thousandths| f64::from(thousandths) / 1000.0);
    let weights = btree_map(select(RESOURCES.to_vec()).prop_map(str::to_owned), weight, 0..=3);
    (half_life, 1..4000_i64, weights).prop_map(|(usage_half_life_time, interval, resource_weights)| {
        AdmissionFairSharing {
            usage_half_life_time,
            usage_sampling_interval: SignedDuration::from_secs(interval),
            resource_weights,
        }
    })
}

fn requeuing() -> impl Strategy<Value = Requeuing> {
    let timestamp = select(vec![RequeuingTimestamp::Eviction, RequeuingTimestamp::Creation]);
    let count = || 0..=i32::MAX.unsigned_abs();
    (timestamp, option::of(count()), count(), count()).prop_map(
        |(timestamp, backoff_limit_count, backoff_base_seconds, backoff_max_seconds)| Requeuing {
            timestamp,
            backoff_limit_count,
            backoff_base_seconds,
            backoff_max_seconds,
        },
    )
}

fn named<T>(
    names: &'static [&'static str],
    of: impl Strategy<Value = T>,
) -> impl Strategy<Value = BTreeMap<String, T>>
where
    T: std::fmt::Debug,
{
    btree_map(select(names).prop_map(str::to_owned), of, 0..=3)
}

fn objects() -> impl Strategy<Value = Objects> {
    let users = [
        LocalQueueUsers::LocalQueue,
        LocalQueueUsers::Author,
        LocalQueueUsers::Repository,
    ];
    let local = (
        select(QUEUES.to_vec()),
        stop_policy(),
        weight(),
        select(users.to_vec()),
        option::of(Just("team".to_owned())),
    );
    let local = local.prop_map(|(queue, stop_policy, weight, users, namespace)| LocalQueue {
        cluster_queue: queue.into(),
        stop_policy,
        weight,
        users,
        namespace,
        own_name: None,
    });
    (
        named(&FLAVORS, flavor()),
        named(&COHORTS, cohort()),
        named(&QUEUES, cluster_queue()),
        named(&QUEUES, local),
        named(&["high", "low"], any::<i32>()),
        (
            option::of(fair_sharing()),
            option::of(admission_fair_sharing()),
            option::of(requeuing()),
        ),
    )
        .prop_map(
            |(flavors, cohorts, cluster_queues, local_queues, priority_classes, settings)| Objects {
                flavors,
                cohorts,
                cluster_queues,
                local_queues,
                priority_classes,
                fair_sharing: settings.0,
                admission_fair_sharing: settings.1,
                requeuing: settings.2,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_back_as_it_was(objects in objects()) {
        let text = write(&objects);
        let manifest = of(&text).unwrap_or_else(|found| panic!("{found:#?}\n{text}"));
        prop_assert_eq!(&manifest.objects, &objects, "{}", text);
        let json: Vec<_> = documents(&objects).into_iter().map(|document| document.value).collect();
        let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": json });
        let manifest = of(&list.to_string()).expect("JSON is YAML");
        prop_assert_eq!(manifest.objects, objects);
    }
}

#[test]
fn objects_are_written_as_people_write_them() {
    let quota = |nominal, borrowing_limit| Quota {
        nominal: Quantity(nominal),
        borrowing_limit,
        lending_limit: None,
    };
    let resources = [
        ("cpu", quota(1500, None)),
        ("memory", quota(24 << 30, None)),
        ("nvidia.com/gpu", quota(8, Some(Quantity(4)))),
    ];
    let queue = ClusterQueue {
        cohort: Some("main".into()),
        resource_groups: vec![ResourceGroup {
            flavors: vec![FlavorQuotas {
                name: "a10".into(),
                resources: resources.map(|(name, quota)| (name.into(), quota)).into(),
            }],
        }],
        queueing_strategy: QueueingStrategy::StrictFIFO,
        weight: Weight(0.3),
        ..ClusterQueue::default()
    };
    let objects = Objects {
        flavors: BTreeMap::from([("a10".into(), ResourceFlavor::default())]),
        cluster_queues: BTreeMap::from([("team-a".into(), queue)]),
        ..Objects::default()
    };
    let expected = "\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata:
  name: a10
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: team-a
spec:
  cohortName: main
  fairSharing:
    weight: \"0.3\"
  namespaceSelector: {}
  queueingStrategy: StrictFIFO
  resourceGroups:
  - coveredResources:
    - cpu
    - memory
    - nvidia.com/gpu
    flavors:
    - name: a10
      resources:
      - name: cpu
        nominalQuota: 1500m
      - name: memory
        nominalQuota: 24Gi
      - borrowingLimit: \"4\"
        name: nvidia.com/gpu
        nominalQuota: \"8\"
";
    assert_eq!(write(&objects), expected);
}
