//! Text of others, made harmless: a notebook's words reach terminals and CI logs here.
//!
//! No control sequence, no character that turns the order of others around, and no workflow command of GitHub
//! Actions or Azure Pipelines, which obey `::` at the start of a line, and `##[` and `##vso[` anywhere.

/// Returns a text as one line.
pub(crate) fn line(text: &str) -> String {
    tamed(
        &text
            .chars()
            .map(|c| visible(c, Breaks::Shown))
            .collect::<String>(),
    )
}

/// Returns a text with its lines and tabs kept.
pub(crate) fn block(text: &str) -> String {
    let mut lines = text
        .lines()
        .map(|line| tamed(&line.chars().map(|c| visible(c, Breaks::Kept)).collect::<String>()));
    let first = lines.next().unwrap_or_default();
    lines.fold(first, |text, line| format!("{text}\n{line}"))
}

/// What becomes of line breaks and tabs.
#[derive(Clone, Copy)]
enum Breaks {
    Shown,
    Kept,
}

fn visible(c: char, breaks: Breaks) -> String {
    match (c, breaks) {
        ('\t' | '\n', Breaks::Kept) => c.into(),
        ('\n', Breaks::Shown) => " ".into(),
        ('\t', Breaks::Shown) => " ".into(),
        _ if c.is_control() || reorders(c) => c.escape_unicode().to_string(),
        _ => c.into(),
    }
}

/// Returns whether a character changes the order in which others are shown, or is shown as a line break.
fn reorders(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn tamed(line: &str) -> String {
    let line = line.replace("##[", "# #[").replace("##vso[", "# #vso[");
    let start = line.len() - line.trim_start().len();
    match line[start..].strip_prefix("::") {
        Some(rest) => format!("{}: :{rest}", &line[..start]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let hostile = "a\u{1b}[2Jb\u{9b}31mc\rd\u{7f}e\u{202e}f\u{0}\u{8}";
        for shown in [line(hostile), block(hostile)] {
            assert!(!shown.chars().any(|c| c.is_control() || reorders(c)), "{shown:?}");
            assert!(shown.starts_with("a\\u{1b}[2Jb"), "{shown}");
        }
        assert_eq!(line("one\ntwo\tthree"), "one two three");
        assert_eq!(block("one\n\ttwo\n"), "one\n\ttwo");
    }

    #[test]
    fn nothing_that_a_ci_step_obeys_is_left() {
        assert_eq!(block("ok\n  ::set-env name=A::b"), "ok\n  : :set-env name=A::b");
        assert_eq!(
            line("::error::x ##[add-path]/evil"),
            ": :error::x # #[add-path]/evil"
        );
        assert_eq!(line("std::vec is fine"), "std::vec is fine");
    }
}
