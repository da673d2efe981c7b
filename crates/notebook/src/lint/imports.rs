//! Modules that cells import and that nothing brings.

use blueproof_core::diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::{
    environment::{locked_names, pep723},
    modules::{Origin, brings, is_local, normalised, origin},
    survey::{At, Form, Made},
};

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let Some(packages) = packages(subject) else {
        return Vec::new();
    };
    let survey = &subject.survey;
    let mut missing: Vec<(At, &str)> = survey
        .imports
        .iter()
        .filter(|(module, _)| !survey.optional_imports.contains(*module))
        .filter(|(module, _)| origin(module) != Origin::Always)
        .filter(|(module, _)| !packages.iter().any(|package| brings(package, module)))
        .filter(|(module, _)| !is_beside(subject, module))
        .map(|(module, at)| (*at, module.as_str()))
        .collect();
    missing.sort_unstable();
    let Some((first, _)) = missing.first() else {
        return Vec::new();
    };
    let names: Vec<String> = missing
        .iter()
        .map(|(at, module)| match at.cell == first.cell {
            true => format!("`{module}`"),
            false => format!("`{module}` (cell {})", at.cell),
        })
        .collect();
    let wanted: Vec<&str> = missing
        .iter()
        .map(|(_, module)| match origin(module) {
            Origin::Always | Origin::Shared => *module,
            Origin::Package(name) | Origin::Guessed(name) => name,
        })
        .collect();
    let message = format!("it imports {}, which no requirement brings", names.join(", "));
    vec![
        subject
            .warning(Code::ImportMissing, *first, message)
            .hint(format!(
                "add to `spec.env.requirements`: {}; or put the module beside the notebook",
                wanted.join(", ")
            )),
    ]
}

/// Returns the names of all packages that are asked for, or nothing where they cannot be known.
fn packages(subject: &Subject<'_>) -> Option<Vec<String>> {
    let env = &subject.loaded.blueprint.spec.env;
    let profiles = subject.loaded.blueprint.spec.profiles.values();
    // A profile may bring another environment, which a module may be for.
    if profiles.into_iter().any(|profile| profile.env.is_some()) {
        return None;
    }
    let mut names: Vec<String> = env
        .requirements
        .iter()
        .map(|line| normalised(line.value.trim()))
        .collect();
    if let Some(lock) = &env.lock {
        names.extend(locked_names(subject.loaded.folder(), &lock.value.0)?);
    }
    if names.is_empty()
        && let Some(first) = subject.notebook.code().next()
    {
        let own = pep723(&first.source).ok()?;
        let lines = own.map(|own| own.requirements).unwrap_or_default();
        names.extend(lines.iter().map(|line| normalised(line)));
    }
    for install in subject.survey.installs_by(Form::Run) {
        // `pip install -r requirements.txt` and `pip install .` bring what nobody can tell from here.
        if install.packages.is_empty()
            || install
                .packages
                .iter()
                .any(|package| package.contains(['/', ':']) || package == ".")
        {
            return None;
        }
        names.extend(install.packages.iter().map(|package| normalised(package)));
    }
    Some(names)
}

fn is_beside(subject: &Subject<'_>, module: &str) -> bool {
    let folder = subject.folder();
    let mut folders = vec![folder.clone(), subject.loaded.folder().to_path_buf()];
    let mut anywhere = false;
    for made in subject.survey.calls.iter().filter(|made| extends_path(made)) {
        match made.arguments.iter().find_map(|argument| argument.text()) {
            Some(text) => folders.push(folder.join(text)),
            None => anywhere = true,
        }
    }
    let folders: Vec<_> = folders.iter().map(std::path::PathBuf::as_path).collect();
    anywhere || is_local(module, &folders)
}

/// Returns whether a call adds to where Python looks for modules: `sys.path.append("..")`.
fn extends_path(made: &Made) -> bool {
    let of_path = made.receiver.as_ref().and_then(|receiver| receiver.symbol());
    matches!(made.function.as_str(), "append" | "insert" | "extend") && of_path == Some("sys.path")
}
