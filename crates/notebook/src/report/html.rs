//! The page: what the template is given, with every text already fit to be shown.

mod about;
mod cells;
mod files;
mod since;
mod words;

use std::fmt;

use askama::Template;
use blueproof_core::domain::{Failure, FailureClass, MetricResult, TimeLimit, Verdict};
use blueproof_diagnostic::{Code, Diagnostic};

use super::{
    Bounds, ExpectationReport, ExpectationResult, Report, StageReport,
    chart::{chart, number},
    markup::{self, Html},
};
use crate::text::shown;
use about::EnvironmentView;
use cells::{CellView, IndexEntry, Source, TimeView};
use files::FileView;
use since::SinceView;
use words::duration;

/// The most of a message that stands out. What is longer stands in a box of its own.
const HEADLINE_CHARS: usize = 160;

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    title: String,
    verdict: VerdictView,
    about: Vec<(&'static str, String)>,
    parameters: Vec<(String, String)>,
    earlier: Vec<(String, &'static str)>,
    caveats: Vec<String>,
    failure: Option<FailureView>,
    since: Option<SinceView>,
    expectations: Vec<ExpectationView>,
    stages: Vec<StageView>,
    metrics: Vec<MetricView>,
    notices: Vec<NoticeView>,
    index: Vec<IndexEntry>,
    times: Vec<TimeView>,
    cells: Vec<CellView>,
    files: Vec<FileView>,
    usage: Vec<(&'static str, String)>,
    environment: Option<EnvironmentView>,
    reproduce: String,
}

struct VerdictView {
    word: &'static str,
    class: &'static str,
}

struct FailureView {
    class: &'static str,
    notice: NoticeView,
    cell: Option<(u32, String)>,
    source: Option<String>,
}

struct NoticeView {
    code: Code,
    /// What stands out.
    headline: String,
    /// The whole message, where it is more than that.
    message: Option<String>,
    place: Option<String>,
    causes: Vec<String>,
    hints: Vec<String>,
}

struct ExpectationView {
    text: String,
    mark: &'static str,
    class: &'static str,
    actual: Option<String>,
}

struct StageView {
    name: String,
    detail: String,
    took: String,
}

struct MetricView {
    name: String,
    last: String,
    count: u64,
    chart: Option<Html>,
}

/// Returns the page.
pub(super) fn render(report: &Report) -> String {
    let failure = match &report.verdict {
        Verdict::Failed(failure) => Some(&**failure),
        Verdict::Passed | Verdict::Stopped => None,
    };
    let page = Page {
        title: format!("{} {}", report.blueprint, about::id(report).1),
        verdict: verdict(&report.verdict),
        about: about::facts(report),
        parameters: about::parameters(report),
        earlier: report
            .earlier
            .iter()
            .map(|earlier| (earlier.attempt.to_string(), verdict(&earlier.verdict).word))
            .collect(),
        caveats: report.caveats.iter().map(|caveat| shown(caveat)).collect(),
        failure: failure.map(|failure| failure_view(failure, report)),
        since: report
            .comparison
            .as_ref()
            .map(|comparison| since::view(comparison, report)),
        expectations: report.expectations.iter().map(expectation).collect(),
        stages: report.stages.iter().map(stage).collect(),
        metrics: metrics(report),
        notices: report.notices.iter().map(notice).collect(),
        index: cells::index(&report.cells),
        times: cells::times(&report.cells, report.comparison.as_ref()),
        cells: cells::views(&report.cells, failure),
        files: files::views(report),
        usage: about::usage(report),
        environment: report.environment.as_ref().map(about::environment),
        reproduce: report
            .reproduce
            .iter()
            .map(|command| shown(command))
            .collect::<Vec<_>>()
            .join("\n"),
    };
    page.render()
        .expect("the template writes to a text, which cannot fail")
}

/// Returns the word for a class of failures, as it stands in verdicts, and on the page but for one: see [`to_blame`].
pub(super) fn class_name(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Notebook => "notebook",
        FailureClass::Workload => "workload",
        FailureClass::Expectation => "expectation",
        FailureClass::Timeout(TimeLimit::Queue) => "timeout: queue",
        FailureClass::Timeout(TimeLimit::Startup) => "timeout: startup",
        FailureClass::Timeout(TimeLimit::Cell) => "timeout: cell",
        FailureClass::Timeout(TimeLimit::Run) => "timeout: run",
        FailureClass::Timeout(TimeLimit::Execution) => "timeout: execution",
        FailureClass::Infrastructure => "infrastructure",
        FailureClass::Config => "config",
    }
}

fn verdict(verdict: &Verdict) -> VerdictView {
    let (word, class) = match verdict {
        Verdict::Passed => ("Passed", "pass"),
        Verdict::Failed(failure) => (failed(failure.class), "fail"),
        Verdict::Stopped => ("Stopped", "stop"),
    };
    VerdictView { word, class }
}

/// Returns in a word or two what became of a run that failed: not everything is the notebook's own failure.
fn failed(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Notebook | FailureClass::Workload => "Failed",
        FailureClass::Expectation => "Not as expected",
        FailureClass::Timeout(_) => "Timed out",
        FailureClass::Infrastructure => "Infrastructure failed",
        FailureClass::Config => "Refused",
    }
}

/// Returns who is to blame, for a person who may not know what blueproof calls a workload.
fn to_blame(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Workload => "what it started",
        FailureClass::Notebook
        | FailureClass::Expectation
        | FailureClass::Timeout(_)
        | FailureClass::Infrastructure
        | FailureClass::Config => class_name(class),
    }
}

fn failure_view(failure: &Failure, report: &Report) -> FailureView {
    let place = failure.cell.as_ref();
    let line = |line: Option<u32>| line.map_or_else(String::new, |line| format!(", line {line}"));
    let mut notice = notice(&failure.diagnostic);
    let is_unmet = |one: &ExpectationReport| matches!(one.result, ExpectationResult::Unmet(_));
    if failure.class == FailureClass::Expectation && report.expectations.iter().any(is_unmet) {
        // The table of what is expected says each of them.
        notice.message = None;
        notice.headline = notice.headline.trim_end_matches(':').to_owned();
    }
    FailureView {
        class: to_blame(failure.class),
        notice,
        cell: place.map(|place| (place.cell, line(place.line))),
        source: place
            .and_then(|place| place.source.as_deref())
            .map(markup::source),
    }
}

fn notice(diagnostic: &Diagnostic) -> NoticeView {
    let message = shown(&diagnostic.message);
    let first = message.lines().next().unwrap_or_default();
    let headline: String = first.chars().take(HEADLINE_CHARS).collect();
    let is_whole = headline.len() == message.trim_end().len();
    NoticeView {
        code: diagnostic.code,
        headline: if headline.len() < first.len() {
            headline + "…"
        } else {
            headline
        },
        message: (!is_whole).then_some(message),
        place: diagnostic.place.as_ref().map(|place| shown(&place.to_string())),
        causes: diagnostic.causes.iter().map(|cause| shown(cause)).collect(),
        hints: diagnostic.hints.iter().map(|hint| shown(hint)).collect(),
    }
}

fn expectation(expectation: &ExpectationReport) -> ExpectationView {
    let (mark, class, actual) = match &expectation.result {
        ExpectationResult::Met { actual } => ("✓", "pass", actual.as_deref().map(shown)),
        ExpectationResult::Unmet(diagnostic) => ("✗", "fail", Some(shown(&diagnostic.message))),
        ExpectationResult::Unchecked => ("–", "skip", Some("not looked at".to_owned())),
        ExpectationResult::NotLookedAt(why) => ("–", "skip", Some(shown(why))),
    };
    ExpectationView {
        text: shown(&expectation.text),
        mark,
        class,
        actual,
    }
}

fn stage(stage: &StageReport) -> StageView {
    StageView {
        name: shown(&stage.name),
        detail: shown(&stage.detail),
        took: stage.took.map_or_else(|| "–".to_owned(), duration),
    }
}

fn metrics(report: &Report) -> Vec<MetricView> {
    let view = |(name, metric): (&String, &MetricResult)| MetricView {
        name: shown(name),
        last: metric.last.map_or_else(|| "no finite number".to_owned(), number),
        count: metric.count,
        chart: chart(&shown(name), metric, &bounds(report, name)),
    };
    report.metrics.iter().map(view).collect()
}

/// Returns the bounds that are expected of a metric.
fn bounds<'r>(report: &'r Report, metric: &str) -> Vec<&'r Bounds> {
    let all = report.expectations.iter();
    all.filter_map(|expectation| expectation.bounds.as_ref())
        .filter(|bounds| bounds.metric == metric)
        .collect()
}

/// A text in a few characters, the rest left out.
struct Brief<'a>(&'a str, usize);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text, most) = self;
        match text.char_indices().nth(*most) {
            Some((end, _)) => write!(f, "{}…", &text[..end]),
            None => f.write_str(text),
        }
    }
}
