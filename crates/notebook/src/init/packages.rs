//! What the notebook's own kernel needs installed.

use std::path::Path;

use blueproof_diagnostic::Code;

use super::{Draft, scalar};
use crate::{
    analysis::{Analysis, At, Form, OwnModules, Whose},
    blueprint::folder_of,
    environment::{checked_requirement, pep723},
    ipynb::{Notebook, read_text},
    modules::{Origin, is_package_of, normalised, origin},
    text::line,
};

/// What pip's list of requirements is called.
const REQUIREMENTS: &str = "requirements.txt";
/// The largest such list that is read.
const LARGEST_REQUIREMENTS: u64 = 1 << 20;

/// Writes `env`: what cells install, then what else they import.
pub(super) fn write(draft: &mut Draft, analysis: &Analysis, given: &Given) {
    let (found, remarks) = requirements(analysis, given);
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
    for job in analysis.jobs.iter().filter(|job| !job.packages.is_empty()) {
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

/// What is said of packages outside the cells' code, and which modules need none.
pub(super) struct Given {
    /// Requirements, with where they stand.
    pub(super) requirements: Vec<(String, String)>,
    /// What else is said there, which a person has to look at.
    pub(super) remarks: Vec<String>,
    pub(super) own: OwnModules,
}

impl Given {
    /// Reads the `requirements.txt` beside a notebook, and the script block (PEP 723) of its first cell of code.
    pub(super) fn read(notebook: &Notebook, analysis: &Analysis, path: &Path) -> Self {
        let folder = folder_of(path);
        let mut given = Self {
            requirements: Vec::new(),
            remarks: Vec::new(),
            own: OwnModules::of(notebook, analysis, &folder, &folder),
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
        match read_text(&path.with_file_name(REQUIREMENTS), LARGEST_REQUIREMENTS) {
            Ok(text) => {
                let whole = text.replace("\r\n", "\n").replace("\\\n", " ");
                whole.lines().for_each(|text| given.take(text, REQUIREMENTS));
            }
            Err(missing) if missing.code == Code::FileMissing => {}
            Err(unread) => given
                .remarks
                .push(format!("{REQUIREMENTS} was left out: {}", line(&unread.message))),
        }
        given
    }

    fn take(&mut self, text: &str, from: &str) {
        let text = text.trim();
        let bare = text.split(" #").next().unwrap_or(text).trim();
        if bare.is_empty() || bare.starts_with('#') {
            return;
        }
        // Hashes and other options of one requirement.
        let requirement = bare.split(" --").next().unwrap_or(bare).trim();
        if checked_requirement(requirement).is_err() {
            let said = format!("{from} says {}, which has no place here", line(bare));
            self.remarks.push(said);
            return;
        }
        let name = normalised(requirement);
        let other = self
            .requirements
            .iter()
            .find(|(known, source)| normalised(known) == name && source != from);
        match other {
            Some((known, _)) if known == requirement => {}
            Some((known, source)) => {
                let said = format!("{from} says {}, and {source} {}", line(requirement), line(known));
                self.remarks.push(said);
            }
            None => self.requirements.push((requirement.to_owned(), from.to_owned())),
        }
    }
}

/// A requirement of a draft, in the order in which they are written: those that are written down first, then by cells.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    at: At,
    nth: usize,
    requirement: String,
    remark: String,
}

/// Returns requirements with remarks: of packages that cells name each once, of those that are written down every line.
fn requirements(analysis: &Analysis, given: &Given) -> (Vec<(String, String)>, Vec<String>) {
    let written = given.requirements.iter().enumerate();
    let mut found: Vec<Found> = written
        .map(|(nth, (requirement, from))| Found {
            at: At::default(),
            nth,
            requirement: requirement.clone(),
            remark: from.clone(),
        })
        .collect();
    for form in [Form::Run, Form::Comment] {
        for install in analysis.installs_by(form) {
            let remark = match form {
                Form::Run => format!("cell {} installs it", install.at.cell),
                Form::Comment => format!("cell {}, in a comment", install.at.cell),
            };
            let packages = install.packages.iter().filter(|package| is_requirement(package));
            for (nth, package) in packages.enumerate() {
                add(&mut found, install.at, nth, package, &remark);
            }
        }
    }
    let mut remarks = given.remarks.clone();
    for (module, at) in &analysis.imports {
        if found
            .iter()
            .any(|known| is_package_of(&normalised(&known.requirement), module))
        {
            continue;
        }
        match imported(analysis, given, module, *at) {
            Imported::Nothing => {}
            Imported::Remark(remark) => remarks.push(remark),
            Imported::Package(package, remark) => add(&mut found, *at, 0, package, &remark),
        }
    }
    found.sort();
    found.dedup_by(|a, b| a.requirement == b.requirement);
    let ordered = found.into_iter().map(|found| (found.requirement, found.remark));
    (ordered.collect(), remarks)
}

/// Adds a requirement, unless its package is there.
fn add(found: &mut Vec<Found>, at: At, nth: usize, requirement: &str, remark: &str) {
    let name = normalised(requirement);
    if found.iter().any(|known| normalised(&known.requirement) == name) {
        return;
    }
    found.push(Found {
        at,
        nth,
        requirement: requirement.to_owned(),
        remark: remark.to_owned(),
    });
}

/// What a draft says of a module that no package brings which is asked for already.
enum Imported<'m> {
    Nothing,
    Remark(String),
    /// A package, and why it is asked for.
    Package(&'m str, String),
}

fn imported<'m>(analysis: &Analysis, given: &Given, module: &'m str, at: At) -> Imported<'m> {
    let imports = format!("cell {} imports {module}", at.cell);
    let whose = given.own.whose(module);
    match &whose {
        Whose::Own => return Imported::Nothing,
        Whose::OutsideOfCopy(folder) => {
            return Imported::Remark(format!(
                "{imports}, which lies in {}: a run has a copy of the blueprint's folder alone, so put blueprint.yaml above both",
                line(&folder.to_string_lossy())
            ));
        }
        Whose::Unknown | Whose::Others => {}
    }
    let (package, remark) = match origin(module) {
        Origin::Always => return Imported::Nothing,
        Origin::Shared => return Imported::Remark(format!("{imports}: name the package that brings it")),
        Origin::Guessed(_) if whose == Whose::Unknown => {
            return Imported::Remark(format!(
                "{imports}: if that is no module of your own, which may lie anywhere as cells change where Python looks, name its package"
            ));
        }
        Origin::Package(package) => (package, format!("cell {} imports it", at.cell)),
        Origin::Guessed(package) => (
            package,
            format!("cell {} imports it; is this the package's name?", at.cell),
        ),
    };
    if analysis.optional_imports.contains(module) {
        return Imported::Remark(format!("{imports} where it is there: {package}"));
    }
    Imported::Package(package, remark)
}

fn is_requirement(text: &str) -> bool {
    let begins = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    begins
        && text.len() < 200
        && checked_requirement(text).is_ok()
        && !text.chars().any(|c| c.is_control() || c == '{' || c == '$')
}
