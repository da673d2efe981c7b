//! Estimates worked out by hand.

use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::objects::WithinClusterQueue;

use super::*;
use crate::{
    domain::{
        Actor, AttemptId, Cpus, Failure, FailureClass, RequestKey, Resources, RunRequest, Timeouts, Verdict,
    },
    estimate::Basis,
    event::{Event, StopMode},
    policy::Policy,
    scheduler::Replay,
    testing::{RequestedRun, ask_for_cpu, finished, log_of, request, teams},
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("small")
}

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

/// Returns a scheduler of so many cores on which nano-lm ran before, one after the other, and the time then.
fn after(cores: u32, took: &[i64]) -> (Scheduler, i64) {
    let policy = Policy::local(Resources {
        cpu: Cpus::cores(cores),
        memory: crate::domain::Bytes(1 << 40),
        ..Resources::default()
    });
    let mut begins = 0;
    let runs = took.iter().enumerate().map(|(number, took)| {
        let asked = RequestedRun {
            at: at(begins),
            request: request(&format!("earlier-{number}"), "nano-lm"),
            takes: seconds(*took),
        };
        begins += took + 1;
        asked
    });
    let log = log_of(policy, at(0), runs.collect());
    let mut replay = Replay::new();
    for logged in log {
        replay.apply(logged.at, &logged.fact);
    }
    (replay.finish(), begins)
}

/// Asks for a run, which starts at once where there is room, and returns it.
fn ask(scheduler: &mut Scheduler, now: i64, request: RunRequest) -> RunId {
    let key = request.key.clone();
    let request = Box::new(request);
    scheduler.handle(at(now), Event::Requested { request });
    let run = scheduler.run_of(&key).expect("it was just asked for");
    let attempt = run.attempt(1);
    let place = "here".into();
    scheduler.handle(at(now), Event::Reserved { attempt, place });
    scheduler.handle(at(now), Event::Started { attempt });
    run
}

fn estimate(scheduler: &Scheduler, now: i64, run: RunId) -> Option<Estimate> {
    scheduler.estimates(at(now), &[run].into()).remove(&run)
}

fn likely(p50: i64, p90: i64) -> Option<When> {
    Some(When::Likely {
        p50: at(p50),
        p90: at(p90),
    })
}

#[test]
fn one_that_runs_ends_as_earlier_ones_did_and_what_it_has_taken_counts() {
    let nine = [10, 20, 30, 40, 50, 60, 70, 80, 90];
    let (mut scheduler, now) = after(1, &nine);
    let run = ask(&mut scheduler, now, request("a", "nano-lm"));
    let at_once = estimate(&scheduler, now, run).expect("nine are known");
    assert_eq!((at_once.start, at_once.end), (None, likely(now + 50, now + 90)));
    assert_eq!(at_once.from, Basis::Blueprint { runs: 9 });
    let later = estimate(&scheduler, now + 50, run).expect("it still runs");
    assert_eq!(later.end.map(p50), Some(at(now + 75)));
}

fn p50(when: When) -> Timestamp {
    match when {
        When::Likely { p50, .. } => p50,
        When::AtLatest { at } => at,
    }
}

#[test]
fn one_that_waits_starts_when_those_before_it_are_done_and_cleared_away() {
    let (mut scheduler, now) = after(1, &[100; 9]);
    let [_, _, third] = ["a", "b", "c"].map(|key| ask(&mut scheduler, now, request(key, "nano-lm")));
    let estimate = estimate(&scheduler, now + 30, third).expect("nine are known");
    // Two take 100 s each, and a second to be cleared away.
    assert_eq!(estimate.start, likely(now + 202, now + 202));
    assert_eq!(estimate.end, likely(now + 302, now + 302));
}

#[test]
fn asking_changes_nothing_and_gives_the_same_again() {
    let (mut scheduler, now) = after(1, &[10, 50, 20, 90, 30]);
    let runs = ["a", "b", "c"].map(|key| ask(&mut scheduler, now, request(key, "nano-lm")));
    let first = scheduler.estimates(at(now), &runs.into());
    assert_eq!(first.len(), 3);
    assert_eq!(scheduler.estimates(at(now), &runs.into()), first);
    scheduler.check();
    let alone = estimate(&scheduler, now, runs[2]);
    assert_eq!(alone.as_ref(), first.get(&runs[2]), "whoever else is asked about");
}

#[test]
fn fewer_than_three_earlier_runs_tell_nothing() {
    for (earlier, is_told) in [(2, false), (3, true)] {
        let (mut scheduler, now) = after(1, &vec![100; earlier]);
        let [first, second] = ["a", "b"].map(|key| ask(&mut scheduler, now, request(key, "nano-lm")));
        assert_eq!(
            estimate(&scheduler, now, first).is_some(),
            is_told,
            "the end of one that runs"
        );
        assert_eq!(
            estimate(&scheduler, now, second).is_some(),
            is_told,
            "the start of one behind it"
        );
    }
}

fn end(scheduler: &mut Scheduler, now: i64, attempt: AttemptId, verdict: Verdict) {
    let finished = finished(attempt, verdict);
    scheduler.handle(at(now), finished);
    scheduler.handle(at(now), Event::Released { attempt });
}

#[test]
fn a_run_s_own_attempts_are_no_earlier_runs_to_it_and_one_to_others_when_it_is_over() {
    let (mut scheduler, now) = after(1, &[100, 100]);
    let mut request_of_a = request("a", "nano-lm");
    request_of_a.retries.infrastructure = 1;
    let run = ask(&mut scheduler, now, request_of_a);
    let lost = Diagnostic::error(Code::AgentLost, "the agent is gone");
    let lost = Failure::outside_cells(FailureClass::Infrastructure, lost);
    end(
        &mut scheduler,
        now + 9,
        run.attempt(1),
        Verdict::Failed(Box::new(lost)),
    );
    let other = ask(&mut scheduler, now + 9, request("b", "nano-lm"));
    scheduler.handle(at(now + 1000), Event::Tick);
    for waits in [run, other] {
        assert_eq!(estimate(&scheduler, now + 1000, waits), None, "two runs are over");
    }
    let cancelled = Event::CancelRequested {
        run: other,
        by: Actor::Local("ada".into()),
        how: StopMode::Terminate,
        via: None,
    };
    scheduler.handle(at(now + 1000), cancelled);
    end(&mut scheduler, now + 1000, other.attempt(1), Verdict::Stopped);
    let again = run.attempt(2);
    let place = "here".into();
    scheduler.handle(
        at(now + 1000),
        Event::Reserved {
            attempt: again,
            place,
        },
    );
    scheduler.handle(at(now + 1000), Event::Started { attempt: again });
    end(&mut scheduler, now + 1100, again, Verdict::Passed);

    let third = ask(&mut scheduler, now + 1100, request("c", "nano-lm"));
    let from = estimate(&scheduler, now + 1100, third).map(|estimate| estimate.from);
    assert_eq!(from, Some(Basis::Blueprint { runs: 3 }));
    end(&mut scheduler, now + 1200, third.attempt(1), Verdict::Stopped);
    let (key, by) = (RequestKey("once more".into()), Actor::Local("ada".into()));
    scheduler.handle(at(now + 1200), Event::RetryRequested { key, run, by });
    assert_eq!(estimate(&scheduler, now + 1200, run), None, "two others are over");
}

#[test]
fn runs_of_another_blueprint_or_profile_or_with_other_parameters_tell_nothing() {
    type Change = fn(&mut RunRequest);
    let others: [(&str, Change); 3] = [
        ("blueprint", |request| {
            request.subject.blueprint = "other".parse().expect("a name");
        }),
        ("profile", |request| {
            request.subject.profile = Some("full".parse().expect("a name"));
        }),
        ("parameters", |request| {
            request.job.work = serde_json::json!({ "parameters": { "epochs": 600 } });
        }),
    ];
    for (what, change) in others {
        let (mut scheduler, now) = after(1, &[100; 9]);
        let mut other = request("a", "nano-lm");
        change(&mut other);
        let first = ask(&mut scheduler, now, other);
        let behind = ask(&mut scheduler, now, request("b", "nano-lm"));
        assert_eq!(estimate(&scheduler, now, first), None, "{what}");
        assert_eq!(
            estimate(&scheduler, now, behind),
            None,
            "behind one of another {what}"
        );
    }
}

fn limited(key: &str, startup: i64, run: i64) -> RunRequest {
    let mut request = request(key, "new");
    request.job.timeouts = Timeouts {
        startup: Some(seconds(startup)),
        run: Some(seconds(run)),
        ..Timeouts::default()
    };
    request
}

#[test]
fn without_any_past_there_are_only_limits_and_where_there_are_none_nothing_is_said() {
    let (mut scheduler, _) = after(1, &[]);
    let first = ask(&mut scheduler, 0, limited("a", 10, 90));
    let second = ask(&mut scheduler, 0, limited("b", 10, 50));
    let at_latest = |second| Some(When::AtLatest { at: at(second) });
    let running = estimate(&scheduler, 5, first).expect("it has limits");
    assert_eq!((running.end, running.from), (at_latest(100), Basis::Limits));
    let waiting = estimate(&scheduler, 5, second).expect("both have limits");
    assert_eq!((waiting.start, waiting.end), (at_latest(100), at_latest(160)));
    let unlimited = ask(&mut scheduler, 5, request("c", "new"));
    let known = estimate(&scheduler, 5, unlimited).expect("those before it have limits");
    assert_eq!((known.start, known.end), (at_latest(160), None));
    let behind = ask(&mut scheduler, 5, limited("d", 10, 50));
    assert_eq!(estimate(&scheduler, 5, behind), None);
}

#[test]
fn one_that_its_limits_have_not_ended_has_no_time_at_the_latest_and_nobody_behind_it_has() {
    let (mut scheduler, _) = after(1, &[]);
    let first = ask(&mut scheduler, 0, limited("a", 10, 90));
    let second = ask(&mut scheduler, 0, limited("b", 10, 50));
    let late = estimate(&scheduler, 101, first).expect("that it is late is known");
    assert_eq!(
        (late.end, late.from, late.longer_than),
        (None, Basis::Limits, Some(seconds(100)))
    );
    assert_eq!(estimate(&scheduler, 101, second), None);
}

#[test]
fn limits_of_time_count_from_the_place_and_not_from_the_quota() {
    let (mut scheduler, _) = after(1, &[]);
    let request = limited("a", 10, 90);
    let key = request.key.clone();
    let request = Box::new(request);
    scheduler.handle(at(0), Event::Requested { request });
    let run = scheduler.run_of(&key).expect("it was just asked for");
    let behind = ask(&mut scheduler, 0, limited("b", 10, 50));
    let told = |scheduler: &Scheduler, now, run| {
        let estimate = estimate(scheduler, now, run).expect("limits tell");
        (estimate.start.or(estimate.end), estimate.longer_than)
    };
    let latest = |second| Some(When::AtLatest { at: at(second) });
    assert_eq!(told(&scheduler, 500, run), (latest(600), None));
    assert_eq!(told(&scheduler, 500, behind), (latest(600), None));
    let (attempt, place) = (run.attempt(1), "here".into());
    scheduler.handle(at(500), Event::Reserved { attempt, place });
    assert_eq!(told(&scheduler, 600, run), (latest(600), None));
    assert_eq!(told(&scheduler, 601, run), (None, Some(seconds(100))));
}

/// As in the log of a version that took any limit.
#[test]
fn limits_that_nobody_can_add_up_are_no_time_and_end_nothing() {
    let (mut scheduler, _) = after(1, &[]);
    let runs: Vec<_> = (0..20)
        .map(|n| ask(&mut scheduler, 0, limited(&format!("r{n}"), i64::MAX, i64::MAX)))
        .collect();
    for run in runs {
        let estimate = estimate(&scheduler, 5, run);
        assert!(estimate.is_none_or(|estimate| matches!(estimate.end, None | Some(When::AtLatest { .. }))));
    }
}

#[test]
fn no_limit_is_exceeded_whatever_others_took() {
    let (mut scheduler, now) = after(1, &[100; 9]);
    let mut short = limited("a", 10, 50);
    short.subject.blueprint = "nano-lm".parse().expect("a name");
    let run = ask(&mut scheduler, now, short);
    let estimate = estimate(&scheduler, now, run).expect("nine are known");
    assert_eq!(estimate.end, likely(now + 60, now + 60));
}

#[test]
fn nothing_is_said_of_those_who_wait_for_a_person_or_are_over_or_stopped() {
    let (mut scheduler, now) = after(1, &[100; 9]);
    let mut change = request("a", "nano-lm");
    change.requested_by = crate::domain::Actor::GitHub {
        id: 7,
        login: "eve".into(),
    };
    let unapproved = ask(&mut scheduler, now, change);
    let run = ask(&mut scheduler, now, request("b", "nano-lm"));
    let by = crate::domain::Actor::Local("ada".into());
    let how = StopMode::Terminate;
    scheduler.handle(
        at(now),
        Event::CancelRequested {
            run,
            by,
            how,
            via: None,
        },
    );
    for silent in [unapproved, run, RunId(1), RunId(1000)] {
        assert_eq!(estimate(&scheduler, now, silent), None, "{silent}");
    }
}

#[test]
fn one_who_is_evicted_starts_again_when_its_evictor_is_done() {
    let (mut scheduler, now) = after(1, &[100; 9]);
    let objects = Box::new(teams(2, WithinClusterQueue::Never));
    let by = crate::domain::Actor::Local("ada".into());
    scheduler.handle(at(now), Event::QuotaApplied { objects, by });
    let ask_in = |scheduler: &mut Scheduler, team: &str, cores| {
        let mut request = request(team, "nano-lm");
        request.queue = team.parse().expect("a name");
        ask_for_cpu(&mut request, Cpus::cores(cores));
        ask(scheduler, now, request)
    };
    let victim = ask_in(&mut scheduler, "red", 6);
    let owner = ask_in(&mut scheduler, "blue", 2);
    let estimates = scheduler.estimates(at(now), &[victim, owner].into());
    // The victim has its grace of 30 s; then the owner takes 100 s, and a second to be cleared away.
    let starts: Vec<_> = estimates.values().map(|estimate| estimate.start).collect();
    let expected = [now + 131, now + 30];
    assert_eq!(starts, expected.map(|start| likely(start, start)));
}

#[test]
fn who_gives_up_before_it_would_start_has_no_start() {
    let (mut scheduler, now) = after(1, &[100; 9]);
    ask(&mut scheduler, now, request("a", "nano-lm"));
    let mut impatient = request("b", "nano-lm");
    impatient.job.timeouts.queue = Some(seconds(60));
    let impatient = ask(&mut scheduler, now, impatient);
    let patient = ask(&mut scheduler, now, request("c", "nano-lm"));
    assert_eq!(estimate(&scheduler, now, impatient), None);
    let start = estimate(&scheduler, now, patient).and_then(|estimate| estimate.start);
    assert_eq!(start, likely(now + 101, now + 101), "nobody is before it then");
}
