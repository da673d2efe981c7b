//! What a blueprint asks for: each is seen to, refused before anything starts, or told with the verdict as not enforced.

use blueproof_core::{
    attempt::{AttemptSpec, SandboxMode},
    domain::{Bytes, Gpus, Resources, Usage},
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use blueproof_queue::amount_in_words;

use crate::{
    agent::halt::{Step, config},
    analysis::reads::Reads,
    ipynb::Notebook,
    plan::{Expectation, Network, Plan},
    process::Unlimited,
};

/// A kernel's own threads do a little more than its notebook's.
const TOLERANCE: f64 = 1.1;

/// Refuses what cannot be done here at all.
pub(super) fn refuse(notebook: &Notebook, plan: &Plan, spec: &AttemptSpec) -> Step<()> {
    let place = || SourceLocation::file(plan.notebook.display().to_string());
    if let Some(name) = plan.parameters.keys().find(|name| !is_identifier(name)) {
        let message = format!("{name:?} is no name of a parameter");
        let refused = Diagnostic::error(Code::ParameterValue, message).at(place());
        return Err(config(refused.because(
            "a parameter is a variable of the notebook: its name is one of Python's",
        )));
    }
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

/// The name becomes a part of the injected cell: whoever asks for a run must not write anything else into it.
fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    let begins = characters
        .next()
        .is_some_and(|first| first == '_' || first.is_alphabetic());
    begins && characters.all(|character| character == '_' || character.is_alphanumeric())
}

/// Returns the parameters that no tagged cell has and no cell reads: their values change nothing. Of those that are
/// `overridden` that is told already.
pub(super) fn unread(reads: &Reads, plan: &Plan, overridden: &[Overridden]) -> Vec<String> {
    let is_told = |name: &str| overridden.iter().any(|overridden| overridden.name == name);
    let names = plan.parameters.keys();
    names
        .filter(|name| reads.leave_out(name) && !is_told(name))
        .cloned()
        .collect()
}

/// A parameter to which the notebook itself gives a value before anything can have read the one that was put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Overridden {
    name: String,
    /// The number of the cell that does so.
    cell: u32,
}

/// Returns the parameters that are surely overridden: what first has to do with them, behind the place where values are put, is
/// an assignment of another value, which nothing makes depend on anything.
pub(super) fn overridden(reads: &Reads, plan: &Plan) -> Vec<Overridden> {
    let overridden = |name: &String| {
        Some(Overridden {
            cell: reads.undone_by(name)?,
            name: name.clone(),
        })
    };
    plan.parameters.keys().filter_map(overridden).collect()
}

/// Says that the notebook gives parameters values of its own.
pub(super) fn without_effect_by(overridden: &[Overridden]) -> impl Iterator<Item = Diagnostic> {
    overridden.iter().map(|Overridden { name, cell }| {
        let message = format!(
            "cell {cell} gives the parameter {name} a value of its own before anything reads it: what was asked for changes nothing"
        );
        Diagnostic::warning(Code::ParameterUnused, message).hint(format!(
            "tag one cell `parameters`, and let it be the only one that assigns {name}"
        ))
    })
}

/// Returns what was asked for and nobody saw to, for whoever goes by the verdict.
pub(super) fn not_enforced(
    plan: &Plan,
    spec: &AttemptSpec,
    usage: &Usage,
    unlimited: &Unlimited,
) -> Vec<Diagnostic> {
    let network = match (spec.sandbox, &plan.network) {
        // A sandbox has none, and hosts by name are refused there.
        (SandboxMode::Requested | SandboxMode::Required, _) | (SandboxMode::Off, Network::Any) => None,
        (SandboxMode::Off, Network::None) => Some("no network was asked for (spec.network)".to_owned()),
        (SandboxMode::Off, Network::Hosts(hosts)) => Some(format!(
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
    let unlimited = exceeded(&spec.granted, usage, unlimited);
    let all = [network, gpu, jobs]
        .into_iter()
        .flatten()
        .map(|asked| (asked, None));
    all.chain(counted_only(spec))
        .chain(unlimited)
        .map(|(asked, why)| {
            let message = format!("{asked}; on this machine that is not enforced");
            let warning = Diagnostic::warning(Code::NotEnforced, message);
            why.into_iter().fold(warning, Diagnostic::because)
        })
        .collect()
}

/// Returns the further resources that its queue has counted and that nothing gives to the notebook.
fn counted_only(spec: &AttemptSpec) -> impl Iterator<Item = (String, Option<String>)> {
    spec.further.iter().map(|(resource, amount)| {
        let asked = format!(
            "{resource} was asked for: {} (spec.driver, spec.workload)",
            amount_in_words(resource, *amount)
        );
        let why = "its queue counts it, and nothing hands it out";
        (asked, Some(why.to_owned()))
    })
}

/// Returns what was used beyond what was granted, each with why it was not limited.
fn exceeded(
    granted: &Resources,
    usage: &Usage,
    unlimited: &Unlimited,
) -> impl Iterator<Item = (String, Option<String>)> {
    let most = granted.memory;
    let memory = usage.memory_peak.filter(|peak| most > Bytes(0) && *peak > most);
    let memory = memory.map(|peak| {
        format!(
            "{most} of memory were asked for (driver.memory), {} were used",
            peak.rounded()
        )
    });
    let cores = granted.cpu.as_cores();
    let cpu = usage
        .average_cores()
        .filter(|used| cores > 0.0 && *used > cores * TOLERANCE);
    let cpu = cpu.map(|used| {
        format!(
            "{} cpu were asked for (driver.cpu), {used:.1} were used on average",
            granted.cpu
        )
    });
    let told = |asked: Option<String>, why: &Option<String>| asked.zip(why.clone());
    let all = [told(cpu, &unlimited.cpu), told(memory, &unlimited.memory)];
    all.into_iter().flatten().map(|(asked, why)| (asked, Some(why)))
}

#[cfg(test)]
mod tests {
    use blueproof_core::domain::Cpus;
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn what_was_used_beyond_what_was_granted_is_told_where_nothing_limits_it() {
        let granted = Resources {
            cpu: Cpus::cores(1),
            memory: Bytes(1 << 30),
            ..Resources::default()
        };
        let usage = |cpu_seconds, memory| Usage {
            duration: SignedDuration::from_secs(10),
            cpu_granted: granted.cpu,
            cpu_time: Some(SignedDuration::from_secs(cpu_seconds)),
            memory_peak: Some(Bytes(memory)),
            gpu: None,
        };
        let unlimited = Unlimited {
            memory: Some("no controller".into()),
            cpu: Some("no controller".into()),
            processes: None,
        };
        let told = |usage: &Usage, unlimited: &Unlimited| {
            let all = exceeded(&granted, usage, unlimited);
            all.map(|(asked, _)| asked).collect::<Vec<_>>()
        };
        assert_eq!(
            told(&usage(30, 2 << 30), &unlimited),
            [
                "1 cpu were asked for (driver.cpu), 3.0 were used on average",
                "1Gi of memory were asked for (driver.memory), 2Gi were used",
            ]
        );
        assert_eq!(told(&usage(10, 1 << 30), &unlimited), [""; 0]);
        assert_eq!(told(&usage(30, 2 << 30), &Unlimited::default()), [""; 0]);
    }
}
