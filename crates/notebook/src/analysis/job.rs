//! TrainJobs that a notebook creates, and how it waits for them.

use std::rc::Rc;

use super::{
    Analysis,
    value::{At, Made, Traced, Value},
};

/// The SDK's own limit of a wait that names none.
const DEFAULT_WAIT_SECONDS: f64 = 600.0;

/// A call that creates a TrainJob.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) made: Rc<Made>,
    pub(crate) backend: Backend,
    pub(crate) nodes: Option<Traced>,
    /// What each node asks for, by the resource's name.
    pub(crate) resources: Vec<(String, Traced)>,
    /// Packages that its pods install.
    pub(crate) packages: Vec<Traced>,
    pub(crate) runtime: Option<(At, String)>,
    /// The name of the function that it runs.
    pub(crate) function: Option<String>,
}

/// Where a TrainJob runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    /// On the cluster.
    Cluster,
    /// In containers beside the kernel.
    Container,
    /// In a process beside the kernel.
    Process,
}

/// A wait for a TrainJob.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) at: At,
    /// As [`Made::from`].
    pub(crate) from: At,
    /// The call that created the TrainJob, where it is known.
    pub(crate) job: Option<Rc<Made>>,
    pub(crate) aim: Aim,
    /// How long it waits, in seconds, where it is known.
    pub(crate) seconds: Option<f64>,
}

/// What a wait waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The end.
    End,
    /// The start.
    Running,
}

impl Job {
    /// Returns the name and the value of the GPUs that each node asks for.
    pub(crate) fn gpu(&self) -> Option<&(String, Traced)> {
        self.resources.iter().find(|(name, _)| is_gpu(name))
    }
}

/// Returns whether a resource of this name is a GPU.
fn is_gpu(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower == "gpu"
        || lower == "gpus"
        || lower.ends_with(".com/gpu")
        || lower.contains(".com/mig-")
        || lower.starts_with("mig-")
}

/// Returns the TrainJobs among the calls of a survey.
pub(super) fn jobs(analysis: &Analysis) -> Vec<Job> {
    let creations = analysis.calls.iter().filter(|made| creates_job(made));
    creations.map(|made| job(analysis, made)).collect()
}

fn creates_job(made: &Made) -> bool {
    let client = made.receiver.as_ref().and_then(Traced::made);
    let of_client = client.is_some_and(|client| {
        client.function.ends_with("TrainerClient") || client.function == "TrainingClient"
    });
    match made.function.as_str() {
        "train" => {
            let keyword = |name: &str| made.keywords.iter().any(|(known, _)| known == name);
            let trainer = made.arguments.iter().any(|value| {
                value
                    .made()
                    .is_some_and(|made| made.function.ends_with("Trainer"))
            });
            of_client || keyword("trainer") || keyword("runtime") || trainer
        }
        "create_job" | "create_train_job" => of_client || made.receiver.is_some(),
        "create_namespaced_custom_object" => {
            made.argument("plural", 3).and_then(Traced::text) == Some("trainjobs")
        }
        _ => false,
    }
}

fn job(analysis: &Analysis, made: &Rc<Made>) -> Job {
    let whole = Traced::new(Value::Made(Rc::clone(made)), made.at);
    let find = |names: &[&str]| whole.find(names);
    let resources = find(&["resources_per_node", "resourcesPerNode", "resources_per_worker"]);
    // A TrainJob as a dictionary has Kubernetes' requests and limits in between.
    let inner = resources.and_then(|all| {
        all.find(&["requests", "limits"])
            .filter(|inner| !inner.entries().is_empty())
    });
    let function = find(&["func", "train_func"])
        .and_then(Traced::symbol)
        .map(str::to_owned);
    Job {
        made: Rc::clone(made),
        backend: backend(made),
        nodes: find(&["num_nodes", "numNodes", "num_workers"]).cloned(),
        resources: inner
            .or(resources)
            .map(|all| all.entries().to_vec())
            .unwrap_or_default(),
        packages: find(&["packages_to_install"])
            .map(|all| all.items().to_vec())
            .unwrap_or_default(),
        runtime: runtime(analysis, made),
        function,
    }
}

fn backend(made: &Made) -> Backend {
    let client = made.receiver.as_ref().and_then(Traced::made);
    let config = client
        .and_then(|client| client.argument("backend_config", 0))
        .and_then(Traced::made);
    match config.map(|config| config.function.as_str()) {
        Some(name) if name.starts_with("LocalProcess") => Backend::Process,
        Some(name) if name.contains("Container") || name.contains("Docker") || name.contains("Podman") => {
            Backend::Container
        }
        Some(_) | None => Backend::Cluster,
    }
}

fn runtime(analysis: &Analysis, made: &Made) -> Option<(At, String)> {
    let given = made.argument("runtime", usize::MAX)?;
    if let Some(text) = given.text() {
        return Some((given.at, text.to_owned()));
    }
    if let Some(got) = given.made().filter(|got| got.function == "get_runtime") {
        let name = got.argument("name", 0)?;
        return Some((name.at, name.text()?.to_owned()));
    }
    // `if runtime.name == "torch-distributed": torch_runtime = runtime`
    let before = analysis.runtime_names.iter().filter(|(at, _)| *at <= made.from);
    before.max_by_key(|(at, _)| *at).cloned()
}

/// Returns the waits among calls.
pub(super) fn waits(calls: &[Rc<Made>]) -> Vec<Wait> {
    const WAITS: [&str; 2] = ["wait_for_job_status", "wait_for_job_conditions"];
    let waits = calls
        .iter()
        .filter(|made| WAITS.contains(&made.function.as_str()));
    waits
        .map(|made| {
            let timeout = made
                .argument("timeout", 2)
                .or_else(|| made.argument("wait_timeout", usize::MAX));
            Wait {
                at: made.at,
                from: made.from,
                job: made.argument("name", 0).and_then(Traced::made).cloned(),
                aim: aim(made
                    .argument("status", 1)
                    .or_else(|| made.argument("expected_conditions", usize::MAX))),
                seconds: timeout.map_or(Some(DEFAULT_WAIT_SECONDS), Traced::number),
            }
        })
        .collect()
}

fn aim(status: Option<&Traced>) -> Aim {
    let Some(status) = status else {
        return Aim::End;
    };
    let words = |value: &Traced| {
        let word = value.text().or_else(|| value.symbol());
        word.unwrap_or_default().to_ascii_lowercase()
    };
    let early = |value: &Traced| {
        let word = words(value);
        word.ends_with("running") || word.ends_with("created") || word.ends_with("suspended")
    };
    let all = if status.items().is_empty() {
        std::slice::from_ref(status)
    } else {
        status.items()
    };
    if all.iter().any(early) {
        Aim::Running
    } else {
        Aim::End
    }
}
