//! Files that cells read and that are not there.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    rc::Rc,
};

use blueproof_diagnostic::{Code, Diagnostic};

use super::{Subject, makes::Makers};
use crate::{
    analysis::{At, Made, Reached, Traced},
    ipynb::Cell,
};

/// Functions that read the file which is their first argument.
const READERS: [&str; 22] = [
    "read_csv",
    "read_table",
    "read_fwf",
    "read_excel",
    "read_json",
    "read_parquet",
    "read_pickle",
    "read_feather",
    "read_hdf",
    "read_stata",
    "read_sas",
    "read_spss",
    "read_orc",
    "loadtxt",
    "genfromtxt",
    "fromfile",
    "imread",
    "loadmat",
    "open_dataset",
    "read_ndjson",
    "scan_csv",
    "scan_parquet",
];
/// Keywords under which such functions take their file.
const KEYWORDS: [&str; 9] = [
    "filepath_or_buffer",
    "path_or_buf",
    "path",
    "io",
    "file",
    "fname",
    "filename",
    "source",
    "filename_or_obj",
];

/// A call that reads a file.
struct Read<'s> {
    made: &'s Made,
    /// What names the file.
    value: &'s Traced,
    path: &'s str,
}

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let calls = subject.analysis.calls.iter().enumerate();
    let reads: Vec<(usize, Read<'_>)> = calls.filter_map(|(nth, made)| Some((nth, read(made)?))).collect();
    let mut mentions = Mentions::of(subject, &reads);
    let makers = Makers::of(subject);
    let mut told: BTreeSet<&str> = BTreeSet::new();
    let mut found = Vec::new();
    for (nth, read) in &reads {
        let Read { made, path, .. } = read;
        if made.reached != Reached::Surely || told.contains(path) || is_there(subject, path) {
            continue;
        }
        if mentions.have(subject, read) || makers.may_make(*nth, made.from, path) {
            continue;
        }
        told.insert(path);
        found.push(missing(subject, made, path));
    }
    found
}

fn missing(subject: &Subject<'_>, made: &Made, path: &str) -> Diagnostic {
    let function = &made.function;
    let message = match is_outside(subject, path) {
        true => format!(
            "`{function}` reads {path:?}, which a run lacks: it has a copy of the blueprint's folder alone"
        ),
        false => format!("`{function}` reads {path:?}, which is not there"),
    };
    subject
        .warning(Code::DataMissing, made.at, message)
        .hint("put the file into the notebook's folder, or have a cell above this one fetch or write it")
}

/// Returns the file that a call reads, where both are known.
fn read(made: &Rc<Made>) -> Option<Read<'_>> {
    let value = match made.function.as_str() {
        "open" => {
            let mode = made.argument("mode", 1).and_then(Traced::text);
            let reads = mode.is_none_or(|mode| !mode.contains(['w', 'a', 'x', '+']));
            // `archive.open(...)` and `webbrowser.open(...)` open something else.
            let receiver = made
                .receiver
                .as_ref()
                .map(|receiver| receiver.symbol().unwrap_or_default());
            let of_files = receiver.is_none_or(|of| of == "io" || of == "gzip" || of.ends_with("Image"));
            (reads && of_files).then(|| first(made))??
        }
        "load" => {
            const LOADERS: [&str; 5] = ["np", "numpy", "joblib", "torch", "xr"];
            let of = made.receiver.as_ref().and_then(Traced::symbol)?;
            LOADERS.contains(&of).then(|| first(made))??
        }
        "read_text" | "read_bytes" => {
            let path = made.receiver.as_ref().and_then(Traced::made)?;
            (path.function == "Path").then(|| first(path))??
        }
        name if READERS.contains(&name) => first(made)?,
        _ => return None,
    };
    let value = match value.made() {
        Some(path) if path.function == "Path" && path.arguments.len() == 1 => &path.arguments[0],
        Some(_) => return None,
        None => value,
    };
    let path = value.text()?;
    let plain = !path.is_empty() && !path.contains("://") && !path.contains(['*', '{', '<', '\n', '~', '$']);
    let named = Path::new(path).extension().is_some();
    (plain && named).then_some(Read { made, value, path })
}

fn first(made: &Made) -> Option<&Traced> {
    let keyword = made
        .keywords
        .iter()
        .find(|(name, _)| KEYWORDS.contains(&name.as_str()));
    made.arguments.first().or(keyword.map(|(_, value)| value))
}

/// A run has a copy of the blueprint's folder: what lies beside that folder is not in it.
fn is_there(subject: &Subject<'_>, path: &str) -> bool {
    if Path::new(path).is_absolute() {
        return Path::new(path).exists();
    }
    let Ok(root) = subject.loaded.folder().canonicalize() else {
        return true;
    };
    let folders = [subject.folder(), subject.loaded.folder().to_path_buf()];
    let mut found = folders
        .iter()
        .filter_map(|folder| folder.join(path).canonicalize().ok());
    found.any(|found| found.starts_with(&root))
}

/// Returns whether the file is there, and outside of the folder that a run has a copy of.
fn is_outside(subject: &Subject<'_>, path: &str) -> bool {
    let folders = [subject.folder(), subject.loaded.folder().to_path_buf()];
    !Path::new(path).is_absolute() && folders.iter().any(|folder| folder.join(path).exists())
}

/// What in the notebook is about files, other than the calls that read them: it may well write them.
struct Mentions<'s> {
    /// The files that are read, by where each is named.
    read: BTreeMap<At, Vec<&'s str>>,
    /// What is given to calls that read nothing.
    given: BTreeSet<(At, &'s str)>,
    /// Whether a text, a command or a cell magic names a file of this name, once that was asked.
    named: BTreeMap<String, bool>,
}

impl<'s> Mentions<'s> {
    fn of(subject: &'s Subject<'_>, reads: &[(usize, Read<'s>)]) -> Self {
        let mut read: BTreeMap<At, Vec<&str>> = BTreeMap::new();
        for (_, Read { value, path, .. }) in reads {
            read.entry(value.at).or_default().push(path);
        }
        let reading: BTreeSet<usize> = reads.iter().map(|(nth, _)| *nth).collect();
        let calls = subject.analysis.calls.iter().enumerate();
        let calls = calls
            .filter(|(nth, _)| !reading.contains(nth))
            .map(|(_, made)| made);
        let others = calls.filter(|made| made.function != "Path");
        let given = others.flat_map(|made| {
            let keywords = made.keywords.iter().map(|(_, value)| value);
            let values = made.arguments.iter().chain(keywords);
            values.filter_map(|value| Some((value.at, value.text()?)))
        });
        Self {
            read,
            given: given.collect(),
            named: BTreeMap::new(),
        }
    }

    fn have(&mut self, subject: &Subject<'_>, read: &Read<'_>) -> bool {
        let Read { value, path, .. } = read;
        if self.given.contains(&(value.at, path)) {
            return true;
        }
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
        if let Some(known) = self.named.get(&*name) {
            return *known;
        }
        let is_named = self.name(subject, &name);
        self.named.insert(name.into_owned(), is_named);
        is_named
    }

    fn name(&self, subject: &Subject<'_>, name: &str) -> bool {
        let own = |at: &At| {
            self.read
                .get(at)
                .is_some_and(|read| read.iter().any(|path| path.contains(name)))
        };
        let analysis = &subject.analysis;
        let in_text = analysis
            .texts
            .iter()
            .any(|(at, _, text)| text.contains(name) && !own(at));
        let in_shell = analysis.shell.iter().any(|(_, command)| command.contains(name));
        let written = |cell: &Cell| cell.source.trim_start().starts_with("%%") && cell.source.contains(name);
        in_text || in_shell || subject.notebook.code().any(written)
    }
}
