//! Values of the settings that cannot be wrong once they are read.

use blueproof_diagnostic::yaml::{Decode, Problems, Schema, ServerAddress, YamlNode, text};
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
            ServerAddress::is_safe(text)
                .then(|| ConfigUrl::parse(text).ok())
                .flatten()
                .map(Self)
        })
    }

    fn schema() -> Schema {
        json!({ "type": "string", "pattern": "^https?://[^/]+/." })
    }
}
