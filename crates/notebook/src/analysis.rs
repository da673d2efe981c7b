//! What the cells of a notebook say they do, found without running them: TrainJobs, waits, installs, parameters.
//!
//! Cells are walked in order, as the kernel would run them, with names bound to what can be known of their values.
//! What cannot be known stays unknown; nothing is guessed. Functions that the notebook calls itself are followed;
//! those that it hands to a TrainJob run elsewhere and are only looked at.

mod eval;
mod install;
mod job;
mod names;
mod own;
mod parameters;
pub(crate) mod reads;
pub(crate) mod shell;
mod value;
mod walk;

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

pub(crate) use install::{Form, Install, is_pinned};
pub(crate) use job::{Aim, Backend, Job, Wait};
pub(crate) use names::{Given, Missing};
pub(crate) use own::{OwnModules, Whose};
pub(crate) use parameters::{kind_without_type, parameter_type, parameter_types, untyped_parameter};
pub(crate) use value::{At, Made, Reached, Traced, Value};

use names::Names;
use reads::Reads;

use crate::{
    ipynb::{Cell, Notebook, PARAMETERS_TAG},
    python::{self, syntax::Function},
};

/// What was found in a notebook's cells.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    /// Whether some cell is tagged `parameters`.
    pub(crate) has_parameters_cell: bool,
    /// What that cell assigns, in order.
    pub(crate) parameters: Vec<(String, Traced)>,
    /// Every call that the notebook makes itself, in order.
    pub(crate) calls: Vec<Rc<Made>>,
    /// TrainJobs that it creates.
    pub(crate) jobs: Vec<Job>,
    /// Waits for a TrainJob.
    pub(crate) waits: Vec<Wait>,
    /// Loops that count to a number and deal with nodes.
    pub(crate) node_loops: Vec<(At, Traced)>,
    /// Shell commands and line magics.
    pub(crate) shell: Vec<(At, String)>,
    /// Packages that cells install, those in a comment included.
    pub(crate) installs: Vec<Install>,
    /// Texts that stand in what the notebook runs itself, with the name that they are given, if they are.
    pub(crate) texts: Vec<(At, Option<String>, String)>,
    /// Assignments that stand in a comment: where, name and value.
    pub(crate) disabled: Vec<(At, String, String)>,
    /// Names that are read before they are given a value, or without ever being given one.
    pub(crate) missing: Vec<Missing>,
    /// Modules that the notebook itself imports, and where first.
    pub(crate) imports: BTreeMap<String, At>,
    /// Those among them that it does without, because each of their imports may fail or be left out.
    pub(crate) optional_imports: BTreeSet<String>,
    /// What assignments add to `sys.path`.
    search_path: Vec<Traced>,
    /// Environment variables that the notebook reads.
    pub(crate) environment: Vec<(At, String)>,
    /// Figures that are printed, as in `print("val loss:", loss)`, by the words before them.
    pub(crate) printed: Vec<(At, String)>,
    /// Names that runtimes are compared with, as in `runtime.name == "torch-distributed"`.
    pub(crate) runtime_names: Vec<(At, String)>,
    /// Functions by name, with their cells; the last one of a name counts.
    pub(crate) functions: BTreeMap<String, (u32, Rc<Function>)>,
    /// Cells that are no Python, with the line at which that shows.
    pub(crate) broken: Vec<At>,
    /// Statements that are too long to be read: they are data.
    pub(crate) too_long: Vec<At>,
    /// What is done with the parameters that it was asked about.
    pub(crate) reads: Reads,
}

impl Analysis {
    /// Reads all code cells of `notebook`.
    pub(crate) fn of(notebook: &Notebook) -> Self {
        Self::about(notebook, [])
    }

    /// Reads all code cells of `notebook`, and what they do with parameters of these names.
    pub(crate) fn about<'n>(notebook: &Notebook, parameters: impl IntoIterator<Item = &'n String>) -> Self {
        let mut walk = walk::Walk::default();
        if notebook.foreign_kernel().is_some() {
            return walk.analysis;
        }
        let mut names = Names::default();
        let mut reads = Reads::about(notebook, parameters);
        let cells: Vec<_> = notebook.code().collect();
        let sources: Vec<&str> = cells.iter().map(|cell| cell.source.as_str()).collect();
        let mut entered = None;
        python::read_all(&sources, |nth, piece| {
            let cell = cells[nth];
            if entered.replace(nth) != Some(nth) {
                names.enter(cell);
            }
            reads.take(cell, &piece);
            let at = |line| At {
                cell: cell.number,
                line,
            };
            match piece {
                python::Piece::Statements(module) => {
                    walk.module(cell.number, tagged(cell), &module);
                    names.take(module);
                }
                python::Piece::Foreign => names.foreign(&cell.source),
                python::Piece::Broken { line } => {
                    walk.analysis.broken.push(at(line));
                    names.unknown();
                }
                python::Piece::TooLong { line } => {
                    walk.analysis.too_long.push(at(line));
                    names.unknown();
                }
            }
        });
        walk.analysis.has_parameters_cell = cells.iter().any(|cell| cell.is_tagged(PARAMETERS_TAG));
        let mut analysis = walk.analysis;
        analysis.missing = names.finish();
        analysis.reads = reads;
        analysis.installs.extend(install::of_survey(&analysis));
        analysis.installs.sort_by_key(|install| install.at);
        analysis.jobs = job::jobs(&analysis);
        analysis.waits = job::waits(&analysis.calls);
        analysis
    }

    /// Returns the commands of this form that install packages, in the order of the cells.
    pub(crate) fn installs_by(&self, form: Form) -> impl Iterator<Item = &Install> {
        self.installs.iter().filter(move |install| install.form == form)
    }

    /// Returns whether `name` is a parameter of the notebook.
    pub(crate) fn is_parameter(&self, name: &str) -> bool {
        self.parameters.iter().any(|(known, _)| known == name)
    }
}

fn tagged(cell: &Cell) -> walk::Tagged {
    if cell.is_tagged(PARAMETERS_TAG) {
        walk::Tagged::Parameters
    } else {
        walk::Tagged::Not
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn analysis(source: &str) -> Analysis {
        let cells = json!([{"cell_type": "code", "source": source}]);
        let whole = json!({"nbformat": 4, "nbformat_minor": 5, "cells": cells});
        Analysis::of(&Notebook::parse("n.ipynb", whole.to_string()).expect("it is a notebook"))
    }

    #[test]
    fn values_that_grow_without_end_are_let_go() {
        let train = "client.train(trainer=a, runtime='r')\n";
        for (start, step) in [
            ("a = [1]", "a = [a, a]"),
            ("a = {'x': 1}", "a = {'y': a, 'z': a, **a}"),
            ("a = {}", "a['x'] = a"),
            ("a = 'x'", "a = a + a"),
            ("a = 'x'", "a = f'{a}{a}'"),
            ("a = f(1)", "a = a.f(a, b=a)"),
            ("a = b", "a = a.long_name.long_name"),
            ("def a(x):\n    return a(a(x))", "a(1)"),
            ("if a:\n    pass", "elif a:\n    pass"),
        ] {
            let source = format!("{start}\n{}{train}", format!("{step}\n").repeat(1000));
            let analysis = analysis(&source);
            assert_eq!(analysis.jobs.len(), 1, "{step}");
        }
    }

    #[test]
    fn only_the_branch_that_is_taken_counts_unless_a_parameter_decides() {
        let analysis = analysis(
            "n = 1\nif n == 2:\n    client.train(runtime='a')\nelse:\n    client.train(runtime='b')",
        );
        let runtimes: Vec<_> = analysis
            .jobs
            .iter()
            .filter_map(|job| job.runtime.as_ref())
            .collect();
        assert_eq!(runtimes.len(), 1);
        assert_eq!(runtimes[0].1, "b");
    }

    #[test]
    fn a_cell_in_another_language_is_not_read_as_python() {
        let text = r#"{"nbformat": 4, "metadata": {"language_info": {"name": "R"}}, "cells": [
            {"cell_type": "code", "source": "x <- c(1, 2)"}]}"#;
        let analysis = Analysis::of(&Notebook::parse("n.ipynb", text.into()).expect("it is a notebook"));
        assert_eq!(analysis.broken, []);
    }
}
