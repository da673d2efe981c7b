//! Finding a blueprint by its name: the folders are the registry.

use std::path::{Path, PathBuf};

use blueproof_diagnostic::{
    Code, Diagnostic, SourceLocation,
    yaml::{Source, Value, YamlNode, nearest},
};
use walkdir::{DirEntry, WalkDir};

use super::{
    FILE_NAME,
    default_name::{default_name, folder_of},
};
use crate::{document::FORMAT, ipynb::read_text, text::shell_word};

/// Folders of other tools that may hold copies of blueprints.
const SKIPPED: [&str; 4] = ["node_modules", "target", "venv", "__pycache__"];
/// Nobody nests blueprints deeper; a folder tree made to be deep is not walked to its end.
const DEEPEST: usize = 32;
/// More files and folders than a large checkout has; somebody who stands in `/` waits for some seconds and no longer.
const MOST_ENTRIES: usize = 300_000;
const LARGEST_BLUEPRINT: u64 = 1 << 20;

/// A blueprint's name and file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The name by which people call it.
    pub name: String,
    /// Its `blueprint.yaml`.
    pub path: PathBuf,
}

/// What was found in a folder and below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The blueprints, in the order of their paths.
    pub found: Vec<Found>,
    /// Where looking ended, because there was too much to look at.
    pub stopped_at: Option<PathBuf>,
}

/// Returns the blueprints in `root` and below it, and calls `looking` with each file and folder that is looked at.
///
/// Hidden folders, those of other tools and other file systems are left out, and symbolic links are not followed. A file
/// with mistakes in it is listed under the name that it would have, so that running it shows them.
pub fn list(root: &Path, looking: &mut dyn FnMut(&Path)) -> Listing {
    list_at_most(MOST_ENTRIES, root, looking)
}

/// Returns what [`list`] returns, of no more than the first `most` files and folders.
pub fn list_at_most(most: usize, root: &Path, looking: &mut dyn FnMut(&Path)) -> Listing {
    let walk = WalkDir::new(root)
        .max_depth(DEEPEST)
        .same_file_system(true)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || !is_skipped(entry));
    let mut listing = Listing::default();
    for (nth, entry) in walk.filter_map(Result::ok).enumerate() {
        if nth >= most {
            listing.stopped_at = Some(entry.into_path());
            break;
        }
        looking(entry.path());
        if entry.file_name() == FILE_NAME && entry.path().is_file() {
            listing.found.push(Found {
                name: name_of(entry.path()),
                path: entry.into_path(),
            });
        }
    }
    listing
}

/// So many of several that have one name are named.
const NAMED: usize = 5;

/// Finds the blueprint that is called `name` in `root` or below it, and returns the path of its file.
///
/// # Errors
///
/// None has that name (the nearest one is told), or several have.
pub fn find(root: &Path, name: &str, looking: &mut dyn FnMut(&Path)) -> Result<PathBuf, Vec<Diagnostic>> {
    let Listing {
        found: all,
        stopped_at,
    } = list(root, looking);
    let same: Vec<&Found> = all.iter().filter(|found| found.name == name).collect();
    match same.as_slice() {
        [one] => Ok(one.path.clone()),
        [] => Err(vec![said_where(missing(root, name, &all), stopped_at.as_deref())]),
        several => {
            let ambiguous = Diagnostic::error(
                Code::AmbiguousBlueprint,
                format!("{} blueprints are called `{name}`", several.len()),
            );
            let hint = |diagnostic: Diagnostic, found: &&Found| {
                diagnostic.hint(format!("blueproof run {}", shell_word(&folder_of(&found.path))))
            };
            let mut error = several.iter().take(NAMED).fold(ambiguous, hint);
            if several.len() > NAMED {
                let more = several.len() - NAMED;
                error = error.hint(format!("and {more} more: `blueproof get blueprints` lists all"));
            }
            Err(vec![error.at(SourceLocation::file(root.display().to_string()))])
        }
    }
}

/// Says what there is instead: notebooks that a blueprint can be written for, and blueprints further below.
pub(super) fn no_blueprint_in(folder: &Path) -> Diagnostic {
    const MOST: usize = 3;
    let message = format!("there is no {FILE_NAME} in this folder");
    let mut error = not_found(message, folder);
    for found in list(folder, &mut |_| {}).found.iter().take(MOST) {
        error = error.hint(format!("there is one in {}", shell_word(&folder_of(&found.path))));
    }
    let notebooks = notebooks_in(folder);
    for notebook in notebooks.iter().take(MOST) {
        let notebook = shell_word(notebook);
        error = error.hint(format!(
            "blueproof init {notebook}, which writes one; `blueproof run {notebook}` needs none"
        ));
    }
    if error.hints.is_empty() {
        return error
            .hint("`blueproof init NOTEBOOK` writes one; no notebook and no blueprint is here or below");
    }
    error
}

/// Returns the notebooks in a folder, in the order of their names.
fn notebooks_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut notebooks: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "ipynb"))
        .collect();
    notebooks.sort();
    notebooks
}

fn missing(root: &Path, name: &str, all: &[Found]) -> Diagnostic {
    let error = not_found(format!("no blueprint is called `{name}`"), root);
    if let Some(meant) = nearest(name, all.iter().map(|found| found.name.as_str())) {
        return error.hint(format!("did you mean `{meant}`?"));
    }
    if all.is_empty() {
        return error.hint("there is no blueprint.yaml here or below; `blueproof init NOTEBOOK` writes one");
    }
    let known: Vec<String> = all
        .iter()
        .take(10)
        .map(|found| in_words(found, root, all))
        .collect();
    error.hint(format!("there are: {}", known.join(", ")))
}

/// Returns a blueprint's name, and its folder where another one is called the same.
fn in_words(found: &Found, root: &Path, all: &[Found]) -> String {
    if all.iter().filter(|other| other.name == found.name).count() == 1 {
        return found.name.clone();
    }
    let folder = folder_of(&found.path);
    let inside = folder.strip_prefix(root).unwrap_or(&folder);
    format!("{} (in {})", found.name, shell_word(&Path::new(".").join(inside)))
}

/// Says where looking for blueprints ended.
fn said_where(error: Diagnostic, stopped_at: Option<&Path>) -> Diagnostic {
    let Some(stopped_at) = stopped_at else {
        return error;
    };
    error.hint(format!(
        "there was too much to look at, and it ended at {}: change into the checkout, or give the blueprint's path",
        shell_word(stopped_at)
    ))
}

/// Returns the error for a path at which nothing is.
fn not_found(message: String, root: &Path) -> Diagnostic {
    Diagnostic::error(Code::NoSuchBlueprint, message).at(SourceLocation::file(root.display().to_string()))
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
    let Ok(root) = YamlNode::from_yaml(&Source {
        file,
        text,
        format: &FORMAT,
    }) else {
        return fallback();
    };
    let text = |node: Option<&YamlNode>| match node.map(|node| &node.value) {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::blueprint::Blueprint;

    /// Makes a folder for each, with a blueprint of this name.
    fn checkout(blueprints: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (folder, name) in blueprints {
            let folder = root.path().join(folder);
            fs::create_dir_all(&folder).expect("a folder");
            let text = format!("metadata: {{name: {name}}}\n");
            fs::write(folder.join(FILE_NAME), text).expect("a file");
        }
        root
    }

    #[test]
    fn looking_ends_where_there_is_too_much_and_says_where() {
        let root = checkout(&[("a", "one"), ("b", "two"), ("c", "three")]);
        let mut looked_at = 0;
        let listing = list_at_most(4, root.path(), &mut |_| looked_at += 1);
        let names: Vec<&str> = listing.found.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["one"]);
        assert_eq!(listing.stopped_at, Some(root.path().join("b/blueprint.yaml")));
        assert_eq!(looked_at, 4);
        let whole = list(root.path(), &mut |_| {});
        assert_eq!((whole.found.len(), whole.stopped_at), (3, None));
    }

    #[test]
    fn blueprints_that_are_called_the_same_are_told_apart_by_their_folders() {
        let root = checkout(&[("one", "story"), ("the other", "story"), ("b", "else")]);
        let missing = find(root.path(), "nothing-like-it", &mut |_| {}).expect_err("it is not there");
        assert_eq!(
            missing[0].hints,
            ["there are: else, story (in ./one), story (in './the other')"]
        );
        let ambiguous = find(root.path(), "story", &mut |_| {}).expect_err("there are two");
        let other = root.path().join("the other");
        assert!(
            ambiguous[0].hints[1].ends_with(&shell_word(&other)),
            "{ambiguous:?}"
        );
        assert!(ambiguous[0].hints[1].contains('\''), "{ambiguous:?}");
    }

    #[test]
    fn of_many_that_are_called_the_same_those_that_are_not_named_are_counted() {
        let folders = ["1", "2", "3", "4", "5", "6"];
        let root = checkout(&folders.map(|folder| (folder, "story")));
        let ambiguous = find(root.path(), "story", &mut |_| {}).expect_err("there are six");
        let hints = &ambiguous[0].hints;
        assert_eq!(
            (hints.len(), hints[5].as_str()),
            (6, "and 1 more: `blueproof get blueprints` lists all")
        );
    }

    #[test]
    fn a_folder_without_a_blueprint_says_what_there_is_instead() {
        let root = checkout(&[("below", "story")]);
        fs::write(root.path().join("my train.ipynb"), "{}").expect("a file");
        let error = Blueprint::load(root.path()).expect_err("it has none").remove(0);
        assert_eq!(error.code, Code::NoSuchBlueprint);
        assert_eq!(error.message, "there is no blueprint.yaml in this folder");
        let root = root.path().display();
        assert_eq!(error.hints[0], format!("there is one in {root}/below"));
        assert!(
            error.hints[1].starts_with(&format!("blueproof init '{root}/my train.ipynb', ")),
            "{error:?}"
        );
    }
}
