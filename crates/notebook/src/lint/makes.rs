//! What in a notebook may make a file that it reads further down: downloads, archives, copies, commands.
//!
//! Where the file that is made is named, only that one counts; where it is computed, it may be any.

use std::path::Path;

use super::Subject;
use crate::survey::{Made, Traced, commands_of_calls};

/// Parts of commands that make files which nothing here can foresee.
const FETCHES: [&str; 13] = [
    "git clone",
    "gdown",
    "kaggle",
    "unzip",
    "tar ",
    "gsutil",
    "aws s3",
    "dvc ",
    "cd ",
    "make",
    "huggingface-cli",
    "python ",
    "rsync",
];
/// Functions that do the same, whoever has them.
const FETCHERS: [&str; 8] = [
    "extractall",
    "unpack_archive",
    "urlretrieve",
    "snapshot_download",
    "hf_hub_download",
    "chdir",
    "clone_from",
    "mount",
];
/// Functions of a database that fetch rows, not files.
const ROWS: [&str; 3] = ["fetchall", "fetchone", "fetchmany"];
/// Functions that copy or move files, where their module or a path has them.
const COPIERS: [&str; 9] = [
    "copy",
    "copy2",
    "copyfile",
    "copytree",
    "copy_into",
    "move",
    "rename",
    "renames",
    "replace",
];
/// Functions that run a command, where their module has them.
const RUNNERS: [&str; 8] = [
    "system",
    "popen",
    "Popen",
    "run",
    "call",
    "check_call",
    "check_output",
    "getoutput",
];

/// Returns whether something before the call `reader` may make the file at `path`. What merely names it is not looked at.
pub(super) fn may_make(subject: &Subject<'_>, reader: &Made, path: &str) -> bool {
    let survey = &subject.survey;
    let mut calls = survey.calls.iter();
    let read = calls.position(|made| std::ptr::eq(&raw const **made, reader));
    let earlier = &survey.calls[..read.unwrap_or_default()];
    let shell = survey.shell.iter().filter(|(at, _)| *at < reader.at);
    let commands = shell.map(|(_, command)| command.trim_start_matches(['!', '%']).to_owned());
    let mut commands = commands.chain(commands_of_calls(earlier).map(|(_, command)| command));
    commands.any(|command| command_makes(&command, path))
        || earlier.iter().any(|made| call_makes(subject, made, path))
}

fn call_makes(subject: &Subject<'_>, made: &Made, path: &str) -> bool {
    let name = made.function.as_str();
    let lower = name.to_ascii_lowercase();
    if name == "magic" || name == "retrieve" && is_of(made, &["pooch"]) {
        return true;
    }
    if RUNNERS.contains(&name) && runs_commands(subject, made) {
        return made.arguments.first().is_none_or(|command| !is_literal(command));
    }
    if COPIERS.contains(&name) {
        return copy_makes(made, path);
    }
    let fetches = lower.contains("fetch") && !ROWS.contains(&name);
    (fetches || lower.contains("download") || FETCHERS.contains(&name)) && fetches_any(made)
}

/// Returns whether a call that fetches names no file that comes of it.
fn fetches_any(made: &Made) -> bool {
    let keywords = made.keywords.iter().map(|(_, value)| value);
    let texts = made.arguments.iter().chain(keywords).map(text_of);
    let (mut local, mut address, mut unknown) = (false, false, false);
    for text in texts {
        match text {
            Some(text) if !names_a_file(text) => unknown |= !text.contains("://"),
            Some(text) if text.contains("://") => address = true,
            Some(_) => local = true,
            None => unknown = true,
        }
    }
    !local && (unknown || !address)
}

fn copy_makes(made: &Made, path: &str) -> bool {
    let of_path = made.receiver.as_ref().filter(|of| is_path(of));
    let (source, target) = match of_path {
        Some(of) => (Some(of), made.arguments.first()),
        None if is_of(made, &["shutil", "os"]) && made.arguments.len() + made.keywords.len() > 1 => {
            (made.argument("src", 0), made.argument("dst", 1))
        }
        None => return false,
    };
    let Some(target) = target.and_then(text_of) else {
        return true;
    };
    let is_file = source.and_then(text_of).is_some_and(names_a_file);
    !is_file && covers(target, path)
}

/// Returns whether the file lies in this folder, or is this one.
fn covers(folder: &str, path: &str) -> bool {
    let folder = if folder == "." {
        ""
    } else {
        folder.trim_start_matches("./")
    };
    Path::new(path.trim_start_matches("./")).starts_with(folder)
}

/// Returns the text of a path, where it is known.
fn text_of(value: &Traced) -> Option<&str> {
    let Some(path) = value.made() else {
        return value.text();
    };
    match path.arguments.as_slice() {
        [only] if path.function == "Path" => only.text(),
        _ => None,
    }
}

/// Returns whether a text names one file, as it lies in the folder or at its address, and no archive.
fn names_a_file(text: &str) -> bool {
    const ARCHIVES: [&str; 7] = ["zip", "tar", "gz", "tgz", "bz2", "xz", "7z"];
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let path = match text.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => text,
    };
    let extension = Path::new(path)
        .extension()
        .and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| !ARCHIVES.contains(&extension))
}

fn is_literal(command: &Traced) -> bool {
    let items = command.items();
    command.text().is_some() || !items.is_empty() && items.iter().all(|item| item.text().is_some())
}

/// Returns whether a call is of a module of these names. A function that is imported by itself has none.
fn is_of(made: &Made, modules: &[&str]) -> bool {
    let of = made.receiver.as_ref().map(|of| of.symbol().unwrap_or_default());
    of.is_none_or(|of| modules.contains(&of))
}

fn runs_commands(subject: &Subject<'_>, made: &Made) -> bool {
    let is_known = made.receiver.is_some() || subject.survey.imports.contains_key("subprocess");
    made.function == "system" || is_known && is_of(made, &["subprocess", "os"])
}

/// Returns whether this is a `Path(...)`, or one that is made of it.
fn is_path(value: &Traced) -> bool {
    let Some(made) = value.made() else { return false };
    made.function == "Path" || made.receiver.as_ref().is_some_and(is_path)
}

/// Returns whether one of a command's parts may make the file, or any.
fn command_makes(command: &str, path: &str) -> bool {
    if FETCHES.iter().any(|part| command.contains(part)) {
        return true;
    }
    let mut single = command.split(['&', ';', '|']);
    single.any(|command| words_make(&command.split_whitespace().collect::<Vec<_>>(), path))
}

fn words_make(words: &[&str], path: &str) -> bool {
    let Some((name, rest)) = words.split_first() else {
        return false;
    };
    let is_computed = rest.iter().any(|word| word.contains(['$', '{', '*', '`']));
    let flag = |all: &[&str]| rest.iter().any(|word| all.contains(word));
    match *name {
        "wget" | "curl" => {
            let many = ["-i", "-r", "-J", "-m", "--recursive", "--content-disposition"];
            let into = ["-O", "-o", "--output", "--output-document"];
            let is_address =
                |word: &&str| word.contains("://") && names_a_file(word.trim_matches(['"', '\'']));
            is_computed || flag(&many) || !flag(&into) && !rest.iter().any(is_address)
        }
        "cp" | "mv" | "ln" => {
            let (target, sources) = rest.split_last().unwrap_or((&".", &[]));
            let is_file = |source: &&str| source.starts_with('-') || names_a_file(source);
            is_computed || flag(&["-t"]) || !sources.iter().all(is_file) && covers(target, path)
        }
        _ => false,
    }
}
