//! The embedded queue: decisions a second beside Kueue's own code on the same load, and what they cost as more wait.
//!
//! Kueue's side has an almost free API server, one in memory: what is compared is deciding, not writing to a cluster.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::figures::{Quantity, Row, Table, grouped, median};
use crate::{
    go::Program,
    kueue,
    process::{Ended, Invocation, print_line},
    workspace::Workspace,
};

/// How many times as many decisions as Kueue we promise to make in the same time.
const TIMES_AT_LEAST: f64 = 80.0;

/// How much the cost of a turn may grow from 1,000 to 1,000,000 who wait: the logarithm alone doubles.
const GROWTH_AT_MOST: f64 = 5.0;

const ROUNDS: usize = 3;

/// A load that both sides know.
#[derive(Debug, Clone, Copy)]
struct Load {
    queues: u32,
    waiting: u32,
    fair: bool,
    preempt: bool,
}

const fn load(queues: u32, waiting: u32) -> Load {
    Load {
        queues,
        waiting,
        fair: false,
        preempt: false,
    }
}

/// The loads of the comparison.
const BESIDE: [Load; 7] = [
    load(30, 1_000),
    load(30, 1_000).fair(),
    load(30, 1_000).preempting(),
    load(30, 1_000).fair().preempting(),
    load(300, 10_000),
    load(300, 10_000).fair(),
    load(30, 30_000),
];

/// The sizes of ours alone.
const SIZES: [Load; 5] = [
    load(30, 1_000),
    load(30, 1_000_000),
    load(1_000, 100_000),
    load(10_000, 100_000),
    load(10_000, 1_000_000),
];

/// What our side prints. Times are in seconds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ours {
    per_second: f64,
    per_second_with_all: f64,
    cycle: Spread,
    turn: Spread,
    bytes_per_waiting: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Spread {
    p50: f64,
    p99: f64,
}

/// What Kueue's side prints.
#[derive(Debug, Deserialize)]
struct Theirs {
    per_second: f64,
}

/// Measures; without Go, our side alone.
pub(super) fn measure(workspace: &Workspace) -> Result<Vec<Table>> {
    let bench = Bench::prepare(workspace)?;
    let mut tables = Vec::new();
    match kueue::oracle(workspace)? {
        Program::Built(oracle) => tables.push(bench.beside(&oracle.display().to_string())?),
        Program::Missing(why) => print_line(&format!("\nWARNING: nothing is measured beside ours\n{why}")),
        Program::Broken => anyhow::bail!("the oracle does not build"),
    }
    let sizes: Vec<_> = SIZES
        .iter()
        .map(|load| Ok((*load, bench.ours(*load)?)))
        .collect::<Result<_>>()?;
    tables.push(sizes_table(&sizes));
    let growth = [1_000, 100_000, 1_000_000].map(|waiting| load(30, waiting));
    let growth: Vec<_> = growth
        .iter()
        .map(|load| Ok((*load, bench.ours(*load)?)))
        .collect::<Result<_>>()?;
    tables.push(growth_table(&growth)?);
    Ok(tables)
}

impl Load {
    const fn fair(self) -> Self {
        Self { fair: true, ..self }
    }

    const fn preempting(self) -> Self {
        Self {
            preempt: true,
            ..self
        }
    }

    fn size(self) -> String {
        format!(
            "{} / {}",
            grouped(self.queues.into()),
            grouped(self.waiting.into())
        )
    }

    fn name(self) -> String {
        let fair = if self.fair { ", fair" } else { "" };
        let preempt = if self.preempt { ", preempting" } else { "" };
        format!("{}{fair}{preempt}", self.size())
    }

    /// Returns it as options, which begin with a dash or two.
    fn options(self, dash: &str, waiting: &str, seconds: &str) -> Vec<String> {
        let mut options = Vec::new();
        let numbers = [("queues", self.queues), (waiting, self.waiting)];
        for (name, number) in numbers {
            options.extend([format!("{dash}{name}"), number.to_string()]);
        }
        options.extend([format!("{dash}seconds"), seconds.to_owned()]);
        for (name, is_set) in [("fair", self.fair), ("preempt", self.preempt)] {
            options.extend(is_set.then(|| format!("{dash}{name}")));
        }
        options
    }
}

/// Our side, as released.
struct Bench<'a> {
    workspace: &'a Workspace,
}

impl<'a> Bench<'a> {
    fn prepare(workspace: &'a Workspace) -> Result<Self> {
        let build = Invocation::cargo(["build", "--release", "--locked", "--package", kueue::JUDGE]);
        print_line(&format!("$ {build}"));
        ensure!(build.show(&workspace.root)? == Ended::Well, "`{build}` failed");
        Ok(Self { workspace })
    }

    fn ours(&self, load: Load) -> Result<Ours> {
        let program = self.workspace.target.join("release").join(kueue::JUDGE);
        let options = load.options("--", "waiting", "1");
        self.ask(&Invocation::of(
            program,
            ["bench".into()].into_iter().chain(options),
        ))
    }

    fn theirs(&self, oracle: &str, load: Load) -> Result<Theirs> {
        let options = load.options("-", "pending", "2");
        self.ask(&Invocation::of(
            oracle,
            ["bench".into()].into_iter().chain(options),
        ))
    }

    fn ask<T: for<'de> Deserialize<'de>>(&self, invocation: &Invocation) -> Result<T> {
        let answer = invocation.ask(&self.workspace.root);
        let answer = answer.with_context(|| format!("`{invocation}` failed"))?;
        serde_json::from_str(&answer).with_context(|| format!("`{invocation}` printed `{answer}`"))
    }

    /// Measures both sides by turns.
    fn beside(&self, oracle: &str) -> Result<Table> {
        let mut rows = Vec::new();
        for load in BESIDE {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                ours.push(self.ours(load)?.per_second);
                theirs.push(self.theirs(oracle, load)?.per_second);
            }
            print_line(&format!("queue: {} measured", load.name()));
            rows.push(compared(load, ours, theirs)?);
        }
        Ok(Table {
            title: "queue, decisions".into(),
            columns: vec!["blueproof".into(), "Kueue".into()],
            rows,
            notes: vec![
                "queues / workloads that wait; time in cycles and in what they change".into(),
                "the ratio is ours to those of Kueue 0.19.2's code, which has an API server in memory".into(),
                format!("medians of {ROUNDS} rounds by turns"),
            ],
        })
    }
}

fn compared(load: Load, ours: Vec<f64>, theirs: Vec<f64>) -> Result<Row> {
    let (ours, theirs) = median(ours).zip(median(theirs)).context("there was no round")?;
    let values = [ours, theirs].map(|decisions| Some(Quantity::per_second(decisions)));
    let row = Row::of(load.name(), values.into());
    Ok(row.ratio(ours / theirs).ratio_at_least(TIMES_AT_LEAST))
}

fn sizes_table(sizes: &[(Load, Ours)]) -> Table {
    let row = |(load, ours): &(Load, Ours)| {
        let values = [
            Quantity::per_second(ours.per_second),
            Quantity::seconds(ours.cycle.p99),
            Quantity::seconds(ours.turn.p99),
        ];
        Row::of(load.size(), values.map(Some).into())
    };
    let in_cycles = sizes
        .iter()
        .map(|(_, ours)| ours.per_second_with_all / ours.per_second);
    let share = median(in_cycles.collect()).unwrap_or_default() * 100.0;
    Table {
        title: "queue, sizes".into(),
        columns: vec!["decisions".into(), "cycle p99".into(), "turn p99".into()],
        rows: sizes.iter().map(row).collect(),
        notes: vec![
            "a cycle decides for every queue; in a turn one ends, the next starts, one comes".into(),
            format!("cycles are {share:.0} % of the time, the rest is who comes and who goes"),
        ],
    }
}

fn growth_table(growth: &[(Load, Ours)]) -> Result<Table> {
    let (first, last) = growth
        .first()
        .zip(growth.last())
        .context("nothing was measured")?;
    let ratio = last.1.turn.p50 / first.1.turn.p50;
    let turns = growth
        .iter()
        .map(|(_, ours)| Some(Quantity::seconds(ours.turn.p50)));
    let slowest = growth
        .iter()
        .map(|(_, ours)| Some(Quantity::seconds(ours.turn.p99)));
    let bytes = growth
        .iter()
        .map(|(_, ours)| ours.bytes_per_waiting.map(Quantity::of_bytes));
    Ok(Table {
        title: "queue, who wait".into(),
        columns: growth
            .iter()
            .map(|(load, _)| grouped(load.waiting.into()))
            .collect(),
        rows: vec![
            Row::of("one turn", turns.collect())
                .ratio(ratio)
                .ratio_at_most(GROWTH_AT_MOST),
            Row::of("one turn, p99", slowest.collect()),
            Row::of("memory of each", bytes.collect()),
        ],
        notes: vec!["30 queues; the first are medians; the ratio is the most waiting to the fewest".into()],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_are_told_of_the_same_load() {
        let load = load(30, 1_000).fair();
        let ours = load.options("--", "waiting", "1").join(" ");
        assert_eq!(ours, "--queues 30 --waiting 1000 --seconds 1 --fair");
        let theirs = load.preempting().options("-", "pending", "2").join(" ");
        assert_eq!(theirs, "-queues 30 -pending 1000 -seconds 2 -fair -preempt");
    }

    #[test]
    fn less_than_eighty_times_kueues_decisions_breaks_the_limit() {
        let within = |ours, theirs| {
            compared(load(30, 1_000), vec![ours], vec![theirs])
                .expect("a row")
                .is_within()
        };
        assert!(within(800_000.0, 10_000.0));
        assert!(!within(799_000.0, 10_000.0));
    }
}
