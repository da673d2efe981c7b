//! The agent's log as it is written: with the time, without secrets, and with a memory for the first failure.

use std::io;

use blueproof_core::attempt::{LogWriter, Record, RecordKind, Stream};
use jiff::Timestamp;
use serde_json::Value;

use crate::text::{RedactedStream, Redactor};

/// Appends to the log. A failure to do so is kept, so that the attempt can end in order.
pub(crate) struct Journal {
    log: LogWriter,
    redactor: Redactor,
    held: Option<Held>,
    error: Option<io::Error>,
}

/// The end of a piece of text that could be the beginning of a secret.
struct Held {
    slot: usize,
    stream: Stream,
    pending: RedactedStream,
}

impl Journal {
    pub(crate) fn new(log: LogWriter) -> Self {
        Self {
            log,
            redactor: Redactor::new([]),
            held: None,
            error: None,
        }
    }

    /// Has the values of secrets taken out from here on.
    pub(crate) fn set_redactor(&mut self, redactor: Redactor) {
        self.redactor = redactor;
    }

    /// Appends what happened now.
    pub(crate) fn record(&mut self, kind: RecordKind) {
        let record = Record {
            at: Timestamp::now(),
            kind,
        };
        if let Err(error) = self.log.append(&record) {
            self.failed(error);
        }
    }

    /// Remembers that a file of the attempt could not be written.
    pub(crate) fn failed(&mut self, error: io::Error) {
        self.error.get_or_insert(error);
    }

    /// Returns the first failure to write, once.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Waits until the log is on the disk.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.log.sync()?;
        self.error.take().map_or(Ok(()), Err)
    }

    /// Redacts a piece of text that follows the last one of the same cell and stream, even where a secret lies
    /// across both. What could be the beginning of one is held back for the next piece.
    pub(crate) fn redact_text(&mut self, slot: usize, stream: Stream, text: &str) -> String {
        let mut pending = match self.held.take() {
            Some(held) if held.slot == slot && held.stream == stream => held.pending,
            Some(_) | None => self.redactor.stream(),
        };
        let text = pending.push(text);
        if !pending.is_empty() {
            self.held = Some(Held {
                slot,
                stream,
                pending,
            });
        }
        text
    }

    /// Returns whether what is held back, if anything, is continued by text of this cell and stream.
    pub(crate) fn may_go_on_with(&self, slot: usize, stream: Stream) -> bool {
        let held = self.held.as_ref();
        held.is_none_or(|held| held.slot == slot && held.stream == stream)
    }

    /// Returns text that was held back and is followed by nothing.
    pub(crate) fn take_held(&mut self) -> Option<(usize, Stream, String)> {
        let mut held = self.held.take()?;
        Some((held.slot, held.stream, held.pending.flush()))
    }

    /// Redacts a text that stands alone.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.redactor.redact(text)
    }

    /// Redacts an output.
    pub(crate) fn redact_json(&self, output: &mut Value) {
        self.redactor.redact_json(output);
    }
}
