//! Who may append to a store: whoever holds the lock on the database's own file.
//!
//! The lock is on the file and not on a name beside it, so that neither a second name of the same store nor the removal of
//! a lock file makes a second leader. It ends with its process. Where a file system does not share locks it keeps nobody
//! away; what is appended is compared with the end of the log then, too.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::{self, File, Metadata, TryLockError},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The databases that this process has opened, by device and inode.
///
/// They are never closed. SQLite's own locks are POSIX locks, and closing any descriptor of a file drops all of those that
/// the process has on it: another process could then take away the write-ahead log that this one still writes
/// (<https://sqlite.org/howtocorrupt.html>, section 2.2).
static OPENED: Mutex<BTreeMap<(u64, u64), Arc<DatabaseFile>>> = Mutex::new(BTreeMap::new());

/// A database's file, as far as leading is concerned.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    file: File,
    /// Whether this process leads: within one process the lock keeps nobody away.
    is_led_here: Mutex<bool>,
}

/// The right to append to a store, held by one engine at a time. It ends when this is dropped, or the process dies.
#[derive(Debug)]
pub struct Leadership {
    database: Arc<DatabaseFile>,
}

/// Refuses what is no regular file: SQLite would wait for ever for somebody to write into a pipe.
pub(super) fn check_regular(path: &Path) -> io::Result<()> {
    match fs::metadata(path)?.is_file() {
        true => Ok(()),
        false => Err(no_regular_file()),
    }
}

fn no_regular_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")
}

impl DatabaseFile {
    /// Finds the database at `path`, by whatever name. Where there is none an empty file is made, for its owner only: what
    /// notebooks print and what attempts are known by is in there.
    pub(super) fn at(path: &Path) -> io::Result<Arc<Self>> {
        let name = |metadata: Metadata| (metadata.dev(), metadata.ino());
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match fs::metadata(path) {
            Ok(there) if !there.is_file() => return Err(no_regular_file()),
            Ok(there) => match opened.get(&name(there)) {
                Some(known) => return Ok(Arc::clone(known)),
                None => File::open(path)?,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(path)?,
            Err(error) => return Err(error),
        };
        match opened.entry(name(file.metadata()?)) {
            Entry::Vacant(unknown) => Ok(Arc::clone(unknown.insert(Arc::new(Self {
                file,
                is_led_here: Mutex::new(false),
            })))),
            // It has come into the place of another one just now.
            Entry::Occupied(known) => {
                std::mem::forget(file);
                Ok(Arc::clone(known.get()))
            }
        }
    }

    /// Takes the right to append, or returns `None` while somebody has it. Does not wait.
    pub(super) fn try_lead(self: &Arc<Self>) -> io::Result<Option<Leadership>> {
        let mut is_led_here = self.is_led_here();
        if *is_led_here {
            return Ok(None);
        }
        match self.file.try_lock() {
            Ok(()) => {
                *is_led_here = true;
                Ok(Some(Leadership {
                    database: Arc::clone(self),
                }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Returns whether somebody has the right to append just now. Does not wait, and does not take it.
    pub(super) fn is_led(&self) -> io::Result<bool> {
        let is_led_here = self.is_led_here();
        if *is_led_here {
            return Ok(true);
        }
        // Shared, so that two who look at once do not take each other for a leader.
        match self.file.try_lock_shared() {
            Ok(()) => self.file.unlock().map(|()| false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn is_led_here(&self) -> MutexGuard<'_, bool> {
        self.is_led_here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        let mut is_led_here = self.database.is_led_here();
        // What cannot be unlocked stays locked until the process ends.
        if self.database.file.unlock().is_ok() {
            *is_led_here = false;
        }
    }
}
