//! Why runs stand where they stand.

use blueproof_core::{
    domain::BackOff,
    domain::{Actor, Resources, RunId, Verdict},
    event::{Call, Event},
    policy::Policy,
    scheduler::Scheduler,
    testing::{finished, request, teams},
};
use blueproof_queue::{
    Quantity,
    manifest::{self, File},
    objects::{Objects, Quota, WithinClusterQueue},
};

use super::*;
use crate::show::{
    runs,
    samples::{at, row, scheduler, trouble},
};

/// Explains a run as its row says at a time.
fn explained(scheduler: &Scheduler, run: u64, now: Timestamp) -> Explanation {
    explained_as(&row(scheduler, RunId(run), now), scheduler, now)
}

fn explained_as(view: &RunView, scheduler: &Scheduler, now: Timestamp) -> Explanation {
    let states = awaited(view).into_iter();
    let states = states.filter_map(|run| Some((run, scheduler.view(run)?.state)));
    Explanation::of(view, &states.collect(), now)
}

#[test]
fn every_run_is_explained_in_a_sentence_and_what_comes_next() {
    let scheduler = scheduler();
    let texts: Vec<String> = (1..=6)
        .map(|run| explained(&scheduler, run, at(60)).to_string())
        .collect();
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn a_program_gets_the_reason_with_its_figures() {
    let scheduler = scheduler();
    let explanation = explained(&scheduler, 4, at(60));
    let json = serde_json::to_string_pretty(&explanation).expect("it is plain data");
    insta::assert_snapshot!(json);
}

#[test]
fn a_retry_is_told_by_the_readers_clock_and_by_its_reason() {
    let back_off = BackOff {
        until: at(90) + jiff::SignedDuration::from_nanos(281_802_360),
        requeues: 1,
        at_most: 3,
    };
    let (reason, clock) = (
        PendingReason::BackingOff(back_off),
        crate::output::clock(back_off.until, at(60)),
    );
    assert!(!clock.contains('.') && !clock.contains('T'), "{clock}");
    let told = format!("waits until {clock} before its next attempt, retry 1 of at most 3");
    assert_eq!(why(&reason, at(60)), told);
    assert_eq!(until(&reason, at(60)), format!("it is tried again at {clock}"));
    assert_eq!(standing(&reason), ["  reason  BackingOff"]);
    assert!(!reason.to_string().contains('.'), "to the second: {reason}");
}

#[test]
fn what_fails_for_a_run_is_named_with_its_reason() {
    let scheduler = scheduler();
    let mut view = row(&scheduler, RunId(3), at(60));
    let attempt = view.attempts[0].id;
    view.failing_calls = vec![trouble(Call::Release(attempt), 4, "all GPUs are taken")];
    let explanation = explained_as(&view, &scheduler, at(60));
    let fails = "  fails   clearing r-3.1 away failed 4 times in a row and is tried again at ";
    let text = explanation.to_string();
    let line = text.lines().find(|line| line.starts_with(fails));
    assert!(
        line.is_some_and(|line| line.ends_with(": all GPUs are taken")),
        "{text}"
    );
    let json = serde_json::to_value(&explanation).expect("it is plain data");
    assert_eq!(json["failingCalls"][0]["last"]["hints"][0], "see who has them");
}

#[test]
fn of_one_whose_end_is_waited_for_it_is_told_that_it_is_over_and_keeps_its_quota() {
    let mut scheduler = scheduler();
    let told = |scheduler: &Scheduler| explained(scheduler, 4, at(60)).to_string();
    let over = "  over    r-3 passed, and keeps its quota until its place is cleared away\n";
    let running = told(&scheduler);
    assert!(
        running.contains("r-3 ends") && !running.contains(over),
        "{running}"
    );
    let attempt = RunId(3).attempt(1);
    scheduler.handle(at(61), finished(attempt, Verdict::Passed));
    let ended = told(&scheduler);
    assert!(ended.contains(over), "{ended}");
}

#[test]
fn one_who_waits_because_others_had_less_is_told_so_with_the_figures() {
    let mut scheduler = Scheduler::new(Policy::local(Resources::default()));
    let by = Actor::Local("admin".into());
    let quota = Event::QuotaApplied {
        objects: Box::new(by_usage()),
        by,
    };
    scheduler.handle(at(0), quota);
    for (minute, author) in [(0, "ann"), (0, "ann"), (60, "ann"), (60, "bob"), (61, "bob")] {
        let mut request = request(
            &format!("{author} {minute} {}", scheduler.runs().count()),
            "nano-lm",
        );
        request.queue = "contributors".parse().expect("a name");
        request.requested_by = Actor::Local(author.into());
        let request = Box::new(request);
        scheduler.handle(at(minute), Event::Requested { request });
    }
    let told = |run| explained(&scheduler, run, at(61)).to_string();
    insta::assert_snapshot!([3, 4].map(told).join("\n"));
}

/// Two GPUs' worth of cores for whoever comes, by what each had lately.
fn by_usage() -> Objects {
    let text = include_str!("../../../../../examples/by-usage.yaml");
    let queues = text
        .split_once("---\n")
        .expect("the queues stand below the jobs")
        .1;
    let file = File {
        name: "by-usage.yaml".into(),
        text: queues.replace("nvidia.com/gpu", "cpu").replace("168h", "1h"),
    };
    let mut objects = manifest::read([file]).expect("Kueue takes it").objects;
    let queue = objects.cluster_queues.get_mut("notebooks").expect("it is there");
    let memory = Quota {
        nominal: Quantity(1 << 40),
        ..Quota::default()
    };
    let quotas = &mut queue.resource_groups[0].flavors[0].resources;
    quotas.insert("memory".into(), memory);
    let sharing = objects.admission_fair_sharing.as_mut().expect("it is there");
    sharing.resource_weights.insert("memory".into(), 0.0);
    objects
}

#[test]
fn one_that_was_evicted_is_told_for_whom_while_it_is_stopped_and_when_it_waits_again() {
    let mut scheduler = Scheduler::new(Policy::local(Resources::default()));
    let objects = Box::new(teams(1, WithinClusterQueue::LowerPriority));
    let by = Actor::Local("admin".into());
    scheduler.handle(at(0), Event::QuotaApplied { objects, by });
    for (run, queue) in (1..).zip(["blue", "blue", "blue", "red"]) {
        let mut request = request(&format!("run {run}"), "nano-lm");
        request.queue = queue.parse().expect("a name");
        let request = Box::new(request);
        scheduler.handle(at(run), Event::Requested { request });
        let attempt = RunId(run.unsigned_abs()).attempt(1);
        let place = "here".into();
        scheduler.handle(at(run), Event::Reserved { attempt, place });
        scheduler.handle(at(run), Event::Started { attempt });
    }
    let view = row(&scheduler, RunId(3), at(5));
    let stopping = explained_as(&view, &scheduler, at(5)).to_string();
    let lines: Vec<&str> = stopping.lines().collect();
    let of = "for r-4: another queue takes back what is its own (InCohortReclamation)";
    assert_eq!(lines[0], "r-3 is being stopped: r-3.1 has to give its quota back");
    assert_eq!(lines[1], format!("  evicted r-3.1 1m ago {of}"));
    assert_eq!(
        lines.last(),
        Some(&"it waits in its queue again when r-3.1 has stopped")
    );
    let table = runs::table(&[view], &[], at(5), runs::Columns::Wide).render(crate::output::Width::Unlimited);
    assert!(
        table.contains(&format!("is being stopped {of}, and waits again then")),
        "{table}"
    );
    let attempt = RunId(3).attempt(1);
    scheduler.handle(at(5), finished(attempt, Verdict::Stopped));
    scheduler.handle(at(5), Event::Released { attempt });
    let explanation = explained(&scheduler, 3, at(6));
    let text = explanation.to_string();
    let expected =
        "  evicted r-3.1 2m ago for r-4: another queue takes back what is its own (InCohortReclamation)";
    assert!(text.lines().any(|line| line == expected), "{text}");
    let json = serde_json::to_value(&explanation).expect("it is plain data");
    assert_eq!(json["eviction"]["by"], "r-4");
}

#[test]
fn figures_that_nobody_has_worked_out_for_long_are_said_to_be_old() {
    let scheduler = scheduler();
    let view = row(&scheduler, RunId(4), at(60));
    let old = "  as of   2m ago: others may have come and gone since\n";
    let told = |now| explained_as(&view, &scheduler, now).to_string();
    assert!(!told(at(60)).contains("as of"), "{}", told(at(60)));
    assert!(told(at(62)).contains(old), "{}", told(at(62)));
}
