//! What is different from the attempt of the same blueprint that passed last, in a few lines.
//!
//! Only what may explain a difference, and differences that matter, are told: the report has the rest.

use anstyle::{AnsiColor, Style};
use blueproof_core::{
    domain::{Ending, RunState},
    view::{ParameterChange, RunView},
};
use blueproof_notebook::report::{CellChange, CellEdit, Comparison, PackageChange};
use jiff::Timestamp;

use super::text::{counted, duration, figure};
use crate::output::{self, ago};

const DIM: Style = AnsiColor::Blue.on_default().bold();
const BOLD: Style = Style::new().bold();

/// More packages, cells and metrics are counted.
const MOST_NAMED: usize = 4;

/// Returns the lines below a verdict; nothing of a run that passed as the last one did.
pub(crate) fn render(run: &RunView, comparison: &Comparison, now: Timestamp) -> String {
    let (causes, effects) = (causes(comparison), effects(comparison));
    let has_passed = run.state == RunState::Ended(Ending::Passed);
    if has_passed && effects.is_empty() {
        return String::new();
    }
    let mut text = note("last passed", &last_passed(comparison, now));
    match causes.is_empty() {
        false => text.push_str(&note("since then", &causes.join(", "))),
        true if comparison.is_same_question() => {
            text.push_str(&note("since then", "nothing that is known differs"));
        }
        true => {}
    }
    if !effects.is_empty() {
        text.push_str(&note("then and now", &effects.join(", ")));
    }
    text
}

fn note(label: &str, text: &str) -> String {
    format!("   {DIM}={DIM:#} {BOLD}{label}{BOLD:#}: {}\n", output::line(text))
}

fn last_passed(comparison: &Comparison, now: Timestamp) -> String {
    let mut text = format!("{}, {}", comparison.attempt.run, ago(comparison.ended_at, now));
    if let Some(revision) = &comparison.revision {
        text.push_str(&format!(", at commit {revision}"));
    }
    text
}

/// Returns what of the question differs: content, parameters, packages, machine.
fn causes(comparison: &Comparison) -> Vec<String> {
    let mut causes: Vec<String> = comparison.parameters.iter().map(parameter).collect();
    causes.extend(content(comparison));
    let packages = comparison.packages.as_deref().unwrap_or_default();
    causes.extend(named(packages.iter().map(package), "package"));
    let facts = comparison.environment.iter();
    causes.extend(facts.map(|fact| format!("{} {} → {}", fact.name, fact.then, fact.now)));
    causes
}

/// Returns which cells were edited, or that something else of the folder was.
fn content(comparison: &Comparison) -> Vec<String> {
    let cells = comparison.cells.as_deref().unwrap_or_default();
    let edited = cells
        .iter()
        .filter(|cell| cell.edit != CellEdit::Same && cell.cell > 0);
    let edited: Vec<String> = edited.map(edit).collect();
    if edited.is_empty() && !comparison.is_same_content {
        return vec!["the folder's content changed".into()];
    }
    named(edited, "cell")
}

fn edit(cell: &CellChange) -> String {
    let edit = match cell.edit {
        CellEdit::Added => "added",
        CellEdit::Edited | CellEdit::Same => "edited",
    };
    format!("cell {} {edit}", cell.cell)
}

/// Returns metrics and times that differ by more than they do by chance.
fn effects(comparison: &Comparison) -> Vec<String> {
    let metrics = comparison.notable_metrics().map(|metric| {
        let text = |value: Option<f64>| value.map_or_else(|| "not a number".into(), figure);
        let percent = metric.percent.map(|percent| format!(" ({percent:+.1} %)"));
        let (then, now) = (text(metric.then), text(metric.now));
        format!("{} {then} → {now}{}", metric.name, percent.unwrap_or_default())
    });
    let cells = comparison.notable_cells().into_iter().filter_map(|cell| {
        let (then, now) = (cell.took.then?, cell.took.now?);
        Some(format!(
            "{} {} → {}",
            cell_name(cell.cell),
            duration(then),
            duration(now)
        ))
    });
    let mut effects = named(metrics, "metric");
    effects.extend(named(cells, "cell"));
    effects
}

fn cell_name(position: u32) -> String {
    match position {
        0 => "the parameters".into(),
        position => format!("cell {position}"),
    }
}

fn parameter(change: &ParameterChange) -> String {
    let value = |value: &Option<serde_json::Value>| match value {
        Some(value) => output::shorten(&value.to_string(), 40),
        None => "not given".into(),
    };
    format!("{} {} → {}", change.name, value(&change.then), value(&change.now))
}

fn package(change: &PackageChange) -> String {
    match (&change.then, &change.now) {
        (Some(then), Some(now)) => format!("{} {then} → {now}", change.name),
        (None, now) => format!("{} {} added", change.name, now.as_deref().unwrap_or_default()),
        (Some(_), None) => format!("{} removed", change.name),
    }
}

/// Returns the first few, and how many more there are.
fn named(all: impl IntoIterator<Item = String>, kind: &str) -> Vec<String> {
    let mut named: Vec<String> = all.into_iter().collect();
    let more = named.len().saturating_sub(MOST_NAMED);
    named.truncate(MOST_NAMED);
    if more > 0 {
        named.push(counted(more, &format!("more {kind}")));
    }
    named
}

#[cfg(test)]
mod tests {
    use blueproof_core::domain::Revision;
    use blueproof_notebook::report::{Change, FactChange, MetricChange};
    use jiff::SignedDuration;
    use serde_json::json;

    use super::*;
    use crate::show::samples;

    fn ended(ending: Ending) -> RunView {
        let mut views = samples::views().into_iter();
        views
            .find(|view| view.state == RunState::Ended(ending))
            .expect("the story has one")
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("small")
    }

    fn same() -> Comparison {
        let view = ended(Ending::Passed);
        let took = Some(SignedDuration::from_secs(12));
        Comparison {
            attempt: view.attempts[0].id,
            ended_at: at(0),
            revision: None,
            head: view.subject.head,
            is_same_content: true,
            parameters: Vec::new(),
            took: Change {
                then: took,
                now: took,
            },
            cells: Some(Vec::new()),
            metrics: Vec::new(),
            packages: Some(Vec::new()),
            environment: Vec::new(),
        }
    }

    fn plain(run: &RunView, comparison: &Comparison) -> String {
        let text = render(run, comparison, at(7200));
        anstream::adapter::strip_str(&text).to_string()
    }

    fn package(name: &str, then: Option<&str>, now: Option<&str>) -> PackageChange {
        PackageChange {
            name: name.into(),
            then: then.map(str::to_owned),
            now: now.map(str::to_owned),
        }
    }

    #[test]
    fn a_run_that_failed_is_told_what_changed_since_the_last_that_passed() {
        let packages = [
            package("torch", Some("2.4.0"), Some("2.5.0")),
            package("six", Some("1.0"), None),
            package("rich", None, Some("14.0")),
            package("a\x1b[2J", Some("1"), Some("2")),
            package("b", Some("1"), Some("2")),
        ];
        let comparison = Comparison {
            revision: Some(Revision {
                commit: "1a2b3c4d".repeat(5),
                branch: Some("main".into()),
                has_uncommitted_changes: false,
            }),
            is_same_content: false,
            parameters: vec![ParameterChange {
                name: "epochs".into(),
                then: Some(json!(3)),
                now: None,
            }],
            cells: Some(vec![CellChange {
                cell: 3,
                edit: CellEdit::Edited,
                took: Change {
                    then: Some(SignedDuration::from_millis(1200)),
                    now: Some(SignedDuration::from_millis(4100)),
                },
            }]),
            metrics: vec![MetricChange {
                name: "loss".into(),
                then: Some(0.5),
                now: Some(0.6),
                difference: Some(0.1),
                percent: Some(20.0),
            }],
            packages: Some(packages.to_vec()),
            environment: vec![FactChange {
                name: "python".into(),
                then: "3.11.2".into(),
                now: "3.12.4".into(),
            }],
            ..same()
        };

        let run = comparison.attempt.run;
        assert_eq!(
            plain(&ended(Ending::Failed), &comparison),
            format!(
                "   = last passed: {run}, 2h ago, at commit 1a2b3c4 on main\n   \
                 = since then: epochs 3 → not given, cell 3 edited, torch 2.4.0 → 2.5.0, six removed, rich 14.0 added, \
                 a\\u{{1b}}[2J 1 → 2, 1 more package, python 3.11.2 → 3.12.4\n   \
                 = then and now: loss 0.5 → 0.6 (+20.0 %), cell 3 1.2 s → 4.1 s\n"
            )
        );
    }

    #[test]
    fn a_failure_of_the_same_question_is_said_to_be_one_and_a_pass_like_the_last_needs_no_word() {
        let told = plain(&ended(Ending::Failed), &same());
        assert!(
            told.ends_with("= since then: nothing that is known differs\n"),
            "{told}"
        );
        assert_eq!(plain(&ended(Ending::Passed), &same()), "");

        let unknown = Comparison {
            packages: None,
            ..same()
        };
        let told = plain(&ended(Ending::Failed), &unknown);
        assert!(!told.contains("since then"), "{told}");
    }
}
