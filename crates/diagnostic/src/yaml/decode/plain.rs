//! Decoders of what every document has: texts, numbers, and lists, mappings and optional values of anything.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Decode, Problems, Schema};
use crate::yaml::node::{Value, YamlNode};

impl Decode for String {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        if let Value::Text(text) = &node.value {
            return Some(text.clone());
        }
        problems.wrong_type(node, "text (put quotes around a number that is meant as text)");
        None
    }

    fn schema() -> Schema {
        json!({ "type": "string" })
    }
}

impl Decode for bool {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        if let Value::Bool(value) = node.value {
            return Some(value);
        }
        problems.wrong_type(node, "true or false");
        None
    }

    fn schema() -> Schema {
        json!({ "type": "boolean" })
    }
}

impl Decode for f64 {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        match node.value {
            Value::Float(value) if value.is_finite() => Some(value),
            #[expect(
                clippy::cast_precision_loss,
                reason = "a bound beyond 2^53 is not told apart by anyone"
            )]
            Value::Int(value) => Some(value as f64),
            Value::Float(_) => {
                problems.bad_value(
                    node.spot,
                    "this number is not finite",
                    "leave the bound out instead",
                );
                None
            }
            Value::Null | Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => {
                problems.wrong_type(node, "a number");
                None
            }
        }
    }

    fn schema() -> Schema {
        json!({ "type": "number" })
    }
}

/// Reads a whole number from a range, which an error names.
fn whole<T: TryFrom<i64>>(
    node: &YamlNode,
    (least, most): (i64, i64),
    problems: &mut Problems<'_>,
    is_not: &str,
) -> Option<T> {
    let Value::Int(value) = node.value else {
        problems.wrong_type(node, "a whole number");
        return None;
    };
    let small = T::try_from(value).ok();
    if small.is_none() {
        let hint = format!("a whole number from {least} to {most} is allowed");
        problems.bad_value(node.spot, format!("{value} is {is_not}"), &hint);
    }
    small
}

impl Decode for i32 {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        whole(node, (i32::MIN.into(), i32::MAX.into()), problems, "out of range")
    }

    fn schema() -> Schema {
        json!({ "type": "integer", "minimum": i32::MIN, "maximum": i32::MAX })
    }
}

impl Decode for u32 {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        whole(node, (0, u32::MAX.into()), problems, "not a count")
    }

    fn schema() -> Schema {
        json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        T::decode(node, problems).map(Some)
    }

    fn schema() -> Schema {
        T::schema()
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let Value::List(items) = &node.value else {
            problems.wrong_type(node, "a list");
            return None;
        };
        let read: Vec<Option<T>> = items.iter().map(|item| T::decode(item, problems)).collect();
        read.into_iter().collect()
    }

    fn schema() -> Schema {
        json!({ "type": "array", "items": T::schema() })
    }

    fn absent() -> Option<Self> {
        Some(Vec::new())
    }
}

impl<T: Decode> Decode for BTreeMap<String, T> {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let Some(entries) = node.entries() else {
            problems.wrong_type(node, "a mapping");
            return None;
        };
        let read: Vec<_> = entries
            .iter()
            .map(|entry| Some((entry.key.clone(), T::decode(&entry.node, problems)?)))
            .collect();
        read.into_iter().collect()
    }

    fn schema() -> Schema {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }

    fn absent() -> Option<Self> {
        Some(BTreeMap::new())
    }
}
