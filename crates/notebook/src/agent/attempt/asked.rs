//! What a blueprint asks for: each is seen to, refused before anything starts, or told with the verdict as not enforced.

use std::collections::HashSet;

use blueproof_core::{
    attempt::AttemptSpec,
    diagnostic::{Code, Diagnostic, Place},
    domain::{Bytes, Gpus, Usage},
};

use crate::{
    agent::halt::{Step, config},
    ipynb::Notebook,
    plan::{Expectation, Network, Plan},
    process::Unlimited,
};

/// A kernel's own threads do a little more than its notebook's.
const TOLERANCE: f64 = 1.1;

/// Refuses what cannot be done here at all.
pub(super) fn refuse(notebook: &Notebook, plan: &Plan, spec: &AttemptSpec) -> Step<()> {
    let place = || Place::file(plan.notebook.display().to_string());
    if !plan.parameters.is_empty()
        && let Some(refused) = notebook.refuses_parameters()
    {
        return Err(config(refused.at(place())));
    }
    if !plan.allow_empty
        && let Some(nothing) = notebook.nothing_runs()
    {
        return Err(config(nothing.at(place())));
    }
    match &spec.devices {
        Some(devices) if (devices.len() as u64) < u64::from(spec.granted.gpu.0) => {
            let message = format!("asked for GPUs: {}; given: {}", spec.granted.gpu.0, devices.len());
            Err(config(Diagnostic::error(Code::DevicesTaken, message)))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the parameters whose name stands in no cell: their values change nothing.
pub(super) fn unread(notebook: &Notebook, plan: &Plan) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let sources: Vec<&str> = notebook.code().map(|cell| cell.source.as_str()).collect();
    let words: HashSet<&str> = sources
        .iter()
        .flat_map(|source| source.split(|c| !is_word(c)))
        .collect();
    let names = plan
        .parameters
        .keys()
        .filter(|name| !words.contains(name.as_str()));
    names.cloned().collect()
}

/// Says that values were put into the notebook that nothing reads.
pub(super) fn without_effect(unread: &[String]) -> Option<Diagnostic> {
    if unread.is_empty() {
        return None;
    }
    let message = format!(
        "no cell reads the parameters {}: their values change nothing",
        unread.join(", ")
    );
    let warning = Diagnostic::warning(Code::ParameterUnused, message);
    Some(warning.hint(
        "give them the names that the cell tagged `parameters` has, or take them out of spec.parameters",
    ))
}

/// Returns what was asked for and nobody saw to, for whoever goes by the verdict.
pub(super) fn not_enforced(
    plan: &Plan,
    spec: &AttemptSpec,
    usage: &Usage,
    unlimited: &Unlimited,
) -> Vec<Diagnostic> {
    let network = match &plan.network {
        Network::Any => None,
        Network::None => Some("no network was asked for (spec.network)".to_owned()),
        Network::Hosts(hosts) => Some(format!(
            "network only to {} was asked for (spec.network)",
            hosts.join(", ")
        )),
    };
    let gpu = (spec.granted.gpu > Gpus(0) && spec.devices.is_none()).then(|| {
        format!(
            "GPUs were asked for: {} (driver.gpu); which there are is not known",
            spec.granted.gpu.0
        )
    });
    let jobs = plan.expectations.contains(&Expectation::TrainJobs);
    let jobs =
        jobs.then(|| "TrainJobs were to complete (expect.trainJobs); nobody looked at them".to_owned());
    let unlimited = exceeded(spec, usage, unlimited);
    let all = [network, gpu, jobs]
        .into_iter()
        .flatten()
        .map(|asked| (asked, None));
    all.chain(unlimited)
        .map(|(asked, why)| {
            let message = format!("{asked}; on this machine that is not enforced");
            let warning = Diagnostic::warning(Code::NotEnforced, message);
            why.into_iter().fold(warning, Diagnostic::because)
        })
        .collect()
}

/// Returns what was used beyond what was granted, each with why it was not limited.
fn exceeded(
    spec: &AttemptSpec,
    usage: &Usage,
    unlimited: &Unlimited,
) -> impl Iterator<Item = (String, Option<String>)> {
    let granted = spec.granted.memory;
    let memory = usage
        .memory_peak
        .filter(|peak| granted > Bytes(0) && *peak > granted);
    let memory =
        memory.map(|peak| format!("{granted} of memory were asked for (driver.memory), {peak} were used"));
    let cores = spec.granted.cpu.as_cores();
    let cpu = usage
        .average_cores()
        .filter(|used| cores > 0.0 && *used > cores * TOLERANCE);
    let cpu = cpu.map(|used| {
        format!(
            "{} cpu were asked for (driver.cpu), {used:.1} were used on average",
            spec.granted.cpu
        )
    });
    let told = |asked: Option<String>, why: &Option<String>| asked.zip(why.clone());
    let all = [told(cpu, &unlimited.cpu), told(memory, &unlimited.memory)];
    all.into_iter().flatten().map(|(asked, why)| (asked, Some(why)))
}
