//! A store that this user may read and not write: another user's, or one on a disk that is mounted so.
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
use rustix::fs::{Access, access};

use super::BUSY;

/// How often it is tried to open one whose writers come and go.
const TRIES: usize = 5;

/// A file that is read as one that does not change, as it was then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Still {
    path: PathBuf,
    state: State,
}

/// What is different once a file was written to: its device, inode, size and time of its last change; and whether there is
/// a log.
type State = (u64, u64, u64, (i64, i64), bool);

/// Returns whether the store, or the folder in which its log would be, may be read only.
pub(super) fn is_read_only(path: &Path) -> bool {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    [path, folder]
        .iter()
        .any(|place| access(*place, Access::WRITE_OK).is_err())
}

/// Opens the store twice, making and changing nothing. Where nobody has it open, it is told as what it was then.
pub(super) fn open(path: &Path) -> Result<([Connection; 2], Option<Still>), rusqlite::Error> {
    let mut tries = 1..TRIES;
    loop {
        let still = (!log_of(path).exists()).then(|| Still::of(path).ok()).flatten();
        let opened = connect(path, still.as_ref())
            .and_then(|one| connect(path, still.as_ref()).map(|other| ([one, other], still)));
        // The log may have come, or gone, just then.
        if opened.is_ok() || tries.next().is_none() {
            return opened;
        }
    }
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

    /// Returns whether somebody has opened or changed it since.
    pub(super) fn has_changed(&self) -> bool {
        state(&self.path).ok() != Some(self.state)
    }
}

fn state(path: &Path) -> io::Result<State> {
    let has_log = log_of(path).exists();
    let file = fs::metadata(path)?;
    let changed_at = (file.ctime(), file.ctime_nsec());
    Ok((file.dev(), file.ino(), file.size(), changed_at, has_log))
}

#[cfg(test)]
mod tests {
    use super::{super::SqliteStore, *};
    use crate::{
        event::Event,
        ports::{Batch, Seq, Store},
    };

    fn tick() -> Batch {
        Batch {
            events: vec![(jiff::Timestamp::UNIX_EPOCH, Event::Tick)],
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
        store.append(Seq(0), tick()).await.expect("it takes events");
        drop(store);
        let before = names(folder.path());

        let store = SqliteStore::open_to_read(&path).expect("it is there");
        assert_eq!(store.events(Seq(0), 10).await.expect("a read").len(), 1);
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
                .expect("it takes events");
            let events = reader.events(Seq(0), 10).await.expect("a read");
            assert_eq!(events.len() as u64, count);
        }
    }

    #[tokio::test]
    async fn what_was_read_while_a_writer_came_does_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("blueproof.db");
        drop(SqliteStore::open(&path).expect("a store"));
        let reader = SqliteStore::open_to_read(&path).expect("it is there");
        let writer = SqliteStore::open(&path).expect("a store");
        writer.append(Seq(0), tick()).await.expect("it takes events");
        let error = reader.events(Seq(0), 10).await.expect_err("it has changed");
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
