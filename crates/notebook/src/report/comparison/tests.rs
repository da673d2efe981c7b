//! What differs from an attempt that passed, as signed logs and the store tell.

use blueproof_core::{
    attempt::{CellEnd, KeptFile, Record, RecordKind},
    domain::{Bytes, Outcome, RunId, RunRequest, Verdict},
    event::Event,
    policy::Policy,
    ports::OutputName,
    scheduler::Scheduler,
    testing::{self, FakeOutput, contract::OutputWriter},
    view::LastPass,
};
use serde_json::json;

use super::*;
use crate::{environment::Package, files::digest_of, report::tests::seconds};

/// What an attempt comes to.
struct Attempted<'a> {
    run: u64,
    head: char,
    cells: &'a [(&'a str, f64)],
    packages: &'a [(&'a str, &'a str)],
    loss: f64,
}

impl Attempted<'_> {
    fn id(&self) -> AttemptId {
        RunId(self.run).attempt(1)
    }

    fn executed(&self) -> String {
        let cells = self.cells.iter().map(|(source, _)| {
            json!({"cell_type": "code", "source": source, "outputs": [], "metadata": {}, "execution_count": 1})
        });
        let cells: Vec<_> = cells.collect();
        json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).to_string()
    }

    fn environment(&self) -> EnvironmentReport {
        let packages = self.packages.iter().map(|(name, version)| Package {
            name: (*name).into(),
            version: (*version).into(),
        });
        EnvironmentReport {
            python: "3.12.4".into(),
            key: "key".into(),
            tool: "uv".into(),
            packages: packages.collect(),
        }
    }

    /// Writes what its agent leaves.
    fn leave(&self, output: &FakeOutput) {
        output.put(
            &OutputName::ExecutedNotebook(self.id()),
            self.executed().as_bytes(),
        );
        let record = |kind| {
            let at = Timestamp::UNIX_EPOCH;
            output.append(self.id(), &[Record { at, kind }]);
        };
        record(RecordKind::EnvironmentReady {
            environment: serde_json::to_value(self.environment()).expect("plain data"),
        });
        for (cell, (_, took)) in (1..).zip(self.cells) {
            record(RecordKind::CellEnded {
                cell,
                end: CellEnd::Ok,
                took: seconds(*took),
            });
        }
        let notebook = KeptFile {
            path: "executed.ipynb".into(),
            size: Bytes(1),
            sha256: digest_of(self.executed().as_bytes()),
        };
        record(RecordKind::FilesKept {
            notebook: Some(notebook),
            artifacts: Vec::new(),
        });
    }

    fn view(&self) -> RunView {
        let mut request: RunRequest = testing::request("key", "nano-lm");
        let head = self.head.to_string().repeat(40);
        request.subject.head = head.parse().expect("a commit");
        let mut scheduler = Scheduler::new(Policy::local(request.job.driver()));
        let requested = Event::Requested {
            request: Box::new(request),
        };
        scheduler.handle(Timestamp::UNIX_EPOCH, requested);
        let mut view = scheduler.view(RunId(1)).expect("it was asked for");
        view.id = RunId(self.run);
        let mut attempt = view.attempts.pop().expect("it has its quota");
        attempt.id = self.id();
        attempt.ended_at = Some(Timestamp::UNIX_EPOCH);
        let loss = MetricResult {
            last: Some(self.loss),
            count: 1,
            trace: Vec::new(),
        };
        attempt.outcome = Some(Outcome {
            verdict: Verdict::Passed,
            usage: None,
            metrics: BTreeMap::from([("loss".into(), loss)]),
            notices: Vec::new(),
        });
        view.attempts.push(attempt);
        view
    }
}

const THEN: Attempted<'_> = Attempted {
    run: 4,
    head: 'a',
    cells: &[("import torch", 2.0), ("train()", 1.2), ("plot()", 0.1)],
    packages: &[("numpy", "2.5.0"), ("six", "1.0"), ("torch", "2.4.0")],
    loss: 0.5,
};

const NOW: Attempted<'_> = Attempted {
    run: 5,
    head: 'b',
    cells: &[
        ("%pip list", 0.1),
        ("import torch", 2.1),
        ("train()", 4.1),
        ("plot(2)", 0.1),
    ],
    packages: &[("numpy", "2.5.0"), ("rich", "14.0"), ("torch", "2.5.0")],
    loss: 0.6,
};

async fn compare(output: &Arc<FakeOutput>) -> Option<Comparison> {
    let mut view = NOW.view();
    view.last_pass = Some(LastPass {
        attempt: THEN.id(),
        parameters: Vec::new(),
    });
    let output: Arc<dyn AttemptOutput> = output.clone();
    Comparison::of(&view, &THEN.view(), &output).await
}

#[tokio::test]
async fn a29_cells_metrics_and_packages_are_compared_with_the_attempt_that_passed_last() {
    let output = Arc::new(FakeOutput::default());
    THEN.leave(&output);
    NOW.leave(&output);

    let comparison = compare(&output).await.expect("one passed");

    assert!(!comparison.is_same_content && !comparison.is_same_question());
    let cells = comparison.cells.as_ref().expect("both notebooks are there");
    let edits: Vec<_> = cells.iter().map(|cell| (cell.cell, cell.edit)).collect();
    let expected = [
        (1, CellEdit::Added),
        (2, CellEdit::Same),
        (3, CellEdit::Same),
        (4, CellEdit::Added),
    ];
    assert_eq!(edits, expected);
    let notable: Vec<_> = comparison.notable_cells().iter().map(|cell| cell.cell).collect();
    assert_eq!(notable, [3], "2.0 s and 2.1 s are as good as equal");
    let loss = &comparison.metrics[0];
    assert_eq!(loss.percent.map(f64::round), Some(20.0));
    let packages = comparison.packages.as_ref().expect("both are known").iter();
    let packages: Vec<_> = packages
        .map(|change| {
            (
                change.name.as_str(),
                change.then.as_deref(),
                change.now.as_deref(),
            )
        })
        .collect();
    let expected = [
        ("rich", None, Some("14.0")),
        ("six", Some("1.0"), None),
        ("torch", Some("2.4.0"), Some("2.5.0")),
    ];
    assert_eq!(packages, expected);
}

#[tokio::test]
async fn what_a_notebook_wrote_into_an_earlier_attempt_is_not_compared_with() {
    let output = Arc::new(FakeOutput::default());
    THEN.leave(&output);
    NOW.leave(&output);
    // Its first record is not its agent's any more.
    output.disturb(THEN.id(), Some(0));

    let comparison = compare(&output).await.expect("the store knows that it passed");

    assert_eq!(comparison.packages, None);
    assert_eq!(comparison.cells, None);
    assert_eq!(comparison.metrics[0].then, Some(0.5), "the store has it");

    output.disturb(THEN.id(), None);
    let executed = OutputName::ExecutedNotebook(THEN.id());
    output.put(&executed, THEN.executed().replace("train", "skip").as_bytes());
    let comparison = compare(&output).await.expect("the store knows that it passed");
    assert_eq!(comparison.cells, None, "its digest is another");
}

#[tokio::test]
async fn an_attempt_whose_folder_is_gone_is_compared_by_what_the_store_knows() {
    let output = Arc::new(FakeOutput::default());
    NOW.leave(&output);

    let comparison = compare(&output).await.expect("the store knows that it passed");

    assert_eq!((comparison.cells, comparison.packages), (None, None));
    assert_eq!(comparison.metrics.len(), 1);
    let output: Arc<dyn AttemptOutput> = output;
    let none_passed = Comparison::of(&NOW.view(), &THEN.view(), &output).await;
    assert_eq!(none_passed, None);
}
