//! What Prometheus' own checker, from Debian's package `prometheus`, says of the rules: that they can be read, that the five
//! figures come out as they were worked out by hand, and that each alert is told when it should be and not otherwise.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use blueproof_core::{
    domain::{Bytes, GpuUse},
    figures::{Figures, RunUsage},
};
use real_prometheus::program;
use serde::Deserialize;

/// What is not tested where there is no promtool.
const WHAT: &str = "rules and alerts with promtool";

const RULES: [&str; 3] = ["recording-rules.yaml", "alerts-runs.yaml", "alerts-devices.yaml"];
const CASES: [&str; 3] = ["figures.yaml", "runs.yaml", "devices.yaml"];

fn rules() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../monitoring");
    RULES.iter().map(|file| folder.join(file)).collect()
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    CASES.iter().map(|file| folder.join(file)).collect()
}

fn promtool(words: [&str; 2], files: Vec<PathBuf>) {
    let Some(mut promtool) = program("promtool", WHAT) else {
        return;
    };
    let output = promtool.args(words).args(files).output().expect("it starts");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn prometheus_can_read_the_rules() {
    promtool(["check", "rules"], rules());
}

#[test]
fn figures_and_alerts_come_out_as_the_cases_say() {
    promtool(["test", "rules"], cases());
}

/// A file of rules, as far as it is of interest here.
#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    alert: Option<String>,
    record: Option<String>,
}

/// A file of cases.
#[derive(Deserialize)]
struct Cases {
    tests: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    alert_rule_test: Vec<AlertCase>,
    #[serde(default)]
    promql_expr_test: Vec<FigureCase>,
}

#[derive(Deserialize)]
struct AlertCase {
    alertname: String,
    exp_alerts: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct FigureCase {
    expr: String,
    exp_samples: Vec<Sample>,
}

#[derive(Deserialize)]
struct Sample {
    labels: String,
    value: f64,
}

fn read<T: serde::de::DeserializeOwned>(files: Vec<PathBuf>) -> Vec<T> {
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.into_iter().map(read).collect()
}

fn all_rules() -> Vec<Rule> {
    let files: Vec<Groups> = read(rules());
    let groups = files.into_iter().flat_map(|file| file.groups);
    groups.flat_map(|group| group.rules).collect()
}

fn all_cases() -> Vec<Case> {
    let files: Vec<Cases> = read(cases());
    files.into_iter().flat_map(|file| file.tests).collect()
}

#[test]
fn each_alert_has_a_case_in_which_it_is_told_and_one_in_which_it_is_not() {
    let mut wanted = BTreeSet::new();
    for alert in all_rules().into_iter().filter_map(|rule| rule.alert) {
        wanted.insert((alert.clone(), true));
        wanted.insert((alert, false));
    }
    let cases = all_cases().into_iter().flat_map(|case| case.alert_rule_test);
    let there: BTreeSet<_> = cases
        .map(|case| (case.alertname, !case.exp_alerts.is_empty()))
        .collect();
    assert_eq!(there, wanted);
}

/// The runs of `figures.yaml`, for the crate that defines the figures.
fn runs() -> [(&'static str, RunUsage); 4] {
    let run = |cpu: f64, of: f64, queue: f64, build: f64| RunUsage {
        cpu_seconds: Some(cpu),
        allocated_cpu_seconds: Some(of),
        queue_seconds: Some(queue),
        build_seconds: Some(build),
        ..RunUsage::default()
    };
    let gpu = |busy: f64, seen: f64, allocated: f64, peak: f64, memory: u64| GpuUse {
        busy_seconds: Some(busy),
        seen_seconds: seen,
        allocated_seconds: allocated,
        peak_utilization: Some(peak),
        peak_memory: Some(Bytes(memory)),
        ..GpuUse::default()
    };
    let with = |run: RunUsage, gpu: GpuUse| RunUsage {
        gpu: Some(gpu),
        ..run
    };
    let third = run(400.0, 1000.0, 20.0, 600.0);
    let fourth = run(120.0, 680.0, 100.0, 1000.0);
    [
        ("nano-lm", run(60.0, 120.0, 10.0, 100.0)),
        ("nano-lm", run(20.0, 200.0, 60.0, 140.0)),
        (
            "small-gpt",
            with(third, gpu(300.0, 600.0, 600.0, 0.9, 40_000_000_000)),
        ),
        (
            "small-gpt",
            with(fourth, gpu(100.0, 1000.0, 2000.0, 0.7, 60_000_000_000)),
        ),
    ]
}

/// Returns the figures of some runs, by what our rules record them as.
fn recorded(level: &str, labels: &str, runs: &[RunUsage]) -> BTreeMap<String, f64> {
    let figures = Figures::of(runs);
    let memory = figures.peak_gpu_memory_bytes.map(|bytes| bytes as f64);
    // Stages are not known by blueprint.
    let queue = figures.average_queue_seconds.filter(|_| labels.is_empty());
    let named = [
        ("run_cpu_busy:ratio1d", figures.average_cpu),
        ("run_gpu_busy:ratio1d", figures.average_gpu),
        ("run_gpu_peak:ratio1d", figures.peak_gpu),
        ("run_gpu_peak:bytes1d", memory),
        ("run_queue:seconds1d", queue),
        ("run:seconds1d", figures.average_build_seconds),
    ];
    let known = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
    known
        .map(|(name, value)| (format!("{level}:{name}{labels}"), value))
        .collect()
}

#[test]
fn the_figures_worked_out_by_hand_are_those_of_the_crate_that_defines_them() {
    let of = |blueprint: &str| {
        let runs = runs()
            .into_iter()
            .filter(|(name, _)| *name == blueprint || blueprint.is_empty());
        runs.map(|(_, used)| used).collect::<Vec<_>>()
    };
    let mut expected = recorded("blueproof", "", &of(""));
    for (blueprint, profile) in [("nano-lm", "smoke"), ("small-gpt", "gpu")] {
        let labels = format!("{{blueprint=\"{blueprint}\",profile=\"{profile}\"}}");
        expected.extend(recorded("blueprint", &labels, &of(blueprint)));
    }
    let cases = all_cases().into_iter().flat_map(|case| case.promql_expr_test);
    let samples = cases.flat_map(|case| case.exp_samples);
    let worked_out: BTreeMap<_, _> = samples
        .map(|sample| (sample.labels, sample.value))
        .filter(|(labels, _)| labels.contains(":run"))
        .collect();
    assert_eq!(worked_out, expected);
}

#[test]
fn each_recorded_series_has_a_case() {
    let cases: Vec<_> = all_cases()
        .into_iter()
        .flat_map(|case| case.promql_expr_test)
        .collect();
    let asked: BTreeSet<_> = cases.iter().map(|case| case.expr.as_str()).collect();
    let rules = all_rules();
    // What alerts compare with is tried by their cases.
    let compared = [
        "blueproof:stage:seconds_p95_7d",
        "blueproof:gpu_utilization:ratio10m",
    ];
    for series in rules.iter().filter_map(|rule| rule.record.as_deref()) {
        assert!(asked.contains(series) || compared.contains(&series), "{series}");
    }
}
