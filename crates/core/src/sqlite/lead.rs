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

use async_trait::async_trait;

use crate::ports::Term;

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

/// The lock on a database's file. It ends when this is dropped, or the process dies.
#[derive(Debug)]
pub(super) struct FileLock {
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

/// Returns what tells a file from every other: its device and inode.
fn name(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

impl DatabaseFile {
    /// Finds the database at `path`, by whatever name. Where there is none an empty file is made, for its owner only: what
    /// notebooks print and what attempts are known by is in there.
    pub(super) fn at(path: &Path) -> io::Result<Arc<Self>> {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match fs::metadata(path) {
            Ok(there) if !there.is_file() => return Err(no_regular_file()),
            Ok(there) => match opened.get(&name(&there)) {
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
        match opened.entry(name(&file.metadata()?)) {
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

    /// Returns whether the file still is what `path` names. A file that cannot be looked at is.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        match (fs::metadata(path), self.file.metadata()) {
            (Ok(there), Ok(own)) => name(&there) == name(&own),
            (Err(error), _) => error.kind() != io::ErrorKind::NotFound,
            (Ok(_), Err(_)) => true,
        }
    }

    /// Takes the right to append, or returns `None` while somebody has it. Does not wait.
    pub(super) fn try_lead(self: &Arc<Self>) -> io::Result<Option<FileLock>> {
        let mut is_led_here = self.is_led_here();
        if *is_led_here {
            return Ok(None);
        }
        match self.file.try_lock() {
            Ok(()) => {
                *is_led_here = true;
                Ok(Some(FileLock {
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

    /// Returns the process that has the right to append just now; `None` where nobody has, or the system does not tell.
    pub(super) fn leader(&self) -> Option<u32> {
        let file = self.file.metadata().ok()?;
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let holds = |pid: &u32| has_open(*pid, &file).unwrap_or(false);
        holders(&locks, file.ino()).into_iter().find(holds)
    }

    fn is_led_here(&self) -> MutexGuard<'_, bool> {
        self.is_led_here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns who holds a lock on a file with this inode, of all locks as proc(5) lists them. Of which device it is says more
/// than one file system in its own way.
fn holders(locks: &str, inode: u64) -> Vec<u32> {
    let holder = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, "WRITE", pid, held, ..]
                if held.rsplit(':').next() == Some(&inode.to_string()) =>
            {
                pid.parse().ok()
            }
            _ => None,
        }
    };
    locks.lines().filter_map(holder).collect()
}

fn has_open(pid: u32, file: &Metadata) -> io::Result<bool> {
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let is_same = |open: Metadata| name(&open) == name(file);
        // One that was closed meanwhile is none.
        if fs::metadata(entry?.path()).is_ok_and(is_same) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[async_trait]
impl Term for FileLock {
    /// A lock is never taken away.
    async fn lost(&self) {
        std::future::pending::<()>().await;
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let mut is_led_here = self.database.is_led_here();
        // What cannot be unlocked stays locked until the process ends.
        if self.database.file.unlock().is_ok() {
            *is_led_here = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_leads_is_told_by_the_lock_on_the_file() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fe:00:131 0 EOF\n2: FLOCK  ADVISORY  READ 8 fe:00:131 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 10 fe:00:131 0 EOF\n3: FLOCK  ADVISORY  WRITE 9 fe:00:131 0 EOF\n";
        assert_eq!(holders(locks, 131), [9]);
        assert!(holders(locks, 31).is_empty());
    }
}
