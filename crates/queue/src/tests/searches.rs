//! Searches for flavors that go on from one cycle to the next, and begin anew when too much has happened meanwhile.

use super::{
    super::{
        Queues, Workload, WorkloadId, WorkloadStatus,
        objects::{ClusterQueue, Objects, Preemption, ReclaimWithinCohort},
    },
    stories::*,
};

/// What somebody else in the searcher's queue gets meanwhile, if anything.
const CPU: &str = "cpu";

/// Two queues that can only borrow what a third one lends: a GPU of the first of two flavors, and a processor, which it takes
/// back when it needs it.
fn borrowers() -> Objects {
    let processors = |number| group(vec![flavor("any", CPU, quota(number))]);
    let borrows = || ClusterQueue {
        cohort: Some("c".into()),
        resource_groups: vec![
            group(["a10", "h200"].map(|name| flavor(name, GPU, quota(0))).into()),
            processors(0),
        ],
        ..ClusterQueue::default()
    };
    let lends = ClusterQueue {
        resource_groups: vec![group(vec![flavor("a10", GPU, quota(1))]), processors(1)],
        preemption: Preemption {
            reclaim_within_cohort: ReclaimWithinCohort::Any,
            ..Preemption::default()
        },
        ..of(Some("c"), quota(0))
    };
    configured([("q1", borrows()), ("q2", borrows()), ("q3", lends)])
}

/// After so many cycles the first workload got the GPU that both would have borrowed, and the second one, which searches
/// on, could not.
fn searching(after: u64) -> Queues {
    searching_in(Queues::new(borrowers()), after)
}

fn searching_in(mut queues: Queues, after: u64) -> Queues {
    for _ in 0..after {
        // A cycle in which nobody is there is one, too, in a tree in which something changed.
        queues
            .submit(&workload(9, "q3", &[(GPU, 9)]))
            .expect("configured");
        queues.cycle(at(1));
        queues.remove(WorkloadId(9));
    }
    for (id, queue) in [(1, "q1"), (2, "q2")] {
        queues
            .submit(&workload(id, queue, &[(GPU, 1)]))
            .expect("configured");
    }
    assert_eq!(queues.cycle(at(2)).admitted.len(), 1);
    queues
}

/// Returns whether the second one has the GPU once the first one is gone, after one more cycle.
fn finds(mut queues: Queues) -> bool {
    queues.remove(WorkloadId(1));
    queues.cycle(at(4));
    queues.standing(WorkloadId(2)) == Some(WorkloadStatus::Admitted)
}

#[test]
fn a_search_goes_on_in_the_next_cycle_where_it_was() {
    assert!(
        !finds(searching(0)),
        "the second flavor has nothing, and it is the next one"
    );
}

#[test]
fn a_search_begins_anew_once_somebody_of_its_queue_was_admitted_in_between() {
    for after in [0, 3] {
        let mut queues = searching(after);
        let other = Workload {
            priority: 9,
            ..workload(3, "q2", &[(CPU, 1)])
        };
        queues.submit(&other).expect("configured");
        assert_eq!(
            queues.cycle(at(3)).admitted.len(),
            1,
            "it goes before the one that searches"
        );
        assert!(finds(queues), "after {after} cycles");
    }
}

#[test]
fn a_search_begins_anew_once_somebody_of_its_queue_was_evicted_in_between() {
    for is_evicted in [false, true] {
        let mut queues = Queues::new(borrowers());
        submit(&mut queues, &workload(4, "q2", &[(CPU, 1)]));
        assert_eq!(queues.standing(WorkloadId(4)), Some(WorkloadStatus::Admitted));
        let mut queues = searching_in(queues, 0);
        // It goes before the one that searches, for a cycle in which it gets nothing.
        let hopeless = Workload {
            priority: 9,
            ..workload(3, "q2", &[(CPU, 5)])
        };
        queues.submit(&hopeless).expect("configured");
        if is_evicted {
            let owner = workload(5, "q3", &[(CPU, 1)]);
            queues.submit(&owner).expect("configured");
        }
        assert_eq!(queues.cycle(at(3)).preempted.len(), usize::from(is_evicted));
        queues.remove(hopeless.id);
        assert_eq!(finds(queues), is_evicted);
    }
}

#[test]
fn a_cycle_tells_how_many_it_looked_at() {
    let mut queues = Queues::new(borrowers());
    assert_eq!(queues.cycle(at(1)).tried, 0);
    for (id, queue) in [(1, "q1"), (2, "q1"), (3, "q2")] {
        queues
            .submit(&workload(id, queue, &[(GPU, 1)]))
            .expect("configured");
    }
    assert_eq!(queues.cycle(at(2)).tried, 2, "the head of each queue");
}
