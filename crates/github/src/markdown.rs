//! Markdown of ours around words of others, for check runs and comments.
//!
//! Whatever comes from a notebook, a blueprint, a cluster or a branch is hostile. One rule holds for it: it reaches Markdown only inside
//! code, as a span ([`code`]) or as a block ([`fence`]). Inside code GitHub links no mention, no reference to an issue or a commit and no
//! address, shows no image and no HTML, and begins no block; escaping character by character would have to know every extension that
//! GitHub has and will have. Spans and fences are longer than any run of backticks in them. A pipe, which ends a table's cell even in code,
//! becomes the line `│`.
//!
//! Where GitHub takes plain text (titles, annotations) there is no code to be inside of: [`plain`] separates there, by a space without
//! width, what would be linked if it were shown as Markdown one day.
//!
//! In both, characters that reorder or hide others are spelled out, and what is shaped like a token is left out. A text is cut before it is
//! put inside code, so that a cut never opens what it is in; a document drops whole blocks, and says so.

mod document;
mod secrets;

use blueproof_diagnostic::character::is_unseen;

pub(crate) use document::Document;

/// The most characters of a text within a line.
const SPAN_AT_MOST: usize = 400;

/// The space without width that keeps apart what GitHub would link.
const APART: char = '\u{200b}';

/// Returns a text of others as a span of code on one line.
pub(crate) fn code(text: &str) -> String {
    let text = cut(&line(text), SPAN_AT_MOST).replace('|', "│");
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let ticks = "`".repeat(longest_run(&text) + 1);
    // A space at both ends is taken away again: it keeps backticks of the text from those around it.
    match text.starts_with('`') || text.ends_with('`') {
        true => format!("{ticks} {text} {ticks}"),
        false => format!("{ticks}{text}{ticks}"),
    }
}

/// Returns a text of others as a block of code, cut to so many characters, with a note inside where it was cut.
pub(crate) fn fence(text: &str, at_most: usize) -> String {
    let visible = visible(text, LineBreaks::Kept);
    let mut shown = first(&visible, at_most).to_owned();
    let left_out = visible.chars().count() - shown.chars().count();
    if left_out > 0 {
        shown += &format!("\n… {left_out} characters more are left out");
    }
    let ticks = "`".repeat((longest_run(&shown) + 1).max(3));
    format!("{ticks}text\n{shown}\n{ticks}")
}

/// Returns a text of others for where GitHub takes plain text: one line of at most so many characters, with nothing in it that would be
/// linked.
pub(crate) fn plain(text: &str, at_most: usize) -> String {
    cut(&separated(&line(text)), at_most)
}

/// Returns a text of others on one line, with what is hidden spelled out.
pub(crate) fn line(text: &str) -> String {
    let shown = visible(text, LineBreaks::Joined);
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first characters of a text, with `…` as the last one where it was cut.
pub(crate) fn cut(text: &str, at_most: usize) -> String {
    if text.chars().count() <= at_most {
        return text.to_owned();
    }
    format!("{}…", first(text, at_most.saturating_sub(1)))
}

fn first(text: &str, at_most: usize) -> &str {
    let end = text.char_indices().nth(at_most).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// What becomes of line breaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineBreaks {
    Kept,
    Joined,
}

fn visible(text: &str, breaks: LineBreaks) -> String {
    let text = secrets::without_tokens(text);
    let mut shown = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        match c {
            '\n' | '\t' if breaks == LineBreaks::Joined => shown.push(' '),
            '\n' | '\t' => shown.push(c),
            _ if c.is_control() || is_unseen(c) => shown.extend(c.escape_unicode()),
            _ => shown.push(c),
        }
    }
    shown
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or_default()
}

/// Digits that are a commit to GitHub are at least so many.
const SHORTEST_COMMIT: usize = 7;

/// Returns a text in which nothing is a mention, a reference, a commit, an address or markup.
fn separated(text: &str) -> String {
    let mut apart = String::with_capacity(text.len());
    let mut n_digits = 0;
    for c in text.chars() {
        n_digits = if c.is_ascii_hexdigit() { n_digits + 1 } else { 0 };
        if n_digits == SHORTEST_COMMIT {
            apart.push(APART);
            n_digits = 1;
        }
        if c == '/' && apart.ends_with(':') {
            apart.push(APART);
        }
        apart.push(c);
        if matches!(c, '@' | '#' | '<' | ']' | '&') || ends_with(&apart, "www.") || ends_with(&apart, "gh-") {
            apart.push(APART);
        }
    }
    apart
}

/// Returns whether a text ends with another of ASCII, in whatever case.
fn ends_with(text: &str, end: &str) -> bool {
    let from = text.len().checked_sub(end.len());
    let last = from.and_then(|from| text.as_bytes().get(from..));
    last.is_some_and(|last| last.eq_ignore_ascii_case(end.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_longer_than_what_could_end_it() {
        for (text, expected) in [
            ("plain", "`plain`"),
            ("", "(empty)"),
            (" \n ", "(empty)"),
            ("a`b", "``a`b``"),
            ("``", "``` `` ```"),
            ("a|b\nc", "`a│b c`"),
            ("@ada fixes #1", "`@ada fixes #1`"),
            ("x\u{202e}y", "`x\\u{202e}y`"),
        ] {
            assert_eq!(code(text), expected, "{text:?}");
        }
        assert_eq!(code(&"ü".repeat(500)).chars().count(), SPAN_AT_MOST + 2);
    }

    #[test]
    fn a_block_is_longer_than_what_could_end_it_and_says_where_it_was_cut() {
        assert_eq!(
            fence("a\n```\n# b\u{1b}[1m", 99),
            "````text\na\n```\n# b\\u{1b}[1m\n````"
        );
        assert_eq!(
            fence("üüü", 2),
            "```text\nüü\n… 1 characters more are left out\n```"
        );
    }

    #[test]
    fn plain_text_has_nothing_that_could_be_linked() {
        for (text, expected) in [
            ("loss 1.9: too high", "loss 1.9: too high"),
            ("@ada", "@|ada"),
            ("fixes kubeflow/trainer#12", "fixes kubeflow/trainer#|12"),
            ("Gh-12", "Gh-|12"),
            ("https://e.org www.e.org", "https:|//e.org www.|e.org"),
            ("1a2b3c4d5e", "1a2b3c|4d5e"),
            ("[a](b) <b>", "[a]|(b) <|b>"),
            ("a\nb\tc", "a b c"),
        ] {
            assert_eq!(plain(text, 99), expected.replace('|', "\u{200b}"));
        }
        assert_eq!(plain("abcdef", 4), "abc…");
    }
}
