//! What to do about a failure, where the failure says enough to know.

use std::path::Path;

use super::{Facts, exception::Exception};
use crate::{
    executor::SilentKind,
    modules::{Origin, is_local, origin},
    process::End,
};

/// So many folders above the blueprint's are looked at for modules that a run lacks.
const LEVELS_ABOVE: usize = 3;

const SIGKILL: i32 = 9;

/// Returns hints for an exception; `line` is its causal line, which can be a child process' own.
pub(crate) fn exception(facts: &Facts<'_>, chain: &[Exception], line: &str) -> Vec<String> {
    let mut hints = Vec::new();
    let missing = chain.iter().find_map(|error| error.missing.as_deref());
    if let Some(module) = missing.or_else(|| missing_in(line)) {
        hints.push(module_missing(module, &facts.spec.checkout));
    }
    if chain.iter().any(|error| error.is("StdinNotImplementedError")) {
        hints.push("nobody can answer: take the value from a parameter instead of `input()`".into());
    }
    let said = chain
        .iter()
        .map(Exception::line)
        .chain([line.to_owned()])
        .collect::<Vec<_>>()
        .join("\n");
    if is_network(&said) {
        // Whatever spec.network says: on this machine it is not enforced, and so not to blame.
        hints.push(
            "the host could not be reached from this machine; try it by hand, or bring the data along".into(),
        );
    }
    if chain
        .iter()
        .any(|error| error.is("FileNotFoundError") && error.message.contains("'../"))
    {
        hints.push(
            "a run has a copy of the blueprint's folder alone: what lies outside of it is not there".into(),
        );
    }
    hints.extend(memory(facts, chain, &said));
    let workers = facts.run.aftermath.silent.iter();
    let mut workers = workers.filter(|silent| silent.what == SilentKind::Worker);
    if workers.any(|worker| worker.status == -i64::from(SIGKILL)) {
        hints.extend(killed(facts));
    }
    if is_device_count(&said) {
        let gpus = facts.spec.granted.gpu.0;
        hints.push(format!(
            "{gpus} GPUs were granted; ask for more, or emulate devices: XLA_FLAGS=--xla_force_host_platform_device_count=N"
        ));
    }
    hints
}

/// Returns hints for a kernel that ended by itself.
pub(crate) fn kernel_end(facts: &Facts<'_>, end: End) -> Vec<String> {
    if end == End::Killed(SIGKILL) {
        killed(facts).into_iter().collect()
    } else {
        Vec::new()
    }
}

/// Says what can be said of a SIGKILL, where no limit of memory is known to have sent it.
fn killed(facts: &Facts<'_>) -> Option<String> {
    if facts.limits_hit.memory.is_some() {
        return None;
    }
    let granted = facts.spec.granted.memory;
    let peak = facts.memory_peak.map(|peak| format!("{} MiB", peak.0 >> 20));
    let peak = peak.unwrap_or_else(|| "an unknown amount".into());
    Some(format!(
        "SIGKILL does not say who sent it; often it is a lack of memory: {peak} at most was seen, {granted} was granted"
    ))
}

fn memory(facts: &Facts<'_>, chain: &[Exception], said: &str) -> Option<String> {
    let is_gpu = [
        "CUDA out of memory",
        "CUDA_ERROR_OUT_OF_MEMORY",
        "RESOURCE_EXHAUSTED",
        "HIP out of memory",
    ]
    .iter()
    .any(|words| said.contains(words));
    if is_gpu {
        return Some(
            "the GPU's memory was full: make batches smaller, or ask for a larger card under spec.workload"
                .into(),
        );
    }
    let is_host = chain.iter().any(|error| error.is("MemoryError")) || said.contains("MemoryError");
    is_host.then(|| {
        format!(
            "{} was granted; ask for more under spec.driver.memory",
            facts.spec.granted.memory
        )
    })
}

/// Says what to do about a module that is missing, where the blueprint lies in `folder`.
fn module_missing(module: &str, folder: &Path) -> String {
    let top = module.split('.').next().unwrap_or(module);
    // What is well known as a package is looked for nowhere else.
    let above = || {
        folder
            .ancestors()
            .skip(1)
            .take(LEVELS_ABOVE)
            .find(|above| is_local(top, &[above]))
    };
    match origin(top) {
        Origin::Always => {
            format!("`{top}` is a part of Python that this one lacks; ask for another by spec.env.python")
        }
        Origin::Shared => format!("add the package that brings `{module}` to spec.env.requirements"),
        Origin::Package(package) => format!("add `{package}` to spec.env.requirements"),
        Origin::Guessed(package) => match above() {
            Some(above) => format!(
                "`{top}` lies in {}, and a run has a copy of the blueprint's folder alone: put the blueprint there, and name the notebook from there",
                above.display()
            ),
            None => format!(
                "add `{package}` to spec.env.requirements, or put the module beside the notebook if it is your own"
            ),
        },
    }
}

fn missing_in(line: &str) -> Option<&str> {
    line.split_once("No module named '")?.1.split('\'').next()
}

fn is_network(said: &str) -> bool {
    const WORDS: [&str; 12] = [
        "Name or service not known",
        "Temporary failure in name resolution",
        "nodename nor servname",
        "Network is unreachable",
        "No route to host",
        "Connection refused",
        "Connection timed out",
        "Failed to resolve",
        "Could not resolve host",
        "Max retries exceeded",
        "ConnectError",
        "getaddrinfo failed",
    ];
    WORDS.iter().any(|words| said.contains(words))
}

fn is_device_count(said: &str) -> bool {
    const WORDS: [&str; 6] = [
        "No CUDA GPUs are available",
        "invalid device ordinal",
        "Number of devices",
        "number of devices",
        "not enough devices",
        "no CUDA-capable device",
    ];
    WORDS.iter().any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_missing_module_is_looked_for_above_the_blueprint_before_it_is_called_a_package() {
        let project = tempfile::TempDir::new().expect("a temporary folder can be made");
        let blueprint = project.path().join("notebooks/first");
        for folder in ["notebooks/first", "src", "torch"] {
            fs::create_dir_all(project.path().join(folder)).expect("folders can be made");
        }
        fs::write(project.path().join("notebooks/helper.py"), "").expect("files can be written");
        for (module, said) in [
            ("src.data", "put the blueprint there"),
            (
                "helper",
                "/notebooks, and a run has a copy of the blueprint's folder alone",
            ),
            ("torch", "add `torch` to"),
            ("sklearn.svm", "add `scikit-learn` to"),
            ("google.cloud", "add the package that brings `google.cloud` to"),
            ("azure", "add the package that brings `azure` to"),
            ("distutils", "a part of Python that this one lacks"),
            (
                "unheard_of",
                "add `unheard_of` to spec.env.requirements, or put the module beside",
            ),
        ] {
            let hint = module_missing(module, &blueprint);
            assert!(hint.contains(said), "{module}: {hint}");
        }
    }
}
