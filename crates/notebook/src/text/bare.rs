//! A text without what is removed from it before anybody sees it, and where each part of that stood.
//!
//! A secret may be cut by colours and characters without width, and be whole again once they are gone.

use std::{borrow::Cow, ops::Range};

use anstyle_parse::{DefaultCharAccumulator, Parser, Perform};

use super::lines::reorders_or_hides;

/// A text as it is seen.
pub(super) struct Bare<'t> {
    text: Cow<'t, str>,
    /// Where each piece of it begins, and where that stood; behind the last piece the end of both. Nothing where all of the
    /// text is seen.
    pieces: Vec<(usize, usize)>,
    /// Where a sequence begins that has no end yet.
    pub(super) open: Option<usize>,
}

impl<'t> Bare<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        if !text.chars().any(is_removed) {
            return Self {
                text: Cow::Borrowed(text),
                pieces: Vec::new(),
                open: None,
            };
        }
        let mut parser = Parser::<DefaultCharAccumulator>::default();
        let mut seen = Seen::new(text);
        for (at, byte) in text.bytes().enumerate() {
            seen.at = at;
            parser.advance(&mut seen, byte);
        }
        // Only outside of sequences a letter is printed.
        let mut next = Next::default();
        parser.advance(&mut next, b'x');
        let open = text.rfind('\u{1b}').filter(|_| !next.is_printed);
        seen.pieces.push((seen.shown.len(), open.unwrap_or(text.len())));
        Self {
            text: Cow::Owned(seen.shown),
            pieces: seen.pieces,
            open,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether something was removed.
    pub(super) fn differs(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Returns where a place stood.
    pub(super) fn place(&self, at: usize) -> usize {
        let next = self.pieces.partition_point(|(seen, _)| *seen <= at);
        let piece = next.checked_sub(1).map(|last| self.pieces[last]);
        piece.map_or(at, |(seen, stood)| stood + (at - seen))
    }

    /// Returns the last place of the whole text, up to this one, that is within nothing that was removed.
    pub(super) fn outside(&self, at: usize) -> usize {
        let next = self.pieces.partition_point(|(_, stood)| *stood <= at);
        let Some(last) = next.checked_sub(1) else {
            return if self.differs() { 0 } else { at };
        };
        let (seen, stood) = self.pieces[last];
        let length = self.pieces.get(next).map_or(0, |(next, _)| next - seen);
        at.min(stood + length)
    }

    /// Returns where a part stood, with what was removed from within it.
    pub(super) fn range(&self, part: &Range<usize>) -> Range<usize> {
        let end = part.end.checked_sub(1).map_or(0, |last| self.place(last) + 1);
        self.place(part.start)..end.max(self.place(part.start))
    }
}

/// What a terminal shows of a text so far. It is read by the parser that also finds the lines which are shown: where two
/// disagreed on where a sequence ends, a secret could stand on the page that is not seen here.
struct Seen<'t> {
    text: &'t str,
    /// Which byte the parser is given.
    at: usize,
    shown: String,
    pieces: Vec<(usize, usize)>,
}

impl<'t> Seen<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            shown: String::new(),
            pieces: Vec::new(),
        }
    }

    fn push(&mut self, c: char, at: usize) {
        let end = self.shown.len();
        let last = self.pieces.last();
        let follows = last.is_some_and(|(seen, stood)| stood + (end - seen) == at);
        if !follows {
            self.pieces.push((end, at));
        }
        self.shown.push(c);
    }

    fn take_back(&mut self) {
        if self.shown.ends_with('\n') {
            return;
        }
        self.shown.pop();
        while self
            .pieces
            .pop_if(|(seen, _)| *seen >= self.shown.len())
            .is_some()
        {}
    }
}

impl Perform for Seen<'_> {
    fn print(&mut self, c: char) {
        let at = self.text.floor_char_boundary(self.at);
        // What the parser makes of half a character stands nowhere.
        if !is_removed(c) && self.text[at..].starts_with(c) {
            self.push(c, at);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' | b'\r' | b'\t' => self.push(char::from(byte), self.at),
            0x08 => self.take_back(),
            _ => {}
        }
    }
}

/// Whether the next letter is printed.
#[derive(Default)]
struct Next {
    is_printed: bool,
}

impl Perform for Next {
    fn print(&mut self, _: char) {
        self.is_printed = true;
    }
}

fn is_removed(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t') || reorders_or_hides(c)
}

#[cfg(test)]
mod tests {
    use super::{super::shown, *};

    #[test]
    fn what_is_seen_is_found_where_it_stood() {
        for (text, seen) in [
            ("plain\r\n\ttext é", "plain\r\n\ttext é"),
            ("s\u{1b}[31me\u{1b}[0mc", "sec"),
            ("s\u{200b}e\u{2060}c\u{0}\u{7f}", "sec"),
            ("s\u{1b}]8;;http://x\u{7}e\u{1b}]0;t\u{1b}\\c", "sec"),
            ("sx\u{8}ec", "sec"),
            ("s\u{1b}(Be\u{1b}7c", "sec"),
            ("s\u{1b}[3\u{1b}[0mec", "sec"),
            ("s\u{1b}[3\u{18}ec", "sec"),
            ("s\u{1b}]0;t\u{18}ec", "sec"),
            ("s\u{1b}[3\n1mec", "s\nec"),
            ("s\u{1b}Pq\u{7}x\u{1b}\\ec", "sec"),
            ("s\u{1b}[3ém\u{9b}ec", "sec"),
        ] {
            let bare = Bare::of(text);
            assert_eq!(bare.text(), seen, "{text:?}");
            assert_eq!(bare.open, None, "{text:?}");
            for (at, c) in seen.char_indices() {
                assert!(text[bare.place(at)..].starts_with(c), "{text:?}");
            }
        }
        let bare = Bare::of("a\u{1b}[31mbc\u{200b}d");
        assert_eq!(bare.range(&(1..3)), 6..8);
        assert_eq!(bare.range(&(0..4)), 0..12);
        let outside: Vec<usize> = (0..=12).map(|at| bare.outside(at)).collect();
        assert_eq!(outside, [0, 1, 1, 1, 1, 1, 6, 7, 8, 8, 8, 11, 12]);
        assert_eq!(Bare::of("\u{1b}[s").outside(2), 0);
        assert_eq!(Bare::of("ax\u{8}\u{8}b\u{8}cd").text(), "cd");
        for open in ["a\u{1b}", "a\u{1b}[3", "a\u{1b}]0;title"] {
            assert_eq!(Bare::of(open).open, Some(1), "{open:?}");
        }
    }

    #[test]
    fn of_a_long_text_no_more_is_remembered_than_what_was_removed() {
        let line = "a line that is seen\n".repeat(10_000);
        let text = format!("{line}\u{1b}[31m{line}\u{feff}{line}");
        let bare = Bare::of(&text);
        assert_eq!(bare.text(), line.repeat(3));
        assert_eq!(bare.pieces.len(), 3 + 1);
        assert_eq!(bare.place(bare.text().len()), text.len());
    }

    #[test]
    fn what_is_seen_is_what_a_page_shows() {
        let parts = [
            "\u{1b}", "[", "]", "P", "3", "m", "\\", "\u{7}", "\u{18}", "\n", "é",
        ];
        let lengthen = |texts: Vec<String>| -> Vec<String> {
            let longer = |text: &String| parts.map(|part| format!("{text}{part}"));
            texts.iter().flat_map(longer).collect()
        };
        let texts = lengthen(lengthen(lengthen(lengthen(vec!["a\u{1b}".to_owned()]))));
        for text in texts {
            let bare = Bare::of(&text);
            assert_eq!(shown(&text), shown(bare.text()), "{text:?}");
            for (at, c) in bare.text().char_indices() {
                assert!(text[bare.place(at)..].starts_with(c), "{text:?}");
            }
        }
    }
}
