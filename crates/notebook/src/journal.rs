//! The agent's log as it is written: with the time, without secrets, and with a memory for what the disk did not take.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
};

use blueproof_core::attempt::{Disturbance, LogWriter, Record, RecordKind, Stream};
use jiff::Timestamp;
use serde_json::Value;

use crate::text::{RedactedStream, Redactor};

/// Appends to the log. What cannot be written waits for the next record: a notebook that fills the disk is judged by what
/// it did, once its files are gone. That is no more than its outputs, which are in memory as well.
pub(crate) struct Journal {
    log: LogWriter,
    unwritten: VecDeque<Record>,
    redactor: Redactor,
    held: Option<Held>,
    /// What was shaped like a token, and in which cells.
    tokens: BTreeMap<&'static str, BTreeSet<u32>>,
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
            unwritten: VecDeque::new(),
            redactor: Redactor::new([]),
            held: None,
            tokens: BTreeMap::new(),
            error: None,
        }
    }

    /// Has the values of secrets taken out from here on.
    pub(crate) fn set_redactor(&mut self, redactor: Redactor) {
        self.redactor = redactor;
    }

    /// Appends what happened now.
    pub(crate) fn record(&mut self, kind: RecordKind) {
        self.unwritten.push_back(Record {
            at: Timestamp::now(),
            kind,
        });
        // What fails now is tried again: whether it matters is known at the end.
        let _ = self.write_out();
    }

    /// Remembers that a file of the attempt could not be written, and never will be.
    pub(crate) fn failed(&mut self, error: io::Error) {
        self.error.get_or_insert(error);
    }

    /// Writes what waits, and returns why a file of the attempt is not whole: the first reason, once.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        let written = self.write_out();
        self.error.take().or(written.err())
    }

    /// Makes the log what was written there, if it is not, and returns what somebody else did to it.
    pub(crate) fn reclaim(&mut self) -> io::Result<Option<Disturbance>> {
        self.log.reclaim()
    }

    /// Waits until the log is on the disk.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.take_error().map_or(Ok(()), Err)?;
        self.log.sync()
    }

    fn write_out(&mut self) -> io::Result<()> {
        while let Some(record) = self.unwritten.front() {
            self.log.append(record)?;
            self.unwritten.pop_front();
        }
        Ok(())
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

    /// Remembers that what was shaped like a token, since this was called last, was the cell's.
    pub(crate) fn lay_tokens_to(&mut self, cell: u32) {
        for name in self.redactor.take_met() {
            self.tokens.entry(name).or_default().insert(cell);
        }
    }

    /// Returns what cells have shown that was shaped like a token, and which.
    pub(crate) fn tokens(&self) -> &BTreeMap<&'static str, BTreeSet<u32>> {
        &self.tokens
    }

    /// Returns what takes secrets out of text.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
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
