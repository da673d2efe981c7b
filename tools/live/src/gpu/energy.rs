//! Whether the counter of energy grows by what is drawn, and how often it does.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use blueproof_core::{gpu::Figure, ports::GpuProbe as _};

use super::{
    Arguments, Finding,
    load::Load,
    table::{Table, spread},
};

const EVERY: Duration = Duration::from_millis(10);

/// A reading: when, in seconds, what is drawn, and what the counter shows.
type Read = (f64, f64, f64);

pub(super) fn run(arguments: &Arguments) -> Result<Finding> {
    let mut table = Table::new(&["load", "uuid", "second", "watts", "joules"]);
    let mut words = Vec::new();
    watch(arguments, "as it was", &mut table, &mut words)?;
    if let Some(_load) = Load::start(&arguments.load)? {
        watch(arguments, "loaded", &mut table, &mut words)?;
    }
    if table.rows.is_empty() {
        return Ok(Finding::NotMade("no device has both figures".into()));
    }
    Ok(Finding::Measured(table, words))
}

fn watch(arguments: &Arguments, load: &str, table: &mut Table, words: &mut Vec<String>) -> Result<()> {
    let mut probe = arguments.probe()?;
    let mut reads: std::collections::BTreeMap<String, Vec<Read>> = std::collections::BTreeMap::new();
    let began = Instant::now();
    while began.elapsed() < arguments.time() {
        let second = began.elapsed().as_secs_f64();
        for sample in probe.snapshot()?.samples {
            let figures = [Figure::Power, Figure::Energy].map(|figure| sample.readings.value(figure));
            if let ([Some(watts), Some(joules)], None) = (figures, &sample.partition) {
                let of = reads.entry(sample.device.0).or_default();
                of.push((second, watts, joules));
            }
        }
        thread::sleep(EVERY);
    }
    for (uuid, reads) in &reads {
        for (second, watts, joules) in reads {
            let figures = [second, watts, joules].map(|figure| format!("{figure:.3}"));
            table.push([load.to_owned(), uuid.clone()].into_iter().chain(figures));
        }
        words.extend(compared(reads).map(|line| format!("{load}, {uuid}: {line}")));
    }
    Ok(())
}

/// Compares what the counter grew by with what the power comes to, from one growth of the counter to another.
pub(super) fn compared(reads: &[Read]) -> Option<String> {
    let steps: Vec<usize> = (1..reads.len())
        .filter(|at| reads[*at].2 > reads[at - 1].2)
        .collect();
    let (first, last) = (*steps.first()?, *steps.last()?);
    if first == last {
        return None;
    }
    let counted = reads[last].2 - reads[first].2;
    let drawn: f64 = reads[first..=last]
        .windows(2)
        .map(|two| (two[1].0 - two[0].0) * (two[0].1 + two[1].1) / 2.0)
        .sum();
    let apart: Vec<_> = steps
        .windows(2)
        .map(|two| (reads[two[1]].0 - reads[two[0]].0) * 1e3)
        .collect();
    let [apart, ..] = spread(&apart)?;
    Some(format!(
        "the counter grew by {counted:.1} J, the power comes to {drawn:.1} J ({:.3}); it grows every {apart:.0} ms",
        counted / drawn
    ))
}
