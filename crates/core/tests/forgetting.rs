//! Settled runs are forgotten by the scheduler, and nothing that was counted, learnt or known of a pull request goes with them.

use std::{num::NonZeroU32, sync::Arc};

use blueproof_core::{
    approval::{Approval, ApprovalRefusal, ApprovalTarget},
    domain::{Actor, Ending, Head, Placement, PullRequest, Repository, RequestKey, RunId, RunState, Verdict},
    engine::{Engine, Ports},
    event::Event,
    fact::{Decision, Fact},
    metrics,
    policy::Policy,
    ports::{Clusters, Command, Seq, StoreClient},
    scheduler::{Replay, Scheduler},
    testing::{
        FakeClock, FakeCluster, FakeReporter, MemoryStore, ask_for_commit, finished, isolating, request,
        two_cores,
    },
};
use blueproof_diagnostic::Code;
use jiff::{SignedDuration, Timestamp};

/// Returns a policy by which so many settled runs are remembered.
fn remembering(runs: u32) -> Policy {
    Policy {
        remembered_runs: NonZeroU32::new(runs).expect("some"),
        ..Policy::local(two_cores())
    }
}

fn requested(key: &str) -> Event {
    let request = Box::new(request(key, "nano-lm"));
    Event::Requested { request }
}

/// Returns a time so many seconds after the beginning.
fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// Has a run pass that waits or is about to be placed, and returns all that was decided.
fn pass(scheduler: &mut Scheduler, run: u64, now: Timestamp) -> Vec<Fact> {
    let run = RunId(run);
    let attempt = run.attempt(1);
    let place = Placement::on("local");
    let told = [
        Event::Reserved { attempt, place },
        Event::Started { attempt },
        finished(attempt, Verdict::Passed),
        Event::Released { attempt },
        Event::Reported { run, attempts: 1 },
    ];
    let steps = told.map(|input| scheduler.handle(now, input));
    scheduler.check();
    steps.into_iter().flat_map(|step| step.facts).collect()
}

fn known(scheduler: &Scheduler) -> Vec<u64> {
    scheduler.runs().map(|run| run.id.0).collect()
}

/// Returns which runs were forgotten, fact by fact.
fn forgotten(facts: &[Fact]) -> Vec<&[RunId]> {
    let decided = facts.iter().filter_map(|fact| match fact {
        Fact::Decision(Decision::Forgotten { runs }) => Some(&runs[..]),
        Fact::Input(_) | Fact::Decision(_) => None,
    });
    decided.collect()
}

#[test]
fn of_settled_runs_those_that_ended_last_are_remembered() {
    let mut scheduler = Scheduler::new(remembering(2));
    for key in ["a", "b", "c", "d", "e"] {
        scheduler.handle(at(0), requested(key));
    }
    let mut facts = Vec::new();
    for (run, now) in [(2, 50), (3, 60), (1, 100), (4, 110)] {
        facts.extend(pass(&mut scheduler, run, at(now)));
    }
    facts.extend(scheduler.handle(at(111), Event::Tick).facts);
    assert_eq!(forgotten(&facts), [[RunId(2)], [RunId(3)]]);
    assert_eq!(known(&scheduler), [1, 4, 5]);
    scheduler.check();
}

#[test]
fn many_are_forgotten_by_one_fact() {
    let mut scheduler = Scheduler::new(remembering(16));
    let mut facts = Vec::new();
    for run in 1..=20 {
        facts.extend(scheduler.handle(at(run), requested(&run.to_string())).facts);
        facts.extend(pass(&mut scheduler, run as u64, at(run)));
    }
    assert_eq!(forgotten(&facts), [[1, 2, 3].map(RunId)]);
}

#[test]
fn what_was_counted_and_learnt_outlives_those_of_whom_it_was() {
    let mut forgetful = Scheduler::new(remembering(1));
    let mut other = Scheduler::new(remembering(100));
    for scheduler in [&mut forgetful, &mut other] {
        for run in 1..=5 {
            let begun = at(run as i64 * 1000);
            scheduler.handle(begun, requested(&run.to_string()));
            pass(scheduler, run, begun + SignedDuration::from_secs(60));
        }
        scheduler.handle(at(10_000), requested("next"));
    }
    assert!(known(&forgetful).len() < known(&other).len());
    assert_eq!(forgetful.metrics(), other.metrics());
    assert!(forgetful.metrics().series_of(&metrics::RUN_SECONDS).count() > 0);
    let next = [RunId(6)].into();
    assert_eq!(
        forgetful.estimates(at(10_000), &next),
        other.estimates(at(10_000), &next)
    );
    assert_eq!(forgetful.estimates(at(10_000), &next).len(), 1);
}

#[test]
fn runs_are_counted_on_and_a_forgotten_one_is_not_tried_again() {
    let mut scheduler = Scheduler::new(remembering(1));
    for run in 1..=2 {
        scheduler.handle(at(0), requested(&run.to_string()));
        pass(&mut scheduler, run, at(run as i64));
    }
    let retry = |run| Event::RetryRequested {
        key: RequestKey(format!("again-{run}")),
        run: RunId(run),
        by: Actor::Local("ada".into()),
    };
    let refused = scheduler
        .handle(at(3), retry(1))
        .refusal()
        .expect("it is forgotten");
    assert_eq!(refused.code, Code::RunNotRemembered);
    assert!(refused.message.contains("r-1"), "{}", refused.message);

    // One that is tried again is not settled, and is remembered.
    assert_eq!(scheduler.handle(at(4), retry(2)).refusal(), None);
    scheduler.handle(at(5), requested("3"));
    assert_eq!(known(&scheduler), [2, 3]);
    scheduler.check();
}

/// The head of a pull request's forgotten run was the pull request's: after a push no approval of it counts.
#[test]
fn a_head_of_which_a_run_is_forgotten_is_known_to_be_an_earlier_one_after_a_push() {
    let pull_request = PullRequest {
        repository: Repository::GitHub(7),
        number: 12,
    };
    let asked = |key: &str, digit: &str| {
        let mut request = request(key, "nano-lm");
        request.subject.repository = pull_request.repository.clone();
        request.subject.pull_request = Some(pull_request.number);
        ask_for_commit(&mut request, digit.repeat(40));
        let request = Box::new(request);
        Event::Requested { request }
    };
    let maintainer = Actor::GitHub {
        id: 1,
        login: "ada".into(),
    };
    let mut policy = remembering(1);
    policy.gate.approvers = [maintainer.clone()].into();
    let approved = |digit: &str| {
        let Event::Requested { request } = asked("any", digit) else {
            unreachable!("it asks for a run");
        };
        let target = ApprovalTarget::of(&request.subject);
        Event::Approved {
            approval: Approval::new(target, "local", maintainer.clone()),
        }
    };
    let mut scheduler = Scheduler::new(policy);
    scheduler.handle(at(0), isolating());
    scheduler.handle(at(0), asked("1", "a"));
    scheduler.handle(at(0), approved("a"));
    pass(&mut scheduler, 1, at(1));
    scheduler.handle(at(2), requested("2"));
    pass(&mut scheduler, 2, at(3));
    scheduler.handle(at(4), Event::Tick);
    assert_eq!(known(&scheduler), [2]);

    scheduler.handle(
        at(5),
        Event::Synchronized {
            pull_request: pull_request.clone(),
            head: Head::Commit("b".repeat(40)),
            via: None,
        },
    );
    let step = scheduler.handle(at(6), approved("a"));
    let refusals = step.facts.iter().filter_map(|fact| match fact {
        Fact::Decision(Decision::ApprovalRefused { reason, .. }) => Some(*reason),
        Fact::Input(_) | Fact::Decision(_) => None,
    });
    assert_eq!(refusals.collect::<Vec<_>>(), [ApprovalRefusal::HeadChanged]);
}

/// Runs end, are reported and are forgotten while several inputs are taken in at once: each row tells how its run ended.
#[tokio::test]
async fn the_store_has_every_run_as_it_ended() {
    let store = Arc::new(MemoryStore::default());
    let ports = Ports {
        store: store.clone(),
        clusters: Clusters::one(Arc::new(FakeCluster::passing(two_cores()))),
        reporters: vec![Arc::new(FakeReporter::default())],
        clock: Arc::new(FakeClock::default()),
    };
    let runs = 12;
    for key in 1..=runs {
        let request = Box::new(request(&key.to_string(), "nano-lm"));
        let asked = store.submit(Timestamp::UNIX_EPOCH, Command::Run { request });
        asked.await.expect("a store that works");
    }
    let mut engine = Engine::open(ports, remembering(1))
        .await
        .expect("a store that works");
    let worked = engine.run_until(|scheduler| scheduler.is_idle()).await;
    worked.expect("a store that works");

    let rows = store.runs(100).await.expect("a store that works");
    assert_eq!(rows.len(), runs);
    for row in &rows {
        assert!(
            row.settled && row.state == RunState::Ended(Ending::Passed),
            "{row:?}"
        );
    }
    assert!(engine.scheduler().runs().len() <= 2);

    let mut replay = Replay::new();
    for logged in store.facts(Seq(0), 10_000).await.expect("a store that works") {
        replay.apply(logged.at, &logged.fact);
    }
    let mut again = replay.take_changed().forgotten;
    again.extend(replay.scheduler().runs());
    again.sort_by_key(|view| std::cmp::Reverse(view.id));
    let stored = rows.into_iter().map(|mut row| {
        row.outlook = None;
        row
    });
    assert_eq!(again, stored.collect::<Vec<_>>());
}
