//! `blueproof quota`: the queues that hold, and others in their place.

mod apply;
mod beyond;

use std::collections::BTreeSet;

pub(super) use apply::{read, read_file};

use blueproof_core::{scheduler::Scheduler, view::RunView};
use blueproof_diagnostic::{Code, Diagnostic, yaml::nearest};
use blueproof_queue::{manifest, objects::Objects};
use jiff::Timestamp;
use serde_json::json;

use crate::{
    cli::{Quota, QuotaCommand, QuotaDescribe, QuotaGet},
    config::ConfigFlags,
    exit::{Exit, Problem},
    output::{self, Encoding, Format},
    reading::{self, Reading},
    show::{queue, quotas, runs::Columns},
};

pub(crate) fn quota(arguments: &Quota, flags: &ConfigFlags) -> Result<Exit, Problem> {
    match &arguments.command {
        QuotaCommand::Apply(arguments) => apply::apply(arguments, flags),
        QuotaCommand::Get(arguments) => reading::block_on(get(arguments, flags)),
        QuotaCommand::Describe(arguments) => reading::block_on(describe(arguments, flags)),
    }
}

async fn get(arguments: &QuotaGet, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let scheduler = Reading::open(flags)?.scheduler_as_stored().await?;
    let objects = scheduler.objects();
    let answer = match arguments.output {
        Some(Format::Json) => output::encode(&list(objects), Encoding::Json)?,
        Some(Format::Yaml) => manifest::write(objects),
        Some(Format::Name) => names(objects),
        Some(Format::Wide) => tables(&scheduler, Columns::Wide),
        None => tables(&scheduler, Columns::Usual),
    };
    output::print(&answer)?;
    if objects.cluster_queues.is_empty() {
        output::note("no ClusterQueue: nothing can run until `blueproof quota apply -f FILE` brings one");
    }
    Ok(Exit::Ok)
}

fn tables(scheduler: &Scheduler, columns: Columns) -> String {
    let (queues, width) = (scheduler.queues(), output::width());
    let classes = quotas::priority_classes(queues.objects());
    let classes = classes.map_or_else(String::new, |table| format!("\n{}", table.render(width)));
    format!(
        "{}{classes}",
        quotas::table(queues, &scheduler.behind_stopped(), &scheduler.lost(), columns).render(width)
    )
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

async fn describe(arguments: &QuotaDescribe, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let scheduler = Reading::open(flags)?.scheduler_as_stored().await?;
    let removed = quotas::removed(scheduler.queues()).find(|name| *name == arguments.name);
    let name = match removed {
        Some(name) => Ok(name),
        None => behind(&arguments.name, scheduler.objects()),
    };
    let runs: Vec<RunView> = scheduler.runs().collect();
    let now = Timestamp::now();
    let lost = queue::lost(&arguments.name, &scheduler.lost(), &runs);
    let described = match name {
        Ok(name) => queue::describe(name, &scheduler, &runs, now, output::width()),
        Err(_) if !lost.is_empty() => lost.trim_start().to_owned(),
        Err(unknown) => return Err(unknown),
    };
    output::print(&described)?;
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
    if let Some(missing) = local {
        return Err(Problem::usage(nothing_behind(name, missing, objects)));
    }
    if let Some(cohort) = cohort(name, objects) {
        return Err(Problem::usage(cohort));
    }
    let known = objects.cluster_queues.keys().chain(objects.local_queues.keys());
    Err(Problem::usage(unknown_queue("queue", name, known)))
}

/// Returns what is said of a Cohort: which queues are in it; nothing where there is none of this name.
fn cohort(name: &str, objects: &Objects) -> Option<Diagnostic> {
    let queues = objects.cluster_queues.iter();
    let queues = queues.filter(|(_, queue)| queue.cohort.as_deref() == Some(name));
    let queues: Vec<&str> = queues.map(|(queue, _)| queue.as_str()).collect();
    if queues.is_empty() && !objects.cohorts.contains_key(name) {
        return None;
    }
    let error = Diagnostic::error(Code::NoSuchQueue, format!("`{name}` is a cohort, and no queue"));
    let Some(first) = queues.first() else {
        return Some(error.hint("no queue is in it; `blueproof quota get -o yaml` shows it"));
    };
    Some(
        error
            .hint(format!("its queues are {}", queues.join(", ")))
            .hint(format!(
                "`blueproof quota describe {first}` shows one of them, and where it is in its cohorts"
            )),
    )
}

/// Returns what is said of a LocalQueue whose ClusterQueue is not there.
fn nothing_behind(local: &str, missing: &str, objects: &Objects) -> Diagnostic {
    let message = format!("the LocalQueue `{local}` names the ClusterQueue `{missing}`, which is not there");
    let error = Diagnostic::error(Code::NoSuchQueue, message);
    let error = match nearest(missing, objects.cluster_queues.keys().map(String::as_str)) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error,
    };
    error.hint("`blueproof quota apply -f FILE` brings it, or lets the LocalQueue name another")
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

#[cfg(test)]
mod tests {
    use blueproof_queue::objects::{ClusterQueue, LocalQueue};

    use super::*;

    #[test]
    fn a_local_queue_with_nothing_behind_it_is_told_the_name_that_is_missing() {
        let local = |cluster_queue: &str| LocalQueue {
            cluster_queue: cluster_queue.into(),
            ..LocalQueue::default()
        };
        let objects = Objects {
            cluster_queues: [("red".to_owned(), ClusterQueue::default())].into(),
            local_queues: [("ghost", local("rde")), ("front", local("red"))]
                .map(|(name, local)| (name.to_owned(), local))
                .into(),
            ..Objects::default()
        };
        assert_eq!(behind("front", &objects).ok(), Some("red"));
        let mut in_cohort = objects.clone();
        let red = in_cohort.cluster_queues.get_mut("red").expect("there");
        red.cohort = Some("lab".into());
        let problem = behind("lab", &in_cohort).expect_err("it is no queue");
        assert_eq!(problem.diagnostics[0].message, "`lab` is a cohort, and no queue");
        assert_eq!(problem.diagnostics[0].hints[0], "its queues are red");
        let problem = behind("ghost", &objects).expect_err("nothing is behind it");
        let error = &problem.diagnostics[0];
        assert_eq!(
            error.message,
            "the LocalQueue `ghost` names the ClusterQueue `rde`, which is not there"
        );
        assert_eq!(error.hints[0], "did you mean `red`?");
        let problem = behind("ghosts", &objects).expect_err("there is none");
        assert_eq!(problem.diagnostics[0].hints[0], "did you mean `ghost`?");
    }
}
