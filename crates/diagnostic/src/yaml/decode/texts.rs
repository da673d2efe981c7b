//! Texts that must be something, and those of them that several documents have.

use std::path::PathBuf;

use serde_json::json;

use super::{Decode, Problems, Schema};
use crate::yaml::node::{Value, YamlNode};

/// The address of a server: with TLS, or on this machine. It does not end with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress(pub String);

/// The path of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePath(pub PathBuf);

/// Reads a text that must be something: where `read` takes it for nothing, `hint` says what to write.
pub fn text<T>(
    node: &YamlNode,
    problems: &mut Problems<'_>,
    hint: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let Value::Text(text) = &node.value else {
        problems.wrong_type(node, "a text");
        return None;
    };
    let value = read(text);
    if value.is_none() {
        problems.bad_value(node.spot, format!("`{text}` is not allowed here"), hint);
    }
    value
}

/// Returns whether a text can be an address, and carries no user, query or fragment.
pub fn is_plain_address(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['@', '?', '#'])
}

impl ServerAddress {
    /// Returns whether a text is an address to which secrets may be sent.
    pub fn is_safe(text: &str) -> bool {
        let loopback = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
        let is_secret_there =
            text.starts_with("https://") || loopback.iter().any(|address| text.starts_with(address));
        is_secret_there && is_plain_address(text)
    }
}

impl Decode for ServerAddress {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        const HINT: &str = "write https://HOST, or http:// for a loopback address";
        text(node, problems, HINT, |text| {
            Self::is_safe(text).then(|| Self(text.trim_end_matches('/').to_owned()))
        })
    }

    fn schema() -> Schema {
        json!({ "type": "string", "pattern": "^https?://" })
    }
}

impl Decode for FilePath {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        text(node, problems, "write the path of a file", |text| {
            (!text.is_empty()).then(|| Self(text.into()))
        })
    }

    fn schema() -> Schema {
        json!({ "type": "string", "minLength": 1 })
    }
}
