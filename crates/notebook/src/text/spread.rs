//! Secrets in Base64 and hexadecimal digits that are wrapped, grouped or printed in columns.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use super::{
    forms::{Forms, base64_forms, hexadecimal_forms},
    made::Made,
};

/// Shorter ones stand in innocent columns of numbers and in words that follow each other.
const FEWEST_BASE64: usize = 8;
const FEWEST_DIGITS: usize = 12;
/// Longer ones do not stay in one piece until their end has come. Each of their lines is a secret by itself.
const LONGEST_VALUE: usize = 16 << 10;
/// What stands further apart belongs to something else.
const WIDEST_GAP: usize = 128;
/// Stands for whatever ends what came before.
const BREAK: char = '\n';

/// A line of `xxd`, or of `od` and `hexdump`: a place, then bytes, then perhaps what they say.
static DUMPED: LazyLock<Regex> = LazyLock::new(|| {
    const OFFSET: &str = "^[ \t]*[0-9a-fA-F]{4,16}";
    const BYTES: &str = "(?:[0-9a-fA-F]{2}){1,8}";
    let line = format!(
        "(?m){OFFSET}(?::[ \t]?(?<xxd>(?:{BYTES}(?: |\r?$))+)|[ \t]+(?<od>(?:{BYTES}(?:[ \t]{{1,2}}|\r?$))+)).*$"
    );
    Regex::new(&line).expect("the expression is constant")
});
/// The beginning of such a line.
static BEGUN: LazyLock<Regex> = LazyLock::new(|| {
    let line = "^[ \t]*(?:[0-9a-fA-F]{1,16}:?|[0-9a-fA-F]{4,16}[: \t][ \t]*(?:[0-9a-fA-F].{0,400})?)$";
    Regex::new(line).expect("the expression is constant")
});

/// Finds what is encoded and stands in several pieces.
pub(super) struct Spread {
    base64: Forms,
    digits: Forms,
}

impl Spread {
    /// Finds these values.
    pub(super) fn new(values: &[&str]) -> Self {
        let values = || values.iter().filter(|value| value.len() <= LONGEST_VALUE);
        let base64 = values().flat_map(|value| base64_forms(value));
        let digits = values().flat_map(|value| hexadecimal_forms(value));
        let base64 = base64.filter(|form| form.len() >= FEWEST_BASE64);
        let digits = digits.filter(|form| form.len() >= FEWEST_DIGITS);
        Self {
            base64: Forms::new(base64.map(String::into_bytes).collect()),
            digits: Forms::new(digits.map(String::into_bytes).collect()),
        }
    }

    /// Returns where they stand.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        if !self.base64.is_empty() {
            let seen = base64(text);
            found.extend(self.base64.find(seen.text()).map(|part| range(&seen, &part)));
        }
        if self.digits.is_empty() {
            return found;
        }
        let seen = digits(text);
        found.extend(self.digits.find(seen.text()).map(|part| range(&seen, &part)));
        let seen = dumped(text);
        let lines = self.digits.find(seen.text()).map(|part| {
            let range = range(&seen, &part);
            // What the bytes say stands at the end of the line, and without its beginning nobody knows what the line is.
            line_start(text, range.start)..line_end(text, range.end)
        });
        found.extend(lines);
        found
    }

    /// Returns where the end of `text` begins that may be the beginning of one.
    pub(super) fn undecided(&self, text: &str) -> usize {
        let mut at = text.len();
        if !self.base64.is_empty() {
            at = undecided(&self.base64, &base64(text)).unwrap_or(at);
        }
        if self.digits.is_empty() {
            return at;
        }
        // The last `0` may be the beginning of `0x`.
        let whole = text.strip_suffix('0').unwrap_or(text);
        for seen in [digits(text), digits(whole)] {
            at = at.min(undecided(&self.digits, &seen).unwrap_or(at));
        }
        // Of a line that is not over nobody knows yet what of it is bytes.
        let last = line_start(text, text.len());
        let is_begun = BEGUN.is_match(&text[last..]);
        let lines = if is_begun { &text[..last] } else { text };
        let dumped = undecided(&self.digits, &dumped(lines)).map(|at| line_start(text, at));
        let begun = is_begun.then_some(last);
        [dumped, begun].into_iter().flatten().fold(at, usize::min)
    }
}

fn undecided(forms: &Forms, seen: &Made) -> Option<usize> {
    let at = forms.undecided(seen.text());
    (at < seen.text().len()).then(|| seen.place(at))
}

fn range(seen: &Made, part: &Range<usize>) -> Range<usize> {
    seen.place(part.start)..seen.place(part.end - 1) + 1
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |before| before + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end)
}

/// Returns the characters of Base64's two alphabets.
fn base64(text: &str) -> Made {
    let mut seen = Made::default();
    let mut last = 0;
    for (at, c) in text.char_indices() {
        if !c.is_ascii_alphanumeric() && !matches!(c, '+' | '/' | '-' | '_') {
            continue;
        }
        if at - last > WIDEST_GAP {
            seen.push(BREAK, last);
        }
        last = at;
        seen.push(c, at);
    }
    seen.end(text.len())
}

/// Returns the hexadecimal digits, in small letters. `0x68`, `\x68` and `%68` are two each.
fn digits(text: &str) -> Made {
    let mut seen = Made::default();
    let mut last = 0;
    let is_prefix = |at: usize| matches!(text.as_bytes().get(at..at + 2), Some([b'0', b'x' | b'X']));
    for (at, c) in text.char_indices() {
        let digit = match c {
            'x' | 'X' => continue,
            '0' if is_prefix(at) => continue,
            c if c.is_ascii_hexdigit() => c.to_ascii_lowercase(),
            c if c.is_alphanumeric() => BREAK,
            _ => continue,
        };
        if at - last > WIDEST_GAP {
            seen.push(BREAK, last);
        }
        last = at;
        seen.push(digit, at);
    }
    seen.end(text.len())
}

/// Returns the digits of the bytes in lines that say the bytes of a file.
fn dumped(text: &str) -> Made {
    let mut seen = Made::default();
    let mut last = 0;
    for line in DUMPED.captures_iter(text) {
        let at = line.get_match().range();
        if at.start > last + 1 {
            seen.push(BREAK, last);
        }
        last = at.end;
        let Some(bytes) = line.name("xxd").or(line.name("od")) else {
            continue;
        };
        let digits = bytes
            .as_str()
            .char_indices()
            .filter(|(_, c)| c.is_ascii_hexdigit());
        digits.for_each(|(nth, c)| seen.push(c.to_ascii_lowercase(), bytes.start() + nth));
    }
    if text.len() > last + 1 {
        seen.push(BREAK, last);
    }
    seen.end(text.len())
}
