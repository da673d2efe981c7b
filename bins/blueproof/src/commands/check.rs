//! `blueproof check` and `blueproof init`: blueprints before anything runs.

use std::{fs, io::Write, path::Path};

use blueproof_core::domain::{Gpus, Resources};
use blueproof_diagnostic::{Code, Diagnostic, Severity};
use blueproof_notebook::{
    blueprint::{self, Blueprint, Loaded, Resolved},
    init, lint,
    plan::Secret,
    text::shell_word,
};
use blueproof_queue::amount_in_words;

use super::{blueprints::of_this_checkout, run::find};
use crate::{
    cli::{Check, Init},
    config::ConfigFlags,
    exit::{Exit, Problem},
    output::{self, Document},
    reading::{Reading, block_on},
    session,
    show::{self, text::counted},
};

/// Looks for mistakes and hazards: exit code 2 for a mistake, 1 for a hazard under `--strict`.
pub(crate) fn check(arguments: &Check, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let here = Here::look(flags)?;
    let paths = match arguments.paths.as_slice() {
        [] => of_this_checkout()?.into_iter().map(|found| found.path).collect(),
        named => named
            .iter()
            .map(|named| find(named))
            .collect::<Result<Vec<_>, _>>()?,
    };
    if paths.is_empty() {
        return Err(Problem::usage(nothing_to_check()));
    }
    let diagnostics: Vec<Diagnostic> = paths.iter().flat_map(|path| check_one(path, &here)).collect();
    let count = |severity| {
        diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == severity)
            .count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    match arguments.output {
        Some(format) => {
            let list = Document::list("DiagnosticList", "Diagnostic", &diagnostics);
            output::print(&output::encode(&list, format.into())?)?;
        }
        None => output::print(&diagnostics.iter().map(show::render).collect::<String>())?,
    }
    anstream::eprintln!(
        "{} checked: {}, {}",
        counted(paths.len(), "blueprint"),
        counted(errors, "error"),
        counted(warnings, "warning")
    );
    Ok(match (errors, warnings) {
        (0, 0) => Exit::Ok,
        (0, _) if arguments.strict => Exit::Failed,
        (0, _) => Exit::Ok,
        _ => Exit::Usage,
    })
}

/// A step of a CI job that looks in a wrong folder must not pass for ever.
fn nothing_to_check() -> Diagnostic {
    let none = Diagnostic::error(Code::NoSuchBlueprint, "no blueprint.yaml is here or below");
    none.hint("change into a checkout that has one").hint(
        "`blueproof check NOTEBOOK` looks at a notebook that has none; `blueproof init NOTEBOOK` writes one",
    )
}

/// What a run on this machine would be given.
struct Here {
    /// All that the queue may promise; nothing where others than this machine's own queue were applied.
    quota: Option<Resources>,
    value: fn(&str) -> Option<String>,
}

impl Here {
    fn look(flags: &ConfigFlags) -> Result<Self, Problem> {
        let reading = Reading::open(flags)?;
        let quota = block_on(async {
            let applied = match &reading.store {
                Some(store) => store.applied_quota().await?,
                None => None,
            };
            if applied.is_some() {
                return Ok(None);
            }
            session::policy_here(&reading.config)
                .await
                .map(|policy| Some(policy.quota))
        })?;
        Ok(Self {
            quota,
            value: |variable| std::env::var(variable).ok(),
        })
    }
}

fn check_one(path: &Path, here: &Here) -> Vec<Diagnostic> {
    match Blueprint::load(path) {
        Ok(loaded) => {
            let mut found = refusals(&loaded, here);
            found.extend(lint::check(&loaded));
            found
        }
        Err(diagnostics) => diagnostics,
    }
}

/// Returns why a run would be refused here. What only a profile asks for stops nobody who leaves it out: a warning.
fn refusals(loaded: &Loaded, here: &Here) -> Vec<Diagnostic> {
    let plain = match loaded.resolve(None, &[]) {
        Ok(plain) => plain,
        Err(mistakes) => return mistakes,
    };
    let mut found: Vec<Diagnostic> = plain
        .plan
        .secrets
        .iter()
        .filter_map(|secret| unusable(secret, (here.value)(&secret.env).as_deref()))
        .map(|unusable| unusable.at(loaded.place_of(&["spec", "secrets"])))
        .collect();
    found.extend(too_much(loaded, &plain, here));
    for name in loaded.profiles() {
        match loaded.resolve(Some(name), &[]) {
            Ok(resolved) => found.extend(too_much(loaded, &resolved, here).map(|error| Diagnostic {
                severity: Severity::Warning,
                message: format!(
                    "under the profile `{name}` it {}",
                    error.message.trim_start_matches("it ")
                ),
                ..error.at(loaded.place_of(&["spec", "profiles", name]))
            })),
            Err(mistakes) => found.extend(mistakes),
        }
    }
    found
}

fn unusable(secret: &Secret, value: Option<&str>) -> Option<Diagnostic> {
    secret.refused(value).or_else(|| secret.too_short(value?))
}

fn too_much(loaded: &Loaded, resolved: &Resolved, here: &Here) -> Option<Diagnostic> {
    let (quota, asked) = (here.quota?, resolved.pod_sets.resources());
    let key = if resolved.n_pods() > 0 {
        "workload"
    } else {
        "driver"
    };
    if let Some(label) = no_such_node(resolved) {
        return Some(label.at(loaded.place_of(&["spec", key])));
    }
    let further = resolved.pod_sets.further();
    let message = if asked.gpu > quota.gpu && quota.gpu == Gpus(0) {
        format!("it asks for {} gpu, and there is no GPU here", asked.gpu.0)
    } else if asked.gpu > quota.gpu || asked.cpu > quota.cpu || asked.memory > quota.memory {
        format!("it asks for {asked}, more than the {quota} that there are here")
    } else if let Some((resource, amount)) = further.first_key_value() {
        let amount = amount_in_words(resource, *amount);
        format!("it asks for {amount} {resource}, of which there is no quota here")
    } else {
        return None;
    };
    let error = Diagnostic::error(Code::AsksTooMuch, message).at(loaded.place_of(&["spec", key]));
    Some(
        error
            .hint("ask for less, in a profile if it is for this machine only; or run it where there is more"),
    )
}

/// Returns why a run would be refused that asks for a node with labels, of which there are none without applied quota.
fn no_such_node(resolved: &Resolved) -> Option<Diagnostic> {
    let mut sets = resolved.pod_sets.as_slice().iter();
    let (key, value) = sets.find_map(|set| set.node_selector.first_key_value())?;
    let message = format!("it asks for nodes with the label {key}={value}, and there are none here");
    let error = Diagnostic::error(Code::NodeLabelMissing, message);
    Some(error.hint(
        "take it out of nodeSelector, in a profile if it is for this machine only; or run it where there are such nodes",
    ))
}

/// Writes a blueprint beside a notebook, and never over one that is there unless told to.
pub(crate) fn init(arguments: &Init) -> Result<Exit, Problem> {
    let draft = init::draft(&arguments.notebook)?;
    if arguments.stdout {
        output::print(&draft)?;
        return Ok(Exit::Ok);
    }
    let path = arguments.notebook.with_file_name(blueprint::FILE_NAME);
    if !arguments.force {
        refuse_to_replace(&path)?;
    }
    write_whole(&path, &draft)?;
    anstream::println!("{}", path.display());
    anstream::eprintln!(
        "what was inferred says from which cell; `blueproof check {}` looks for hazards",
        shell_word(&path)
    );
    Ok(Exit::Ok)
}

fn refuse_to_replace(path: &Path) -> Result<(), Problem> {
    if !path.exists() {
        return Ok(());
    }
    let place = blueproof_diagnostic::SourceLocation::file(path.display().to_string());
    let there = Diagnostic::error(Code::Usage, "there is a blueprint already").at(place);
    Err(Problem::usage(
        there.hint("--force replaces it; --stdout prints the new one"),
    ))
}

fn write_whole(path: &Path, text: &str) -> Result<(), Problem> {
    let failed = |error: &std::io::Error| {
        let place = blueproof_diagnostic::SourceLocation::file(path.display().to_string());
        Problem::usage(
            Diagnostic::error(Code::FileMissing, "could not write the blueprint")
                .at(place)
                .caused_by(error),
        )
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
    file.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(file.path(), mode).map_err(|error| failed(&error))?;
    file.persist(path).map_err(|error| failed(&error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use blueproof_core::domain::{Bytes, Cpus};

    use super::*;

    fn codes(spec: &str) -> Vec<(Code, Severity)> {
        let folder = tempfile::tempdir().expect("a folder");
        let notebook = r#"{"nbformat": 4, "cells": [{"cell_type": "code", "source": "1"}]}"#;
        fs::write(folder.path().join("n.ipynb"), notebook).expect("files can be written");
        let head = "apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\nspec:\n  notebook: n.ipynb\n";
        let path = folder.path().join("blueprint.yaml");
        fs::write(&path, format!("{head}  {spec}\n")).expect("files can be written");
        let here = Here {
            quota: Some(Resources {
                cpu: Cpus::cores(4),
                memory: Bytes(8 << 30),
                gpu: Gpus(0),
            }),
            value: |variable| {
                let set = [("SET", "a-value"), ("EMPTY", ""), ("SHORT", "abc")].into_iter();
                let mut value = set.filter(|(name, _)| *name == variable);
                value.next().map(|(_, value)| value.to_owned())
            },
        };
        let loaded = Blueprint::load(&path).expect("it is valid");
        let found = refusals(&loaded, &here).into_iter();
        found.map(|found| (found.code, found.severity)).collect()
    }

    #[test]
    fn more_than_there_is_here_is_refused_and_in_a_profile_warned_of() {
        for spec in [
            "driver: {cpu: 5}",
            "driver: {memory: 9Gi}",
            "driver: {gpu: 1}",
            "workload: {nodes: 4, perNode: {cpu: 1}}",
        ] {
            assert_eq!(codes(spec), [(Code::AsksTooMuch, Severity::Error)], "{spec}");
            let profile = format!("profiles: {{big: {{{spec}}}}}");
            assert_eq!(
                codes(&profile),
                [(Code::AsksTooMuch, Severity::Warning)],
                "{spec}"
            );
        }
        assert_eq!(codes("driver: {cpu: 4, memory: 8Gi}"), []);
    }

    #[test]
    fn what_only_applied_quota_can_have_is_refused_without_any() {
        for (spec, code) in [
            ("driver: {resources: {amd.com/gpu: 1}}", Code::AsksTooMuch),
            (
                "workload: {perNode: {resources: {nvidia.com/mig-1g.10gb: 1}}}",
                Code::AsksTooMuch,
            ),
            ("driver: {nodeSelector: {gpu: a10}}", Code::NodeLabelMissing),
            (
                "workload: {podSets: [{name: trainer, nodeSelector: {gpu: a10}}]}",
                Code::NodeLabelMissing,
            ),
        ] {
            assert_eq!(codes(spec), [(code, Severity::Error)], "{spec}");
            let profile = format!("profiles: {{big: {{{spec}}}}}");
            assert_eq!(codes(&profile), [(code, Severity::Warning)], "{spec}");
        }
        assert_eq!(codes("driver: {tolerations: [{operator: Exists}]}"), []);
    }

    #[test]
    fn a_secret_that_is_not_set_is_refused() {
        assert_eq!(
            codes("secrets: [{name: a, env: SET}, {name: b, env: UNSET}]"),
            [(Code::SecretMissing, Severity::Error)]
        );
    }

    #[test]
    fn a_secret_that_is_empty_is_refused_and_of_a_short_one_it_is_warned() {
        assert_eq!(
            codes("secrets: [{name: a, env: EMPTY}, {name: b, env: SHORT}]"),
            [
                (Code::SecretMissing, Severity::Error),
                (Code::SecretShown, Severity::Warning)
            ]
        );
    }
}
