//! LocalQueues that are known by other names than before, or are stopped.

use super::*;

/// Returns queues with the LocalQueue `red` of these namespaces, as they are known: by the namespace too where there are
/// several.
fn reds(namespaces: &[&str]) -> Objects {
    let mut objects = cohort([("a", 1)]);
    let local = objects.local_queues.remove("a").expect("it is there");
    for namespace in namespaces {
        let (name, own_name) = match namespaces {
            [_] => ("red".to_owned(), None),
            _ => (format!("{namespace}.red"), Some("red".to_owned())),
        };
        let local = LocalQueue {
            namespace: Some((*namespace).into()),
            own_name,
            ..local.clone()
        };
        objects.local_queues.insert(name, local);
    }
    objects
}

#[test]
fn those_who_wait_go_on_when_their_local_queue_is_known_by_its_namespace_too() {
    let mut queue = Queue::new(Resources::default());
    queue.apply(reds(&["x"]));
    for run in 1..=2 {
        submit_to(&mut queue, "red", run, 1);
    }
    assert_eq!(admitted(&mut queue), [1]);
    queue.apply(reds(&["x", "y"]));
    assert!(matches!(
        queue.why(RunId(2)),
        Some(PendingReason::WaitingForQuota(_))
    ));
    let account = queue.account(RunId(2)).expect("it is in the queue");
    assert_eq!(account.local_queue, "x.red");
    queue.release(RunId(1).attempt(1));
    assert_eq!(admitted(&mut queue), [2]);

    // Another attempt of a run that asked when the name was enough, and a queue that has its name to itself again.
    submit_to(&mut queue, "red", 1, 1);
    submit_to(&mut queue, "x.red", 3, 1);
    queue.apply(reds(&["x"]));
    assert_eq!(admitted(&mut queue), [0; 0]);
    queue.release(RunId(2).attempt(1));
    assert_eq!(admitted(&mut queue), [1]);
    queue.release(RunId(1).attempt(1));
    assert_eq!(admitted(&mut queue), [3]);
}

#[test]
fn a_name_leads_to_no_local_queue_of_another_namespace_that_it_did_not_lead_to() {
    let mut queue = Queue::new(Resources::default());
    queue.apply(reds(&["x"]));
    submit_to(&mut queue, "red", 1, 1);
    queue.apply(reds(&["y", "z"]));
    assert_eq!(admitted(&mut queue), [0; 0]);
    let Some(PendingReason::Misconfigured(queued)) = queue.why(RunId(1)) else {
        panic!("{:?}", queue.why(RunId(1)));
    };
    let local_queue = "red".into();
    assert_eq!(
        queued.inactive,
        Some(InactiveQueue::LocalQueueNotFound { local_queue })
    );
}

/// Applies the same queues with another stop policy for a LocalQueue.
fn stop(queue: &mut Queue, local_queue: &str, stop_policy: StopPolicy) {
    let mut objects = queue.objects().clone();
    let local = objects.local_queues.get_mut(local_queue);
    local.expect("it is there").stop_policy = stop_policy;
    queue.apply(objects);
}

/// Queues in which two LocalQueues, `a` and `b`, lead to one ClusterQueue with so many cores.
fn two_doors(cores: u32) -> Queue {
    let mut objects = cohort([("a", cores)]);
    let b = objects.local_queues["a"].clone();
    objects.local_queues.insert("b".into(), b);
    let mut queue = Queue::new(Resources::default());
    queue.apply(objects);
    queue
}

fn evictions(queue: &mut Queue) -> Vec<(u64, EvictionReason)> {
    let decisions = queue.decide(at(101));
    queue.check();
    let evicted = decisions.evicted().into_iter();
    evicted
        .map(|evicted| (evicted.attempt.run.0, evicted.reason))
        .collect()
}

fn is_suspended(queue: &mut Queue, run: u64) -> bool {
    matches!(queue.why(RunId(run)), Some(PendingReason::Suspended(_)))
}

#[test]
fn a_local_queue_that_is_drained_evicts_what_came_through_it_and_nothing_else() {
    let mut queue = two_doors(3);
    for (run, through) in [(1, "a"), (2, "b"), (3, "a")] {
        submit_to(&mut queue, through, run, 1);
    }
    assert_eq!(admitted(&mut queue), [1, 2, 3]);
    stop(&mut queue, "a", StopPolicy::HoldAndDrain);
    let stopped = EvictionReason::LocalQueueStopped;
    assert_eq!(evictions(&mut queue), [(1, stopped), (3, stopped)]);
    let objects = queue.objects().clone();
    queue.apply(objects);
    assert_eq!(evictions(&mut queue), [], "none is evicted twice");
}

#[test]
fn that_it_never_fits_is_said_only_where_it_is_known() {
    let fits = |cores, change: fn(&mut Objects)| {
        let mut queue = two_doors(2);
        submit_to(&mut queue, "a", 1, cores);
        let mut objects = queue.objects().clone();
        change(&mut objects);
        queue.apply(objects);
        let why = queue.why(RunId(1)).expect("it waits");
        why.queued().expect("in its queue").1.can_ever_fit
    };
    let stopped = |objects: &mut Objects| {
        let local = objects.local_queues.get_mut("a");
        local.expect("it is there").stop_policy = StopPolicy::Hold;
    };
    assert!(fits(2, stopped));
    assert!(!fits(3, stopped), "its ClusterQueue has two");
    assert!(fits(3, |objects| objects.local_queues.clear()));
    assert!(fits(3, |objects| objects.cluster_queues.clear()));
    assert!(fits(3, |objects| objects.flavors.clear()));
}

#[test]
fn a_local_queue_that_is_held_evicts_nothing() {
    let mut queue = two_doors(1);
    submit_to(&mut queue, "a", 1, 1);
    assert_eq!(admitted(&mut queue), [1]);
    stop(&mut queue, "a", StopPolicy::Hold);
    assert_eq!(evictions(&mut queue), []);
}

#[test]
fn of_two_queues_that_are_drained_the_local_one_is_named_as_the_reason() {
    let mut queue = two_doors(2);
    submit_to(&mut queue, "a", 1, 1);
    submit_to(&mut queue, "b", 2, 1);
    assert_eq!(admitted(&mut queue), [1, 2]);
    let mut objects = queue.objects().clone();
    let drain = StopPolicy::HoldAndDrain;
    objects
        .cluster_queues
        .get_mut("a")
        .expect("it is there")
        .stop_policy = drain;
    objects
        .local_queues
        .get_mut("a")
        .expect("it is there")
        .stop_policy = drain;
    queue.apply(objects);
    assert_eq!(
        evictions(&mut queue),
        [
            (1, EvictionReason::LocalQueueStopped),
            (2, EvictionReason::ClusterQueueStopped)
        ]
    );
}

#[test]
fn a_local_queue_that_is_drained_is_known_by_its_new_name_too() {
    let mut queue = Queue::new(Resources::default());
    queue.apply(reds(&["x"]));
    submit_to(&mut queue, "red", 1, 1);
    assert_eq!(admitted(&mut queue), [1]);
    let mut objects = reds(&["x", "y"]);
    let red = objects.local_queues.get_mut("x.red").expect("it is there");
    red.stop_policy = StopPolicy::HoldAndDrain;
    queue.apply(objects);
    assert_eq!(evictions(&mut queue), [(1, EvictionReason::LocalQueueStopped)]);
}

#[test]
fn one_that_waits_is_out_of_the_queue_while_its_local_queue_is_stopped_and_then_back_in_its_place() {
    for stop_policy in [StopPolicy::Hold, StopPolicy::HoldAndDrain] {
        let mut queue = two_doors(1);
        submit_to(&mut queue, "b", 9, 1);
        assert_eq!(admitted(&mut queue), [9]);
        for (run, through) in [(1, "a"), (2, "b"), (3, "b")] {
            submit_to(&mut queue, through, run, 1);
        }
        assert_eq!(admitted(&mut queue), [0; 0]);
        stop(&mut queue, "a", stop_policy);
        queue.release(RunId(9).attempt(1));
        assert_eq!(admitted(&mut queue), [2], "nobody waits behind one that is held");
        assert!(is_suspended(&mut queue, 1));
        stop(&mut queue, "a", StopPolicy::None);
        queue.release(RunId(2).attempt(1));
        assert_eq!(admitted(&mut queue), [1], "it is as old as it was");
    }
}

#[test]
fn one_that_loses_quota_of_which_it_was_not_told_is_not_in_a_queue_that_takes_it_no_more() {
    let mut queue = crowded();
    stop(&mut queue, "c", StopPolicy::HoldAndDrain);
    assert_eq!(evictions(&mut queue), [], "nothing of it runs");
    assert!(is_suspended(&mut queue, 4));
    queue.release(RunId(1).attempt(1));
    assert_eq!(admitted(&mut queue), [2]);
    stop(&mut queue, "c", StopPolicy::None);
    assert_eq!(admitted(&mut queue), [4]);
}

#[test]
fn whoever_gives_up_waiting_names_the_cause_that_they_were_told_while_they_waited() {
    let told_last = |change: fn(&mut Objects)| {
        let mut queue = two_doors(1);
        let mut objects = queue.objects().clone();
        change(&mut objects);
        queue.apply(objects);
        submit_to(&mut queue, "a", 1, 1);
        assert_eq!(admitted(&mut queue), [0; 0]);
        let obstacle = queue.obstacle(RunId(1)).expect("it waits");
        assert_eq!(obstacle, told(&queue, 1));
        obstacle
    };
    let local =
        told_last(|objects| objects.local_queues.get_mut("a").expect("there").stop_policy = StopPolicy::Hold);
    assert_eq!(local, "its LocalQueue `a` is stopped (stopPolicy Hold)");
    let cluster = told_last(|objects| {
        objects.cluster_queues.get_mut("a").expect("there").stop_policy = StopPolicy::Hold;
    });
    assert_eq!(cluster, "its ClusterQueue `a` is stopped (stopPolicy Hold)");
    let missing = told_last(|objects| drop(objects.local_queues.remove("a")));
    assert_eq!(missing, "there is no LocalQueue `a`");
}
