//! Requests and outcomes to tell stories with.

use jiff::Timestamp;

use crate::{
    action::{Action, StartAction},
    domain::{
        Actor, Bytes, Cpus, Head, Job, Outcome, Priority, Project, RequestKey, Resources, Retries, RunId,
        RunRequest, Subject, Timeouts, Verdict,
    },
    event::{Event, StopMode},
    policy::Policy,
    scheduler::Scheduler,
};

/// Returns a local user's request for a run of the blueprint `name`: one core, no workload, no limits.
pub fn request(key: &str, name: &str) -> RunRequest {
    let driver = Resources {
        cpu: Cpus::cores(1),
        memory: Bytes(1 << 20),
        ..Resources::default()
    };
    RunRequest {
        key: RequestKey(key.into()),
        subject: Subject {
            project: Project::Local("/checkout".into()),
            change: None,
            head: Head::Commit("a".repeat(40)),
            blueprint: name.parse().expect("a name"),
            profile: None,
        },
        requested_by: Actor::Local("ada".into()),
        queue: "local".parse().expect("a name"),
        priority: Priority(0),
        retries: Retries::default(),
        job: Job {
            checkout: "/checkout".into(),
            driver,
            workload: Resources::default(),
            timeouts: Timeouts::default(),
            work: serde_json::Value::Null,
        },
    }
}

/// Returns an outcome with nothing but a verdict.
pub fn outcome(verdict: Verdict) -> Outcome {
    Outcome {
        verdict,
        usage: None,
        metrics: Default::default(),
    }
}

/// Returns what a driver is given to start the first attempt of the `number`th run, which is this request's.
///
/// It goes the only way there is: through the gate of a scheduler.
pub fn start_action(number: u64, request: RunRequest) -> StartAction {
    let mut scheduler = Scheduler::new(Policy::local(request.job.gang()));
    let now = Timestamp::UNIX_EPOCH;
    for earlier in 1..number {
        let mut filler = request.clone();
        filler.key = RequestKey(format!("filler-{earlier}"));
        scheduler.handle(
            now,
            Event::Requested {
                request: Box::new(filler),
            },
        );
        let cancel = Event::CancelRequested {
            run: RunId(earlier),
            by: request.requested_by.clone(),
            how: StopMode::End,
        };
        scheduler.handle(now, cancel);
        let attempt = RunId(earlier).attempt(1);
        scheduler.handle(
            now,
            Event::Reserved {
                attempt,
                place: String::new(),
            },
        );
        scheduler.handle(now, Event::Released { attempt });
    }
    scheduler.handle(
        now,
        Event::Requested {
            request: Box::new(request),
        },
    );
    let attempt = RunId(number).attempt(1);
    let actions = scheduler.handle(
        now,
        Event::Reserved {
            attempt,
            place: String::new(),
        },
    );
    match actions.into_iter().next() {
        Some(Action::Start(start)) => *start,
        other => panic!("a placed attempt of an approved head is started, not {other:?}"),
    }
}
