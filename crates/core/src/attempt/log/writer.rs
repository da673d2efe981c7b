//! Appending to a log, and noticing that somebody else has written there.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::{LogCursor, LogError, whole_lines};
use crate::attempt::{
    LogKey, Record,
    regular::{UNFOLLOWED, clear_folder_away, open_regular},
};

/// Appends to a log. There is one writer at a time: whoever holds the attempt's lock.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    key: LogKey,
    file: File,
    end: LogCursor,
    disturbance: Option<Disturbance>,
}

/// What somebody else did to a log that has one writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// Something was appended.
    Appended,
    /// Something was cut off.
    CutOff,
    /// Something was written over.
    Changed,
    /// It was moved away, removed, or another file was put in its place.
    Replaced,
}

impl LogWriter {
    /// Opens the log at `path`, makes it where it is not there, and takes away a line that was left unfinished. Returns what
    /// stands there, too.
    ///
    /// Where somebody else than an agent with this key has written there, what the agent wrote up to that point is kept, and
    /// [`LogWriter::disturbance`] says so.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened, read or written.
    pub fn open(path: &Path, key: LogKey) -> io::Result<(Self, Vec<Record>)> {
        let is_another_kind = |path| fs::symlink_metadata(path).is_ok_and(|there| !there.is_file());
        let (file, is_in_place) = match open_to_append(path) {
            Ok(file) => (file, true),
            // A pipe, a link or a folder in its place is not opened; the file is made anew beside it.
            Err(_) if is_another_kind(path) => (tempfile(path)?, false),
            Err(error) => return Err(error),
        };
        let mut writer = Self {
            path: path.into(),
            key,
            file,
            end: LogCursor::default(),
            disturbance: None,
        };
        if !is_in_place {
            writer.disturbance = Some(Disturbance::Replaced);
            writer.put_in_place()?;
        }
        let records = writer.find_end()?;
        Ok((writer, records))
    }

    /// Appends one record as one line, with one write.
    ///
    /// # Errors
    ///
    /// When the line could not be written whole. Nothing of it stays.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        self.keep_others_out()?;
        let record = serde_json::to_vec(record)?;
        let (mut line, chain) = self.key.sign(self.end.chain, &record);
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            let _ = self.file.set_len(self.end.offset);
            return Err(error);
        }
        self.end = LogCursor {
            offset: self.end.offset + line.len() as u64,
            chain,
        };
        Ok(())
    }

    /// Waits until everything that was appended is on the disk.
    ///
    /// # Errors
    ///
    /// When the disk says that it is not.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Returns what somebody else did to the log, as far as it was noticed. See [`LogWriter::reclaim`].
    pub fn disturbance(&self) -> Option<Disturbance> {
        self.disturbance
    }

    /// Looks at the whole log, and where anything in it is not as it was written, makes it anew of what still is, in its
    /// place. Returns what somebody else did to it since it was opened.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written.
    pub fn reclaim(&mut self) -> io::Result<Option<Disturbance>> {
        self.keep_others_out()?;
        // Whoever may not read it would not learn how the attempt ended.
        self.file.set_permissions(fs::Permissions::from_mode(0o600))?;
        let mut whole = self.file.try_clone()?;
        let end = verified_end(&mut whole, &self.key, drop)?;
        if end != self.end {
            self.disturbance.get_or_insert(Disturbance::Changed);
        }
        let is_in_place = fs::symlink_metadata(&self.path).and_then(|there| {
            let ours = self.file.metadata()?;
            Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino()))
        });
        if !is_in_place.unwrap_or(false) {
            self.disturbance.get_or_insert(Disturbance::Replaced);
        }
        if self.disturbance.is_some() {
            let mut anew = tempfile(&self.path)?;
            whole.seek(SeekFrom::Start(0))?;
            io::copy(&mut io::Read::take(&mut whole, end.offset), &mut anew)?;
            self.file = anew;
            self.end = end;
            self.put_in_place()?;
        }
        Ok(self.disturbance)
    }

    /// Notices what somebody appended or cut off, and takes what they appended away again.
    fn keep_others_out(&mut self) -> io::Result<()> {
        let there = self.file.metadata()?.len();
        if there > self.end.offset {
            self.disturbance.get_or_insert(Disturbance::Appended);
            self.file.set_len(self.end.offset)?;
        } else if there < self.end.offset {
            self.disturbance.get_or_insert(Disturbance::CutOff);
            self.end = verified_end(&mut self.file, &self.key, drop)?;
            self.file.set_len(self.end.offset)?;
        }
        Ok(())
    }

    /// Goes on behind the last line that an agent wrote.
    fn find_end(&mut self) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        self.end = verified_end(&mut self.file, &self.key, |record| records.push(record))?;
        if self.file.metadata()?.len() > self.end.offset {
            // A line that is whole and not the agent's is somebody else's; one that is not whole is what a killed agent left.
            if !whole_lines(&mut self.file, self.end.offset).is_ok_and(|lines| lines.is_empty()) {
                self.disturbance.get_or_insert(Disturbance::Appended);
            }
            self.file.set_len(self.end.offset)?;
        }
        Ok(records)
    }

    /// Puts the file that is written to where the log belongs, whatever is there.
    fn put_in_place(&self) -> io::Result<()> {
        clear_folder_away(&self.path)?;
        fs::rename(beside(&self.path), &self.path)
    }
}

/// Returns up to where the lines are an agent's, all of them from the beginning, and hands on their records.
fn verified_end(file: &mut File, key: &LogKey, mut take: impl FnMut(Record)) -> io::Result<LogCursor> {
    let mut end = LogCursor::default();
    loop {
        let bytes = match whole_lines(file, end.offset) {
            Ok(bytes) if !bytes.is_empty() => bytes,
            Ok(_) | Err(LogError::Foreign { .. }) => return Ok(end),
            Err(LogError::Io(error)) => return Err(error),
        };
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if end.pass_verified(key, line).is_err() {
                return Ok(end);
            }
            let _ = serde_json::from_slice(line).map(&mut take);
        }
    }
}

fn open_to_append(path: &Path) -> io::Result<File> {
    match open_regular(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .mode(0o600)
        .custom_flags(UNFOLLOWED)
        .open(path)
}

fn tempfile(path: &Path) -> io::Result<File> {
    let beside = beside(path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let _ = fs::remove_file(&beside);
    OpenOptions::new()
        .create_new(true)
        .read(true)
        .append(true)
        .mode(0o600)
        .open(beside)
}

fn beside(path: &Path) -> PathBuf {
    path.with_extension("anew")
}
