//! Reading and appending an agent's log.
//!
//! A line is whole once its newline is there. What a killed agent left of a line is neither a record nor an error: a
//! reader waits for the rest, and the next writer takes it away.

mod writer;

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
    str::FromStr,
};

use super::{Chain, LogKey, Record, open_regular};

pub use writer::{Disturbance, LogWriter};

/// How much is read at once. A longer line is read whole, up to the longest that an agent writes.
const CHUNK: u64 = 4 << 20;
const LONGEST_LINE: u64 = 256 << 20;

/// Reads a log that somebody may still be writing.
#[derive(Debug, Clone)]
pub struct LogReader {
    path: PathBuf,
    key: Option<LogKey>,
}

/// Up to where a log was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogCursor {
    offset: u64,
    chain: Chain,
}

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file could not be read.
    #[error("could not read the log")]
    Io(#[from] io::Error),
    /// Something in it was not written by the attempt's agent.
    #[error("what stands at byte {at} of the log was not written there by the attempt's agent")]
    Foreign {
        /// Where it begins.
        at: u64,
    },
}

impl LogReader {
    /// Names the log to read. It need not be there yet. Whoever wrote it, lines that are no record are passed over: for
    /// showing how an attempt goes on, not for judging it.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            key: None,
        }
    }

    /// Names the log to read, of which every line must be its agent's.
    pub fn verified(path: impl Into<PathBuf>, key: LogKey) -> Self {
        Self {
            path: path.into(),
            key: Some(key),
        }
    }

    /// Returns the next records and where to go on from; none where there is nothing new. A last line without its newline is
    /// left for the next call. A log that is not there has no records.
    ///
    /// It reads some MiB at most, so that memory stays bounded whatever stands there: see [`LogReader::read_all`].
    ///
    /// # Errors
    ///
    /// When the file is there and cannot be read; when the first new line must be the agent's and is not, and when the file
    /// has become shorter, is gone, or is no regular file.
    pub fn read_from(&self, cursor: LogCursor) -> Result<(Vec<Record>, LogCursor), LogError> {
        self.read_some(cursor, usize::MAX)
    }

    /// Returns the next records, at most `limit` of them. For the rest see [`LogReader::read_from`].
    ///
    /// # Errors
    ///
    /// As [`LogReader::read_from`].
    pub fn read_some(&self, cursor: LogCursor, limit: usize) -> Result<(Vec<Record>, LogCursor), LogError> {
        let mut file = match open_regular(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound && cursor == LogCursor::default() => {
                return Ok((Vec::new(), cursor));
            }
            // It was moved away, or another kind of file stands in its place.
            Err(_) if fs::symlink_metadata(&self.path).map_or(true, |there| !there.is_file()) => {
                return Err(LogError::Foreign { at: 0 });
            }
            Err(error) => return Err(error.into()),
        };
        let length = file.metadata()?.len();
        if length < cursor.offset {
            return Err(LogError::Foreign { at: length });
        }
        let bytes = whole_lines(&mut file, cursor.offset)?;
        let mut records = Vec::new();
        let mut next = cursor;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if records.len() == limit {
                break;
            }
            match self.record(line, &mut next) {
                Ok(record) => records.extend(record),
                // What stands before it is the agent's all the same.
                Err(_) if next != cursor => break,
                Err(error) => return Err(error),
            }
        }
        Ok((records, next))
    }

    /// Returns all records after `cursor`, and where to go on from.
    ///
    /// # Errors
    ///
    /// As [`LogReader::read_from`].
    pub fn read_all(&self, mut cursor: LogCursor) -> Result<(Vec<Record>, LogCursor), LogError> {
        let mut all = Vec::new();
        loop {
            let (records, next) = self.read_from(cursor)?;
            all.extend(records);
            if next == cursor {
                return Ok((all, cursor));
            }
            cursor = next;
        }
    }

    /// Returns all records that an agent wrote before anything else, as far as they can be read: for showing what is known.
    pub fn read_to_foreign(&self) -> Vec<Record> {
        let (mut all, mut cursor) = (Vec::new(), LogCursor::default());
        while let Ok((records, next)) = self.read_from(cursor) {
            if next == cursor {
                break;
            }
            all.extend(records);
            cursor = next;
        }
        all
    }

    fn record(&self, line: &[u8], cursor: &mut LogCursor) -> Result<Option<Record>, LogError> {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        match &self.key {
            Some(key) => cursor.pass_verified(key, line)?,
            None => cursor.offset += line.len() as u64,
        }
        // What an agent of another version wrote may not be understood; it is the agent's all the same.
        Ok(serde_json::from_slice(text).ok())
    }
}

/// The offset, and the last signature before it: `4711-` and hexadecimal digits.
impl fmt::Display for LogCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.offset, self.chain.to_hex())
    }
}

impl FromStr for LogCursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (offset, chain) = text.split_once('-').ok_or(NoCursor)?;
        let cursor = Self {
            offset: offset.parse().map_err(|_| NoCursor)?,
            chain: Chain::from_hex(chain).ok_or(NoCursor)?,
        };
        // Such as `+1` and `01`.
        if cursor.to_string() == text {
            Ok(cursor)
        } else {
            Err(NoCursor)
        }
    }
}

/// A text that is no [`LogCursor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no position in a log")]
pub struct NoCursor;

impl LogCursor {
    /// Goes on behind a line, if it is the agent's.
    fn pass_verified(&mut self, key: &LogKey, line: &[u8]) -> Result<(), LogError> {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let chain = key.verify(self.chain, text);
        self.chain = chain.ok_or(LogError::Foreign { at: self.offset })?;
        self.offset += line.len() as u64;
        Ok(())
    }
}

/// Returns the lines from `offset` on that are whole: some MiB, or one line that is longer.
fn whole_lines(file: &mut File, offset: u64) -> Result<Vec<u8>, LogError> {
    let mut bytes = Vec::new();
    let mut most = CHUNK;
    loop {
        file.seek(SeekFrom::Start(offset + bytes.len() as u64))?;
        file.take(most - bytes.len() as u64).read_to_end(&mut bytes)?;
        if let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') {
            bytes.truncate(last + 1);
            return Ok(bytes);
        }
        if (bytes.len() as u64) < most {
            return Ok(Vec::new());
        }
        if most >= LONGEST_LINE {
            return Err(LogError::Foreign { at: offset });
        }
        most *= 4;
    }
}

#[cfg(test)]
mod tests;
