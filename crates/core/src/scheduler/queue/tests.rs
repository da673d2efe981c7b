//! The queue as the scheduler meets it: by runs, with the one queue that holds where no admin applied others, and why a run
//! waits there. What decides is tested in `blueproof_queue`.

mod local_queues;

use std::{collections::BTreeMap, sync::Arc};

use blueproof_queue::{
    StopPolicy, WorkloadId,
    objects::{
        AdmissionFairSharing, AdmissionMode, ClusterQueue, Cohort, FlavorQuotas, LocalQueue, LocalQueueUsers,
        Preemption, QueueingStrategy, ReclaimWithinCohort, ResourceFlavor,
    },
};

use super::*;
use crate::{
    domain::{Actor, Cpus, Gpus, PodSets, Priority},
    pending::{InactiveQueue, PendingReason},
    testing::request,
};

fn cpus(cores: u32) -> Resources {
    Resources {
        cpu: Cpus::cores(cores),
        ..Resources::default()
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("small")
}

fn asks(priority: i32, cores: u32) -> RunRequest {
    let mut request = request("a", "nano-lm");
    request.priority = Priority(priority);
    request.job.pod_sets = PodSets::of_amounts(cpus(cores), Resources::default());
    request
}

fn submit(queue: &mut Queue, run: u64, priority: i32, since: i64, cores: u32) {
    queue.submit(
        at(since),
        RunId(run).attempt(1),
        &Arc::new(asks(priority, cores)),
        at(since),
        Evictions::default(),
    );
}

fn admitted(queue: &mut Queue) -> Vec<u64> {
    let decisions = queue.decide(at(100));
    queue.check();
    decisions
        .admitted
        .into_iter()
        .map(|attempt| attempt.run.0)
        .collect()
}

#[test]
fn nobody_overtakes_the_one_in_front() {
    let mut queue = Queue::new(cpus(2));
    submit(&mut queue, 1, 0, 1, 1);
    submit(&mut queue, 2, 0, 2, 2);
    submit(&mut queue, 3, 0, 3, 1);
    assert_eq!(admitted(&mut queue), [1]);
    let Some(PendingReason::PendingEvaluation(queued)) = queue.why(RunId(3)) else {
        panic!("it would fit, but waits: {:?}", queue.why(RunId(3)));
    };
    assert_eq!(
        (queued.ahead, queued.strict_head),
        (vec![RunId(2)], Some(RunId(2)))
    );
    assert_eq!(
        queue.obstacle(RunId(3)).as_deref(),
        Some("asks for 1 cpu, 0 memory; free are 1 cpu; r-2 is first in the queue")
    );
    queue.release(RunId(1).attempt(1));
    assert_eq!(admitted(&mut queue), [2]);
}

#[test]
fn a_run_is_a_pod_set_and_another_for_what_it_starts() {
    let mut job = asks(0, 2).job;
    let named = |sets: &[blueproof_queue::PodSet]| -> Vec<Vec<String>> {
        sets.iter()
            .map(|set| set.requests.keys().cloned().collect())
            .collect()
    };
    assert_eq!(named(job.pod_sets.as_slice()), [["cpu"]]);
    let workload = Resources {
        gpu: Gpus(1),
        ..Resources::default()
    };
    job.pod_sets = PodSets::of_amounts(cpus(2), workload);
    assert_eq!(named(job.pod_sets.as_slice()), [["cpu"], ["nvidia.com/gpu"]]);
}

#[test]
fn the_default_queue_has_all_resources_also_those_of_which_there_is_nothing() {
    let queue = Queue::new(cpus(2));
    assert_eq!(queue.default_quota(), Some(cpus(2)));
    let configured = &queue.objects().cluster_queues["local"];
    assert_eq!(
        Vec::from_iter(configured.resource_groups[0].covered_resources()),
        ["cpu", "memory", "nvidia.com/gpu"]
    );
}

/// Queues of one cohort with so many cores each. Those of `high` evict who borrows.
fn cohort<const N: usize>(cores: [(&str, u32); N]) -> Objects {
    let mut objects = default_objects(Resources::default());
    for (name, cores) in cores {
        let of_one = default_objects(cpus(cores)).cluster_queues.remove("local");
        let queue = ClusterQueue {
            cohort: Some("c".into()),
            preemption: Preemption {
                reclaim_within_cohort: ReclaimWithinCohort::Any,
                ..Preemption::default()
            },
            ..of_one.expect("it is there")
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

fn submit_to(queue: &mut Queue, name: &str, run: u64, cores: u32) {
    submit_by(queue, name, run, "ann", cores);
}

fn submit_by(queue: &mut Queue, name: &str, run: u64, author: &str, cores: u32) {
    let mut request = asks(0, cores);
    request.queue = name.parse().expect("a name");
    request.requested_by = Actor::Local(author.into());
    queue.submit(
        at(1),
        RunId(run).attempt(1),
        &Arc::new(request),
        at(1),
        Evictions::default(),
    );
}

/// Run 1 was told to go and has three of four cores. Run 2 waits for it; of 3 and 4, admitted beside it, there is room
/// for one.
fn crowded() -> Queue {
    let mut queue = Queue::new(Resources::default());
    queue.apply(cohort([("a", 2), ("b", 1), ("c", 1), ("slack", 0)]));
    submit_to(&mut queue, "slack", 1, 3);
    assert_eq!(admitted(&mut queue), [1]);
    submit_to(&mut queue, "a", 2, 2);
    submit_to(&mut queue, "b", 3, 1);
    submit_to(&mut queue, "c", 4, 1);
    let decisions = queue.decide(at(100));
    queue.check();
    assert_eq!(decisions.evicted().len(), 1);
    assert_eq!(decisions.admitted, [RunId(3).attempt(1)]);
    queue
}

#[test]
fn room_that_somebody_has_not_left_yet_is_not_given_out() {
    let mut queue = crowded();
    let Some(PendingReason::WaitingForPreemptedWorkloads(queued)) = queue.why(RunId(4)) else {
        panic!("it waits for run 1 to be gone: {:?}", queue.why(RunId(4)));
    };
    assert!(queued.can_ever_fit);
    queue.release(RunId(1).attempt(1));
    assert_eq!(admitted(&mut queue), [2, 4]);
}

#[test]
fn authors_or_repositories_are_told_apart_as_soon_as_their_local_queue_says_so() {
    let mut objects = cohort([("a", 1)]);
    let shared = objects.cluster_queues.get_mut("a").expect("it is there");
    shared.admission_mode = AdmissionMode::UsageBasedAdmissionFairSharing;
    objects.admission_fair_sharing = Some(AdmissionFairSharing {
        usage_half_life_time: SignedDuration::from_hours(1),
        usage_sampling_interval: SignedDuration::from_mins(5),
        resource_weights: BTreeMap::new(),
    });
    let told_apart = |users| {
        let mut objects = objects.clone();
        objects.local_queues.get_mut("a").expect("it is there").users = users;
        objects
    };
    let mut queue = Queue::new(Resources::default());
    queue.apply(told_apart(LocalQueueUsers::Author));
    submit_by(&mut queue, "a", 1, "ann", 1);
    assert_eq!(admitted(&mut queue), [1]);
    submit_by(&mut queue, "a", 2, "ann", 1);
    submit_by(&mut queue, "a", 3, "bob", 1);
    let waiting = |queue: &Queue| queue.queues().waiting("a").expect("it is there");
    assert_eq!(waiting(&queue), [WorkloadId(3), WorkloadId(2)]);
    let order = queue.queues().usage_order(WorkloadId(2)).expect("usage counts");
    assert_eq!(order.own.user.as_deref(), Some("ann"));
    assert_eq!(order.less[0].0.user.as_deref(), Some("bob"));

    // Of one folder; and once nobody is told apart, of one LocalQueue.
    for users in [LocalQueueUsers::Repository, LocalQueueUsers::LocalQueue] {
        queue.apply(told_apart(users));
        assert_eq!(waiting(&queue), [WorkloadId(2), WorkloadId(3)], "{users:?}");
    }
    queue.apply(told_apart(LocalQueueUsers::Author));
    assert_eq!(waiting(&queue), [WorkloadId(3), WorkloadId(2)]);
    queue.release(RunId(1).attempt(1));
    assert_eq!(admitted(&mut queue), [3]);
}

/// A queue with cores of two flavors, tried in this order.
fn two_flavors(reserved: u32, spot: u32) -> Objects {
    let mut objects = default_objects(cpus(reserved));
    let queue = objects.cluster_queues.get_mut("local").expect("it is there");
    queue.queueing_strategy = QueueingStrategy::BestEffortFIFO;
    let group = &mut queue.resource_groups[0];
    group.flavors[0].name = "reserved".into();
    let spots = default_objects(cpus(spot)).cluster_queues["local"].resource_groups[0].flavors[0].clone();
    group.flavors.push(FlavorQuotas {
        name: "spot".into(),
        ..spots
    });
    objects.flavors = ["reserved", "spot"]
        .map(|name| (name.to_owned(), ResourceFlavor::default()))
        .into();
    objects
}

fn told(queue: &Queue, run: u64) -> String {
    queue.why(RunId(run)).expect("it waits").to_string()
}

#[test]
fn what_is_free_is_told_of_each_flavor_since_a_pod_gets_only_one() {
    let mut queue = Queue::new(Resources::default());
    queue.apply(two_flavors(1, 1));
    submit(&mut queue, 1, 0, 1, 2);
    assert_eq!(admitted(&mut queue), [0; 0]);
    let never = "asks for 2 cpu, 0 memory, more than its queue could ever have: 1 cpu of flavor reserved, or 1 cpu of \
         flavor spot";
    assert_eq!(told(&queue, 1), never);
    assert_eq!(queue.obstacle(RunId(1)).as_deref(), Some(never));
    queue.apply(two_flavors(2, 1));
    submit(&mut queue, 2, 9, 2, 1);
    assert_eq!(admitted(&mut queue), [2]);
    assert_eq!(
        told(&queue, 1),
        "asks for 2 cpu, 0 memory; free are 1 cpu of flavor reserved, or 1 cpu of flavor spot; 0 before it in the \
         queue"
    );
    assert_eq!(
        queue.obstacle(RunId(1)).as_deref(),
        Some("asks for 2 cpu, 0 memory; free are 1 cpu of flavor reserved, or 1 cpu of flavor spot")
    );
}

#[test]
fn the_head_of_a_strict_fifo_queue_is_named_as_such() {
    let mut queue = Queue::new(cpus(2));
    for (run, cores) in [(1, 1), (2, 2), (3, 1)] {
        submit(&mut queue, run, 0, i64::try_from(run).expect("small"), cores);
    }
    assert_eq!(admitted(&mut queue), [1]);
    assert_eq!(
        told(&queue, 3),
        "1 before it in the queue, which is StrictFIFO: nobody is admitted before r-2, its head"
    );
    let Some(PendingReason::WaitingForQuota(head)) = queue.why(RunId(2)) else {
        panic!("{:?}", queue.why(RunId(2)));
    };
    assert_eq!(head.strict_head, None, "it is the head itself");
}

#[test]
fn one_behind_a_head_that_can_never_fit_is_told_that_it_has_to_go() {
    let mut queue = Queue::new(cpus(2));
    submit(&mut queue, 1, 0, 1, 3);
    submit(&mut queue, 2, 0, 2, 1);
    assert_eq!(admitted(&mut queue), [0; 0]);
    let why = queue.why(RunId(2)).expect("it waits");
    assert!(
        why.to_string()
            .ends_with("before r-1, its head, which can never fit"),
        "{why}"
    );
    assert_eq!(
        why.unblocked_by(),
        "r-1, which can never fit, is cancelled, and 1 cpu, 0 memory are free"
    );
    let runs = vec![RunId(1)];
    let then = Vec::new();
    let cancelled = crate::pending::RunRemedy::Cancelled { runs, then };
    assert_eq!(queue.unblocked_by(RunId(2))[0], cancelled);
}

/// Returns what is told to a run of the LocalQueue `a`, and what would put that right.
fn told_under(change: impl FnOnce(&mut Objects)) -> (String, String) {
    let mut objects = cohort([("a", 1)]);
    change(&mut objects);
    let mut queue = Queue::new(Resources::default());
    queue.apply(objects);
    submit_to(&mut queue, "a", 1, 1);
    assert_eq!(admitted(&mut queue), [0; 0]);
    let why = queue.why(RunId(1)).expect("it waits");
    (why.to_string(), why.unblocked_by())
}

#[test]
fn every_name_that_is_missing_is_named_and_so_is_who_is_stopped() {
    let local = |objects: &mut Objects, change: fn(&mut LocalQueue)| {
        change(objects.local_queues.get_mut("a").expect("it is there"));
    };
    let cluster = |objects: &mut Objects, change: fn(&mut ClusterQueue)| {
        change(objects.cluster_queues.get_mut("a").expect("it is there"));
    };
    let rows = [
        (
            told_under(|objects| objects.local_queues.clear()),
            "there is no LocalQueue `a`",
        ),
        (
            told_under(|objects| local(objects, |queue| queue.cluster_queue = "nowhere".into())),
            "its LocalQueue `a` names the ClusterQueue `nowhere`, which is not there",
        ),
        (
            told_under(|objects| local(objects, |queue| queue.stop_policy = StopPolicy::Hold)),
            "its LocalQueue `a` is stopped (stopPolicy Hold)",
        ),
        (
            told_under(|objects| cluster(objects, |queue| queue.stop_policy = StopPolicy::HoldAndDrain)),
            "its ClusterQueue `a` is stopped (stopPolicy HoldAndDrain)",
        ),
        (
            told_under(|objects| {
                let both = two_flavors(1, 1)
                    .cluster_queues
                    .remove("local")
                    .expect("it is there");
                objects.cluster_queues.insert("a".into(), both);
                objects.flavors.clear();
            }),
            "its ClusterQueue `a` admits nobody: there is no ResourceFlavor `reserved` and no `spot`",
        ),
        (
            told_under(|objects| {
                let below = |parent: &str| Cohort {
                    parent: Some(parent.into()),
                    ..Cohort::default()
                };
                objects.cohorts = BTreeMap::from([("c".into(), below("d")), ("d".into(), below("c"))]);
            }),
            "its ClusterQueue `a` admits nobody: the Cohorts `c` and `d` are each other's parents",
        ),
    ];
    for ((why, remedy), expected) in rows {
        assert_eq!(why, expected);
        for name in expected.split('`').skip(1).step_by(2).filter(|name| *name != "a") {
            assert!(remedy.contains(&format!("`{name}`")), "{remedy}");
        }
        assert!(remedy.contains("appl"), "it says what to do: {remedy}");
    }
}

/// Returns what ends the wait of the third run of the LocalQueue `a`, whose ClusterQueue has quota for two.
fn ends_under(change: impl FnOnce(&mut Objects)) -> Vec<String> {
    let mut objects = cohort([("a", 2)]);
    let mut queue = Queue::new(Resources::default());
    queue.apply(objects.clone());
    for run in 1..=2 {
        submit_to(&mut queue, "a", run, 1);
    }
    assert_eq!(admitted(&mut queue), [1, 2]);
    change(&mut objects);
    queue.apply(objects);
    submit_to(&mut queue, "a", 3, 1);
    queue.decide(at(101));
    queue.check();
    let ways = queue.unblocked_by(RunId(3));
    ways.iter().map(ToString::to_string).collect()
}

#[test]
fn of_one_whose_queue_is_stopped_all_is_named_that_it_takes() {
    let local = |objects: &mut Objects| {
        objects
            .local_queues
            .get_mut("a")
            .expect("it is there")
            .stop_policy = StopPolicy::Hold;
    };
    let cluster = |objects: &mut Objects| {
        let queue = objects.cluster_queues.get_mut("a").expect("it is there");
        queue.stop_policy = StopPolicy::HoldAndDrain;
    };
    let quota = |objects: &mut Objects| {
        *objects = Objects {
            local_queues: objects.local_queues.clone(),
            ..cohort([("a", 3)])
        };
    };
    let then = "and then either r-1 ends or its queue has 1 more cpu of flavor local";
    let of_local = "the LocalQueue `a` is applied without its stopPolicy";
    let of_cluster = "the ClusterQueue `a` is applied without its stopPolicy";
    assert_eq!(ends_under(local), [format!("{of_local}, {then}")]);
    assert_eq!(ends_under(cluster), [format!("{of_cluster}, {then}")]);
    assert_eq!(
        ends_under(|objects| {
            local(objects);
            cluster(objects);
        }),
        [format!("{of_local} and {of_cluster}, {then}")]
    );
    assert_eq!(
        ends_under(|objects| {
            local(objects);
            quota(objects);
        }),
        [of_local],
        "there is room for three"
    );
}

#[test]
fn a_queue_that_goes_while_a_run_waits_in_it_is_named() {
    let mut queue = Queue::new(Resources::default());
    queue.apply(cohort([("a", 1)]));
    submit_to(&mut queue, "a", 1, 1);
    submit_to(&mut queue, "a", 2, 1);
    assert_eq!(admitted(&mut queue), [1]);
    let mut objects = queue.objects().clone();
    objects.cluster_queues.clear();
    queue.apply(objects);
    let Some(PendingReason::Misconfigured(queued)) = queue.why(RunId(2)) else {
        panic!("{:?}", queue.why(RunId(2)));
    };
    let missing = InactiveQueue::ClusterQueueNotFound {
        local_queue: "a".into(),
        cluster_queue: "a".into(),
    };
    assert_eq!(queued.inactive, Some(missing));
}
