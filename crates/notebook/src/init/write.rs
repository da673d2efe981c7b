//! YAML with remarks. A serializer would lose them, and they are what a person checks a draft by.

use std::fmt::Write;

use crate::analysis::At;

/// A `blueprint.yaml` in the making.
#[derive(Default)]
pub(super) struct Draft {
    text: String,
}

impl Draft {
    /// Adds a line at a depth of indentation.
    pub(super) fn line(&mut self, depth: usize, text: impl AsRef<str>) {
        let indent = "  ".repeat(depth);
        self.text.push_str(&format!("{indent}{}\n", text.as_ref()));
    }

    /// Adds a line whose value comes from a cell.
    pub(super) fn of_cell(&mut self, depth: usize, text: impl AsRef<str>, at: At) {
        self.remarked(depth, text, format!("cell {}", at.cell));
    }

    /// Adds a line with a remark on it.
    pub(super) fn remarked(&mut self, depth: usize, text: impl AsRef<str>, remark: impl AsRef<str>) {
        self.line(depth, format!("{}  # {}", text.as_ref(), remark.as_ref()));
    }

    /// Adds a line that is only a remark.
    pub(super) fn remark(&mut self, depth: usize, remark: impl AsRef<str>) {
        self.line(depth, format!("# {}", remark.as_ref()));
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Returns a text as a YAML scalar, in quotes where it needs some.
pub(super) fn scalar(text: &str) -> String {
    let begins = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"_./+-=@[]".contains(&b));
    let word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let meant = word.contains(&text.to_ascii_lowercase().as_str());
    if begins && plain && !meant {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// Returns a text as a YAML scalar in double quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // YAML allows fewer characters than Rust; those that it does not are escaped.
            c if c.is_control()
                || ('\u{2028}'..='\u{2029}').contains(&c)
                || ('\u{fffe}'..='\u{ffff}').contains(&c)
                || c == '\u{feff}' =>
            {
                write!(quoted, "\\u{:04x}", u32::from(c)).expect("writing to a string cannot fail");
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
