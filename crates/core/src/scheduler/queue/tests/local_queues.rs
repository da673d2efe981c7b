//! LocalQueues that are known by other names than before.

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
