//! Pod sets on their way from a request to the reservation: what the default queue refuses, and what applied quota makes of them.

use std::collections::BTreeMap;

use blueproof_core::{
    action::{Action, Reservation, ReservedQuota},
    domain::{Actor, Ending, FailureClass, PodSets, Resources, RunId, RunRequest, RunState},
    event::{Call, Event},
    policy::Policy,
    ports::CallError,
    scheduler::{Scheduler, Step},
    testing::{request, two_cores},
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::{
    PodSet, Quantity,
    objects::{Objects, Quota, Taint, TaintEffect, Toleration},
};
use jiff::Timestamp;

const RUN: RunId = RunId(1);

fn set(name: &str, count: u32, requests: &[(&str, i64)]) -> PodSet {
    let requests = requests
        .iter()
        .map(|(resource, amount)| ((*resource).to_owned(), Quantity(*amount)));
    PodSet {
        name: name.into(),
        count,
        requests: requests.collect(),
        ..PodSet::default()
    }
}

fn driver() -> PodSet {
    set("driver", 1, &[("cpu", 1000), ("memory", 1 << 20)])
}

fn label(set: PodSet, key: &str, value: &str) -> PodSet {
    PodSet {
        node_selector: BTreeMap::from([(key.into(), value.into())]),
        ..set
    }
}

fn asks(sets: Vec<PodSet>) -> RunRequest {
    let mut request = request("a", "nano-lm");
    request.job.pod_sets = PodSets::try_from(sets).expect("a run can have them");
    request.retries.infrastructure = 2;
    request
}

fn tell(scheduler: &mut Scheduler, event: Event) -> Step {
    let step = scheduler.handle(Timestamp::UNIX_EPOCH, event);
    scheduler.check();
    step
}

fn ask(scheduler: &mut Scheduler, sets: Vec<PodSet>) -> Step {
    let request = Box::new(asks(sets));
    tell(scheduler, Event::Requested { request })
}

/// The default queue with GPUs of AMD's, and a flavor with a label and a taint.
fn with_amd() -> Objects {
    let mut objects = Policy::local(two_cores()).default_objects();
    let queue = objects.cluster_queues.get_mut("local").expect("the default one");
    let gpus = Quota {
        nominal: Quantity(8),
        ..Quota::default()
    };
    queue.resource_groups[0].flavors[0]
        .resources
        .insert("amd.com/gpu".into(), gpus);
    let flavor = objects.flavors.get_mut("local").expect("the default one");
    flavor.node_labels.insert("gpu".into(), "mi300x".into());
    flavor.node_taints.push(Taint {
        key: "amd.com/gpu".into(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    });
    objects
}

fn tolerating(set: PodSet) -> PodSet {
    let toleration = Toleration {
        key: Some("amd.com/gpu".into()),
        ..Toleration::default()
    };
    PodSet {
        tolerations: vec![toleration],
        ..set
    }
}

fn with_applied_quota() -> Scheduler {
    let mut scheduler = Scheduler::new(Policy::local(two_cores()));
    let (objects, by) = (Box::new(with_amd()), Actor::Local("admin".into()));
    tell(&mut scheduler, Event::QuotaApplied { objects, by });
    scheduler
}

fn reserved(step: &Step) -> Reservation {
    match &step.actions[..] {
        [Action::Reserve(reservation)] => (**reservation).clone(),
        other => panic!("it is admitted: {other:?}"),
    }
}

#[test]
fn what_the_default_queue_does_not_have_is_refused_by_its_name() {
    let rows = [
        (
            vec![set("driver", 1, &[("cpu", 1000), ("amd.com/gpu", 2)])],
            Code::AsksTooMuch,
            "asks for 2 amd.com/gpu, and the queue has a quota of none",
        ),
        (
            vec![driver(), set("trainer", 2, &[("ephemeral-storage", 1 << 30)])],
            Code::AsksTooMuch,
            "asks for 2Gi ephemeral-storage, and the queue has a quota of none",
        ),
        (
            vec![driver(), label(set("trainer", 1, &[]), "gpu", "a10")],
            Code::NodeLabelMissing,
            "the pod set trainer asks for nodes with the label gpu=a10, and there are none here",
        ),
        (
            vec![driver(), set("trainer", 2, &[("cpu", 1000)])],
            Code::AsksTooMuch,
            "asks for 3 cpu, 1Mi memory, more than the queue's whole quota of 2 cpu, 1Gi memory",
        ),
    ];
    for (sets, code, message) in rows {
        let mut scheduler = Scheduler::new(Policy::local(two_cores()));
        ask(&mut scheduler, sets);
        let view = scheduler.view(RUN).expect("it is known");
        assert_eq!(view.state, RunState::Ended(Ending::Refused), "{message}");
        let failure = view.failure.expect("it says why");
        assert_eq!(
            (failure.diagnostic.code, failure.diagnostic.message.as_str()),
            (code, message)
        );
    }
}

#[test]
fn a_reservation_has_the_pod_sets_their_assignment_and_its_flavors() {
    let mut scheduler = with_applied_quota();
    let gpus = [("memory", 1 << 20), ("amd.com/gpu", 2)];
    let sets = vec![
        tolerating(driver()),
        label(tolerating(set("trainer", 4, &gpus)), "gpu", "mi300x"),
    ];
    let reservation = reserved(&ask(&mut scheduler, sets.clone()));
    assert_eq!(reservation.pod_sets.as_slice(), sets);
    assert_eq!(
        reservation.flavors["local"].node_labels,
        BTreeMap::from([("gpu".into(), "mi300x".into())])
    );
    let ReservedQuota::Assigned(assignment) = reservation.quota else {
        panic!("these rules decide");
    };
    let trainer = &assignment.pod_sets[1];
    assert_eq!((trainer.name.as_str(), trainer.count), ("trainer", 4));
    assert_eq!(trainer.flavors["amd.com/gpu"], "local");
    assert_eq!(trainer.resource_usage["amd.com/gpu"], Quantity(8));
    let view = scheduler.view(RUN).expect("it is known");
    assert_eq!(
        view.asked().to_string(),
        "1 cpu, 5Mi memory, 8 amd.com/gpu",
        "all pods together"
    );
}

#[test]
fn what_applied_quota_has_no_flavor_for_waits_with_kueues_reason() {
    let rows = [
        (
            "a resource that is not covered",
            tolerating(set("driver", 1, &[("cpu", 1000), ("google.com/tpu", 1)])),
        ),
        (
            "a label with another value",
            label(tolerating(driver()), "gpu", "h100"),
        ),
        ("a taint that is not tolerated", driver()),
    ];
    for (what, set) in rows {
        let mut scheduler = with_applied_quota();
        let step = ask(&mut scheduler, vec![set]);
        assert_eq!(step.actions, [], "{what}");
        let why = scheduler.why(RUN).expect("it waits");
        assert_eq!(why.as_str(), "NoMatchingFlavor", "{what}");
    }
}

#[test]
fn a_node_that_is_not_there_is_the_blueprints_mistake_and_not_looked_for_again() {
    let mut scheduler = with_applied_quota();
    let step = ask(&mut scheduler, vec![label(tolerating(driver()), "rack", "r1")]);
    let attempt = reserved(&step).attempt;
    let missing = Diagnostic::error(Code::NodeLabelMissing, "there is no such node");
    let error = Box::new(CallError::never(missing));
    let call = Call::Reserve(attempt);
    tell(&mut scheduler, Event::CallFailed { call, error });
    tell(&mut scheduler, Event::Released { attempt });
    let view = scheduler.view(RUN).expect("it is known");
    assert_eq!(view.state, RunState::Ended(Ending::Refused));
    assert_eq!(view.attempts.len(), 1);
    assert_eq!(view.failure.expect("it says why").class, FailureClass::Config);
}

#[test]
fn a_run_of_which_two_pod_sets_have_one_name_is_refused() {
    let mut scheduler = Scheduler::new(Policy::local(two_cores()));
    let trainer = set("trainer", 1, &[]);
    ask(&mut scheduler, vec![driver(), trainer.clone(), trainer]);
    scheduler.check();
    let view = scheduler.view(RunId(1)).expect("it is known");
    assert_eq!(view.state, RunState::Ended(Ending::Refused));
    let failure = view.failure.expect("it says why").diagnostic;
    assert_eq!(failure.message, "asks for two pod sets `trainer`");
}

#[test]
fn a_request_with_pod_sets_is_read_back_as_it_was_written() {
    let sets = vec![
        label(tolerating(driver()), "gpu", "mi300x"),
        set("trainer", 4, &[("amd.com/gpu", 2)]),
    ];
    let request = asks(sets);
    let text = serde_json::to_string(&request).expect("plain data");
    let read: RunRequest = serde_json::from_str(&text).expect("it comes back");
    assert_eq!(read, request);
    assert_eq!(
        read.job.gang(),
        Resources {
            gpu: read.job.gang().gpu,
            ..read.job.driver()
        }
    );
    let negative = text.replace("\"amd.com/gpu\":2", "\"amd.com/gpu\":-2");
    assert_ne!(negative, text);
    assert!(serde_json::from_str::<RunRequest>(&negative).is_err());
}
