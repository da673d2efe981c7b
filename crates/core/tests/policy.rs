//! What another policy does to runs that go on under the one before.

use blueproof_core::{
    approval::{Approval, ApprovalTarget, RevocationTarget},
    domain::{Actor, RunId, Subject},
    event::Event,
    fact::{Decision, Fact, StopReason},
    policy::{LocalApproval, Policy},
    scheduler::Scheduler,
    testing::{request, two_cores},
};
use jiff::Timestamp;

fn maintainer() -> Actor {
    Actor::GitHub {
        id: 1,
        login: "ada".into(),
    }
}

fn configured(local: LocalApproval) -> Event {
    let mut policy = Policy::local(two_cores());
    policy.gate.local = local;
    policy.gate.approvers = [maintainer()].into();
    let policy = Box::new(policy);
    Event::Configured { policy }
}

fn revoked(subject: &Subject) -> Event {
    let target = RevocationTarget {
        repository: subject.repository.clone(),
        pull_request: None,
        head: None,
    };
    Event::RevokeRequested {
        target,
        by: maintainer(),
        via: None,
    }
}

#[test]
fn what_runs_under_a_revoked_approval_ends_when_its_requesters_own_counts_no_more() {
    let request = request("one", "nano-lm");
    let subject = request.subject.clone();
    let approval = Approval::new(ApprovalTarget::of(&subject), "local", maintainer());
    let mut scheduler = Scheduler::new(Policy::local(two_cores()));
    let told = [
        configured(LocalApproval::Required),
        Event::Approved { approval },
        Event::Requested {
            request: Box::new(request),
        },
        configured(LocalApproval::Own),
        revoked(&subject),
        configured(LocalApproval::Required),
    ];
    let mut stops = Vec::new();
    for (step, input) in told.into_iter().enumerate() {
        for fact in scheduler.handle(Timestamp::UNIX_EPOCH, input).facts {
            if let Fact::Decision(Decision::StopRequested { attempt, why, .. }) = fact {
                stops.push((step, attempt, why));
            }
        }
        scheduler.check();
    }
    assert_eq!(stops, [(5, RunId(1).attempt(1), StopReason::ApprovalRevoked)]);
}
