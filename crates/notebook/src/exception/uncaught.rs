//! The words by which Python tells of exceptions that nothing catches.

use crate::text::shown;

/// What is said of a task of asyncio whose exception nothing asked for.
pub(crate) const UNASKED_TASK: &str = "a task ended with an exception that nothing asked for";
/// What is said of a future whose exception nothing asked for.
pub(crate) const UNASKED_FUTURE: &str = "a future ended with an exception that nothing asked for";

/// Returns whether Python tells in a text of an exception that nobody catches.
pub(crate) fn tells_of_failure(text: &str) -> bool {
    !uncaught(text).is_empty()
}

/// Finds the words by which Python tells of exceptions that nobody catches.
pub(crate) fn uncaught(text: &str) -> Vec<(String, Option<String>)> {
    let plain = shown(text);
    let lines: Vec<&str> = plain.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(what) = announced(line) else { continue };
        found.push((what, error_after(&lines[at + 1..])));
    }
    found
}

fn announced(line: &str) -> Option<String> {
    if let Some(thread) = line.strip_prefix("Exception in thread ") {
        let name = thread.trim_end_matches(':');
        return Some(format!("the thread {name} ended with an exception"));
    }
    if line.starts_with("Task exception was never retrieved") {
        return Some(UNASKED_TASK.into());
    }
    if line.starts_with("Future exception was never retrieved") {
        return Some(UNASKED_FUTURE.into());
    }
    if line.starts_with("Exception ignored in") {
        return Some("an exception was ignored by Python itself".into());
    }
    let process = line.strip_prefix("Process ")?.strip_suffix(':')?;
    let is_name = !process.is_empty() && !process.contains(' ');
    is_name.then(|| format!("the child process {process} ended with an exception"))
}

/// Returns the line that ends the traceback at the beginning of `lines`.
fn error_after(lines: &[&str]) -> Option<String> {
    let mut is_inside = false;
    for line in lines {
        if line.starts_with("Traceback (most recent call last)") {
            is_inside = true;
        } else if is_inside && !line.starts_with(' ') && !line.trim().is_empty() {
            return Some((*line).to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pythons_own_words_are_known() {
        let text = "step 1\nException in thread Thread-5 (work):\nTraceback (most recent call last):\n  File \"x\"\n    \
                    f()\nValueError: bad\nstep 2\nProcess Process-1:\nTraceback (most recent call last):\nKeyError: 'a'\n";
        let found = uncaught(text);
        let expected = [
            (
                "the thread Thread-5 (work) ended with an exception".to_owned(),
                Some("ValueError: bad".to_owned()),
            ),
            (
                "the child process Process-1 ended with an exception".to_owned(),
                Some("KeyError: 'a'".to_owned()),
            ),
        ];
        assert_eq!(found, expected);
    }
}
