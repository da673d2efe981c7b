//! A text as it was before it was put into quotes or into HTML.
//!
//! Who writes HTML escapes quotes or not, by name or by number; and what is put into quotes may be put into quotes again. To
//! list what comes of a secret is hopeless; to undo it is simple.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::made::Made;

/// How a text may have been escaped.
pub(super) struct Escape {
    whole: LazyLock<Regex>,
    /// The end of a text that may be the beginning of an escape.
    open: LazyLock<Regex>,
    character: fn(&Captures<'_>) -> Option<char>,
}

/// As HTML and XML escape, and as JSON, JavaScript and Python do in quotes.
pub(super) static ESCAPES: [Escape; 2] = [
    Escape {
        whole: LazyLock::new(|| {
            compiled(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos));")
        }),
        open: LazyLock::new(|| compiled(r"&(?:#(?:[0-9]{0,7}|[xX][0-9a-fA-F]{0,6})|[a-z]{0,4})\z")),
        character: of_html,
    },
    Escape {
        whole: LazyLock::new(|| {
            compiled(
                r#"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([nrt"'/\\]))"#,
            )
        }),
        open: LazyLock::new(|| {
            compiled(
                r"\\(?:u[0-9a-fA-F]{0,3}|u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?|U[0-9a-fA-F]{0,7}|x[0-9a-fA-F]?)?\z",
            )
        }),
        character: of_quotes,
    },
];

/// A text without escapes of one kind.
pub(super) struct Unescaped {
    made: Made,
    /// Where an escape begins that has no end yet.
    pub(super) open: Option<usize>,
    /// How much of the text stands before that.
    whole: usize,
}

impl Unescaped {
    /// `None` where nothing is escaped.
    pub(super) fn of(text: &str, escape: &Escape) -> Option<Self> {
        let mut made = Made::default();
        let mut from = 0;
        for found in escape.whole.captures_iter(text) {
            let Some(character) = (escape.character)(&found) else {
                continue;
            };
            let at = found.get_match().range();
            made.copy(text, from..at.start);
            made.push(character, at.start);
            from = at.end;
        }
        let open = escape.open.find(&text[from..]).map(|open| from + open.start());
        if from == 0 && open.is_none() {
            return None;
        }
        made.copy(text, from..text.len());
        let rest = open.map_or(0, |open| text.len() - open);
        Some(Self {
            whole: made.text().len() - rest,
            made: made.end(text.len()),
            open,
        })
    }

    pub(super) fn text(&self) -> &str {
        self.made.text()
    }

    /// Returns the text without an escape that has no end yet.
    pub(super) fn whole(&self) -> &str {
        &self.made.text()[..self.whole]
    }

    /// Returns where a place stood.
    pub(super) fn place(&self, at: usize) -> usize {
        self.made.place(at)
    }
}

fn of_html(found: &Captures<'_>) -> Option<char> {
    if let Some(decimal) = found.get(1) {
        return decimal.as_str().parse().ok().and_then(char::from_u32);
    }
    if let Some(digits) = found.get(2) {
        return number(digits.as_str()).and_then(char::from_u32);
    }
    match found.get(3)?.as_str() {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        _ => Some('\''),
    }
}

fn of_quotes(found: &Captures<'_>) -> Option<char> {
    if let (Some(high), Some(low)) = (found.get(1), found.get(2)) {
        let (high, low) = (number(high.as_str())?, number(low.as_str())?);
        return char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00));
    }
    if let Some(digits) = (3..=5).find_map(|group| found.get(group)) {
        return number(digits.as_str()).and_then(char::from_u32);
    }
    Some(match found.get(6)?.as_str() {
        "n" => '\n',
        "r" => '\r',
        "t" => '\t',
        other => other.chars().next()?,
    })
}

fn number(digits: &str) -> Option<u32> {
    u32::from_str_radix(digits, 16).ok()
}

fn compiled(expression: &str) -> Regex {
    Regex::new(expression).expect("the expression is constant")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_escaped_is_found_where_it_stood() {
        let [html, quotes] = &ESCAPES;
        for (escape, text, seen) in [
            (html, "a&amp;&#39;&#x27;&apos;b&nbsp;", "a&'''b&nbsp;"),
            (quotes, r#"\"\\n\n\u00e9\ud83d\ude00\x41\/\q"#, "\"\\n\né😀A/\\q"),
        ] {
            let unescaped = Unescaped::of(text, escape).expect("it is escaped");
            assert_eq!(unescaped.text(), seen);
            assert_eq!(unescaped.open, None, "{text}");
            assert_eq!(unescaped.place(seen.len()), text.len());
        }
        let unescaped = Unescaped::of("x&amp;y&#3", html).expect("it is escaped");
        assert_eq!((unescaped.whole(), unescaped.open), ("x&y", Some(7)));
        let places: Vec<usize> = (0..=3).map(|at| unescaped.place(at)).collect();
        assert_eq!(places, [0, 1, 6, 7]);
        for open in [r"a\", r"a\u00", r"a\ud83d", r"a\ud83d\", r"a\ud83d\ude", r"a\x4"] {
            let unescaped = Unescaped::of(open, quotes).expect("it may be escaped");
            assert_eq!(unescaped.open, Some(1), "{open}");
        }
        for plain in ["plain & simple text", "50% é"] {
            assert!(
                ESCAPES
                    .iter()
                    .all(|escape| Unescaped::of(plain, escape).is_none())
            );
        }
        assert_eq!(Unescaped::of(r"a\\", quotes).and_then(|text| text.open), None);
    }
}
