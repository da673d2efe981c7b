//! Who waits when the objects change: they stay, and whatever was found out under the old ones and is no longer so is
//! forgotten.

use super::{
    super::{
        Queues, Workload, WorkloadId, WorkloadStatus,
        objects::{ClusterQueue, Objects, QueueingStrategy, WithinClusterQueue},
    },
    stories::*,
};

/// Returns how many who wait have flavors left to try.
fn searching(queues: &Queues) -> usize {
    let queues = queues.trees.iter().flat_map(|tree| &tree.queues);
    queues.map(|queue| queue.pending.searches().count()).sum()
}

/// Two queues that can only borrow, the second one in these flavors, and one that lends a GPU of the first.
fn borrowers(flavors: [&str; 2], resource: &str) -> Objects {
    let borrows = |flavors: [&str; 2], resource| ClusterQueue {
        cohort: Some("c".into()),
        resource_groups: vec![group(flavors.map(|name| flavor(name, resource, quota(0))).into())],
        ..ClusterQueue::default()
    };
    let lends = ClusterQueue {
        resource_groups: vec![group(vec![flavor("a10", GPU, quota(1))])],
        ..of(Some("c"), quota(0))
    };
    configured([
        ("q1", borrows(["a10", "h200"], GPU)),
        ("q2", borrows(flavors, resource)),
        ("q3", lends),
    ])
}

#[test]
fn a_search_for_flavors_goes_on_only_while_they_are_the_same() {
    for (why, flavors, resource, expected) in [
        ("all is the same", ["a10", "h200"], GPU, 1),
        ("there is another flavor", ["a10", "b200"], GPU, 0),
        ("they are in another order", ["h200", "a10"], GPU, 0),
        ("they are of another resource", ["a10", "h200"], "tpu", 0),
    ] {
        let mut queues = Queues::new(borrowers(["a10", "h200"], GPU));
        for (id, queue) in [(1, "q1"), (2, "q2")] {
            let asks = workload(id, queue, &[(GPU, 1)]);
            queues.submit(&asks).expect("the queue is configured");
        }
        assert_eq!(
            queues.cycle(at(2)).admitted.len(),
            1,
            "both would borrow the same"
        );
        assert_eq!(searching(&queues), 1, "the other one has a flavor left to try");
        let mut objects = borrowers(flavors, resource);
        let queue = objects.cluster_queues.get_mut("q2").expect("it is there");
        // Whatever else is the same, the tree is not.
        queue.weight.0 = 2.0;
        queues.set_objects(objects);
        assert_eq!(searching(&queues), expected, "{why}");
    }
}

#[test]
fn those_who_wait_go_by_the_strategy_that_their_queue_has_now() {
    let strict = ClusterQueue {
        queueing_strategy: QueueingStrategy::StrictFIFO,
        ..of(None, quota(2))
    };
    let asks = [(1, 1), (2, 2), (3, 1)].map(|(id, gpus)| workload(id, "q", &[(GPU, gpus)]));
    let mut queues = story(configured([("q", strict)]), &asks);
    assert_ne!(queues.standing(WorkloadId(3)), Some(WorkloadStatus::Admitted));
    queues.set_objects(configured([("q", of(None, quota(2)))]));
    for _ in 0..3 {
        queues.cycle(at(2000));
    }
    assert_eq!(queues.standing(WorkloadId(3)), Some(WorkloadStatus::Admitted));
}

#[test]
fn who_has_others_evicted_stays_next_by_the_strategy_that_the_queue_had_then() {
    use QueueingStrategy::{BestEffortFIFO, StrictFIFO};
    let preempting = |strategy, gpus| {
        let mut queue = of(None, quota(gpus));
        queue.queueing_strategy = strategy;
        queue.preemption.within_cluster_queue = WithinClusterQueue::LowerPriority;
        configured([("q", queue)])
    };
    let preemptor = Workload {
        priority: 5,
        ..workload(2, "q", &[(GPU, 4)])
    };
    let asks = [workload(1, "q", &[(GPU, 4)]), preemptor, urgent(3, "q", 5)];
    for (then, now, admitted, waiting) in [
        (BestEffortFIFO, StrictFIFO, 2, 3),
        (StrictFIFO, BestEffortFIFO, 3, 2),
    ] {
        let mut queues = story(preempting(then, 4), &asks);
        queues.set_objects(preempting(now, 9));
        for _ in 0..3 {
            queues.cycle(at(2000));
        }
        assert_eq!(
            queues.standing(WorkloadId(admitted)),
            Some(WorkloadStatus::Admitted)
        );
        assert_ne!(
            queues.standing(WorkloadId(waiting)),
            Some(WorkloadStatus::Admitted)
        );
    }
}
