//! What printed text says of errors.

use crate::text::shown;

/// Returns the last line that is not blank. Of a progress bar that is its last state.
pub(crate) fn last_line(text: &str) -> Option<String> {
    let plain = shown(text);
    let mut parts = plain.rsplit(['\n', '\r']).map(str::trim);
    parts.find(|line| !line.is_empty()).map(shortened)
}

/// Returns the line that names the last error in the text: the end of a Python traceback, or a line that says so.
pub(crate) fn last_error(text: &str) -> Option<String> {
    let plain = shown(text);
    let lines: Vec<&str> = plain.lines().collect();
    let last = lines
        .iter()
        .rev()
        .find(|line| ends_traceback(line) || says_error(line))?;
    Some(shortened(without_prefix(last)))
}

/// Returns the last error that the text names, or its last line.
pub(crate) fn last_error_or_line(text: &str) -> Option<String> {
    last_error(text).or_else(|| last_line(text))
}

/// Returns whether the line looks like `module.SomeError: why`.
fn ends_traceback(line: &str) -> bool {
    let line = without_prefix(line);
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    let is_alone = line.len() == name.len() || line[name.len()..].starts_with(':');
    let is_error = ["Error", "Exception", "Interrupt", "Exit", "Warning"]
        .iter()
        .any(|end| last.ends_with(end));
    is_name && is_alone && is_error && !last.ends_with("Warning")
}

fn says_error(line: &str) -> bool {
    let line = line.trim_start().to_ascii_lowercase();
    ["error:", "fatal:", "fatal error:", "panic:"]
        .iter()
        .any(|start| line.starts_with(start))
        || line.contains(": error:")
        || line.ends_with("command not found")
        || line.contains("no such file or directory")
}

/// Takes off what torchrun, JAX launchers and pod logs put before each line: `[rank0]: `, `[node-0] `.
fn without_prefix(line: &str) -> &str {
    let line = line.trim();
    match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((tag, rest)) if tag.len() <= 40 && !rest.trim().is_empty() => {
            rest.trim_start_matches(':').trim()
        }
        Some(_) | None => line,
    }
}

/// Returns the line, a very long one without its middle: its beginning says what, its end often why.
pub(crate) fn shortened(line: &str) -> String {
    const LONGEST: usize = 600;
    const HEAD: usize = 400;
    let count = line.chars().count();
    if count <= LONGEST {
        return line.to_owned();
    }
    let left_out = count - LONGEST;
    let head: String = line.chars().take(HEAD).collect();
    let tail: String = line.chars().skip(HEAD + left_out).collect();
    format!("{head} … {left_out} characters left out … {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_child_is_found_among_what_it_printed() {
        for (text, expected) in [
            (
                "Traceback (most recent call last):\n  File \"t.py\"\nValueError: no data\n",
                "ValueError: no data",
            ),
            (
                "urllib.error.URLError: <urlopen error>\nwrote 0 files\n",
                "urllib.error.URLError: <urlopen error>",
            ),
            (
                "[rank0]: RuntimeError: boom\nW0101 exiting\n",
                "RuntimeError: boom",
            ),
            ("ok\nfatal: not a git repository\n", "fatal: not a git repository"),
            ("sh: 1: nosuch: not found\n", "sh: 1: nosuch: not found"),
            ("10%\r50%\r99%", "99%"),
        ] {
            assert_eq!(last_error_or_line(text).as_deref(), Some(expected));
        }
        assert_eq!(last_error_or_line(" \n"), None);
    }

    #[test]
    fn of_a_very_long_line_both_ends_are_kept() {
        let line = format!("BEGIN {} END", "é".repeat(1000));
        let short = shortened(&line);
        assert!(
            short.starts_with("BEGIN é") && short.ends_with("é END"),
            "{short}"
        );
        assert!(short.contains(" … 410 characters left out … "), "{short}");
        assert_eq!(shortened("short"), "short");
    }

    #[test]
    fn ordinary_lines_are_no_errors() {
        for line in ["loss: 0.3", "DeprecationWarning: old", "Error rate 0.1", "done"] {
            assert_eq!(last_error(line), None, "{line}");
        }
    }
}
