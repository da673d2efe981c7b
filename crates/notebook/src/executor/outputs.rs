//! What a cell shows, as the notebook keeps it: with updates and clearing done, and with a limit.

use serde_json::{Value, json};

use blueproof_core::{attempt::Stream, domain::Bytes};

/// The most that is kept of what one cell prints and shows, and of all cells together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Of one cell's printed text.
    pub cell_text: Bytes,
    /// Of one cell's other outputs.
    pub cell_display: Bytes,
    /// Of everything.
    pub attempt: Bytes,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            cell_text: Bytes(1 << 20),
            cell_display: Bytes(8 << 20),
            attempt: Bytes(16 << 20),
        }
    }
}

impl OutputLimits {
    /// Returns how much of the next cell's text is kept where `kept` bytes are kept already of the cells before it.
    pub(super) fn room(&self, kept: u64) -> TextRoom {
        let text = self.cell_text.0.min(self.attempt.0.saturating_sub(kept));
        let quarter = usize::try_from(text / 4).unwrap_or(usize::MAX);
        TextRoom {
            head: quarter.saturating_mul(3),
            tail: quarter.max(TAIL_AT_LEAST),
        }
    }
}

/// What is kept of a cell's last text even where nothing more of the attempt is: it may say why the cell failed.
const TAIL_AT_LEAST: usize = 4 << 10;
/// How far a cut may be moved so that it is between two lines.
const LINE_AT_MOST: usize = 4 << 10;

/// How much of printed text is kept, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TextRoom {
    /// Of its beginning.
    pub(super) head: usize,
    /// Of its end.
    pub(super) tail: usize,
}

/// Outputs of one cell. Of text that is over the limit, the beginning and the end stay.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    room: TextRoom,
    head: Shown,
    /// What came once the head was full.
    tail: Shown,
    is_head_full: bool,
    /// How much text was between the head and the tail.
    left_out: u64,
    clear_before_next: bool,
}

/// Outputs in a row.
#[derive(Debug, Default)]
struct Shown {
    outputs: Vec<Kept>,
    text_bytes: usize,
}

#[derive(Debug)]
enum Kept {
    Text { stream: Stream, text: String },
    Other { output: Value, display: Option<String> },
}

impl Outputs {
    pub(super) fn new(room: TextRoom) -> Self {
        Self {
            room,
            ..Self::default()
        }
    }

    /// Adds printed text; text to the same stream in a row is one output. A line that a carriage return starts anew is
    /// kept as it was last written.
    pub(crate) fn print(&mut self, stream: Stream, text: &str) {
        self.clear_if_due();
        if self.is_head_full {
            self.tail.print(stream, text);
        } else {
            self.head.print(stream, text);
            if let Some((stream, rest)) = self.head.split_after(self.room.head) {
                self.is_head_full = true;
                self.tail.print(stream, &rest);
            }
        }
        // Cutting moves all that stays, so it is not done for every few bytes.
        if self.tail.text_bytes > 2 * self.room.tail {
            self.cut();
        }
    }

    /// Adds anything else.
    pub(crate) fn show(&mut self, output: Value, display: Option<String>) {
        self.clear_if_due();
        let shown = if self.is_head_full {
            &mut self.tail
        } else {
            &mut self.head
        };
        shown.outputs.push(Kept::Other { output, display });
    }

    /// Replaces data and metadata wherever the display of this name stands. Returns whether it stands here.
    pub(crate) fn update(&mut self, name: &str, content: &Value) -> bool {
        let mut is_here = false;
        for kept in self.head.outputs.iter_mut().chain(&mut self.tail.outputs) {
            if let Kept::Other {
                output,
                display: Some(display),
            } = kept
                && display == name
            {
                output["data"] = content["data"].clone();
                output["metadata"] = content["metadata"].clone();
                is_here = true;
            }
        }
        is_here
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.room);
    }

    /// Removes everything as soon as something new comes.
    pub(crate) fn clear_before_next(&mut self) {
        self.clear_before_next = true;
    }

    /// Returns how much text is kept.
    pub(super) fn text_bytes(&self) -> u64 {
        (self.head.text_bytes + self.tail.text_bytes) as u64
    }

    /// Returns the outputs as a notebook has them.
    pub(crate) fn in_notebook(&mut self) -> Vec<Value> {
        self.cut();
        let mut outputs: Vec<Value> = self.head.outputs.iter().map(Kept::to_json).collect();
        if self.left_out > 0 {
            let left_out = Bytes(self.left_out).rounded();
            let notice = format!(
                "\n[blueproof: {left_out} of what the cell printed are left out here: its beginning and its end are kept]\n"
            );
            outputs.push(stream_output(Stream::Stderr, &notice));
        }
        outputs.extend(self.tail.outputs.iter().map(Kept::to_json));
        outputs
    }

    /// Takes out the text, and how much of it was left out before its end.
    pub(super) fn take_text(&mut self) -> (u64, Vec<(Stream, String)>) {
        self.cut();
        let taken = std::mem::replace(self, Self::new(self.room));
        let all = taken.head.outputs.into_iter().chain(taken.tail.outputs);
        let text = all.filter_map(|kept| match kept {
            Kept::Text { stream, text } => Some((stream, text)),
            Kept::Other { .. } => None,
        });
        (taken.left_out, text.collect())
    }

    fn cut(&mut self) {
        self.left_out += self.tail.keep_end(self.room.tail) as u64;
    }

    fn clear_if_due(&mut self) {
        if self.clear_before_next {
            self.clear();
        }
    }
}

impl Shown {
    fn print(&mut self, stream: Stream, new: &str) {
        match self.outputs.last_mut() {
            Some(Kept::Text { stream: last, text }) if *last == stream => {
                self.text_bytes -= text.len();
                go_on(text, new);
                self.text_bytes += text.len();
            }
            _ => {
                let mut text = String::new();
                go_on(&mut text, new);
                self.text_bytes += text.len();
                self.outputs.push(Kept::Text { stream, text });
            }
        }
    }

    /// Takes out what of the last text is over the limit.
    fn split_after(&mut self, limit: usize) -> Option<(Stream, String)> {
        let over = self.text_bytes.checked_sub(limit).filter(|over| *over > 0)?;
        let Some(Kept::Text { stream, text }) = self.outputs.last_mut() else {
            return None;
        };
        let stream = *stream;
        let most = text.floor_char_boundary(text.len().saturating_sub(over));
        let least = text.floor_char_boundary(most.saturating_sub(LINE_AT_MOST));
        let at = text[least..most]
            .rfind('\n')
            .map_or(most, |line| least + line + 1);
        let rest = text.split_off(at);
        self.text_bytes -= rest.len();
        if text.is_empty() {
            self.outputs.pop();
        }
        Some((stream, rest))
    }

    /// Removes text from the beginning until no more than `limit` is left, and returns how much.
    fn keep_end(&mut self, limit: usize) -> usize {
        let Some(mut over) = self.text_bytes.checked_sub(limit).filter(|over| *over > 0) else {
            return 0;
        };
        let before = self.text_bytes;
        for kept in &mut self.outputs {
            let Kept::Text { text, .. } = kept else { continue };
            let least = text.ceil_char_boundary(over.min(text.len()));
            let most = text.floor_char_boundary((least + LINE_AT_MOST).min(text.len()));
            let at = text[least..most]
                .find('\n')
                .map_or(least, |line| least + line + 1);
            over = over.saturating_sub(at);
            self.text_bytes -= at;
            text.drain(..at);
            if over == 0 {
                break;
            }
        }
        self.outputs
            .retain(|kept| !matches!(kept, Kept::Text { text, .. } if text.is_empty()));
        before - self.text_bytes
    }
}

impl Kept {
    fn to_json(&self) -> Value {
        match self {
            Kept::Text { stream, text } => stream_output(*stream, text),
            Kept::Other { output, .. } => output.clone(),
        }
    }
}

fn stream_output(stream: Stream, text: &str) -> Value {
    let name = match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    };
    json!({"output_type": "stream", "name": name, "text": text})
}

/// Adds `new` to what stands already, without what a carriage return has overwritten.
fn go_on(text: &mut String, new: &str) {
    // A carriage return at the end is the first half of a line break, or it overwrites as soon as something follows.
    if !new.contains('\r') && !text.ends_with('\r') {
        text.push_str(new);
        return;
    }
    let line = text.rfind('\n').map_or(0, |at| at + 1);
    let mut unfinished = text.split_off(line);
    unfinished.push_str(new);
    for line in unfinished.split_inclusive('\n') {
        text.push_str(last_written(line));
    }
}

fn last_written(line: &str) -> &str {
    let written = line.trim_end_matches(['\r', '\n']).len();
    let from = line[..written].rfind('\r').map_or(0, |at| at + 1);
    &line[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_a_row_is_one_output() {
        let mut outputs = Outputs::new(OutputLimits::default().room(0));
        for (stream, text) in [
            (Stream::Stdout, "a"),
            (Stream::Stdout, "b"),
            (Stream::Stderr, "c"),
        ] {
            outputs.print(stream, text);
        }
        let texts: Vec<_> = outputs
            .in_notebook()
            .iter()
            .map(|output| output["text"].clone())
            .collect();
        assert_eq!(texts, ["ab", "c"]);
    }

    #[test]
    fn clearing_can_wait_for_what_comes_next() {
        let mut outputs = Outputs::new(OutputLimits::default().room(0));
        outputs.print(Stream::Stdout, "step 1");
        outputs.clear_before_next();
        assert_eq!(outputs.in_notebook().len(), 1);
        outputs.print(Stream::Stdout, "step 2");
        assert_eq!(outputs.in_notebook()[0]["text"], "step 2");
    }

    #[test]
    fn an_update_reaches_the_display_of_its_name_only() {
        let mut outputs = Outputs::new(OutputLimits::default().room(0));
        outputs.show(
            json!({"output_type": "display_data", "data": {"text/plain": "0"}}),
            Some("a".into()),
        );
        outputs.show(
            json!({"output_type": "display_data", "data": {"text/plain": "0"}}),
            None,
        );
        assert!(outputs.update("a", &json!({"data": {"text/plain": "1"}, "metadata": {}})));
        assert!(!outputs.update("b", &json!({"data": {}, "metadata": {}})));
        let shown = outputs.in_notebook();
        assert_eq!(shown[0]["data"]["text/plain"], "1");
        assert_eq!(shown[1]["data"]["text/plain"], "0");
    }
    fn texts(outputs: &mut Outputs) -> Vec<String> {
        let texts = outputs.in_notebook();
        texts
            .iter()
            .map(|output| output["text"].as_str().unwrap_or("").to_owned())
            .collect()
    }

    #[test]
    fn a_progress_bar_of_many_megabytes_is_kept_as_its_last_state() {
        let mut outputs = Outputs::new(OutputLimits::default().room(0));
        outputs.print(Stream::Stderr, "before\r\n");
        for step in 0..200_000 {
            outputs.print(Stream::Stderr, &format!("\r{step}/200000 [loss 0.5]"));
        }
        outputs.print(Stream::Stderr, "\r");
        outputs.print(Stream::Stderr, "\nafter\n");
        assert_eq!(
            texts(&mut outputs),
            ["before\r\n199999/200000 [loss 0.5]\r\nafter\n"]
        );
    }

    #[test]
    fn of_text_over_the_limit_the_beginning_and_the_end_are_kept_in_whole_lines() {
        let mut outputs = Outputs::new(TextRoom { head: 60, tail: 20 });
        for line in 0..1000 {
            outputs.print(Stream::Stdout, &format!("line {line}\n"));
        }
        let texts = texts(&mut outputs);
        assert_eq!(texts[0].lines().last(), Some("line 7"));
        assert_eq!(
            texts[1],
            "\n[blueproof: 8.6Ki of what the cell printed are left out here: its beginning and its end are kept]\n"
        );
        assert_eq!(texts[2], "line 998\nline 999\n");
    }

    #[test]
    fn what_is_shown_after_the_head_was_full_stays_between_its_texts() {
        let mut outputs = Outputs::new(TextRoom { head: 4, tail: 8 });
        outputs.print(Stream::Stdout, "aaaabbbb");
        outputs.show(json!({"output_type": "display_data"}), None);
        outputs.print(Stream::Stderr, "ééc");
        assert_eq!(texts(&mut outputs)[2..], ["bbb", "", "ééc"]);
    }

    #[test]
    fn text_that_is_cleared_makes_room_again() {
        let mut outputs = Outputs::new(TextRoom { head: 8, tail: 4 });
        for _ in 0..100 {
            outputs.clear();
            outputs.print(Stream::Stdout, "frame\n");
        }
        assert_eq!(texts(&mut outputs), ["frame\n"]);
        assert_eq!(outputs.text_bytes(), 6);
    }
}
