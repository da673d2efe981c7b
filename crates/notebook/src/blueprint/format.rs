//! The format of `blueprint.yaml`, key by key. The JSON Schema is made of these types and their documentation.

use std::collections::BTreeMap;

use blueproof_core::domain::{BlueprintName, Bytes, Cpus};
use blueproof_diagnostic::yaml::{Located, choice, record};

use super::{
    expect::Expect,
    network::Network,
    parameters::{Parameter, ParameterValue},
    resources::{NodeSelector, ResourceMap},
    value::{Glob, InnerPath, Number, Pattern, RetryCount, Timeout},
};

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
        /// A blueprint.
        Blueprint = "Blueprint",
    }
}

record! {
    /// A notebook and what it needs.
    pub struct Blueprint {
        /// The version of the format: `blueproof.dev/v1alpha1`.
        api_version: ApiVersion,
        /// What the file is: `Blueprint`.
        kind: Kind,
        /// Name, owners and labels.
        metadata: Metadata,
        /// What is run, and how.
        spec: Spec,
    }
}

record! {
    /// Name, owners and labels.
    pub struct Metadata {
        /// The blueprint's name, by which people call it. Default: made from the name of the notebook's file.
        name: Option<BlueprintName>,
        /// GitHub users and teams who answer for it, such as `@kubeflow/kubeflow-trainer-team`.
        owners: Vec<String>,
        /// Labels for selecting blueprints. They change nothing in a run.
        labels: BTreeMap<String, String>,
    }
}

record! {
    /// What is run, and how.
    pub struct Spec {
        /// The notebook, relative to the folder of the blueprint.
        notebook: Located<InnerPath>,
        /// Which changes ask for a run. Read by the GitHub side; a local run needs none.
        triggers: Option<Triggers>,
        /// The Python that runs it.
        env: Env,
        /// Values that may be changed from run to run, by name.
        parameters: BTreeMap<String, Located<Parameter>>,
        /// What the notebook's own kernel needs.
        driver: Driver,
        /// What the notebook starts (TrainJobs) needs, reserved together with the driver. Default: nothing.
        workload: Option<Located<Workload>>,
        /// How long each part of a run may take.
        timeouts: Timeouts,
        /// How often a run is tried again.
        retries: Retries,
        /// Which hosts the notebook may reach: `any`, `none`, or `{mode: allow, hosts: [...]}`. Default: any.
        network: Network = Network::Any,
        /// Secrets that it is given as environment variables. Their values never stand in a blueprint.
        secrets: Vec<Secret>,
        /// Data that it reads from elsewhere. Told to people; nothing is fetched ahead.
        data: Vec<Data>,
        /// What is measured while it runs.
        metrics: Vec<Metric>,
        /// What must hold once every cell has run.
        expect: Expect,
        /// Files to keep, as globs relative to the notebook's folder.
        artifacts: Vec<Glob>,
        /// Whether the notebook may pass though nothing of it runs: no code, or every cell switched off. Default: false.
        allow_empty: bool = false,
        /// Variants, by name: each overrides parts of the above. Mappings are merged by key, `null` takes a key away,
        /// `{}` empties a mapping, and lists and `network` are replaced.
        profiles: BTreeMap<String, Profile>,
    }
    later {
        "serve": "serving a tuned model comes with the playground; leave the key out",
        "executor": "the native executor is the only one; leave the key out",
    }
}

record! {
    /// Which changes ask for a run.
    pub struct Triggers {
        /// Changed paths, as globs from the root of the repository; one that begins with `./` is relative to the
        /// blueprint's folder.
        paths: Vec<Glob>,
        /// Whether the default branch is run every night. Default: false.
        nightly: bool = false,
    }
}

record! {
    /// The Python that runs a notebook. `ipykernel` need not be listed.
    pub struct Env {
        /// The version, in quotes: `"3.12"`. Default: whichever is found first.
        python: Option<Located<String>>,
        /// Requirements, as pip writes them.
        requirements: Vec<Located<String>>,
        /// A file with every version pinned, relative to the blueprint's folder: `uv.lock` or a requirements file.
        lock: Option<Located<InnerPath>>,
        /// What becomes of cells that install packages: `skip` leaves out what the environment already has, `record`
        /// runs them and says so in the report, `allow` runs them. Default: skip.
        shell_install: ShellInstall = ShellInstall::Skip,
    }
    later {
        "image": "runs in a container image come with the Kubernetes backend; use `requirements` or `lock`",
    }
}

choice! {
    /// What becomes of cells that install packages.
    pub enum ShellInstall {
        /// Leave out what the environment already has.
        Skip = "skip",
        /// Run them, and say so in the report.
        Record = "record",
        /// Run them.
        Allow = "allow",
    }
}

record! {
    /// What the notebook's own kernel needs.
    pub struct Driver {
        /// Processor time. Default: 1.
        cpu: Number<Cpus> = Number::Fixed(Cpus::cores(1)),
        /// Memory. Default: 1Gi.
        memory: Number<Bytes> = Number::Fixed(Bytes(1 << 30)),
        /// GPUs (`nvidia.com/gpu`). A notebook that only creates TrainJobs needs none. Default: 0.
        gpu: Option<Number<u32>>,
        /// Further resources, by their Kubernetes names, such as `amd.com/gpu`, `nvidia.com/mig-1g.10gb` or
        /// `ephemeral-storage`.
        resources: ResourceMap,
        /// Labels that the node must have.
        node_selector: NodeSelector,
        /// Taints of nodes that are no obstacle, as in Kubernetes.
        tolerations: Vec<Located<Toleration>>,
    }
    later {
        "gpuMemory": "GPUs are counted, not sized, in this version; leave the key out",
        "shm": "shared memory cannot be set in this version; leave the key out",
    }
}

record! {
    /// What the notebook starts needs.
    pub struct Workload {
        /// How many nodes run at the same time. Default: 1.
        nodes: Option<Number<u32>>,
        /// What each node needs.
        per_node: Option<PerNode>,
        /// Pods of several kinds, in place of `nodes` and `perNode`: at most 7.
        pod_sets: Option<Located<Vec<Located<PodSet>>>>,
    }
    later {
        "gang": "driver and workload are always reserved together; leave the key out",
        "topology": "placement by topology comes with the Kubernetes backend; leave the key out",
    }
}

record! {
    /// What each node of a workload needs.
    pub struct PerNode {
        /// Processor time. Default: 1.
        cpu: Number<Cpus> = Number::Fixed(Cpus::cores(1)),
        /// Memory. Default: 1Gi.
        memory: Number<Bytes> = Number::Fixed(Bytes(1 << 30)),
        /// GPUs (`nvidia.com/gpu`). Default: 0.
        gpu: Option<Number<u32>>,
        /// Further resources, by their Kubernetes names, such as `amd.com/gpu`, `nvidia.com/mig-1g.10gb` or
        /// `ephemeral-storage`.
        resources: ResourceMap,
        /// Labels that each node must have.
        node_selector: NodeSelector,
        /// Taints of nodes that are no obstacle, as in Kubernetes.
        tolerations: Vec<Located<Toleration>>,
    }
    later {
        "gpuMemory": "GPUs are counted, not sized, in this version; leave the key out",
        "shm": "shared memory cannot be set in this version; leave the key out",
    }
}

record! {
    /// Pods of one kind.
    pub struct PodSet {
        /// Its name, as it stands in the assignment of quota.
        name: Located<String>,
        /// How many pods run at the same time. Default: 1.
        count: Number<u32> = Number::Fixed(1),
        /// Processor time of each pod. Default: 1.
        cpu: Number<Cpus> = Number::Fixed(Cpus::cores(1)),
        /// Memory of each pod. Default: 1Gi.
        memory: Number<Bytes> = Number::Fixed(Bytes(1 << 30)),
        /// GPUs (`nvidia.com/gpu`) of each pod. Default: 0.
        gpu: Option<Number<u32>>,
        /// Further resources of each pod, by their Kubernetes names.
        resources: ResourceMap,
        /// Labels that the nodes of its pods must have.
        node_selector: NodeSelector,
        /// Taints of nodes that are no obstacle, as in Kubernetes.
        tolerations: Vec<Located<Toleration>>,
    }
    later {
        "minCount": "a run gets all of its pods or none; leave the key out",
        "gpuMemory": "GPUs are counted, not sized, in this version; leave the key out",
        "shm": "shared memory cannot be set in this version; leave the key out",
    }
}

record! {
    /// Taints of nodes that are no obstacle.
    pub struct Toleration {
        /// The taint's key. Default: any, which needs the operator `Exists`.
        key: Option<String>,
        /// Whether the taint's value must be equal, or it is enough that the taint exists. Default: Equal.
        operator: Operator = Operator::Equal,
        /// The taint's value. Default: empty.
        value: Option<String>,
        /// The taint's effect. Default: any.
        effect: Option<Effect>,
    }
    later {
        "tolerationSeconds": "nothing here is evicted some time after a taint came; leave the key out",
    }
}

choice! {
    /// Whether a toleration looks at a taint's value.
    pub enum Operator {
        /// The values are equal.
        Equal = "Equal",
        /// Any value will do.
        Exists = "Exists",
    }
}

choice! {
    /// What a taint does.
    pub enum Effect {
        /// Nothing is put on the node.
        NoSchedule = "NoSchedule",
        /// Things are put elsewhere where that is possible.
        PreferNoSchedule = "PreferNoSchedule",
        /// Nothing is put on the node, or stays there.
        NoExecute = "NoExecute",
    }
}

record! {
    /// How long each part of a run may take; `none` is without limit.
    pub struct Timeouts {
        /// From the approval until quota is reserved. Default: none.
        queue: Timeout = Timeout::None,
        /// From the start of an attempt until its first cell runs. Default: 15m.
        startup: Timeout = Timeout::minutes(15),
        /// For any one cell. Default: none.
        cell: Timeout = Timeout::None,
        /// For all cells of an attempt together. Default: 1h.
        run: Timeout = Timeout::minutes(60),
        /// With quota, over all attempts: also those that were evicted. Kueue's maximumExecutionTimeSeconds. Default: none.
        execution: Timeout = Timeout::None,
    }
}

record! {
    /// How often a run is tried again.
    pub struct Retries {
        /// After a failure of the machine or the cluster, at most 10. Default: 2.
        infrastructure: RetryCount = RetryCount(2),
        /// After a failure of the notebook itself, which shows flaky ones, at most 10. Default: 0.
        blueprint: RetryCount = RetryCount(0),
    }
}

record! {
    /// A secret that the notebook is given as an environment variable.
    pub struct Secret {
        /// The secret's name.
        name: String,
        /// The variable that the notebook reads.
        env: Located<String>,
    }
    later {
        "needs": "secrets that need an approval of their own come with the GitHub side; leave the key out",
    }
}

record! {
    /// Data that the notebook reads from elsewhere.
    pub struct Data {
        /// Where it is, such as `hf://Qwen/Qwen2.5-1.5B-Instruct` or `s3://bucket/path`.
        uri: String,
        /// How large it is, about.
        size: Option<Bytes>,
    }
    later {
        "cache": "data is not cached ahead in this version; leave the key out",
    }
}

record! {
    /// Something that is measured while the notebook runs.
    pub struct Metric {
        /// Its name.
        name: Located<String>,
        /// Where its values come from: one of `regex` and `display`.
        from: Located<MetricFrom>,
    }
    later {
        "axis": "values are counted in the order in which they come; leave the key out",
    }
}

record! {
    /// Where a metric's values come from.
    pub struct MetricFrom {
        /// A regular expression over what cells print; its first group is the value.
        regex: Option<Pattern>,
        /// The NAME of a JSON object that the notebook displays with the MIME type
        /// `application/vnd.blueproof.NAME+json`; the value is the number under the metric's name.
        display: Option<Located<String>>,
    }
}

record! {
    /// A variant of a blueprint. What is left out is as in the blueprint.
    pub struct Profile {
        /// Values of parameters.
        parameters: BTreeMap<String, Located<ParameterValue>>,
        /// Overrides `spec.env`.
        env: Option<Env>,
        /// Overrides `spec.driver`.
        driver: Option<Driver>,
        /// Overrides `spec.workload`.
        workload: Option<Workload>,
        /// Overrides `spec.timeouts`.
        timeouts: Option<Timeouts>,
        /// Overrides `spec.retries`.
        retries: Option<Retries>,
        /// Replaces `spec.network`.
        network: Option<Network>,
        /// Replaces `spec.metrics`.
        metrics: Option<Vec<Metric>>,
        /// Overrides `spec.expect`.
        expect: Option<Expect>,
        /// Replaces `spec.artifacts`.
        artifacts: Option<Vec<Glob>>,
    }
    later {
        "cluster": "choose the cluster with `blueproof run --cluster`",
        "requires": "requirements on the cluster's devices come with the Kubernetes backend; leave the key out",
        "notebook": "a profile is a variant of one notebook; write another blueprint",
        "secrets": "secrets are the same in every profile; leave the key out",
    }
}
