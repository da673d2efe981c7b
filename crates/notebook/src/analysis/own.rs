//! Which modules are the notebook's own: those in a folder where Python looks for them, and those that a cell writes.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
    rc::Rc,
};

use super::{
    Analysis, shell,
    value::{Made, Traced, Value},
    walk::{MOST_FACTS, Walk},
};
use crate::{
    ipynb::Notebook,
    modules::is_local,
    python::syntax::{Arithmetic, Expr, Kind, Operator},
};

/// What is known of the modules that are the notebook's own.
#[derive(Debug)]
pub(crate) struct OwnModules {
    /// Where Python looks for modules, beside the folders of packages.
    folders: Vec<PathBuf>,
    /// The folder that a run has a copy of.
    copied: PathBuf,
    /// Modules that cells write, fetch or run.
    made: BTreeSet<String>,
    /// Whether these are all folders in which it looks.
    all_known: bool,
}

/// Whose module one is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The notebook's, and there when it is run.
    Own,
    /// The notebook's, in a folder that a run has no copy of.
    OutsideOfCopy(PathBuf),
    /// The notebook's perhaps: Python looks in folders that are not known.
    Unknown,
    Others,
}

impl OwnModules {
    /// Looks for the modules of a notebook that is run in `folder`, by a run that has a copy of `copied`.
    pub(crate) fn of(notebook: &Notebook, analysis: &Analysis, folder: &Path, copied: &Path) -> Self {
        let mut own = Self {
            folders: vec![folder.to_path_buf(), copied.to_path_buf()],
            copied: copied.to_path_buf(),
            made: BTreeSet::new(),
            all_known: true,
        };
        for added in added(analysis) {
            match folder_in(&added).map(|added| plain(&folder.join(added))) {
                Some(added) if added.is_dir() => own.folders.push(added),
                Some(_) | None => own.all_known = false,
            }
        }
        for file in files(notebook, analysis) {
            own.take(&file);
        }
        own
    }

    /// Returns whose a module is.
    pub(crate) fn whose(&self, module: &str) -> Whose {
        if self.made.contains(module) {
            return Whose::Own;
        }
        let mut holds = self
            .folders
            .iter()
            .filter(|folder| is_local(module, &[folder.as_path()]));
        let is_copied = |folder: &PathBuf| match (folder.canonicalize(), self.copied.canonicalize()) {
            (Ok(folder), Ok(copied)) => folder.starts_with(copied),
            (Err(_), _) | (_, Err(_)) => true,
        };
        match holds.next() {
            Some(first) if is_copied(first) || holds.any(is_copied) => Whose::Own,
            Some(first) => Whose::OutsideOfCopy(first.clone()),
            None if self.all_known => Whose::Others,
            None => Whose::Unknown,
        }
    }

    /// Takes in a file that cells name: `pkg/part.py` makes `pkg`, and `part` where something puts it beside the notebook.
    fn take(&mut self, file: &str) {
        let Some(path) = file.strip_suffix(".py") else {
            return;
        };
        let path = path.rsplit_once("://").map_or(path, |(_, rest)| rest);
        let path = Path::new(path);
        let name = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
        self.made.extend(path.file_name().map(name));
        for folder in &self.folders {
            let whole = plain(&self.folders[0].join(path));
            let first = whole
                .strip_prefix(plain(folder))
                .ok()
                .and_then(|rest| rest.components().next());
            self.made.extend(first.map(|first| name(first.as_os_str())));
        }
    }
}

/// Returns what is added to `sys.path`, and the folders that are gone to: there, too, Python looks.
fn added(analysis: &Analysis) -> Vec<Traced> {
    let unknown = |at| Traced::new(Value::Unknown, at);
    let mut all = analysis.search_path.clone();
    for made in &analysis.calls {
        let of = made
            .receiver
            .as_ref()
            .map(|receiver| receiver.symbol().unwrap_or_default());
        let given = match (made.function.as_str(), of) {
            ("append", Some("sys.path")) | ("addsitedir", _) | ("chdir", Some("os") | None) => {
                made.arguments.first()
            }
            ("insert", Some("sys.path")) => made.arguments.get(1),
            ("extend", Some("sys.path")) => match made.arguments.first().map(|list| &list.value) {
                Some(Value::List(items)) => {
                    all.extend(items.iter().cloned());
                    continue;
                }
                Some(_) | None => None,
            },
            _ => continue,
        };
        all.push(given.cloned().unwrap_or_else(|| unknown(made.at)));
    }
    for (at, line) in &analysis.shell {
        let Some(rest) = line.trim_start().strip_prefix("%cd ") else {
            continue;
        };
        let folder = rest.trim().trim_matches(['"', '\'']);
        let is_plain = !folder.contains(['$', '{', '~']) && !folder.starts_with('-');
        let value = if is_plain {
            Value::Text(folder.to_owned())
        } else {
            Value::Unknown
        };
        all.push(Traced::new(value, *at));
    }
    all
}

/// Returns the folder that a value names, as it is or from where the notebook is run.
fn folder_in(value: &Traced) -> Option<PathBuf> {
    if let Some(text) = value.text() {
        return (!text.starts_with('~')).then(|| PathBuf::from(text));
    }
    if matches!(value.symbol(), Some("os.pardir")) {
        return Some("..".into());
    }
    let made = value.made()?;
    let of = made.receiver.as_ref().filter(|of| of.symbol().is_none());
    let all = || of.into_iter().chain(&made.arguments);
    match made.function.as_str() {
        "getcwd" | "cwd" => Some(PathBuf::new()),
        "join" | "joinpath" | "Path" | "PurePath" => {
            all().try_fold(PathBuf::new(), |path, part| Some(path.join(folder_in(part)?)))
        }
        "abspath" | "realpath" | "normpath" | "fspath" | "str" | "resolve" | "absolute" | "as_posix"
        | "__str__" => folder_in(all().next()?),
        "dirname" | "parent" => {
            let inner = folder_in(all().next()?)?;
            match inner.components().next_back() {
                None | Some(Component::ParentDir | Component::CurDir) => Some(inner.join("..")),
                Some(_) => inner.parent().map(Path::to_path_buf),
            }
        }
        _ => None,
    }
}

/// Returns a path without `.` and, as far as that can be said by its words alone, without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(plain.components().next_back(), Some(Component::Normal(_))) => {
                plain.pop();
            }
            Component::ParentDir | Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                plain.push(part);
            }
        }
    }
    plain
}

/// Returns what cells name that may be a file of Python: what they write, fetch, copy or run.
fn files(notebook: &Notebook, analysis: &Analysis) -> Vec<String> {
    let written = notebook.code().filter_map(|cell| {
        let magic = cell.source.trim_start().strip_prefix("%%")?.lines().next()?;
        let (name, rest) = magic.split_once(char::is_whitespace)?;
        let file = rest.split_whitespace().next_back()?.trim_matches(['"', '\'']);
        matches!(name, "writefile" | "file").then(|| file.to_owned())
    });
    let commands = shell::of_lines(analysis).chain(shell::of_calls(analysis));
    let words = commands
        .flat_map(|(_, outside)| outside.commands())
        .flat_map(|command| command.words.into_iter().chain(command.into));
    let texts = analysis.texts.iter().map(|(_, _, text)| text.clone());
    written
        .chain(words)
        .chain(texts)
        .filter(|text| text.ends_with(".py") && !text.contains(char::is_whitespace))
        .collect()
}

impl Walk {
    /// Notes what an assignment makes a part of `sys.path`: `sys.path += ["lib"]`, `sys.path[:0] = [".."]`.
    pub(super) fn search_path(&mut self, target: &Expr, value: &Expr) {
        let target = if let Kind::Subscript(of, _) = &target.kind {
            of
        } else {
            target
        };
        if self.is_search_path(target) && self.analysis.search_path.len() < MOST_FACTS {
            self.parts_of_path(value);
        }
    }

    fn parts_of_path(&mut self, value: &Expr) {
        if let Kind::Binary(left, Operator::Compute(Arithmetic::Add), right) = &value.kind {
            self.parts_of_path(left);
            self.parts_of_path(right);
        } else if let Kind::List(items) = &value.kind {
            let items: Vec<Traced> = items.iter().map(|item| self.eval(item)).collect();
            self.analysis.search_path.extend(items);
        } else if !self.is_search_path(value) {
            let value = self.eval(value);
            self.analysis.search_path.push(value);
        }
    }

    /// Notes the other items of a loop of which one is added: a loop's body is walked once, with its first.
    pub(super) fn search_path_of_loop(&mut self, before: usize, items: &[Traced]) {
        let of_path = |made: &Rc<Made>| made.receiver.as_ref().and_then(Traced::symbol) == Some("sys.path");
        let calls = self.analysis.calls.get(before..).unwrap_or_default();
        if calls.iter().any(of_path) && self.analysis.search_path.len() < MOST_FACTS {
            self.analysis.search_path.extend(items.iter().skip(1).cloned());
        }
    }

    fn is_search_path(&self, value: &Expr) -> bool {
        let Kind::Attribute(of, name) = &value.kind else {
            return false;
        };
        name == "path"
            && of
                .name()
                .and_then(|of| self.names.get(of))
                .and_then(Traced::symbol)
                == Some("sys")
    }
}

/// Returns what a part of a path is that is made of another: `folder.parent`, `folder / "src"`.
pub(super) fn part_of_path(of: &Traced, function: &str, rest: Option<&Traced>) -> Option<Value> {
    let made = of.made().filter(|made| {
        matches!(
            made.function.as_str(),
            "Path" | "PurePath" | "cwd" | "resolve" | "absolute" | "parent" | "joinpath"
        )
    })?;
    Some(Value::Made(Rc::new(Made {
        function: function.to_owned(),
        receiver: Some(of.clone()),
        arguments: rest.into_iter().cloned().collect(),
        keywords: Vec::new(),
        at: of.at,
        from: made.from,
        reached: made.reached,
    })))
}
