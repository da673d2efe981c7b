//! What LocalQueues are known by: their names, for there are no namespaces here.
//!
//! Clusters often have one of the same name in each team's namespace. Those are known by both: `team-a.default-queue`.

use std::collections::BTreeMap;

use blueproof_diagnostic::{Code, Diagnostic, name, yaml::Problems};

use super::{
    documents::{Declared, Found},
    kinds::LocalQueue,
};

/// Returns what each is known by.
pub(super) fn names(found: &[Found<LocalQueue>]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for found in found {
        *counts.entry(own_name(found)).or_default() += 1;
    }
    let known = found.iter().map(|found| match &found.object.metadata.namespace {
        Some(namespace) if counts[own_name(found)] > 1 => format!("{namespace}.{}", own_name(found)),
        Some(_) | None => own_name(found).to_owned(),
    });
    known.collect()
}

/// Returns the name that it has in its namespace.
pub(super) fn own_name(found: &Found<LocalQueue>) -> &str {
    &found.object.metadata.name.value.0
}

/// Reports those whose name nobody can type, or that another one has, and says who got another name.
pub(super) fn check(declared: &Declared, problems: &mut [Problems<'_>]) {
    let found = &declared.local_queues;
    let mut first = BTreeMap::new();
    for (found, name) in found.iter().zip(names(found)) {
        let spot = found.object.metadata.name.spot;
        if let Err(error) = name::check(&name) {
            let error = Diagnostic::error(Code::QueueRule, error.to_string());
            problems[found.file].report(spot, error.hint("runs name their queue in at most 63 characters"));
        }
        if own_name(found) != name {
            let message = format!("the LocalQueue `{}` is known as `{name}` here", own_name(found));
            let warning = Diagnostic::warning(Code::QueueRenamed, message);
            problems[found.file].report(
                spot,
                warning.hint("it is not the only one of its name, and there are no namespaces here"),
            );
        }
        if let Some((file, other)) = first.insert(name.clone(), (found.file, found.spot)) {
            let there = problems[file].place(other);
            let message = format!("the LocalQueue `{name}` is there twice");
            let twice = Diagnostic::error(Code::QueueObjectTwice, message);
            problems[found.file].report(
                found.spot,
                twice.hint(format!(
                    "it is also at {there}: keep one of the two, or write the `metadata.namespace` of each, where \
                     they were applied with `-n`"
                )),
            );
        }
    }
}
