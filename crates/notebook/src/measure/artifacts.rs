//! Keeps the files that a blueprint declares, by copying them out of the folder that the notebook ran in.
//!
//! The folder is a stranger's: links that lead out of it are not followed, and whatever is no ordinary file is left.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use blueproof_core::{
    attempt::{KeptFile, open_regular, remove_folder},
    domain::Bytes,
};
use blueproof_diagnostic::{Code, Diagnostic};
use globset::{GlobBuilder, GlobMatcher};
use walkdir::WalkDir;

use crate::files::Digesting;

/// The most files that are kept. Beyond, a listing of them helps nobody.
const MOST_FILES: usize = 10_000;

/// Of how many files it is told one by one that they are not kept, or not as they were.
const MOST_TOLD: usize = 20;

/// What was kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Collected {
    /// The files, in the order of their paths.
    pub artifacts: Vec<KeptFile>,
    /// What was not kept, and why.
    pub notices: Vec<Diagnostic>,
}

/// A file that a pattern names, as [`matching`] finds it.
#[derive(Debug)]
pub(super) struct Match {
    /// Relative to the notebook's folder.
    pub(super) path: PathBuf,
    pub(super) target: Target,
}

/// What stands at a path.
#[derive(Debug)]
pub(super) enum Target {
    /// A file within the folder, where it really lies, and its size.
    File(PathBuf, u64),
    /// A link to something outside the folder.
    Outside,
    /// A link to nothing, a pipe, a device.
    NoFile,
}

/// A notebook's folder before it ran: which one it is, and its files that a pattern names, each with what changes when
/// somebody writes to it.
#[derive(Debug, Clone, Default)]
pub struct Before {
    folder: Option<Identity>,
    files: BTreeMap<PathBuf, Stamp>,
}

/// Device and inode.
type Identity = (u64, u64);

/// Device, inode, and the time of the last change, which nobody can set: a file that is written anew or over has another one.
type Stamp = (u64, u64, i64, i64);

impl Before {
    /// Looks at what `patterns` name in `folder` now. A pattern that is none names nothing.
    pub fn of(patterns: &[String], folder: &Path) -> Self {
        let found = matching(patterns, folder).unwrap_or_default();
        let stamped = found
            .into_iter()
            .filter_map(|found| Some((found.path.clone(), found.stamp()?)));
        Self {
            folder: identity(folder),
            files: stamped.collect(),
        }
    }

    /// Returns whether this is still the folder that it was, and not a link or another one in its place.
    pub(super) fn is_of(&self, folder: &Path) -> bool {
        self.folder.is_some() && self.folder == identity(folder)
    }

    /// Returns whether the file was there before, and nothing wrote to it.
    pub(super) fn has_untouched(&self, found: &Match) -> bool {
        self.files
            .get(&found.path)
            .is_some_and(|before| found.stamp() == Some(*before))
    }
}

fn identity(folder: &Path) -> Option<Identity> {
    let about = fs::metadata(folder).ok()?;
    Some((about.dev(), about.ino()))
}

impl Match {
    fn stamp(&self) -> Option<Stamp> {
        let Target::File(path, _) = &self.target else {
            return None;
        };
        let about = fs::symlink_metadata(path).ok()?;
        Some((about.dev(), about.ino(), about.ctime(), about.ctime_nsec()))
    }
}

/// Copies what `patterns` match in `folder` to the same place in `into`, up to `limit` altogether.
///
/// Blocks. What does not fit is left out whole, with a notice, and so is all of a folder that is not the one of `before`.
/// Nothing of the notebook may be running any more.
///
/// # Errors
/// A pattern that is none, or `into` cannot be written, for example because the disk is full.
pub fn collect(
    patterns: &[String],
    folder: &Path,
    before: &Before,
    into: &Path,
    limit: Bytes,
) -> Result<Collected, Box<Diagnostic>> {
    remove_folder(into).map_err(|error| {
        let message = format!("the folder `{}` could not be made", into.display());
        Box::new(Diagnostic::error(Code::ArtifactUnkept, message).caused_by(&error))
    })?;
    let mut keeper = Keeper {
        into,
        limit,
        left: limit.0,
        collected: Collected::default(),
        untold: 0,
    };
    if !patterns.is_empty() && !before.is_of(folder) {
        keeper.tell(elsewhere());
        return Ok(keeper.finish());
    }
    for found in matching(patterns, folder)? {
        keeper.keep(&found)?;
    }
    Ok(keeper.finish())
}

/// Keeps one file after the other.
struct Keeper<'a> {
    into: &'a Path,
    limit: Bytes,
    left: u64,
    collected: Collected,
    untold: usize,
}

impl Keeper<'_> {
    fn keep(&mut self, found: &Match) -> Result<(), Box<Diagnostic>> {
        let shown = found.path.display();
        let (source, size) = match &found.target {
            Target::File(source, size) => (source, *size),
            Target::Outside => {
                let message = format!("`{shown}` leads out of the notebook's folder and is not kept");
                self.tell(Diagnostic::warning(Code::ArtifactRefused, message));
                return Ok(());
            }
            Target::NoFile => {
                let message = format!("`{shown}` is no file and is not kept");
                self.tell(Diagnostic::warning(Code::ArtifactRefused, message));
                return Ok(());
            }
        };
        if size > self.left || self.collected.artifacts.len() == MOST_FILES {
            let message = format!(
                "`{shown}` ({}) is not kept: artifacts may take {} in at most {MOST_FILES} files",
                Bytes(size),
                self.limit
            );
            self.tell(Diagnostic::warning(Code::ArtifactsLimited, message));
            return Ok(());
        }
        let path = readable(&found.path);
        let (copied, sha256) = copy(source, &self.into.join(&path), size).map_err(|error| {
            let message = format!("the artifact `{shown}` could not be kept");
            Box::new(Diagnostic::error(Code::ArtifactUnkept, message).caused_by(&error))
        })?;
        if path != found.path {
            let message = format!(
                "the name of `{shown}` is no UTF-8; it is kept as `{}`",
                path.display()
            );
            self.tell(Diagnostic::warning(Code::ArtifactRenamed, message));
        }
        self.left -= copied.0;
        self.collected.artifacts.push(KeptFile {
            path,
            size: copied,
            sha256,
        });
        Ok(())
    }

    /// Says what was not kept as it was, of the first few files.
    fn tell(&mut self, notice: Diagnostic) {
        if self.collected.notices.len() == MOST_TOLD {
            self.untold += 1;
            return;
        }
        self.collected.notices.push(notice);
    }

    fn finish(mut self) -> Collected {
        if self.untold > 0 {
            let message = format!("the same goes for {} more files", self.untold);
            let more = Diagnostic::warning(Code::ArtifactsLimited, message);
            self.collected
                .notices
                .push(more.hint("name what is to be kept more closely under `artifacts`"));
        }
        self.collected
    }
}

/// Says that a notebook put another folder in the place of its own.
pub(super) fn elsewhere() -> Diagnostic {
    let message = "the notebook's folder is not the one that it began in: nothing in it is looked at or kept";
    Diagnostic::warning(Code::ArtifactRefused, message)
        .hint("let it write into its folder, and leave the folder")
}

/// Makes a path one that can be written down, read and typed: a byte that is no UTF-8 becomes `\xE9`.
fn readable(path: &Path) -> PathBuf {
    let chunks = path.as_os_str().as_bytes().utf8_chunks();
    let mut text = String::new();
    for chunk in chunks {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02X}"));
        }
    }
    text.into()
}

/// Returns what `patterns` name in `folder`, in the order of the paths, none of them twice.
///
/// A pattern that names a folder stands for everything in it. `*` matches within one folder, `**` across.
pub(super) fn matching(patterns: &[String], folder: &Path) -> Result<Vec<Match>, Box<Diagnostic>> {
    let matchers = patterns
        .iter()
        .map(|pattern| Pattern::new(pattern))
        .collect::<Result<Vec<_>, _>>()?;
    let root = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut found = Vec::new();
    let walk = WalkDir::new(folder).min_depth(1).sort_by_file_name();
    // What cannot be read cannot be kept either.
    for entry in walk.into_iter().flatten() {
        let path = entry
            .path()
            .strip_prefix(folder)
            .expect("the walk stays in its root")
            .to_owned();
        if entry.file_type().is_dir() || !matchers.iter().any(|matcher| matcher.names(&path)) {
            continue;
        }
        let target = target(entry.path(), &root);
        found.push(Match { path, target });
    }
    Ok(found)
}

/// A glob, and the same as the name of a folder.
struct Pattern {
    itself: GlobMatcher,
    below: GlobMatcher,
}

impl Pattern {
    fn new(pattern: &str) -> Result<Self, Box<Diagnostic>> {
        let trimmed = pattern.trim_start_matches("./").trim_end_matches('/');
        let compile = |glob: &str| {
            let built = GlobBuilder::new(glob).literal_separator(true).build();
            built.map(|glob| glob.compile_matcher()).map_err(|error| {
                let message = format!("`{pattern}` is no glob");
                Box::new(Diagnostic::error(Code::ArtifactPattern, message).caused_by(&error))
            })
        };
        Ok(Self {
            itself: compile(trimmed)?,
            below: compile(&format!("{trimmed}/**"))?,
        })
    }

    fn names(&self, path: &Path) -> bool {
        self.itself.is_match(path) || self.below.is_match(path)
    }
}

fn target(path: &Path, root: &Path) -> Target {
    let Ok(real) = path.canonicalize() else {
        return Target::NoFile;
    };
    if !real.starts_with(root) {
        return Target::Outside;
    }
    match fs::symlink_metadata(&real) {
        Ok(about) if about.is_file() => Target::File(real, about.len()),
        _ => Target::NoFile,
    }
}

fn copy(from: &Path, to: &Path, size: u64) -> io::Result<(Bytes, String)> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut copy = Digesting::new(File::create_new(to)?);
    // The limit holds even where the file has grown since it was looked at.
    io::copy(&mut open_regular(from)?.take(size), &mut copy)?;
    let (_, copied, sha256) = copy.finish();
    Ok((copied, sha256))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let work = folder.path().join("work");
        fs::create_dir_all(work.join("output/deep")).expect("a folder can be made");
        for (name, text) in [
            ("output/a.json", "12345"),
            ("output/deep/b.json", "123"),
            ("top.txt", ""),
            ("../secret", "s"),
        ] {
            fs::write(work.join(name), text).expect("a file can be written");
        }
        symlink("../../secret", work.join("output/out.json")).expect("a link can be made");
        symlink("a.json", work.join("output/in.json")).expect("a link can be made");
        symlink("nothing", work.join("output/dangling.json")).expect("a link can be made");
        symlink("/etc", work.join("output/etc")).expect("a link can be made");
        folder
    }

    fn collected(patterns: &[&str], limit: u64) -> (Vec<String>, Vec<String>) {
        let folder = folder();
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        let into = folder.path().join("artifacts");
        let work = folder.path().join("work");
        let before = Before::of(&[], &work);
        let collected = collect(&patterns, &work, &before, &into, Bytes(limit)).expect("it can be written");
        for artifact in &collected.artifacts {
            let size = fs::metadata(into.join(&artifact.path))
                .expect("it was copied")
                .len();
            assert_eq!(size, artifact.size.0);
        }
        let paths = collected
            .artifacts
            .iter()
            .map(|artifact| artifact.path.display().to_string());
        let notices = collected.notices.into_iter().map(|notice| notice.message);
        (paths.collect(), notices.collect())
    }

    #[test]
    fn files_are_kept_in_their_place_and_links_that_lead_out_are_not() {
        let (paths, notices) = collected(&["output/*"], 1000);
        assert_eq!(paths, ["output/a.json", "output/deep/b.json", "output/in.json"]);
        assert_eq!(
            notices,
            [
                "`output/dangling.json` is no file and is not kept",
                "`output/etc` leads out of the notebook's folder and is not kept",
                "`output/out.json` leads out of the notebook's folder and is not kept",
            ]
        );
    }

    #[test]
    fn patterns_name_files_and_folders_of_the_notebooks_folder_alone() {
        let rows: &[(&str, &[&str])] = &[
            ("output/*.json", &["output/a.json", "output/in.json"]),
            ("**/b.json", &["output/deep/b.json"]),
            ("./output/deep/", &["output/deep/b.json"]),
            ("../secret", &[]),
            ("/etc/hostname", &[]),
        ];
        for (pattern, paths) in rows {
            assert_eq!(collected(&[pattern], 1000).0, *paths, "{pattern}");
        }
    }

    #[test]
    fn nothing_is_kept_of_another_folder_in_the_place_of_the_notebooks() {
        let folder = folder();
        let (work, into) = (folder.path().join("work"), folder.path().join("artifacts"));
        let before = Before::of(&[], &work);
        fs::rename(&work, folder.path().join("moved")).expect("it can be moved");
        symlink("/etc", &work).expect("a link can be made");
        let collected = collect(&["hostname".to_owned()], &work, &before, &into, Bytes(1000));
        let collected = collected.expect("it can be written");
        assert_eq!(collected.artifacts, []);
        assert_eq!(collected.notices.len(), 1);
    }

    #[test]
    fn what_is_too_large_is_left_out_whole_and_told() {
        let (paths, notices) = collected(&["output/a.json", "**/b.json"], 4);
        assert_eq!(paths, ["output/deep/b.json"]);
        assert_eq!(notices.len(), 1);
        assert!(notices[0].starts_with("`output/a.json` ("), "{notices:?}");
    }

    #[test]
    fn of_many_files_that_are_not_kept_the_first_are_named_and_the_others_counted() {
        let folder = folder();
        let work = folder.path().join("work");
        for nth in 0..30 {
            fs::write(work.join(format!("{nth}.bin")), "12").expect("a file can be written");
        }
        let before = Before::of(&[], &work);
        let into = folder.path().join("artifacts");
        let collected =
            collect(&["*.bin".to_owned()], &work, &before, &into, Bytes(1)).expect("it can be written");
        assert_eq!(collected.notices.len(), MOST_TOLD + 1);
        assert_eq!(
            collected.notices[MOST_TOLD].message,
            "the same goes for 10 more files"
        );
    }
}
