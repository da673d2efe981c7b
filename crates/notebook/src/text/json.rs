//! JSON that a terminal, a log or a step of a CI job may be given: nothing in it is obeyed, and its value is what it was.
//!
//! A command that must begin a line, such as `::name::`, needs no care here: a line of JSON begins with a text's quotation
//! mark, never with its words.

use super::lines::reorders_or_hides;

/// Returns the same document with an escape for whatever reads as something else than it is.
///
/// All of that stands in texts, because nothing of JSON itself is such a character.
pub fn harmless_json(json: &str) -> String {
    let mut harmless = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}') || reorders_or_hides(c) {
            push_escaped(&mut harmless, c);
        } else {
            harmless.push(c);
        }
    }
    harmless
        .replace("##[", "#\\u0023[")
        .replace("##vso[", "#\\u0023vso[")
}

fn push_escaped(json: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        json.push_str(&format!("\\u{unit:04x}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_would_be_obeyed_is_escaped_and_means_the_same() {
        let rows = [
            ("C1 controls", "a\u{9b}31mb\u{85}", r"a\u009b31mb\u0085"),
            (
                "text that runs backwards",
                "a\u{202e}b\u{2066}c",
                r"a\u202eb\u2066c",
            ),
            ("line breaks of some readers", "a\u{2028}b", r"a\u2028b"),
            ("tags", "a\u{e0041}", r"a\udb40\udc41"),
            (
                "commands",
                "##[group] ##vso[x]y",
                r"#\u0023[group] #\u0023vso[x]y",
            ),
            ("a command behind a mark", "###[group]", r"##\u0023[group]"),
            ("a command behind a backslash", r"\##[group]", r"\\#\u0023[group]"),
            ("prose stays", "## Title é 🙂", "## Title é 🙂"),
        ];
        for (why, text, written) in rows {
            let harmless = harmless_json(&json!({ "text": text }).to_string());
            assert_eq!(harmless, format!("{{\"text\":\"{written}\"}}"), "{why}");
            let back: Value = serde_json::from_str(&harmless).expect("JSON");
            assert_eq!(back["text"], text, "{why}");
        }
    }
}
