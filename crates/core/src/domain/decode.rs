//! How amounts and names are read from a document that somebody wrote.

use std::{fmt, str::FromStr};

use blueproof_diagnostic::yaml::{Decode, Problems, Schema, Spot, Value, YamlNode};
use serde_json::json;

use super::{BlueprintName, Bytes, Cpus, ProfileName};

/// Reads what is written as Kubernetes writes quantities: a number, or a text with a unit.
fn quantity<T: FromStr<Err: fmt::Display>>(node: &YamlNode, problems: &mut Problems<'_>) -> Option<T> {
    let text = match &node.value {
        Value::Text(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => {
            problems.wrong_type(node, "an amount such as 2, 500m or 4Gi");
            return None;
        }
    };
    parsed(
        &text,
        node.spot,
        problems,
        "amounts are written as in Kubernetes: 2, 500m, 1.5, 512Mi, 4Gi",
    )
}

fn parsed<T: FromStr<Err: fmt::Display>>(
    text: &str,
    spot: Spot,
    problems: &mut Problems<'_>,
    hint: &str,
) -> Option<T> {
    match text.parse() {
        Ok(value) => Some(value),
        Err(error) => {
            problems.bad_value(spot, error.to_string(), hint);
            None
        }
    }
}

macro_rules! quantities {
    ($($name:ident)*) => {$(
        impl Decode for $name {
            fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
                quantity(node, problems)
            }

            fn schema() -> Schema {
                json!({ "type": ["number", "string"], "minimum": 0, "pattern": "^[0-9.]+[A-Za-z0-9+-]*$" })
            }
        }
    )*};
}
quantities! { Cpus Bytes }

macro_rules! names {
    ($($name:ident)*) => {$(
        impl Decode for $name {
            fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
                let text = String::decode(node, problems)?;
                parsed(&text, node.spot, problems, "names look like `nano-lm` or `qwen2.5-alpaca`")
            }

            fn schema() -> Schema {
                json!({ "type": "string", "pattern": "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", "maxLength": 63 })
            }
        }
    )*};
}
names! { BlueprintName ProfileName }
