//! What differs from an attempt that passed, as signed logs and the store tell.

use std::fs;

use blueproof_core::{
    attempt::{CellEnd, KeptFile, LogWriter, Record, RecordKind, StoreIdentity},
    domain::{Bytes, Outcome, RunId, RunRequest, Verdict},
    event::Event,
    policy::Policy,
    scheduler::Scheduler,
    testing,
    view::LastPass,
};
use serde_json::json;

use super::*;
use crate::{environment::Package, files::digest_of, report::tests::seconds};

/// The folder of a store's runs.
fn runs() -> (tempfile::TempDir, RunsFolder) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = StoreIdentity {
        id: "store".into(),
        folder: "store".into(),
        secret: [7; 32],
    };
    let runs = RunsFolder::new(folder.path(), store);
    (folder, runs)
}

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
    fn leave(&self, runs: &RunsFolder) {
        let layout = runs.attempt(self.id());
        fs::create_dir_all(layout.root()).expect("a folder");
        fs::write(layout.executed_notebook(), self.executed()).expect("a file");
        let mut log = LogWriter::open(&layout.log(), runs.log_key(self.id()))
            .expect("a file")
            .0;
        let mut record = |kind| {
            let at = Timestamp::UNIX_EPOCH;
            log.append(&Record { at, kind }).expect("it is written");
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
        let mut scheduler = Scheduler::new(Policy::local(request.job.driver));
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

fn compare(runs: &RunsFolder) -> Option<Comparison> {
    let mut view = NOW.view();
    view.last_pass = Some(LastPass {
        attempt: THEN.id(),
        parameters: Vec::new(),
    });
    Comparison::of(&view, &THEN.view(), runs)
}

#[test]
fn cells_metrics_and_packages_are_compared_with_the_attempt_that_passed_last() {
    let (_folder, runs) = runs();
    THEN.leave(&runs);
    NOW.leave(&runs);

    let comparison = compare(&runs).expect("one passed");

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

#[test]
fn what_a_notebook_wrote_into_an_earlier_attempt_is_not_compared_with() {
    let (_folder, runs) = runs();
    THEN.leave(&runs);
    NOW.leave(&runs);
    let then = runs.attempt(THEN.id());
    let forged = fs::read_to_string(then.log()).expect("a log");
    fs::write(then.log(), forged.replace("2.4.0", "9.9.9")).expect("a file");

    let comparison = compare(&runs).expect("the store knows that it passed");

    assert_eq!(comparison.packages, None);
    assert_eq!(comparison.cells, None);
    assert_eq!(comparison.metrics[0].then, Some(0.5), "the store has it");

    fs::write(then.log(), &forged).expect("a file");
    fs::write(then.executed_notebook(), THEN.executed().replace("train", "skip")).expect("a file");
    let comparison = compare(&runs).expect("the store knows that it passed");
    assert_eq!(comparison.cells, None, "its digest is another");
}

#[test]
fn an_attempt_whose_folder_is_gone_is_compared_by_what_the_store_knows() {
    let (_folder, runs) = runs();
    NOW.leave(&runs);

    let comparison = compare(&runs).expect("the store knows that it passed");

    assert_eq!((comparison.cells, comparison.packages), (None, None));
    assert_eq!(comparison.metrics.len(), 1);
    assert_eq!(
        Comparison::of(&NOW.view(), &THEN.view(), &runs),
        None,
        "none passed"
    );
}
