//! What to do about a failure, where the failure says enough to know.

use super::{Facts, exception::Exception};
use crate::{executor::SilentKind, process::End};

/// Modules whose package has another name.
const PACKAGES: [(&str, &str); 10] = [
    ("Crypto", "pycryptodome"),
    ("PIL", "pillow"),
    ("attr", "attrs"),
    ("bs4", "beautifulsoup4"),
    ("cv2", "opencv-python-headless"),
    ("dateutil", "python-dateutil"),
    ("dotenv", "python-dotenv"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("yaml", "pyyaml"),
];

const SIGKILL: i32 = 9;

/// Returns hints for an exception; `line` is its causal line, which can be a child process' own.
pub(crate) fn exception(facts: &Facts<'_>, chain: &[Exception], line: &str) -> Vec<String> {
    let mut hints = Vec::new();
    let missing = chain.iter().find_map(|error| error.missing.as_deref());
    if let Some(module) = missing.or_else(|| missing_in(line)) {
        let top = module.split('.').next().unwrap_or(module);
        let package = PACKAGES
            .iter()
            .find(|(name, _)| *name == top)
            .map_or(top, |(_, package)| package);
        hints.push(format!("add `{package}` to spec.env.requirements"));
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
