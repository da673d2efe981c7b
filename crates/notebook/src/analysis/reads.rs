//! What a notebook does with its parameters behind the place where their values are put in.
//!
//! A name counts as read where Python would look it up, happen it or not, and where a text has it as a word, which is more than
//! printed: `frame.query("x > @lr")`. The name of a keyword argument, of an attribute, or of a function's own variable does not.
//! What is no Python goes by words. Where code is run that is not here, any name may be read.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    ipynb::{Cell, INJECTED_TAG, Notebook, PARAMETERS_TAG},
    python::{
        Piece, Reader,
        names::Event,
        syntax::{Expr, Kind, Module, Statement},
    },
};

/// Functions that may look up any name.
const HIDE: [&str; 5] = ["eval", "exec", "globals", "locals", "vars"];

/// What is done with the parameters of these names.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    uses: BTreeMap<String, Use>,
    /// The number of the cell behind which values are put in.
    begin: u32,
    /// Any name may be read.
    hidden: bool,
}

#[derive(Debug, Default)]
struct Use {
    /// A tagged cell gives it a value.
    defined: bool,
    bound: bool,
    read: bool,
    /// What is done with it first.
    first: Option<First>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// This cell surely gives it a value that has nothing to do with the one that was put in.
    Given(u32),
    /// Something else.
    Other,
}

impl Reads {
    /// Returns what is done with these names, of which nothing is known yet.
    pub(super) fn about<'n>(notebook: &Notebook, names: impl IntoIterator<Item = &'n String>) -> Self {
        let tagged = |tag: &str| notebook.cells.iter().find(|cell| cell.is_tagged(tag));
        let begin = tagged(INJECTED_TAG).or_else(|| tagged(PARAMETERS_TAG));
        let uses = names.into_iter().map(|name| (name.clone(), Use::default()));
        Self {
            uses: uses.collect(),
            begin: begin.map_or(0, |cell| cell.number),
            hidden: false,
        }
    }

    /// Reads a notebook. Without names there is nothing to read for.
    pub(crate) fn of<'n>(notebook: &Notebook, names: impl IntoIterator<Item = &'n String>) -> Self {
        let mut reads = Self::about(notebook, names);
        if reads.uses.is_empty() {
            return reads;
        }
        let is_python = notebook.foreign_kernel().is_none();
        let mut reader = Reader::new();
        for cell in notebook.code() {
            if !is_python {
                reads.words(&cell.source);
            } else if reads.may_matter(&cell.source) {
                reader.read(&cell.source, |piece| reads.take(cell, &piece));
            }
        }
        reads
    }

    /// Returns whether a cell has one of the names, or may run code that is not here. Most need not be parsed.
    fn may_matter(&self, source: &str) -> bool {
        let names = self.uses.keys().map(String::as_str);
        names.chain(HIDE).chain(["run"]).any(|name| source.contains(name))
    }

    /// Takes in a piece of a cell, the cells in their order.
    pub(super) fn take(&mut self, cell: &Cell, piece: &Piece) {
        if self.uses.is_empty() {
            return;
        }
        let is_tagged = cell.is_tagged(PARAMETERS_TAG) || cell.is_tagged(INJECTED_TAG);
        if let (true, Piece::Statements(module)) = (is_tagged, piece) {
            self.define(module);
        }
        if cell.number <= self.begin {
            return;
        }
        let first = cell.source.trim_start().lines().next().unwrap_or_default();
        if first.starts_with("%%") {
            self.words(first);
        }
        match piece {
            Piece::Statements(module) => self.module(module, cell.number),
            Piece::Foreign | Piece::Broken { .. } | Piece::TooLong { .. } => self.words(&cell.source),
        }
    }

    /// Returns whether a parameter of this name changes nothing: no tagged cell has it, and nothing reads it.
    pub(crate) fn leave_out(&self, name: &str) -> bool {
        !self.hidden && self.uses.get(name).is_some_and(|it| !it.defined && !it.read)
    }

    /// Returns whether a later cell gives this name a value.
    pub(crate) fn bind(&self, name: &str) -> bool {
        self.uses.get(name).is_some_and(|it| it.bound)
    }

    /// Returns the number of the cell that gives this name a value before anything can have read the one that was put in.
    pub(crate) fn undone_by(&self, name: &str) -> Option<u32> {
        match self.uses.get(name)?.first? {
            First::Given(cell) => Some(cell),
            First::Other => None,
        }
    }

    fn define(&mut self, module: &Module) {
        for event in &module.names {
            if let Event::Bound { name, .. } = event
                && let Some(known) = self.uses.get_mut(name)
            {
                known.defined = true;
            }
        }
    }

    fn module(&mut self, module: &Module, cell: u32) {
        self.hidden |= module
            .shell
            .iter()
            .any(|(_, command)| command.starts_with("%run"));
        let said = said(module, &self.uses);
        let assigned: BTreeSet<(&str, u32)> = module.statements.iter().filter_map(assigned).collect();
        for event in &module.names {
            match event {
                Event::Read { name, .. } | Event::ReadBy { name, .. } | Event::MayRead(name) => {
                    self.hidden |= HIDE.contains(&name.as_str());
                    self.read(name);
                }
                Event::Deleted(name) => self.read(name),
                Event::Bound { name, line } => {
                    let is_said = said.get(name).is_some_and(|said| said <= line);
                    let is_own = !is_said && assigned.contains(&(name, *line));
                    self.bound(name, if is_own { First::Given(cell) } else { First::Other });
                }
                Event::Unknown => {}
                Event::Hidden => self.hidden = true,
            }
        }
        said.keys().for_each(|word| self.read(word));
    }

    fn read(&mut self, name: &str) {
        if let Some(known) = self.uses.get_mut(name) {
            known.read = true;
            known.first.get_or_insert(First::Other);
        }
    }

    fn bound(&mut self, name: &str, first: First) {
        if let Some(known) = self.uses.get_mut(name) {
            known.bound = true;
            known
                .first
                .get_or_insert(if self.hidden { First::Other } else { first });
        }
    }

    fn words(&mut self, text: &str) {
        words(text).for_each(|word| self.read(word));
    }
}

/// Returns which names are words of commands, and of texts that are more than printed, each with the line of the first
/// statement that has it.
fn said(module: &Module, names: &BTreeMap<String, Use>) -> BTreeMap<String, u32> {
    let known = |text: &str| -> Vec<String> {
        let words = words(text).filter(|word| names.contains_key(*word));
        words.map(str::to_owned).collect()
    };
    let shell = module.shell.iter().map(|(line, command)| (*line, known(command)));
    let texts = module.statements.iter().map(|statement| {
        let (mut words, mut printed, mut begin) = (Vec::new(), BTreeSet::new(), u32::MAX);
        let mut visit = |expr: &Expr| {
            begin = begin.min(expr.line);
            if let Kind::Call(call) = &expr.kind
                && call.function.name() == Some("print")
            {
                call.arguments
                    .iter()
                    .for_each(|argument| note_plain(argument, &mut printed));
            }
            let text = expr
                .text()
                .filter(|_| !printed.contains(&std::ptr::from_ref(expr)));
            words.extend(text.into_iter().flat_map(known));
        };
        statement.walk(&mut visit, &mut |_| {});
        (begin, words)
    });
    let mut said = BTreeMap::new();
    for (line, words) in shell.chain(texts) {
        for word in words {
            let first = said.entry(word).or_insert(line);
            *first = line.min(*first);
        }
    }
    said
}

/// Notes the texts of what is printed that are given to nothing else.
fn note_plain(printed: &Expr, into: &mut BTreeSet<*const Expr>) {
    match &printed.kind {
        Kind::Text(_) => {
            into.insert(std::ptr::from_ref(printed));
        }
        Kind::Format(parts) => parts.iter().for_each(|part| note_plain(part, into)),
        Kind::Call(call) => {
            if let Kind::Attribute(text, name) = &call.function.kind
                && name == "format"
            {
                note_plain(text, into);
            }
        }
        Kind::Binary(left, _, right) => [left, right].into_iter().for_each(|part| note_plain(part, into)),
        Kind::None
        | Kind::Bool(_)
        | Kind::Int(_)
        | Kind::Float(_)
        | Kind::Name(_)
        | Kind::List(_)
        | Kind::Dict(_)
        | Kind::Attribute(_, _)
        | Kind::Subscript(_, _)
        | Kind::Not(_)
        | Kind::Either(_)
        | Kind::Other(_) => {}
    }
}

/// Returns the name to which a statement gives a value, and its line.
fn assigned(statement: &Statement) -> Option<(&str, u32)> {
    let Statement::Assign { target, .. } = statement else {
        return None;
    };
    Some((target.name()?, target.line))
}

/// Returns the words of a text, as names are written.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reads(tagged: &str, later: &[&str]) -> Reads {
        let mut cells =
            vec![json!({"cell_type": "code", "source": tagged, "metadata": {"tags": ["parameters"]}})];
        cells.extend(
            later
                .iter()
                .map(|source| json!({"cell_type": "code", "source": source})),
        );
        let whole = json!({"nbformat": 4, "nbformat_minor": 5, "cells": cells});
        let notebook = Notebook::parse("n.ipynb", whole.to_string()).expect("it is a notebook");
        Reads::of(&notebook, &["lr".to_owned()])
    }

    fn is_left_out(tagged: &str, later: &str) -> bool {
        reads(tagged, &[later]).leave_out("lr")
    }

    #[test]
    fn only_what_python_looks_up_by_a_parameters_name_reads_it() {
        for later in [
            "SGD(lr=learning_rate)",
            "optimizer.lr = 0.1",
            "print('lr', 'the lr is')  # lr",
            "print('rate {lr}'.format(lr=1), f'lr {rate}')",
            "from math import *",
            "model.eval()",
            "def fit(lr=0.1):\n    return lr",
            "rates = [lr for lr in (1, 2)]",
            "f = lambda lr: lr",
            "lr = 0.1",
            "print(f'lr {rate}')",
        ] {
            assert!(is_left_out("learning_rate = 0.1", later), "{later}");
        }
        for later in [
            "SGD(lr=lr)",
            "print(f'{lr:.3f}')",
            "lr.real",
            "if a:\n    lr",
            "x = lr if a else 1",
            "try:\n    lr\nexcept NameError:\n    lr = 1",
            "def fit():\n    return lr",
            "lr += 1",
            "del lr",
            "!python train.py --lr {lr}",
            "%timeit fit(lr)",
            "%%bash -s $lr\necho $1",
            "globals()['lr']",
            "globals()[name]",
            "exec(open('train.py').read())",
            "%run -i train.py",
            "get_ipython().run_line_magic('run', '-i train.py')",
            "get_ipython().user_ns['lr']",
            "'lr' in dir()",
            "ne.evaluate('grad * lr')",
            "smf.ols('y ~ x * lr', data)",
            "print(ne.evaluate('grad * lr'))",
            "print(f'{eval(rule)}')",
            "frame.query('x > @lr')",
            "print(lr",
        ] {
            assert!(!is_left_out("learning_rate = 0.1", later), "{later}");
        }
        assert!(!is_left_out("lr = 0.1", "print(1)"));
        assert!(
            is_left_out("print(lr)", "print(1)"),
            "it is read before the value is there"
        );
    }

    #[test]
    fn a_cell_undoes_a_parameter_only_where_nothing_can_have_read_it_before() {
        for (cells, by) in [
            (&["lr = 5"][..], Some(2)),
            (
                &["print('lr is')\nlr = (\n    5\n)\nprint('lr', lr, log['lr'])"],
                Some(2),
            ),
            (&["SGD(lr=1)", "lr: float = 5"], Some(3)),
            (&["a = lr = 5"], Some(2)),
            (&["print(f'{loss:.{lr}f}')", "lr = 5"], None),
            (&["class Net(base(lr)): pass", "lr = 5"], None),
            (&["class Net(Base, rate=lr): pass", "lr = 5"], None),
            (&["def f():\n    return lr", "lr = 5"], None),
            (&["%run -i train.py", "lr = 5"], None),
            (&["exec(code)", "lr = 5"], None),
            (&["!echo {lr}", "lr = 5"], None),
            (&["frame.query('x > @lr')\nlr = 5"], None),
            (&["lr = settings(\n    'lr')"], None),
            (&["lr = lr or 5"], None),
            (&["lr += 5"], None),
            (&["if fast:\n    lr = 5"], None),
            (&["for lr in (1, 2):\n    pass"], None),
            (&["%%bash -s $lr\necho $1", "lr = 5"], None),
        ] {
            assert_eq!(reads("rate = 1", cells).undone_by("lr"), by, "{cells:?}");
        }
    }
}
