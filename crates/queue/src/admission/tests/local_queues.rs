//! LocalQueues that are stopped or drained, or are known by other names than before.

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

/// Applies the same queues with another stop policy for a LocalQueue.
fn stop(queue: &mut AdmissionQueue, name: &str, stop_policy: StopPolicy) {
    let mut objects = queue.objects().clone();
    local_queue(&mut objects, name).stop_policy = stop_policy;
    queue.set_objects(objects);
}

/// Queues in which two LocalQueues, `a` and `b`, lead to one ClusterQueue with so many cores.
fn two_doors(cores: i64) -> AdmissionQueue {
    let mut objects = cohort([("a", cores)]);
    let b = objects.local_queues["a"].clone();
    objects.local_queues.insert("b".into(), b);
    AdmissionQueue::new(objects)
}

#[test]
fn pending_workloads_go_on_when_their_local_queue_is_known_by_its_namespace_too() {
    let mut queue = AdmissionQueue::new(reds(&["x"]));
    for id in 1..=2 {
        submit(&mut queue, "red", id, 1);
    }
    assert_eq!(admitted(&mut queue), [1]);
    queue.set_objects(reds(&["x", "y"]));
    let second = queue.get(WorkloadId(2)).expect("it is there");
    assert_eq!(second.status(), AdmissionStatus::Pending);
    assert_eq!(second.workload().local_queue, "x.red");
    queue.release(WorkloadId(1));
    assert_eq!(admitted(&mut queue), [2]);
}

#[test]
fn a_drained_local_queue_evicts_what_came_through_it_and_nothing_else() {
    let mut queue = two_doors(3);
    for (id, through) in [(1, "a"), (2, "b"), (3, "a")] {
        submit(&mut queue, through, id, 1);
    }
    assert_eq!(admitted(&mut queue), [1, 2, 3]);
    stop(&mut queue, "a", StopPolicy::HoldAndDrain);
    let stopped = EvictionReason::LocalQueueStopped;
    assert_eq!(evictions(&mut queue), [(1, stopped), (3, stopped)]);
    let objects = queue.objects().clone();
    queue.set_objects(objects);
    assert_eq!(evictions(&mut queue), [], "none is evicted twice");
}

#[test]
fn a_held_local_queue_evicts_nothing() {
    let mut queue = two_doors(1);
    submit(&mut queue, "a", 1, 1);
    assert_eq!(admitted(&mut queue), [1]);
    stop(&mut queue, "a", StopPolicy::Hold);
    assert_eq!(evictions(&mut queue), []);
}

#[test]
fn of_two_drained_queues_the_local_one_is_named_as_the_reason() {
    let mut queue = two_doors(2);
    submit(&mut queue, "a", 1, 1);
    submit(&mut queue, "b", 2, 1);
    assert_eq!(admitted(&mut queue), [1, 2]);
    let mut objects = queue.objects().clone();
    let drain = StopPolicy::HoldAndDrain;
    cluster_queue(&mut objects, "a").stop_policy = drain;
    local_queue(&mut objects, "a").stop_policy = drain;
    queue.set_objects(objects);
    assert_eq!(
        evictions(&mut queue),
        [
            (1, EvictionReason::LocalQueueStopped),
            (2, EvictionReason::ClusterQueueStopped)
        ]
    );
}

#[test]
fn a_drained_local_queue_is_known_by_its_new_name_too() {
    let mut queue = AdmissionQueue::new(reds(&["x"]));
    submit(&mut queue, "red", 1, 1);
    assert_eq!(admitted(&mut queue), [1]);
    let mut objects = reds(&["x", "y"]);
    local_queue(&mut objects, "x.red").stop_policy = StopPolicy::HoldAndDrain;
    queue.set_objects(objects);
    assert_eq!(evictions(&mut queue), [(1, EvictionReason::LocalQueueStopped)]);
}

#[test]
fn a_pending_workload_is_inactive_while_its_local_queue_is_stopped_and_then_back_in_its_place() {
    for stop_policy in [StopPolicy::Hold, StopPolicy::HoldAndDrain] {
        let mut queue = two_doors(1);
        submit(&mut queue, "b", 9, 1);
        assert_eq!(admitted(&mut queue), [9]);
        for (id, through) in [(1, "a"), (2, "b"), (3, "b")] {
            submit(&mut queue, through, id, 1);
        }
        assert_eq!(admitted(&mut queue), [0; 0]);
        stop(&mut queue, "a", stop_policy);
        assert_eq!(queue.status(WorkloadId(1)), Some(AdmissionStatus::Inactive));
        queue.release(WorkloadId(9));
        assert_eq!(admitted(&mut queue), [2], "nothing waits behind it");
        stop(&mut queue, "a", StopPolicy::None);
        queue.release(WorkloadId(2));
        assert_eq!(admitted(&mut queue), [1], "it is as old as it was");
    }
}

#[test]
fn a_workload_that_is_evicted_before_its_admission_is_inactive_where_its_queue_takes_it_no_more() {
    let mut queue = crowded();
    stop(&mut queue, "c", StopPolicy::HoldAndDrain);
    assert_eq!(evictions(&mut queue), [], "nothing of it runs");
    assert_eq!(queue.status(WorkloadId(4)), Some(AdmissionStatus::Inactive));
    queue.release(WorkloadId(1));
    assert_eq!(admitted(&mut queue), [2]);
    stop(&mut queue, "c", StopPolicy::None);
    assert_eq!(admitted(&mut queue), [4]);
}
