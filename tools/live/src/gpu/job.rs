//! Whether a job's summary says what `nvidia-smi` wrote down meanwhile, ten times a second.

use std::{fs, process::Command, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{
    Arguments, Finding, smi,
    table::{Table, mean},
};

const FIELDS: [&str; 4] = ["timestamp", "uuid", "utilization.gpu", "power.draw"];

pub(super) fn run(arguments: &Arguments) -> Result<Finding> {
    if arguments.load.is_empty() {
        return Ok(Finding::NotMade("there is no load to watch".into()));
    }
    if let Some(why) = smi::missing() {
        return Ok(Finding::NotMade(why));
    }
    let [log, summary] = ["smi.log", "job.json"].map(|name| arguments.out.join(name));
    let mut logger = smi::log(&FIELDS, &log)?;
    let ended = Command::new(&arguments.exporter)
        .args(["job", "--quiet", "--json"])
        .arg(&summary)
        .arg("--library")
        .arg(arguments.library())
        .args(["--", "timeout", &arguments.seconds.to_string()])
        .args(&arguments.load)
        .status();
    // It writes what it has at the end of a line.
    thread::sleep(Duration::from_millis(500));
    let _ = logger.kill();
    let _ = logger.wait();
    let ended = ended.with_context(|| format!("could not start {}", arguments.exporter.display()))?;
    ensure!(ended.code().is_some(), "the job ended with {ended}");
    let theirs = smi::rows(&fs::read_to_string(&log)?);
    let ours: Value = serde_json::from_slice(&fs::read(&summary)?)?;
    compared(&ours, &theirs)
}

pub(super) fn compared(ours: &Value, theirs: &[Vec<String>]) -> Result<Finding> {
    let mut table = Table::new(&["uuid", "what", "ours", "theirs"]);
    let mut words = Vec::new();
    for device in ours["devices"].as_array().context("a summary has devices")? {
        let uuid = device["device"].as_str().context("a device has a name")?;
        let rows = theirs
            .iter()
            .filter(|row| row.get(1).is_some_and(|of| of == uuid));
        let column = |at: usize| -> Vec<f64> {
            let cells = rows.clone().filter_map(|row| row.get(at));
            cells.filter_map(|cell| smi::number(cell)).collect()
        };
        // Of what was seen, since of the rest nothing is in the sum.
        let of = |sum: &str, seen: &str| {
            let seconds = device["allocatedSeconds"].as_f64()? * device["coverage"][seen].as_f64()?;
            Some(device[sum].as_f64()? / seconds)
        };
        let share = mean(&column(2)).map(|percent| percent / 100.0);
        let pairs = [
            ("busy share", of("busySeconds", "busy"), share),
            ("watts", of("energyJoules", "energy"), mean(&column(3))),
        ];
        for (what, ours, theirs) in pairs {
            let text = |value: Option<f64>| value.map(|value| format!("{value:.3}")).unwrap_or_default();
            table.push([uuid.to_owned(), what.to_owned(), text(ours), text(theirs)]);
            words.push(format!("{uuid}: {what}: {} and {}", text(ours), text(theirs)));
        }
    }
    Ok(Finding::Measured(table, words))
}
