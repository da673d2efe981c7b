//! The store in one SQLite file (feature `sqlite`).
//!
//! WAL with `synchronous=FULL`: what an append has returned for outlives a power cut, and readers in other processes
//! never wait. One thread writes and one reads; callers wait for their answers without blocking their own thread.
//! SQLite and not redb or fjall, because those let one process open the file at a time, and `blueproof get` must work
//! beside a scheduler that runs, hangs or is dead.

mod check;
mod columns;
mod commands;
mod deliveries;
mod first_log;
mod lead;
mod projection;
mod read_only;
mod rows;
mod schema;
mod snapshots;
mod worker;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use blueproof_queue::objects::Objects;
use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::Notify;

use crate::{
    attempt::StoreIdentity,
    domain::{RequestKey, RunId, RunRequest},
    ports::{
        Batch, Command, Deliveries, DeliveryClient, DeliveryState, Leadership, LeftCommand, LoggedFact,
        PendingDelivery, Receipt, ReceivedDelivery, Removal, Seq, Store, StoreClient, StoreError,
        StoredCommand, StoredDelivery, Term, Version,
    },
    view::{OutlookView, RunView},
};
pub use check::{StoreCheck, StoreProblem};
use lead::DatabaseFile;
use read_only::Still;
use worker::Worker;

/// How often it is looked whether another process has written.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long a writer waits for another process that is just writing.
const BUSY: Duration = Duration::from_secs(10);

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    database: Arc<DatabaseFile>,
    identity: StoreIdentity,
    writer: Worker,
    reader: Worker,
    written: Notify,
    /// What the file was when it was opened, where it is read as one that does not change.
    still: Option<Still>,
}

impl SqliteStore {
    /// Opens the store at `path` and brings its schema up to date; makes it, and its folder, where there is none.
    /// Blocks for a moment.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |doing: &str, error: &(dyn std::error::Error + 'static)| broken(path, doing, error);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| failed("make its folder", &error))?;
        }
        if schema::is_too_short(path) {
            return Err(schema::not_ours(path));
        }
        let database = DatabaseFile::at(path).map_err(|error| failed("open it", &error))?;
        let mut connection = Connection::open(path).map_err(|error| failed("open it", &error))?;
        prepare(&connection).map_err(|error| {
            if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) {
                return schema::not_ours(path);
            }
            failed("open it", &error)
        })?;
        if schema::is_older(&connection).map_err(|error| failed("read its version", &error))?
            && database
                .is_led()
                .map_err(|error| failed("look at its lock", &error))?
        {
            return Err(schema::led_by_older(path, database.leader()));
        }
        schema::migrate(&mut connection, path)?;
        let reader = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .and_then(|connection| prepare(&connection).map(|()| connection))
            .map_err(|error| failed("open it for reading", &error))?;
        let identity = rows::identity(&connection).map_err(|error| failed("read whose it is", &error))?;
        let worker = |name, connection| {
            Worker::new(name, connection).map_err(|error| failed("make a thread for it", &error))
        };
        Ok(Self {
            path: path.into(),
            database,
            identity,
            writer: worker("store-writer", connection)?,
            reader: worker("store-reader", reader)?,
            written: Notify::new(),
            still: None,
        })
    }

    /// Opens a store that is there to read it, without the right to write it or its folder. Blocks for a moment.
    fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        let failed = |error: &(dyn std::error::Error + 'static)| broken(path, "open it for reading", error);
        let database = DatabaseFile::at(path).map_err(|error| failed(&error))?;
        let ([mut writer, reader], still) = read_only::open(path).map_err(|error| {
            if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) {
                return schema::not_ours(path);
            }
            let mut error = failed(&error);
            let hint = "whoever may only read it needs the right to read the files beside it, `-wal` and `-shm`, too";
            error.diagnostic.hints.insert(0, hint.into());
            error
        })?;
        schema::migrate(&mut writer, path)?;
        let identity = rows::identity(&reader).map_err(|error| failed(&error))?;
        let worker = |name, connection| Worker::new(name, connection).map_err(|error| failed(&error));
        Ok(Self {
            path: path.into(),
            database,
            identity,
            writer: worker("store-writer", writer)?,
            reader: worker("store-reader", reader)?,
            written: Notify::new(),
            still,
        })
    }

    /// Opens the store at `path` if there is one, and creates nothing. Blocks for a moment.
    ///
    /// For those who only read: `None` means that nothing was ever stored there.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        match fs::metadata(path) {
            // Whoever made it has not come to its first table yet.
            Ok(metadata) if metadata.is_file() && metadata.len() == 0 => Ok(None),
            Ok(_) if read_only::is_read_only(path) => Self::open_to_read(path).map(Some),
            Ok(_) => Self::open(path).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(broken(path, "look at it", &error)),
        }
    }

    /// Returns the newest runs of the store at `path`, newest first, for whoever wants them at once or not at all: nothing
    /// is made, written or brought up to date, and nobody is waited for. Blocks for a moment.
    pub fn glance(path: &Path, limit: usize) -> Result<Vec<RunView>, StoreError> {
        lead::check_regular(path).map_err(|error| broken(path, "open it for reading", &error))?;
        let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .map_err(|error| broken(path, "open it for reading", &error))?;
        rows::views(&mut connection, None, limit).map_err(|error| broken(path, "read it", &error))
    }

    /// Returns whether somebody has the right to append just now. Does not wait, and does not take it.
    pub fn is_led(&self) -> Result<bool, StoreError> {
        let is_led = self.database.is_led();
        is_led.map_err(|error| broken(&self.path, "look at its lock", &error))
    }

    /// Returns the process that has the right to append just now; `None` where nobody has, and where the system does not tell
    /// (it is told by `/proc/locks`, which knows processes of this machine alone). Does not wait.
    pub fn leader(&self) -> Option<u32> {
        self.database.leader()
    }

    /// Returns what tells it from every other store.
    pub fn identity(&self) -> &StoreIdentity {
        &self.identity
    }

    /// Returns the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the queues that were applied last, without a replay; `None` where nobody has applied any.
    pub async fn applied_quota(&self) -> Result<Option<Objects>, StoreError> {
        self.read(rows::applied_quota).await
    }

    async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Connection) -> Result<T, columns::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.check_in_place()?;
        let done = self
            .writer
            .run(work)
            .await
            .map_err(|error| self.failed(doing, &error))?;
        self.written.notify_waiters();
        Ok(done)
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, columns::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.check_in_place()?;
        let read = self.reader.run(work).await;
        if self.still.as_ref().is_some_and(Still::has_changed) {
            return Err(self.has_changed());
        }
        read.map_err(|error| self.failed("read it", &error))
    }

    /// Refuses to go on with a file that nobody else finds any more: what is written into it is lost when this process ends, and
    /// what is read from it is old.
    fn check_in_place(&self) -> Result<(), StoreError> {
        if self.database.is_at(&self.path) {
            return Ok(());
        }
        let message = "the store's file was removed, or another has come into its place";
        let gone = Diagnostic::error(Code::StoreBroken, message);
        Err(gone
            .at(SourceLocation::file(self.path.display().to_string()))
            .hint("put the file back, or restore a backup, and start this process again")
            .hint("until this process ends, the file that it had opened is still below `/proc/PID/fd`")
            .into())
    }

    fn has_changed(&self) -> StoreError {
        let error = Diagnostic::error(Code::StoreBroken, "the store was written to while it was read");
        let error = error.at(SourceLocation::file(self.path.display().to_string()));
        error
            .hint("ask again: whoever may not write it sees a writer only from the beginning")
            .into()
    }

    fn failed(&self, doing: &str, error: &columns::Error) -> StoreError {
        match error {
            columns::Error::Overtaken { after, last } => StoreError::overtaken(*after, *last),
            columns::Error::KeyReused(key) => StoreError::key_reused(key),
            columns::Error::Fact { seq, kind, source } => unreadable(&self.path, *seq, kind, &**source),
            columns::Error::Sqlite(_)
            | columns::Error::Row { .. }
            | columns::Error::DecidedOtherwise { .. } => broken(&self.path, doing, error),
        }
    }
}

#[async_trait]
impl StoreClient for SqliteStore {
    async fn facts(&self, after: Seq, limit: usize) -> Result<Vec<LoggedFact>, StoreError> {
        self.read(move |connection| rows::facts(connection, after, limit))
            .await
    }

    async fn snapshot(&self, version: u32) -> Result<Option<(Seq, Vec<u8>)>, StoreError> {
        self.read(move |connection| snapshots::newest(connection, version))
            .await
    }

    async fn submit(&self, at: Timestamp, command: Command) -> Result<(), StoreError> {
        self.write("write a request to it", move |connection| {
            commands::submit(connection, at, &command)
        })
        .await
    }

    async fn command(&self, key: &RequestKey) -> Result<Option<StoredCommand>, StoreError> {
        let key = key.clone();
        self.read(move |connection| commands::get(connection, &key)).await
    }

    async fn all_commands(&self, limit: usize) -> Result<Vec<StoredCommand>, StoreError> {
        self.read(move |connection| commands::all(connection, limit))
            .await
    }

    async fn changed(&self, since: Option<Version>) -> Version {
        loop {
            let written = self.written.notified();
            // A store that cannot be asked says so at the next read; here it just seems to stand still.
            if let Ok(version) = self.read(rows::version).await
                && since != Some(version)
            {
                return version;
            }
            let _ = tokio::time::timeout(LOOK_EVERY, written).await;
        }
    }

    async fn request(&self, run: RunId) -> Result<Option<RunRequest>, StoreError> {
        self.read(move |connection| rows::request(connection, run)).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunView>, StoreError> {
        self.read(move |connection| rows::view(connection, run)).await
    }

    async fn run_of(&self, key: &RequestKey) -> Result<Option<RunView>, StoreError> {
        let key = key.clone();
        self.read(move |connection| rows::view_of(connection, &key)).await
    }

    async fn removal(&self, run: RunId) -> Result<Removal, StoreError> {
        self.read(move |connection| rows::removal(connection, run)).await
    }

    async fn runs_before(&self, before: Option<RunId>, limit: usize) -> Result<Vec<RunView>, StoreError> {
        self.read(move |connection| rows::views(connection, before, limit))
            .await
    }
}

#[async_trait]
impl DeliveryClient for SqliteStore {
    async fn deliveries(&self, limit: usize) -> Result<Vec<StoredDelivery>, StoreError> {
        self.read(move |connection| deliveries::all(connection, limit))
            .await
    }

    async fn delivery(&self, id: &str) -> Result<Option<(StoredDelivery, Vec<u8>)>, StoreError> {
        let id = id.to_owned();
        self.read(move |connection| deliveries::get(connection, &id))
            .await
    }

    async fn replay_delivery(&self, id: &str) -> Result<bool, StoreError> {
        let id = id.to_owned();
        self.write("have a delivery worked on again", move |connection| {
            deliveries::replay(connection, &id)
        })
        .await
    }
}

#[async_trait]
impl Deliveries for SqliteStore {
    async fn receive(&self, delivery: ReceivedDelivery) -> Result<Receipt, StoreError> {
        self.write("store a delivery in it", move |connection| {
            deliveries::receive(connection, &delivery)
        })
        .await
    }

    async fn pending_deliveries(&self, limit: usize) -> Result<Vec<PendingDelivery>, StoreError> {
        self.read(move |connection| deliveries::pending(connection, limit))
            .await
    }

    async fn note_delivery(&self, id: &str, at: Timestamp, state: DeliveryState) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.write("note what came of a delivery", move |connection| {
            deliveries::note(connection, &id, at, &state)
        })
        .await
    }

    async fn prune_deliveries(&self, before: Timestamp) -> Result<usize, StoreError> {
        self.write("remove old deliveries from it", move |connection| {
            deliveries::prune(connection, before)
        })
        .await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn append(&self, after: Seq, batch: Batch) -> Result<Seq, StoreError> {
        self.write("append to it", move |connection| {
            rows::append(connection, after, batch)
        })
        .await
    }

    async fn put_outlooks(&self, after: Seq, outlooks: Vec<(RunId, OutlookView)>) -> Result<(), StoreError> {
        self.write("put into it how runs stand", move |connection| {
            rows::put_outlooks(connection, after, &outlooks)
        })
        .await
    }

    async fn put_snapshot(&self, at: Seq, version: u32, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.write("write a snapshot to it", move |connection| {
            snapshots::put(connection, at, version, &bytes)
        })
        .await
    }

    async fn prune(&self, at: Timestamp, runs: &[RunId]) -> Result<Vec<RunId>, StoreError> {
        let runs = runs.to_vec();
        self.write("remove runs from it", move |connection| {
            rows::prune(connection, at, &runs)
        })
        .await
    }

    async fn commands(&self) -> Result<Vec<LeftCommand>, StoreError> {
        self.read(commands::left).await
    }
}

/// The right is a lock on the database's own file, which lasts for as long as it is held.
#[async_trait]
impl Leadership for SqliteStore {
    async fn try_lead(&self) -> Result<Option<Box<dyn Term>>, StoreError> {
        let locked = self.database.try_lead();
        let locked = locked.map_err(|error| broken(&self.path, "lock it", &error))?;
        Ok(locked.map(|lock| Box::new(lock) as Box<dyn Term>))
    }
}

fn prepare(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(BUSY)?;
    use_wal(connection)?;
    connection.pragma_update(None, "synchronous", "FULL")
}

/// Has a file keep a write-ahead log, which it does from then on. Of several that try at once on a new file SQLite refuses
/// all but one without waiting, whatever its timeout: each of them keeps the others from going on.
fn use_wal(connection: &Connection) -> Result<(), rusqlite::Error> {
    let until = Instant::now() + BUSY;
    loop {
        let done = connection.pragma_update(None, "journal_mode", "WAL");
        let is_busy = |error: &rusqlite::Error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
        if !done.as_ref().is_err_and(is_busy) || Instant::now() > until {
            return done;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Says why a store can never be at a path: something else is there.
fn no_file(path: &Path) -> Option<String> {
    if let Ok(there) = fs::metadata(path) {
        return match there.is_dir() {
            true => Some("it is a folder".to_owned()),
            false => (!there.is_file()).then(|| "it is no regular file".to_owned()),
        };
    }
    let above = path.ancestors().skip(1).find(|above| above.exists())?;
    let is_folder = above.is_dir();
    (!is_folder).then(|| format!("`{}` is no folder, so nothing is below it", above.display()))
}

/// Returns whether it was somebody else who held the store for too long.
fn is_held(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.any(|cause| {
        let code = cause.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
        matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    })
}

/// Says which fact of the log cannot be understood. Nothing after it is: what follows from it is not known.
fn unreadable(path: &Path, seq: Seq, kind: &str, error: &(dyn std::error::Error + 'static)) -> StoreError {
    let message = format!(
        "fact {} of the log, of kind `{kind}`, cannot be understood",
        seq.0
    );
    let diagnostic = Diagnostic::error(Code::FactUnreadable, message)
        .at(SourceLocation::file(path.display().to_string()))
        .caused_by(error);
    let diagnostic = diagnostic
        .hint("use the newer blueproof that wrote it: nothing was changed here, and attempts that run go on")
        .hint("or, where the file is damaged, go on with a copy of it from before that");
    diagnostic.into()
}

fn broken(path: &Path, doing: &str, error: &(dyn std::error::Error + 'static)) -> StoreError {
    if is_held(error) {
        let held = Diagnostic::error(
            Code::StoreBroken,
            format!("another program holds the store: could not {doing}"),
        );
        let held = held
            .at(SourceLocation::file(path.display().to_string()))
            .caused_by(error);
        return held
            .hint("try again when that program, such as a SQLite client with a transaction, has let go of it")
            .into();
    }
    let diagnostic = Diagnostic::error(
        Code::StoreBroken,
        format!("the store cannot be used: could not {doing}"),
    )
    .at(SourceLocation::file(path.display().to_string()));
    if let Some(what) = no_file(path) {
        return diagnostic
            .because(what)
            .hint("name a file for the store, such as with `--store FILE`")
            .into();
    }
    let diagnostic = diagnostic
        .caused_by(error)
        .hint("see that the disk is not full and that the file and its folder are yours")
        .hint("attempts that run are not lost: they go on, and are taken over when the store is back");
    diagnostic.into()
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi::{Error, SQLITE_BUSY, SQLITE_FULL};

    use super::*;

    #[test]
    fn a_store_that_another_program_holds_is_not_said_to_lack_space_or_rights() {
        let told = |code| {
            let error = rusqlite::Error::SqliteFailure(Error::new(code), None);
            let error = broken(Path::new("store"), "append to it", &columns::Error::from(error));
            format!("{:#}", error.diagnostic)
        };
        let held = told(SQLITE_BUSY);
        assert!(
            held.contains("another program holds the store: could not append to it")
                && !held.contains("disk"),
            "{held}"
        );
        assert!(told(SQLITE_FULL).contains("see that the disk is not full"));
    }
}
