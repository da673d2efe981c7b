//! Whatever comes, in whatever order: the scheduler keeps its rules.

mod inputs;

use std::collections::BTreeSet;

use blueproof_core::{
    action::Action,
    approval::{Approval, HoldTarget},
    domain::{Resources, RunState, Verdict},
    event::Event,
    fact::{Decision, Fact},
    metrics::{self, Family, Page, Value},
    policy::{LocalApproval, Policy},
    scheduler::{Replay, Scheduler, Snapshot, Step},
    testing::finished,
    view::RunView,
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use inputs::*;

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
        Action::Observe { attempt, .. } => Some(finished(attempt, Verdict::Passed)),
        Action::Stop { .. } => None,
        Action::Release { attempt, .. } => Some(Event::Released { attempt }),
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
    fn a_replay_comes_out_the_same_at_every_step_and_decides_nothing(
        story in any_story(),
        admission in any_admission(),
    ) {
        let policy = policy(3, LocalApproval::Own);
        let applied = applied(&policy, admission);
        let configured = Event::Configured { policy: Box::new(policy) };
        let mut scheduler = Scheduler::new(Policy::local(Resources::default()));
        let mut replay = Replay::new();
        let mut now = Timestamp::UNIX_EPOCH;
        for (passed, input) in [(0, configured), (0, applied)].into_iter().chain(story) {
            now += SignedDuration::from_secs(passed);
            let step = scheduler.handle(now, input);
            scheduler.check();
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
    fn what_is_counted_is_what_is_known_of_attempts(story in any_story(), admission in any_admission()) {
        let policy = policy(3, LocalApproval::Own);
        let mut scheduler = Scheduler::new(policy.clone());
        scheduler.handle(Timestamp::UNIX_EPOCH, applied(&policy, admission));
        tell(&mut scheduler, &story);
        let page = scheduler.metrics();
        let forgotten = scheduler.take_changed().forgotten;
        let attempts: Vec<_> = scheduler.runs().chain(forgotten).flat_map(|run| run.attempts).collect();
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
    fn in_a_world_that_answers_everything_comes_to_an_end(story in any_story(), admission in any_admission()) {
        let policy = policy(3, LocalApproval::Own);
        let mut scheduler = Scheduler::new(policy.clone());
        scheduler.handle(Timestamp::UNIX_EPOCH, applied(&policy, admission));
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
                    let request = scheduler.request(attempt.run).expect("it is admitted");
                    prop_assert!(approved.iter().any(|target| target.covers(request)));
                }
            }
        }
    }

    /// Told by what was decided, and by nothing of the state: which is held, and what was revoked since it was approved.
    #[test]
    fn nothing_is_admitted_that_is_held_closed_or_revoked(story in any_story(), admission in any_admission()) {
        let policy = policy(3, LocalApproval::Required);
        let mut scheduler = Scheduler::new(policy.clone());
        scheduler.handle(Timestamp::UNIX_EPOCH, applied(&policy, admission));
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
                    Fact::Decision(Decision::Admitted { attempt, approved_by, .. }) => {
                        let request = scheduler.request(attempt.run).expect("it is admitted");
                        let subject = &request.subject;
                        let pull_request = subject.of_pull_request();
                        prop_assert!(!held.contains(&HoldTarget::Run(attempt.run)));
                        if let Some(pull_request) = pull_request {
                            prop_assert!(!closed.contains(&pull_request));
                            prop_assert!(!held.contains(&HoldTarget::PullRequest(pull_request)));
                        }
                        let own = approved_by == request.requested_by;
                        let counts = |known: &Approval| known.target.covers(request) && known.by == approved_by;
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
