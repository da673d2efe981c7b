//! Figures of several policies for the same jobs, beside each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use blueproof_queue::{Quantity, amount_in_words};
use blueproof_simulation::{
    Allocation, Figures, History, InAll, ResourceUsage, Scenario, Series, Slowdown, Spread, Unadmitted,
    in_all,
};
use jiff::SignedDuration;
use serde::Serialize;

use super::text::span;
use crate::output::{Cell, Table, Width, line};

/// More queues, classes or users than this are for programs.
const MOST_ROWS: usize = 8;

/// As much of a digest as a person compares.
const SHOWN_DIGEST: usize = 12;

/// So many of those who were never admitted for the same reason are named.
const MOST_NAMED: usize = 5;

/// A policy, and what came of it.
#[derive(Debug)]
pub(crate) struct Play {
    pub(crate) name: String,
    pub(crate) scenario: Scenario,
    pub(crate) history: History,
}

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
    pub(super) name: String,
    /// Two histories with the same digest are the same.
    digest: String,
    /// Whether it was cut short because the rules went round for ever.
    cut_short: bool,
    pub(super) figures: Figures,
    /// Of those who were admitted, or done, in all columns.
    in_all: InAll,
    /// Who was never admitted, and why.
    never_admitted: Vec<NeverAdmitted>,
}

/// Who was never admitted, and why.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NeverAdmitted {
    /// Its name.
    name: String,
    /// The same in words.
    why: String,
    #[serde(flatten)]
    unadmitted: Unadmitted,
}

impl Comparison {
    /// Works out what came of policies for the same jobs, of those who came then or later.
    pub(crate) fn of(from: SignedDuration, plays: &[Play]) -> Self {
        let histories = plays.iter().map(|play| (&play.scenario, &play.history));
        let histories: Vec<_> = histories.collect();
        let mut figures: Vec<Figures> = plays
            .iter()
            .map(|play| Figures::since(from, &play.scenario, &play.history))
            .collect();
        let span = common_span(&figures);
        for (figures, play) in figures.iter_mut().zip(plays) {
            figures.series = Series::between(span, from, &play.scenario, &play.history);
        }
        let figures = figures.into_iter().zip(in_all(from, &histories));
        let columns = plays.iter().zip(figures).map(|(play, (figures, in_all))| Column {
            name: play.name.clone(),
            digest: play.history.digest(),
            cut_short: play.history.cut_short,
            figures,
            in_all,
            never_admitted: never_admitted(from, play),
        });
        Self {
            columns: columns.collect(),
        }
    }
}

/// Returns the time from the first arrival to the last end under any of the policies.
fn common_span(figures: &[Figures]) -> (SignedDuration, SignedDuration) {
    let series = figures.iter().map(|figures| &figures.series);
    let moving = series.filter(|series| series.interval_seconds > 0.0);
    let spans = moving.map(|series| (series.begins_seconds, series.ends_seconds()));
    let span = spans.reduce(|(begins, ends), (other_begins, other_ends)| {
        (begins.min(other_begins), ends.max(other_ends))
    });
    let (begins, ends) = span.unwrap_or_default();
    (
        SignedDuration::from_secs_f64(begins),
        SignedDuration::from_secs_f64(ends),
    )
}

fn never_admitted(from: SignedDuration, play: &Play) -> Vec<NeverAdmitted> {
    let came = play.history.unadmitted.iter().filter(|unadmitted| {
        let arrived = play.history.job_records[unadmitted.job].arrived;
        arrived.is_some_and(|arrived| arrived >= from)
    });
    let told = came.map(|unadmitted| NeverAdmitted {
        name: play.scenario.jobs[unadmitted.job].name.clone(),
        why: unadmitted.to_string(),
        unadmitted: unadmitted.clone(),
    });
    told.collect()
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.columns.iter().map(|column| line(&column.name));
        let mut table = Table::named([String::new()].into_iter().chain(names).collect());
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
            let makespan = span(figures.makespan_seconds);
            match figures.work_alone_seconds {
                Some(alone) => format!("{makespan} ({})", span(alone)),
                None => makespan,
            }
        });
        self.add_compared(
            table,
            ["completion mean/p99", "  of the {} done in all"],
            |column| told(column.figures.completion, completion),
            |column| told(column.in_all.completion, completion),
        );
        self.add_compared(
            table,
            ["slowdown mean/p99", "  of the {} done in all"],
            |column| slowdown(column.figures.slowdown),
            |column| slowdown(column.in_all.slowdown),
        );
        self.add_row(table, "evicted (preempted)", |figures| {
            format!("{} ({})", figures.evictions, figures.preemptions)
        });
        if self.columns.iter().any(|column| column.figures.reversals > 0) {
            self.add_row(table, "  reversals", |figures| figures.reversals.to_string());
        }
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
        self.add_compared(
            table,
            ["wait mean/p50/p90/p99", "  of the {} admitted in all"],
            |column| told(column.figures.wait, spread),
            |column| told(column.in_all.wait, spread),
        );
        for (kind, by, by_in_all) in WAITS_BY {
            for key in self
                .keys(by)
                .into_iter()
                .filter(|keys| keys.len() <= MOST_ROWS)
                .flatten()
            {
                let of =
                    |by: &BTreeMap<String, Spread>| told(by.get(key).copied().unwrap_or_default(), spread);
                self.add_compared(
                    table,
                    [&format!("  {kind} {key}"), "    of the {} admitted in all"],
                    |column| of(by(&column.figures)),
                    |column| of(by_in_all(&column.in_all)),
                );
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
            self.add_used(table, resource);
            add(table, "  lost work", &|of| hours(resource, of.wasted));
            if self.has_unused(resource) {
                add(table, "  idle (fragmented)", &|of| match of.unused {
                    Some(of) => format!(
                        "{} ({})",
                        hours(resource, of.idle),
                        hours(resource, of.fragmented)
                    ),
                    None => "-".into(),
                });
            }
            add(table, "  Jain's index", &|of| format!("{:.3}", of.jain_index));
        }
    }

    /// Adds who used how much of a resource, and what part of all that is, by queue and by user.
    fn add_used(&self, table: &mut Table, resource: &str) {
        for (kind, by) in USED_BY {
            let names: BTreeSet<&String> = self
                .columns
                .iter()
                .flat_map(|column| by(&column.figures).keys())
                .collect();
            if names.len() < 2 || names.len() > MOST_ROWS {
                continue;
            }
            for name in names {
                self.add_row(table, &format!("  {kind} {name}"), |figures| {
                    let used = by(figures).get(name).and_then(|of| of.get(resource));
                    used.map_or("-".into(), |used| {
                        format!(
                            "{} ({:.1} %)",
                            hours(resource, used.allocated),
                            used.share * 100.0
                        )
                    })
                });
            }
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

    /// Adds a row of a figure, and where it is of different jobs in columns that have it another, of those who are in all.
    fn add_compared(
        &self,
        table: &mut Table,
        [title, title_in_all]: [&str; 2],
        of: impl Fn(&Column) -> Told,
        of_in_all: impl Fn(&Column) -> Told,
    ) {
        let each = self.columns.iter().map(of);
        let (counts, cells): (Vec<_>, Vec<_>) = each.unzip();
        add(table, title, cells.into_iter());
        let in_all: Vec<Told> = self.columns.iter().map(of_in_all).collect();
        let common = in_all.first().map_or(0, |(count, _)| *count);
        if compares(&counts, common) {
            let title = title_in_all.replace("{}", &common.to_string());
            add(table, &title, in_all.into_iter().map(|(_, cell)| cell));
        }
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
        for (kind, by, _) in WAITS_BY {
            let count = self.keys(by).map_or(0, |keys| keys.len());
            if count > MOST_ROWS {
                writeln!(f, "`-o json` tells the waits of each {kind}: there are {count}")?;
            }
        }
        self.columns
            .iter()
            .try_for_each(|column| column.write_never_admitted(f))?;
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

impl Column {
    /// Says who was never admitted, those of one reason together.
    fn write_never_admitted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for never in &self.never_admitted {
            by_reason.entry(&never.why).or_default().push(&never.name);
        }
        for (why, names) in by_reason {
            let named: Vec<String> = names.iter().take(MOST_NAMED).map(|name| line(name)).collect();
            let more = match names.len().saturating_sub(MOST_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let (policy, named) = (line(&self.name), named.join(", "));
            writeln!(f, "{policy}: never admitted: {named}{more}: {}", line(why))?;
        }
        Ok(())
    }
}

/// Of how many jobs a figure is, and the figure in words.
type Told = (usize, String);

type WaitsBy = fn(&Figures) -> &BTreeMap<String, Spread>;
type WaitsByInAll = fn(&InAll) -> &BTreeMap<String, Spread>;

const WAITS_BY: [(&str, WaitsBy, WaitsByInAll); 3] = [
    ("queue", |of| &of.wait_by_queue, |of| &of.wait_by_queue),
    ("class", |of| &of.wait_by_class, |of| &of.wait_by_class),
    ("user", |of| &of.wait_by_user, |of| &of.wait_by_user),
];

fn told(spread: Spread, words: fn(Spread) -> String) -> Told {
    (spread.count, words(spread))
}

/// Returns the mean and the p99.
fn slowdown(slowdown: Slowdown) -> Told {
    let words = match slowdown.count {
        0 => "-".into(),
        _ => format!("{:.2}/{:.2}", slowdown.mean, slowdown.p99),
    };
    (slowdown.count, words)
}

type UsedBy = fn(&Figures) -> &BTreeMap<String, BTreeMap<String, ResourceUsage>>;

const USED_BY: [(&str, UsedBy); 2] = [
    ("queue", |figures| &figures.used_by_queue),
    ("user", |figures| &figures.used_by_user),
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
    let told = told.map(span);
    if told.iter().all(|other| *other == told[0]) {
        return told[0].clone();
    }
    told.join("/")
}

/// Returns the mean and the p99.
fn completion(spread: Spread) -> String {
    if spread.count == 0 {
        return "-".into();
    }
    format!("{}/{}", span(spread.mean_seconds), span(spread.p99_seconds))
}

/// Returns units times seconds in hours of the unit in which people count the resource.
pub(super) fn hours(resource: &str, unit_seconds: f64) -> String {
    let (per_unit, unit) = match resource {
        "cpu" => (1000.0, "cpu-h"),
        "memory" => (f64::from(1 << 30), "GiB-h"),
        "nvidia.com/gpu" => (1.0, "GPU-h"),
        _ => (1.0, "h"),
    };
    let hours = unit_seconds / per_unit / 3600.0;
    match hours {
        0.0 => format!("0 {unit}"),
        _ if hours < 10.0 => format!("{hours:.2} {unit}"),
        _ if hours < 1000.0 => format!("{hours:.1} {unit}"),
        _ => format!("{hours:.0} {unit}"),
    }
}

/// Returns what a job or queue has, as people write it.
pub(super) fn amounts(amounts: &BTreeMap<String, Quantity>) -> String {
    let written = amounts.iter().map(|(resource, quantity)| {
        let amount = amount_in_words(resource, *quantity);
        format!("{amount} {resource}")
    });
    written.collect::<Vec<_>>().join(", ")
}

/// Returns whether those who are in all columns tell more than all of each: there are some, and others in a column.
fn compares(counts: &[usize], common: usize) -> bool {
    let told = counts.iter().filter(|count| **count > 0);
    common > 0 && told.clone().count() > 1 && told.into_iter().any(|count| *count != common)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_are_in_all_columns_have_a_row_where_there_are_any_and_they_are_not_all() {
        for (why, counts, common, expected) in [
            ("others are in each", &[5, 4][..], 3, true),
            ("they are all", &[4, 4], 4, false),
            ("one column has nobody, so nobody is in all", &[5, 4, 0], 0, false),
            ("there is nothing to compare with", &[5, 0], 0, false),
        ] {
            assert_eq!(compares(counts, common), expected, "{why}");
        }
    }
}
