//! A text without what is removed from it before anybody sees it, and where each part of that stood.
//!
//! A secret may be cut by colours and characters without width, and be whole again once they are gone.

use std::{borrow::Cow, iter::Peekable, ops::Range, str::CharIndices};

use super::lines::reorders_or_hides;

/// A text as it is seen.
pub(super) struct Bare<'t> {
    text: Cow<'t, str>,
    /// Where each byte stood, and where the text ended; nothing where all of it is seen.
    places: Vec<usize>,
    /// Where a sequence begins that has no end yet.
    pub(super) open: Option<usize>,
}

impl<'t> Bare<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        if !text.chars().any(is_removed) {
            return Self {
                text: Cow::Borrowed(text),
                places: Vec::new(),
                open: None,
            };
        }
        let (mut seen, mut places, mut open) = (String::new(), Vec::new(), None);
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '\u{1b}' if !skip_sequence(&mut chars) => open = Some(at),
                '\u{8}' if !seen.ends_with('\n') => {
                    seen.pop();
                    places.truncate(seen.len());
                }
                c if is_removed(c) => {}
                c => {
                    seen.push(c);
                    places.extend(at..at + c.len_utf8());
                }
            }
        }
        places.push(open.unwrap_or(text.len()));
        Self {
            text: Cow::Owned(seen),
            places,
            open,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether something was removed.
    pub(super) fn differs(&self) -> bool {
        !self.places.is_empty()
    }

    /// Returns where a place stood.
    pub(super) fn place(&self, at: usize) -> usize {
        self.places.get(at).copied().unwrap_or(at)
    }

    /// Returns where a part stood, with what was removed from within it.
    pub(super) fn range(&self, part: &Range<usize>) -> Range<usize> {
        let end = part.end.checked_sub(1).map_or(0, |last| self.place(last) + 1);
        self.place(part.start)..end.max(self.place(part.start))
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
        for open in ["a\u{1b}", "a\u{1b}[3", "a\u{1b}]0;title"] {
            assert_eq!(Bare::of(open).open, Some(1), "{open:?}");
        }
    }
}
