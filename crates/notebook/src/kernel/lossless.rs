//! JSON as kernels write it, which is not always JSON.
//!
//! Python names files by bytes, and where one is no UTF-8 keeps it as a surrogate. ipykernel writes such a surrogate as the
//! byte that it was, other kernels as an escape of half a pair; neither is JSON (RFC 8259), nor are `NaN` and `Infinity`. No
//! reader may lose a message for that: what is no text is written as text that says what it was, such as `\xe9`.

use serde_json::Value;

/// Reads a JSON text, whatever stands in its strings.
///
/// # Errors
///
/// Where it is no JSON even so.
pub(super) fn from_slice(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|_| serde_json::from_str(&readable(bytes)))
}

/// Writes what is no JSON within a text as a string, or a part of one, that says what it was.
fn readable(bytes: &[u8]) -> String {
    let text = escape_bytes(bytes);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut is_in_string = false;
    while let Some(next) = rest.chars().next() {
        let taken = match (is_in_string, next) {
            (true, '\\') => take_escape(rest, &mut out),
            (false, 'N' | 'I' | '-') => take_number(rest, &mut out),
            _ => {
                is_in_string ^= next == '"';
                out.push(next);
                next.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    out
}

/// Writes each byte that is no UTF-8 as `\xNN`, as a JSON string has it.
fn escape_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            out.push_str(&format!("\\\\x{byte:02x}"));
        }
    }
    out
}

/// Copies the escape at the beginning of `rest`, half a surrogate pair as its text, and returns how long it was.
fn take_escape(rest: &str, out: &mut String) -> usize {
    let unit = |at: usize| {
        let digits = rest.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    match (unit(0), unit(6)) {
        (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => {
            out.push_str(&rest[..12]);
            12
        }
        (Some(0xD800..=0xDFFF), _) => {
            out.push('\\');
            out.push_str(&rest[..6]);
            6
        }
        _ => {
            let escaped = rest.chars().nth(1).map_or(0, char::len_utf8);
            out.push_str(&rest[..=escaped]);
            1 + escaped
        }
    }
}

/// Copies what begins at `rest` outside of strings, what Python calls no finite number as a string, and returns how long it
/// was.
fn take_number(rest: &str, out: &mut String) -> usize {
    let found = ["NaN", "Infinity", "-Infinity"]
        .into_iter()
        .find(|name| rest.starts_with(name));
    match found {
        Some(name) => {
            out.push_str(&format!("\"{name}\""));
            name.len()
        }
        None => {
            out.push_str(&rest[..1]);
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_text_is_kept_as_text_that_says_what_it_was() {
        let rows: [(&[u8], Value); 8] = [
            (
                b"{\"text\":\"caf\xe9 loss: 9.9\"}",
                json!({"text": "caf\\xe9 loss: 9.9"}),
            ),
            (b"\"\xed\xa0\x80\"", json!("\\xed\\xa0\\x80")),
            (br#""a\udce9b""#, json!("a\\udce9b")),
            (br#""\ud83d\ude00\ud83d""#, json!("\u{1F600}\\ud83d")),
            (br#""\\ud800 \\\" \\""#, json!("\\ud800 \\\" \\")),
            (
                b"[NaN,-Infinity,Infinity,-1,\"NaN\xff\"]",
                json!(["NaN", "-Infinity", "Infinity", -1, "NaN\\xff"]),
            ),
            (b"\"NaN \\\"Infinity\\\" \xff\"", json!("NaN \"Infinity\" \\xff")),
            (b"\"\\u12\xe9\\ud800\"", json!(null)),
        ];
        for (bytes, expected) in rows {
            let read = from_slice(bytes);
            assert_eq!(read.unwrap_or(Value::Null), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_is_no_json_even_so_is_an_error() {
        for bytes in [&b""[..], b"{", b"\xff", b"{\"a\":\xff}", b"\"\\", b"Nan", b"-"] {
            assert!(from_slice(bytes).is_err(), "{}", bytes.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_text_in_any_bytes_comes_through(
            before in "\\PC*",
            bytes in proptest::collection::vec(128_u8..=255, 0..6),
            after in "\\PC*",
        ) {
            let string = |text: &str| serde_json::to_string(text).expect("a string");
            let (before_json, after_json) = (string(&before), string(&after));
            let mut raw = before_json.as_bytes()[..before_json.len() - 1].to_vec();
            raw.extend(&bytes);
            raw.extend(&after_json.as_bytes()[1..]);
            let read = from_slice(&raw).expect("it can be read");
            let text = read.as_str().expect("a string");
            prop_assert!(text.starts_with(&before) && text.ends_with(&after));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = from_slice(&bytes);
            let _ = readable(&bytes);
        }
    }
}
