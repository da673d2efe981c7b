//! A folder's content: named by a digest, and copied so that a run cannot change what it tests.
//!
//! Folders that tools make by themselves are left out of both, a store of ours too, since it changes with the very run
//! that is asked for; a notebook that needs one of them makes it again. So does a log that whoever asks writes into the
//! folder: which files that are, only the process that asks knows, and the request says it to whoever copies.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs::{self, File, Metadata},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{
            ffi::OsStrExt,
            fs::{MetadataExt, PermissionsExt},
        },
    },
    path::{Path, PathBuf},
};

use blueproof_core::{
    attempt::{CACHE_TAG, STORE_ID},
    domain::Head,
};
use sha2::{Digest, Sha256};

use crate::files::hexadecimal;

/// Names of what is never part of a folder's content.
const LEFT_OUT: [&str; 6] = [
    ".git",
    ".venv",
    ".blueproof",
    ".ipynb_checkpoints",
    "__pycache__",
    "node_modules",
];

/// What SQLite puts behind a store's name for the files that belong to it.
const STORE_SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// A folder that could not be read or copied.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing} `{}`", .path.display())]
pub struct SnapshotError {
    doing: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl SnapshotError {
    /// Returns what the system said.
    pub fn io(&self) -> &io::Error {
        &self.source
    }
}

/// Returns the one path of a folder that has no links in it.
pub(crate) fn canonical(folder: &Path) -> Result<PathBuf, SnapshotError> {
    folder.canonicalize().map_err(failed("find", folder))
}

/// Returns the digest of a folder's content: names, bytes, the right to execute, and where links point to.
///
/// Reads every file once. Two folders have the same digest when a copy of one cannot be told from the other. Files at the
/// paths `without`, relative to the folder, are no content.
pub fn digest(folder: &Path, without: &BTreeSet<PathBuf>) -> Result<Head, SnapshotError> {
    Snapshot {
        root: folder,
        without,
        copy_to: None,
        hash: Sha256::new(),
    }
    .take()
}

/// Copies a folder's content into `to`, which is made, and returns the digest of what was copied.
///
/// Links are copied as links. What is copied may be written to, whatever it was before. Files at the paths `without`,
/// relative to the folder, are no content.
pub fn copy(folder: &Path, to: &Path, without: &BTreeSet<PathBuf>) -> Result<Head, SnapshotError> {
    Snapshot {
        root: folder,
        without,
        copy_to: Some(to),
        hash: Sha256::new(),
    }
    .take()
}

/// Returns the files of a folder, relative to it, that this process' standard output or error is written to. They change
/// with the very run that is asked for.
pub(crate) fn own_output(folder: &Path) -> Result<BTreeSet<PathBuf>, SnapshotError> {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let streams = [stdout.as_fd(), stderr.as_fd()];
    let files: BTreeSet<FileId> = streams.into_iter().filter_map(file_behind).collect();
    let mut found = BTreeSet::new();
    if !files.is_empty() {
        find(folder, Path::new(""), &files, &mut found)?;
    }
    Ok(found)
}

/// A file's device and inode.
type FileId = (u64, u64);

fn id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// Returns the file that is written to, where it is one and no terminal, pipe or device.
fn file_behind(stream: BorrowedFd<'_>) -> Option<FileId> {
    let file = File::from(stream.try_clone_to_owned().ok()?);
    let metadata = file.metadata().ok()?;
    metadata.is_file().then(|| id(&metadata))
}

/// Adds the files of a folder that are among these, below whatever names they have.
fn find(
    root: &Path,
    relative: &Path,
    files: &BTreeSet<FileId>,
    found: &mut BTreeSet<PathBuf>,
) -> Result<(), SnapshotError> {
    for (name, kind) in content(&root.join(relative))? {
        let relative = relative.join(name);
        let path = root.join(&relative);
        match kind {
            Kind::Link => {}
            Kind::Folder => find(root, &relative, files, found)?,
            Kind::File => {
                let metadata = path.symlink_metadata().map_err(failed("look at", &path))?;
                // A name that is not UTF-8 cannot be said in a request.
                if files.contains(&id(&metadata)) && relative.to_str().is_some() {
                    found.insert(relative);
                }
            }
        }
    }
    Ok(())
}

struct Snapshot<'a> {
    root: &'a Path,
    without: &'a BTreeSet<PathBuf>,
    copy_to: Option<&'a Path>,
    hash: Sha256,
}

impl Snapshot<'_> {
    fn take(mut self) -> Result<Head, SnapshotError> {
        self.folder(Path::new(""))?;
        Ok(Head::Snapshot(hexadecimal(&self.hash.finalize())))
    }

    fn folder(&mut self, relative: &Path) -> Result<(), SnapshotError> {
        let path = self.root.join(relative);
        if let Some(to) = self.copy_to {
            let to = to.join(relative);
            fs::create_dir_all(&to).map_err(failed("make", &to))?;
        }
        for (name, kind) in content(&path)? {
            let relative = relative.join(name);
            match kind {
                Kind::Link => self.link(&relative)?,
                Kind::Folder => {
                    self.name("folder", &relative);
                    self.folder(&relative)?;
                }
                Kind::File if self.without.contains(&relative) => {}
                Kind::File => self.file(&relative)?,
            }
        }
        Ok(())
    }

    fn link(&mut self, relative: &Path) -> Result<(), SnapshotError> {
        let path = self.root.join(relative);
        let target = fs::read_link(&path).map_err(failed("read", &path))?;
        self.name("link", relative);
        self.name("to", &target);
        if let Some(to) = self.copy_to {
            let to = to.join(relative);
            std::os::unix::fs::symlink(target, &to).map_err(failed("make", &to))?;
        }
        Ok(())
    }

    fn file(&mut self, relative: &Path) -> Result<(), SnapshotError> {
        let path = self.root.join(relative);
        let mut from = File::open(&path).map_err(failed("read", &path))?;
        let mode = from
            .metadata()
            .map_err(failed("look at", &path))?
            .permissions()
            .mode();
        let executable = mode & 0o111 != 0;
        self.name(if executable { "program" } else { "file" }, relative);
        let mut to = self.make_file(relative, if executable { 0o755 } else { 0o644 })?;
        let mut length = 0_u64;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = from.read(&mut buffer).map_err(failed("read", &path))?;
            if read == 0 {
                break;
            }
            length += read as u64;
            self.hash.update(&buffer[..read]);
            if let Some((file, to)) = &mut to {
                file.write_all(&buffer[..read]).map_err(failed("write", to))?;
            }
        }
        self.hash.update(length.to_le_bytes());
        Ok(())
    }

    fn make_file(&self, relative: &Path, mode: u32) -> Result<Option<(File, PathBuf)>, SnapshotError> {
        let Some(to) = self.copy_to else { return Ok(None) };
        let to = to.join(relative);
        let file = File::create(&to).map_err(failed("make", &to))?;
        file.set_permissions(fs::Permissions::from_mode(mode))
            .map_err(failed("make", &to))?;
        Ok(Some((file, to)))
    }

    /// Hashes a kind and a name so that no two lists of them look alike.
    fn name(&mut self, kind: &str, name: &Path) {
        let bytes = name.as_os_str().as_bytes();
        self.hash.update(kind);
        self.hash.update([0]);
        self.hash.update((bytes.len() as u64).to_le_bytes());
        self.hash.update(bytes);
    }
}

/// What has content; sockets, pipes and devices have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Link,
    Folder,
    File,
}

/// Returns what stands in a folder, in order, without what is left out.
fn content(folder: &Path) -> Result<BTreeMap<OsString, Kind>, SnapshotError> {
    let entries = fs::read_dir(folder).map_err(failed("read", folder))?;
    let mut content = BTreeMap::new();
    for entry in entries {
        let entry = entry.map_err(failed("read", folder))?;
        let kind = entry.file_type().map_err(failed("look at", &entry.path()))?;
        let kind = match () {
            () if kind.is_symlink() => Kind::Link,
            () if kind.is_dir() => Kind::Folder,
            () if kind.is_file() => Kind::File,
            () => continue,
        };
        if !is_made_by_tools(&entry.path(), kind) {
            content.insert(entry.file_name(), kind);
        }
    }
    let files = content.iter().filter(|(_, kind)| **kind == Kind::File);
    let stores: Vec<_> = files
        .map(|(name, _)| Path::new(name))
        .filter(|name| is_store(&folder.join(name)))
        .map(files_of_store)
        .collect();
    for file in stores.iter().flatten() {
        content.remove(file);
    }
    Ok(content)
}

/// Returns whether what lies at `path` is left out of a folder's content.
pub(crate) fn is_left_out(path: &Path) -> bool {
    let kind = if path.is_dir() { Kind::Folder } else { Kind::File };
    let store = STORE_SUFFIXES.iter().find_map(|suffix| {
        let name = path.to_str()?.strip_suffix(suffix)?;
        is_store(Path::new(name)).then_some(())
    });
    is_made_by_tools(path, kind) || kind == Kind::File && store.is_some()
}

fn is_made_by_tools(path: &Path, kind: Kind) -> bool {
    let name = path.file_name().unwrap_or_default();
    LEFT_OUT.iter().any(|left_out| name == *left_out) || kind == Kind::Folder && path.join(CACHE_TAG).exists()
}

/// Returns whether a file is a store of ours, by its header: <https://sqlite.org/fileformat.html>.
fn is_store(file: &Path) -> bool {
    let mut header = [0; 72];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header.starts_with(b"SQLite format 3\0") && header[68..] == STORE_ID.to_be_bytes()
}

fn files_of_store(store: &Path) -> [OsString; 4] {
    let beside = |suffix: &str| {
        let mut name = store.as_os_str().to_owned();
        name.push(suffix);
        name
    };
    STORE_SUFFIXES.map(beside)
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SnapshotError {
    let path = path.to_path_buf();
    move |source| SnapshotError { doing, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(folder: &Path) -> Result<Head, SnapshotError> {
        super::digest(folder, &BTreeSet::new())
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("data")).expect("a folder");
        fs::write(folder.path().join("a.ipynb"), "{}").expect("a file");
        fs::write(folder.path().join("data/b"), "1").expect("a file");
        std::os::unix::fs::symlink("data/b", folder.path().join("c")).expect("a link");
        folder
    }

    #[test]
    fn a_copy_has_the_digest_of_what_it_is_a_copy_of() {
        let (from, to) = (folder(), tempfile::tempdir().expect("a folder"));
        let to = to.path().join("copy");
        let head = digest(from.path()).expect("a digest");
        assert_eq!(copy(from.path(), &to, &BTreeSet::new()).expect("a copy"), head);
        assert_eq!(digest(&to).expect("a digest"), head);
    }

    #[test]
    fn every_change_of_the_content_changes_the_digest() {
        let before = digest(folder().path()).expect("a digest");
        let changes: [fn(&Path); 6] = [
            |root| fs::write(root.join("a.ipynb"), "{ }").expect("a file"),
            |root| fs::rename(root.join("a.ipynb"), root.join("b.ipynb")).expect("a name"),
            |root| fs::remove_file(root.join("data/b")).expect("a file"),
            |root| fs::create_dir(root.join("empty")).expect("a folder"),
            |root| {
                fs::set_permissions(root.join("a.ipynb"), fs::Permissions::from_mode(0o755)).expect("rights");
            },
            |root| {
                fs::remove_file(root.join("c")).expect("a link");
                std::os::unix::fs::symlink("a.ipynb", root.join("c")).expect("a link");
            },
        ];
        for (number, change) in changes.iter().enumerate() {
            let folder = folder();
            assert_eq!(digest(folder.path()).expect("a digest"), before);
            change(folder.path());
            assert_ne!(
                digest(folder.path()).expect("a digest"),
                before,
                "change {number}"
            );
        }
    }

    #[test]
    fn what_tools_leave_behind_is_no_content() {
        let folder = folder();
        let before = digest(folder.path()).expect("a digest");
        fs::create_dir(folder.path().join(".git")).expect("a folder");
        fs::create_dir_all(folder.path().join("data/__pycache__")).expect("a folder");
        fs::create_dir(folder.path().join("runs")).expect("a folder");
        fs::write(folder.path().join("runs/CACHEDIR.TAG"), "").expect("a file");
        assert_eq!(digest(folder.path()).expect("a digest"), before);
    }

    #[test]
    fn a_store_is_no_content_whatever_its_name_and_other_databases_are() {
        let folder = folder();
        let before = digest(folder.path()).expect("a digest");
        let mut header = [0; 4096];
        header[..16].copy_from_slice(b"SQLite format 3\0");
        fs::write(folder.path().join("measured.db"), header).expect("a file");
        let with_data = digest(folder.path()).expect("a digest");
        assert_ne!(with_data, before);
        header[68..72].copy_from_slice(&STORE_ID.to_be_bytes());
        fs::write(folder.path().join("mine.sqlite"), header).expect("a file");
        for beside in ["mine.sqlite-wal", "mine.sqlite-shm"] {
            fs::write(folder.path().join(beside), "").expect("a file");
        }
        assert_eq!(digest(folder.path()).expect("a digest"), with_data);
        fs::write(folder.path().join("uv.lock"), "").expect("a file");
        assert_ne!(digest(folder.path()).expect("a digest"), with_data);
    }

    #[test]
    fn a_file_that_is_written_to_is_found_by_all_its_names_and_is_in_no_digest_and_no_copy() {
        let folder = folder();
        let before = digest(folder.path()).expect("a digest");
        let log = File::create(folder.path().join("data/run.log")).expect("a file");
        fs::hard_link(folder.path().join("data/run.log"), folder.path().join("same")).expect("a name");
        fs::write(folder.path().join("old.log"), "before").expect("a file");
        let with_old_log = {
            let other = self::folder();
            fs::write(other.path().join("old.log"), "before").expect("a file");
            digest(other.path()).expect("a digest")
        };
        assert_ne!(with_old_log, before);

        let written = BTreeSet::from([file_behind(log.as_fd()).expect("it is a file")]);
        let mut without = BTreeSet::new();
        find(folder.path(), Path::new(""), &written, &mut without).expect("a search");

        assert_eq!(without, ["data/run.log", "same"].map(PathBuf::from).into());
        for said in ["", "a line\n"] {
            fs::write(folder.path().join("data/run.log"), said).expect("a file");
            let head = super::digest(folder.path(), &without).expect("a digest");
            assert_eq!(head, with_old_log);
            let to = tempfile::tempdir().expect("a folder");
            let to = to.path().join("copy");
            assert_eq!(copy(folder.path(), &to, &without).expect("a copy"), with_old_log);
            assert!(!to.join("data/run.log").exists() && to.join("old.log").exists());
        }
    }

    #[test]
    fn what_is_no_file_is_none_that_is_written_to() {
        for device in ["/dev/null", "/"] {
            let device = File::open(device).expect("it is there");
            assert_eq!(file_behind(device.as_fd()), None);
        }
    }
}
