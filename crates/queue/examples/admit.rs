//! Which workloads a set of Kueue's queues admits, with which flavors, and why the others wait.
//!
//! `cargo run -p blueproof-queue --example admit -- QUEUES.yaml WORKLOADS.yaml`; without arguments it reads the files in
//! `examples/admit`. The first file holds ClusterQueues, LocalQueues and so on, as `kubectl get -o yaml` prints them, the
//! second a list of workloads.

use std::{collections::BTreeMap, env, fs, process::ExitCode};

use blueproof_diagnostic::{
    Code, Diagnostic, SourceLocation,
    yaml::{Decode, Format, Located, Placeholders, Problems, Source, YamlNode, record},
};
use blueproof_queue::{
    Admission, PodSet, Queues, Workload, WorkloadId,
    manifest::{self, Amount, File},
};
use jiff::{SignedDuration, Timestamp};

/// The files that are read where none are named.
const EXAMPLES: [&str; 2] = [
    concat!(env!("CARGO_MANIFEST_DIR"), "/examples/admit/queues.yaml"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/examples/admit/workloads.yaml"),
];

/// Preemption can go back and forth for ever by Kueue's rules, where it is configured so.
const CYCLES_AT_MOST: usize = 1_000;

static FORMAT: Format = Format {
    name: "a list of workloads",
    kinds: "examples/admit/workloads.yaml has one of each",
    missing: "write it",
    placeholders: Placeholders::None,
    most_nodes: 1_000_000,
};

record! {
    /// The workloads.
    struct List {
        /// In the order of their creation.
        workloads: Vec<Item>,
    }
}

record! {
    /// A workload.
    struct Item {
        /// Its name.
        name: String,
        /// The LocalQueue that it is created with.
        queue: Located<String>,
        /// The name of its WorkloadPriorityClass.
        priority_class: Option<Located<String>>,
        /// How many pods it has.
        pods: u32 = 1,
        /// What each pod requests.
        requests: BTreeMap<String, Amount>,
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [queues, workloads] = match &arguments[..] {
        [] => EXAMPLES.map(str::to_owned),
        [queues, workloads] => [queues.clone(), workloads.clone()],
        _ => {
            eprintln!("usage: admit [QUEUES.yaml WORKLOADS.yaml]");
            return ExitCode::from(2);
        }
    };
    match admit(&queues, &workloads) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problems) => {
            for problem in problems {
                eprintln!("{problem:#}");
            }
            ExitCode::FAILURE
        }
    }
}

fn admit(queues: &str, workloads: &str) -> Result<(), Vec<Diagnostic>> {
    let manifest = manifest::read([read(queues)?])?;
    for warning in &manifest.warnings {
        eprintln!("{warning:#}");
    }
    let mut queues = Queues::new(manifest.objects);
    let items = list(read(workloads)?, &mut queues)?;

    for _ in 0..CYCLES_AT_MOST {
        let cycle = queues.cycle(now());
        for preempted in &cycle.preempted {
            let (name, by) = (&items[place(preempted.workload)], &items[place(preempted.by)]);
            println!("{name} is preempted for {by}: {}", preempted.reason.as_str());
        }
        for admission in &cycle.admitted {
            println!(
                "{} is admitted: {}",
                items[place(admission.workload)],
                flavors(admission)
            );
        }
        // In a cluster the pods of who was preempted take a while to stop. Here they are gone at once.
        queues.drain_evicted();
        if !queues.has_work() {
            break;
        }
    }
    for (id, name) in (1..).map(WorkloadId).zip(&items) {
        let Some(wait) = queues.wait(id) else { continue };
        println!("{name} waits: {wait}");
        for change in queues.unblocked_by(id) {
            println!("  until {change}");
        }
    }
    Ok(())
}

/// Reads the workloads, puts them into their queues, and returns what each is called.
fn list(file: File, queues: &mut Queues) -> Result<Vec<String>, Vec<Diagnostic>> {
    let source = Source {
        file: file.name,
        text: file.text,
        format: &FORMAT,
    };
    let mut problems = Problems::new(&source);
    let node = YamlNode::from_yaml(&source).map_err(|error| vec![error])?;
    let list = List::decode(&node, &mut problems);
    for (number, item) in (1..).zip(list.iter().flat_map(|list| &list.workloads)) {
        if let Some(workload) = workload(number, item, queues, &mut problems) {
            queues
                .submit(&workload)
                .expect("a LocalQueue leads to a ClusterQueue that is there");
        }
    }
    let items = problems.finish(list)?.workloads.into_iter();
    Ok((1..)
        .zip(items)
        .map(|(number, item)| format!("{} ({})", WorkloadId(number), item.name))
        .collect())
}

/// Returns the workload in the queue's words, or reports that it names what is not there.
fn workload(number: u64, item: &Item, queues: &Queues, problems: &mut Problems<'_>) -> Option<Workload> {
    let objects = queues.objects();
    let local_queue = objects.local_queues.get(&item.queue.value);
    let cluster_queue = local_queue
        .map(|local| &local.cluster_queue)
        .filter(|name| objects.cluster_queues.contains_key(*name));
    let Some(cluster_queue) = cluster_queue else {
        let message = format!(
            "there is no LocalQueue `{}` with a ClusterQueue",
            item.queue.value
        );
        problems.report(item.queue.spot, Diagnostic::error(Code::NoSuchQueue, message));
        return None;
    };
    let priority = match &item.priority_class {
        None => 0,
        Some(class) => {
            let Some(priority) = objects.priority_classes.get(&class.value) else {
                let message = format!("there is no WorkloadPriorityClass `{}`", class.value);
                problems.report(class.spot, Diagnostic::error(Code::NoSuchPriorityClass, message));
                return None;
            };
            *priority
        }
    };
    let requests = item.requests.iter();
    Some(Workload {
        id: WorkloadId(number),
        cluster_queue: cluster_queue.clone(),
        local_queue: item.queue.value.clone(),
        user: None,
        priority,
        queued_at: now() + SignedDuration::from_secs(i64::try_from(number).unwrap_or(i64::MAX)),
        evictions: 0,
        evicted_by: None,
        pod_sets: vec![PodSet {
            name: "main".into(),
            count: item.pods,
            requests: requests
                .map(|(resource, amount)| (resource.clone(), amount.of(resource)))
                .collect(),
            ..PodSet::default()
        }],
    })
}

fn flavors(admission: &Admission) -> String {
    let sets = admission.pod_sets.iter().map(|set| {
        let flavors = set.flavors.iter();
        let flavors: Vec<_> = flavors
            .map(|(resource, flavor)| format!("{resource} from {flavor}"))
            .collect();
        format!("{} × {}", set.count, flavors.join(", "))
    });
    sets.collect::<Vec<_>>().join("; ")
}

/// Returns the place in the list.
fn place(id: WorkloadId) -> usize {
    usize::try_from(id.0 - 1).expect("as many as were listed")
}

fn read(path: &str) -> Result<File, Vec<Diagnostic>> {
    let text = fs::read_to_string(path).map_err(|error| {
        let missing = Diagnostic::error(Code::FileMissing, "could not read the file");
        vec![missing.at(SourceLocation::file(path)).caused_by(&error)]
    })?;
    Ok(File {
        name: path.into(),
        text,
    })
}

/// The queues have no clock: what time it is, is the caller's to say.
fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}
