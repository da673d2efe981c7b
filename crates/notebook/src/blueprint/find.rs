//! Finding a blueprint by its name: the folders are the registry.

use std::path::{Path, PathBuf};

use blueproof_core::{
    diagnostic::{Code, Diagnostic, Place},
    yaml::{Node, Source, Value, nearest},
};
use walkdir::{DirEntry, WalkDir};

use super::{
    FILE_NAME, FORMAT,
    load::{default_name, folder_of, not_found},
};
use crate::ipynb::read_text;

/// Folders of other tools that may hold copies of blueprints.
const SKIPPED: [&str; 4] = ["node_modules", "target", "venv", "__pycache__"];
/// Nobody nests blueprints deeper; a folder tree made to be deep is not walked to its end.
const DEEPEST: usize = 32;
const LARGEST_BLUEPRINT: u64 = 1 << 20;

/// A blueprint's name and file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The name by which people call it.
    pub name: String,
    /// Its `blueprint.yaml`.
    pub path: PathBuf,
}

/// Returns every blueprint in `root` and below it, in the order of their paths.
///
/// Hidden folders and those of other tools are left out, and symbolic links are not followed. A file with mistakes
/// in it is listed under the name that it would have, so that running it shows them.
pub fn list(root: &Path) -> Vec<Found> {
    let walk = WalkDir::new(root)
        .max_depth(DEEPEST)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || !is_skipped(entry));
    let files = walk
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name() == FILE_NAME);
    files
        .filter(|entry| entry.path().is_file())
        .map(|entry| Found {
            name: name_of(entry.path()),
            path: entry.into_path(),
        })
        .collect()
}

/// Finds the blueprint that is called `name` in `root` or below it, and returns the path of its file.
///
/// # Errors
///
/// None has that name (the nearest one is told), or several have.
pub fn find(root: &Path, name: &str) -> Result<PathBuf, Vec<Diagnostic>> {
    let all = list(root);
    let same: Vec<&Found> = all.iter().filter(|found| found.name == name).collect();
    match same.as_slice() {
        [one] => Ok(one.path.clone()),
        [] => Err(vec![missing(root, name, &all)]),
        several => {
            let ambiguous = Diagnostic::error(
                Code::AmbiguousBlueprint,
                format!("{} blueprints are called `{name}`", several.len()),
            );
            let hint = |diagnostic: Diagnostic, found: &&Found| {
                diagnostic.hint(format!("blueproof run {}", folder_of(&found.path).display()))
            };
            Err(vec![
                several
                    .iter()
                    .take(5)
                    .fold(ambiguous, hint)
                    .at(Place::file(root.display().to_string())),
            ])
        }
    }
}

fn missing(root: &Path, name: &str, all: &[Found]) -> Diagnostic {
    let error = not_found(format!("no blueprint is called `{name}`"), root);
    if let Some(meant) = nearest(name, all.iter().map(|found| found.name.as_str())) {
        return error.hint(format!("did you mean `{meant}`?"));
    }
    if all.is_empty() {
        return error.hint("there is no blueprint.yaml here or below; `blueproof init NOTEBOOK` writes one");
    }
    let known: Vec<&str> = all.iter().take(10).map(|found| found.name.as_str()).collect();
    error.hint(format!("there are: {}", known.join(", ")))
}

fn is_skipped(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    entry.file_type().is_dir() && (name.starts_with('.') || SKIPPED.contains(&name.as_ref()))
}

fn name_of(path: &Path) -> String {
    let folder = folder_of(path);
    let fallback = || default_name(&folder.join("blueprint")).to_string();
    let Ok(text) = read_text(path, LARGEST_BLUEPRINT) else {
        return fallback();
    };
    let file = path.display().to_string();
    let Ok(root) = Node::from_yaml(&Source {
        file,
        text,
        format: &FORMAT,
    }) else {
        return fallback();
    };
    let text = |node: Option<&Node>| match node.map(|node| &node.value) {
        Some(Value::Text(text)) => Some(text.clone()),
        Some(
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::List(_) | Value::Map(_),
        )
        | None => None,
    };
    if let Some(name) = text(root.get("metadata").and_then(|metadata| metadata.get("name"))) {
        return name;
    }
    match text(root.get("spec").and_then(|spec| spec.get("notebook"))) {
        Some(notebook) => default_name(&folder.join(notebook)).to_string(),
        None => fallback(),
    }
}
