//! All about a run, as people read it.

use anstream::adapter::strip_str;
use blueproof_core::{
    domain::RunId,
    event::{Call, Event},
    scheduler::Scheduler,
};

use super::*;
use crate::show::samples::{at, row, scheduler, trouble};

fn described(run: u64, width: Width) -> String {
    let scheduler = scheduler();
    let view = row(&scheduler, RunId(run), at(60));
    described_as(&view, &scheduler, width)
}

fn described_as(view: &RunView, scheduler: &Scheduler, width: Width) -> String {
    let run = view.id.0;
    let file = |path: &str, size| KeptFile {
        path: path.into(),
        size: Bytes(size),
    };
    let kept = KeptFiles {
        folder: format!("/data/runs/r-{run}"),
        files: vec![
            file("1/executed.ipynb", 20_480),
            file("report.html", 131_072),
            file("evil\u{1b}[31m\n", 0),
        ],
        more: 2,
    };
    let row = RunView {
        outlook: row(scheduler, view.id, at(60)).outlook,
        ..view.clone()
    };
    let text = describe(&row, &kept, None, at(60), width);
    strip_str(&text).to_string()
}

#[test]
fn a_run_that_passed_tells_what_it_measured_and_used() {
    insta::assert_snapshot!(described(1, Width::Columns(80)));
}

#[test]
fn a_metric_whose_last_value_is_no_number_ends_in_a_cross() {
    let scheduler = scheduler();
    let mut view = scheduler.view(RunId(1)).expect("a run of the story");
    let outcome = view.attempts[0].outcome.as_mut().expect("it passed");
    let metric = MetricResult {
        last: None,
        count: 3,
        trace: vec![2.0, 1.0],
    };
    outcome.metrics = [("loss".to_owned(), metric)].into();
    let text = described_as(&view, &scheduler, Width::Unlimited);
    assert!(text.contains("loss    not a number  3       █▁×\n"), "{text}");
}

#[test]
fn what_fails_for_a_run_is_told_whole() {
    let scheduler = scheduler();
    let mut view = scheduler.view(RunId(3)).expect("a run of the story");
    view.failing_calls = vec![trouble(
        Call::Observe(view.attempts[0].id),
        1,
        "all GPUs are taken",
    )];
    let text = described_as(&view, &scheduler, Width::Columns(80));
    let (_, told) = text
        .split_once("\nFails: watching r-3.1 failed and is tried again at ")
        .expect(&text);
    assert!(
        told.contains(": all GPUs are taken\n  error[BP0645]: all GPUs are taken\n"),
        "{text}"
    );
    assert!(told.contains("     = hint: see who has them\n"), "{text}");
}

#[test]
fn a_run_that_failed_tells_the_cell_and_the_cause_and_nothing_that_a_terminal_obeys() {
    let text = described(2, Width::Columns(80));
    assert!(
        !text.lines().any(|line| line.trim_start().starts_with("::")),
        "{text}"
    );
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    insta::assert_snapshot!(text);
}

#[test]
fn what_an_attempt_left_is_told_as_its_own_where_the_run_did_not_end_with_it() {
    let mut scheduler = scheduler();
    let told = |scheduler: &Scheduler, run| {
        let view = scheduler.view(RunId(run)).expect("a run of the story");
        let expectations = title("Expectations", &view, view.attempts.last());
        let text = described_as(&view, scheduler, Width::Unlimited);
        let titles = ["Failure", "Metrics", "Usage"];
        let titles = text
            .lines()
            .filter(|line| titles.iter().any(|title| line.starts_with(title)));
        let titles: Vec<_> = titles
            .filter_map(|line| line.split(':').next())
            .map(str::to_owned)
            .collect();
        (titles.join(", "), expectations)
    };
    let expected = |titles: &str, expectations: &str| (titles.to_owned(), expectations.to_owned());
    assert_eq!(told(&scheduler, 1), expected("Metrics, Usage", "Expectations"));
    assert_eq!(told(&scheduler, 2), expected("Failure", "Expectations"));
    for run in [1, 2].map(RunId) {
        let (by, key) = (
            blueproof_core::domain::Actor::Local("ada".into()),
            blueproof_core::domain::RequestKey("again".into()),
        );
        scheduler.handle(at(60), Event::RetryRequested { run, by, key });
    }
    assert_eq!(
        told(&scheduler, 1),
        expected("Metrics of r-1.1, Usage of r-1.1", "Expectations of r-1.1")
    );
    assert_eq!(
        told(&scheduler, 2),
        expected("Failure of r-2.1", "Expectations of r-2.1")
    );
}

#[test]
fn a_run_that_waits_tells_why_and_until_when() {
    insta::assert_snapshot!(described(4, Width::Unlimited));
}

#[test]
fn what_could_not_be_read_is_not_told() {
    let usage = Usage {
        duration: jiff::SignedDuration::from_secs(5),
        ..Usage::default()
    };
    assert_eq!(used(&usage), "5.0 s from the kernel's start to its end");
}
