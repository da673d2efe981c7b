//! `blueproof check` and `blueproof init`: blueprints before anything runs.

use std::{fs, io::Write, path::Path};

use blueproof_core::diagnostic::{Code, Diagnostic, Place, Severity};
use blueproof_notebook::{
    blueprint::{self, Blueprint},
    init, lint,
};

use super::run::{checkout_root, find};
use crate::{
    cli::{Check, Init},
    exit::{Exit, Problem},
    output::{self, Document},
    show,
};

/// Looks for mistakes and hazards: exit code 2 for a mistake, 1 for a hazard under `--strict`.
pub(crate) fn check(arguments: &Check) -> Result<Exit, Problem> {
    let paths = match arguments.paths.as_slice() {
        [] => blueprint::list(&checkout_root()?)
            .into_iter()
            .map(|found| found.path)
            .collect(),
        named => named
            .iter()
            .map(|named| find(named))
            .collect::<Result<Vec<_>, _>>()?,
    };
    let diagnostics: Vec<Diagnostic> = paths.iter().flat_map(|path| check_one(path)).collect();
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
        plural(paths.len(), "blueprint"),
        plural(errors, "error"),
        plural(warnings, "warning")
    );
    Ok(match (errors, warnings) {
        (0, 0) => Exit::Ok,
        (0, _) if arguments.strict => Exit::Failed,
        (0, _) => Exit::Ok,
        _ => Exit::Usage,
    })
}

fn check_one(path: &Path) -> Vec<Diagnostic> {
    match Blueprint::load(path) {
        Ok(loaded) => lint::check(&loaded),
        Err(diagnostics) => diagnostics,
    }
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
        path.display()
    );
    Ok(Exit::Ok)
}

fn refuse_to_replace(path: &Path) -> Result<(), Problem> {
    if !path.exists() {
        return Ok(());
    }
    let place = Place::file(path.display().to_string());
    let there = Diagnostic::error(Code::Usage, "there is a blueprint already").at(place);
    Err(Problem::usage(
        there.hint("--force replaces it; --stdout prints the new one"),
    ))
}

fn write_whole(path: &Path, text: &str) -> Result<(), Problem> {
    let failed = |error: &std::io::Error| {
        let place = Place::file(path.display().to_string());
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

fn plural(count: usize, thing: &str) -> String {
    if count == 1 {
        format!("1 {thing}")
    } else {
        format!("{count} {thing}s")
    }
}
