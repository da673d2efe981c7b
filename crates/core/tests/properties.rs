//! Whatever comes, in whatever order: the scheduler keeps its rules.

use std::collections::BTreeSet;

use blueproof_core::{
    action::Action,
    approval::{Approval, ApprovalTarget, HoldTarget, RevocationTarget},
    domain::{
        Actor, AttemptId, Cpus, Head, PullRequest, Repository, RequestKey, Resources, RunId, RunRequest,
        RunState, Subject, Verdict,
    },
    event::{Call, Event, StopMode},
    fact::{Decision, Fact},
    metrics::{self, Family, Page, Value},
    policy::{GatePolicy, LocalApproval, Policy},
    ports::{CallError, Retry},
    scheduler::{Replay, Scheduler, Snapshot, Step},
    testing::{finished, request},
    view::RunView,
};
use blueproof_queue::{
    StopPolicy,
    objects::{
        AdmissionFairSharing, AdmissionMode, LocalQueueUsers, Objects, QueueingStrategy, WithinClusterQueue,
    },
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

fn maintainer() -> Actor {
    Actor::GitHub {
        id: 1,
        login: "ada".into(),
    }
}

fn policy(cores: u32, local: LocalApproval) -> Policy {
    let quota = Resources {
        cpu: Cpus::cores(cores),
        memory: "8Gi".parse().expect("an amount"),
        ..Resources::default()
    };
    let gate = GatePolicy {
        digest: "p".into(),
        local,
        approvers: [maintainer()].into(),
    };
    Policy {
        gate,
        ..Policy::local(quota)
    }
}

fn head(n: u8) -> Head {
    Head::Commit(format!("{n:040x}"))
}

fn any_request() -> impl Strategy<Value = RunRequest> {
    (0..6u8, 0..3u8, 0..4u32, 0..2u32, proptest::option::of(0..3u64)).prop_map(
        |(key, at, cores, retries, pull_request)| {
            let mut request = request(&format!("k{key}"), "nano-lm");
            request.job.driver.cpu = Cpus::cores(cores);
            request.retries.infrastructure = retries;
            request.job.timeouts.queue = Some(SignedDuration::from_mins(5));
            request.job.timeouts.startup = Some(SignedDuration::from_mins(1));
            request.job.timeouts.run = Some(SignedDuration::from_mins(1));
            request.subject.head = head(at);
            if pull_request.is_some() {
                request.subject.repository = Repository::GitHub(7);
                request.subject.pull_request = pull_request;
                request.requested_by = Actor::GitHub {
                    id: 9,
                    login: "bob".into(),
                };
            }
            request
        },
    )
}

fn any_attempt() -> impl Strategy<Value = AttemptId> {
    (1..7u64, 1..4u32).prop_map(|(run, number)| RunId(run).attempt(number))
}

fn any_verdict() -> impl Strategy<Value = Verdict> {
    let failed = |class, code| {
        let diagnostic = blueproof_diagnostic::Diagnostic::error(code, "it happened");
        Verdict::Failed(Box::new(blueproof_core::domain::Failure {
            class,
            diagnostic,
            cell: None,
        }))
    };
    use blueproof_core::domain::FailureClass;
    use blueproof_diagnostic::Code;
    prop_oneof![
        Just(Verdict::Passed),
        Just(Verdict::Stopped),
        Just(failed(FailureClass::Notebook, Code::CellRaised)),
        Just(failed(FailureClass::Infrastructure, Code::AttemptLost)),
    ]
}

fn any_failed_call() -> impl Strategy<Value = Event> {
    let call = prop_oneof![
        any_attempt().prop_map(Call::Reserve),
        any_attempt().prop_map(Call::Start),
        any_attempt().prop_map(Call::Observe),
        any_attempt().prop_map(Call::Stop),
        any_attempt().prop_map(Call::Release),
        (1..7u64).prop_map(|run| Call::Report(RunId(run))),
    ];
    (
        call,
        prop_oneof![Just(Retry::Later), Just(Retry::WhenFree), Just(Retry::Never)],
    )
        .prop_map(|(call, retry)| {
            let code = blueproof_diagnostic::Code::AttemptLost;
            let diagnostic = blueproof_diagnostic::Diagnostic::error(code, "it happened");
            Event::CallFailed {
                call,
                error: Box::new(CallError {
                    diagnostic: Box::new(diagnostic),
                    retry,
                }),
            }
        })
}

/// Ada is named by the policy; Cleo may be entitled for a time.
fn any_maintainer() -> impl Strategy<Value = Actor> {
    let cleo = Actor::GitHub {
        id: 2,
        login: "cleo".into(),
    };
    prop_oneof![3 => Just(maintainer()), 1 => Just(cleo)]
}

fn any_approval() -> impl Strategy<Value = Approval> {
    let expires_at = proptest::option::weighted(0.3, 0..600i64);
    (any_request(), any::<bool>(), any_maintainer(), expires_at).prop_map(
        |(request, whole, by, expires_at)| {
            let target = if whole {
                ApprovalTarget::whole_head_of(&request.subject)
            } else {
                ApprovalTarget::of(&request.subject)
            };
            let expires_at = expires_at.map(|at| Timestamp::from_second(at).expect("small"));
            Approval {
                expires_at,
                ..Approval::new(target, "p", by)
            }
        },
    )
}

fn any_pull_request() -> impl Strategy<Value = PullRequest> {
    (0..3u64).prop_map(|number| PullRequest {
        repository: Repository::GitHub(7),
        number,
    })
}

fn any_hold_target() -> impl Strategy<Value = HoldTarget> {
    prop_oneof![
        any_pull_request().prop_map(HoldTarget::PullRequest),
        (1..7u64).prop_map(|run| HoldTarget::Run(RunId(run))),
    ]
}

fn any_gate_event() -> impl Strategy<Value = Event> {
    let via = None::<RequestKey>;
    let base = prop_oneof![Just("main"), Just("release")].prop_map(|name| name.parse().expect("a branch"));
    let approvers = proptest::collection::btree_set(any_maintainer(), 0..2);
    let head_of = proptest::option::of((0..3u8).prop_map(head));
    prop_oneof![
        3 => (any_pull_request(), (0..3u8).prop_map(head)).prop_map(|(pull_request, head)| {
            Event::Synchronized { pull_request, head, via: None }
        }),
        1 => (any_pull_request(), base).prop_map(|(pull_request, base)| {
            Event::BaseChanged { pull_request, base, via: None }
        }),
        1 => any_pull_request().prop_map(|pull_request| Event::PullRequestClosed { pull_request, via: None }),
        1 => any_pull_request().prop_map(|pull_request| Event::PullRequestReopened { pull_request, via: None }),
        2 => (any_hold_target(), any_maintainer()).prop_map(|(target, by)| Event::HoldRequested { target, by, via: None }),
        2 => (any_hold_target(), any_maintainer()).prop_map(|(target, by)| Event::ResumeRequested { target, by, via: None }),
        2 => (any_request(), head_of, any_maintainer()).prop_map(move |(request, head, by)| {
            let Subject { repository, pull_request, .. } = request.subject;
            let target = RevocationTarget { repository, pull_request, head };
            Event::RevokeRequested { target, by, via: via.clone() }
        }),
        2 => approvers.prop_map(|approvers| Event::EntitlementChanged {
            repository: Some(Repository::GitHub(7)), approvers, source: "OWNERS".into(), via: None,
        }),
    ]
}

fn any_event() -> impl Strategy<Value = Event> {
    let run = || (1..7u64).prop_map(RunId);
    let local = prop_oneof![Just(LocalApproval::Own), Just(LocalApproval::Required)];
    prop_oneof![
        1 => (1..4u32, local).prop_map(|(cores, local)| Event::Configured { policy: Box::new(policy(cores, local)) }),
        6 => any_request().prop_map(|request| Event::Requested { request: Box::new(request) }),
        4 => any_approval().prop_map(|approval| Event::Approved { approval }),
        5 => any_gate_event(),
        2 => (run(), prop_oneof![Just(StopMode::Interrupt), Just(StopMode::End)])
            .prop_map(|(run, how)| Event::CancelRequested { run, by: maintainer(), how, via: None }),
        2 => (run(), 0..9u8).prop_map(|(run, key)| Event::RetryRequested {
            key: RequestKey(format!("r{key}")), run, by: maintainer(),
        }),
        6 => any_attempt().prop_map(|attempt| Event::Reserved { attempt, place: "here".into() }),
        6 => any_attempt().prop_map(|attempt| Event::Started { attempt }),
        6 => (any_attempt(), any_verdict())
            .prop_map(|(attempt, verdict)| finished(attempt, verdict)),
        6 => any_attempt().prop_map(|attempt| Event::Released { attempt }),
        2 => (run(), 0..4u32).prop_map(|(run, attempts)| Event::Reported { run, attempts }),
        3 => any_failed_call(),
        2 => Just(Event::Tick),
    ]
}

/// Events, each with the seconds since the one before: the clock may also go back.
fn any_story() -> impl Strategy<Value = Vec<(i64, Event)>> {
    proptest::collection::vec(
        (
            prop_oneof![4 => 0..30i64, 1 => 30..400i64, 1 => -20..0i64],
            any_event(),
        ),
        1..60,
    )
}

/// Queues with so many cores, in which runs are ordered by priority or by what their authors had, and may preempt others or be
/// drained. There may be none.
fn any_objects() -> impl Strategy<Value = Objects> {
    let stop = || {
        prop_oneof![
            3 => Just(StopPolicy::None),
            1 => Just(StopPolicy::Hold),
            1 => Just(StopPolicy::HoldAndDrain)
        ]
    };
    (1..4u32, any::<bool>(), any::<bool>(), stop(), stop(), 0..8u8).prop_map(
        |(cores, by_usage, preempts, stop, local_stop, there)| {
            let mut objects = policy(cores, LocalApproval::Own).default_objects();
            let queue = objects.cluster_queues.get_mut("local").expect("the default one");
            queue.stop_policy = stop;
            if by_usage {
                queue.queueing_strategy = QueueingStrategy::BestEffortFIFO;
                queue.admission_mode = AdmissionMode::UsageBasedAdmissionFairSharing;
                objects.admission_fair_sharing = Some(AdmissionFairSharing {
                    usage_half_life_time: SignedDuration::from_secs(100),
                    usage_sampling_interval: SignedDuration::from_secs(7),
                    resource_weights: Default::default(),
                });
            }
            if preempts {
                queue.preemption.within_cluster_queue = WithinClusterQueue::LowerOrNewerEqualPriority;
            }
            let local = objects.local_queues.get_mut("local").expect("the default one");
            local.users = LocalQueueUsers::Author;
            local.stop_policy = local_stop;
            match there {
                0 => objects.cluster_queues.clear(),
                1 => objects.local_queues.clear(),
                _ => {}
            }
            objects
        },
    )
}

/// Inputs of all kinds, with queues that an admin applies.
fn any_story_with_queues() -> impl Strategy<Value = Vec<(i64, Event)>> {
    let applied = any_objects().prop_map(|objects| Event::QuotaApplied {
        objects: Box::new(objects),
        by: maintainer(),
    });
    let passed = prop_oneof![8 => 0..30i64, 2 => 30..400i64, 2 => -20..0i64, 1 => -900..-400i64];
    proptest::collection::vec((passed, prop_oneof![12 => any_event(), 1 => applied]), 1..60)
}

/// Tells a story, and returns all that the scheduler wanted done.
fn tell(scheduler: &mut Scheduler, story: &[(i64, Event)]) -> (Timestamp, Vec<Action>) {
    let (now, _, actions) = log(scheduler, story);
    (now, actions)
}

/// Tells a story, and returns the log of it and all that the scheduler wanted done.
fn log(scheduler: &mut Scheduler, story: &[(i64, Event)]) -> (Timestamp, Log, Vec<Action>) {
    let mut now = Timestamp::UNIX_EPOCH;
    let (mut facts, mut actions) = (Vec::new(), Vec::new());
    for (passed, event) in story {
        now += SignedDuration::from_secs(*passed);
        let step = scheduler.handle(now, event.clone());
        facts.extend(step.facts.into_iter().map(|fact| (step.at, fact)));
        actions.extend(step.actions);
        scheduler.check();
    }
    (now, facts, actions)
}

type Log = Vec<(Timestamp, Fact)>;

/// Returns what a replay came to: the runs, what is to be done, what was counted, and what is decided about further inputs.
fn goes_on(
    replay: Replay,
    mut now: Timestamp,
    more: &[Event],
) -> (Vec<RunView>, Vec<Action>, [Page; 2], Vec<Step>) {
    let mut scheduler = replay.finish();
    scheduler.check();
    assert_eq!(scheduler.decided(), 0, "a replay decides nothing");
    let (runs, outstanding) = (scheduler.runs().collect(), scheduler.outstanding());
    let before = scheduler.metrics();
    let mut steps = Vec::new();
    for input in more {
        now += SignedDuration::from_secs(20);
        steps.push(scheduler.handle(now, input.clone()));
    }
    (runs, outstanding, [before, scheduler.metrics()], steps)
}

/// Returns what a world in which everything succeeds answers to an action.
fn answer(action: Action) -> Option<Event> {
    match action {
        Action::Reserve(reservation) => Some(Event::Reserved {
            attempt: reservation.attempt,
            place: "here".into(),
        }),
        Action::Start(start) => Some(Event::Started {
            attempt: start.attempt,
        }),
        Action::Observe { attempt } => Some(finished(attempt, Verdict::Passed)),
        Action::Stop { .. } => None,
        Action::Release { attempt } => Some(Event::Released { attempt }),
        Action::Report { view, .. } => Some(Event::Reported {
            run: view.id,
            attempts: u32::try_from(view.attempts.len()).expect("few"),
        }),
    }
}

/// Returns what a metric comes to over all its series; of a histogram, how many times there were.
fn total(page: &Page, family: &'static Family) -> f64 {
    let values = page.series_of(family).map(|(_, value)| match value {
        Value::Number(number) => *number,
        Value::Histogram(histogram) => histogram.count() as f64,
    });
    values.sum()
}

proptest! {
    #[test]
    fn the_same_inputs_give_the_same_facts_and_actions(story in any_story()) {
        let mut first = Scheduler::new(policy(3, LocalApproval::Own));
        let mut second = Scheduler::new(policy(3, LocalApproval::Own));
        prop_assert_eq!(log(&mut first, &story), log(&mut second, &story));
        prop_assert!(first.runs().eq(second.runs()));
    }

    #[test]
    fn a_replay_comes_out_the_same_at_every_step_and_decides_nothing(story in any_story()) {
        let configured = Event::Configured { policy: Box::new(policy(3, LocalApproval::Own)) };
        let mut scheduler = Scheduler::new(Policy::local(Resources::default()));
        let mut replay = Replay::new();
        let mut now = Timestamp::UNIX_EPOCH;
        for (passed, input) in std::iter::once((0, configured)).chain(story) {
            now += SignedDuration::from_secs(passed);
            let step = scheduler.handle(now, input);
            for fact in step.facts {
                // As the log has it.
                let text = serde_json::to_string(&fact).expect("plain data");
                replay.apply(step.at, &serde_json::from_str(&text).expect("it comes back"));
            }
            let unlike = scheduler.runs().zip(replay.scheduler().runs()).find(|(live, again)| live != again);
            prop_assert_eq!(unlike, None);
            prop_assert_eq!(scheduler.outstanding(), replay.scheduler().outstanding());
        }
        let again = replay.finish();
        again.check();
        prop_assert_eq!(again.decided(), 0);
        prop_assert_eq!(scheduler.metrics(), again.metrics());
    }

    #[test]
    fn what_is_counted_is_what_is_known_of_attempts(story in any_story()) {
        let mut scheduler = Scheduler::new(policy(3, LocalApproval::Own));
        tell(&mut scheduler, &story);
        let page = scheduler.metrics();
        let attempts: Vec<_> = scheduler.runs().flat_map(|run| run.attempts).collect();
        let started = attempts.iter().filter(|attempt| attempt.started_at.is_some());
        let judged = started.clone().filter(|attempt| {
            attempt.outcome.as_ref().is_some_and(|outcome| outcome.verdict != Verdict::Stopped)
        });
        let waiting = scheduler.runs().filter(|run| scheduler.why(run.id).is_some()).count();
        for (family, expected) in [
            (&metrics::ADMITTED_WORKLOADS, attempts.len()),
            (&metrics::ADMISSION_WAIT_TIME, attempts.len()),
            (&metrics::LOCAL_QUEUE_ADMITTED_WORKLOADS, attempts.len()),
            (&metrics::READY_WAIT_TIME, started.count()),
            (&metrics::RUN_SECONDS, judged.count()),
        ] {
            prop_assert_eq!(total(&page, family), expected as f64, "{}", family.name);
        }
        // Who waits to be tried again, or for the last attempt to be gone, is in no stage.
        prop_assert!(total(&page, &metrics::QUEUE_DEPTH) <= waiting as f64);
        prop_assert!(total(&page, &metrics::ADMITTED_WORKLOADS) <= total(&page, &metrics::QUOTA_RESERVED_WORKLOADS));
        prop_assert!(total(&page, &metrics::PREEMPTION_REVERSALS) <= total(&page, &metrics::PREEMPTED_WORKLOADS));
        prop_assert!(total(&page, &metrics::FINISHED_WORKLOADS) <= attempts.len() as f64);
        let (reserving, admitted) = (&metrics::RESERVING_ACTIVE_WORKLOADS, &metrics::ADMITTED_ACTIVE_WORKLOADS);
        prop_assert!(total(&page, admitted) <= total(&page, reserving));
    }

    #[test]
    fn hearing_everything_twice_starts_nothing_twice(story in any_story()) {
        let starts = |actions: &[Action]| {
            let start = |action: &Action| match action {
                Action::Start(start) => Some(start.attempt),
                Action::Reserve(_) | Action::Observe { .. } | Action::Stop { .. } => None,
                Action::Release { .. } | Action::Report { .. } => None,
            };
            let mut started: Vec<_> = actions.iter().filter_map(start).collect();
            let all = started.len();
            started.sort();
            started.dedup();
            (all, started.len())
        };
        // A failed call is made again on purpose, so here none fails.
        let doubled: Vec<_> = story
            .into_iter()
            .filter(|(_, event)| !matches!(event, Event::CallFailed { .. }))
            .flat_map(|(passed, event)| [(passed, event.clone()), (0, event)])
            .collect();
        let mut scheduler = Scheduler::new(policy(3, LocalApproval::Own));
        let (_, actions) = tell(&mut scheduler, &doubled);
        let (all, distinct) = starts(&actions);
        prop_assert_eq!(all, distinct);
    }

    #[test]
    fn in_a_world_that_answers_everything_comes_to_an_end(story in any_story()) {
        let mut scheduler = Scheduler::new(policy(3, LocalApproval::Own));
        let (mut now, _) = tell(&mut scheduler, &story);
        // What a crash cut off is done again, and time goes on, until only approvals are missing.
        for _ in 0..2000 {
            if scheduler.is_idle() {
                break;
            }
            let answers: Vec<_> = scheduler.outstanding().into_iter().filter_map(answer).collect();
            if answers.is_empty() {
                now = now.max(scheduler.next_wakeup().expect("something is still to come"));
                scheduler.handle(now, Event::Tick);
            }
            for event in answers {
                scheduler.handle(now, event);
                scheduler.check();
            }
        }
        // What the quota of today can never hold may wait for a better one.
        let stuck: Vec<_> = scheduler
            .runs()
            .filter(|run| !run.settled && run.state != RunState::AwaitingApproval)
            .map(|run| (run.id, run.state))
            .collect();
        prop_assert!(scheduler.is_idle(), "still to come to an end: {:?}", stuck);
    }

    #[test]
    fn nobody_starts_what_nobody_entitled_approved(story in any_story()) {
        let mut approved = Vec::new();
        let mut scheduler = Scheduler::new(policy(3, LocalApproval::Required));
        let mut now = Timestamp::UNIX_EPOCH;
        for (passed, event) in story {
            now += SignedDuration::from_secs(passed);
            if let Event::Configured { .. } = event {
                continue;
            }
            for fact in scheduler.handle(now, event.clone()).facts {
                if let Fact::Decision(Decision::ApprovalAccepted { approval }) = &fact {
                    approved.push(approval.target.clone());
                }
                if let Fact::Decision(Decision::Admitted { attempt, .. }) = fact {
                    let subject = &scheduler.request(attempt.run).expect("it is admitted").subject;
                    prop_assert!(approved.iter().any(|target| target.covers(subject)));
                }
            }
        }
    }

    /// Told by what was decided, and by nothing of the state: which is held, and what was revoked since it was approved.
    #[test]
    fn nothing_is_admitted_that_is_held_closed_or_revoked(story in any_story()) {
        let mut scheduler = Scheduler::new(policy(3, LocalApproval::Required));
        let (mut held, mut closed, mut counting) = (BTreeSet::new(), BTreeSet::new(), Vec::<Approval>::new());
        let mut now = Timestamp::UNIX_EPOCH;
        for (passed, event) in story {
            now += SignedDuration::from_secs(passed);
            for fact in scheduler.handle(now, event).facts {
                match fact {
                    Fact::Decision(Decision::Held { target, .. }) => { held.insert(target); }
                    Fact::Decision(Decision::Resumed { target, .. }) => { held.remove(&target); }
                    Fact::Input(Event::PullRequestClosed { pull_request, .. }) => { closed.insert(pull_request); }
                    Fact::Input(Event::PullRequestReopened { pull_request, .. }) => { closed.remove(&pull_request); }
                    Fact::Decision(Decision::ApprovalAccepted { approval }) => {
                        counting.retain(|known| known.target != approval.target || known.by != approval.by);
                        counting.push(approval);
                    }
                    Fact::Decision(Decision::ApprovalRevoked { approval, .. } | Decision::ApprovalExpired { approval }) => {
                        let before = counting.len();
                        counting.retain(|known| *known != approval);
                        prop_assert_eq!(counting.len() + 1, before, "each counted, and lapses once");
                    }
                    Fact::Decision(Decision::Admitted { attempt, approved_by }) => {
                        let request = scheduler.request(attempt.run).expect("it is admitted");
                        let subject = &request.subject;
                        let pull_request = subject.of_pull_request();
                        prop_assert!(!held.contains(&HoldTarget::Run(attempt.run)));
                        if let Some(pull_request) = pull_request {
                            prop_assert!(!closed.contains(&pull_request));
                            prop_assert!(!held.contains(&HoldTarget::PullRequest(pull_request)));
                        }
                        let own = approved_by == request.requested_by;
                        let counts = |known: &Approval| known.target.covers(subject) && known.by == approved_by;
                        prop_assert!(own || counting.iter().any(counts), "under no approval that counts");
                    }
                    Fact::Input(_) | Fact::Decision(_) => {}
                }
            }
        }
    }
}

proptest! {
    // Each case replays its log as often as it has steps.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_snapshot_of_any_step_and_the_facts_after_it_come_to_what_the_whole_log_comes_to(
        story in any_story_with_queues(),
        more in proptest::collection::vec(any_event(), 1..4),
    ) {
        let configured = Event::Configured { policy: Box::new(policy(3, LocalApproval::Own)) };
        let mut scheduler = Scheduler::new(Policy::local(Resources::default()));
        let mut whole = Replay::new();
        let mut now = Timestamp::UNIX_EPOCH;
        let mut resumed: Vec<Replay> = Vec::new();
        for (passed, input) in std::iter::once((0, configured)).chain(story) {
            now += SignedDuration::from_secs(passed);
            let step = scheduler.handle(now, input);
            for fact in &step.facts {
                let text = serde_json::to_string(fact).expect("plain data");
                let fact = serde_json::from_str(&text).expect("it comes back");
                for replay in resumed.iter_mut().chain([&mut whole]) {
                    replay.apply(step.at, &fact);
                }
            }
            if step.facts.is_empty() {
                continue; // As the engine does: what time it is by then is no part of the log.
            }
            let bytes = scheduler.snapshot().to_bytes();
            let snapshot = Snapshot::from_bytes(&bytes).expect("it comes back");
            let taken_up = Replay::from_snapshot(snapshot).expect("it is whole");
            taken_up.scheduler().check();
            prop_assert_eq!(taken_up.scheduler().snapshot().to_bytes(), bytes);
            prop_assert!(taken_up.scheduler().runs().eq(whole.scheduler().runs()));
            prop_assert_eq!(taken_up.scheduler().outstanding(), whole.scheduler().outstanding());
            resumed.push(taken_up);
        }
        let expected = goes_on(whole, now, &more);
        for (step, replay) in resumed.into_iter().enumerate() {
            let resumed = goes_on(replay, now, &more);
            prop_assert!(resumed == expected, "after step {step}:\n{resumed:#?}\nand not\n{expected:#?}");
        }
    }
}
