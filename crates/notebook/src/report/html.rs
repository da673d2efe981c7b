//! The page: what the template is given, with every text already fit to be shown.

use askama::Template;
use blueproof_core::{
    attempt::CellEnd,
    diagnostic::{Code, Diagnostic},
    domain::{Bytes, Cpus, Failure, FailureClass, GpuUse, Limit, Verdict},
};
use jiff::SignedDuration;

use super::{
    Cell, ExpectationReport, ExpectationResult, Report,
    chart::{chart, number},
    markdown::markdown,
    markup::{self, Html},
    output::output,
};
use crate::{ipynb::CellKind, text::shown};

/// The most markup that the outputs of one cell may become: a cell can show any number of them.
const CELL_BYTES: usize = 16 * 1024 * 1024;

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    title: String,
    verdict: VerdictView,
    subtitle: Vec<(&'static str, String)>,
    earlier: Vec<(String, &'static str)>,
    caveats: Vec<String>,
    failure: Option<FailureView>,
    expectations: Vec<ExpectationView>,
    stages: Vec<StageView>,
    metrics: Vec<MetricView>,
    notices: Vec<NoticeView>,
    times: Vec<TimeView>,
    cells: Vec<CellView>,
    usage: Vec<(&'static str, String)>,
    environment: Option<EnvironmentView>,
    artifacts: Vec<(String, String)>,
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
    message: String,
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

/// A bar of the overview.
struct TimeView {
    position: u32,
    label: String,
    first_line: String,
    took: String,
    percent: String,
    class: &'static str,
}

struct CellView {
    position: u32,
    label: String,
    class: &'static str,
    state: Option<&'static str>,
    took: Option<String>,
    gpu: Option<String>,
    source: Source,
    outputs: Vec<Html>,
    omitted: usize,
}

enum Source {
    Code(Vec<CodeLine>),
    Prose(Html),
    Raw(String),
}

struct CodeLine {
    text: String,
    class: &'static str,
}

struct EnvironmentView {
    python: String,
    key: String,
    tool: String,
    packages: Vec<(String, String)>,
}

/// Returns the page.
pub(super) fn render(report: &Report) -> String {
    let failure = match &report.verdict {
        Verdict::Failed(failure) => Some(&**failure),
        Verdict::Passed | Verdict::Stopped => None,
    };
    let page = Page {
        title: format!("{} {}", report.blueprint, id(report).1),
        verdict: verdict(&report.verdict),
        subtitle: subtitle(report),
        earlier: report
            .earlier
            .iter()
            .map(|earlier| (earlier.attempt.to_string(), verdict(&earlier.verdict).word))
            .collect(),
        caveats: report.caveats.iter().map(|caveat| shown(caveat)).collect(),
        failure: failure.map(failure_view),
        expectations: report.expectations.iter().map(expectation).collect(),
        stages: report.stages.iter().map(stage).collect(),
        metrics: metrics(report),
        notices: report.notices.iter().map(notice).collect(),
        times: times(&report.cells),
        cells: report.cells.iter().map(|cell| cell_view(cell, failure)).collect(),
        usage: usage(report),
        environment: report.environment.as_ref().map(|environment| EnvironmentView {
            python: shown(&environment.python),
            key: shown(&environment.key),
            tool: shown(&environment.tool),
            packages: environment
                .packages
                .iter()
                .map(|package| (shown(&package.name), shown(&package.version)))
                .collect(),
        }),
        artifacts: report
            .artifacts
            .iter()
            .map(|artifact| (shown(&artifact.path.display().to_string()), size(artifact.size)))
            .collect(),
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

/// Returns the word for a class of failures, as it stands in verdicts everywhere.
pub(super) fn class_name(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Notebook => "notebook",
        FailureClass::Workload => "workload",
        FailureClass::Expectation => "expectation",
        FailureClass::Timeout(Limit::Queue) => "timeout: queue",
        FailureClass::Timeout(Limit::Startup) => "timeout: startup",
        FailureClass::Timeout(Limit::Cell) => "timeout: cell",
        FailureClass::Timeout(Limit::Run) => "timeout: run",
        FailureClass::Timeout(Limit::Execution) => "timeout: execution",
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

/// Returns what the page is about, and its id.
fn id(report: &Report) -> (&'static str, String) {
    match report.attempt {
        Some(attempt) => ("attempt", attempt.to_string()),
        None => ("run", report.run.to_string()),
    }
}

fn subtitle(report: &Report) -> Vec<(&'static str, String)> {
    let mut rows = vec![id(report)];
    rows.extend(
        report
            .profile
            .as_ref()
            .map(|profile| ("profile", profile.as_str().to_owned())),
    );
    rows.extend(
        report
            .head
            .as_ref()
            .map(|head| ("commit", head.short().to_owned())),
    );
    rows.push(("notebook", shown(&report.notebook.display().to_string())));
    rows.push((
        "began",
        report.began_at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    ));
    rows.push(("took", duration(report.took)));
    rows
}

fn failure_view(failure: &Failure) -> FailureView {
    let place = failure.cell.as_ref();
    let line = |line: Option<u32>| line.map_or_else(String::new, |line| format!(", line {line}"));
    FailureView {
        class: class_name(failure.class),
        notice: notice(&failure.diagnostic),
        cell: place.map(|place| (place.cell, line(place.line))),
        source: place
            .and_then(|place| place.source.as_deref())
            .map(markup::source),
    }
}

fn notice(diagnostic: &Diagnostic) -> NoticeView {
    NoticeView {
        code: diagnostic.code,
        message: shown(&diagnostic.message),
        place: diagnostic.place.as_ref().map(|place| shown(&place.to_string())),
        causes: diagnostic.causes.iter().map(|cause| shown(cause)).collect(),
        hints: diagnostic.hints.iter().map(|hint| shown(hint)).collect(),
    }
}

fn expectation(expectation: &ExpectationReport) -> ExpectationView {
    let (mark, class, actual) = match &expectation.result {
        ExpectationResult::Met => ("✓", "pass", None),
        ExpectationResult::Unmet(diagnostic) => ("✗", "fail", Some(shown(&diagnostic.message))),
        ExpectationResult::Unchecked => ("–", "skip", Some("not looked at".to_owned())),
    };
    ExpectationView {
        text: shown(&expectation.text),
        mark,
        class,
        actual,
    }
}

fn stage(stage: &super::StageReport) -> StageView {
    StageView {
        name: shown(&stage.name),
        detail: shown(&stage.detail),
        took: stage.took.map_or_else(|| "–".to_owned(), duration),
    }
}

fn metrics(report: &Report) -> Vec<MetricView> {
    let view = |(name, metric): (&String, _)| {
        let metric: &blueproof_core::domain::MetricResult = metric;
        MetricView {
            name: shown(name),
            last: metric.last.map_or_else(|| "no finite number".to_owned(), number),
            count: metric.count,
            chart: chart(&shown(name), metric),
        }
    };
    report.metrics.iter().map(view).collect()
}

fn times(cells: &[Cell]) -> Vec<TimeView> {
    let code = || cells.iter().filter(|cell| cell.kind == CellKind::Code);
    let longest = code()
        .filter_map(|cell| cell.took)
        .max()
        .unwrap_or_default()
        .as_secs_f64();
    let view = |cell: &Cell| {
        let took = cell.took.unwrap_or_default().as_secs_f64();
        let share = if longest > 0.0 { took / longest } else { 0.0 };
        let first = cell.first_line().unwrap_or_default();
        TimeView {
            position: cell.position,
            label: cell.label(),
            first_line: markup::source(first).chars().take(100).collect(),
            took: cell.took.map_or_else(|| "did not run".to_owned(), duration),
            percent: format!("{:.1}", (share * 100.0).clamp(0.0, 100.0)),
            class: state(cell.end).0,
        }
    };
    code().map(view).collect()
}

fn state(end: Option<CellEnd>) -> (&'static str, Option<&'static str>) {
    match end {
        Some(CellEnd::Ok) => ("pass", None),
        Some(CellEnd::RaisedAsAllowed) => ("pass", Some("raised, as its tag allows")),
        Some(CellEnd::Raised) => ("fail", Some("raised")),
        Some(CellEnd::Interrupted) => ("fail", Some("interrupted")),
        Some(CellEnd::KernelDied) => ("fail", Some("the kernel died")),
        Some(CellEnd::Unknown) => ("fail", Some("not known how it ended")),
        None => ("skip", None),
    }
}

fn cell_view(cell: &Cell, failure: Option<&Failure>) -> CellView {
    let (class, said) = state(cell.end);
    let here = failure
        .and_then(|failure| failure.cell.as_ref())
        .filter(|place| place.cell == cell.position);
    let source = match cell.kind {
        CellKind::Code => Source::Code(code_lines(&cell.source, here.and_then(|place| place.line))),
        CellKind::Markdown => Source::Prose(markdown(&cell.source)),
        CellKind::Raw => Source::Raw(markup::source(&cell.source)),
    };
    let mut outputs = Vec::new();
    let mut room = CELL_BYTES;
    for shown in cell.outputs.iter().map(output).filter(|shown| !shown.is_empty()) {
        if shown.len() > room {
            break;
        }
        room -= shown.len();
        outputs.push(shown);
    }
    let visible = cell.outputs.len().saturating_sub(outputs.len());
    CellView {
        position: cell.position,
        label: cell.label(),
        class: match (cell.kind, here) {
            (CellKind::Code, Some(_)) => "fail",
            (CellKind::Code, None) => class,
            (CellKind::Markdown | CellKind::Raw, _) => "text",
        },
        state: match (cell.kind, cell.end) {
            (CellKind::Code, None) => Some("did not run"),
            _ => said,
        },
        took: cell.took.map(duration),
        gpu: cell.gpu.as_ref().and_then(gpu_of_cell),
        source,
        omitted: if room < CELL_BYTES / 2 { visible } else { 0 },
        outputs,
    }
}

fn code_lines(source: &str, marked: Option<u32>) -> Vec<CodeLine> {
    let source = markup::source(source);
    let line = |(nth, text): (u32, &str)| CodeLine {
        text: text.to_owned(),
        class: if Some(nth) == marked { "here" } else { "" },
    };
    (1..).zip(source.split('\n')).map(line).collect()
}

/// Returns what the run used, and how long it took; nothing of one that did not run.
fn usage(report: &Report) -> Vec<(&'static str, String)> {
    let Some(usage) = &report.usage else {
        return Vec::new();
    };
    let cores = |cpus: Cpus| format!("{} granted", number(cpus.as_millis() as f64 / 1000.0));
    let mut rows = vec![
        ("kernel", duration(usage.duration)),
        ("cpu", cores(usage.cpu_granted)),
    ];
    rows.push((
        "cpu time",
        usage.cpu_time.map_or_else(|| "not read".to_owned(), duration),
    ));
    let figures = &report.figures;
    rows.extend(figures.average_cpu.map(|ratio| ("cpu busy", percent(ratio))));
    rows.push((
        "memory peak",
        usage.memory_peak.map_or_else(|| "not read".to_owned(), size),
    ));
    rows.extend(usage.gpu.iter().flat_map(gpu_usage));
    let times = [
        ("queue to admission", figures.average_queue_seconds),
        ("admission to start", figures.average_start_seconds),
        ("start to verdict", figures.average_build_seconds),
    ];
    let times = times.into_iter().filter_map(|(name, seconds)| {
        let time = SignedDuration::try_from_secs_f64(seconds?).ok()?;
        Some((name, duration(time)))
    });
    rows.extend(times);
    rows
}

/// Returns what was made of devices. What was not seen is said to be so.
fn gpu_usage(gpu: &GpuUse) -> [(&'static str, String); 5] {
    let not_read = || "not read".to_owned();
    let seen = (gpu.seen_seconds + 0.5 < gpu.allocated_seconds)
        .then(|| format!(" of {} that were seen", gpu_seconds(gpu.seen_seconds)));
    let busy = gpu
        .busy_ratio()
        .map(|ratio| percent(ratio) + seen.as_deref().unwrap_or(""));
    [
        (
            "gpu",
            format!("{} for {}", gpu.devices, gpu_seconds(gpu.allocated_seconds)),
        ),
        ("gpu busy", busy.unwrap_or_else(not_read)),
        ("gpu peak", gpu.peak_utilization.map_or_else(not_read, percent)),
        ("gpu memory peak", gpu.peak_memory.map_or_else(not_read, size)),
        (
            "gpu energy",
            gpu.joules
                .map_or_else(not_read, |joules| format!("{joules:.0} J")),
        ),
    ]
}

/// Returns what a cell made of devices, in a word or two.
fn gpu_of_cell(gpu: &GpuUse) -> Option<String> {
    Some(format!("gpu {}", percent(gpu.busy_ratio()?)))
}

fn gpu_seconds(seconds: f64) -> String {
    format!("{seconds:.1} GPU-s")
}

fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

/// Returns a length of time in the units that its reader thinks in.
fn duration(took: SignedDuration) -> String {
    let millis = took.as_millis();
    match millis {
        ..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{:.1} s", took.as_secs_f64()),
        60_000..3_600_000 => format!("{}m{:02}s", millis / 60_000, millis / 1000 % 60),
        _ => format!("{}h{:02}m", millis / 3_600_000, millis / 60_000 % 60),
    }
}

fn size(bytes: Bytes) -> String {
    let mut amount = bytes.0 as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].iter();
    let mut unit = units.next().expect("there are units");
    while amount >= 1024.0
        && let Some(larger) = units.next()
    {
        amount /= 1024.0;
        unit = larger;
    }
    if *unit == "B" {
        format!("{amount} B")
    } else {
        format!("{amount:.1} {unit}")
    }
}
