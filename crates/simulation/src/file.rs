//! Scenarios as people write them: a document of the kind Simulation, beside the queues as Kueue's own YAML.
//!
//! The queues stand in the same file, in files that `spec.quota` names, or both. What a file is called is known here, but
//! not how it is opened.

mod check;
mod spec;

use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Decode, Format, Placeholders, Problems, Source, Value, YamlNode},
};
use blueproof_queue::{
    PodSet,
    manifest::{self, File},
    objects::Objects,
};
use jiff::SignedDuration;

use super::{Arrival, Change, Execution, Job, Scenario, SimulatedNode as Machine};
use crate::retry::FaultTolerance;
use spec::{EventSpec, Grace, JobSpec, NodeSpec, PodSetSpec, Simulation};

const VERSION: &str = "blueproof.dev/v1alpha1";
const KIND: &str = "Simulation";

/// More jobs than anybody waits for.
const MOST_JOBS: usize = 1_000_000;

static FORMAT: Format = Format {
    name: "a simulation",
    kinds: "`blueproof schema simulation` prints every key with the kind of its value",
    missing: "`blueproof schema simulation` prints what a simulation needs",
    placeholders: Placeholders::None,
    most_nodes: 5_000_000,
};

/// What a file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The scenario.
    pub scenario: Scenario,
    /// What in its queues is likely not meant.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a scenario. `open` reads a file that it names, whose path is relative to its own folder.
///
/// # Errors
///
/// All that is wrong, each with its place.
pub fn read(
    file: &File,
    open: impl FnMut(&str) -> Result<File, Vec<Diagnostic>>,
) -> Result<Written, Vec<Diagnostic>> {
    let (own, queues) = parts(&file.text);
    let source = source(file, &file.text);
    let node = only(&self::source(file, &own)).map_err(|error| vec![error])?;
    let mut problems = Problems::new(&source);
    let simulation = if is_simulation(&node, &mut problems) {
        Simulation::decode(&node, &mut problems)
    } else {
        None
    };
    let simulation = problems.finish(simulation)?;
    let queues = File {
        name: file.name.clone(),
        text: queues,
    };
    let mut reading = Reading {
        warnings: Vec::new(),
        problems: Problems::new(&source),
        open,
    };
    let scenario = reading.scenario(simulation, queues)?;
    let scenario = reading.problems.finish(scenario)?;
    let warnings = reading.warnings;
    Ok(Written { scenario, warnings })
}

/// Returns the JSON Schema (draft 2020-12) of a document of the kind Simulation.
///
/// It is made of the same declarations as the reader. What a schema cannot say, such as that an event is one thing and not
/// several, and whether names are known, only the reader checks.
pub fn schema() -> serde_json::Value {
    let mut schema = Simulation::schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["$id"] = "https://blueproof.dev/schemas/v1alpha1/simulation.json".into();
    schema["title"] = KIND.into();
    schema
}

/// Reads the only document of ours.
fn only(own: &Source) -> Result<YamlNode, Diagnostic> {
    match YamlNode::all_from_yaml(own).as_deref() {
        Ok([_, second, ..]) => Err(Diagnostic::error(
            Code::WrongFormat,
            format!("this is another {KIND}, and a file has one"),
        )
        .at(own.place(second.spot))
        .hint("give each a file of its own")),
        Ok(_) | Err(_) => YamlNode::from_yaml(own),
    }
}

/// Parts a file into the document of ours and all the others; in each the others' lines are empty, so that places stay.
fn parts(text: &str) -> (String, String) {
    let (mut own, mut others) = (String::new(), String::new());
    for document in documents(text) {
        let is_own = is_own_kind(&document);
        for line in document {
            let (with, without) = if is_own {
                (&mut own, &mut others)
            } else {
                (&mut others, &mut own)
            };
            with.push_str(line);
            with.push('\n');
            without.push('\n');
        }
    }
    (own, others)
}

fn documents(text: &str) -> Vec<Vec<&str>> {
    let mut documents = vec![Vec::new()];
    for line in text.lines() {
        if line.starts_with("---") {
            documents.push(Vec::new());
        }
        documents.last_mut().expect("there is one").push(line);
    }
    documents
}

/// Returns whether a document is ours, however its kind is written; JSON is YAML, too. Where it cannot be read, which is
/// told once its other parts are known, a line decides.
fn is_own_kind(document: &[&str]) -> bool {
    let text = Source {
        file: String::new(),
        text: document.join("\n"),
        format: &FORMAT,
    };
    if let Ok(nodes) = YamlNode::all_from_yaml(&text) {
        let kind = nodes.first().and_then(|node| node.get("kind"));
        return matches!(kind.map(|kind| &kind.value), Some(Value::Text(kind)) if kind == KIND);
    }
    let mut kinds = document.iter().filter_map(|line| line.strip_prefix("kind:"));
    kinds.any(|kind| kind.split_whitespace().next() == Some(KIND))
}

fn source(file: &File, text: &str) -> Source {
    Source {
        file: file.name.clone(),
        text: text.into(),
        format: &FORMAT,
    }
}

fn is_simulation(node: &YamlNode, problems: &mut Problems<'_>) -> bool {
    let is = |key, wanted: &str| matches!(node.get(key).map(|node| &node.value), Some(Value::Text(text)) if text == wanted);
    if is("apiVersion", VERSION) && is("kind", KIND) {
        return true;
    }
    let message = format!("there is no document of `apiVersion: {VERSION}` and `kind: {KIND}` here");
    let error = Diagnostic::error(Code::WrongFormat, message);
    problems.report(
        node.spot,
        error.hint("it stands beside the queues, after a line of `---`"),
    );
    false
}

/// A file on its way to a scenario.
struct Reading<'a, F> {
    warnings: Vec<Diagnostic>,
    problems: Problems<'a>,
    open: F,
}

impl<F: FnMut(&str) -> Result<File, Vec<Diagnostic>>> Reading<'_, F> {
    fn scenario(
        &mut self,
        simulation: Simulation,
        queues: File,
    ) -> Result<Option<Scenario>, Vec<Diagnostic>> {
        let spec = simulation.spec;
        let mut files = vec![queues];
        for path in &spec.quota {
            files.push((self.open)(&path.value)?);
        }
        let objects = self.objects(files)?;
        check::jobs(&spec.jobs, &objects, &mut self.problems);
        check::slack(spec.slack_queue.as_ref(), &objects, &mut self.problems);
        let mut changes = Vec::new();
        for event in &spec.events {
            let change = self.change(event, &spec.nodes, &spec.jobs)?;
            changes.extend(change.map(|change| (event.at.value.0, change)));
        }
        if !self.problems.is_empty() {
            return Ok(None);
        }
        Ok(Some(Scenario {
            jobs: spec.jobs.iter().flat_map(|job| jobs(job, &objects)).collect(),
            objects,
            nodes: spec.nodes.into_iter().map(machine).collect(),
            slack: spec.slack_queue.map(|queue| queue.value),
            changes,
            protected_for: spec.protected_run_time.map(|time| time.0),
            until: spec.until.map(|time| time.0),
            ..Scenario::default()
        }))
    }

    fn objects(&mut self, files: Vec<File>) -> Result<Objects, Vec<Diagnostic>> {
        let read = manifest::read(files)?;
        self.warnings.extend(read.warnings);
        Ok(read.objects)
    }

    fn change(
        &mut self,
        event: &EventSpec,
        nodes: &[NodeSpec],
        jobs: &[JobSpec],
    ) -> Result<Option<Change>, Vec<Diagnostic>> {
        let EventSpec {
            at: _,
            say,
            fail_node,
            recover_node,
            fail_pod,
            quota,
        } = event;
        for node in fail_node.iter().chain(recover_node) {
            check::node(node, nodes, &mut self.problems);
        }
        Ok(match (say, fail_node, recover_node, fail_pod, quota) {
            (Some(text), None, None, None, None) => Some(Change::Remark(text.value.clone())),
            (None, Some(node), None, None, None) => Some(Change::NodeFails(node.value.clone())),
            (None, None, Some(node), None, None) => Some(Change::NodeRecovers(node.value.clone())),
            (None, None, None, Some(failure), None) => check::pod_failure(failure, jobs, &mut self.problems),
            (None, None, None, None, Some(path)) => {
                let file = (self.open)(&path.value)?;
                let objects = self.objects(vec![file])?;
                Some(Change::Quota(Box::new(objects)))
            }
            _ => {
                check::one_thing(event, &mut self.problems);
                None
            }
        })
    }
}

fn jobs(spec: &JobSpec, objects: &Objects) -> Vec<Job> {
    let class = spec.priority_class.as_ref();
    let of_class = class.and_then(|class| objects.priority_classes.get(&class.value));
    let priority = of_class.copied().or(spec.priority).unwrap_or_default();
    let pod_sets: Vec<PodSet> = spec.pod_sets.value.iter().map(pod_set).collect();
    let count = spec.count.value;
    let jobs = (0..count).map(|number| Job {
        name: name(&spec.name, number, count),
        user: spec.user.clone(),
        repository: spec.repository.clone(),
        class: spec.class.clone(),
        queue: spec.queue.value.clone(),
        priority,
        pod_sets: pod_sets.clone(),
        arrives: Arrival::At(nth(spec.at.0, spec.every.0, number)),
        executions: vec![Execution {
            runs_for: spec.runs_for.0,
            grace: spec.grace.0,
            ..Execution::default()
        }],
        gives_up_at: None,
        aged: SignedDuration::ZERO,
        evicted_before: 0,
        retry: terms(spec),
        maximum_execution_time: spec.maximum_execution_time.map(|time| time.0),
    });
    jobs.collect()
}

/// Returns AppWrapper's terms, but for what is said otherwise.
fn terms(spec: &JobSpec) -> FaultTolerance {
    let usual = FaultTolerance::default();
    let or = |said: Option<Grace>, usual| said.map_or(usual, |Grace(span)| span);
    FaultTolerance {
        warmup_grace: or(spec.warmup_grace_period_duration, usual.warmup_grace),
        failure_grace: or(spec.failure_grace_period_duration, usual.failure_grace),
        retry_pause: or(spec.retry_pause_period_duration, usual.retry_pause),
        retry_limit: spec.retry_limit.unwrap_or(usual.retry_limit),
        forceful_deletion_grace: or(
            spec.forceful_deletion_grace_period_duration,
            usual.forceful_deletion_grace,
        ),
        deletion_delay: or(
            spec.deletion_on_failure_grace_period_duration,
            usual.deletion_delay,
        ),
        terminal_exit_codes: spec.terminal_exit_codes.iter().copied().collect(),
        retryable_exit_codes: spec.retryable_exit_codes.iter().copied().collect(),
        ..usual
    }
}

fn nth(first: SignedDuration, every: SignedDuration, number: u32) -> SignedDuration {
    let number = i32::try_from(number).unwrap_or(i32::MAX);
    first.saturating_add(every.saturating_mul(number))
}

fn name(name: &str, number: u32, count: u32) -> String {
    if count == 1 {
        name.to_owned()
    } else {
        format!("{name}-{}", number + 1)
    }
}

fn pod_set(spec: &PodSetSpec) -> PodSet {
    let requests = spec.requests.0.iter();
    PodSet {
        name: spec.name.clone(),
        count: spec.count,
        min_count: spec.min_count.as_ref().map(|least| least.value),
        requests: requests
            .map(|(resource, _, amount)| (resource.clone(), amount.of(resource)))
            .collect(),
        node_selector: spec.node_selector.clone(),
        tolerations: spec.tolerations.iter().cloned().map(Into::into).collect(),
    }
}

fn machine(spec: NodeSpec) -> Machine {
    let capacity = spec.capacity.0.iter();
    Machine {
        name: spec.name,
        flavor: spec.flavor,
        capacity: capacity
            .map(|(resource, _, amount)| (resource.clone(), amount.of(resource)))
            .collect(),
    }
}

#[cfg(test)]
mod tests;
