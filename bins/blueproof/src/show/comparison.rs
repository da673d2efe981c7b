//! Figures of several policies for the same jobs, beside each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use blueproof_core::{
    queue::Quantity,
    simulation::{Allocation, Figures, History, Scenario, Spread},
};
use jiff::SignedDuration;
use serde::Serialize;

use crate::output::{Cell, Table, Width};

/// More queues, classes or users than this are for programs.
const MOST_ROWS: usize = 8;

/// As much of a digest as a person compares.
const SHOWN_DIGEST: usize = 12;

/// Figures beside each other.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Comparison {
    pub(crate) columns: Vec<Column>,
}

/// What came of one policy.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Column {
    /// What the policy is called.
    name: &'static str,
    /// Two histories with the same digest are the same.
    digest: String,
    /// Whether it was cut short because the rules went round for ever.
    cut_short: bool,
    figures: Figures,
}

impl Column {
    /// Works out what came of a policy.
    pub(crate) fn of(name: &'static str, scenario: &Scenario, history: &History) -> Self {
        Self::since(SignedDuration::ZERO, name, scenario, history)
    }

    /// Works out what came of a policy, for those who came then or later.
    pub(crate) fn since(
        from: SignedDuration,
        name: &'static str,
        scenario: &Scenario,
        history: &History,
    ) -> Self {
        Self {
            name,
            digest: history.digest(),
            cut_short: history.cut_short,
            figures: Figures::since(from, scenario, history),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(
            [""].into_iter()
                .chain(self.columns.iter().map(|column| column.name)),
        );
        self.add_overview(&mut table);
        self.add_faults(&mut table);
        self.add_waits(&mut table);
        self.add_resources(&mut table);
        self.add_row(&mut table, "share gap mean/widest", |figures| {
            let fairness = figures.fairness;
            format!("{:.0}/{:.0}", fairness.mean_share_gap, fairness.widest_share_gap)
        });
        let digests = self
            .columns
            .iter()
            .map(|column| column.digest[..SHOWN_DIGEST].to_owned());
        add(&mut table, "digest", digests);
        f.write_str(&table.render(Width::Unlimited))?;
        self.write_remarks(f)
    }
}

impl Comparison {
    fn add_overview(&self, table: &mut Table) {
        self.add_row(table, "jobs done", |figures| {
            format!("{} of {}", figures.done, figures.jobs)
        });
        self.add_row(table, "never admitted", |figures| {
            figures.never_admitted.to_string()
        });
        self.add_row(table, "makespan (work alone)", |figures| {
            let makespan = seconds(figures.makespan_seconds);
            match figures.work_alone_seconds {
                Some(alone) => format!("{makespan}s ({}s)", seconds(alone)),
                None => format!("{makespan}s"),
            }
        });
        self.add_row(table, "completion mean/p99", |figures| {
            let spread = figures.completion;
            if spread.count == 0 {
                return "-".into();
            }
            format!(
                "{}/{}s",
                seconds(spread.mean_seconds),
                seconds(spread.p99_seconds)
            )
        });
        self.add_row(table, "slowdown mean/p99", |figures| {
            let slowdown = figures.slowdown;
            if slowdown.count == 0 {
                return "-".into();
            }
            format!("{:.2}/{:.2}", slowdown.mean, slowdown.p99)
        });
        self.add_row(table, "evicted (preempted)", |figures| {
            format!("{} ({})", figures.evictions, figures.preemptions)
        });
    }

    fn add_faults(&self, table: &mut Table) {
        let mut figures = self.columns.iter().map(|column| &column.figures);
        if figures.any(|figures| figures.resets + figures.failed > 0) {
            self.add_row(table, "restarts (given up)", |figures| {
                format!("{} ({})", figures.resets, figures.failed)
            });
        }
    }

    fn add_waits(&self, table: &mut Table) {
        self.add_row(table, "wait mean/p50/p90/p99", |figures| spread(figures.wait));
        for (kind, by) in WAITS_BY {
            for key in self
                .keys(by)
                .into_iter()
                .filter(|keys| keys.len() <= MOST_ROWS)
                .flatten()
            {
                self.add_row(table, &format!("  {kind} {key}"), |figures| {
                    by(figures).get(key).copied().map_or("-".into(), spread)
                });
            }
        }
    }

    fn add_resources(&self, table: &mut Table) {
        let used = self.columns.iter().flat_map(|column| &column.figures.allocation);
        let used = used.filter(|(_, allocation)| allocation.allocated > 0.0);
        let resources: BTreeSet<&String> = used.map(|(resource, _)| resource).collect();
        for resource in resources {
            let add = |table: &mut Table, title: &str, of: &dyn Fn(&Allocation) -> String| {
                self.add_row(table, title, |figures| {
                    figures.allocation.get(resource).map_or("-".into(), of)
                });
            };
            add(table, &format!("{resource} in use"), &|of| {
                format!("{:.1} %", of.ratio * 100.0)
            });
            add(table, "  lost work", &|of| {
                format!("{} s", units(resource, of.wasted))
            });
            if self.has_unused(resource) {
                add(table, "  idle (fragmented)", &|of| match of.unused {
                    Some(of) => format!(
                        "{} ({}) s",
                        units(resource, of.idle),
                        units(resource, of.fragmented)
                    ),
                    None => "-".into(),
                });
            }
            add(table, "  Jain's index", &|of| format!("{:.3}", of.jain_index));
        }
    }

    /// Returns whether it is known how much of a resource stood idle.
    fn has_unused(&self, resource: &str) -> bool {
        let mut of = self
            .columns
            .iter()
            .filter_map(|column| column.figures.allocation.get(resource));
        of.any(|of| of.unused.is_some())
    }

    fn add_row(&self, table: &mut Table, title: &str, of: impl Fn(&Figures) -> String) {
        add(
            table,
            title,
            self.columns.iter().map(|column| of(&column.figures)),
        );
    }

    /// Returns the queues, classes or users of all columns.
    fn keys(&self, by: WaitsBy) -> Option<Vec<&String>> {
        let mut keys: Vec<_> = self
            .columns
            .iter()
            .flat_map(|column| by(&column.figures).keys())
            .collect();
        keys.sort();
        keys.dedup();
        (keys.len() > 1).then_some(keys)
    }

    fn write_remarks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, by) in WAITS_BY {
            let count = self.keys(by).map_or(0, |keys| keys.len());
            if count > MOST_ROWS {
                writeln!(f, "`-o json` tells the waits of each {kind}: there are {count}")?;
            }
        }
        for column in self.columns.iter().filter(|column| column.cut_short) {
            writeln!(
                f,
                "{} was cut short: evictions or restarts went round for ever",
                column.name
            )?;
        }
        Ok(())
    }
}

type WaitsBy = fn(&Figures) -> &BTreeMap<String, Spread>;

const WAITS_BY: [(&str, WaitsBy); 3] = [
    ("queue", |figures| &figures.wait_by_queue),
    ("class", |figures| &figures.wait_by_class),
    ("user", |figures| &figures.wait_by_user),
];

fn add(table: &mut Table, title: &str, cells: impl Iterator<Item = String>) {
    table.row([Cell::from(title)].into_iter().chain(cells.map(Cell::from)));
}

/// Returns the mean, p50, p90 and p99, or the one figure that they all are.
fn spread(spread: Spread) -> String {
    if spread.count == 0 {
        return "-".into();
    }
    let told = [
        spread.mean_seconds,
        spread.p50_seconds,
        spread.p90_seconds,
        spread.p99_seconds,
    ];
    let told = told.map(seconds);
    if told.iter().all(|other| *other == told[0]) {
        return format!("{}s", told[0]);
    }
    format!("{}s", told.join("/"))
}

/// Returns seconds with as many digits as anybody compares.
pub(super) fn seconds(seconds: f64) -> String {
    if seconds >= 100.0 {
        return format!("{seconds:.0}");
    }
    let tenths = format!("{seconds:.1}");
    tenths.strip_suffix(".0").map_or(tenths.clone(), str::to_owned)
}

/// Returns an amount in the units in which people count it.
fn units(resource: &str, amount: f64) -> String {
    match resource {
        "cpu" => format!("{:.0} cpu", amount / 1000.0),
        "memory" => format!("{:.0} GiB", amount / f64::from(1 << 30)),
        _ => format!("{amount:.0}"),
    }
}

/// Returns what a job or queue has, as people write it.
pub(super) fn amounts(amounts: &BTreeMap<String, Quantity>) -> String {
    let written = amounts.iter().map(|(resource, quantity)| {
        let amount = blueproof_core::queue::manifest::amount(resource, *quantity);
        format!("{amount} {resource}")
    });
    written.collect::<Vec<_>>().join(", ")
}
