//! An installer's own words: looked through, and made fit to be shown.

use std::sync::LazyLock;

use blueproof_diagnostic::Diagnostic;
use regex::Regex;

/// How an installer's lines begin that tell only how far it is.
const GOES_ON: [&str; 5] = [
    "Looking in ",
    "Collecting ",
    "Downloading ",
    "Using cached ",
    "Requirement already ",
];

/// The most lines of an installer that are passed on.
const SHOWN_LINES: usize = 12;
/// The most characters of such a line.
const SHOWN_CHARS: usize = 300;

/// Returns the first line in which one of these words stands, which are in small letters.
pub(super) fn said<'l>(lines: &'l [String], words: &[&str]) -> Option<&'l str> {
    let says = |line: &&String| {
        let lower = line.to_lowercase();
        words.iter().any(|word| lower.contains(word))
    };
    lines.iter().find(says).map(String::as_str)
}

/// Adds the installer's own words: its errors where it marks them, else its last lines.
pub(super) fn with_words(mut diagnostic: Diagnostic, lines: &[String]) -> Diagnostic {
    let marked = |line: &&String| line.starts_with("ERROR") || line.starts_with("error");
    let first = lines.iter().position(|line| marked(&line) || line.contains('×'));
    let from = first.unwrap_or(lines.len().saturating_sub(SHOWN_LINES));
    let mut shown: Vec<&str> = Vec::new();
    for line in lines[from..].iter().map(|line| line.trim()) {
        // It is asked once more what an index answers, and then says the same again.
        if !shown.contains(&line) && !GOES_ON.iter().any(|word| line.starts_with(word)) {
            shown.push(line);
        }
    }
    for line in shown.into_iter().take(SHOWN_LINES) {
        diagnostic = diagnostic.because(masked(line));
    }
    diagnostic
}

/// Returns what an installer said, fit to be shown: without user names and passwords of URLs, and not too long.
pub(super) fn masked(text: &str) -> String {
    static CREDENTIALS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"://[^/@\s]+@").expect("the pattern is one"));
    let text = CREDENTIALS.replace_all(text, "://***@");
    let count = text.chars().count();
    if count <= SHOWN_CHARS {
        return text.into_owned();
    }
    // What is missing stands at the beginning, and the newest of its versions at the end.
    let head: String = text.chars().take(SHOWN_CHARS * 2 / 3).collect();
    let tail: String = text.chars().skip(count - SHOWN_CHARS / 3).collect();
    format!("{head} … {tail}")
}

/// Returns the reason within pip's account of a connection that failed.
pub(super) fn reason(line: &str) -> &str {
    let inner = line
        .split_once(" object at 0x")
        .and_then(|(_, rest)| rest.split_once(">: "));
    inner.map_or(line.trim(), |(_, words)| {
        words.split("')").next().unwrap_or(words)
    })
}

#[cfg(test)]
mod tests {
    use blueproof_diagnostic::Code;

    use super::*;

    #[test]
    fn passwords_of_an_index_are_not_passed_on() {
        assert_eq!(
            masked("GET https://me:secret@host/simple/x"),
            "GET https://***@host/simple/x"
        );
    }

    #[test]
    fn the_reason_of_a_failed_connection_is_told_without_the_machinery_around_it() {
        let pip = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<pip.HTTPConnection object at 0x7fe5>: Failed to establish a new connection: [Errno 111] Connection refused')': /simple/x/";
        assert_eq!(
            reason(pip),
            "Failed to establish a new connection: [Errno 111] Connection refused"
        );
        assert_eq!(reason("  cause: dns error"), "cause: dns error");
        assert!(masked(&"é".repeat(5000)).chars().count() < SHOWN_CHARS + 5);
    }

    #[test]
    fn an_installers_words_are_passed_on_once_and_without_how_far_it_was() {
        let lines = [
            "ERROR: No matching distribution found for nosuch",
            "Looking in indexes: https://example.org/simple",
            "Collecting ipykernel",
            "  Downloading ipykernel-7.4.0-py3-none-any.whl (123 kB)",
            "ERROR: No matching distribution found for nosuch",
            "The conflict is caused by:",
        ];
        let told = with_words(
            Diagnostic::error(Code::PackageMissing, "none"),
            &lines.map(str::to_owned),
        );
        assert_eq!(told.causes, [lines[0], lines[5]]);
    }
}
