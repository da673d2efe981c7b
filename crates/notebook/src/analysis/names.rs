//! Names that cells read before they are given a value, cells taken in order.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::LazyLock,
};

use super::At;
use crate::{
    ipynb::{Cell, RAISES_TAG},
    python::{names::Event, syntax::Module},
};

/// Names that Python and IPython give. Those of exceptions are told by how they end.
static BUILTINS: LazyLock<HashSet<&str>> = LazyLock::new(|| BUILTIN_WORDS.split_whitespace().collect());
const BUILTIN_WORDS: &str = " abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile \
    complex copyright credits delattr dict dir display divmod enumerate eval exec exit filter float format frozenset \
    get_ipython getattr globals hasattr hash help hex id In input int isinstance issubclass iter len license list locals \
    map max memoryview min next object oct open Out ord pow print property quit range repr reversed round set setattr \
    slice sorted staticmethod str sum super tuple type vars zip NotImplemented Ellipsis GeneratorExit KeyboardInterrupt \
    StopAsyncIteration StopIteration SystemExit BaseExceptionGroup ExceptionGroup ";
/// Magics that give names values which nothing in the notebook tells.
const GIVE_NAMES: [&str; 5] = ["%run", "%pylab", "%load", "%store", "%sql"];
/// Cell magics after which no name is given a value, whatever the cell holds.
const GIVE_NONE: [&str; 13] = [
    "html",
    "HTML",
    "javascript",
    "js",
    "latex",
    "markdown",
    "svg",
    "SVG",
    "writefile",
    "file",
    "perl",
    "ruby",
    "mermaid",
];

/// A name that a cell reads without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) name: String,
    pub(crate) at: At,
    pub(crate) given: Given,
}

/// Whether a name that is read too early is given a value further down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// A cell further down, or further down in the same cell, does.
    Later(At),
    /// Its value was taken away by `del` before.
    Deleted,
    /// Nothing does.
    Never,
}

/// What is known of names, cell by cell.
#[derive(Default)]
pub(super) struct Names {
    bound: HashSet<String>,
    deleted: BTreeSet<String>,
    early: BTreeMap<String, (At, Option<Given>)>,
    by_function: BTreeMap<String, Vec<(String, At)>>,
    used: HashSet<String>,
    cell: u32,
    raises: bool,
    anything: bool,
}

impl Names {
    /// Begins a cell.
    pub(super) fn enter(&mut self, cell: &Cell) {
        self.cell = cell.number;
        self.raises = cell.is_tagged(RAISES_TAG);
        let mut words = cell.source.lines().next().unwrap_or_default().split_whitespace();
        match (words.next(), words.next()) {
            (Some("%%capture"), Some(name)) => self.bind(name.to_owned(), 1),
            (Some("%%bash" | "%%sh" | "%%script"), Some(_)) => self.anything = true,
            (_, _) => {}
        }
    }

    /// Takes in what some statements of the cell do.
    pub(super) fn take(&mut self, module: Module) {
        let gives = |command: &str| GIVE_NAMES.iter().any(|magic| command.starts_with(magic));
        let magics = module.shell.iter().map(|(_, command)| command.as_str());
        self.anything |= magics.into_iter().any(gives);
        for event in module.names {
            match event {
                Event::Bound { name, line } => self.bind(name, line),
                Event::Deleted(name) => {
                    self.bound.remove(&name);
                    self.deleted.insert(name);
                }
                Event::Read { name, line } => self.read(name, line),
                Event::ReadBy { owner, name, line } => self.read_by(owner, name, line),
                Event::MayRead(_) => {}
                Event::Unknown | Event::Hidden => self.anything = true,
            }
        }
    }

    /// Takes in a cell in another language, which may give names values through its magic.
    pub(super) fn foreign(&mut self, source: &str) {
        let magic = source.trim_start().trim_start_matches('%');
        let name = magic.split_whitespace().next().unwrap_or_default();
        self.anything |= !GIVE_NONE.contains(&name);
    }

    /// From here on any name may have a value.
    pub(super) fn unknown(&mut self) {
        self.anything = true;
    }

    /// Returns the names that lack a value, in the order of the cells.
    pub(super) fn finish(mut self) -> Vec<Missing> {
        let used = std::mem::take(&mut self.used);
        let by_function = std::mem::take(&mut self.by_function);
        let called = by_function.into_iter().filter(|(owner, _)| used.contains(owner));
        for (name, at) in called.flat_map(|(_, reads)| reads) {
            if !self.bound.contains(&name) && !self.deleted.contains(&name) {
                self.early.entry(name).or_insert((at, None));
            }
        }
        let anything = self.anything;
        let missing = |(name, (at, given)): (String, (At, Option<Given>))| {
            let given = given.unwrap_or(Given::Never);
            Missing { name, at, given }
        };
        let mut all: Vec<Missing> = self.early.into_iter().map(missing).collect();
        // What is given nothing that can be seen may be given something by what cannot.
        all.retain(|missing| !(anything && missing.given == Given::Never));
        all.sort_by_key(|missing| missing.at);
        all
    }

    fn bind(&mut self, name: String, line: u32) {
        let at = At {
            cell: self.cell,
            line,
        };
        if let Some((_, given @ None)) = self.early.get_mut(&name) {
            *given = Some(Given::Later(at));
        }
        self.bound.insert(name);
    }

    fn is_known(&self, name: &str) -> bool {
        let ends = ["Error", "Exception", "Warning"];
        self.anything
            || self.raises
            || self.bound.contains(name)
            || name.starts_with('_')
            || ends.iter().any(|end| name.ends_with(end))
            || BUILTINS.contains(name)
    }

    fn read(&mut self, name: String, line: u32) {
        let at = At {
            cell: self.cell,
            line,
        };
        if !self.is_known(&name) {
            let given = self.deleted.contains(&name).then_some(Given::Deleted);
            self.early.entry(name.clone()).or_insert((at, given));
        }
        self.used.insert(name);
    }

    fn read_by(&mut self, owner: String, name: String, line: u32) {
        let at = At {
            cell: self.cell,
            line,
        };
        if !self.is_known(&name) {
            self.by_function.entry(owner).or_default().push((name, at));
        }
    }
}
