//! What the notebook's own kernel needs installed.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{Draft, scalar};
use crate::{
    blueprint::folder_of,
    environment::{checked_requirement, pep723},
    ipynb::{Notebook, read_text},
    modules::{Origin, is_local, is_package_of, normalised, origin},
    survey::{At, Form, Survey},
    text::line,
};

/// What pip's list of requirements is called.
const REQUIREMENTS: &str = "requirements.txt";
/// The largest such list that is read.
const LARGEST_REQUIREMENTS: u64 = 1 << 20;

/// Writes `env`: what cells install, then what else they import.
pub(super) fn write(draft: &mut Draft, survey: &Survey, given: &Given) {
    let (found, remarks) = requirements(survey, given);
    if !found.is_empty() {
        draft.line(1, "env:");
        draft.line(2, "requirements:");
        for (requirement, remark) in &found {
            draft.remarked(3, format!("- {}", scalar(requirement)), remark);
        }
    }
    for remark in &remarks {
        draft.remark(1, remark);
    }
    for job in survey.jobs.iter().filter(|job| !job.packages.is_empty()) {
        let names: Vec<&str> = job.packages.iter().filter_map(|package| package.text()).collect();
        let cell = job.made.at.cell;
        draft.remark(
            1,
            format!(
                "packages_to_install, in the pods of cell {cell}'s TrainJob: {}",
                line(&names.join(", "))
            ),
        );
    }
}

/// What is said of packages outside the cells' code, and the folders that own modules may lie in.
#[derive(Default)]
pub(super) struct Given {
    /// Requirements, with where they stand.
    pub(super) requirements: Vec<(String, String)>,
    /// What else is said there, which a person has to look at.
    pub(super) remarks: Vec<String>,
    pub(super) folder: PathBuf,
}

impl Given {
    /// Reads the `requirements.txt` beside a notebook, and the script block (PEP 723) of its first cell of code.
    pub(super) fn read(notebook: &Notebook, path: &Path) -> Self {
        let mut given = Self {
            folder: folder_of(path),
            ..Self::default()
        };
        if let Some(first) = notebook.code().next()
            && let Ok(Some(own)) = pep723(&first.source)
        {
            let from = format!("the script block of cell {}", first.number);
            given.remarks.extend(
                own.python
                    .map(|python| format!("{from} asks for Python {}", line(&python))),
            );
            own.requirements.iter().for_each(|text| given.take(text, &from));
        }
        if let Ok(text) = read_text(&path.with_file_name(REQUIREMENTS), LARGEST_REQUIREMENTS) {
            text.lines().for_each(|text| given.take(text, REQUIREMENTS));
        }
        given
    }

    fn take(&mut self, text: &str, from: &str) {
        let text = text.trim();
        let bare = text.split(" #").next().unwrap_or(text).trim();
        if bare.is_empty() || bare.starts_with('#') {
            return;
        }
        match checked_requirement(bare) {
            Ok(()) => self.requirements.push((bare.to_owned(), from.to_owned())),
            Err(_) => self
                .remarks
                .push(format!("{from} says {}, which has no place here", line(bare))),
        }
    }
}

/// Returns requirements with remarks, each package once: those that are written down first, then by cells.
fn requirements(survey: &Survey, given: &Given) -> (Vec<(String, String)>, Vec<String>) {
    let mut found: BTreeMap<String, (At, usize, String, String)> = BTreeMap::new();
    for (nth, (requirement, from)) in given.requirements.iter().enumerate() {
        let entry = (At::default(), nth, requirement.clone(), from.clone());
        found.entry(normalised(requirement)).or_insert(entry);
    }
    for form in [Form::Run, Form::Comment] {
        for install in survey.installs_by(form) {
            let remark = match form {
                Form::Run => format!("cell {} installs it", install.at.cell),
                Form::Comment => format!("cell {}, in a comment", install.at.cell),
            };
            let packages = install.packages.iter().filter(|package| is_requirement(package));
            for (nth, package) in packages.enumerate() {
                let entry = (install.at, nth, package.clone(), remark.clone());
                found.entry(normalised(package)).or_insert(entry);
            }
        }
    }
    let mut remarks = given.remarks.clone();
    for (module, at) in &survey.imports {
        let brought = found.keys().any(|package| is_package_of(package, module));
        if brought || is_local(module, &[given.folder.as_path()]) {
            continue;
        }
        let (package, remark) = match origin(module) {
            Origin::Always => continue,
            Origin::Shared => {
                remarks.push(format!(
                    "cell {} imports {module}: name the package that brings it",
                    at.cell
                ));
                continue;
            }
            Origin::Package(package) => (package, format!("cell {} imports it", at.cell)),
            Origin::Guessed(package) => (
                package,
                format!("cell {} imports it; is this the package's name?", at.cell),
            ),
        };
        if survey.optional_imports.contains(module) {
            remarks.push(format!(
                "cell {} imports {module} where it is there: {package}",
                at.cell
            ));
            continue;
        }
        let entry = (*at, 0, package.to_owned(), remark);
        found.entry(normalised(package)).or_insert(entry);
    }
    let mut ordered: Vec<_> = found.into_values().collect();
    ordered.sort();
    let ordered = ordered
        .into_iter()
        .map(|(_, _, requirement, remark)| (requirement, remark));
    (ordered.collect(), remarks)
}

fn is_requirement(text: &str) -> bool {
    let begins = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    begins
        && text.len() < 200
        && checked_requirement(text).is_ok()
        && !text.chars().any(|c| c.is_control() || c == '{' || c == '$')
}
