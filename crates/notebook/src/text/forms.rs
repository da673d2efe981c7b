//! The forms in which a secret slips out of a notebook without anybody's meaning it.

use std::ops::Range;

use aho_corasick::AhoCorasick;
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use serde_json::Value;

use super::url::{percent, url_encoded};
use crate::files::hexadecimal;

/// Forms shorter than this stand in too much innocent text to be taken out of it.
pub(super) const SHORTEST_CHARS: usize = 4;

/// Adds a value as it is, as Python and JSON write it in quotes, as URLs and HTML have it, in hexadecimal digits and in
/// Base64.
pub(super) fn add_forms(value: &str, forms: &mut Vec<Vec<u8>>) {
    let mut add = |form: String| {
        if form.chars().count() >= SHORTEST_CHARS {
            forms.push(form.into_bytes());
        }
    };
    add(value.to_owned());
    add(value.trim().to_owned());
    quoted(value).into_iter().for_each(&mut add);
    add(html_escaped(value));
    urls(value).for_each(&mut add);
    let hexadecimal = hexadecimal(value.as_bytes());
    add(hexadecimal.to_ascii_uppercase());
    add(hexadecimal);
    base64_forms(value).for_each(add);
}

/// Returns what of Base64 is the value's own, wherever in the encoded text it stands.
pub(super) fn base64_forms(value: &str) -> impl Iterator<Item = String> {
    let encoders: [fn(&[u8]) -> String; 2] = [
        |bytes| STANDARD_NO_PAD.encode(bytes),
        |bytes| URL_SAFE_NO_PAD.encode(bytes),
    ];
    let within = move |shift| encoders.map(|encode| base64_within(value.as_bytes(), shift, encode));
    (0..3).flat_map(within)
}

/// Returns the digits of a value, and those that are its own where words of two bytes are printed, the last byte first.
pub(super) fn hexadecimal_forms(value: &str) -> impl Iterator<Item = String> {
    let words = |bytes: &[u8]| {
        let words = bytes.chunks_exact(2).map(|word| [word[1], word[0]]);
        hexadecimal(&words.collect::<Vec<_>>().concat())
    };
    let bytes = value.as_bytes();
    let later = bytes.get(1..).unwrap_or_default();
    [hexadecimal(bytes), words(bytes), words(later)].into_iter()
}

/// Texts that are looked for.
pub(super) struct Forms {
    /// Sorted, without duplicates.
    known: Vec<Vec<u8>>,
    pub(super) longest: usize,
    finder: AhoCorasick,
}

impl Forms {
    pub(super) fn new(mut known: Vec<Vec<u8>>) -> Self {
        known.sort_unstable();
        known.dedup();
        Self {
            longest: known.iter().map(Vec::len).max().unwrap_or(0),
            finder: AhoCorasick::new(&known).expect("secrets are far smaller than what the finder can hold"),
            known,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        self.finder.is_match(text)
    }

    /// Returns where they stand, also those that overlap.
    pub(super) fn find<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
        let hits = self.finder.find_overlapping_iter(text);
        hits.map(|hit| hit.start()..hit.end())
    }

    /// Returns where the end of `text` begins that is the beginning of one. That need not be where a character begins.
    pub(super) fn undecided(&self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let first = bytes.len().saturating_sub(self.longest.saturating_sub(1));
        let may_begin = |at: &usize| {
            let end = &bytes[*at..];
            let next = self.known.partition_point(|known| known.as_slice() <= end);
            self.known.get(next).is_some_and(|known| known.starts_with(end))
        };
        (first..bytes.len()).find(may_begin).unwrap_or(bytes.len())
    }
}

/// Returns what stands between the quotes: JSON's in Unicode and in ASCII, and Python's `repr` of text and of bytes, and
/// `ascii`, with the quotes that Python escapes only where both kinds stand in the text.
fn quoted(value: &str) -> Vec<String> {
    let json = Value::String(value.to_owned()).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let mut forms = vec![in_ascii(&json, utf16_escape)];
    let repr = python_escaped(value);
    let bytes: String = value.bytes().map(char::from).collect();
    let bytes = in_ascii(&python_escaped(&bytes), short_escape);
    for python in [in_ascii(&repr, short_escape), bytes, repr] {
        forms.push(python.replace('\'', "\\'"));
        forms.push(python);
    }
    forms.push(json);
    forms
}

fn python_escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '\\' => "\\\\".into(),
        '\n' => "\\n".into(),
        '\r' => "\\r".into(),
        '\t' => "\\t".into(),
        c if c.is_ascii_control() => format!("\\x{:02x}", c as u32),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

fn in_ascii(text: &str, escape: impl Fn(char) -> String) -> String {
    let ascii = |c: char| if c.is_ascii() { c.to_string() } else { escape(c) };
    text.chars().map(ascii).collect()
}

/// As JSON has it: one or two units of UTF-16.
fn utf16_escape(c: char) -> String {
    let mut units = [0; 2];
    let units = c.encode_utf16(&mut units).iter();
    units.map(|unit| format!("\\u{unit:04x}")).collect()
}

/// As Python has it: as short as the character's number allows.
fn short_escape(c: char) -> String {
    match c as u32 {
        code @ ..0x100 => format!("\\x{code:02x}"),
        code @ ..0x1_0000 => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

/// As an address has it: with small digits or large ones, `/` as it is or not, and a space by its number or as forms have it.
fn urls(value: &str) -> impl Iterator<Item = String> {
    let small: fn(u8) -> String = |byte| format!("%{byte:02x}");
    [percent, small].into_iter().flat_map(move |escaped| {
        let kept = ["", "/", " ", "/ "].into_iter();
        kept.map(move |kept| {
            url_encoded(value.as_bytes(), |byte| match byte {
                b' ' if kept.contains(' ') => "+".to_owned(),
                b'/' if kept.contains('/') => "/".to_owned(),
                byte => escaped(byte),
            })
        })
    })
}

fn html_escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '&' => "&amp;".into(),
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '"' => "&quot;".into(),
        '\'' => "&#x27;".into(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Returns what of the Base64 text is due to `value` alone when it stands `shift` bytes after a multiple of three.
fn base64_within(value: &[u8], shift: usize, encode: impl Fn(&[u8]) -> String) -> String {
    let mut padded = vec![0; shift];
    padded.extend(value);
    let text = encode(&padded);
    // Six bits a character: those that share a byte with a neighbour are not the value's own.
    let first = (shift * 8).div_ceil(6);
    let end = padded.len() * 8 / 6;
    text[first..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_as_python_json_urls_and_html_write_it() {
        let mut forms = Vec::new();
        add_forms("Tok\"en'/é9\\zQ😀", &mut forms);
        for form in [
            // repr, ascii, repr of its bytes
            r#"Tok"en\'/é9\\zQ😀"#,
            r#"Tok"en\'/\xe99\\zQ\U0001f600"#,
            r#"Tok"en\'/\xc3\xa99\\zQ\xf0\x9f\x98\x80"#,
            // json.dumps, with and without ensure_ascii
            r#"Tok\"en'/\u00e99\\zQ\ud83d\ude00"#,
            r#"Tok\"en'/é9\\zQ😀"#,
            // urllib.parse.quote, with and without safe='/'
            "Tok%22en%27/%C3%A99%5CzQ%F0%9F%98%80",
            "Tok%22en%27%2F%C3%A99%5CzQ%F0%9F%98%80",
            // encoders with small digits
            "Tok%22en%27%2f%c3%a99%5czQ%f0%9f%98%80",
            // html.escape
            "Tok&quot;en&#x27;/é9\\zQ😀",
        ] {
            assert!(forms.contains(&form.as_bytes().to_vec()), "{form}");
        }
    }

    #[test]
    fn of_a_secret_in_an_address_only_the_escapes_are_written_otherwise() {
        let mut forms = Vec::new();
        add_forms("AbC d/E", &mut forms);
        let has = |form: &str| forms.contains(&form.as_bytes().to_vec());
        for form in ["AbC%20d%2FE", "AbC%20d%2fE", "AbC+d/E", "AbC+d%2fE", "AbC%20d/E"] {
            assert!(has(form), "{form}");
        }
        let mut forms = Vec::new();
        add_forms("AbCdE", &mut forms);
        assert!(!forms.contains(&b"abcde".to_vec()), "another word");
    }
}
