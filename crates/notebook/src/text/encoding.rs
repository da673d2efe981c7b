//! Text in another encoding than UTF-8, told by its bytes.

use std::path::Path;

use super::shell_word;

/// So many bytes show which half of each character is a NUL.
const LOOKED_AT: usize = 64;

/// Returns the text without its byte order mark; `None` where it is not in UTF-8. UTF-16 that holds ASCII alone would pass for
/// UTF-8 but for its NULs, which no text has.
pub(crate) fn utf_8(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    (!text.starts_with('\0') && text.as_bytes().get(1) != Some(&0)).then_some(text)
}

/// Returns the command that makes text in UTF-8 of a file of these bytes.
pub(crate) fn hint(path: &Path, bytes: &[u8]) -> String {
    let file = shell_word(path);
    match name(bytes) {
        "latin1" => format!("iconv -f latin1 -t utf-8 {file}, if it was written with another encoding"),
        name => format!("iconv -f {name} -t utf-8 {file} writes it in UTF-8 to the standard output"),
    }
}

/// Returns what iconv calls the encoding that text in these bytes, which are no UTF-8, is most likely in.
fn name(bytes: &[u8]) -> &'static str {
    let start = &bytes[..bytes.len().min(LOOKED_AT)];
    let nuls = |half: usize| {
        start
            .iter()
            .skip(half)
            .step_by(2)
            .filter(|byte| **byte == 0)
            .count()
    };
    match start {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => "utf-32",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "utf-16",
        _ if nuls(1) * 4 > start.len() => "utf-16le",
        _ if nuls(0) * 4 > start.len() => "utf-16be",
        _ => "latin1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_is_told_by_its_mark_or_its_nuls() {
        let little: Vec<u8> = "{\"cells\": []}"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let big: Vec<u8> = "{\"cells\": []}"
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect();
        let marked: Vec<u8> = [0xff, 0xfe].into_iter().chain(little.clone()).collect();
        for (bytes, expected) in [
            (&marked[..], "iconv -f utf-16 -t utf-8 n.ipynb"),
            (&little[..], "iconv -f utf-16le -t utf-8 n.ipynb"),
            (&big[..], "iconv -f utf-16be -t utf-8 n.ipynb"),
            (b"{\"caf\xe9\": 1}", "iconv -f latin1 -t utf-8 n.ipynb"),
        ] {
            assert_eq!(utf_8(bytes), None);
            let hint = hint(Path::new("n.ipynb"), bytes);
            assert!(hint.starts_with(expected), "{hint}");
        }
        assert_eq!(utf_8("\u{feff}caf\u{e9}".as_bytes()), Some("caf\u{e9}"));
    }
}
