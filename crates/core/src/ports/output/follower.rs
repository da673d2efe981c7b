//! Reading an attempt's records as they are written, and its files whole.

use std::sync::Arc;

use super::{AttemptOutput, OutputError, OutputName, RecordChanges, RecordPosition};
use crate::{attempt::Record, domain::AttemptId};

/// How many records are read at once.
const RECORDS_AT_ONCE: usize = 4096;

/// How much of a file is read at once.
const BYTES_AT_ONCE: usize = 4 << 20;

/// Reads the records of one attempt, a part of them at a time, and waits for more.
pub struct RecordFollower {
    output: Arc<dyn AttemptOutput>,
    attempt: AttemptId,
    position: RecordPosition,
    at_once: usize,
    changes: Option<Box<dyn RecordChanges>>,
}

impl RecordFollower {
    /// Begins before the first record of an attempt, which need not have begun.
    pub fn new(output: Arc<dyn AttemptOutput>, attempt: AttemptId) -> Self {
        Self::after(RecordPosition::default(), output, attempt)
    }

    /// Begins after a position.
    pub fn after(position: RecordPosition, output: Arc<dyn AttemptOutput>, attempt: AttemptId) -> Self {
        Self {
            output,
            attempt,
            position,
            at_once: RECORDS_AT_ONCE,
            changes: None,
        }
    }

    /// Reads at most so many records at once, for whoever may not take them soon and has them in memory until then.
    pub fn at_once(mut self, records: usize) -> Self {
        self.at_once = records;
        self
    }

    /// Returns the attempt.
    pub fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// Returns the position after what was returned last.
    pub fn position(&self) -> &RecordPosition {
        &self.position
    }

    /// Goes back to before the first record.
    pub fn restart(&mut self) {
        self.position = RecordPosition::default();
    }

    /// Returns the next records that are there, some MiB of them at most, and none where all were returned. An attempt that has
    /// not begun has none. Safe to drop.
    ///
    /// # Errors
    ///
    /// As [`AttemptOutput::records`]. It may be called again.
    pub async fn ready(&mut self) -> Result<Vec<Record>, OutputError> {
        // Records that cannot be understood are passed over, and may be all that a part has.
        loop {
            let read = self
                .output
                .records(self.attempt, &self.position, self.at_once)
                .await;
            let read = match read {
                Err(OutputError::Missing(_)) => return Ok(Vec::new()),
                read => read?,
            };
            let is_new = read.next != self.position;
            self.position = read.next;
            if !is_new || !read.records.is_empty() {
                return Ok(read.records);
            }
        }
    }

    /// Returns the next records as soon as there are some. Safe to drop.
    ///
    /// # Errors
    ///
    /// As [`AttemptOutput::records`]. It may be called again.
    pub async fn next(&mut self) -> Result<Vec<Record>, OutputError> {
        loop {
            // Before it is read, so that nothing is written unseen between the two.
            self.changes();
            let records = self.ready().await?;
            if !records.is_empty() {
                return Ok(records);
            }
            self.changed().await;
        }
    }

    /// Returns once there may be more. Safe to drop.
    pub async fn changed(&mut self) {
        let position = self.position.clone();
        self.changes().next(&position).await;
    }

    fn changes(&mut self) -> &mut Box<dyn RecordChanges> {
        self.changes
            .get_or_insert_with(|| self.output.changes(self.attempt))
    }
}

/// Returns a whole file of at most `limit` bytes.
///
/// # Errors
///
/// As [`AttemptOutput::read`], and when it is larger.
pub async fn whole(
    output: &dyn AttemptOutput,
    name: &OutputName,
    limit: u64,
) -> Result<Vec<u8>, OutputError> {
    let mut bytes = Vec::new();
    loop {
        let part = output.read(name, bytes.len() as u64, BYTES_AT_ONCE).await?;
        if part.is_empty() {
            return Ok(bytes);
        }
        bytes.extend(part);
        if bytes.len() as u64 > limit {
            let name = name.clone();
            return Err(OutputError::TooLarge { name, limit });
        }
    }
}
