//! The way of runs through the pipeline, line by line.

use blueproof_core::{
    action::Action,
    attempt::{CellEnd, Stream},
    domain::{Bytes, Cpus, Failure, FailureClass, Resources, RunId},
    event::Event,
    policy::Policy,
    scheduler::Scheduler,
    testing,
    view::{Eviction, OutlookView},
};
use blueproof_diagnostic::{Code, SourceLocation};
use blueproof_queue::{EvictionReason, objects::WithinClusterQueue};

use super::*;
use crate::show::samples::trouble;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("small")
}

fn two_cores() -> Resources {
    Resources {
        cpu: Cpus::cores(2),
        memory: Bytes(24 << 30),
        ..Resources::default()
    }
}

/// Returns what goes without saying on a machine of two cores.
fn terms() -> Terms {
    Terms {
        approval: LocalApproval::Own,
        queues: Policy::local(two_cores()).default_objects(),
    }
}

/// Returns a run's views from the request to its place, as the scheduler gives them.
fn views() -> Vec<RunView> {
    let mut scheduler = Scheduler::new(Policy::local(two_cores()));
    let request = Box::new(testing::request("a", "nano-lm"));
    let actions = scheduler.handle(at(0), Event::Requested { request }).actions;
    let Some(Action::Reserve(reservation)) = actions.first() else {
        panic!("it is admitted at once")
    };
    let attempt = reservation.attempt;
    let first = scheduler.view(attempt.run).expect("it is known");
    scheduler.handle(
        at(1),
        Event::Reserved {
            attempt: reservation.attempt,
            place: "here".into(),
        },
    );
    vec![first, scheduler.view(attempt.run).expect("it is known")]
}

fn tell(stages: &mut Stages, records: Vec<RecordKind>) {
    for (second, kind) in (2..).zip(records) {
        stages.on_record(&Record { at: at(second), kind });
    }
}

fn texts(stages: &mut Stages) -> Vec<String> {
    stages.take_lines().iter().map(Line::text).collect()
}

#[test]
fn stages_that_nothing_held_up_are_one_line() {
    let mut stages = Stages::new(terms());
    for view in views().iter().chain(&views()) {
        stages.on_view(view, None);
    }
    assert_eq!(
        texts(&mut stages),
        ["  start   ✓ own run of ada · 1 cpu, 1Mi memory of 2 cpu, 24Gi memory · here"]
    );
}

#[test]
fn each_stage_of_a_run_that_was_held_up_is_a_line_as_soon_as_it_is_passed_and_only_once() {
    let mut stages = Stages::new(terms());
    for mut view in views().into_iter().chain(views()) {
        view.requested_at -= SignedDuration::from_secs(90);
        stages.on_view(&view, None);
    }
    let lines = texts(&mut stages);
    assert_eq!(
        lines,
        [
            "  gate    ✓ own run of ada, needs no other's approval (local.selfApprove)",
            "  queue   ✓ admitted in queue \"local\"  1m30s",
            "  quota   ✓ 1 cpu, 1Mi memory of 2 cpu, 24Gi memory",
            "  place   ✓ here",
        ]
    );
}

#[test]
fn a_long_cell_says_where_it_is_and_what_it_prints() {
    let mut stages = Stages::new(terms());
    stages.on_view(&views()[1], None);
    texts(&mut stages);
    let loss = |value| RecordKind::Metric {
        name: "loss".into(),
        value: Some(value),
    };
    let printed = |text: &str| RecordKind::Text {
        cell: 3,
        stream: Stream::Stdout,
        text: text.into(),
    };
    tell(
        &mut stages,
        vec![
            RecordKind::KernelReady { pid: 1, cells: 2 },
            RecordKind::CellBegun { cell: 3, nth: 1 },
            loss(3.0),
            loss(2.0),
            loss(1.0),
            printed("step 1\nstep 2\x1b]0;evil\x07 ##[group]\r"),
        ],
    );
    let (stage, text, _) = stages.doing().expect("it runs");
    assert_eq!(
        (stage, text.as_str()),
        ("run", "cell 3, 1 of 2 done · loss █▅▁ 1 · step 2 # #[group]"),
        "it is called as in the verdict"
    );
}

#[test]
fn a_metric_that_is_no_number_any_more_ends_in_a_cross_while_it_runs() {
    let mut stages = Stages::new(terms());
    let loss = |value| RecordKind::Metric {
        name: "loss".into(),
        value,
    };
    tell(
        &mut stages,
        vec![
            RecordKind::KernelReady { pid: 1, cells: 1 },
            RecordKind::CellBegun { cell: 1, nth: 0 },
            loss(Some(2.0)),
            loss(Some(1.0)),
            loss(None),
        ],
    );
    let (_, text, _) = stages.doing().expect("it runs");
    assert_eq!(text, "cell 1, 0 of 1 done · loss █▁× not a number");
}

#[test]
fn while_it_runs_it_is_said_when_it_is_likely_to_end() {
    let mut stages = Stages::new(terms());
    let mut view = views()[1].clone();
    view.state = RunState::Running;
    tell(&mut stages, vec![RecordKind::KernelReady { pid: 1, cells: 2 }]);
    let mut doing = |ends| {
        stages.on_view(&view, ends);
        stages.doing().expect("it runs").1
    };
    assert_eq!(
        doing(Some("ends about 14:21Z (p90 14:40Z)")),
        "0 of 2 done · ends about 14:21Z (p90 14:40Z)"
    );
    assert_eq!(
        doing(None),
        "0 of 2 done",
        "where nothing is known, nothing is said"
    );
}

#[test]
fn a_notice_names_its_cell() {
    let mut stages = Stages::new(terms());
    let diagnostic = Diagnostic::warning(Code::CellRaised, "it exited 1").at(SourceLocation::file("cell 3"));
    tell(&mut stages, vec![RecordKind::Noticed { diagnostic }]);
    assert_eq!(texts(&mut stages), ["  note    ! cell 3: it exited 1"]);
}

#[test]
fn nothing_that_others_wrote_is_obeyed_in_a_line() {
    let mut stages = Stages::new(terms());
    let diagnostic = Diagnostic::warning(Code::CellRaised, "a\x1b[2J\n::error::b ##[group]");
    tell(&mut stages, vec![RecordKind::Noticed { diagnostic }]);
    assert_eq!(
        texts(&mut stages),
        ["  note    ! a\\u{1b}[2J ::error::b # #[group]"]
    );
}

#[test]
fn a_run_that_is_looked_at_when_it_is_over_is_told_in_its_order() {
    let mut stages = Stages::new(terms());
    let reserved = &views()[0];
    stages.on_view(reserved, None);
    assert_eq!(stages.attempt(), None, "its place comes first");
    let mut over = views()[1].clone();
    (over.settled, over.report) = (true, ReportView::Written);
    stages.on_view(&over, None);
    assert_eq!(stages.attempt(), Some(over.attempts[0].id));
    let (stage, detail, took) = (AttemptStage::Collect, "0 artifacts".into(), SignedDuration::ZERO);
    tell(&mut stages, vec![RecordKind::StageEnded { stage, detail, took }]);
    stages.on_end(&over);
    let told: Vec<&str> = stages.take_lines().iter().map(|line| line.stage).collect();
    assert_eq!(told, ["start", "collect", "report"]);
}

#[test]
fn one_that_has_to_give_way_is_told_for_whom() {
    let mut stages = Stages::new(terms());
    let mut view = views()[1].clone();
    view.attempts[0].eviction = Some(Eviction {
        reason: EvictionReason::InCohortReclamation.into(),
        message: None,
        by: Some(RunId(4)),
        at: view.requested_at,
    });
    stages.on_view(&view, None);
    stages.on_view(&view, None);
    assert_eq!(
        texts(&mut stages)[1..],
        ["  evicted ! for r-4: another queue takes back what is its own (InCohortReclamation)"]
    );
}

#[test]
fn what_fails_is_told_once_with_its_reason_and_beside_what_goes_on() {
    let mut stages = Stages::new(terms());
    let mut view = views()[0].clone();
    let call = Call::Reserve(view.attempts[0].id);
    let trouble = |times, why| trouble(call, times, why);
    let fails = [
        vec![trouble(1, "all GPUs are taken")],
        vec![],
        vec![trouble(2, "all GPUs are taken")],
        vec![trouble(3, "the disk is full")],
    ];
    let mut doing = Vec::new();
    for failing_calls in fails {
        view.failing_calls = failing_calls;
        stages.on_view(&view, None);
        doing.extend(stages.doing().map(|(_, text, _)| text));
    }
    let again = trouble(1, "").again_at;
    let again = output::clock(again, again);
    let first = format!("making a place for r-1.1 failed and is tried again at {again}: all GPUs are taken");
    let last = first
        .replace("failed", "failed 3 times in a row")
        .replace("all GPUs are taken", "the disk is full");
    let lines = texts(&mut stages);
    assert_eq!(
        lines[3..],
        [&first, &last].map(|text| format!("  place   ! {text}"))
    );
    let second = first.replace("failed", "failed 2 times in a row");
    assert_eq!(doing, [&first, "a place is being made", &second, &last]);
}

#[test]
fn an_attempt_that_gets_no_place_tells_why_before_the_next_one() {
    let mut stages = Stages::new(terms());
    let mut view = views()[0].clone();
    let failure = Failure {
        class: FailureClass::Infrastructure,
        diagnostic: Diagnostic::error(Code::DevicesUnhealthy, "no GPU is healthy"),
        cell: None,
    };
    view.attempts[0].outcome = Some(testing::outcome(Verdict::Failed(Box::new(failure))));
    stages.on_view(&view, None);
    stages.on_view(&view, None);
    assert_eq!(texts(&mut stages)[3..], ["  place   ✗ no GPU is healthy"]);
    assert_eq!(stages.attempt(), None, "it has no records");
}

#[test]
fn a_cell_that_failed_marks_the_stage_once_whoever_tells_of_the_end() {
    let mut stages = Stages::new(terms());
    stages.on_view(&views()[1], None);
    texts(&mut stages);
    let took = SignedDuration::from_secs(1);
    let ended = |end| RecordKind::CellEnded { cell: 1, end, took };
    let outcome = Box::new(testing::outcome(Verdict::Stopped));
    tell(
        &mut stages,
        vec![
            RecordKind::KernelReady { pid: 1, cells: 2 },
            ended(CellEnd::Raised),
            RecordKind::StageEnded {
                stage: AttemptStage::Run,
                detail: String::new(),
                took,
            },
            RecordKind::Finished { outcome },
        ],
    );
    assert_eq!(texts(&mut stages), ["  run     ✗ 1 cell of 2  1.0 s"]);
    assert_eq!(stages.doing(), None);
}

#[test]
fn a_run_that_was_cut_off_is_not_marked_as_done() {
    let mut stages = Stages::new(terms());
    stages.on_view(&views()[1], None);
    texts(&mut stages);
    let outcome = Box::new(testing::outcome(Verdict::Stopped));
    tell(
        &mut stages,
        vec![
            RecordKind::StageBegun {
                stage: AttemptStage::Run,
            },
            RecordKind::KernelReady { pid: 1, cells: 2 },
            RecordKind::Finished { outcome },
        ],
    );
    let told = texts(&mut stages);
    assert!(told[0].starts_with("  run     ✗ 0 cells of 2"), "{told:?}");
}

#[test]
fn a_run_that_needed_an_approval_says_whose_it_has_be_it_of_whoever_asked() {
    let required = Terms {
        approval: LocalApproval::Required,
        ..terms()
    };
    let gate = |mut stages: Stages, seen: &[RunView]| {
        seen.iter().for_each(|view| stages.on_view(view, None));
        texts(&mut stages).remove(0)
    };
    assert_eq!(
        gate(Stages::new(required), &views()),
        "  gate    ✓ approved by ada"
    );

    // The process that leads may go by another policy than this one: what was seen to wait was approved.
    let mut waits = views()[0].clone();
    (waits.state, waits.attempts) = (RunState::AwaitingApproval, vec![]);
    waits.outlook = Some(Box::new(OutlookView {
        as_of: at(0),
        reason: Some(PendingReason::AwaitingApproval {
            lapsed: None,
            policy: None,
        }),
        position: None,
        unblocked_by: vec![],
        estimate: None,
        duration: None,
    }));
    let seen = [vec![waits], views()].concat();
    assert_eq!(gate(Stages::new(terms()), &seen), "  gate    ✓ approved by ada");
}

#[test]
fn the_quota_is_that_of_the_run_s_queue_and_not_what_the_machine_has() {
    let mut objects = testing::teams(1, WithinClusterQueue::Never);
    let mut stages = Stages::new(Terms {
        queues: objects.clone(),
        ..terms()
    });
    let mut views = views();
    for view in &mut views {
        view.queue = "red".parse().expect("a name");
        stages.on_view(view, None);
    }
    let start = texts(&mut stages).remove(0);
    assert_eq!(
        start,
        "  start   ✓ own run of ada · 1 cpu, 1Mi memory of 1 cpu, 1Ti memory · here"
    );
    objects.local_queues.clear();
    let mut stages = Stages::new(Terms {
        queues: objects,
        ..terms()
    });
    stages.on_view(&views[0], None);
    stages.on_view(&views[1], None);
    let start = texts(&mut stages).remove(0);
    assert_eq!(start, "  start   ✓ own run of ada · 1 cpu, 1Mi memory · here");
}

#[test]
fn what_an_earlier_request_came_to_is_not_shown_again() {
    let before = views().remove(1);
    let mut stages = Stages::new(terms()).after(before.attempts.last().map(|attempt| attempt.id));
    stages.on_view(&before, None);
    assert_eq!((texts(&mut stages), stages.attempt()), (vec![], None));

    let mut again = before.clone();
    let mut second = before.attempts[0].clone();
    second.id = before.id.attempt(2);
    again.attempts.push(second);
    stages.on_view(&again, None);
    let lines = texts(&mut stages);
    assert!(
        lines.iter().any(|line| line.contains("attempt 2 in queue")),
        "{lines:?}"
    );
    assert_eq!(stages.attempt(), Some(before.id.attempt(2)));
}
