//! Whether we say what `nvidia-smi` says. It is asked between two readings of ours, since figures move.

use std::collections::BTreeMap;

use anyhow::Result;
use blueproof_core::{
    gpu::{DeviceUuid, Figure, GpuSnapshot},
    ports::GpuProbe as _,
};

use super::{Arguments, Finding, smi, table::Table};

/// How often both are asked.
const PAIRS: usize = 50;

/// What it is called there, which figure it is, how much one of its units is of ours, and to how much of a unit it is told.
const FIELDS: &[(&str, Figure, f64, f64)] = &[
    ("temperature.gpu", Figure::Temperature, 1.0, 1.0),
    ("temperature.memory", Figure::MemoryTemperature, 1.0, 1.0),
    ("power.draw", Figure::Power, 1.0, 0.01),
    ("utilization.gpu", Figure::Utilization, 0.01, 1.0),
    ("utilization.memory", Figure::MemoryUtilization, 0.01, 1.0),
    ("memory.total", Figure::MemoryTotal, MIB, 1.0),
    ("memory.used", Figure::MemoryUsed, MIB, 1.0),
    ("memory.free", Figure::MemoryFree, MIB, 1.0),
    ("memory.reserved", Figure::MemoryReserved, MIB, 1.0),
    ("clocks.sm", Figure::SmClock, 1e6, 1.0),
    ("clocks.mem", Figure::MemoryClock, 1e6, 1.0),
    ("pcie.link.gen.gpucurrent", Figure::PcieGeneration, 1.0, 0.0),
    ("pcie.link.width.current", Figure::PcieWidth, 1.0, 0.0),
    ("pcie.link.width.max", Figure::PcieWidthMost, 1.0, 0.0),
    (
        "ecc.errors.corrected.volatile.total",
        Figure::CorrectedErrors,
        1.0,
        0.0,
    ),
    (
        "ecc.errors.uncorrected.volatile.total",
        Figure::UncorrectedErrors,
        1.0,
        0.0,
    ),
    (
        "remapped_rows.correctable",
        Figure::CorrectableRemappedRows,
        1.0,
        0.0,
    ),
    (
        "remapped_rows.uncorrectable",
        Figure::UncorrectableRemappedRows,
        1.0,
        0.0,
    ),
    ("remapped_rows.pending", Figure::RowRemapPending, 1.0, 0.0),
    ("remapped_rows.failure", Figure::RowRemapFailure, 1.0, 0.0),
];

const MIB: f64 = 1_048_576.0;

/// What came of a figure's pairs.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) agree: usize,
    pub(super) both_without: usize,
    pub(super) only_ours: usize,
    pub(super) only_theirs: usize,
    pub(super) differ: usize,
    pub(super) most: f64,
}

pub(super) fn run(arguments: &Arguments) -> Result<Finding> {
    if let Some(why) = smi::missing() {
        return Ok(Finding::NotMade(why));
    }
    let mut probe = arguments.probe()?;
    let names: Vec<_> = ["uuid"]
        .into_iter()
        .chain(FIELDS.iter().map(|(name, ..)| *name))
        .collect();
    let mut tallies: BTreeMap<(String, usize), Tally> = BTreeMap::new();
    for _ in 0..PAIRS {
        let before = probe.snapshot()?;
        let theirs = smi::ask(&names)?;
        let after = probe.snapshot()?;
        for row in &theirs {
            let Some((uuid, cells)) = row.split_first() else {
                continue;
            };
            for (place, (field, cell)) in FIELDS.iter().zip(cells).enumerate() {
                let tally = tallies.entry((uuid.clone(), place)).or_default();
                let ours = [&before, &after].map(|read| value(read, uuid, field.1));
                tally.count(ours, smi::number(cell), (field.2, field.3));
            }
        }
    }
    Ok(told(&tallies))
}

fn value(read: &GpuSnapshot, uuid: &str, figure: Figure) -> Option<f64> {
    read.of(&DeviceUuid(uuid.to_owned()))?.readings.value(figure)
}

fn told(tallies: &BTreeMap<(String, usize), Tally>) -> Finding {
    let mut table = Table::new(&[
        "uuid",
        "field",
        "pairs",
        "agree",
        "differ",
        "both_without",
        "only_ours",
        "only_theirs",
        "largest_difference",
    ]);
    let mut words = Vec::new();
    for ((uuid, place), tally) in tallies {
        let name = FIELDS[*place].0;
        let counts = [
            PAIRS,
            tally.agree,
            tally.differ,
            tally.both_without,
            tally.only_ours,
            tally.only_theirs,
        ];
        let counts = counts.map(|count| count.to_string());
        let named = [uuid.clone(), name.to_owned()];
        table.push(named.into_iter().chain(counts).chain([tally.most.to_string()]));
        if tally.agree + tally.both_without < PAIRS {
            words.push(format!("{name}: {} of {PAIRS} agree ({uuid})", tally.agree));
        }
    }
    let fine = tallies.len() - words.len();
    words.insert(0, format!("{fine} of {} figures agree always", tallies.len()));
    Finding::Measured(table, words)
}

impl Tally {
    /// Compares theirs, of which one is so many of our units, and which is told to so much of one of its own, with what we
    /// read before and after.
    pub(super) fn count(&mut self, ours: [Option<f64>; 2], theirs: Option<f64>, (unit, step): (f64, f64)) {
        match (ours, theirs) {
            ([Some(before), Some(after)], Some(theirs)) => {
                let (theirs, step) = (theirs * unit, unit * step);
                let (least, most) = (before.min(after) - step, before.max(after) + step);
                // What is off by less than a millionth was divided by something.
                let off = (least - theirs).max(theirs - most) - theirs.abs() * 1e-6;
                if off <= 0.0 {
                    self.agree += 1;
                } else {
                    self.differ += 1;
                    self.most = self.most.max(off);
                }
            }
            ([None, None], None) => self.both_without += 1,
            (_, None) => self.only_ours += 1,
            (_, Some(_)) => self.only_theirs += 1,
        }
    }
}
