//! Takes in what the kernel publishes and keeps it: in the log as it comes, in the notebook as it stands.
//!
//! Memory is bounded: bursts are gathered for a moment, and of what is over the limits the end alone is kept.

use std::time::{Duration, Instant};

use blueproof_core::{
    attempt::{RecordKind, Stream},
    domain::Bytes,
};
use serde_json::{Value, json};

use super::{
    notebook::Cell,
    outputs::{OutputLimits, Outputs, TextRoom},
};
use crate::{
    ipynb::joined,
    journal::Journal,
    kernel::{Message, Written},
    observer::Observer,
};

/// How long text may wait for more, so that a burst makes few records.
pub(crate) const GATHER_FOR: Duration = Duration::from_millis(80);
const GATHER_AT_MOST: usize = 16 << 10;
/// How much of a cell's last text is remembered for the verdict.
const TAIL_BYTES: usize = 16 << 10;

/// Where outputs go.
pub(crate) struct Recorder<'a> {
    journal: &'a mut Journal,
    observer: &'a mut dyn Observer,
    limits: OutputLimits,
    kept_bytes: u64,
    logged_bytes: u64,
    cells: Vec<CellRecord>,
    gathered: Option<Gathered>,
}

/// Where text belongs that processes write by themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Belonging {
    /// To the cell that runs.
    Cell,
    /// To `kernel.log` alone: it can be the kernel's own.
    #[default]
    Log,
}

/// What is known of one cell.
#[derive(Debug)]
struct CellRecord {
    cell: Cell,
    outputs: Outputs,
    /// How much text the log may still have of this cell while it runs.
    log_room: u64,
    /// The end of the text that the log had no room for.
    unlogged: Outputs,
    display_bytes: u64,
    is_truncated: bool,
    lacks_displays: bool,
    is_changed: bool,
    tail: String,
    /// Whether what is printed from here on is no evidence: we have ended the cell.
    is_being_ended: bool,
    /// The end of what the kernel's processes wrote to their standard error by themselves, past the kernel.
    written: String,
    error: Option<Value>,
    count: Option<u64>,
}

#[derive(Debug)]
struct Gathered {
    slot: usize,
    stream: Stream,
    text: String,
    since: Instant,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(
        journal: &'a mut Journal,
        observer: &'a mut dyn Observer,
        limits: OutputLimits,
    ) -> Self {
        Self {
            journal,
            observer,
            limits,
            kept_bytes: 0,
            logged_bytes: 0,
            cells: Vec::new(),
            gathered: None,
        }
    }

    /// Returns the log.
    pub(crate) fn journal(&mut self) -> &mut Journal {
        self.journal
    }

    /// Makes room for a cell's outputs and returns its slot.
    pub(crate) fn begin(&mut self, cell: &Cell) -> usize {
        let room = self.limits.room(self.kept_bytes.max(self.logged_bytes));
        self.cells.push(CellRecord {
            cell: cell.clone(),
            outputs: Outputs::new(room),
            log_room: room.head as u64,
            unlogged: Outputs::new(TextRoom { head: 0, ..room }),
            display_bytes: 0,
            is_truncated: false,
            lacks_displays: false,
            is_changed: true,
            tail: String::new(),
            is_being_ended: false,
            written: String::new(),
            error: None,
            count: None,
        });
        self.cells.len() - 1
    }

    /// Takes in one published message of the cell in `slot`.
    pub(crate) fn take(&mut self, slot: usize, message: &Message) {
        let content = &message.content;
        match message.kind.as_str() {
            "stream" => self.print(slot, content),
            "display_data" | "execute_result" => self.show(slot, &message.kind, content),
            "update_display_data" => self.update(slot, content),
            "clear_output" => self.clear(slot, content),
            "execute_input" => self.cells[slot].count = content["execution_count"].as_u64(),
            "error" => self.raise(slot, content),
            // State is the executor's, widgets' own traffic nobody's.
            _ => {}
        }
    }

    /// Takes in what processes wrote by themselves while the last cell ran.
    pub(crate) fn take_written(&mut self, written: &Written, belonging: Belonging) {
        let Some(slot) = self.cells.len().checked_sub(1) else {
            return;
        };
        // What is printed tells how far it was, and not what went wrong.
        if written.stream == Stream::Stderr {
            remember_tail(&mut self.cells[slot].written, &written.text);
        }
        match belonging {
            Belonging::Cell => self.gather(slot, written.stream, &written.text),
            Belonging::Log => {}
        }
    }

    /// Returns when gathered text is due to be written.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.gathered.as_ref().map(|gathered| gathered.since + GATHER_FOR)
    }

    /// Writes gathered text that is due.
    pub(crate) fn flush_due(&mut self) {
        if self.due().is_some_and(|due| due <= Instant::now()) {
            self.flush_text();
        }
    }

    /// Writes gathered text, and what was held back because it could be the beginning of a secret.
    pub(crate) fn flush(&mut self) {
        self.flush_text();
        if let Some((slot, stream, rest)) = self.journal.take_held() {
            self.journal.lay_tokens_to(self.cells[slot].cell.position);
            self.write_text(slot, stream, &rest);
        }
    }

    /// Writes everything: gathered text, and the end of what the log had no room for while it came. To be called when a
    /// cell is over.
    pub(crate) fn flush_ends(&mut self) {
        self.flush();
        for slot in 0..self.cells.len() {
            let record = &mut self.cells[slot];
            let (left_out, text) = record.unlogged.take_text();
            if left_out > 0 {
                let (cell, bytes) = (record.cell.position, Bytes(left_out));
                self.journal.record(RecordKind::LeftOut { cell, bytes });
            }
            for (stream, text) in text {
                self.log_text(slot, stream, &text);
            }
        }
    }

    /// Returns the last text that the cell in `slot` printed.
    pub(crate) fn tail(&self, slot: usize) -> &str {
        &self.cells[slot].tail
    }

    /// Says that the last cell is being ended: what it prints from here on says nothing of why.
    pub(crate) fn being_ended(&mut self) {
        self.flush();
        if let Some(record) = self.cells.last_mut() {
            record.is_being_ended = true;
        }
    }

    /// Returns the end of what processes wrote to their standard error by themselves while the last cell ran.
    pub(crate) fn written(&self) -> &str {
        self.cells.last().map_or("", |record| &record.written)
    }

    /// Returns the error that the cell in `slot` published.
    pub(crate) fn error(&self, slot: usize) -> Option<&Value> {
        self.cells[slot].error.as_ref()
    }

    /// Returns the number that the kernel gave the cell in `slot`.
    pub(crate) fn count(&self, slot: usize) -> Option<u64> {
        self.cells[slot].count
    }

    /// Returns every cell whose outputs changed since the last call: index, outputs and number.
    pub(crate) fn changes(&mut self) -> Vec<(usize, Vec<Value>, Option<u64>)> {
        let changed = self.cells.iter_mut().filter(|record| record.is_changed);
        changed
            .map(|record| {
                record.is_changed = false;
                (record.cell.index, record.outputs.in_notebook(), record.count)
            })
            .collect()
    }

    fn print(&mut self, slot: usize, content: &Value) {
        let stream = if content["name"] == "stderr" {
            Stream::Stderr
        } else {
            Stream::Stdout
        };
        self.gather(slot, stream, &joined(&content["text"]));
    }

    fn gather(&mut self, slot: usize, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        let fits = self
            .gathered
            .as_ref()
            .is_some_and(|gathered| gathered.slot == slot && gathered.stream == stream);
        if !fits && (self.gathered.is_some() || !self.journal.may_go_on_with(slot, stream)) {
            self.flush();
        }
        let gathered = self.gathered.get_or_insert_with(|| Gathered {
            slot,
            stream,
            text: String::new(),
            since: Instant::now(),
        });
        gathered.text.push_str(text);
        if gathered.text.len() >= GATHER_AT_MOST {
            self.flush_text();
        }
    }

    fn flush_text(&mut self) {
        let Some(gathered) = self.gathered.take() else {
            return;
        };
        let text = self
            .journal
            .redact_text(gathered.slot, gathered.stream, &gathered.text);
        self.journal
            .lay_tokens_to(self.cells[gathered.slot].cell.position);
        self.write_text(gathered.slot, gathered.stream, &text);
    }

    fn write_text(&mut self, slot: usize, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        let position = self.cells[slot].cell.position;
        for (name, value) in self.observer.printed(position, stream, text) {
            self.journal.record(RecordKind::Metric { name, value });
        }
        let record = &mut self.cells[slot];
        if !record.is_being_ended {
            remember_tail(&mut record.tail, text);
        }
        let before = record.outputs.text_bytes();
        record.outputs.print(stream, text);
        record.is_changed = true;
        self.kept_bytes = (self.kept_bytes + record.outputs.text_bytes()).saturating_sub(before);
        let (now, rest) = text.split_at(prefix(text, record.log_room).len());
        self.log_text(slot, stream, now);
        if !rest.is_empty() {
            let record = &mut self.cells[slot];
            record.log_room = 0;
            record.unlogged.print(stream, rest);
            self.truncated(slot, self.limits.cell_text);
        }
    }

    fn log_text(&mut self, slot: usize, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        let record = &mut self.cells[slot];
        record.log_room = record.log_room.saturating_sub(text.len() as u64);
        self.logged_bytes += text.len() as u64;
        self.journal.record(RecordKind::Text {
            cell: record.cell.position,
            stream,
            text: text.to_owned(),
        });
    }

    fn show(&mut self, slot: usize, kind: &str, content: &Value) {
        self.flush();
        let mut output = json!({
            "output_type": kind,
            "data": content["data"],
            "metadata": object_or_empty(&content["metadata"]),
        });
        if kind == "execute_result" {
            output["execution_count"] = content["execution_count"].clone();
        }
        let position = self.redact(slot, &mut output);
        for (name, value) in self.observer.shown(position, &output) {
            self.journal.record(RecordKind::Metric { name, value });
        }
        let display = content.pointer("/transient/display_id").and_then(Value::as_str);
        self.keep(slot, output, display.map(str::to_owned));
    }

    fn keep(&mut self, slot: usize, output: Value, display: Option<String>) {
        let size = output.to_string().len() as u64;
        let record = &mut self.cells[slot];
        let is_full = record.display_bytes + size > self.limits.cell_display.0
            || self.kept_bytes + size > self.limits.attempt.0;
        if is_full {
            self.not_shown(slot);
            return;
        }
        record.display_bytes += size;
        self.kept_bytes += size;
        record.is_changed = true;
        let cell = record.cell.position;
        record.outputs.show(output.clone(), display);
        self.journal.record(RecordKind::Display { cell, output });
    }

    fn update(&mut self, slot: usize, content: &Value) {
        self.flush();
        let Some(display) = content.pointer("/transient/display_id").and_then(Value::as_str) else {
            return;
        };
        let mut content = json!({
            "output_type": "display_data",
            "data": content["data"],
            "metadata": object_or_empty(&content["metadata"]),
        });
        let position = self.redact(slot, &mut content);
        for (name, value) in self.observer.shown(position, &content) {
            self.journal.record(RecordKind::Metric { name, value });
        }
        if content.to_string().len() as u64 > self.limits.cell_display.0 {
            self.not_shown(slot);
            return;
        }
        for record in &mut self.cells {
            record.is_changed |= record.outputs.update(display, &content);
        }
    }

    fn clear(&mut self, slot: usize, content: &Value) {
        self.flush();
        let record = &mut self.cells[slot];
        record.is_changed = true;
        if content["wait"] == true {
            record.outputs.clear_before_next();
        } else {
            record.outputs.clear();
        }
    }

    fn raise(&mut self, slot: usize, content: &Value) {
        self.flush();
        let lines = content["traceback"].as_array().cloned().unwrap_or_default();
        let mut output = json!({
            "output_type": "error",
            "ename": content["ename"].as_str().unwrap_or_default(),
            "evalue": content["evalue"].as_str().unwrap_or_default(),
            "traceback": lines.into_iter().filter(Value::is_string).collect::<Vec<_>>(),
        });
        self.redact(slot, &mut output);
        self.cells[slot].error = Some(output.clone());
        self.keep(slot, output, None);
    }

    /// Takes secrets out of an output, and returns the position of the cell whose it is.
    fn redact(&mut self, slot: usize, output: &mut Value) -> u32 {
        let position = self.cells[slot].cell.position;
        self.journal.redact_json(output);
        self.journal.lay_tokens_to(position);
        position
    }

    fn not_shown(&mut self, slot: usize) {
        let limit = self.limits.cell_display;
        let record = &mut self.cells[slot];
        if !std::mem::replace(&mut record.lacks_displays, true) {
            let notice = format!("\n[blueproof: output over {limit} is not kept]\n");
            record.outputs.print(Stream::Stderr, &notice);
            record.is_changed = true;
        }
        self.truncated(slot, limit);
    }

    fn truncated(&mut self, slot: usize, limit: Bytes) {
        let record = &mut self.cells[slot];
        if std::mem::replace(&mut record.is_truncated, true) {
            return;
        }
        let cell = record.cell.position;
        self.journal.record(RecordKind::Truncated { cell, limit });
    }
}

fn object_or_empty(value: &Value) -> Value {
    if value.is_object() {
        value.clone()
    } else {
        json!({})
    }
}

/// Returns as much of the beginning of `text` as has at most `bytes` bytes.
fn prefix(text: &str, bytes: u64) -> &str {
    let mut end = usize::try_from(bytes).unwrap_or(usize::MAX).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn remember_tail(tail: &mut String, text: &str) {
    tail.push_str(text);
    if tail.len() <= 2 * TAIL_BYTES {
        return;
    }
    let mut from = tail.len() - TAIL_BYTES;
    while !tail.is_char_boundary(from) {
        from += 1;
    }
    tail.drain(..from);
}
