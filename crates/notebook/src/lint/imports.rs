//! Modules that cells import and that nothing brings.

use blueproof_diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::{
    analysis::{At, Form, OwnModules, Whose},
    environment::{locked_names, pep723},
    modules::{Origin, brings, normalised, origin, wanted},
};

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let Some(packages) = packages(subject) else {
        return Vec::new();
    };
    let analysis = &subject.analysis;
    let own = OwnModules::of(
        subject.notebook,
        analysis,
        &subject.folder(),
        subject.loaded.folder(),
    );
    let mut missing: Vec<(At, &str)> = Vec::new();
    let mut outside: Vec<(At, &str)> = Vec::new();
    for (module, at) in &analysis.imports {
        let brought = || packages.iter().any(|package| brings(package, module));
        if analysis.optional_imports.contains(module) || origin(module) == Origin::Always || brought() {
            continue;
        }
        match own.whose(module) {
            Whose::Own | Whose::Unknown => {}
            Whose::OutsideOfCopy(_) => outside.push((*at, module)),
            Whose::Others => missing.push((*at, module)),
        }
    }
    missing.sort_unstable();
    outside.sort_unstable();
    let missing = missing
        .first()
        .map(|(first, _)| unbrought(subject, *first, &missing));
    let outside = outside.first().map(|(first, _)| {
        let message = format!(
            "it imports {}, which a run lacks: it has a copy of the blueprint's folder alone",
            named(*first, &outside)
        );
        let warning = subject.warning(Code::ImportMissing, *first, message);
        warning.hint("put the blueprint into a folder above both, and name the notebook from there")
    });
    missing.into_iter().chain(outside).collect()
}

fn unbrought(subject: &Subject<'_>, first: At, missing: &[(At, &str)]) -> Diagnostic {
    let mut packages: Vec<String> = Vec::new();
    for (_, module) in missing {
        let package = wanted(module);
        if !packages.contains(&package) {
            packages.push(package);
        }
    }
    let message = format!(
        "it imports {}, which no requirement brings",
        named(first, missing)
    );
    subject.warning(Code::ImportMissing, first, message).hint(format!(
        "add to `spec.env.requirements`: {}; or put the module beside the notebook",
        packages.join(", ")
    ))
}

fn named(first: At, modules: &[(At, &str)]) -> String {
    let names = modules.iter().map(|(at, module)| match at.cell == first.cell {
        true => format!("`{module}`"),
        false => format!("`{module}` (cell {})", at.cell),
    });
    names.collect::<Vec<_>>().join(", ")
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
    for install in subject.analysis.installs_by(Form::Run) {
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
