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

/// Queues in which two LocalQueues, `a` and `b`, lead to one ClusterQueue with so many cores.
fn two_doors(cores: u32) -> Queue {
    let mut objects = cohort([("a", cores)]);
    let b = objects.local_queues["a"].clone();
    objects.local_queues.insert("b".into(), b);
    let mut queue = Queue::new(Resources::default());
    queue.apply(objects);
    queue
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
