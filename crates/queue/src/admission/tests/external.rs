//! Workloads of queues whose admission is external.

use super::*;
use crate::objects::Admission;

const ID: WorkloadId = WorkloadId(1);

fn admitted_to_by(admission: Admission) -> Objects {
    let mut objects = cohort([("a", 1)]);
    cluster_queue(&mut objects, "a").admission = admission;
    objects
}

/// What the cluster gave: more than the queue has, of a flavor that nobody configured.
fn given() -> Assignment {
    let flavors = BTreeMap::from([("cpu".into(), "elsewhere".into())]);
    Assignment {
        cluster_queue: "a".into(),
        local_queue: "a".into(),
        pod_sets: vec![workload(1, 1, 7).pod_sets[0].assigned(1, flavors)],
    }
}

#[test]
fn nothing_is_decided_about_them_here() {
    let mut queue = AdmissionQueue::new(admitted_to_by(Admission::External));
    submit(&mut queue, "a", 1, 1);
    assert_eq!(queue.decide(at(5)), Decisions::default());
    assert_eq!(queue.status(ID), Some(AdmissionStatus::External));
    assert_eq!(queue.queues().standing(ID), None);
    queue.check();
}

#[test]
fn what_was_decided_elsewhere_is_held_as_it_was_told_and_given_back() {
    let mut queue = AdmissionQueue::new(admitted_to_by(Admission::External));
    submit(&mut queue, "a", 1, 7);
    assert_eq!(
        queue.reserve(at(9), ID, &given()),
        Some(SignedDuration::from_secs(8))
    );
    queue.admit(ID);
    queue.check();
    assert_eq!(queue.status(ID), Some(AdmissionStatus::Admitted));
    let used = queue.queues().usage("a", "elsewhere", "cpu");
    assert_eq!(used.expect("it is held"), Quantity(7));

    assert_eq!(queue.evict(at(10), ID, None), Some(AdmissionStatus::Admitted));
    assert_eq!(queue.decide(at(11)), Decisions::default());
    queue.check();
    assert!(queue.release(ID).is_some());
    queue.check();
}

#[test]
fn they_move_with_the_admission_of_their_queue() {
    let mut queue = AdmissionQueue::new(admitted_to_by(Admission::External));
    submit(&mut queue, "a", 1, 1);
    queue.set_objects(admitted_to_by(Admission::Embedded));
    queue.check();
    assert_eq!(queue.status(ID), Some(AdmissionStatus::Pending));
    queue.set_objects(admitted_to_by(Admission::External));
    queue.check();
    assert_eq!(queue.status(ID), Some(AdmissionStatus::External));

    let mut stopped = admitted_to_by(Admission::External);
    cluster_queue(&mut stopped, "a").stop_policy = StopPolicy::Hold;
    queue.set_objects(stopped);
    queue.check();
    assert_eq!(
        queue.status(ID),
        Some(AdmissionStatus::Pending),
        "a stopped queue asks nobody"
    );
    assert_eq!(admitted(&mut queue), [0; 0]);
}

#[test]
fn a_back_off_ends_and_survives_a_snapshot() {
    let mut queue = AdmissionQueue::new(admitted_to_by(Admission::External));
    submit(&mut queue, "a", 1, 1);
    queue.back_off(ID, at(60));
    queue.check();
    let mut queue = AdmissionQueue::from_snapshot(queue.snapshot()).expect("it is whole");
    queue.check();
    assert_eq!(queue.next_back_off_ends(), Some(at(60)));
    assert_eq!(queue.decide(at(59)).retried, []);
    queue.move_times(SignedDuration::from_secs(10));
    assert_eq!(queue.decide(at(60)).retried, []);
    assert_eq!(queue.decide(at(70)).retried, [ID]);
    queue.check();
}
