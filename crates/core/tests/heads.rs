//! What is told to those who carry out content beside the queue.

use blueproof_core::{
    approval::{Approval, ApprovalTarget, HeadRefusal, HeadStatus, HoldTarget, RevocationTarget},
    domain::{Actor, Cpus, Head, PullRequest, Repository, Resources, RunRequest},
    event::Event,
    policy::Policy,
    scheduler::Scheduler,
    testing::{isolating, request, two_cores},
};
use jiff::Timestamp;

const REPOSITORY: Repository = Repository::GitHub(7);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("small")
}

fn grace() -> Actor {
    Actor::Local("grace".into())
}

fn head(digit: &str) -> Head {
    Head::Commit(digit.repeat(40))
}

fn pull_request() -> PullRequest {
    PullRequest {
        repository: REPOSITORY,
        number: 12,
    }
}

fn run_of(digit: &str) -> RunRequest {
    let mut asked = request("one", "nano-lm");
    asked.subject.repository = REPOSITORY;
    asked.subject.pull_request = Some(12);
    asked.subject.head = head(digit);
    asked
}

fn approval(digit: &str) -> Approval {
    let target = ApprovalTarget::of(&run_of(digit).subject);
    Approval {
        expires_at: Some(at(1000)),
        ..Approval::new(target, Policy::local(two_cores()).gate.digest, grace())
    }
}

/// Returns a scheduler in which a head is approved.
fn approved() -> Scheduler {
    let mut policy = Policy::local(two_cores());
    policy.gate.approvers.insert(grace());
    let mut scheduler = Scheduler::new(policy);
    let approval = approval("1");
    scheduler.handle(at(1), Event::Approved { approval });
    scheduler
}

fn status(scheduler: &Scheduler, digit: &str, second: i64) -> HeadStatus {
    scheduler.head_status(&REPOSITORY, &head(digit), at(second))
}

fn refused(refusal: HeadRefusal) -> HeadStatus {
    HeadStatus::Refused(refusal)
}

#[test]
fn a_head_that_is_approved_may_start_and_no_other() {
    let scheduler = approved();
    let expected = HeadStatus::Approved {
        pull_request: 12,
        by: grace(),
        expires_at: Some(at(1000)),
    };
    assert_eq!(status(&scheduler, "1", 2), expected);
    assert_eq!(status(&scheduler, "2", 2), refused(HeadRefusal::NotApproved));
    let elsewhere = scheduler.head_status(&Repository::GitHub(8), &head("1"), at(2));
    assert_eq!(elsewhere, refused(HeadRefusal::NotApproved));
}

#[test]
fn an_approval_counts_until_it_expires_even_before_anybody_notices() {
    let scheduler = approved();
    assert!(matches!(
        status(&scheduler, "1", 999),
        HeadStatus::Approved { .. }
    ));
    assert_eq!(status(&scheduler, "1", 1000), refused(HeadRefusal::NotApproved));
}

#[test]
fn whatever_takes_an_approval_back_takes_the_head_back() {
    let revoke = Event::RevokeRequested {
        target: RevocationTarget {
            repository: REPOSITORY,
            pull_request: Some(12),
            head: None,
        },
        by: grace(),
        via: None,
    };
    let hold = Event::HoldRequested {
        target: HoldTarget::PullRequest(pull_request()),
        by: grace(),
        via: None,
    };
    let push = Event::Synchronized {
        pull_request: pull_request(),
        head: head("2"),
        via: None,
    };
    let close = Event::PullRequestClosed {
        pull_request: pull_request(),
        via: None,
    };
    let rebase = Event::BaseChanged {
        pull_request: pull_request(),
        base: "release".parse().expect("a branch"),
        via: None,
    };
    let other_policy = Event::EntitlementChanged {
        repository: Some(REPOSITORY),
        approvers: [grace()].into(),
        source: "OWNERS".into(),
        policy: Some("another".into()),
        via: None,
    };
    for (event, refusal) in [
        (revoke, HeadRefusal::NotApproved),
        (hold, HeadRefusal::Held),
        (push, HeadRefusal::NotApproved),
        (close, HeadRefusal::NotApproved),
        (rebase, HeadRefusal::NotApproved),
        (other_policy, HeadRefusal::NotApproved),
    ] {
        let mut scheduler = approved();
        scheduler.handle(at(2), event.clone());
        assert_eq!(status(&scheduler, "1", 3), refused(refusal), "{event:?}");
    }
}

#[test]
fn nobody_lets_their_own_head_start() {
    let mut policy = Policy::local(two_cores());
    policy.gate.approvers.insert(grace());
    let mut scheduler = Scheduler::new(policy);
    // The approval comes before it is known whose the head is.
    let approval = approval("1");
    scheduler.handle(at(1), Event::Approved { approval });
    let mut asked = run_of("1");
    asked.author = Some(grace());
    let request = Box::new(asked);
    scheduler.handle(at(2), Event::Requested { request });
    assert_eq!(status(&scheduler, "1", 3), refused(HeadRefusal::NotApproved));
}

#[test]
fn what_the_queue_leaves_is_counted_in_whole_workloads() {
    let mut policy = Policy::local(two_cores());
    policy.gate.approvers.insert(grace());
    let mut scheduler = Scheduler::new(policy);
    let queue = "local".parse().expect("a name");
    let one = Resources {
        cpu: Cpus::cores(1),
        ..Resources::default()
    };
    let none = Resources::default();
    scheduler.handle(at(1), isolating());
    scheduler.handle(
        at(1),
        Event::Approved {
            approval: approval("1"),
        },
    );
    assert_eq!(scheduler.room_for(&queue, one, none), Some(2));
    let request = Box::new(run_of("1"));
    scheduler.handle(at(2), Event::Requested { request });
    assert_eq!(
        scheduler.room_for(&queue, one, none),
        Some(1),
        "one core is promised"
    );
    assert_eq!(
        scheduler.room_for(&queue, one, one),
        Some(0),
        "a runner has the other"
    );
    let nowhere = "nowhere".parse().expect("a name");
    assert_eq!(scheduler.room_for(&nowhere, one, none), None);
    let with_gpu = Resources {
        gpu: blueproof_core::domain::Gpus(1),
        ..one
    };
    assert_eq!(scheduler.room_for(&queue, with_gpu, none), Some(0));
}
