//! Environments on disk: which are complete, whose turn it is to build one, and a short way to those that are there.
//!
//! `<key>` is an environment; `<key>+2` the next one of the same key, made because a notebook changed the first.
//! `complete/<key>` says that it is complete and what it is: beside it, as a package may put any file into it.
//! `locks/<key>` is held by whoever builds, and by the installer that it started, so that one whose parent was
//! killed is never built over. `requests/<hash>` says to which environment a request led last, and `asked/<key>` is
//! what packages of strangers are installed from.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use blueproof_core::attempt::{CACHE_TAG, CACHE_TAG_TEXT};
use blueproof_diagnostic::{Code, Diagnostic};
use serde::{Deserialize, Serialize};

use crate::files::{self, digest_of};

use super::{
    Origin, Package, Patience, Prepared, Tool, Unprepared,
    code::{changed_at, code_in},
};

/// How often a held lock is tried again.
const TRY_LOCK_EVERY: Duration = Duration::from_millis(50);

/// The folder of what says which environments are complete, and that of what installers are asked for.
const COMPLETE: &str = "complete";
pub(super) const ASKED: &str = "asked";

/// The folder that holds all environments.
#[derive(Debug)]
pub(super) struct Cache {
    root: PathBuf,
}

/// An environment as its builder describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Description {
    /// The interpreter's version.
    pub(super) version: String,
    /// What installed the packages.
    pub(super) tool: Tool,
    /// Where packages lie, relative to the environment.
    pub(super) packages_folder: PathBuf,
    /// What is installed.
    pub(super) packages: Vec<Package>,
}

/// What stands in a complete environment's own file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Complete {
    key: String,
    #[serde(flatten)]
    description: Description,
    /// The digest of what can be imported, as it was then.
    code: String,
    /// The interpreter's file as it was then, as a system's update may put another version in its place, and what says where that
    /// one looks for packages.
    stands_on: String,
}

/// Where a request for a key leads.
#[derive(Debug)]
pub(super) enum Found {
    /// To an environment that can be used as it is.
    Complete(Box<Prepared>),
    /// To a folder that nothing stands in, where one can be built.
    Free(PathBuf),
}

impl Cache {
    pub(super) fn open(root: &Path) -> Result<Self, Unprepared> {
        // `pyvenv.cfg` and the scripts' first lines hold this path, so it must mean the same everywhere.
        let root = std::path::absolute(root).map_err(|error| broken(root, &error))?;
        for below in ["", "locks", "requests", COMPLETE, ASKED] {
            let folder = root.join(below);
            fs::create_dir_all(&folder).map_err(|error| broken(&folder, &error))?;
        }
        let tag = root.join(CACHE_TAG);
        if !tag.exists() {
            fs::write(&tag, CACHE_TAG_TEXT).map_err(|error| broken(&tag, &error))?;
        }
        Ok(Self { root })
    }

    /// Returns the environment that the same request led to before, if it can still be used. Takes no lock.
    pub(super) fn recall(&self, request: &str) -> Option<Prepared> {
        let name = fs::read_to_string(self.root.join("requests").join(request)).ok()?;
        self.usable(&name)
    }

    /// Keeps in mind to which environment a request led.
    pub(super) fn remember(&self, request: &str, prepared: &Prepared) -> Result<(), Unprepared> {
        let file = self.root.join("requests").join(request);
        let folder = prepared
            .python
            .parent()
            .and_then(Path::parent)
            .and_then(Path::file_name);
        let name = folder.unwrap_or_default().to_string_lossy().into_owned();
        files::replace(&file, name.as_bytes()).map_err(|error| broken(&file, &error))
    }

    /// Waits until nobody else builds this key. It is free again when the returned file and its copies are closed.
    pub(super) fn lock(
        &self,
        key: &str,
        patience: Patience<'_>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<File, Unprepared> {
        let path = self.root.join("locks").join(key);
        let mut options = File::options();
        options.create(true).truncate(false).read(true).write(true);
        let file = options.open(&path).map_err(|error| broken(&path, &error))?;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(broken(&path, &error)),
            }
            if !told {
                progress("waiting for another run that builds the same environment");
                told = true;
            }
            patience.check()?;
            thread::sleep(TRY_LOCK_EVERY);
        }
    }

    /// Returns the environment of this key, or the place for one. The caller holds the key's lock.
    pub(super) fn find(&self, key: &str) -> Found {
        let mut nth = 1_u32;
        loop {
            let name = if nth == 1 {
                key.to_owned()
            } else {
                format!("{key}+{nth}")
            };
            if let Some(prepared) = self.usable(&name) {
                return Found::Complete(Box::new(prepared));
            }
            let folder = self.root.join(name);
            // One that a notebook changed may be in use. One that was never completed is nobody's.
            let changed = read(&folder).is_some() && folder.join("bin/python").exists();
            if !changed {
                return Found::Free(folder);
            }
            nth += 1;
        }
    }

    /// Marks what was built in `folder` as complete. The caller holds the key's lock.
    pub(super) fn complete(
        &self,
        key: &str,
        folder: &Path,
        description: &Description,
    ) -> Result<Prepared, Unprepared> {
        let cannot = |error: io::Error| broken(folder, &error);
        let code = code_in(&folder.join(&description.packages_folder)).map_err(cannot)?;
        let complete = Complete {
            key: key.to_owned(),
            description: description.clone(),
            code,
            stands_on: stands_on(folder).map_err(cannot)?,
        };
        let text = serde_json::to_vec_pretty(&complete).expect("a description has string keys");
        files::replace(&marker(folder), &text).map_err(cannot)?;
        Ok(prepared(key, folder, description.clone(), Origin::Built))
    }

    fn usable(&self, name: &str) -> Option<Prepared> {
        let folder = self.root.join(name);
        let complete = as_made(&folder)?;
        Some(prepared(
            &complete.key,
            &folder,
            complete.description,
            Origin::Cached,
        ))
    }
}

/// Returns whether the environment in this folder is complete, and nothing of it was changed since.
pub(super) fn is_as_made(folder: &Path) -> bool {
    as_made(folder).is_some()
}

fn as_made(folder: &Path) -> Option<Complete> {
    let complete = read(folder)?;
    let code = code_in(&folder.join(&complete.description.packages_folder)).ok()?;
    // The interpreter may have been removed, too: then its link leads nowhere.
    let same = stands_on(folder).is_ok_and(|interpreter| interpreter == complete.stands_on);
    (same && code == complete.code).then_some(complete)
}

fn read(folder: &Path) -> Option<Complete> {
    serde_json::from_slice(&fs::read(marker(folder)).ok()?).ok()
}

/// Returns the failure of not being able to keep environments at `path`.
pub(super) fn broken(path: &Path, error: &io::Error) -> Unprepared {
    if error.kind() == io::ErrorKind::StorageFull {
        let message = format!("no space is left for environments at `{}`", path.display());
        return Unprepared::infrastructure(
            Diagnostic::error(Code::EnvironmentDiskFull, message).hint(DISK_HINT),
        );
    }
    let message = format!("environments cannot be kept at `{}`", path.display());
    Unprepared::infrastructure(
        Diagnostic::error(Code::EnvironmentFolder, message)
            .caused_by(error)
            .hint("make the folder writable, or name another one"),
    )
}

/// What to do where no space is left.
pub(super) const DISK_HINT: &str =
    "free some space; environments that no run uses may be deleted, folder by folder";

fn prepared(key: &str, folder: &Path, description: Description, origin: Origin) -> Prepared {
    Prepared {
        python: folder.join("bin/python"),
        version: description.version,
        packages: description.packages,
        key: key.to_owned(),
        origin,
        tool: description.tool,
    }
}

fn marker(folder: &Path) -> PathBuf {
    beside(folder, COMPLETE)
}

/// Returns the path of this kind that belongs to an environment, and that none of its packages can write to.
pub(super) fn beside(folder: &Path, kind: &str) -> PathBuf {
    let name = folder.file_name().unwrap_or_default();
    folder.with_file_name(kind).join(name)
}

/// Forgets what an earlier environment in this folder was, before another one is built there.
pub(super) fn forget(folder: &Path) -> io::Result<()> {
    match fs::remove_file(marker(folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Describes the file that an environment's `python` leads to, and the environment's `pyvenv.cfg`.
fn stands_on(folder: &Path) -> io::Result<String> {
    let file = folder.join("bin/python").canonicalize()?;
    let about = fs::metadata(&file)?;
    let says = fs::read(folder.join("pyvenv.cfg"))?;
    Ok(format!(
        "{} {} {} {}",
        file.display(),
        about.len(),
        changed_at(&about)?,
        digest_of(&says)
    ))
}
