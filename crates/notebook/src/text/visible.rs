//! Words of others in what we say ourselves, such as an error: nothing is left out, and what is hostile is spelled out.
//!
//! No control sequence, no character that reorders or hides others, and no workflow command is left. What a notebook
//! printed goes through [`sanitise`](super::sanitise) instead, which obeys a terminal's habits and keeps colours.

use super::{lines::reorders_or_hides, sanitise::command_breaks};

/// Returns a text as one line.
pub fn line(text: &str) -> String {
    tamed(text.replace(['\n', '\t'], " ").chars())
}

/// Returns a text with its lines and tabs kept.
pub fn block(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| tamed(line.chars())).collect();
    lines.join("\n")
}

fn tamed(line: impl Iterator<Item = char>) -> String {
    let mut shown = String::new();
    for c in line {
        match c {
            '\t' => shown.push(c),
            c if c.is_control() || reorders_or_hides(c) || matches!(c, '\u{2028}' | '\u{2029}') => {
                shown.extend(c.escape_unicode());
            }
            c => shown.push(c),
        }
    }
    for at in command_breaks(&shown).into_iter().rev() {
        shown.insert(at, ' ');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let hostile = "a\u{1b}[2Jb\u{9b}31mc\rd\u{7f}e\u{202e}f\u{0}\u{8}\u{200b}\u{2028}g";
        for shown in [line(hostile), block(hostile)] {
            assert!(
                !shown.chars().any(|c| c.is_control() || reorders_or_hides(c)),
                "{shown:?}"
            );
            assert!(shown.starts_with("a\\u{1b}[2Jb"), "{shown}");
            assert!(shown.ends_with("\\u{200b}\\u{2028}g"), "{shown}");
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
