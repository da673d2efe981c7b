//! A text without what is removed from it before anybody sees it, and where each part of that stood.
//!
//! A secret may be cut by colours and characters without width, and be whole again once they are gone.

use std::{borrow::Cow, iter::Peekable, ops::Range, str::CharIndices};

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
        let (mut seen, mut open) = (Seen::default(), None);
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '\u{1b}' if !skip_sequence(&mut chars) => open = Some(at),
                '\u{8}' => seen.take_back(),
                c if is_removed(c) => {}
                c => seen.push(c, at),
            }
        }
        seen.pieces.push((seen.text.len(), open.unwrap_or(text.len())));
        Self {
            text: Cow::Owned(seen.text),
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

    /// Returns where a part stood, with what was removed from within it.
    pub(super) fn range(&self, part: &Range<usize>) -> Range<usize> {
        let end = part.end.checked_sub(1).map_or(0, |last| self.place(last) + 1);
        self.place(part.start)..end.max(self.place(part.start))
    }
}

/// What is seen so far.
#[derive(Default)]
struct Seen {
    text: String,
    pieces: Vec<(usize, usize)>,
}

impl Seen {
    fn push(&mut self, c: char, at: usize) {
        let end = self.text.len();
        let follows = self
            .pieces
            .last()
            .is_some_and(|(seen, stood)| stood + (end - seen) == at);
        if !follows {
            self.pieces.push((end, at));
        }
        self.text.push(c);
    }

    fn take_back(&mut self) {
        if self.text.ends_with('\n') {
            return;
        }
        self.text.pop();
        while self.pieces.pop_if(|(seen, _)| *seen >= self.text.len()).is_some() {}
    }
}

fn is_removed(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t') || reorders_or_hides(c)
}

/// Skips what follows an escape, and returns whether it came to its end.
fn skip_sequence(chars: &mut Peekable<CharIndices<'_>>) -> bool {
    let is_final = |c: char| matches!(c, '\u{40}'..='\u{7e}');
    match chars.next() {
        Some((_, '[')) => chars.any(|(_, c)| is_final(c)),
        Some((_, ']' | 'P' | 'X' | '^' | '_')) => loop {
            match chars.next() {
                Some((_, '\u{7}')) => break true,
                Some((_, '\u{1b}')) => {
                    chars.next_if(|(_, c)| *c == '\\');
                    break true;
                }
                Some(_) => {}
                None => break false,
            }
        },
        Some((_, ' '..='/')) => chars.any(|(_, c)| !matches!(c, ' '..='/')),
        Some(_) => true,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_is_found_where_it_stood() {
        for (text, seen) in [
            ("plain\r\n\ttext é", "plain\r\n\ttext é"),
            ("s\u{1b}[31me\u{1b}[0mc", "sec"),
            ("s\u{200b}e\u{2060}c\u{0}\u{7f}", "sec"),
            ("s\u{1b}]8;;http://x\u{7}e\u{1b}]0;t\u{1b}\\c", "sec"),
            ("sx\u{8}ec", "sec"),
            ("s\u{1b}(Be\u{1b}7c", "sec"),
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
}
