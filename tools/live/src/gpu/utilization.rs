//! What the different figures of how busy a device is say of the same time.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use blueproof_core::{
    gpu::{Figure, Reading, Sample},
    ports::GpuProbe as _,
};

use super::{
    Arguments, Finding,
    load::Load,
    table::{Table, mean},
};

const EVERY: Duration = Duration::from_millis(200);

/// What they are called, and what each says in one sample; the driver's own samples may be several, or none.
type Source = (&'static str, fn(&Sample) -> Vec<f64>);

const SOURCES: [Source; 4] = [
    ("utilization", |sample| {
        sample.readings.value(Figure::Utilization).into_iter().collect()
    }),
    ("driver's samples", |sample| match &sample.busy {
        Reading::Value(busy) => busy.iter().map(|one| one.utilization).collect(),
        Reading::Unsupported | Reading::Failed(_) => Vec::new(),
    }),
    ("engine active", |sample| {
        sample.readings.value(Figure::EngineActive).into_iter().collect()
    }),
    ("multiprocessors active", |sample| {
        sample.readings.value(Figure::SmActive).into_iter().collect()
    }),
];

pub(super) fn run(arguments: &Arguments) -> Result<Finding> {
    let mut table = Table::new(&["load", "uuid", "second", "source", "share"]);
    let mut words = Vec::new();
    watch(arguments, "as it was", &mut table, &mut words)?;
    if let Some(_load) = Load::start(&arguments.load)? {
        watch(arguments, "loaded", &mut table, &mut words)?;
    }
    Ok(Finding::Measured(table, words))
}

fn watch(arguments: &Arguments, load: &str, table: &mut Table, words: &mut Vec<String>) -> Result<()> {
    let mut probe = arguments.probe()?;
    let mut said: BTreeMap<(String, &str), Vec<f64>> = BTreeMap::new();
    // What the driver noted before we began is of another time.
    probe.snapshot()?;
    let began = Instant::now();
    while began.elapsed() < arguments.time() {
        thread::sleep(EVERY);
        let second = began.elapsed().as_secs_f64();
        for sample in probe.snapshot()?.samples {
            let uuid = sample.partition.as_ref().unwrap_or(&sample.device).0.clone();
            for (source, of) in SOURCES {
                for share in of(&sample) {
                    let figures = [format!("{second:.3}"), source.into(), format!("{share:.4}")];
                    table.push([load.to_owned(), uuid.clone()].into_iter().chain(figures));
                    said.entry((uuid.clone(), source)).or_default().push(share);
                }
            }
        }
    }
    let means = said.iter().filter_map(|((uuid, source), shares)| {
        let mean = mean(shares)?;
        Some(format!(
            "{load}, {uuid}: {source}: {mean:.3} on average of {}",
            shares.len()
        ))
    });
    words.extend(means);
    Ok(())
}
