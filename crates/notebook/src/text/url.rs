//! Text in addresses.

/// Writes bytes as a part of an address: those that mean nothing there as they are, others by `escape`, which mostly is
/// [`percent`]. <https://www.rfc-editor.org/rfc/rfc3986#section-2.3>
pub(crate) fn url_encoded(bytes: &[u8], escape: impl Fn(u8) -> String) -> String {
    let byte = |byte: &u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(*byte).to_string(),
        byte => escape(*byte),
    };
    bytes.iter().map(byte).collect()
}

/// Returns a byte as an address escapes it.
pub(crate) fn percent(byte: u8) -> String {
    format!("%{byte:02X}")
}
