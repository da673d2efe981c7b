//! Values of the settings that cannot be wrong once they are read.

use std::path::PathBuf;

use blueproof_diagnostic::yaml::{Decode, Problems, Schema, Value, YamlNode};
use blueproof_scale_set::ConfigUrl;
use serde_json::json;

/// The most characters of a scale set's name, as GitHub's own controller has it.
const MOST_OF_NAME: usize = 45;
/// The most characters of a label.
const MOST_OF_LABEL: usize = 255;

/// The name of a scale set: 1 to 45 letters, digits, `-`, `_` and `.`, the first a letter or a digit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleSetName(pub String);

/// A label: 1 to 255 characters without a comma or a line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelName(pub String);

/// The URL of an organisation, a repository or an enterprise.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetUrl(pub ConfigUrl);

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAddress(pub String);

/// The path of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePath(pub PathBuf);

/// Reads a text that must be something.
fn text<T>(
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

fn is_safe(text: &str) -> bool {
    let loopback = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    let is_secret_there =
        text.starts_with("https://") || loopback.iter().any(|address| text.starts_with(address));
    is_secret_there && text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['@', '?', '#'])
}

impl ScaleSetName {
    /// Returns a name, where it is one.
    pub fn of(text: &str) -> Option<Self> {
        let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let begins_well = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric());
        (begins_well && text.len() <= MOST_OF_NAME && text.bytes().all(is_usual))
            .then(|| Self(text.to_owned()))
    }
}

impl LabelName {
    /// Returns a label, where it is one.
    pub fn of(text: &str) -> Option<Self> {
        let is_one = (1..=MOST_OF_LABEL).contains(&text.chars().count())
            && !text.contains(|letter: char| letter == ',' || letter.is_control());
        is_one.then(|| Self(text.to_owned()))
    }
}

impl Decode for ScaleSetName {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        const HINT: &str = "write 1 to 45 letters, digits, `-`, `_` and `.`, such as `oracle-vm-gpu-a10-1`";
        text(node, problems, HINT, Self::of)
    }

    fn schema() -> Schema {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$", "maxLength": MOST_OF_NAME })
    }
}

impl Decode for LabelName {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        text(
            node,
            problems,
            "write a label of 1 to 255 characters without a comma",
            Self::of,
        )
    }

    fn schema() -> Schema {
        json!({ "type": "string", "minLength": 1, "maxLength": MOST_OF_LABEL })
    }
}

impl Decode for TargetUrl {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        const HINT: &str = "write https://github.com/ORGANISATION or https://github.com/OWNER/NAME";
        text(node, problems, HINT, |text| {
            is_safe(text)
                .then(|| ConfigUrl::parse(text).ok())
                .flatten()
                .map(Self)
        })
    }

    fn schema() -> Schema {
        json!({ "type": "string", "pattern": "^https?://[^/]+/." })
    }
}

impl Decode for ApiAddress {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        const HINT: &str = "write https://HOST, or http:// for a loopback address";
        text(node, problems, HINT, |text| {
            is_safe(text).then(|| Self(text.trim_end_matches('/').to_owned()))
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
