//! Which mutants there are: cargo-mutants' list, each with a name that an edit elsewhere does not change.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{process::Invocation, workspace::Workspace};

/// The package whose code is changed.
pub(super) const PACKAGE: &str = "blueproof-queue";

/// Where who gets quota, and at whose expense, is decided. What tells of it, and what stands around it, is not here.
const MODULES: [&str; 13] = [
    "assign.rs",
    "cycle.rs",
    "cycle/*.rs",
    "cycle_state.rs",
    "forest.rs",
    "pending_queue.rs",
    "progress.rs",
    "quotas.rs",
    "share.rs",
    "terms.rs",
    "tree.rs",
    "victims.rs",
    "victims/*.rs",
];

/// One change to the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mutant {
    /// What cargo-mutants calls it: the place, by line and column, and the change.
    pub(super) name: String,
    pub(super) file: String,
    /// The file, the change with its function, and the text of the line; the same wherever the line stands.
    pub(super) id: String,
}

/// A mutant as cargo-mutants lists it.
#[derive(Debug, Deserialize)]
struct Listed {
    name: String,
    file: String,
    genre: Genre,
    diff: String,
}

/// What kind of change it is, as far as we have to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Genre {
    /// A function does nothing but return a value.
    FnValue,
    #[serde(other)]
    Other,
}

/// Returns all mutants, in the order of their places.
pub(super) fn all(workspace: &Workspace, program: &Path) -> Result<Vec<Mutant>> {
    let ask = ask(program);
    let answer = ask.ask(&workspace.root);
    let answer = answer.with_context(|| format!("`{ask}` failed; run it to see why"))?;
    let listed: Vec<Listed> =
        serde_json::from_str(&answer).with_context(|| format!("`{ask}` does not answer as it used to"))?;
    Ok(listed.into_iter().map(Mutant::from).collect())
}

fn ask(program: &Path) -> Invocation {
    let words = ["mutants", "--no-config", "--list", "--json", "--package", PACKAGE].map(str::to_owned);
    let files = MODULES.map(|module| format!("--file=crates/queue/src/{module}"));
    Invocation::of(program, words.into_iter().chain(files))
}

impl From<Listed> for Mutant {
    fn from(listed: Listed) -> Self {
        let Listed {
            name,
            file,
            genre,
            diff,
        } = listed;
        let change = name.splitn(4, ':').last().unwrap_or_default().trim_start();
        let line = diff.lines().skip(2).find_map(|line| line.strip_prefix('-'));
        let id = match line {
            // A function is found by its name; its first line says nothing.
            Some(line) if genre != Genre::FnValue => format!("{file}: {change} at `{}`", line.trim()),
            Some(_) | None => format!("{file}: {change}"),
        };
        Self { name, file, id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Mutant {
        let listed: Listed = serde_json::from_str(json).expect("as cargo-mutants writes it");
        listed.into()
    }

    #[test]
    fn a_change_is_known_by_its_function_and_its_line_and_not_by_where_they_are() {
        let json = r#"{
            "name": "src/share.rs:27:13: replace < with == in Share::compare",
            "package": "blueproof-queue",
            "file": "src/share.rs",
            "function": {"function_name": "Share::compare", "return_type": "-> Ordering"},
            "span": {"start": {"line": 27, "column": 13}, "end": {"line": 27, "column": 14}},
            "replacement": "==",
            "genre": "BinaryOperator",
            "diff": "--- src/share.rs\n+++ replace < with == in Share::compare\n@@ -1,3 +1,3 @@\n fn f() {\n-    a < b::c\n+    a == b::c\n }\n"
        }"#;
        let mutant = read(json);
        assert_eq!(
            mutant.id,
            "src/share.rs: replace < with == in Share::compare at `a < b::c`"
        );
    }

    #[test]
    fn a_function_that_is_replaced_is_known_by_its_name() {
        let json = r#"{
            "name": "src/share.rs:27:9: replace Share::of -> Share with Default::default()",
            "file": "src/share.rs",
            "genre": "FnValue",
            "diff": "--- src/share.rs\n+++ replace\n@@ -1,3 +1,3 @@\n fn f() {\n-    a < b\n+    Default::default()\n }\n"
        }"#;
        let expected = "src/share.rs: replace Share::of -> Share with Default::default()";
        assert_eq!(read(json).id, expected);
    }

    #[test]
    fn every_module_is_there() {
        let workspace = Workspace::load().expect("our own workspace can be read");
        for module in MODULES {
            let path = workspace
                .root
                .join("crates/queue/src")
                .join(module.trim_end_matches("/*.rs"));
            assert!(path.exists(), "{module}");
        }
    }
}
