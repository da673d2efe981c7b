//! Content of strangers runs on no cluster that does not keep it apart.

use blueproof_core::{
    action::Action,
    approval::{Approval, ApprovalTarget},
    domain::{Actor, ClusterName, Inventory, Isolation, Placement, Repository, RunId, RunRequest, RunState},
    event::Event,
    pending::PendingReason,
    policy::Policy,
    scheduler::Scheduler,
    testing::{request, two_cores},
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;

const RUN: RunId = RunId(1);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("small")
}

fn maintainer() -> Actor {
    Actor::Local("grace".into())
}

fn scheduler() -> Scheduler {
    let mut policy = Policy::local(two_cores());
    policy.gate.approvers.insert(maintainer());
    Scheduler::new(policy)
}

fn of_pull_request() -> RunRequest {
    let mut asked = request("one", "nano-lm");
    asked.subject.repository = Repository::GitHub(7);
    asked.subject.pull_request = Some(12);
    asked
}

fn says(isolation: Isolation) -> Event {
    Event::InventoryChanged {
        cluster: ClusterName::default(),
        inventory: Box::new(Inventory {
            isolation,
            ..Inventory::of_one_node("local", two_cores(), "this machine")
        }),
    }
}

fn missing() -> Isolation {
    let diagnostic = Diagnostic::error(Code::SandboxUnavailable, "it cannot");
    Isolation::Missing {
        diagnostic: Box::new(
            diagnostic
                .because("there is no program `bwrap`")
                .hint("install bubblewrap"),
        ),
    }
}

/// Asks for a run of a pull request on a cluster that says this of itself, if anything, and approves it.
fn approved(isolation: Option<Isolation>) -> Scheduler {
    let mut scheduler = scheduler();
    if let Some(isolation) = isolation {
        scheduler.handle(at(0), says(isolation));
    }
    let asked = of_pull_request();
    let approval = Approval::new(ApprovalTarget::of(&asked.subject), "local", maintainer());
    scheduler.handle(
        at(1),
        Event::Requested {
            request: Box::new(asked),
        },
    );
    scheduler.handle(at(2), Event::Approved { approval });
    scheduler.check();
    scheduler
}

fn state(scheduler: &Scheduler) -> RunState {
    scheduler.view(RUN).expect("it was asked for").state
}

#[test]
fn a_cluster_that_does_not_isolate_gets_no_head_of_a_stranger_and_the_reason_says_what_to_do() {
    for isolation in [Some(missing()), Some(Isolation::Unknown), None] {
        let scheduler = approved(isolation.clone());
        assert_eq!(state(&scheduler), RunState::AwaitingApproval, "{isolation:?}");
        assert_eq!(scheduler.outstanding(), []);
        let why = scheduler.why(RUN).expect("it waits");
        assert_eq!(why.as_str(), "WaitingForIsolation", "{isolation:?}");
    }
    let why = approved(Some(missing())).why(RUN).expect("it waits");
    let told = why.to_string();
    assert!(
        told.contains("there is no program `bwrap`") && told.contains("install bubblewrap"),
        "{told}"
    );
}

#[test]
fn one_that_isolates_or_is_disposable_gets_it() {
    for isolation in [Isolation::Sandboxed, Isolation::Disposable] {
        let scheduler = approved(Some(isolation.clone()));
        assert_eq!(state(&scheduler), RunState::Reserved, "{isolation:?}");
        assert!(matches!(scheduler.outstanding()[..], [Action::Reserve(_)]));
    }
}

#[test]
fn what_waits_for_isolation_starts_when_its_cluster_has_it() {
    let mut scheduler = approved(Some(missing()));
    scheduler.handle(at(3), says(Isolation::Sandboxed));
    assert_eq!(state(&scheduler), RunState::Reserved);
    scheduler.check();
}

#[test]
fn a_place_on_a_cluster_that_isolates_no_more_is_given_back_before_anything_starts() {
    let mut scheduler = approved(Some(Isolation::Sandboxed));
    scheduler.handle(at(3), says(missing()));
    let place = Placement::on("local");
    scheduler.handle(
        at(4),
        Event::Reserved {
            attempt: RUN.attempt(1),
            place,
        },
    );
    assert!(!matches!(scheduler.outstanding()[..], [Action::Start(_)]));
    assert!(matches!(
        scheduler.why(RUN),
        Some(PendingReason::WaitingForRelease | PendingReason::WaitingForIsolation(_))
    ));
    scheduler.check();
}

#[test]
fn ones_own_folder_runs_anywhere_and_nobody_is_told_of_isolation_before_approval() {
    let mut scheduler = scheduler();
    scheduler.handle(at(0), says(missing()));
    let own = Box::new(request("own", "nano-lm"));
    scheduler.handle(at(1), Event::Requested { request: own });
    assert_eq!(state(&scheduler), RunState::Reserved);
    let stranger = Box::new(of_pull_request());
    scheduler.handle(at(2), Event::Requested { request: stranger });
    let why = scheduler.why(RunId(2)).expect("it waits");
    assert!(matches!(why, PendingReason::AwaitingApproval { .. }), "{why:?}");
}
