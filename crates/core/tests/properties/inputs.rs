//! Inputs of all kinds, at random.

use std::num::NonZeroU32;

use blueproof_core::{
    approval::{Approval, ApprovalTarget, HoldTarget, RevocationTarget, Selection},
    domain::{
        Actor, AttemptId, Cpus, Head, Placement, PullRequest, Repository, RequestKey, Resources, RunId,
        RunRequest, Subject, Verdict,
    },
    event::{Call, Event, StopMode},
    policy::{GatePolicy, LocalApproval, Policy},
    ports::{CallError, Retry},
    testing::{ask_for_commit, ask_for_cpu, finished, request},
};
use blueproof_queue::{
    StopPolicy,
    objects::{
        Admission, AdmissionFairSharing, AdmissionMode, LocalQueueUsers, Objects, QueueingStrategy,
        WithinClusterQueue,
    },
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

pub(super) fn maintainer() -> Actor {
    Actor::GitHub {
        id: 1,
        login: "ada".into(),
    }
}

/// So few settled runs are remembered that some are forgotten in many stories.
pub(super) fn policy(cores: u32, local: LocalApproval) -> Policy {
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
        remembered_runs: NonZeroU32::new(cores).expect("some cores"),
        ..Policy::local(quota)
    }
}

pub(super) fn head(n: u8) -> Head {
    Head::Commit(commit(n))
}

fn commit(n: u8) -> String {
    format!("{n:040x}")
}

pub(super) fn any_request() -> impl Strategy<Value = RunRequest> {
    (0..6u8, 0..3u8, 0..4u32, 0..2u32, proptest::option::of(0..3u64)).prop_map(
        |(key, at, cores, retries, pull_request)| {
            let mut request = request(&format!("k{key}"), "nano-lm");
            ask_for_cpu(&mut request, Cpus::cores(cores));
            request.retries.infrastructure = retries;
            request.job.timeouts.queue = Some(SignedDuration::from_mins(5));
            request.job.timeouts.startup = Some(SignedDuration::from_mins(1));
            request.job.timeouts.run = Some(SignedDuration::from_mins(1));
            ask_for_commit(&mut request, commit(at));
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

pub(super) fn any_attempt() -> impl Strategy<Value = AttemptId> {
    (1..7u64, 1..4u32).prop_map(|(run, number)| RunId(run).attempt(number))
}

pub(super) fn any_verdict() -> impl Strategy<Value = Verdict> {
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

pub(super) fn any_failed_call() -> impl Strategy<Value = Event> {
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
        prop_oneof![
            Just(Retry::Later),
            Just(Retry::WhenFree),
            Just(Retry::WhenAvailable),
            Just(Retry::Never),
        ],
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
pub(super) fn any_maintainer() -> impl Strategy<Value = Actor> {
    let cleo = Actor::GitHub {
        id: 2,
        login: "cleo".into(),
    };
    prop_oneof![3 => Just(maintainer()), 1 => Just(cleo)]
}

pub(super) fn any_approval() -> impl Strategy<Value = Approval> {
    let expires_at = proptest::option::weighted(0.3, 0..600i64);
    let scope = (any::<bool>(), any::<bool>());
    (any_request(), scope, any_maintainer(), expires_at).prop_map(
        |(request, (whole, this_job), by, expires_at)| {
            let mut target = if whole {
                ApprovalTarget::whole_head_of(&request.subject)
            } else {
                ApprovalTarget::of(&request.subject)
            };
            if this_job {
                target.scope.jobs = Selection::one(request.job.digest());
            }
            let expires_at = expires_at.map(|at| Timestamp::from_second(at).expect("small"));
            Approval {
                expires_at,
                ..Approval::new(target, "p", by)
            }
        },
    )
}

pub(super) fn any_pull_request() -> impl Strategy<Value = PullRequest> {
    (0..3u64).prop_map(|number| PullRequest {
        repository: Repository::GitHub(7),
        number,
    })
}

pub(super) fn any_hold_target() -> impl Strategy<Value = HoldTarget> {
    prop_oneof![
        any_pull_request().prop_map(HoldTarget::PullRequest),
        (1..7u64).prop_map(|run| HoldTarget::Run(RunId(run))),
    ]
}

pub(super) fn any_gate_event() -> impl Strategy<Value = Event> {
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
            policy: None,
            repository: Some(Repository::GitHub(7)), approvers, source: "OWNERS".into(), via: None,
        }),
    ]
}

/// What a cluster that decides itself tells, of attempts that are there or not.
pub(super) fn any_cluster_news() -> impl Strategy<Value = Event> {
    let flavor = prop_oneof![Just("local"), Just("unheard-of"), Just("")];
    let set = prop_oneof![2 => Just("driver"), 1 => Just("workload")];
    let resource = prop_oneof![Just("cpu"), Just("memory"), Just("google.com/tpu")];
    let place = (set, resource, flavor).prop_map(|(set, resource, flavor)| {
        let mut place = Placement::on("there");
        let flavors = place.flavors.entry(set.into()).or_default();
        flavors.insert(resource.into(), flavor.into());
        place
    });
    let word = prop_oneof![Just("InClusterQueue"), Just("PodsReadyTimeout"), Just("no word")];
    let message = || "it says so".to_owned();
    prop_oneof![
        2 => any_attempt().prop_map(move |attempt| Event::Pending {
            attempt, reason: "Pending".into(), message: message(),
        }),
        4 => (any_attempt(), place).prop_map(|(attempt, place)| Event::Reserved { attempt, place }),
        3 => (any_attempt(), word).prop_map(move |(attempt, word)| Event::Evicted {
            attempt, reason: word.into(), message: message(),
        }),
        2 => any_attempt().prop_map(move |attempt| Event::Lost { attempt, message: message() }),
    ]
}

pub(super) fn any_event() -> impl Strategy<Value = Event> {
    let run = || (1..7u64).prop_map(RunId);
    let local = prop_oneof![Just(LocalApproval::Own), Just(LocalApproval::Required)];
    prop_oneof![
        1 => (1..4u32, local).prop_map(|(cores, local)| Event::Configured { policy: Box::new(policy(cores, local)) }),
        6 => any_request().prop_map(|request| Event::Requested { request: Box::new(request) }),
        4 => any_approval().prop_map(|approval| Event::Approved { approval }),
        5 => any_gate_event(),
        2 => (run(), prop_oneof![Just(StopMode::Interrupt), Just(StopMode::Terminate)])
            .prop_map(|(run, how)| Event::CancelRequested { run, by: maintainer(), how, via: None }),
        2 => (run(), 0..9u8).prop_map(|(run, key)| Event::RetryRequested {
            key: RequestKey(format!("r{key}")), run, by: maintainer(),
        }),
        6 => any_attempt().prop_map(|attempt| Event::Reserved { attempt, place: "here".into() }),
        6 => any_attempt().prop_map(|attempt| Event::Started { attempt }),
        6 => (any_attempt(), any_verdict())
            .prop_map(|(attempt, verdict)| finished(attempt, verdict)),
        6 => any_attempt().prop_map(|attempt| Event::Released { attempt }),
        6 => any_cluster_news(),
        2 => (run(), 0..4u32).prop_map(|(run, attempts)| Event::Reported { run, attempts }),
        3 => any_failed_call(),
        2 => Just(Event::Tick),
    ]
}

/// Events, each with the seconds since the one before: the clock may also go back.
pub(super) fn any_story() -> impl Strategy<Value = Vec<(i64, Event)>> {
    proptest::collection::vec(
        (
            prop_oneof![4 => 0..30i64, 1 => 30..400i64, 1 => -20..0i64],
            any_event(),
        ),
        1..60,
    )
}

/// Who decides.
pub(super) fn any_admission() -> impl Strategy<Value = Admission> {
    prop_oneof![Just(Admission::Embedded), Just(Admission::External)]
}

/// The queue of a policy, about which this one decides.
pub(super) fn applied(policy: &Policy, admission: Admission) -> Event {
    let mut objects = policy.default_objects();
    for queue in objects.cluster_queues.values_mut() {
        queue.admission = admission;
    }
    let (objects, by) = (Box::new(objects), maintainer());
    Event::QuotaApplied { objects, by }
}

/// Queues with so many cores, in which runs are ordered by priority or by what their authors had, and may preempt others or be
/// drained. There may be none.
pub(super) fn any_objects() -> impl Strategy<Value = Objects> {
    let stop = || {
        prop_oneof![
            3 => Just(StopPolicy::None),
            1 => Just(StopPolicy::Hold),
            1 => Just(StopPolicy::HoldAndDrain)
        ]
    };
    (
        1..4u32,
        any::<bool>(),
        any::<bool>(),
        stop(),
        stop(),
        0..8u8,
        any_admission(),
    )
        .prop_map(
            |(cores, by_usage, preempts, stop, local_stop, there, admission)| {
                let mut objects = policy(cores, LocalApproval::Own).default_objects();
                let queue = objects.cluster_queues.get_mut("local").expect("the default one");
                queue.stop_policy = stop;
                queue.admission = admission;
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
pub(super) fn any_story_with_queues() -> impl Strategy<Value = Vec<(i64, Event)>> {
    let applied = any_objects().prop_map(|objects| Event::QuotaApplied {
        objects: Box::new(objects),
        by: maintainer(),
    });
    let passed = prop_oneof![8 => 0..30i64, 2 => 30..400i64, 2 => -20..0i64, 1 => -900..-400i64];
    proptest::collection::vec((passed, prop_oneof![12 => any_event(), 1 => applied]), 1..60)
}
