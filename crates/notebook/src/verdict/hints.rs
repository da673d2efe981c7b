//! What to do about a failure, where the failure says enough to know.

use std::path::Path;

use blueproof_core::domain::Bytes;

use super::Facts;
use crate::{
    exception::Exception,
    executor::SilentKind,
    modules::{Origin, is_local, origin},
    process::{End, total_memory},
};

/// So many folders above the blueprint's are looked at for modules that a run lacks.
const LEVELS_ABOVE: usize = 3;

const SIGKILL: i32 = 9;

/// Returns hints for an exception; `line` is its causal line, which can be a child process' own.
pub(crate) fn exception(facts: &Facts<'_>, chain: &[Exception], line: &str) -> Vec<String> {
    let mut hints = Vec::new();
    let missing = chain.iter().find_map(|error| error.missing.as_deref());
    if let Some(module) = missing.or_else(|| missing_in(line)) {
        hints.push(module_missing(module, facts.spec.source.folder()));
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
    hints.extend(missing_in_home(chain, facts.home));
    hints.extend(chain.iter().find_map(unset_variable));
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
    is_host.then(|| host_memory(facts.spec.granted.memory, said, total_memory()))
}

/// Says what to do where memory did not suffice. What this machine lacks altogether need not be asked of it.
fn host_memory(granted: Bytes, said: &str, machine: Option<Bytes>) -> String {
    let asked = asked_for(said);
    match (asked, machine) {
        (Some(asked), Some(machine)) if asked >= machine => format!(
            "{asked} were asked for at once, and this machine has {machine} in all: hold less at once, such as a part of the data or smaller numbers"
        ),
        (_, _) => format!("{granted} was granted; ask for more under spec.driver.memory"),
    }
}

/// Returns what NumPy or PyTorch says that it asked for: `Unable to allocate 7.28 TiB for an array`.
fn asked_for(said: &str) -> Option<Bytes> {
    let amount = ["Unable to allocate ", "tried to allocate "]
        .iter()
        .find_map(|words| Some(said.split_once(words)?.1))?;
    let mut words = amount.split_whitespace();
    let number: f64 = words.next()?.parse().ok()?;
    let unit = words.next()?.trim_end_matches(['.', ',', ';']);
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = units.iter().position(|known| *known == unit)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative, and more than fits is as good as all that fits"
    )]
    let bytes = (number.max(0.0) * 1024_f64.powi(i32::try_from(power).ok()?)) as u64;
    Some(Bytes(bytes))
}

/// Explains a file that is missing below the folder that `~` is.
fn missing_in_home(chain: &[Exception], home: &Path) -> Option<String> {
    let home = home.to_str()?;
    let mut missing = chain.iter().filter(|error| error.is("FileNotFoundError"));
    missing.any(|error| error.message.contains(home)).then(|| {
        "`~` is an empty folder in a run: put the file into the blueprint's folder, or name its whole path".to_owned()
    })
}

/// Explains `os.environ["NAME"]` where that is not set.
fn unset_variable(error: &Exception) -> Option<String> {
    let asked = error.frames.last().filter(|_| error.is("KeyError"))?;
    let of_environ = asked.file == "<frozen os>" || asked.file.ends_with("/os.py");
    let name = error.message.trim_matches(['\'', '"']);
    (of_environ && asked.function == "__getitem__").then(|| {
        format!(
            "a run begins with few variables, and `{name}` is none of them: give it by spec.secrets, as {{name: …, env: {name}}}, or as a parameter"
        )
    })
}

/// Says what to do about a module that is missing, where the blueprint lies in `folder`.
fn module_missing(module: &str, folder: Option<&Path>) -> String {
    let top = module.split('.').next().unwrap_or(module);
    // What is well known as a package is looked for nowhere else.
    let above = || {
        folder?
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
    fn a_run_is_not_told_to_ask_for_more_memory_than_the_machine_has() {
        let hint = |said: &str| host_memory(Bytes(2 << 30), said, Some(Bytes(16 << 30)));
        let too_much = "MemoryError: Unable to allocate 7.28 TiB for an array with shape (1000000, 1000000)";
        assert!(
            hint(too_much).contains("this machine has 16Gi in all"),
            "{}",
            hint(too_much)
        );
        for may_fit in [
            "MemoryError: Unable to allocate 7.28 GiB for an array",
            "MemoryError",
            "MemoryError: tried to allocate many things",
        ] {
            assert!(
                hint(may_fit).contains("ask for more under spec.driver.memory"),
                "{may_fit}"
            );
        }
        let of_torch = "DefaultCPUAllocator: not enough memory: you tried to allocate 8000000000000 bytes.";
        assert_eq!(asked_for(of_torch), Some(Bytes(8_000_000_000_000)));
    }

    #[test]
    fn what_a_clean_start_lacks_is_explained() {
        let error = |name: &str, message: &str, file: &str| Exception {
            name: name.into(),
            bases: vec![name.into()],
            message: message.into(),
            frames: vec![crate::exception::Frame {
                file: file.into(),
                function: "__getitem__".into(),
                ..Default::default()
            }],
            ..Exception::default()
        };
        for os in ["<frozen os>", "/usr/lib/python3.12/os.py"] {
            let hint = unset_variable(&error("KeyError", "'MY_DB_URL'", os)).expect("it is explained");
            assert!(
                hint.contains("`MY_DB_URL`") && hint.contains("spec.secrets"),
                "{hint}"
            );
        }
        assert_eq!(
            unset_variable(&error("KeyError", "'a'", "/x/pandas/frame.py")),
            None
        );
        let home = Path::new("/runs/7/work/home");
        let missing = |path: &str| {
            let message = format!("[Errno 2] No such file or directory: '{path}'");
            missing_in_home(&[error("FileNotFoundError", &message, "x")], home)
        };
        assert!(
            missing("/runs/7/work/home/data/x.csv")
                .is_some_and(|hint| hint.contains("`~` is an empty folder"))
        );
        assert_eq!(missing("/runs/7/work/checkout/x.csv"), None);
    }

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
            let hint = module_missing(module, Some(&blueprint));
            assert!(hint.contains(said), "{module}: {hint}");
        }
    }
}
