//! Takes the values of secrets out of what is stored and shown.

use serde_json::Value;

const SHOWN_INSTEAD: &str = "[redacted]";

/// Knows the values that must not be seen.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The longest first, so that a value which contains another goes as a whole.
    values: Vec<String>,
}

impl Redactor {
    /// Takes the values, and the lines of those that have several.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        const SHORTEST_LINE: usize = 8;
        let mut values = Vec::new();
        for secret in secrets {
            let lines = secret.lines().filter(|line| line.len() >= SHORTEST_LINE);
            values.extend(lines.map(str::to_owned));
            values.push(secret);
        }
        values.retain(|value| !value.is_empty());
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self { values }
    }

    /// Returns the text without the values.
    pub fn redact(&self, text: String) -> String {
        let mut text = text;
        for value in &self.values {
            if text.contains(value) {
                text = text.replace(value, SHOWN_INSTEAD);
            }
        }
        text
    }

    /// Redacts every string in `json`, keys included.
    pub fn redact_json(&self, json: &mut Value) {
        if self.values.is_empty() {
            return;
        }
        match json {
            Value::String(text) => *text = self.redact(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(fields) => {
                let taken = std::mem::take(fields);
                for (key, mut value) in taken {
                    self.redact_json(&mut value);
                    fields.insert(self.redact(key), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns how many bytes at the end of `text` could be the beginning of a value.
    pub fn open_end(&self, text: &str) -> usize {
        let open = |value: &String| {
            let longest = value.len().saturating_sub(1).min(text.len());
            let fits = |len: &usize| text.as_bytes().ends_with(&value.as_bytes()[..*len]);
            (1..=longest).rev().find(fits).unwrap_or(0)
        };
        let bytes = self.values.iter().map(open).max().unwrap_or(0);
        // Values begin at characters, so what begins one here begins at a character too.
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_long_lines_of_values_are_taken_out() {
        let redactor = Redactor::new(["hunter2".to_owned(), "first-line\nsecond-line".to_owned()]);
        assert_eq!(redactor.redact("a hunter2 b".into()), "a [redacted] b");
        assert_eq!(redactor.redact("second-line".into()), "[redacted]");
        let mut json = serde_json::json!({"hunter2": ["x hunter2"], "n": 1});
        redactor.redact_json(&mut json);
        assert_eq!(json, serde_json::json!({"[redacted]": ["x [redacted]"], "n": 1}));
    }

    #[test]
    fn the_beginning_of_a_value_at_the_end_of_a_text_is_seen() {
        let redactor = Redactor::new(["ünter2".to_owned()]);
        assert_eq!(redactor.open_end("x ünt"), "ünt".len());
        assert_eq!(redactor.open_end("x ünter2"), 0);
        assert_eq!(redactor.open_end("x"), 0);
    }
}
