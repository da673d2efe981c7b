//! The name of a blueprint that gives itself none, by where its files are.

use std::path::{Path, PathBuf};

use blueproof_core::domain::BlueprintName;

/// Files that are called after what they are, not after what they are about.
const GENERIC_STEMS: [&str; 10] = [
    "blueprint",
    "demo",
    "example",
    "index",
    "main",
    "notebook",
    "train",
    "training",
    "tutorial",
    "untitled",
];

/// Returns the name of a blueprint that gives itself none: its notebook's, or the folder's where the file is called
/// after nothing in particular.
pub(crate) fn default_name(notebook: &Path) -> BlueprintName {
    let stem = notebook.file_stem().unwrap_or_default().to_string_lossy();
    let own = slug(&stem);
    let folder = || {
        let folder = folder_of(notebook).canonicalize().ok()?;
        let name = slug(&folder.file_name()?.to_string_lossy());
        name.parse().ok()
    };
    if GENERIC_STEMS.contains(&own.as_str())
        && let Some(name) = folder()
    {
        return name;
    }
    own.parse()
        .or_else(|_| "notebook".parse())
        .expect("`notebook` is a name")
}

pub(crate) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' | '.' => slug.push(c),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.truncate(63);
    slug.trim_matches(['-', '.']).to_owned()
}
