//! What an admin says about runners: which scale set they are of, how many there may be, and how they are started.

mod values;

use std::path::PathBuf;

use blueproof_core::domain::{Bytes, Cpus, Gpus, QueueName, Resources};
use blueproof_diagnostic::{
    Diagnostic,
    yaml::{
        Decode, FilePath, Format, Located, Placeholders, Problems, Schema, ServerAddress, Source, Spot,
        choice, record,
    },
};
use blueproof_scale_set::{ConfigUrl, Scope};

pub use values::{LabelName, ScaleSetName, TargetUrl};

static FORMAT: Format = Format {
    name: "a runner scale set",
    kinds: "`blueproof schema runner-scale-set` prints every key with the kind of its value",
    missing: "`blueproof schema runner-scale-set` prints what a runner scale set needs",
    placeholders: Placeholders::None,
    most_nodes: 20_000,
};

/// The events whose workflow runs are of commits that only those write who may write to the repository.
pub const TRUSTED_EVENTS: [&str; 3] = ["push", "schedule", "workflow_dispatch"];

choice! {
    /// The version of the format.
    pub enum ApiVersion {
        /// The only one so far.
        V1Alpha1 = "blueproof.dev/v1alpha1",
    }
}

choice! {
    /// What the file is.
    pub enum Kind {
        /// Runners of a scale set.
        RunnerScaleSet = "RunnerScaleSet",
    }
}

choice! {
    /// How a job comes to its runner.
    pub enum Binding {
        /// By the labels of a scale set; whether a job may start is asked when it does.
        ScaleSet = "scaleSet",
        /// By a label that names one commit: a runner is made only for one that is approved.
        UniqueLabel = "uniqueLabel",
    }
}

choice! {
    /// What a machine keeps a job from.
    pub enum MachineIsolation {
        /// From nothing, and nothing on the machine needs it.
        Disposable = "disposable",
    }
}

record! {
    /// Runners of a scale set.
    pub struct WrittenScaleSet {
        /// The version of the format: `blueproof.dev/v1alpha1`.
        api_version: ApiVersion,
        /// What the file is: `RunnerScaleSet`.
        kind: Kind,
        /// The runners.
        spec: RunnerScaleSet,
    }
}

record! {
    /// The runners.
    pub struct RunnerScaleSet {
        /// The name of the scale set: at most 45 characters. Jobs ask for it by `runs-on` where no labels are given.
        name: ScaleSetName,
        /// Where runners are registered: the URL of an organisation or a repository, such as https://github.com/kubeflow.
        url: Located<TargetUrl>,
        /// The address of the REST API. Default: https://api.github.com; of a GitHub Enterprise Server, `https://HOST/api/v3`.
        api: Option<ServerAddress>,
        /// The GitHub App by which GitHub is asked.
        app: Option<RunnerApp>,
        /// In place of an App, a file with a token and nothing else in it. Relative paths are relative to this file.
        token_file: Option<FilePath>,
        /// How a job comes to its runner. Default: scaleSet.
        binding: Binding = Binding::ScaleSet,
        /// The repositories whose jobs may start, as `OWNER/NAME`; of a unique label, those whose jobs are looked for. Default: of a scale
        /// set all that `url` and its runner group let use it.
        repositories: Vec<String> = Vec::new(),
        /// The runner group, which says what repositories may use the runners. Default: Default.
        runner_group: String = "Default".into(),
        /// What jobs ask for. Default: the name; of a unique label, it comes beside these.
        labels: Vec<LabelName> = Vec::new(),
        /// How many runners wait for a job beside those that jobs need. Default: 0.
        min_runners: u32 = 0,
        /// The most runners at a time.
        max_runners: Located<u32>,
        /// The LocalQueue whose free quota says how many can be placed. Default: local.
        queue: Located<String> = Located { value: "local".into(), spot: Default::default() },
        /// What a runner takes of that quota.
        resources: RunnerResources,
        /// The events whose jobs start without an approval. Default: push, schedule, workflow_dispatch.
        trusted_events: Vec<String> = TRUSTED_EVENTS.map(str::to_owned).to_vec(),
        /// How runners are started: as processes of this machine.
        process: RunnerProcess,
        /// The most calls to GitHub and to the machine at a time. Default: 100.
        simultaneous_calls: u32 = 100,
    }
}

record! {
    /// A GitHub App, as it is installed in an organisation or a repository.
    pub struct RunnerApp {
        /// The number of the App, or its client id.
        id: String,
        /// The number of its installation, which stands at the end of the installation's address.
        installation_id: u32,
        /// The file with its private key, as GitHub gave it. Relative paths are relative to this file.
        private_key_file: FilePath,
    }
}

record! {
    /// What a runner takes.
    pub struct RunnerResources {
        /// Cores. Default: 1.
        cpu: Cpus = Cpus::cores(1),
        /// Memory.
        memory: Bytes = Bytes(0),
        /// GPUs. Default: 0.
        gpu: u32 = 0,
    }
}

record! {
    /// Runners as processes of this machine.
    pub struct RunnerProcess {
        /// The program, such as `/home/runner/run.sh`. It finds its configuration in `ACTIONS_RUNNER_INPUT_JITCONFIG`.
        program: FilePath,
        /// Its arguments.
        arguments: Vec<String> = Vec::new(),
        /// The folder that runners are kept in. Default: beside the store.
        folder: Option<FilePath>,
        /// What a job is kept from: `disposable`, which is nothing. A job does what the scheduler's user may do on this machine.
        isolation: MachineIsolation,
    }
}

impl RunnerScaleSet {
    /// Returns whether jobs of a repository, `OWNER/NAME`, may start: none is named, or it is.
    pub fn has_repository(&self, name: &str) -> bool {
        let named = |one: &String| one.eq_ignore_ascii_case(name);
        self.repositories.is_empty() || self.repositories.iter().any(named)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// Every mistake in it, with its place.
    pub fn read(file: &str, text: String) -> Result<Self, Vec<Diagnostic>> {
        let source = Source {
            file: file.into(),
            text,
            format: &FORMAT,
        };
        source.read(|node, problems| {
            let spec = WrittenScaleSet::decode(node, problems)?.spec;
            spec.check(node.spot, problems);
            Some(spec)
        })
    }

    fn check(&self, spot: Spot, problems: &mut Problems<'_>) {
        if self.queue.value.parse::<QueueName>().is_err() {
            let hint = "write a name such as `runners`";
            problems.bad_value(self.queue.spot, "this is no name of a LocalQueue", hint);
        }
        if self.app.is_some() == self.token_file.is_some() {
            let message = "runners have either an `app` or a `tokenFile`";
            problems.bad_value(spot, message, "an App's tokens end by themselves; prefer it");
        }
        if self.max_runners.value == 0 || self.max_runners.value < self.min_runners {
            let hint = "write at least 1, and at least `minRunners`";
            problems.bad_value(self.max_runners.spot, "so few runners are none", hint);
        }
        if self.simultaneous_calls == 0 {
            let message = "with `simultaneousCalls: 0` no runner could ever start";
            problems.bad_value(spot, message, "leave it out, or write at least 1");
        }
        if self.binding == Binding::UniqueLabel {
            self.check_unique(spot, problems);
        }
    }

    fn check_unique(&self, spot: Spot, problems: &mut Problems<'_>) {
        if self.repositories.is_empty() {
            let message = "with `binding: uniqueLabel` nobody knows whose jobs to look for";
            problems.bad_value(spot, message, "name `repositories`, as `OWNER/NAME`");
        }
        if matches!(self.url.value.0.scope(), Scope::Enterprise(_)) {
            let message = "with `binding: uniqueLabel` runners are of an organisation or a repository";
            let hint = "write the URL of one";
            problems.bad_value(self.url.spot, message, hint);
        }
        if self.min_runners > 0 {
            let message = "a runner for one commit does not wait for a job: `minRunners` has to be 0";
            problems.bad_value(spot, message, "leave `minRunners` out");
        }
    }

    /// Returns the JSON Schema of the file.
    pub fn schema() -> Schema {
        WrittenScaleSet::schema()
    }

    /// Returns where runners are registered.
    pub fn config_url(&self) -> &ConfigUrl {
        &self.url.value.0
    }

    /// Returns the queue whose free quota says how many can be placed.
    pub fn queue(&self) -> QueueName {
        self.queue.value.parse().expect("it was checked when it was read")
    }

    /// Returns what a runner takes.
    pub fn resources(&self) -> Resources {
        Resources {
            cpu: self.resources.cpu,
            memory: self.resources.memory,
            gpu: Gpus(self.resources.gpu),
        }
    }

    /// Returns the labels that the scale set has, or that runners have beside the unique one.
    pub fn labels(&self) -> Vec<String> {
        match self.labels.is_empty() {
            true => vec![self.name.0.clone()],
            false => self.labels.iter().map(|label| label.0.clone()).collect(),
        }
    }

    /// Returns the folder that runners are kept in, where one is named.
    pub fn folder(&self) -> Option<&PathBuf> {
        self.process.folder.as_ref().map(|folder| &folder.0)
    }
}

#[cfg(test)]
mod tests;
