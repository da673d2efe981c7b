//! Where the time of `blueproof run` goes, by the agent's log and the run's record.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    figures::{Quantity, Row, Table, median},
    sides::Proof,
};

/// The parts of a run, in their order, and where each of them ends.
const PARTS: [&str; 7] = [
    "start, to the request's being stored",
    "gate and queue, to the agent's beginning",
    "environment (cached)",
    "kernel, to its first answer",
    "cells",
    "kernel's end, sweep and expectations",
    "release, report and exit",
];

/// The parts that are the notebook's own: its kernel's start and its cells.
const OF_NOTEBOOK: [usize; 2] = [3, 4];

/// The most that all other parts may be of the whole.
const OTHERS_AT_MOST: f64 = 0.04;

/// How long each part of one run took, in seconds.
#[derive(Debug)]
pub(super) struct Timeline([f64; PARTS.len()]);

impl Timeline {
    /// Reads it from what is kept of a run, and from its record in the store.
    pub(super) fn of(proof: &Proof, record: &Value) -> Result<Self> {
        let requested = timestamp(&record["requestedAt"]).context("the run has no time")?;
        let log = Log::read(&proof.attempt().join("log.ndjson"))?;
        let ends = [
            requested,
            log.first("begun", None)?,
            log.first("stageEnded", Some("env"))?,
            log.first("kernelReady", None)?,
            log.last("cellEnded")?,
            log.last("finished")?,
            proof.timed.ended_at,
        ];
        let mut since = proof.timed.began_at;
        Ok(Self(ends.map(|end| {
            let took = end.duration_since(since).as_secs_f64();
            since = end;
            took
        })))
    }

    /// Sums up several.
    pub(super) fn table(timelines: &[Self]) -> Result<Table> {
        let middles =
            (0..PARTS.len()).map(|part| median(timelines.iter().map(|line| line.0[part]).collect()));
        let middles: Vec<f64> = middles.collect::<Option<_>>().context("there was no round")?;
        let total: f64 = middles.iter().sum();
        let row = |name: &str, seconds: f64| {
            Row::of(name, vec![Some(Quantity::seconds(seconds))]).ratio(seconds / total)
        };
        let mut rows: Vec<_> = PARTS
            .iter()
            .zip(&middles)
            .map(|(part, seconds)| row(part, *seconds))
            .collect();
        let others = total - OF_NOTEBOOK.iter().map(|part| middles[*part]).sum::<f64>();
        rows.push(row("all but the kernel's start and cells", others).ratio_at_most(OTHERS_AT_MOST));
        Ok(Table {
            title: "where blueproof's time goes".into(),
            columns: vec!["median".into()],
            rows,
            notes: vec!["the ratio is to the sum of these medians".into()],
        })
    }
}

/// An agent's log.
struct Log(Vec<Value>);

impl Log {
    fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("no `{}`", path.display()))?;
        let records = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        Ok(Self(records.collect()))
    }

    fn first(&self, kind: &str, stage: Option<&str>) -> Result<Timestamp> {
        let found = self
            .0
            .iter()
            .find(|record| record["kind"] == kind && stage.is_none_or(|stage| record["stage"] == stage));
        at(found, kind)
    }

    fn last(&self, kind: &str) -> Result<Timestamp> {
        at(self.0.iter().rfind(|record| record["kind"] == kind), kind)
    }
}

fn at(record: Option<&Value>, kind: &str) -> Result<Timestamp> {
    let at = record.and_then(|record| timestamp(&record["at"]));
    at.with_context(|| format!("the agent's log has no `{kind}`"))
}

fn timestamp(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}
