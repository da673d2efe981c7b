//! Queues whose admission is external: their cluster decides, and is told of nothing else than what it is asked.

use std::collections::BTreeMap;

use blueproof_core::{
    action::{Action, QuotaRequest, ReservedQuota},
    domain::{
        Actor, AttemptId, Cpus, Ending, EvictionReason, FailureClass, Placement, RequestKey, Resources,
        RunId, RunRequest, RunState, TimeLimit, Verdict, default_objects,
    },
    event::{Call, Event, StopMode},
    fact::{Decision, Fact},
    policy::Policy,
    ports::CallError,
    scheduler::{Replay, Scheduler, Snapshot},
    testing::{ask_for_cpu, finished, request, scenario::describe},
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::{
    Quantity,
    objects::{Admission, Objects, StopPolicy},
};
use jiff::{SignedDuration, Timestamp};

const RUN: RunId = RunId(1);

fn first() -> AttemptId {
    RUN.attempt(1)
}

fn second() -> AttemptId {
    RUN.attempt(2)
}

/// Two cores, which is less than some ask for: what there is its cluster knows.
fn quota() -> Resources {
    Resources {
        cpu: Cpus::cores(2),
        memory: "8Gi".parse().expect("an amount"),
        ..Resources::default()
    }
}

fn objects(admission: Admission) -> Objects {
    let mut objects = default_objects(quota());
    for queue in objects.cluster_queues.values_mut() {
        queue.admission = admission;
    }
    objects
}

/// A scheduler with the log of it, and the time.
struct Story {
    scheduler: Scheduler,
    facts: Vec<(Timestamp, Fact)>,
    second: i64,
}

impl Story {
    fn new() -> Self {
        let mut story = Self {
            scheduler: Scheduler::new(Policy::local(quota())),
            facts: Vec::new(),
            second: 0,
        };
        let policy = Box::new(Policy::local(quota()));
        story.tell(Event::Configured { policy });
        story.apply(objects(Admission::External));
        story
    }

    /// Tells what happens a second later, and returns what is to be done.
    fn tell(&mut self, event: Event) -> String {
        describe(&self.step(event))
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        self.second += 1;
        let at = Timestamp::from_second(self.second).expect("small");
        let step = self.scheduler.handle(at, event);
        self.facts
            .extend(step.facts.into_iter().map(|fact| (step.at, fact)));
        self.scheduler.check();
        self.check_replays();
        step.actions
    }

    /// The log and a snapshot come to the same, and decide nothing.
    fn check_replays(&self) {
        let mut replay = Replay::new();
        for (at, fact) in &self.facts {
            let text = serde_json::to_string(fact).expect("plain data");
            replay.apply(*at, &serde_json::from_str(&text).expect("it comes back"));
        }
        let bytes = self.scheduler.snapshot().to_bytes();
        let snapshot = Snapshot::from_bytes(&bytes).expect("it comes back");
        let resumed = Replay::from_snapshot(snapshot).expect("it is whole");
        for replay in [replay, resumed] {
            let again = replay.finish();
            again.check();
            assert_eq!(again.decided(), 0);
            assert!(self.scheduler.runs().eq(again.runs()));
            assert_eq!(self.scheduler.outstanding(), again.outstanding());
        }
    }

    fn apply(&mut self, objects: Objects) -> String {
        let (objects, by) = (Box::new(objects), Actor::Local("admin".into()));
        self.tell(Event::QuotaApplied { objects, by })
    }

    fn ask(&mut self, change: impl FnOnce(&mut RunRequest)) -> Vec<Action> {
        let mut request = request("ask", "nano-lm");
        change(&mut request);
        let request = Box::new(request);
        self.step(Event::Requested { request })
    }

    /// Asks for a run whose cluster gives it a place, and takes it to where it runs.
    fn run(&mut self, change: impl FnOnce(&mut RunRequest)) {
        self.ask(change);
        assert_eq!(self.placed(first()), "start r-1.1");
        assert_eq!(self.tell(Event::Started { attempt: first() }), "observe r-1.1");
    }

    fn placed(&mut self, attempt: AttemptId) -> String {
        self.tell(Event::Reserved {
            attempt,
            place: place(),
        })
    }

    fn evicted(&mut self, attempt: AttemptId) -> String {
        self.tell(Event::Evicted {
            attempt,
            reason: EvictionReason::from("PodsReadyTimeout"),
            message: "exceeded the PodsReady timeout".into(),
        })
    }

    fn released(&mut self, attempt: AttemptId) -> String {
        self.tell(Event::Released { attempt })
    }

    fn cancel(&mut self) -> String {
        self.tell(Event::CancelRequested {
            run: RUN,
            by: Actor::Local("ada".into()),
            how: StopMode::Terminate,
            via: None,
        })
    }

    fn why(&self) -> String {
        self.scheduler
            .why(RUN)
            .map_or_else(String::new, |why| why.to_string())
    }

    fn state(&self) -> RunState {
        self.scheduler.view(RUN).expect("it is known").state
    }

    fn decisions(&self) -> Vec<&Decision> {
        let decisions = self.facts.iter().filter_map(|(_, fact)| match fact {
            Fact::Decision(decision) => Some(decision),
            Fact::Input(_) => None,
        });
        decisions.collect()
    }
}

/// A place with the flavors of Kueue, of which the queue here knows none.
fn place() -> Placement {
    let of_cpu = BTreeMap::from([("cpu".to_owned(), "spot".to_owned())]);
    Placement {
        flavors: BTreeMap::from([("driver".to_owned(), of_cpu)]),
        ..Placement::on("oke")
    }
}

#[test]
fn a_cluster_is_asked_at_once_and_told_what_the_run_asks_for_and_nothing_of_flavors() {
    let mut story = Story::new();
    let actions = story.ask(|request| ask_for_cpu(request, Cpus::cores(9)));
    let [Action::Reserve(reservation)] = &actions[..] else {
        panic!("{actions:?}");
    };
    let ReservedQuota::Requested(QuotaRequest {
        local_queue,
        cluster_queue,
        ..
    }) = &reservation.quota
    else {
        panic!("{reservation:?}");
    };
    assert_eq!((local_queue.as_str(), cluster_queue.as_str()), ("local", "local"));
    assert_eq!(
        reservation.pod_sets.driver().requests["cpu"],
        Quantity(9000),
        "more than the queue has"
    );
    assert_eq!(story.state(), RunState::Queued);
    assert_eq!(
        story.why(),
        "its cluster decides about the ClusterQueue local, and has not answered yet"
    );
}

#[test]
fn what_a_cluster_says_of_the_wait_is_why_it_waits() {
    let mut story = Story::new();
    story.ask(|_| {});
    story.tell(Event::Pending {
        attempt: first(),
        reason: "Pending".into(),
        message: "couldn't assign flavors to pod set driver: insufficient unused quota".into(),
    });
    assert_eq!(
        story.why(),
        "its cluster decides about the ClusterQueue local: couldn't assign flavors to pod set driver: insufficient \
         unused quota (Pending)"
    );
    assert_eq!(story.scheduler.why(RUN).expect("it waits").as_str(), "Pending");
}

#[test]
fn what_a_cluster_decides_is_the_decision_that_the_embedded_queue_takes() {
    let mut story = Story::new();
    story.run(|_| {});
    let decisions = story.decisions();
    let kinds: Vec<&str> = decisions.iter().map(|decision| decision.kind()).collect();
    assert_eq!(kinds, ["enqueued", "quotaRequested", "quotaReserved", "admitted"]);
    let Decision::QuotaReserved { assignment, .. } = decisions[2] else {
        panic!("{:?}", decisions[2]);
    };
    assert_eq!(assignment.pod_sets[0].flavors["cpu"], "spot");
    assert_eq!(assignment.pod_sets[0].resource_usage["cpu"], Quantity(1000));
    let view = story.scheduler.view(RUN).expect("it is known");
    assert_eq!(view.attempts[0].place, Some(place()));
}

#[test]
fn an_eviction_costs_no_retry_and_blames_nobody() {
    let mut story = Story::new();
    story.run(|request| request.retries.infrastructure = 1);
    assert_eq!(story.evicted(first()), "stop r-1.1 interrupt");
    assert_eq!(story.evicted(first()), "", "it comes twice");
    let view = story.scheduler.view(RUN).expect("it is known");
    let (_, eviction) = view.being_evicted().expect("it is being evicted");
    assert_eq!(
        eviction.to_string(),
        "because exceeded the PodsReady timeout (PodsReadyTimeout)"
    );
    // What took its quota took its node, too.
    story.tell(Event::Lost {
        attempt: first(),
        message: "its node is gone".into(),
    });
    assert_eq!(story.released(first()), "reserve r-1.2");
    assert_eq!(story.state(), RunState::Queued);
    let mut requeued = None;
    for decision in story.decisions() {
        if let Decision::Requeued { retry, .. } = decision {
            requeued = Some(*retry);
        }
    }
    assert_eq!(requeued, Some(None), "no retry was used");
    let view = story.scheduler.view(RUN).expect("it is known");
    assert_eq!(
        view.attempts[0].outcome.as_ref().expect("it is over").verdict,
        Verdict::Stopped
    );
    assert_eq!(view.failure, None);
}

#[test]
fn an_attempt_that_fails_by_itself_while_it_is_evicted_has_failed() {
    let mut story = Story::new();
    story.run(|_| {});
    story.evicted(first());
    let diagnostic = Diagnostic::error(Code::CellRaised, "it raised");
    let failure = blueproof_core::domain::Failure::outside_cells(FailureClass::Notebook, diagnostic);
    story.tell(finished(first(), Verdict::Failed(Box::new(failure))));
    assert_eq!(story.state(), RunState::Ended(Ending::Failed));
}

#[test]
fn an_attempt_that_its_cluster_lost_is_an_infrastructure_failure_and_is_tried_again_once() {
    let mut story = Story::new();
    story.run(|request| request.retries.infrastructure = 1);
    let lost = |attempt| Event::Lost {
        attempt,
        message: "its Workload was deleted".into(),
    };
    assert_eq!(story.tell(lost(first())), "release r-1.1");
    let view = story.scheduler.view(RUN).expect("it is known");
    let Verdict::Failed(failure) = &view.attempts[0].outcome.as_ref().expect("it is over").verdict else {
        panic!("{view:?}");
    };
    assert_eq!(failure.class, FailureClass::Infrastructure);
    assert_eq!(failure.diagnostic.code, Code::AttemptLost);
    story.second -= 1; // No time passes.
    assert_eq!(story.released(first()), "", "it backs off");
    story.second -= 1;
    assert_eq!(story.tell(lost(first())), "", "it comes twice");
    story.second += 3600;
    assert_eq!(story.tell(Event::Tick), "reserve r-1.2");
    story.placed(second());
    story.tell(lost(second()));
    assert_eq!(story.state(), RunState::Ended(Ending::InfrastructureFailed));
}

#[test]
fn a_request_of_a_run_that_is_cancelled_is_released_also_where_it_was_granted_meanwhile() {
    let mut story = Story::new();
    story.ask(|_| {});
    assert_eq!(story.cancel(), "release r-1.1, report r-1 cancelled");
    assert!(!story.scheduler.view(RUN).expect("it is known").settled);
    assert_eq!(story.placed(first()), "", "it is being released");
    story.tell(Event::Reported {
        run: RUN,
        attempts: 0,
    });
    assert_eq!(story.released(first()), "");
    assert!(story.scheduler.view(RUN).expect("it is known").settled);
    assert_eq!(story.placed(first()), "release r-1.1", "news that come late");
    story.released(first());
    assert!(story.scheduler.view(RUN).expect("it is known").settled);
}

#[test]
fn a_run_that_is_tried_again_asks_only_once_its_last_request_is_released() {
    let mut story = Story::new();
    story.ask(|_| {});
    story.cancel();
    let again = Event::RetryRequested {
        key: RequestKey("again".into()),
        run: RUN,
        by: Actor::Local("ada".into()),
    };
    assert_eq!(story.tell(again), "");
    assert_eq!(story.why(), "its last attempt is being cleared away");
    assert_eq!(story.released(first()), "reserve r-1.1");
}

#[test]
fn a_run_waits_for_its_cluster_as_long_as_it_may_for_quota() {
    let mut story = Story::new();
    story.ask(|request| request.job.timeouts.queue = Some(SignedDuration::from_mins(5)));
    story.tell(Event::Pending {
        attempt: first(),
        reason: "Inadmissible".into(),
        message: "ClusterQueue local is inactive".into(),
    });
    story.second += 600;
    assert_eq!(story.tell(Event::Tick), "release r-1.1, report r-1 timed out");
    let failure = story.scheduler.view(RUN).expect("it is known").failure;
    let failure = failure.expect("it timed out");
    assert_eq!(failure.class, FailureClass::Timeout(TimeLimit::Queue));
    let why = failure.diagnostic.causes.join(" ");
    assert!(
        why.contains("ClusterQueue local is inactive (Inadmissible)"),
        "{why}"
    );
}

#[test]
fn a_request_that_its_cluster_loses_or_refuses_is_made_again_and_given_up_in_the_end() {
    let mut story = Story::new();
    story.ask(|_| {});
    let lost = Event::Lost {
        attempt: first(),
        message: "its Workload was deleted".into(),
    };
    story.tell(lost);
    story.second += 3600;
    assert_eq!(story.tell(Event::Tick), "reserve r-1.1");
    assert_eq!(story.released(first()), "reserve r-1.1", "somebody removed it");
    let refused = Event::CallFailed {
        call: Call::Reserve(first()),
        error: Box::new(CallError::never(Diagnostic::error(
            Code::AttemptLost,
            "there is no Kueue here",
        ))),
    };
    assert_eq!(
        story.tell(refused),
        "release r-1.1, report r-1 infrastructure failed"
    );
}

#[test]
fn a_request_follows_its_run_to_another_queue_or_none() {
    let mut story = Story::new();
    story.ask(|_| {});
    assert_eq!(story.apply(objects(Admission::External)), "", "the same queues");
    assert_eq!(
        story.apply(objects(Admission::Embedded)),
        "release r-1.1",
        "the embedded queue has room"
    );
    assert_eq!(story.placed(first()), "", "of the request");
    assert_eq!(story.released(first()), "reserve r-1.1");
    assert_eq!(story.placed(first()), "start r-1.1");

    let mut story = Story::new();
    story.ask(|_| {});
    let mut stopped = objects(Admission::External);
    stopped
        .cluster_queues
        .get_mut("local")
        .expect("it is there")
        .stop_policy = StopPolicy::Hold;
    assert_eq!(story.apply(stopped), "release r-1.1");
    assert_eq!(
        story.apply(objects(Admission::External)),
        "",
        "it is still being released"
    );
    assert_eq!(story.why(), "its last attempt is being cleared away");
    assert_eq!(story.released(first()), "reserve r-1.1");
}

#[test]
fn what_a_cluster_has_that_nobody_asked_for_is_released_and_what_is_unknown_is_left_alone() {
    let mut story = Story::new();
    story.run(|_| {});
    assert_eq!(story.placed(first()), "", "news that come twice");
    assert_eq!(story.placed(RUN.attempt(9)), "", "no attempt of ours");
    assert_eq!(story.placed(RunId(7).attempt(1)), "", "no run of ours");
    assert_eq!(story.evicted(RunId(7).attempt(1)), "");
    assert_eq!(story.placed(second()), "release r-1.2");
    assert_eq!(story.released(second()), "");
    assert_eq!(story.state(), RunState::Running);
}

#[test]
fn flavors_and_pod_sets_that_a_cluster_makes_up_are_bounded_by_what_was_asked_for() {
    let mut story = Story::new();
    story.ask(|_| {});
    let mut lie = place();
    let resources = [("cpu", "x".repeat(300)), ("google.com/tpu", "v5".into())];
    lie.flavors = ["driver", "workload", ""]
        .map(|set| {
            (
                set.to_owned(),
                resources
                    .clone()
                    .map(|(of, flavor)| (of.to_owned(), flavor))
                    .into(),
            )
        })
        .into();
    assert_eq!(
        story.tell(Event::Reserved {
            attempt: first(),
            place: lie
        }),
        "start r-1.1"
    );
    let decisions = story.decisions();
    let Some(Decision::QuotaReserved { assignment, .. }) = decisions.get(2) else {
        panic!("{decisions:?}");
    };
    let [set] = &assignment.pod_sets[..] else {
        panic!("{assignment:?}");
    };
    assert_eq!((set.name.as_str(), &set.flavors), ("driver", &BTreeMap::new()));
}

#[test]
fn many_wait_outside_and_each_asks_once() {
    let mut story = Story::new();
    for number in 1..=4u64 {
        let asked = story.ask(|request| request.key = RequestKey(format!("ask-{number}")));
        assert_eq!(describe(&asked), format!("reserve r-{number}.1"));
    }
    assert_eq!(story.tell(Event::Tick), "");
    assert_eq!(
        story.scheduler.outstanding().len(),
        4,
        "asked again after a restart"
    );
}
