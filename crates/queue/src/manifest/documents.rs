//! From the text of files to the kinds that are declared in them.

use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Decode, Problems, Source, Spot, Value, YamlNode, nearest},
};

use super::{
    kinds::{ClusterQueue, Cohort, Configuration, LocalQueue, ResourceFlavor, WorkloadPriorityClass},
    older,
    versions::{CONFIGURATION, CONFIGURATION_GROUP, GROUP, KINDS, VERSION},
};

/// Kueue's other kinds, and why they are not.
const OTHERS: [(&str, &str); 6] = [
    ("AdmissionCheck", "nothing here carries out admission checks"),
    ("MultiKueueCluster", "there is one machine here"),
    ("MultiKueueConfig", "there is one machine here"),
    ("ProvisioningRequestConfig", "nothing here makes nodes"),
    ("Topology", "one machine has no topology"),
    (
        "Workload",
        "who asks for quota is not configured: `blueproof run` asks for it",
    ),
];

/// Everything that files declare.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) flavors: Vec<Found<ResourceFlavor>>,
    pub(super) cohorts: Vec<Found<Cohort>>,
    pub(super) cluster_queues: Vec<Found<ClusterQueue>>,
    pub(super) local_queues: Vec<Found<LocalQueue>>,
    pub(super) priority_classes: Vec<Found<WorkloadPriorityClass>>,
    pub(super) configurations: Vec<Found<Configuration>>,
    /// How many objects each file has.
    pub(super) counts: Vec<usize>,
}

/// An object, and where it stands.
#[derive(Debug)]
pub(super) struct Found<T> {
    pub(super) object: T,
    /// The number of the file.
    pub(super) file: usize,
    pub(super) spot: Spot,
}

/// Reads what the files declare, as far as it can be understood.
pub(super) fn declared(sources: &[Source], problems: &mut [Problems<'_>]) -> Declared {
    let mut declared = Declared::default();
    for (file, source) in sources.iter().enumerate() {
        let before = declared.len();
        let problems = &mut problems[file];
        match YamlNode::all_from_yaml(source) {
            Ok(documents) => documents
                .iter()
                .for_each(|node| declared.take(node, file, problems)),
            Err(error) => problems.add(error),
        }
        declared.counts.push(declared.len() - before);
    }
    declared
}

impl Declared {
    fn len(&self) -> usize {
        self.flavors.len()
            + self.cohorts.len()
            + self.cluster_queues.len()
            + self.local_queues.len()
            + self.priority_classes.len()
            + self.configurations.len()
    }

    fn take(&mut self, node: &YamlNode, file: usize, problems: &mut Problems<'_>) {
        let (Some(version), Some(kind)) = (text(node, "apiVersion", problems), text(node, "kind", problems))
        else {
            return;
        };
        match (version, kind) {
            ("v1", "List") => self.take_list(node, file, problems),
            (VERSION, "ClusterQueue") => add(&mut self.cluster_queues, node, file, problems),
            (VERSION, "Cohort") => add(&mut self.cohorts, node, file, problems),
            (VERSION, "LocalQueue") => add(&mut self.local_queues, node, file, problems),
            (VERSION, "ResourceFlavor") => add(&mut self.flavors, node, file, problems),
            (VERSION, "WorkloadPriorityClass") => add(&mut self.priority_classes, node, file, problems),
            (CONFIGURATION, "Configuration") => add(&mut self.configurations, node, file, problems),
            (version, kind) => match older::converted(node, version, kind, problems) {
                Some(converted) => self.take(&converted, file, problems),
                None => {
                    let spot = node.get("kind").map_or(node.spot, |kind| kind.spot);
                    problems.report(spot, refused(version, kind));
                }
            },
        }
    }

    fn take_list(&mut self, node: &YamlNode, file: usize, problems: &mut Problems<'_>) {
        match node.get("items").map(|items| (&items.value, items)) {
            Some((Value::List(items), _)) => items.iter().for_each(|item| self.take(item, file, problems)),
            Some((_, items)) => problems.wrong_type(items, "a list"),
            None => problems.missing(node.spot, "items"),
        }
    }
}

fn add<T: Decode>(found: &mut Vec<Found<T>>, node: &YamlNode, file: usize, problems: &mut Problems<'_>) {
    let spot = node.spot;
    found.extend(T::decode(node, problems).map(|object| Found { object, file, spot }));
}

fn text<'n>(node: &'n YamlNode, key: &str, problems: &mut Problems<'_>) -> Option<&'n str> {
    if node.entries().is_none() {
        problems.wrong_type(node, "an object of Kueue's");
        return None;
    }
    match node.get(key) {
        Some(YamlNode {
            value: Value::Text(text),
            ..
        }) => Some(text),
        Some(other) => {
            problems.wrong_type(other, "text");
            None
        }
        None => {
            problems.missing(node.spot, key);
            None
        }
    }
}

/// Returns why an object of this version and kind is not read.
fn refused(version: &str, kind: &str) -> Diagnostic {
    let group = version.split_once('/').map(|(group, _)| group);
    let of_another_version = group == Some(GROUP) && version != VERSION && KINDS.contains(&kind)
        || group == Some(CONFIGURATION_GROUP) && version != CONFIGURATION;
    if of_another_version {
        return another_version(version, kind);
    }
    let error = Diagnostic::error(
        Code::QueueObjectKind,
        format!("`{kind}` of `{version}` is nothing that queues go by"),
    );
    if let Some((_, why)) = OTHERS
        .iter()
        .find(|(other, _)| group == Some(GROUP) && *other == kind)
    {
        return error.because(*why).hint("leave the object out");
    }
    match nearest(kind, KINDS) {
        Some(meant) => error.hint(format!("did you mean `{meant}` of `{VERSION}`?")),
        None => error.hint(format!("{} of {VERSION} are read", KINDS.join(", "))),
    }
}

fn another_version(version: &str, kind: &str) -> Diagnostic {
    let error = Diagnostic::error(
        Code::QueueObjectVersion,
        format!("this {kind} is of `{version}`, and only v1beta2 and v1beta1 are read"),
    );
    if version.starts_with(CONFIGURATION_GROUP) {
        return error.hint(format!("write `apiVersion: {CONFIGURATION}`"));
    }
    let ending = if kind.ends_with('s') { "es" } else { "s" };
    let plural = kind.to_ascii_lowercase() + ending;
    error.hint(format!(
        "convert with kubectl, which asks the cluster for it: `kubectl get {plural}.v1beta2.{GROUP} -o yaml`"
    ))
}
