//! The values that stand in a blueprint: amounts, durations, paths, patterns, and numbers that a parameter gives.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
    str::FromStr,
};

use blueproof_core::domain::{Retries, Timeouts};
use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Decode, Located, Problems, Value, YamlNode},
};
use jiff::SignedDuration;
use serde_json::json;

use super::parameters::Values;

/// A timeout: `30m`, `1h30m`, or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// Without limit.
    None,
    /// So much time.
    After(SignedDuration),
}

/// A number, as it is or as a parameter gives it: `2` or `"{{nodes}}"`.
#[derive(Debug, Clone, PartialEq)]
pub enum Number<T> {
    /// The number itself.
    Fixed(T),
    /// The value of the parameter of this name.
    Parameter(Located<String>),
}

/// How often something is tried again. Each try takes the time of others, so that there is a most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryCount(pub u32);

/// A path relative to the blueprint's folder that does not lead out of it by its letters. Symbolic links are
/// looked at when the file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerPath(pub PathBuf);

/// A glob over files: `output/*.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(pub String);

/// A regular expression with at least one group, whose first one is a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(pub String);

impl Timeout {
    /// Returns the time, or `None` without limit.
    pub fn duration(self) -> Option<SignedDuration> {
        match self {
            Timeout::None => None,
            Timeout::After(time) => Some(time),
        }
    }

    pub(crate) const fn minutes(minutes: i64) -> Self {
        Timeout::After(SignedDuration::from_mins(minutes))
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Timeout::None => f.write_str("none"),
            Timeout::After(time) => f.write_str(&written(*time)),
        }
    }
}

/// Returns a duration as a blueprint writes it: `1h30m`.
pub(crate) fn written(time: SignedDuration) -> String {
    let seconds = time.as_secs().max(0);
    let parts = [
        (seconds / 3600, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let some: String = parts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, unit)| format!("{n}{unit}"))
        .collect();
    if some.is_empty() { "0s".into() } else { some }
}

/// Reads a duration: whole numbers with the units `d`, `h`, `m` and `s`, the larger ones first, each at most once. It has no more
/// than ten years.
pub(crate) fn duration(text: &str) -> Option<SignedDuration> {
    let mut seconds: i64 = 0;
    let mut rest = text;
    let mut units = [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)].iter();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].chars().next()?;
        let (_, scale) = units.find(|(letter, _)| *letter == unit)?;
        seconds = seconds.checked_add(number.checked_mul(*scale)?)?;
        rest = &rest[digits + 1..];
    }
    let span = SignedDuration::from_secs(seconds);
    (seconds > 0 && span <= Timeouts::LONGEST).then_some(span)
}

impl<T: FromStr + Clone> Number<T> {
    /// Returns the number, looking a parameter up in `values`.
    pub(crate) fn resolve(&self, values: &Values<'_>, problems: &mut Problems<'_>) -> Option<T> {
        let name = match self {
            Number::Fixed(number) => return Some(number.clone()),
            Number::Parameter(name) => name,
        };
        let value = values.look_up(name, problems)?;
        let number = value.to_string().trim().parse().ok();
        if number.is_none() {
            let message = format!(
                "the parameter `{}` is {value}, which cannot stand here",
                name.value
            );
            problems.report(
                name.spot,
                Diagnostic::error(Code::ParameterValue, message)
                    .hint("bound it with `min`, or give it another type"),
            );
        }
        number
    }
}

impl<T: Decode> Decode for Number<T> {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        if let Value::Text(text) = &node.value
            && let Some(name) = text
                .trim()
                .strip_prefix("{{")
                .and_then(|text| text.strip_suffix("}}"))
        {
            let value = name.trim().to_owned();
            let spot = node.spot;
            return Some(Number::Parameter(Located { value, spot }));
        }
        T::decode(node, problems).map(Number::Fixed)
    }

    fn schema() -> serde_json::Value {
        json!({ "anyOf": [T::schema(), { "type": "string", "pattern": r"^\{\{.+\}\}$" }] })
    }
}

impl Decode for Timeout {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let Value::Text(text) = &node.value else {
            problems.wrong_type(node, "a duration such as 30m or 1h30m, or `none`");
            return None;
        };
        if text == "none" {
            return Some(Timeout::None);
        }
        let time = duration(text);
        if time.is_none() {
            let message = format!("`{text}` is not a duration");
            problems.bad_value(
                node.spot,
                message,
                "write it like 90s, 30m, 6h or 1h30m, or `none`",
            );
        }
        time.map(Timeout::After)
    }

    fn schema() -> serde_json::Value {
        json!({ "type": "string", "pattern": r"^(none|(\d+d)?(\d+h)?(\d+m)?(\d+s)?)$", "minLength": 2 })
    }
}

impl Decode for RetryCount {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let count = u32::decode(node, problems)?;
        if count > Retries::MOST {
            let message = format!("{count} retries are more than {}", Retries::MOST);
            let hint = "what fails so often needs a person: `blueproof retry` tries once more";
            problems.bad_value(node.spot, message, hint);
            return None;
        }
        Some(Self(count))
    }

    fn schema() -> serde_json::Value {
        json!({ "type": "integer", "minimum": 0, "maximum": Retries::MOST })
    }
}

impl Decode for InnerPath {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let text = String::decode(node, problems)?;
        if text.is_empty() {
            problems.bad_value(
                node.spot,
                "a path cannot be empty",
                "write it relative to this folder",
            );
            return None;
        }
        let inner = inner(Path::new(&text));
        if inner.is_none() {
            let message = format!("`{text}` leaves the folder of the blueprint");
            problems.report(
                node.spot,
                Diagnostic::error(Code::OutsideCheckout, message)
                    .hint("move the file next to the blueprint, and write its path relative to that folder"),
            );
        }
        inner.map(Self)
    }

    fn schema() -> serde_json::Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

/// Returns the path without `.` and `..`, unless it is absolute or leads out.
fn inner(path: &Path) -> Option<PathBuf> {
    let mut inside = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => inside.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !inside.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(inside)
}

impl Decode for Glob {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let text = String::decode(node, problems)?;
        if let Err(error) = globset::Glob::new(&text) {
            let message = format!("`{text}` is not a glob: {}", error.kind());
            problems.bad_value(node.spot, message, "write it like `output/*.json` or `**/*.png`");
            return None;
        }
        if text.is_empty() {
            problems.bad_value(
                node.spot,
                "the glob is empty",
                "write it like `output/*.json` or `**/*.png`",
            );
            return None;
        }
        let outside = text.starts_with('/') || text.split('/').any(|part| part == "..");
        if outside {
            let message = format!("the glob `{text}` leaves its folder");
            problems.report(
                node.spot,
                Diagnostic::error(Code::OutsideCheckout, message).hint("write it relative, without `..`"),
            );
            return None;
        }
        Some(Self(text))
    }

    fn schema() -> serde_json::Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl Decode for Pattern {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let text = String::decode(node, problems)?;
        let hint = "put the number in the first group: 'loss: ([0-9.]+)'";
        match regex::Regex::new(&text) {
            Ok(regex) if regex.captures_len() > 1 => Some(Self(text)),
            Ok(_) => {
                let message = "the regular expression has no group to take a number from";
                problems.bad_value(node.spot, message, hint);
                None
            }
            Err(error) => {
                let last = error.to_string();
                let reason = last
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .trim_start_matches("error: ");
                problems.bad_value(
                    node.spot,
                    format!("this is not a regular expression: {reason}"),
                    hint,
                );
                None
            }
        }
    }

    fn schema() -> serde_json::Value {
        json!({ "type": "string", "format": "regex" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, seconds) in [
            ("90s", 90),
            ("30m", 1800),
            ("6h", 21_600),
            ("1h30m", 5400),
            ("1d", 86_400),
        ] {
            assert_eq!(duration(text), Some(SignedDuration::from_secs(seconds)), "{text}");
        }
        assert_eq!(written(SignedDuration::from_secs(5400)), "1h30m");
        assert_eq!(written(SignedDuration::from_secs(90)), "1m30s");
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "5",
            "m",
            "1.5h",
            "-5m",
            "5m1h",
            "5m5m",
            "0s",
            "1 h",
            "9999999999999999d",
            "5ä",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn a_path_stays_inside_by_its_letters() {
        assert_eq!(inner(Path::new("./a/../b.ipynb")), Some(PathBuf::from("b.ipynb")));
        for path in ["/etc/passwd", "..", "a/../../b", "../b"] {
            assert_eq!(inner(Path::new(path)), None, "{path}");
        }
    }
}
