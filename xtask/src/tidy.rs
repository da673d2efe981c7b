//! Rules that no compiler checks.
//!
//! Each rule is a module with one function that takes what it judges and returns its complaints, and a test that a bad input
//! gets one. What the rules are for stands in `ARCHITECTURE.md`.

mod circles;
mod edges;
mod glossary;
mod headers;
mod ignored;
mod lengths;
mod paths;
mod unsafety;

use std::{collections::BTreeMap, fmt, fs, path::Path, thread};

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use glossary::Glossary;

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// The file, relative to the workspace; for rules about packages, the manifest.
    file: String,
    /// The line, counted from one.
    line: Option<usize>,
    /// What is wrong and what to do.
    message: String,
}

/// A text file of the workspace.
#[derive(Debug)]
struct Source {
    /// Its path, relative to the workspace.
    path: String,
    /// What is in it.
    text: String,
}

/// A file of a crate that is shipped, for the rules that judge more than its lines.
struct Parsed<'a> {
    source: &'a Source,
    syntax: syn::File,
}

/// Returns every place that breaks a rule, file by file.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Complaint>> {
    let mut complaints = edges::check(workspace);
    let machine = paths::Machine::of(&workspace.root);
    let sources = sources(&workspace.root)?;
    for source in &sources {
        if source.is_rust() {
            complaints.extend(headers::check(source));
            complaints.extend(ignored::check(source));
            complaints.extend(lengths::check(source));
            complaints.extend(unsafety::check(source));
        }
        complaints.extend(paths::check(source, &machine));
    }
    complaints.extend(check_syntax(&sources));
    Ok(complaints)
}

/// Checks what needs more than the lines of a file. Crates are parsed side by side: that takes longer than all else.
fn check_syntax(sources: &[Source]) -> Vec<Complaint> {
    let glossary = Glossary::of(sources);
    let glossary = &glossary;
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        if let Some(root) = source.crate_root() {
            crates.entry(root).or_default().push(source);
        }
    }
    thread::scope(|scope| {
        let of_crates: Vec<_> = crates
            .into_values()
            .map(|sources| scope.spawn(move || check_crate(sources, glossary)))
            .collect();
        let of_crates = of_crates.into_iter();
        of_crates
            .flat_map(|complaints| complaints.join().expect("a rule does not panic"))
            .collect()
    })
}

fn check_crate(sources: Vec<&Source>, glossary: &Glossary) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut files = Vec::new();
    for source in sources {
        match Parsed::of(source) {
            Ok(file) => files.push(file),
            Err(complaint) => complaints.push(complaint),
        }
    }
    complaints.extend(files.iter().flat_map(|file| glossary.check(file)));
    complaints.extend(circles::check(&files));
    complaints
}

/// Returns the text files of the workspace in the order of their paths, without what is built or made by a run.
fn sources(root: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("could not list `{}`", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("could not list `{}`", folder.display()))?;
            let kind = entry
                .file_type()
                .with_context(|| format!("could not look at `{}`", entry.path().display()))?;
            if kind.is_dir() && !is_made(&entry.path()) {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    let read = found.iter().map(|path| read(root, path));
    read.filter_map(Result::transpose).collect()
}

/// Whether a folder holds what was built or made by a run, or belongs to another tool.
fn is_made(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let is_ours = [".cargo", ".ci", ".config", ".github"].contains(&&*name);
    // Cargo and others put this file into folders that can be made again, whatever the folder is called.
    let is_cache = folder.join("CACHEDIR.TAG").exists();
    let is_environment = folder.join("pyvenv.cfg").exists();
    is_cache || is_environment || name == "__pycache__" || name.starts_with('.') && !is_ours
}

fn read(root: &Path, path: &Path) -> Result<Option<Source>> {
    let bytes = fs::read(path).with_context(|| format!("could not read `{}`", path.display()))?;
    let Ok(text) = String::from_utf8(bytes) else {
        return Ok(None); // An image or the like.
    };
    let path = path.strip_prefix(root).unwrap_or(path);
    Ok(Some(Source {
        path: path.to_string_lossy().into_owned(),
        text,
    }))
}

impl Source {
    fn is_rust(&self) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|extension| extension == "rs")
    }

    /// Returns the `src` folder of the crate that it belongs to; `None` of what is no Rust, of tests, and of what is not shipped.
    fn crate_root(&self) -> Option<&str> {
        let is_shipped = self.path.starts_with("crates/") || self.path.starts_with("bins/");
        let at = self.path.find("/src/")? + "/src".len();
        let module = self.path[at + 1..].strip_suffix(".rs").filter(|_| is_shipped)?;
        let is_test = module.split('/').any(|name| name == "tests");
        (!is_test).then(|| &self.path[..at])
    }

    fn complaint(&self, line: Option<usize>, message: impl Into<String>) -> Complaint {
        Complaint {
            file: self.path.clone(),
            line,
            message: message.into(),
        }
    }

    /// Complains about each line on which `is_bad` holds.
    fn complain_where(&self, is_bad: impl Fn(&str) -> bool, message: &str) -> Vec<Complaint> {
        let bad = self.text.lines().enumerate().filter(|(_, line)| is_bad(line));
        bad.map(|(i, _)| self.complaint(Some(i + 1), message)).collect()
    }
}

impl<'a> Parsed<'a> {
    fn of(source: &'a Source) -> Result<Self, Complaint> {
        let syntax = syn::parse_file(&source.text);
        let syntax = syntax.map_err(|e| {
            source.complaint(
                Some(e.span().start().line),
                format!("this is no Rust that is known: {e}"),
            )
        })?;
        Ok(Self { source, syntax })
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Source {
        /// Makes up a file.
        pub(super) fn of(path: &str, text: impl Into<String>) -> Self {
            Self {
                path: path.into(),
                text: text.into(),
            }
        }
    }

    #[test]
    fn every_rule_looks_at_the_files_of_a_workspace_and_none_at_what_is_built() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let root = folder.path();
        let long = format!("//! Long.\n#[ignore]\n{}", "use a;\n".repeat(700));
        for (path, text) in [
            ("crates/a/src/bad.rs", "fn main() {}\n"),
            ("crates/a/src/long.rs", &long),
            (".ci/run", &["cd /ho", "me/ann/project\n"].concat()),
            ("crates/a/src/target/bad.rs", "fn main() {}\n"),
            ("built/CACHEDIR.TAG", ""),
            ("built/debug/made.rs", "fn main() {}\n"),
            (".git/hooks/made.rs", "fn main() {}\n"),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("folders can be made");
            fs::write(path, text).expect("files can be written");
        }
        fs::write(root.join("image.png"), [0xff, 0xd8]).expect("files can be written");

        let workspace = Workspace {
            root: root.to_owned(),
            ..Workspace::default()
        };
        let complaints = check(&workspace).expect("the folder can be read");

        let places: Vec<_> = complaints
            .iter()
            .map(|complaint| (complaint.file.as_str(), complaint.line))
            .collect();
        let expected = [
            (".ci/run", Some(1)),
            ("crates/a/src/bad.rs", Some(1)),
            ("crates/a/src/long.rs", Some(2)),
            ("crates/a/src/long.rs", None),
            ("crates/a/src/target/bad.rs", Some(1)),
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn a_complaint_is_printed_with_its_place_in_front() {
        let source = Source::of("a.rs", "");
        assert_eq!(source.complaint(Some(3), "no").to_string(), "a.rs:3: no");
        assert_eq!(source.complaint(None, "no").to_string(), "a.rs: no");
    }
}
