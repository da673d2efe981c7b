//! Reading and appending an agent's log.
//!
//! A line is whole once its newline is there. What a killed agent left of a line is neither a record nor an error: a
//! reader waits for the rest, and the next writer closes it off.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::Record;

/// Reads a log that somebody may still be writing.
#[derive(Debug, Clone)]
pub struct LogReader {
    path: PathBuf,
}

/// Appends to a log. There is one writer at a time: whoever holds the attempt's lock.
#[derive(Debug)]
pub struct LogWriter {
    file: File,
    is_torn: bool,
}

impl LogReader {
    /// Names the log to read. It need not be there yet.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the records after `offset` (in bytes) and the offset to go on from.
    ///
    /// Lines that are no record, such as what a killed agent left of one, are passed over. A last line without its
    /// newline is left for the next call. A log that is not there has no records.
    ///
    /// # Errors
    ///
    /// When the file is there and cannot be read.
    pub fn read_from(&self, offset: u64) -> io::Result<(Vec<Record>, u64)> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), offset)),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let lines = bytes[..whole].split(|b| *b == b'\n');
        let records = lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        Ok((records, offset + whole as u64))
    }
}

impl LogWriter {
    /// Opens the log at `path`, makes it where it is not there, and closes off a line that was left unfinished.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened or written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)?;
        if ends_inside_a_line(&mut file)? {
            file.write_all(b"\n")?;
        }
        Ok(Self { file, is_torn: false })
    }

    /// Appends one record as one line, with one write.
    ///
    /// # Errors
    ///
    /// When the line could not be written whole. What was written of it is closed off by the next one.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        let mut line = if self.is_torn { b"\n".to_vec() } else { Vec::new() };
        serde_json::to_writer(&mut line, record)?;
        line.push(b'\n');
        let written = self.file.write_all(&line);
        self.is_torn = written.is_err();
        written
    }

    /// Waits until everything that was appended is on the disk.
    ///
    /// # Errors
    ///
    /// When the disk says that it is not.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn ends_inside_a_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::{RecordKind, Stage};

    fn record(message: &str) -> Record {
        Record {
            at: jiff::Timestamp::UNIX_EPOCH,
            kind: RecordKind::StageProgress {
                stage: Stage::Env,
                message: message.into(),
            },
        }
    }

    fn log_in(folder: &Path) -> PathBuf {
        folder.join("log.ndjson")
    }

    #[test]
    fn a_log_is_read_on_from_where_the_reader_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = log_in(folder.path());
        let reader = LogReader::open(&path);
        assert_eq!(reader.read_from(0).unwrap(), (vec![], 0));

        let mut writer = LogWriter::open(&path).unwrap();
        writer.append(&record("one")).unwrap();
        let (records, offset) = reader.read_from(0).unwrap();
        assert_eq!(records, [record("one")]);

        writer.append(&record("two")).unwrap();
        let (records, offset) = reader.read_from(offset).unwrap();
        assert_eq!(records, [record("two")]);
        assert_eq!(reader.read_from(offset).unwrap(), (vec![], offset));
    }

    #[test]
    fn a_torn_line_is_left_until_the_next_writer_closes_it_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = log_in(folder.path());
        let mut whole = serde_json::to_vec(&record("one")).unwrap();
        whole.push(b'\n');
        let torn = &whole[..20];
        std::fs::write(&path, [&whole, torn].concat()).unwrap();
        let reader = LogReader::open(&path);

        let (records, offset) = reader.read_from(0).unwrap();
        assert_eq!(records, [record("one")]);
        assert_eq!(offset, whole.len() as u64);

        LogWriter::open(&path).unwrap().append(&record("two")).unwrap();
        let (records, _) = reader.read_from(offset).unwrap();
        assert_eq!(records, [record("two")]);
    }
}
