//! What the notebook's kernel and its TrainJobs need.

use std::{collections::BTreeMap, ops::RangeInclusive, str::FromStr};

use blueproof_core::domain::{Bytes, Cpus};

use super::{Draft, scalar};
use crate::{
    analysis::{Analysis, Backend, Job, Traced, Value},
    blueprint::{LEAST_MEMORY, is_resource},
    text::line,
};

/// More nodes or GPUs than anyone has: a slip, or something that is no count.
const MOST_COUNTED: u32 = 10_000;

/// Writes `driver` and `workload`.
pub(super) fn write(draft: &mut Draft, analysis: &Analysis) {
    draft.line(1, "driver:");
    draft.line(2, "cpu: 1");
    draft.line(2, "memory: 2Gi");
    let Some(job) = analysis
        .jobs
        .iter()
        .filter(|job| job.backend != Backend::Process)
        .max_by(by_size)
    else {
        if let Some(job) = analysis.jobs.first() {
            draft.remark(
                2,
                format!(
                    "cell {} trains in a process of its own beside the kernel: count it in here",
                    job.made.at.cell
                ),
            );
        }
        return;
    };
    if let Some(local) = analysis.jobs.iter().find(|job| job.backend == Backend::Process) {
        draft.remark(
            2,
            format!(
                "cell {} trains in a process beside the kernel, too: count it in here",
                local.made.at.cell
            ),
        );
    }
    workload(draft, analysis, job);
}

fn by_size(a: &&Job, b: &&Job) -> std::cmp::Ordering {
    let number = |value: Option<&Traced>| value.and_then(Traced::number).unwrap_or(0.0);
    let size = |job: &Job| {
        let nodes = number(job.nodes.as_ref()).max(1.0);
        let cpu = job
            .resources
            .iter()
            .find(|(name, _)| name == "cpu")
            .map(|(_, value)| value);
        (
            nodes * number(job.gpu().map(|(_, value)| value)),
            nodes * number(cpu),
        )
    };
    let (a, b) = (size(a), size(b));
    a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
}

fn workload(draft: &mut Draft, analysis: &Analysis, job: &Job) {
    draft.remarked(
        1,
        "workload:",
        format!("the TrainJob of cell {}", job.made.at.cell),
    );
    match &job.nodes {
        Some(nodes) => count(draft, analysis, 2, "nodes", nodes, 1),
        None => draft.line(2, "nodes: 1"),
    }
    let known = job.resources.iter().filter(|(name, _)| key_of(name).is_some());
    let further = further(job);
    if known.clone().next().is_some() || !further.is_empty() {
        draft.line(2, "perNode:");
    }
    let mut done = Vec::new();
    for (name, asked) in known {
        let key = key_of(name).expect("filtered above");
        if done.contains(&key) {
            continue;
        }
        done.push(key);
        match key {
            "gpu" => count(draft, analysis, 3, key, asked, 0),
            "cpu" => amount(
                draft,
                analysis,
                key,
                asked,
                &(Cpus::default()..=Cpus::cores(1 << 20)),
            ),
            _ => amount(draft, analysis, key, asked, &(LEAST_MEMORY..=Bytes(1 << 50))),
        }
    }
    if !further.is_empty() {
        draft.line(3, "resources:");
    }
    for (name, asked) in &further {
        count(draft, analysis, 4, name, asked, 1);
    }
    let is_left_out = |name: &str| key_of(name).is_none() && kubernetes_name(name).is_none();
    for (name, asked) in job.resources.iter().filter(|(name, _)| is_left_out(name)) {
        draft.remark(
            2,
            format!(
                "cell {} asks for {}, which is not counted",
                asked.at.cell,
                line(name)
            ),
        );
    }
    let whole = Traced::new(Value::Made(job.made.clone()), job.made.at);
    if let Some(nodes) = whole.find(&["num_data_nodes"]).and_then(Traced::number) {
        draft.remark(
            2,
            format!(
                "cell {} also starts {nodes} nodes for the data cache, which are not counted",
                job.made.at.cell
            ),
        );
    }
}

fn key_of(resource: &str) -> Option<&'static str> {
    let is_gpu = |name: &str| ["gpu", "gpus", "nvidia.com/gpu"].contains(&name);
    match resource {
        "cpu" => Some("cpu"),
        "memory" => Some("memory"),
        other if is_gpu(&other.to_ascii_lowercase()) => Some("gpu"),
        _ => None,
    }
}

/// Returns the Kubernetes name of a resource without a key of its own; the SDK calls NVIDIA's MIG instances without a domain.
fn kubernetes_name(resource: &str) -> Option<String> {
    let name = match resource.starts_with("mig-") {
        true => format!("nvidia.com/{resource}"),
        false => resource.to_owned(),
    };
    let is_counted = name.contains('/') && key_of(&name).is_none();
    (is_counted && is_resource(&name)).then_some(name)
}

/// Returns the further resources that a job asks for, each once.
fn further(job: &Job) -> BTreeMap<String, &Traced> {
    let named = job.resources.iter();
    named
        .filter_map(|(name, asked)| Some((kubernetes_name(name)?, asked)))
        .collect()
}

/// Writes a count: the parameter that it is the value of, or the number.
fn count(draft: &mut Draft, analysis: &Analysis, depth: usize, key: &str, value: &Traced, least: u32) {
    let number: Option<u32> = value.written().and_then(|text| text.trim().parse().ok());
    match (
        parameter(analysis, value),
        number.filter(|number| (least..MOST_COUNTED).contains(number)),
    ) {
        (Some(name), Some(_)) => draft.of_cell(depth, format!("{key}: \"{{{{{name}}}}}\""), value.at),
        (None, Some(number)) => draft.of_cell(depth, format!("{key}: {number}"), value.at),
        (_, None) => draft.remark(
            depth,
            format!("{key}: cell {} computes it; fill it in", value.at.cell),
        ),
    }
}

/// Writes an amount that can be meant, in the notebook's own words.
fn amount<T: FromStr + PartialOrd>(
    draft: &mut Draft,
    analysis: &Analysis,
    key: &str,
    value: &Traced,
    meant: &RangeInclusive<T>,
) {
    let text = value.written().unwrap_or_default().trim().to_owned();
    if !text.parse::<T>().is_ok_and(|amount| meant.contains(&amount)) {
        draft.remark(
            3,
            format!(
                "{key}: cell {} gives no amount that can be read; fill it in",
                value.at.cell
            ),
        );
        return;
    }
    match parameter(analysis, value) {
        Some(name) => draft.of_cell(3, format!("{key}: \"{{{{{name}}}}}\""), value.at),
        None => draft.of_cell(3, format!("{key}: {}", number_or_text(&text)), value.at),
    }
}

fn number_or_text(text: &str) -> String {
    let number = text.parse::<f64>().is_ok();
    let unit = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.');
    if number || unit {
        text.to_owned()
    } else {
        scalar(text)
    }
}

/// Returns the parameter whose value this is. Only those of the notebook's parameters cell are in the draft.
fn parameter<'v>(analysis: &Analysis, value: &'v Traced) -> Option<&'v str> {
    let name = value.via.as_deref()?;
    analysis.is_parameter(name).then_some(name)
}
