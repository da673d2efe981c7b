//! A text that was made of another one, and where each part of it stood there.

use std::ops::Range;

/// A text made of another one, character by character.
#[derive(Default)]
pub(super) struct Made {
    text: String,
    /// Where each piece of it begins, and where that stood; behind the last piece the end of both.
    pieces: Vec<(usize, usize)>,
}

impl Made {
    /// Adds a character that was made of what stood there.
    pub(super) fn push(&mut self, c: char, at: usize) {
        self.begin(at);
        self.text.push(c);
    }

    /// Adds a part that is as it stood.
    pub(super) fn copy(&mut self, text: &str, part: Range<usize>) {
        self.begin(part.start);
        self.text.push_str(&text[part]);
    }

    /// Ends it: all that follows was left out.
    pub(super) fn end(mut self, at: usize) -> Self {
        self.begin(at);
        self
    }

    fn begin(&mut self, at: usize) {
        let end = self.text.len();
        let last = self.pieces.last();
        if last.is_none_or(|(made, stood)| stood + (end - made) != at) {
            self.pieces.push((end, at));
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns where a place stood.
    pub(super) fn place(&self, at: usize) -> usize {
        let next = self.pieces.partition_point(|(made, _)| *made <= at);
        let piece = next.checked_sub(1).map(|last| self.pieces[last]);
        piece.map_or(at, |(made, stood)| stood + (at - made))
    }
}
