//! Which names a notebook reads behind the place where the values of parameters are put in.
//!
//! A name counts as read where Python would look it up, happen it or not. The name of a keyword argument, of an
//! attribute, or of a function's own variable does not, nor does a word in a text. What is no Python goes by words.

use std::collections::BTreeSet;

use crate::{
    ipynb::{Cell, CellKind, INJECTED_TAG, Notebook, PARAMETERS_TAG},
    python::{Piece, Reader, names::Event, syntax::Module},
};

/// The names that a parameter's value can have an effect by.
#[derive(Default)]
pub(crate) struct Reads {
    defined: BTreeSet<String>,
    bound: BTreeSet<String>,
    read: BTreeSet<String>,
}

impl Reads {
    pub(crate) fn of(notebook: &Notebook) -> Self {
        let mut reads = Self::default();
        if notebook.foreign_kernel().is_some() {
            notebook.code().for_each(|cell| reads.words(&cell.source));
            return reads;
        }
        let mut reader = Reader::new();
        let is_tagged = |cell: &Cell| cell.is_tagged(PARAMETERS_TAG) || cell.is_tagged(INJECTED_TAG);
        for cell in notebook.code().filter(|cell| is_tagged(cell)) {
            reader.read(&cell.source, |piece| reads.define(piece));
        }
        for cell in behind_values(notebook) {
            reads.cell(&mut reader, &cell.source);
        }
        reads
    }

    /// Returns whether a parameter of this name changes nothing: no tagged cell has it, and nothing reads it.
    pub(crate) fn leave_out(&self, name: &str) -> bool {
        !self.defined.contains(name) && !self.read.contains(name)
    }

    /// Returns whether a later cell gives this name a value.
    pub(crate) fn bind(&self, name: &str) -> bool {
        self.bound.contains(name)
    }

    fn define(&mut self, piece: Piece) {
        if let Piece::Statements(module) = piece {
            let events = module.names.into_iter();
            self.defined.extend(events.filter_map(bound));
        }
    }

    fn cell(&mut self, reader: &mut Reader, source: &str) {
        let first = source.trim_start().lines().next().unwrap_or_default();
        if first.starts_with("%%") {
            self.words(first);
        }
        reader.read(source, |piece| match piece {
            Piece::Statements(module) => self.module(module, source),
            Piece::Foreign | Piece::Broken { .. } | Piece::TooLong { .. } => self.words(source),
        });
    }

    fn module(&mut self, module: Module, source: &str) {
        for (_, command) in &module.shell {
            self.words(command);
        }
        for event in module.names {
            match event {
                Event::Read { name, .. } | Event::ReadBy { name, .. } | Event::MayRead(name) => {
                    // What such a function looks up stands in texts, if anywhere.
                    if ["eval", "exec", "globals", "locals", "vars"].contains(&name.as_str()) {
                        self.words(source);
                    }
                    self.read.insert(name);
                }
                Event::Deleted(name) => {
                    self.read.insert(name);
                }
                Event::Bound { name, .. } => {
                    self.bound.insert(name);
                }
                Event::Unknown => {}
            }
        }
        // `frame.query("loss < @limit")` reads a name of the notebook.
        let named = source.split('@').skip(1).filter_map(|rest| words(rest).next());
        self.read.extend(named.map(str::to_owned));
    }

    fn words(&mut self, text: &str) {
        self.read.extend(words(text).map(str::to_owned));
    }
}

/// Returns the cells of code that run after the values of parameters are put in.
pub(crate) fn behind_values(notebook: &Notebook) -> impl Iterator<Item = &Cell> {
    let tagged = |tag: &str| notebook.cells.iter().position(|cell| cell.is_tagged(tag));
    let begin = tagged(INJECTED_TAG).or_else(|| tagged(PARAMETERS_TAG));
    let behind = &notebook.cells[begin.map_or(0, |at| at + 1)..];
    behind.iter().filter(|cell| cell.kind == CellKind::Code)
}

/// Returns the words of a text, as names are written.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
}

fn bound(event: Event) -> Option<String> {
    match event {
        Event::Bound { name, .. } => Some(name),
        Event::Deleted(_)
        | Event::Read { .. }
        | Event::ReadBy { .. }
        | Event::MayRead(_)
        | Event::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_left_out(tagged: &str, later: &str) -> bool {
        let cells = json!([
            {"cell_type": "code", "source": tagged, "metadata": {"tags": ["parameters"]}},
            {"cell_type": "code", "source": later},
        ]);
        let whole = json!({"nbformat": 4, "nbformat_minor": 5, "cells": cells});
        let notebook = Notebook::parse("n.ipynb", whole.to_string()).expect("it is a notebook");
        Reads::of(&notebook).leave_out("lr")
    }

    #[test]
    fn only_what_python_looks_up_by_a_parameters_name_reads_it() {
        for later in [
            "SGD(lr=learning_rate)",
            "optimizer.lr = 0.1",
            "print('lr', 'the lr is')  # lr",
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
}
