//! Who goes first where usage counts: Kueue's `CalculateUsage` and order, worked out by hand from its code.

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::{
    PodSet, Quantity, Workload, WorkloadStatus,
    objects::{
        AdmissionFairSharing, AdmissionMode, ClusterQueue, FlavorQuotas, LocalQueue, Objects, Preemption,
        QueueingStrategy, Quota, ResourceFlavor, ResourceGroup, Weight, WithinClusterQueue,
    },
};

const GPU: &str = "nvidia.com/gpu";
const QUEUE: &str = "shared";
/// In seconds.
const HALF_LIFE: i64 = 100;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("small")
}

/// One ClusterQueue with so many GPUs and cores, and a LocalQueue for each of three users. Nobody is charged on entry.
fn objects(gpus: i64) -> Objects {
    let resources = [(GPU, gpus), ("cpu", gpus * 1000)].map(|(resource, nominal)| {
        let quota = Quota {
            nominal: Quantity(nominal),
            ..Quota::default()
        };
        (resource.to_owned(), quota)
    });
    let queue = ClusterQueue {
        resource_groups: vec![ResourceGroup {
            flavors: vec![FlavorQuotas {
                name: "any".into(),
                resources: resources.into(),
            }],
        }],
        admission_mode: AdmissionMode::UsageBasedAdmissionFairSharing,
        ..ClusterQueue::default()
    };
    let local = ["ann", "bob", "cy"].map(|user| {
        let local = LocalQueue {
            cluster_queue: QUEUE.into(),
            ..LocalQueue::default()
        };
        (user.to_owned(), local)
    });
    Objects {
        flavors: BTreeMap::from([("any".into(), ResourceFlavor::default())]),
        cluster_queues: BTreeMap::from([(QUEUE.into(), queue)]),
        local_queues: local.into(),
        admission_fair_sharing: Some(AdmissionFairSharing {
            usage_half_life_time: SignedDuration::from_secs(HALF_LIFE),
            usage_sampling_interval: SignedDuration::ZERO,
            resource_weights: BTreeMap::new(),
        }),
        ..Objects::default()
    }
}

fn the_queue(objects: &mut Objects) -> &mut ClusterQueue {
    objects.cluster_queues.get_mut(QUEUE).expect("it is there")
}

fn sharing(objects: &mut Objects) -> &mut AdmissionFairSharing {
    objects.admission_fair_sharing.as_mut().expect("it is there")
}

/// Queues, and the time.
struct Told {
    queues: Queues,
    second: i64,
}

impl Told {
    fn new(objects: Objects) -> Self {
        Self {
            queues: Queues::new(objects),
            second: 0,
        }
    }

    fn submit(&mut self, id: u64, local_queue: &str, gpus: i64, priority: i32) {
        self.submit_of(id, (local_queue, None), gpus, priority);
    }

    fn submit_of(&mut self, id: u64, (local_queue, user): (&str, Option<&str>), gpus: i64, priority: i32) {
        let workload = Workload {
            id: WorkloadId(id),
            cluster_queue: QUEUE.into(),
            local_queue: local_queue.into(),
            user: user.map(str::to_owned),
            priority,
            queued_at: at(self.second),
            evictions: 0,
            evicted_by: None,
            pod_sets: vec![PodSet {
                name: "main".into(),
                count: 1,
                requests: BTreeMap::from([(GPU.into(), Quantity(gpus))]),
                ..PodSet::default()
            }],
        };
        self.queues.submit(&workload).expect("the queue is configured");
    }

    /// Runs cycles until nothing changes, and returns who was admitted, in their order.
    fn cycles(&mut self) -> Vec<u64> {
        let mut admitted = Vec::new();
        while self.queues.has_work() {
            let cycle = self.queues.cycle(at(self.second));
            admitted.extend(cycle.admitted.iter().map(|admission| admission.workload.0));
        }
        admitted
    }

    /// Lets one be gone so many seconds later, and returns who was admitted then.
    fn gone_after(&mut self, seconds: i64, id: u64) -> Vec<u64> {
        self.second += seconds;
        self.queues.remove(WorkloadId(id));
        self.cycles()
    }

    fn usages(&self) -> Option<Vec<UserUsage>> {
        let told = self.queues.users(QUEUE, at(self.second));
        told.expect("it is there")
    }

    fn usage(&self, user: &str) -> Option<f64> {
        let of = self
            .usages()
            .expect("usage counts")
            .into_iter()
            .find(|usage| usage.local_queue == user);
        of.expect("it is in front of the queue").usage
    }

    fn waiting(&self) -> Vec<u64> {
        let waiting = self.queues.waiting(QUEUE).expect("it is there");
        waiting.into_iter().map(|id| id.0).collect()
    }
}

fn assert_near(actual: Option<f64>, expected: f64) {
    let actual = actual.expect("it is finite");
    assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
}

#[test]
fn what_is_held_counts_in_full_after_a_long_time_and_half_of_that_after_a_half_life() {
    let mut told = Told::new(objects(8));
    told.submit(1, "ann", 8, 0);
    assert_eq!(told.cycles(), [1]);
    assert_near(told.usage("ann"), 0.0);
    told.gone_after(HALF_LIFE, 1);
    assert_near(told.usage("ann"), 4.0);
    // Nothing is held: a quarter is left after two half-lives, whether anybody comes meanwhile or not.
    told.second += HALF_LIFE;
    assert_near(told.usage("ann"), 2.0);
    told.second -= HALF_LIFE;
    told.submit(2, "bob", 8, 0);
    told.gone_after(HALF_LIFE, 9);
    assert_near(told.usage("ann"), 2.0);
    told.gone_after(HALF_LIFE, 2);
    assert_near(told.usage("ann"), 1.0);
    assert_near(told.usage("bob"), 4.0);
}

#[test]
fn whoever_had_less_goes_first_whatever_the_priority_and_equals_go_by_priority_and_age() {
    let mut told = Told::new(objects(1));
    told.submit(1, "ann", 1, 0);
    told.cycles();
    told.submit(2, "ann", 1, 9);
    told.submit(3, "bob", 1, 0);
    told.submit(4, "bob", 1, 1);
    told.submit(5, "cy", 1, 1);
    told.second += 10;
    told.queues.wake();
    told.cycles();
    assert_eq!(told.waiting(), [4, 5, 3, 2]);
    assert_eq!(told.gone_after(0, 1), [4]);
    assert_eq!(told.gone_after(1, 4), [5], "bob had a second, and cy nothing");
    assert_eq!(told.gone_after(100, 5), [3], "cy had 100 seconds");
}

#[test]
fn whoever_is_admitted_is_charged_at_once_so_that_users_take_turns() {
    let mut objects = objects(4);
    sharing(&mut objects).usage_sampling_interval = SignedDuration::from_secs(HALF_LIFE);
    let mut told = Told::new(objects);
    for (id, user) in [
        (1, "ann"),
        (2, "ann"),
        (3, "ann"),
        (4, "bob"),
        (5, "bob"),
        (6, "bob"),
    ] {
        told.submit(id, user, 1, 0);
    }
    assert_eq!(told.cycles(), [1, 4, 2, 5]);
    assert_near(told.usage("ann"), 1.0);
    told.gone_after(0, 1);
    assert_near(told.usage("ann"), 1.5);
    assert_eq!(told.waiting(), [6], "the charge is not given back");
}

#[test]
fn a_local_queue_of_twice_the_weight_may_have_twice_as_much_and_one_of_none_goes_last() {
    let mut objects = objects(6);
    sharing(&mut objects).usage_sampling_interval = SignedDuration::from_secs(HALF_LIFE);
    for (user, weight) in [("ann", 2.0), ("bob", 1.0), ("cy", 0.0)] {
        objects.local_queues.get_mut(user).expect("it is there").weight = Weight(weight);
    }
    let mut told = Told::new(objects);
    told.submit(1, "cy", 1, 9);
    for id in 0..4 {
        told.submit(10 + id, "ann", 1, 0);
        told.submit(20 + id, "bob", 1, 0);
    }
    assert_eq!(told.cycles(), [10, 20, 11, 12, 21, 13]);
    assert_eq!(told.usage("cy"), None, "it is without end");
    assert_eq!(told.waiting(), [22, 23, 1]);
}

#[test]
fn resources_count_by_their_weights_in_kubernetes_units() {
    let mut objects = objects(8);
    sharing(&mut objects).resource_weights = BTreeMap::from([(GPU.into(), 10.0), ("cpu".into(), 0.5)]);
    let mut told = Told::new(objects);
    let pod = PodSet {
        name: "main".into(),
        count: 2,
        requests: BTreeMap::from([(GPU.into(), Quantity(1)), ("cpu".into(), Quantity(3000))]),
        ..PodSet::default()
    };
    told.submit(1, "ann", 1, 0);
    told.queues.remove(WorkloadId(1));
    let workload = Workload {
        id: WorkloadId(2),
        cluster_queue: QUEUE.into(),
        local_queue: "ann".into(),
        user: None,
        priority: 0,
        queued_at: at(0),
        evictions: 0,
        evicted_by: None,
        pod_sets: vec![pod],
    };
    told.queues.submit(&workload).expect("the queue is configured");
    told.cycles();
    told.gone_after(HALF_LIFE, 2);
    // Half of 2 GPUs and of 6 cores.
    assert_near(told.usage("ann"), 10.0 * 1.0 + 0.5 * 3.0);
    let consumed = told.usages().expect("usage counts")[0].consumed_resources.clone();
    assert_eq!(consumed, BTreeMap::from([(GPU.into(), 1.0), ("cpu".into(), 3.0)]));
}

#[test]
fn where_usage_is_forgotten_at_once_it_does_not_count() {
    let mut objects = objects(1);
    sharing(&mut objects).usage_half_life_time = SignedDuration::ZERO;
    let mut told = Told::new(objects);
    told.submit(1, "ann", 1, 0);
    told.cycles();
    told.submit(2, "bob", 1, 0);
    told.second += 1;
    told.submit(3, "ann", 1, 5);
    assert_eq!(told.gone_after(10, 1), [3]);
}

#[test]
fn a_strict_line_goes_on_when_its_first_has_had_more_than_another() {
    for first_to_come in ["ann", "bob"] {
        let mut objects = objects(3);
        the_queue(&mut objects).queueing_strategy = QueueingStrategy::StrictFIFO;
        let mut told = Told::new(objects);
        told.submit(9, first_to_come, 1, 0);
        told.queues.remove(WorkloadId(9));
        the_first_of_a_strict_line_is_overtaken(told);
    }
}

fn the_first_of_a_strict_line_is_overtaken(mut told: Told) {
    told.submit(1, "bob", 1, 0);
    told.cycles();
    told.gone_after(HALF_LIFE, 1);
    told.submit(2, "ann", 2, 0);
    told.cycles();
    // Ann had nothing and is first, but there is no room for her second one; bob, with 0.5, waits behind it.
    told.submit(3, "ann", 2, 0);
    told.submit(4, "bob", 1, 0);
    assert_eq!(told.cycles(), [0_u64; 0]);
    let passed = told
        .queues
        .reordered_at()
        .expect("ann holds two, and bob nothing");
    // With two held and a half to come down to: 2 (1 - x) = 0.5 x.
    let expected = 100.0 + 100.0 * (2.5_f64 / 2.0).log2();
    let seconds = passed.duration_since(at(0)).as_secs_f64();
    assert!((seconds - expected).abs() < 1e-6, "{seconds} is not {expected}");
    let before = passed - SignedDuration::from_micros(1);
    told.queues.wake();
    assert_eq!(told.queues.cycle(before).admitted, []);
    told.queues.wake();
    let admitted = told.queues.cycle(passed).admitted;
    assert_eq!(admitted[0].workload, WorkloadId(4));
}

#[test]
fn of_those_who_may_be_evicted_they_go_first_whose_user_had_most() {
    let mut objects = objects(2);
    the_queue(&mut objects).preemption = Preemption {
        within_cluster_queue: WithinClusterQueue::LowerPriority,
        ..Preemption::default()
    };
    let mut told = Told::new(objects);
    told.submit(1, "ann", 1, 1);
    told.cycles();
    told.second += 50;
    told.submit(2, "bob", 1, 0);
    told.cycles();
    told.second += 1;
    told.submit(3, "cy", 1, 2);
    let cycle = told.queues.cycle(at(told.second));
    let victims: Vec<u64> = cycle.preempted.iter().map(|victim| victim.workload.0).collect();
    assert_eq!(
        victims,
        [1],
        "bob's is of lower priority and newer, but ann had more"
    );
}

#[test]
fn one_who_waits_for_its_victims_goes_first_among_its_own_user_only() {
    let mut objects = objects(1);
    the_queue(&mut objects).preemption = Preemption {
        within_cluster_queue: WithinClusterQueue::LowerPriority,
        ..Preemption::default()
    };
    let mut told = Told::new(objects);
    told.submit(1, "ann", 1, 0);
    told.cycles();
    told.gone_after(10, 1);
    told.submit(2, "bob", 1, 0);
    told.cycles();
    told.submit(3, "ann", 1, 5);
    told.cycles();
    assert_eq!(told.queues.standing(WorkloadId(2)), Some(WorkloadStatus::Evicted));
    told.submit(4, "ann", 1, 9);
    assert_eq!(told.waiting(), [3, 4]);
    told.submit(5, "cy", 1, 0);
    assert_eq!(told.waiting(), [5, 3, 4]);
}

#[test]
fn other_objects_leave_what_was_had_and_without_the_mode_it_is_forgotten() {
    let mut told = Told::new(objects(8));
    told.submit(1, "ann", 4, 0);
    told.cycles();
    told.gone_after(HALF_LIFE, 1);
    told.submit(2, "ann", 2, 0);
    told.cycles();
    told.queues.set_objects(objects(4));
    told.gone_after(HALF_LIFE, 9);
    assert_near(told.usage("ann"), 2.0);

    let mut weighted = objects(4);
    weighted.local_queues.get_mut("ann").expect("it is there").weight = Weight(4.0);
    told.queues.set_objects(weighted);
    assert_near(told.usage("ann"), 0.5);

    let mut plain = objects(4);
    the_queue(&mut plain).admission_mode = AdmissionMode::default();
    told.queues.set_objects(plain);
    assert_eq!(told.usages(), None);
    told.submit(3, "ann", 2, 0);
    told.submit(4, "bob", 2, 0);
    assert_eq!(told.gone_after(HALF_LIFE, 9), [3]);

    // What is held when it begins to count, counts from then on.
    told.queues.set_objects(objects(4));
    assert_eq!(told.gone_after(0, 9), [0_u64; 0]);
    assert_near(told.usage("ann"), 0.0);
    told.gone_after(HALF_LIFE, 2);
    assert_near(told.usage("ann"), 2.0);
}

#[test]
fn those_who_wait_are_ordered_by_usage_as_soon_as_it_counts() {
    let mut plain = objects(2);
    the_queue(&mut plain).admission_mode = AdmissionMode::default();
    let mut told = Told::new(plain);
    told.submit(1, "ann", 2, 0);
    told.cycles();
    told.submit(2, "ann", 2, 0);
    told.submit(3, "bob", 2, 0);
    told.queues.set_objects(objects(2));
    told.cycles();
    assert_eq!(told.gone_after(HALF_LIFE, 1), [3]);
}

#[test]
fn one_is_told_whom_it_comes_after_and_with_what() {
    let mut told = Told::new(objects(2));
    told.submit(1, "ann", 2, 0);
    told.cycles();
    told.submit(2, "ann", 1, 5);
    told.submit(3, "bob", 1, 0);
    told.submit(4, "bob", 1, 0);
    told.second += HALF_LIFE;
    told.queues.wake();
    told.cycles();
    let order = told.queues.usage_order(WorkloadId(2)).expect("usage counts");
    assert_eq!(order.own.usage, Some(1.0));
    assert_eq!(order.less.len(), 1);
    let (less, workloads) = &order.less[0];
    assert_eq!((less.local_queue.as_str(), less.usage), ("bob", Some(0.0)));
    assert_eq!(*workloads, [WorkloadId(3), WorkloadId(4)]);
    let first = told.queues.usage_order(WorkloadId(3)).expect("usage counts");
    assert_eq!(first.less, []);
}

#[test]
fn so_short_a_time_that_nobody_can_tell_changes_nothing() {
    let mut objects = objects(4);
    *sharing(&mut objects) = AdmissionFairSharing {
        usage_half_life_time: SignedDuration::from_nanos(i64::MAX),
        usage_sampling_interval: SignedDuration::from_nanos(i64::MAX),
        resource_weights: BTreeMap::new(),
    };
    let mut told = Told::new(objects);
    told.submit(1, "ann", 2, 0);
    told.queues.cycle(at(0));
    told.queues.remove(WorkloadId(1));
    told.queues.cycle(at(0) + SignedDuration::from_nanos(9));
    assert_eq!(told.usage("ann"), Some(1.0));
}

#[test]
fn those_who_are_told_apart_go_by_what_each_had_whatever_their_local_queue() {
    let mut objects = objects(2);
    objects.local_queues.get_mut("bob").expect("it is there").weight = Weight(2.0);
    let mut told = Told::new(objects);
    told.submit_of(1, ("ann", Some("x")), 1, 0);
    told.submit_of(2, ("bob", Some("x")), 1, 0);
    assert_eq!(told.cycles(), [1, 2]);
    told.submit_of(3, ("ann", Some("x")), 1, 9);
    told.submit_of(4, ("bob", Some("x")), 1, 0);
    told.submit_of(5, ("ann", Some("y")), 1, 0);
    told.submit(6, "ann", 1, 0);
    told.second = HALF_LIFE;
    told.queues.wake();
    told.cycles();
    // Each has the weight of its LocalQueue, and nobody that of a namesake.
    assert_eq!(told.waiting(), [5, 6, 4, 3]);
    let users = told.usages().expect("usage counts");
    let users: Vec<_> = users
        .iter()
        .map(|of| (of.local_queue.as_str(), of.user.as_deref(), of.usage))
        .collect();
    let expected = [
        ("ann", None, Some(0.0)),
        ("ann", Some("x"), Some(0.5)),
        ("ann", Some("y"), Some(0.0)),
        ("bob", Some("x"), Some(0.25)),
        ("cy", None, Some(0.0)),
    ];
    assert_eq!(users, expected);
}
