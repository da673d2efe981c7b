//! The description of the API, as it is served: what the types say, in words that say no more and no less than what is taken.

use aide::{
    openapi::{OpenApi, SecurityScheme},
    transform::TransformOpenApi,
};
use serde_json::{Map, Number, Value, json};

use super::routes;

/// The name of how a token is sent, in the description.
const BEARER: &str = "token";

/// A duration in hours, minutes and seconds, at least one of them: `PT1H30M`, `PT0.25S`.
const DURATION: &str = concat!(
    "^PT([0-9]{1,9}H([0-9]{1,9}M)?([0-9]{1,9}(\\.[0-9]{1,9})?S)?",
    "|[0-9]{1,9}M([0-9]{1,9}(\\.[0-9]{1,9})?S)?",
    "|[0-9]{1,9}(\\.[0-9]{1,9})?S)$"
);

/// Returns the description of the API, as `/openapi.json` has it. `version` is the program's.
pub fn description(version: &str) -> String {
    let mut description = OpenApi::default();
    let _ = routes().finish_api_with(&mut description, |of| describe(of, version));
    serde_json::to_string_pretty(&as_served(&description)).expect("plain data")
}

pub(super) fn describe<'a>(of: TransformOpenApi<'a>, version: &str) -> TransformOpenApi<'a> {
    let bearer = SecurityScheme::Http {
        scheme: "bearer".into(),
        bearer_format: None,
        description: Some("A token that `blueproof-scheduler token create` has made.".into()),
        extensions: Default::default(),
    };
    of.title("blueproof scheduler")
        .version(version)
        .security_scheme(BEARER, bearer)
        .security_requirement(BEARER)
}

/// Returns the description as it is served.
pub(super) fn as_served(description: &OpenApi) -> Value {
    let mut served = serde_json::to_value(description).expect("plain data");
    be_exact(&mut served);
    served
}

fn be_exact(value: &mut Value) {
    match value {
        Value::Object(members) => {
            // What is a set is written without repeating anything, and read whatever it repeats: a description that says the
            // one would refuse the other.
            members.remove("uniqueItems");
            bound(members);
            spell_out_durations(members);
            say_tuple(members);
            part_from_null(members);
            members.values_mut().for_each(be_exact);
        }
        Value::Array(items) => items.iter_mut().for_each(be_exact),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Says how far a whole number goes. Its format says it too, which is only a note to whoever reads the description.
fn bound(members: &mut Map<String, Value>) {
    let (least, most): (Number, Number) = match members.get("format").and_then(Value::as_str) {
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("int64") => (i64::MIN.into(), i64::MAX.into()),
        Some("uint32") => (0.into(), u32::MAX.into()),
        Some("uint" | "uint64") => (0.into(), u64::MAX.into()),
        _ => return,
    };
    for (bound, number) in [("minimum", least), ("maximum", most)] {
        members.entry(bound).or_insert(number.into());
    }
}

/// Says how a duration is written. The format of that name has days and weeks, which have no fixed length and are not taken, and
/// no parts of a second.
fn spell_out_durations(members: &mut Map<String, Value>) {
    if members.get("format").and_then(Value::as_str) == Some("duration") {
        members.remove("format");
        members.insert("pattern".into(), DURATION.into());
    }
}

/// Says what a list of a fixed length holds in the words of this version of JSON Schema: the generator has those of an older one.
fn say_tuple(members: &mut Map<String, Value>) {
    if members.get("items").is_some_and(Value::is_array) {
        let items = members.remove("items").expect("it was there");
        members.insert("prefixItems".into(), items);
        if let Some(rest) = members.remove("additionalItems") {
            members.insert("items".into(), rest);
        }
    }
}

/// Says of a text that has a format or is `null` that it is one of the two: many readers heed a format only where the type is
/// a text and nothing else.
fn part_from_null(members: &mut Map<String, Value>) {
    let is_text_or_null = members.get("type") == Some(&json!(["string", "null"]));
    let narrower = ["format", "pattern"]
        .into_iter()
        .find(|word| members.contains_key(*word));
    let Some(narrower) = narrower.filter(|_| is_text_or_null) else {
        return;
    };
    let narrower = members.remove_entry(narrower);
    members.remove("type");
    let text: Map<String, Value> = narrower
        .into_iter()
        .chain([("type".into(), "string".into())])
        .collect();
    members.insert("anyOf".into(), json!([text, { "type": "null" }]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_served_says_how_far_a_number_goes_and_how_a_time_is_written() {
        let mut schema = json!({ "properties": {
            "offset": { "type": "integer", "format": "uint64", "minimum": 0 },
            "limit": { "type": ["integer", "null"], "format": "uint32", "minimum": 1, "maximum": 1_000 },
            "at": { "type": ["string", "null"], "format": "date-time", "description": "When." },
            "took": { "type": ["string", "null"], "format": "duration" },
            "names": { "type": "array", "uniqueItems": true },
            "pair": { "type": "array", "items": [{ "type": "string" }], "minItems": 1 },
            "more": { "type": "array", "items": [{ "type": "string" }], "additionalItems": { "type": "null" } },
        }});
        be_exact(&mut schema);
        let expected = json!({ "properties": {
            "offset": { "type": "integer", "format": "uint64", "minimum": 0, "maximum": u64::MAX },
            "limit": { "type": ["integer", "null"], "format": "uint32", "minimum": 1, "maximum": 1_000 },
            "at": { "anyOf": [{ "type": "string", "format": "date-time" }, { "type": "null" }], "description": "When." },
            "took": { "anyOf": [{ "type": "string", "pattern": DURATION }, { "type": "null" }] },
            "names": { "type": "array" },
            "pair": { "type": "array", "prefixItems": [{ "type": "string" }], "minItems": 1 },
            "more": { "type": "array", "prefixItems": [{ "type": "string" }], "items": { "type": "null" } },
        }});
        assert_eq!(schema, expected);
    }
}
