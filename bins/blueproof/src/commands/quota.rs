//! `blueproof quota`: the queues that hold, and others in their place.

mod apply;

use std::collections::BTreeSet;

pub(super) use apply::{read, read_file};

use blueproof_core::{
    diagnostic::{Code, Diagnostic},
    queue::{Queues, manifest, objects::Objects},
    view::RunView,
    yaml::nearest,
};
use serde_json::json;

use crate::{
    cli::{Place, Quota, QuotaCommand, QuotaDescribe, QuotaGet},
    exit::{Exit, Problem},
    output::{self, Encoding, Format},
    reading::{self, Reading},
    show::{queue, quotas},
};

pub(crate) fn quota(arguments: &Quota, place: &Place) -> Result<Exit, Problem> {
    match &arguments.command {
        QuotaCommand::Apply(arguments) => apply::apply(arguments, place),
        QuotaCommand::Get(arguments) => reading::block_on(get(arguments, place)),
        QuotaCommand::Describe(arguments) => reading::block_on(describe(arguments, place)),
    }
}

async fn get(arguments: &QuotaGet, place: &Place) -> Result<Exit, Problem> {
    let scheduler = Reading::open(place)?.scheduler().await?;
    let objects = scheduler.objects();
    let answer = match arguments.output {
        Some(Format::Json) => output::encode(&list(objects), Encoding::Json)?,
        Some(Format::Yaml) => manifest::write(objects),
        Some(Format::Name) => names(objects),
        Some(Format::Wide) | None => tables(scheduler.queues()),
    };
    output::print(&answer)?;
    if objects.cluster_queues.is_empty() {
        output::note("no ClusterQueue: nothing can run until `blueproof quota apply -f FILE` brings one");
    }
    Ok(Exit::Ok)
}

fn tables(queues: &Queues) -> String {
    let width = output::width();
    let classes = quotas::priority_classes(queues.objects());
    let classes = classes.map_or_else(String::new, |table| format!("\n{}", table.render(width)));
    format!("{}{classes}", quotas::table(queues).render(width))
}

/// Returns the objects as `kubectl get -o json` lists them.
fn list(objects: &Objects) -> serde_json::Value {
    let items: Vec<_> = manifest::documents(objects)
        .into_iter()
        .map(|document| document.value)
        .collect();
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

fn names(objects: &Objects) -> String {
    let names = objects.cluster_queues.keys();
    names.map(|name| format!("{name}\n")).collect()
}

async fn describe(arguments: &QuotaDescribe, place: &Place) -> Result<Exit, Problem> {
    let scheduler = Reading::open(place)?.scheduler().await?;
    let name = behind(&arguments.name, scheduler.objects())?;
    let runs: Vec<RunView> = scheduler.runs().collect();
    output::print(&queue::describe(name, scheduler.queues(), &runs, output::width()))?;
    Ok(Exit::Ok)
}

/// Returns the ClusterQueue of this name, or the one behind the LocalQueue of this name.
fn behind<'a>(name: &str, objects: &'a Objects) -> Result<&'a str, Problem> {
    let local = objects
        .local_queues
        .get(name)
        .map(|local| local.cluster_queue.as_str());
    let queue = [Some(name), local].into_iter().flatten();
    let mut found = queue.filter_map(|name| objects.cluster_queues.get_key_value(name));
    if let Some((name, _)) = found.next() {
        return Ok(name);
    }
    let known = objects.cluster_queues.keys().chain(objects.local_queues.keys());
    Err(Problem::usage(unknown_queue("queue", name, known)))
}

/// Returns what is said of a queue that is not there.
pub(super) fn unknown_queue<'a>(
    kind: &str,
    name: &str,
    known: impl Iterator<Item = &'a String> + Clone,
) -> Diagnostic {
    let error = Diagnostic::error(Code::NoSuchQueue, format!("there is no {kind} `{name}`"));
    let error = match nearest(name, known.clone().map(String::as_str)) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error,
    };
    let all: BTreeSet<&str> = known.map(String::as_str).collect();
    if all.is_empty() {
        return error.hint("`blueproof quota apply -f FILE` brings queues");
    }
    let all: Vec<&str> = all.into_iter().collect();
    error.hint(format!(
        "there is {}; `blueproof quota get` tells more",
        all.join(", ")
    ))
}
