//! What a run was of, what it ran in, and what it used.

use blueproof_core::domain::{Cpus, GpuUse, Head};
use jiff::SignedDuration;

use super::{
    Brief,
    words::{duration, percent, size, time},
};
use crate::{
    environment::EnvironmentReport,
    report::{Report, chart::number},
    text::shown,
};

/// The most characters of a parameter's value that are shown.
const VALUE_CHARS: usize = 200;

pub(super) struct EnvironmentView {
    pub(super) python: String,
    pub(super) key: String,
    pub(super) tool: String,
    pub(super) packages: Vec<(String, String)>,
}

/// Returns what the page is about, and its id.
pub(super) fn id(report: &Report) -> (&'static str, String) {
    match report.attempt {
        Some(attempt) => ("attempt", attempt.to_string()),
        None => ("run", report.run.to_string()),
    }
}

/// Returns what was run, from where, for whom, where and when.
pub(super) fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        id(report),
        ("notebook", shown(&report.notebook.display().to_string())),
    ];
    let profile = report.profile.as_ref();
    rows.extend(profile.map(|profile| ("profile", profile.as_str().to_owned())));
    rows.extend(content(report));
    rows.extend(
        report
            .pull_request
            .map(|change| ("pull request", format!("#{change}"))),
    );
    rows.push(("asked by", shown(&report.requested_by.to_string())));
    rows.push(("began", time(report.began_at)));
    rows.push(("took", duration(report.took)));
    if let Some(machine) = &report.machine {
        rows.push(("machine", shown(&machine.host)));
    }
    let version = report.version.as_ref();
    rows.extend(version.map(|version| ("blueproof", shown(version))));
    rows
}

fn content(report: &Report) -> Vec<(&'static str, String)> {
    let revision = report.revision.as_ref();
    let revision = revision.map(|revision| ("commit", shown(&revision.to_string())));
    let head = match &report.head {
        Head::Commit(_) => ("commit", report.head.short().to_owned()),
        Head::Snapshot(_) => ("content", report.head.short().to_owned()),
    };
    revision.into_iter().chain([head]).collect()
}

/// Returns the values of the blueprint's parameters.
pub(super) fn parameters(report: &Report) -> Vec<(String, String)> {
    let value = |value: &serde_json::Value| Brief(&shown(&value.to_string()), VALUE_CHARS).to_string();
    let parameters = report.parameters.iter();
    parameters
        .map(|(name, given)| (shown(name), value(given)))
        .collect()
}

pub(super) fn environment(environment: &EnvironmentReport) -> EnvironmentView {
    let packages = environment.packages.iter();
    EnvironmentView {
        python: shown(&environment.python),
        key: shown(&environment.key),
        tool: shown(&environment.tool),
        packages: packages
            .map(|package| (shown(&package.name), shown(&package.version)))
            .collect(),
    }
}

/// Returns what the run used, and how long it took; nothing of one that did not run.
pub(super) fn usage(report: &Report) -> Vec<(&'static str, String)> {
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

fn gpu_seconds(seconds: f64) -> String {
    format!("{seconds:.1} GPU-s")
}
