//! Files that cells read and that are not there.

use std::path::Path;

use blueproof_core::diagnostic::{Code, Diagnostic};

use super::{Subject, makes::may_make};
use crate::survey::{Made, Reached, Traced};

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
pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let survey = &subject.survey;
    let reads: Vec<(&Made, &Traced, &str)> = survey.calls.iter().filter_map(|made| read(made)).collect();
    let mut told: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for (made, value, path) in &reads {
        let surely = made.reached == Reached::Surely && !told.contains(path);
        let is_given = is_there(subject, path)
            || is_mentioned(subject, &reads, value, path)
            || may_make(subject, made, path);
        if !surely || is_given {
            continue;
        }
        told.push(path);
        let function = &made.function;
        let message = match is_outside(subject, path) {
            true => format!(
                "`{function}` reads {path:?}, which a run lacks: it has a copy of the blueprint's folder alone"
            ),
            false => format!("`{function}` reads {path:?}, which is not there"),
        };
        found.push(subject.warning(Code::DataMissing, made.at, message).hint(
            "put the file into the notebook's folder, or have a cell above this one fetch or write it",
        ));
    }
    found
}

/// Returns the file that a call reads, where both are known.
fn read(made: &std::rc::Rc<Made>) -> Option<(&Made, &Traced, &str)> {
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
    (plain && named).then_some((&**made, value, path))
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

/// Returns whether something else in the notebook is about the same file: it may well write it.
fn is_mentioned(subject: &Subject<'_>, reads: &[(&Made, &Traced, &str)], value: &Traced, path: &str) -> bool {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    let survey = &subject.survey;
    let own = |at| {
        reads
            .iter()
            .any(|(_, read, known)| read.at == at && known.contains(&*name))
    };
    let in_text = survey
        .texts
        .iter()
        .any(|(at, _, text)| text.contains(&*name) && !own(*at));
    let in_shell = survey.shell.iter().any(|(_, command)| command.contains(&*name));
    let written = |cell: &crate::ipynb::Cell| {
        cell.source.trim_start().starts_with("%%") && cell.source.contains(&*name)
    };
    let given = survey.calls.iter().any(|made| {
        let reads_it = reads.iter().any(|(read, _, _)| std::ptr::eq(*read, &**made));
        let keywords = made.keywords.iter().map(|(_, value)| value);
        let mut values = made.arguments.iter().chain(keywords);
        !reads_it
            && made.function != "Path"
            && values.any(|other| other.at == value.at && other.text() == Some(path))
    });
    in_text || in_shell || given || subject.notebook.code().any(written)
}
