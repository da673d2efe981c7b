//! Jobs for which Kueue's rules have no end.

use super::*;

/// Three queues of one cohort, each with so many of two flavors, which take back what is theirs from any workload.
fn two_flavors(gpus: i64) -> Objects {
    let mut objects = Objects::default();
    let group = group(gpus).remove(0);
    for name in ["c0", "c1", "c2"] {
        add_queue(&mut objects, name, 0, WithinClusterQueue::LowerPriority);
        let flavors = ["f", "g"].map(|name| FlavorQuotas {
            name: name.into(),
            ..group.flavors[0].clone()
        });
        let queue = objects.cluster_queues.get_mut(name).expect("it was just added");
        queue.resource_groups = vec![ResourceGroup {
            flavors: flavors.into(),
        }];
    }
    objects.flavors = ["f", "g"]
        .map(|name| (name.to_owned(), ResourceFlavor::default()))
        .into();
    objects
}

/// Returns jobs with which these queues go round: the last newcomer of c0 evicts two of its own queue, one of whom takes
/// the place of one of c1, which takes that of the newcomer before it runs.
fn going_round() -> Scenario {
    let jobs = [
        ("j0", "c0", 4, 4, 0, 24),
        ("j3", "c1", 2, 3, 10, 60),
        ("j4", "c1", 4, 7, 10, 60),
        ("j6", "c2", 13, 6, 10, 50),
        ("j11", "c1", 8, 8, 10, 48),
        ("j14", "c0", 13, 2, 100, 51),
        ("j16", "c0", 14, 8, 10, 50),
        ("j17", "c0", 8, 7, 10, 58),
        ("j20", "c2", 11, 1, 10, 47),
        ("j21", "c0", 6, 5, 0, 20),
        ("j22", "c0", 2, 3, 0, 37),
        ("j24", "c0", 3, 5, 10, 36),
    ];
    let jobs = jobs.map(|(name, queue, at, gpus, priority, runs_for)| Job {
        queue: queue.into(),
        priority,
        ..job(name, gpus, at, runs_for)
    });
    Scenario {
        objects: two_flavors(8),
        jobs: jobs.into(),
        ..Scenario::default()
    }
}

#[test]
fn jobs_that_evict_each_other_while_no_time_passes_end_the_simulation_with_their_queues() {
    let history = going_round().play();
    assert!(history.cut_short);
    assert_eq!(history.end, seconds(14));
    assert_eq!(history.by_turns, ["c0", "c1"].map(str::to_owned).into());
}

#[test]
fn jobs_that_evict_each_other_have_an_end_where_that_takes_time() {
    let mut protected = going_round();
    protected.protected_for = Some(seconds(1));
    let mut graceful = going_round();
    for job in &mut graceful.jobs {
        job.executions[0].grace = seconds(5);
    }
    for scenario in [protected, graceful] {
        let history = scenario.play();
        assert!(!history.cut_short);
        assert!(history.by_turns.is_empty());
        assert!(
            history
                .job_records
                .iter()
                .all(|job_record| job_record.done.is_some())
        );
    }
}
