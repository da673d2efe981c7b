//! Names as Kubernetes wants them: of blueprints, profiles and queues.

/// A text that cannot be a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a name: {rule}")]
pub struct ParseNameError {
    text: String,
    rule: &'static str,
}

/// Checks that a text is a DNS subdomain as Kubernetes has it: 1 to 63 of `a-z`, `0-9`, `-` and `.`, with a letter or digit at
/// both ends.
///
/// # Errors
/// What is no such name, with the rule that it breaks.
pub fn check(text: &str) -> Result<(), ParseNameError> {
    let refuse = |rule| {
        Err(ParseNameError {
            text: text.into(),
            rule,
        })
    };
    if text.is_empty() || text.len() > 63 {
        return refuse("it must have 1 to 63 characters");
    }
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    if !text.bytes().all(inner) {
        return refuse("only a-z, 0-9, `-` and `.` are allowed");
    }
    let end = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    if !end(text.bytes().next()) || !end(text.bytes().last()) {
        return refuse("it must start and end with a letter or a digit");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_labels() {
        for good in ["nano-lm", "qwen2.5-alpaca", "a", "9"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", "Nano", "a b", "-a", "a-", ".", "a/b", "ä", &"x".repeat(64)] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
