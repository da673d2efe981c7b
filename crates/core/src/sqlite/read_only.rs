//! A store that can be read and not written: another user's, or one on a disk that is mounted so or is full.
//!
//! SQLite's readers of a write-ahead log write, too: into the index beside it, which they make where there is none. While
//! somebody has the store open the index is there, and reading it is enough. When nobody has, the log and its index are gone,
//! and the file is read as one that does not change (`immutable`). SQLite then sees no writer that comes meanwhile, so what
//! was read counts only if none did (<https://sqlite.org/wal.html>, section 7).

use std::{
    ffi::OsString,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{Access, access, statvfs};

use super::BUSY;

/// How often it is tried to open one whose writers come and go.
const TRIES: usize = 5;

/// How many bytes there must be on a disk for a store to be opened as one that is written: its log's index takes 32 KiB.
const ROOM: u64 = 64 << 10;

/// A file that is read as one that does not change, as it was then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Still {
    path: PathBuf,
    state: State,
}

/// What is different once a file was written to: its device, inode, size and time of its last change; and how long its log
/// is, which is nothing where there is none.
type State = (u64, u64, u64, (i64, i64), u64);

/// Returns whether the store, or the folder in which its log would be, can be read only.
pub(super) fn is_read_only(path: &Path) -> bool {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    [path, folder]
        .iter()
        .any(|place| access(*place, Access::WRITE_OK).is_err())
        || !has_room(folder)
}

/// Returns whether there is room for a log. A file system that does not say how large it is has some.
fn has_room(folder: &Path) -> bool {
    let room = statvfs(folder).ok().filter(|disk| disk.f_blocks > 0);
    room.is_none_or(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) >= ROOM)
}

/// Opens the store twice, making and changing nothing. Where nobody has it open, it is told as what it was then.
pub(super) fn open(path: &Path) -> Result<([Connection; 2], Option<Still>), rusqlite::Error> {
    let mut tries = 1..TRIES;
    loop {
        let still = Still::of(path).ok().filter(Still::is_whole);
        let opened = match log_of(path).exists() {
            // Whoever failed on a full disk leaves an empty log without an index, which nobody can make.
            true => open_as(path, None).or_else(|error| match still {
                Some(still) => open_as(path, Some(still)),
                None => Err(error),
            }),
            false => open_as(path, still),
        };
        // The log may have come, or gone, just then.
        if opened.is_ok() || tries.next().is_none() {
            return opened;
        }
    }
}

fn open_as(path: &Path, still: Option<Still>) -> Result<([Connection; 2], Option<Still>), rusqlite::Error> {
    let both = [connect(path, still.as_ref())?, connect(path, still.as_ref())?];
    Ok((both, still))
}

fn connect(path: &Path, still: Option<&Still>) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match still {
        Some(_) => {
            let uri = format!("file:{}?immutable=1", escaped(path));
            Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?
        }
        None => Connection::open_with_flags(path, flags)?,
    };
    connection.busy_timeout(BUSY)?;
    // Only what is asked for something opens its files.
    connection.pragma_query_value(None, "schema_version", |_| Ok(()))?;
    Ok(connection)
}

/// Returns a path as a URI has it.
fn escaped(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes().iter();
    let escape = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    bytes.map(escape).collect()
}

fn log_of(path: &Path) -> PathBuf {
    let mut log = OsString::from(path);
    log.push("-wal");
    log.into()
}

impl Still {
    fn of(path: &Path) -> io::Result<Self> {
        let path = path.to_owned();
        state(&path).map(|state| Self { path, state })
    }

    /// Returns whether all that was written is in the file, and nothing in a log.
    fn is_whole(&self) -> bool {
        self.state.4 == 0
    }

    /// Returns whether somebody has changed it since.
    pub(super) fn has_changed(&self) -> bool {
        state(&self.path).ok() != Some(self.state)
    }
}

fn state(path: &Path) -> io::Result<State> {
    let log = fs::metadata(log_of(path)).map_or(0, |log| log.len());
    let file = fs::metadata(path)?;
    let changed_at = (file.ctime(), file.ctime_nsec());
    Ok((file.dev(), file.ino(), file.size(), changed_at, log))
}

#[cfg(test)]
mod tests {
    use super::{super::SqliteStore, *};
    use crate::{
        event::Event,
        fact::Fact,
        ports::{Batch, Seq, Store, StoreClient},
    };

    fn tick() -> Batch {
        Batch {
            facts: vec![(jiff::Timestamp::UNIX_EPOCH, Fact::Input(Event::Tick))],
            ..Batch::default()
        }
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(folder).expect("it is there");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("it is there").file_name())
            .collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn a_store_that_nobody_has_open_is_read_and_nothing_is_made_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a store?#100%.db");
        let store = SqliteStore::open(&path).expect("a store");
        store.append(Seq(0), tick()).await.expect("it takes facts");
        drop(store);
        let before = names(folder.path());

        let store = SqliteStore::open_to_read(&path).expect("it is there");
        assert_eq!(store.facts(Seq(0), 10).await.expect("a read").len(), 1);
        assert!(store.append(Seq(1), tick()).await.is_err(), "it is only read");
        assert_eq!(names(folder.path()), before);
    }

    #[tokio::test]
    async fn a_store_that_is_written_is_read_with_all_that_its_log_has() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("blueproof.db");
        let writer = SqliteStore::open(&path).expect("a store");
        let reader = SqliteStore::open_to_read(&path).expect("it is there");
        for count in 1..=3 {
            writer
                .append(Seq(count - 1), tick())
                .await
                .expect("it takes facts");
            let facts = reader.facts(Seq(0), 10).await.expect("a read");
            assert_eq!(facts.len() as u64, count);
        }
    }

    #[tokio::test]
    async fn what_was_read_while_a_writer_came_does_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("blueproof.db");
        drop(SqliteStore::open(&path).expect("a store"));
        let reader = SqliteStore::open_to_read(&path).expect("it is there");
        let writer = SqliteStore::open(&path).expect("a store");
        writer.append(Seq(0), tick()).await.expect("it takes facts");
        let error = reader.facts(Seq(0), 10).await.expect_err("it has changed");
        assert!(
            error
                .diagnostic
                .hints
                .iter()
                .any(|hint| hint.starts_with("ask again")),
            "{error:?}"
        );
    }
}
