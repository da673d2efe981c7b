//! From submission to admission, in stories of a few workloads; random ones are in `random`.

mod external;
mod local_queues;
mod random;

use crate::{
    objects::{
        AdmissionFairSharing, AdmissionMode, ClusterQueue, FlavorQuotas, LocalQueue, LocalQueueUsers,
        Preemption, QueueingStrategy, Quota, ReclaimWithinCohort, ResourceFlavor, ResourceGroup,
        WithinClusterQueue,
    },
    *,
};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("small")
}

/// Queues of one cohort with so many cores each, which take back what they lend.
fn cohort<const N: usize>(cores: [(&str, i64); N]) -> Objects {
    let mut objects = Objects {
        flavors: BTreeMap::from([("local".into(), ResourceFlavor::default())]),
        ..Objects::default()
    };
    for (name, cores) in cores {
        let quota = Quota {
            nominal: Quantity(cores),
            ..Quota::default()
        };
        let flavor = FlavorQuotas {
            name: "local".into(),
            resources: BTreeMap::from([("cpu".into(), quota)]),
        };
        let queue = ClusterQueue {
            cohort: Some("c".into()),
            resource_groups: vec![ResourceGroup {
                flavors: vec![flavor],
            }],
            queueing_strategy: QueueingStrategy::StrictFIFO,
            preemption: Preemption {
                reclaim_within_cohort: ReclaimWithinCohort::Any,
                ..Preemption::default()
            },
            ..ClusterQueue::default()
        };
        objects.cluster_queues.insert(name.into(), queue);
        let local = LocalQueue {
            cluster_queue: name.into(),
            ..LocalQueue::default()
        };
        objects.local_queues.insert(name.into(), local);
    }
    objects
}

fn cluster_queue<'a>(objects: &'a mut Objects, name: &str) -> &'a mut ClusterQueue {
    objects.cluster_queues.get_mut(name).expect("it is there")
}

fn local_queue<'a>(objects: &'a mut Objects, name: &str) -> &'a mut LocalQueue {
    objects.local_queues.get_mut(name).expect("it is there")
}

fn workload(id: u64, since: i64, cores: i64) -> Workload {
    let set = PodSet {
        count: 1,
        requests: BTreeMap::from([("cpu".into(), Quantity(cores))]),
        ..PodSet::default()
    };
    Workload::new(WorkloadId(id), at(since), vec![set])
}

fn from(local_queue: &str, author: &str) -> Origin {
    Origin {
        local_queue: local_queue.into(),
        author: author.into(),
        repository: "here".into(),
    }
}

fn submit(queue: &mut AdmissionQueue, local_queue: &str, id: u64, cores: i64) {
    queue.submit(at(1), workload(id, 1, cores), from(local_queue, "ann"));
}

fn admitted(queue: &mut AdmissionQueue) -> Vec<u64> {
    let decisions = queue.decide(at(100));
    queue.check();
    decisions.admitted.into_iter().map(|id| id.0).collect()
}

/// Returns the admitted workloads that are evicted now, and why.
fn evictions(queue: &mut AdmissionQueue) -> Vec<(u64, EvictionReason)> {
    let decisions = queue.decide(at(101));
    queue.check();
    let evicted = decisions.quota.iter().filter_map(|decision| match decision {
        QuotaDecision::Evicted(eviction) => Some(eviction),
        QuotaDecision::Reserved(_) | QuotaDecision::PreemptionAwaited(_) => None,
    });
    let evicted = evicted.filter(|eviction| eviction.was_admitted);
    evicted
        .map(|eviction| (eviction.workload.0, eviction.reason))
        .collect()
}

#[test]
fn the_order_is_by_priority_then_by_time_then_by_id() {
    let mut queue = AdmissionQueue::new(cohort([("a", 1)]));
    for (id, priority, since) in [(1, 0, 5), (2, 0, 3), (3, 9, 7), (4, 0, 3)] {
        let workload = Workload {
            priority,
            ..workload(id, since, 1)
        };
        queue.submit(at(since), workload, from("a", "ann"));
    }
    let mut order = Vec::new();
    while let [id] = admitted(&mut queue)[..] {
        order.push(id);
        queue.release(WorkloadId(id));
    }
    assert_eq!(order, [3, 2, 4, 1]);
}

#[test]
fn releasing_twice_gives_nothing_back_twice() {
    let mut queue = AdmissionQueue::new(cohort([("a", 1)]));
    submit(&mut queue, "a", 1, 1);
    assert_eq!(queue.release(WorkloadId(1)), None, "it is pending");
    assert_eq!(admitted(&mut queue), [1]);
    assert_eq!(queue.withdraw(WorkloadId(1)), None, "it is admitted");
    assert!(queue.release(WorkloadId(1)).is_some());
    assert_eq!(queue.release(WorkloadId(1)), None);
    queue.check();
    let usage = queue.queues().usage("a", "local", "cpu");
    assert_eq!(usage.expect("it is there"), Quantity::ZERO);
}

const PREEMPTIONS: [PreemptionReason; 4] = [
    PreemptionReason::InClusterQueue,
    PreemptionReason::InCohortReclamation,
    PreemptionReason::InCohortFairSharing,
    PreemptionReason::InCohortReclaimWhileBorrowing,
];

const STOPPED: [EvictionReason; 2] = [
    EvictionReason::LocalQueueStopped,
    EvictionReason::ClusterQueueStopped,
];

#[test]
fn an_eviction_has_the_word_of_its_preemption() {
    for reason in PREEMPTIONS {
        let evicted = EvictionReason::from(reason);
        assert_eq!(evicted.as_str(), reason.as_str());
        assert_eq!(evicted.condition_reason(), "Preempted");
        assert_eq!(serde_json::to_value(evicted).expect("a word"), reason.as_str());
    }
    for stopped in STOPPED {
        assert_eq!(stopped.condition_reason(), stopped.as_str());
        assert_eq!(serde_json::to_value(stopped).expect("a word"), stopped.as_str());
    }
}

#[test]
fn every_reason_is_told_in_words_of_its_own() {
    let reasons = PREEMPTIONS.map(EvictionReason::from).into_iter();
    let words: BTreeSet<_> = reasons.chain(STOPPED).map(EvictionReason::as_words).collect();
    assert_eq!(words.len(), PREEMPTIONS.len() + STOPPED.len());
    assert!(!words.contains(""));
}

/// A queue with one core, whose workloads preempt those of lower priority; the first one is admitted.
fn preempting(protected_for: Option<i64>) -> AdmissionQueue {
    let mut objects = cohort([("a", 1)]);
    cluster_queue(&mut objects, "a").preemption.within_cluster_queue = WithinClusterQueue::LowerPriority;
    let mut queue = AdmissionQueue::new(objects);
    queue.protect_for(protected_for.map(SignedDuration::from_secs));
    submit(&mut queue, "a", 1, 1);
    assert_eq!(admitted(&mut queue), [1]);
    queue
}

fn urgent(evictions: u32, evicted_by: Option<u64>) -> Workload {
    Workload {
        priority: 9,
        evictions,
        evicted_by: evicted_by.map(WorkloadId),
        ..workload(2, 2, 1)
    }
}

#[test]
fn an_evicted_workload_takes_nothing_back_before_the_other_had_its_minimum_run_time() {
    let mut queue = preempting(Some(60));
    queue.submit(at(2), urgent(1, Some(1)), from("a", "ann"));
    assert_eq!(queue.decide(at(159)).quota, []);
    assert_eq!(queue.try_again_at(), Some(at(160)));
    queue.wake();
    let expected = Eviction {
        workload: WorkloadId(1),
        reason: EvictionReason::InClusterQueue,
        by: Some(WorkloadId(2)),
        reversal: true,
        was_admitted: true,
    };
    assert_eq!(queue.decide(at(160)).quota, [QuotaDecision::Evicted(expected)]);
}

#[test]
fn a_workload_that_was_never_evicted_preempts_at_once() {
    for (protected_for, evictions) in [(None, 1), (Some(60), 0)] {
        let mut queue = preempting(protected_for);
        assert_eq!(queue.try_again_at(), None);
        queue.submit(at(2), urgent(evictions, None), from("a", "ann"));
        assert_eq!(
            queue.decide(at(100)).quota.len(),
            1,
            "{protected_for:?} {evictions}"
        );
    }
}

#[test]
fn a_workload_that_waits_for_one_evicted_before_is_said_to() {
    let mut queue = preempting(None);
    let mut again = queue.clone();
    let mut both = |second, id| {
        let next = Workload {
            id: WorkloadId(id),
            ..urgent(0, None)
        };
        for queue in [&mut queue, &mut again] {
            queue.withdraw(WorkloadId(id - 1));
            queue.submit(at(second), next.clone(), from("a", "ann"));
        }
        queue.decide(at(second)).quota
    };
    let evicted = both(100, 2);
    assert!(matches!(evicted[..], [QuotaDecision::Evicted(_)]), "{evicted:?}");
    let awaited = [QuotaDecision::PreemptionAwaited(WorkloadId(3))];
    assert_eq!(both(101, 3), awaited);
    assert_eq!(queue.decide(at(102)).quota, [], "it is said once");

    // One that hears of it answers as the one that decided.
    again.evict(at(100), WorkloadId(1), None);
    again.await_preemption(WorkloadId(3));
    let explain = |queue: &AdmissionQueue| queue.queues().wait(WorkloadId(3)).map(|wait| wait.to_string());
    assert_eq!(explain(&again), explain(&queue));
}

#[test]
fn a_workload_that_backs_off_is_tried_when_that_is_over_and_its_wait_counts_from_then() {
    let mut queue = AdmissionQueue::new(cohort([("a", 1)]));
    submit(&mut queue, "a", 1, 1);
    queue.back_off(WorkloadId(1), at(50));
    assert!(queue.decide(at(49)).is_empty());
    assert_eq!(queue.next_back_off_ends(), Some(at(50)));
    // It is not forgotten while its LocalQueue is stopped.
    let mut objects = queue.objects().clone();
    local_queue(&mut objects, "a").stop_policy = StopPolicy::Hold;
    queue.set_objects(objects);
    assert_eq!(queue.next_back_off_ends(), None);
    queue.set_objects(cohort([("a", 1)]));
    assert!(queue.decide(at(49)).is_empty());

    let decisions = queue.decide(at(60));
    assert_eq!(decisions.retried, [WorkloadId(1)]);
    let [QuotaDecision::Reserved(reservation)] = &decisions.quota[..] else {
        panic!("{decisions:?}");
    };
    assert_eq!(reservation.waited, SignedDuration::from_secs(10));
}

/// Workload 1 is evicted and has three of four cores. Workload 2 waits for it; of 3 and 4, whose quota is reserved with its
/// own, there is room for one.
fn crowded() -> AdmissionQueue {
    let mut queue = AdmissionQueue::new(cohort([("a", 2), ("b", 1), ("c", 1), ("slack", 0)]));
    submit(&mut queue, "slack", 1, 3);
    assert_eq!(admitted(&mut queue), [1]);
    submit(&mut queue, "a", 2, 2);
    submit(&mut queue, "b", 3, 1);
    submit(&mut queue, "c", 4, 1);
    let decisions = queue.decide(at(100));
    queue.check();
    assert_eq!(decisions.admitted, [WorkloadId(3)]);
    let status = |id| queue.status(WorkloadId(id)).expect("it is there");
    assert_eq!(status(1), AdmissionStatus::Admitted, "until it is released");
    assert_eq!(status(4), AdmissionStatus::QuotaReserved);
    queue
}

#[test]
fn a_workload_is_admitted_once_its_victims_are_gone() {
    let mut queue = crowded();
    assert_eq!(admitted(&mut queue), [0; 0]);
    queue.release(WorkloadId(1));
    assert_eq!(admitted(&mut queue), [2, 4]);
}

#[test]
fn a_workload_whose_queue_is_drained_before_it_was_admitted_is_pending_again_at_once() {
    let mut queue = crowded();
    let mut objects = queue.objects().clone();
    cluster_queue(&mut objects, "c").stop_policy = StopPolicy::HoldAndDrain;
    queue.set_objects(objects);
    assert_eq!(evictions(&mut queue), [], "nothing of it runs");
    let entry = queue.get(WorkloadId(4)).expect("it is there");
    assert_eq!(entry.status(), AdmissionStatus::Pending);
    assert_eq!(entry.workload().evictions, 1);
    assert_eq!(entry.entered_at(), at(101));
}

#[test]
fn a_withdrawn_workload_gives_its_reserved_quota_back() {
    let mut queue = crowded();
    assert!(queue.withdraw(WorkloadId(4)).is_some());
    submit(&mut queue, "c", 5, 1);
    queue.release(WorkloadId(1));
    assert_eq!(admitted(&mut queue), [2, 5]);
}

#[test]
fn a_pending_workload_follows_its_local_queue() {
    let mut objects = cohort([("a", 1), ("b", 2)]);
    let mut queue = AdmissionQueue::new(objects.clone());
    submit(&mut queue, "a", 1, 1);
    cluster_queue(&mut objects, "a").stop_policy = StopPolicy::Hold;
    queue.set_objects(objects.clone());
    assert_eq!(admitted(&mut queue), [0; 0]);
    local_queue(&mut objects, "a").cluster_queue = "b".into();
    queue.set_objects(objects);
    assert_eq!(admitted(&mut queue), [1]);
}

#[test]
fn authors_or_repositories_are_told_apart_as_soon_as_their_local_queue_says_so() {
    let mut objects = cohort([("a", 1)]);
    cluster_queue(&mut objects, "a").admission_mode = AdmissionMode::UsageBasedAdmissionFairSharing;
    objects.admission_fair_sharing = Some(AdmissionFairSharing {
        usage_half_life_time: SignedDuration::from_hours(1),
        usage_sampling_interval: SignedDuration::from_mins(5),
        resource_weights: BTreeMap::new(),
    });
    let told_apart = |users| {
        let mut objects = objects.clone();
        local_queue(&mut objects, "a").users = users;
        objects
    };
    let mut queue = AdmissionQueue::new(told_apart(LocalQueueUsers::Author));
    submit(&mut queue, "a", 1, 1);
    assert_eq!(admitted(&mut queue), [1]);
    submit(&mut queue, "a", 2, 1);
    queue.submit(at(1), workload(3, 1, 1), from("a", "bob"));
    let waiting = |queue: &AdmissionQueue| queue.queues().waiting("a").expect("it is there");
    assert_eq!(waiting(&queue), [WorkloadId(3), WorkloadId(2)]);
    let order = queue.queues().usage_order(WorkloadId(2));
    let order = order.expect("usage counts");
    assert_eq!(order.own.user.as_deref(), Some("ann"));
    assert_eq!(order.less[0].0.user.as_deref(), Some("bob"));

    // Of one repository; and once users are not told apart, of one LocalQueue.
    for users in [LocalQueueUsers::Repository, LocalQueueUsers::LocalQueue] {
        queue.set_objects(told_apart(users));
        assert_eq!(waiting(&queue), [WorkloadId(2), WorkloadId(3)], "{users:?}");
    }
    queue.set_objects(told_apart(LocalQueueUsers::Author));
    assert_eq!(waiting(&queue), [WorkloadId(3), WorkloadId(2)]);
    queue.release(WorkloadId(1));
    assert_eq!(admitted(&mut queue), [3]);
}
