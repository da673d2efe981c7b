//! The schema takes what the reader takes.
//!
//! Validators that are kept well stand on a crate whose licence we do not take, so the few keywords that our schemas use
//! are checked here. Any other keyword fails the test, so that nothing in the schema goes unchecked.

use std::{fs, path::Path};

use regex::Regex;
use serde_json::{Value, json};

use super::*;

/// Returns where a value is not as a schema says.
fn mistakes(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let keywords = schema.as_object().expect("a schema is an object");
    let broken = keywords
        .iter()
        .flat_map(|(keyword, rule)| match keyword.as_str() {
            "$schema" | "$id" | "title" | "description" | "examples" => Vec::new(),
            "type" => unless(is_of_type(rule, value), at, keyword),
            "enum" => unless(rule.as_array().expect("a list").contains(value), at, keyword),
            "minimum" => unless(value.as_f64() >= rule.as_f64() || !value.is_number(), at, keyword),
            "maximum" => unless(value.as_f64() <= rule.as_f64() || !value.is_number(), at, keyword),
            "pattern" => {
                let pattern = Regex::new(rule.as_str().expect("a text")).expect("a pattern");
                unless(
                    value.as_str().is_none_or(|text| pattern.is_match(text)),
                    at,
                    keyword,
                )
            }
            "required" => {
                let keys = rule.as_array().expect("a list").iter().filter_map(Value::as_str);
                let has = |key: &str| value.as_object().is_none_or(|object| object.contains_key(key));
                keys.flat_map(|key| unless(has(key), at, key)).collect()
            }
            "properties" => mistakes_below(rule, value, at),
            "additionalProperties" => mistakes_of_others(rule, &schema["properties"], value, at),
            "items" => {
                let items = value.as_array().into_iter().flatten();
                items
                    .flat_map(|item| mistakes(rule, item, &format!("{at}[]")))
                    .collect()
            }
            other => panic!("this test does not know the keyword `{other}`"),
        });
    broken.collect()
}

fn unless(holds: bool, at: &str, what: &str) -> Vec<String> {
    if holds {
        Vec::new()
    } else {
        vec![format!("{at}: {what}")]
    }
}

fn is_of_type(rule: &Value, value: &Value) -> bool {
    let is = |kind: &Value| match kind.as_str().expect("a word") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("there is no type `{other}`"),
    };
    rule.as_array()
        .map_or_else(|| is(rule), |kinds| kinds.iter().any(is))
}

fn mistakes_below(properties: &Value, value: &Value, at: &str) -> Vec<String> {
    let entries = value.as_object().into_iter().flatten();
    let known = entries.filter_map(|(key, value)| Some((key, properties.get(key)?, value)));
    known
        .flat_map(|(key, schema, value)| mistakes(schema, value, &format!("{at}.{key}")))
        .collect()
}

fn mistakes_of_others(rule: &Value, properties: &Value, value: &Value, at: &str) -> Vec<String> {
    let entries = value.as_object().into_iter().flatten();
    let others = entries.filter(|(key, _)| properties.get(key).is_none());
    others
        .flat_map(|(key, value)| match rule.as_bool() {
            Some(allowed) => unless(allowed, at, key),
            None => mistakes(rule, value, &format!("{at}.{key}")),
        })
        .collect()
}

fn document(text: &str) -> Value {
    serde_saphyr::from_str(&parts(text).0).expect("YAML")
}

#[test]
fn every_example_is_as_the_schema_says() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = fs::read_dir(examples)
        .expect("it is there")
        .map(|entry| entry.expect("it is there").path());
    let yaml = files.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let texts: Vec<String> = yaml.map(|path| fs::read_to_string(path).expect("text")).collect();
    let simulations: Vec<_> = texts
        .iter()
        .filter(|text| is_own_kind(&text.lines().collect::<Vec<_>>()))
        .collect();
    assert!(!simulations.is_empty(), "there is an example");
    for text in simulations {
        assert_eq!(mistakes(&crate::schema(), &document(text), ""), [""; 0]);
    }
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let rows = [
        ("kind: Simulation", "kind: Simulations", ".kind: enum"),
        ("slackQueue:", "slakQueue:", ".spec: slakQueue"),
        ("count: 7", "count: -7", ".spec.jobs[].count: minimum"),
        ("runsFor: 30s", "runsFor: soon", ".spec.jobs[].runsFor: pattern"),
        ("runsFor: 30s", "runsFor: 30", ".spec.jobs[].runsFor: type"),
        ("    runsFor: 30s\n", "", ".spec.jobs[]: runsFor"),
        (
            "{nvidia.com/gpu: 4}",
            "{nvidia.com/gpu: [4]}",
            ".spec.jobs[].podSets[].requests.nvidia.com/gpu: type",
        ),
    ];
    for (text, instead, mistake) in rows {
        assert!(MLBATCH.contains(text), "{text}");
        // Only the part of ours: the reader's other mistakes would come from the queues.
        let other = MLBATCH.replacen(text, instead, 1);
        let found = mistakes(&crate::schema(), &own(&other), "");
        assert!(found.contains(&mistake.to_owned()), "{instead}: {found:?}");
        assert!(read(&file(&other), no_other).is_err(), "{instead}");
    }
}

/// Returns the first document, which is ours in the example, whatever it says that it is.
fn own(text: &str) -> Value {
    serde_saphyr::from_str(&documents(text)[0].join("\n")).expect("YAML")
}

#[test]
fn the_schema_says_what_each_key_is() {
    let schema = crate::schema();
    let runs_for = &schema["properties"]["spec"]["properties"]["jobs"]["items"]["properties"]["runsFor"];
    assert_eq!(runs_for["description"], json!("How long each runs."));
}
