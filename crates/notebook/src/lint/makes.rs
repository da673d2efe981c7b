//! What in a notebook may make a file that it reads further down: downloads, archives, copies, commands.
//!
//! Where what is made has a name, only that counts. Where the name is computed, or nothing is known of what makes it, any file
//! may be made. What merely names the file itself is not looked at here.

use std::path::{Component, Path, PathBuf};

use super::Subject;
use crate::{
    analysis::{
        Analysis, At, Made, Traced, Value,
        shell::{self, Command, Outside},
    },
    ipynb::Cell,
};

/// Functions that fetch or unpack something, whoever has them, and the argument that says where to: its name, and its place
/// unless it has none.
const FETCHERS: [(&str, &str, usize); 9] = [
    ("urlretrieve", "filename", 1),
    ("download_file", "Filename", 2),
    ("snapshot_download", "local_dir", usize::MAX),
    ("hf_hub_download", "local_dir", usize::MAX),
    ("extractall", "path", 0),
    ("unpack_archive", "extract_dir", 1),
    ("clone_from", "to_path", 1),
    ("chdir", "", usize::MAX),
    ("mount", "", usize::MAX),
];
/// What stands in the names of others that do.
const FETCHES: [&str; 8] = [
    "download",
    "fetch",
    "get_file",
    "extract_archive",
    "unpack_",
    "unzip",
    "untar",
    "decompress",
];
/// Functions that run what is not seen here.
const UNSEEN: [&str; 4] = ["magic", "run_line_magic", "run_cell_magic", "run_cell"];
/// Functions of a database that fetch rows, not files.
const ROWS: [&str; 3] = ["fetchall", "fetchone", "fetchmany"];
/// Functions that copy, link or move files, where their module or a path has them.
const COPIERS: [&str; 14] = [
    "copy",
    "copy2",
    "copyfile",
    "copytree",
    "copy_into",
    "move",
    "move_into",
    "rename",
    "renames",
    "replace",
    "link",
    "symlink",
    "hardlink_to",
    "symlink_to",
];
/// Functions that write the file which one of their first two arguments names.
const WRITERS: &str = " imsave imwrite make_archive save save_pretrained savefig savetxt savez savez_compressed to_csv to_excel \
    to_feather to_file to_hdf to_html to_json to_netcdf to_parquet to_pickle to_stata to_zarr write_csv write_image write_parquet ";
/// Extensions that files have, and no folders.
const FILES: &str = " bin bmp bz2 cfg csv dat db feather gif gz h5 hdf5 html ini ipynb jpeg jpg json jsonl log mat md model mp3 mp4 npy \
    npz onnx parquet pdf pickle pkl png pt pth py safetensors sqlite svg sh tar tgz tif tiff toml tsv txt wav xls xlsx xml xz yaml \
    yml zip zst ";
/// Those of them that are archives: what is fetched so is unpacked, too.
const ARCHIVES: &str = " bz2 gz tar tgz xz zip zst ";
/// Programs that make no files, but where their output goes to one.
const HARMLESS: &str = " : [ [[ add-apt-repository apt apt-get awk brew break cat chmod chown clear conda continue cut date df diff dir \
    dnf do done du echo esac exit export false fi file find for free grep head hostname id jq less local ls lsb_release lscpu lsof \
    mamba man md5sum micromamba mkdir more nproc nvidia-smi pip pip3 printenv printf ps pwd read return rm rmdir seq set sha256sum \
    shift sleep sort stat tail test top touch tr tree true type uname uniq unset uptime wait wc which whoami yum ";
/// What git does without making files.
const HARMLESS_OF_GIT: &str = " add branch commit config diff log push remote rev-parse show status ";
/// Magics that make none, those of whole cells included.
const HARMLESS_MAGICS: &str = " HTML SVG aimport alias autoreload bash capture colors config debug env file hist history html \
    javascript js latex load_ext lprun lsmagic magic markdown matplotlib memit mermaid mprun pdb pinfo pip pprint precision prun \
    pwd pylab python python3 reload_ext reset reset_selective set_env sh store svg sx system tb tensorboard time timeit \
    unload_ext watermark who who_ls whos writefile xmode ! ";

/// What may come of a command or a call.
enum Makes {
    Nothing,
    /// What lies in this folder, or is this file.
    Under(String),
    Anything,
}

/// All that may make files, where it stands.
pub(super) struct Makers {
    outside: Vec<(At, Makes)>,
    /// By the number of the call.
    calls: Vec<(usize, Makes)>,
}

impl Makers {
    pub(super) fn of(subject: &Subject<'_>) -> Self {
        let analysis = &subject.analysis;
        let lines = shell::of_lines(analysis).chain(subject.notebook.code().filter_map(cell_magic));
        let outside = lines.map(|(at, outside)| (at, of_outside(&outside)));
        let calls = analysis
            .calls
            .iter()
            .map(|made| of_call(analysis, made))
            .enumerate();
        Self {
            outside: outside.filter(|(_, makes)| makes.something()).collect(),
            calls: calls.filter(|(_, makes)| makes.something()).collect(),
        }
    }

    /// Returns whether something before the call of this number, which comes of this place, may make the file.
    pub(super) fn may_make(&self, nth: usize, from: At, path: &str) -> bool {
        let mut outside = self.outside.iter().filter(|(at, _)| *at < from);
        let mut calls = self.calls.iter().take_while(|(earlier, _)| *earlier < nth);
        outside.any(|(_, makes)| makes.covers(path)) || calls.any(|(_, makes)| makes.covers(path))
    }
}

impl Makes {
    fn something(&self) -> bool {
        !matches!(self, Makes::Nothing)
    }

    fn covers(&self, path: &str) -> bool {
        match self {
            Makes::Nothing => false,
            Makes::Anything => true,
            Makes::Under(folder) => covers(folder, path),
        }
    }

    /// What is made where nothing says a name is any file.
    fn at(target: Option<&Traced>) -> Self {
        target
            .and_then(text_of)
            .map_or(Makes::Anything, |target| Makes::Under(target.to_owned()))
    }
}

/// Returns whether the file lies in this folder, or is this one, with an extension perhaps, or it is not known where one of them
/// is.
fn covers(folder: &str, path: &str) -> bool {
    let is_elsewhere = |path: &str| path.starts_with('~') || path.split('/').any(|part| part == "..");
    let plain = |path: &str| -> PathBuf {
        let parts = Path::new(path).components();
        parts.filter(|part| *part != Component::CurDir).collect()
    };
    let (at, file) = (plain(folder), plain(path));
    is_elsewhere(folder)
        || is_elsewhere(path)
        || at.is_absolute() != file.is_absolute()
        || file.starts_with(&at)
        || file.with_extension("") == at
}

fn of_call(analysis: &Analysis, made: &Made) -> Makes {
    let name = made.function.as_str();
    if let Some(outside) = shell::of_call(analysis, made) {
        let makes = of_outside(&outside);
        let is_elsewhere = makes.something() && made.argument("cwd", usize::MAX).is_some();
        return if is_elsewhere { Makes::Anything } else { makes };
    }
    if COPIERS.contains(&name) {
        return copied(analysis, made);
    }
    if let Some((_, keyword, position)) = FETCHERS.iter().find(|(known, _, _)| *known == name) {
        return Makes::at(made.argument(keyword, *position));
    }
    let lower = name.to_ascii_lowercase();
    let is_asked_to = |(name, value): &(String, Traced)| name == "download" && value.truth() != Some(false);
    let fetches = FETCHES.iter().any(|part| lower.contains(part)) && !ROWS.contains(&name);
    let is_unseen = UNSEEN.contains(&name) || name == "retrieve" && is_of(made, &["pooch"]);
    if fetches || is_unseen || made.keywords.iter().any(is_asked_to) {
        return Makes::Anything;
    }
    written(analysis, made)
}

/// Returns what a call writes. A file whose name is known is one that the notebook names.
fn written(analysis: &Analysis, made: &Made) -> Makes {
    let name = made.function.as_str();
    let first = made.arguments.first();
    let of_path = made.receiver.as_ref().filter(|of| may_be_path(analysis, of));
    let is_writing = |mode: Option<&Traced>| {
        let mode = mode.and_then(Traced::text);
        mode.is_some_and(|mode| mode.len() <= 3 && mode.contains(['w', 'a', 'x', '+']))
    };
    let targets: Vec<&Traced> = match name {
        "open" if is_writing(made.argument("mode", 1)) => first.into_iter().collect(),
        "open" if is_writing(first) => of_path.into_iter().collect(),
        "write_text" | "write_bytes" => of_path.into_iter().collect(),
        name if is_among(name, WRITERS) => made.arguments.iter().take(2).collect(),
        _ => return Makes::Nothing,
    };
    if let Some(target) = targets.iter().find_map(|target| text_of(target)) {
        return Makes::Under(target.to_owned());
    }
    if targets.iter().any(|target| is_computed_path(target)) {
        return Makes::Anything;
    }
    Makes::Nothing
}

fn is_computed_path(value: &Traced) -> bool {
    match value.made() {
        Some(made)
            if ["join", "format", "Path", "with_suffix", "with_name"].contains(&made.function.as_str()) =>
        {
            made.arguments.last().is_none_or(|last| last.text().is_none())
        }
        Some(_) => false,
        None => matches!(value.value, Value::Unknown),
    }
}

fn copied(analysis: &Analysis, made: &Made) -> Makes {
    let name = made.function.as_str();
    let given = made.arguments.len() + made.keywords.len();
    let of_path = made
        .receiver
        .as_ref()
        .filter(|of| given == 1 && may_be_path(analysis, of));
    let (source, target) = match (of_path, made.arguments.first()) {
        _ if given > 1 && is_of(made, &["shutil", "os"]) => {
            (made.argument("src", 0), made.argument("dst", 1))
        }
        (Some(of), _) if name == "symlink_to" || name == "hardlink_to" => (None, Some(of)),
        (Some(of), Some(target)) if may_be_path(analysis, target) => (Some(of), Some(target)),
        (_, _) => return Makes::Nothing,
    };
    let of_one_file = ["copy", "copy2", "copyfile"].contains(&name);
    let is_file = source
        .and_then(text_of)
        .is_some_and(|source| of_one_file || is_file(source));
    // A file is made by its own name, or by that which is given.
    if is_file && target.and_then(text_of).is_some() {
        return Makes::Nothing;
    }
    Makes::at(target)
}

/// Returns whether a value may be a path, or is a text, which can be one.
fn may_be_path(analysis: &Analysis, value: &Traced) -> bool {
    const OF_PATHS: [&str; 8] = [
        "absolute",
        "expanduser",
        "joinpath",
        "resolve",
        "with_name",
        "with_stem",
        "with_suffix",
        "relative_to",
    ];
    match &value.value {
        Value::Unknown | Value::Text(_) => true,
        Value::Symbol(symbol) => !analysis
            .imports
            .contains_key(symbol.split('.').next().unwrap_or_default()),
        Value::Made(made) if made.function == "Path" => true,
        Value::Made(made) if OF_PATHS.contains(&made.function.as_str()) => {
            made.receiver.as_ref().is_some_and(|of| may_be_path(analysis, of))
        }
        Value::Made(_)
        | Value::None
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::List(_)
        | Value::Dict(_) => false,
    }
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

/// Returns whether a path or an address surely names a file.
fn is_file(path: &str) -> bool {
    has_extension(path, FILES)
}

fn has_extension(path: &str, of: &str) -> bool {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let extension = Path::new(path).extension().unwrap_or_default();
    is_among(&extension.to_string_lossy().to_ascii_lowercase(), of)
}

fn is_among(word: &str, words: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

/// Returns whether a call is of a module of these names. A function that is imported by itself has none.
fn is_of(made: &Made, modules: &[&str]) -> bool {
    let of = made.receiver.as_ref().map(|of| of.symbol().unwrap_or_default());
    of.is_none_or(|of| modules.contains(&of))
}

fn cell_magic(cell: &Cell) -> Option<(At, Outside)> {
    let magic = cell.source.trim_start().strip_prefix("%%")?;
    let name = magic.split_whitespace().next().unwrap_or_default();
    let at = At {
        cell: cell.number,
        line: 1,
    };
    Some((at, Outside::Magic(name.to_owned())))
}

fn of_outside(outside: &Outside) -> Makes {
    let commands = match outside {
        Outside::Magic(name) if is_among(name, HARMLESS_MAGICS) => return Makes::Nothing,
        Outside::Magic(_) => return Makes::Anything,
        Outside::Commands(commands) => commands,
    };
    let mut all = commands.iter().map(of_command).filter(Makes::something);
    match (all.next(), all.next()) {
        (None, _) => Makes::Nothing,
        (Some(only), None) => only,
        (Some(_), Some(_)) => Makes::Anything,
    }
}

fn of_command(command: &Command) -> Makes {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    let past = words.iter().take_while(|word| **word == "sudo").count();
    let Some((program, rest)) = words[past..].split_first() else {
        return Makes::Nothing;
    };
    if command.into.iter().any(|into| is_computed(into)) {
        return Makes::Anything;
    }
    let second = rest.first().copied().unwrap_or_default();
    let is_harmless = match program.rsplit('/').next().unwrap_or_default() {
        "wget" | "curl" => return downloaded(rest),
        "cp" | "mv" | "ln" => return moved(program, rest),
        "git" => is_among(second, HARMLESS_OF_GIT),
        "uv" => second == "pip" || second == "add",
        "find" => !rest
            .iter()
            .any(|word| word.starts_with("-exec") || word.starts_with("-ok")),
        name => is_among(name, HARMLESS),
    };
    let asks = matches!(rest, ["--version" | "-V" | "--help"]);
    if is_harmless || asks || rest.starts_with(&["-m", "pip"]) {
        return Makes::Nothing;
    }
    Makes::Anything
}

fn is_computed(word: &str) -> bool {
    word.contains(['$', '{', '*', '?', '`'])
}

/// Returns what `wget` and `curl` make: a file of the name that stands in the command, or one that the server names.
fn downloaded(words: &[&str]) -> Makes {
    const MANY: [&str; 6] = [
        "--recursive",
        "--mirror",
        "--input-file",
        "--content-disposition",
        "--remote-header-name",
        "--config",
    ];
    const INTO: [&str; 4] = ["-O", "-o", "--output", "--output-document"];
    let is_short = |word: &str| word.starts_with('-') && !word.starts_with("--");
    let is_many = |word: &&str| {
        MANY.iter().any(|many| word.starts_with(many))
            || is_short(word) && word.contains(['i', 'r', 'J', 'm', 'K'])
    };
    let addresses = || words.iter().filter(|word| word.contains("://"));
    let is_plain = |word: &&str| is_file(word) && !has_extension(word, ARCHIVES);
    let is_computed = words
        .iter()
        .any(|word| is_computed(word.split('?').next().unwrap_or_default()));
    let is_named = words.iter().any(|word| INTO.contains(word)) && addresses().count() == 1;
    if is_computed || words.iter().any(is_many) || !(is_named || addresses().all(is_plain)) {
        return Makes::Anything;
    }
    Makes::Nothing
}

/// Returns what `cp`, `mv` and `ln` make that their words do not name: what lies in a folder that they copy or move.
fn moved(program: &str, words: &[&str]) -> Makes {
    let (flags, paths): (Vec<&str>, Vec<&str>) =
        words.iter().copied().partition(|word| word.starts_with('-'));
    if words.iter().any(|word| is_computed(word))
        || flags
            .iter()
            .any(|flag| flag.starts_with("-t") || flag.starts_with("--t"))
    {
        return Makes::Anything;
    }
    let of_folders = |flag: &&str| flag.contains(['r', 'R', 'a']);
    if program == "cp" && !flags.iter().any(of_folders) {
        return Makes::Nothing;
    }
    match paths.as_slice() {
        [] => Makes::Nothing,
        [only] => Makes::Under(
            Path::new(only)
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        ),
        [sources @ .., _] if sources.iter().all(|source| is_file(source)) => Makes::Nothing,
        [.., target] => Makes::Under((*target).to_owned()),
    }
}
