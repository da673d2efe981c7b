//! `docs/blueprint.md`: its table of keys is made from the schema, and its examples are blueprints.
//!
//! `BLUEPRINT_DOC=overwrite cargo test -p blueproof-notebook --test blueprint_page` writes the table anew; read the difference.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

use blueproof_notebook::blueprint::{self, Blueprint, Loaded};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

const HEADER: &str = "| key | type | default | limits | meaning |\n|---|---|---|---|---|\n";

fn page() -> (std::path::PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/blueprint.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    (path, page)
}

/// Returns the blueprints that the page shows.
fn examples(page: &str) -> Vec<String> {
    let fenced = page.split("```yaml\n").skip(1);
    let texts = fenced.map(|rest| rest.split("```").next().unwrap_or_default());
    texts.map(str::to_owned).collect()
}

#[test]
fn the_page_has_a_row_for_every_key_of_the_schema() {
    let (path, page) = page();
    let mut table = String::from(HEADER);
    for key in keys(&blueprint::schema()) {
        writeln!(table, "{}", key.row()).expect("a string takes any text");
    }
    let (before, rest) = page.split_once(HEADER).expect("there is a table");
    let end = rest.find("\n\n").expect("something follows it");
    let wanted = format!("{before}{table}{}", &rest[end + 1..]);
    if std::env::var("BLUEPRINT_DOC").is_ok_and(|value| value == "overwrite") {
        fs::write(&path, &wanted).expect("it can be written");
        return;
    }
    assert!(
        page == wanted,
        "`docs/blueprint.md` has another table than this:\n{table}"
    );
}

#[test]
fn every_example_is_read_and_resolved_with_each_of_its_profiles() {
    let examples = examples(&page().1);
    assert!(examples.len() > 8, "the page has examples");
    for text in examples {
        let (_folder, loaded) = loaded(&text);
        let profiles: Vec<Option<&str>> = loaded.profiles().map(Some).chain([None]).collect();
        for profile in profiles {
            let resolved = loaded.resolve(profile, &[]);
            assert!(resolved.is_ok(), "{profile:?} of\n{text}\n{resolved:?}");
        }
    }
}

#[test]
fn every_key_stands_in_an_example() {
    let mut shown = BTreeSet::new();
    for text in examples(&page().1) {
        let document: Value = serde_saphyr::from_str(&text).expect("it is YAML");
        add_paths(&document, &blueprint::schema(), "", &mut shown);
    }
    let keys = keys(&blueprint::schema()).into_iter().map(|key| key.path);
    let missing: Vec<String> = keys.filter(|path| !shown.contains(path)).collect();
    assert_eq!(missing, Vec::<String>::new());
}

/// Loads an example, beside a notebook that takes whatever it declares.
fn loaded(text: &str) -> (TempDir, Loaded) {
    let folder = tempfile::tempdir().expect("a folder");
    let document: Value = serde_saphyr::from_str(text).expect("it is YAML");
    let notebook = document["spec"]["notebook"].as_str().expect("it names one");
    let declared = document["spec"]["parameters"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let names = declared.keys().map(|name| format!("{name} = None\n"));
    let source: Vec<String> = names.chain(["print('here')".to_owned()]).collect();
    let cell = json!({
        "cell_type": "code", "id": "a", "metadata": {"tags": ["parameters"]}, "outputs": [], "execution_count": null,
        "source": source,
    });
    let content = json!({ "cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5 });
    fs::write(folder.path().join(notebook), content.to_string()).expect("a file");
    fs::write(folder.path().join("uv.lock"), "version = 1\n").expect("a file");
    let path = folder.path().join("blueprint.yaml");
    match Blueprint::parse(&path, text.to_owned()) {
        Ok(loaded) => (folder, loaded),
        Err(mistakes) => panic!("{mistakes:?}\n{text}"),
    }
}

/// One key of the schema.
struct Key {
    path: String,
    schema: Value,
    is_required: bool,
}

impl Key {
    fn row(&self) -> String {
        let about = self.schema["description"].as_str().unwrap_or_default();
        let (about, default) = match about.split_once(" Default: ") {
            Some((about, default)) => (about, default.trim_end_matches('.')),
            None if self.is_required => (about, "must be given"),
            None => (about, ""),
        };
        let cells = [
            format!("`{}`", self.path),
            type_of(&self.schema),
            default.into(),
            limits(&self.schema),
        ];
        let about = about.replace('|', "\\|");
        format!(
            "| {} | {about} |",
            cells.map(|cell| cell.replace('|', "\\|")).join(" | ")
        )
    }
}

/// Returns every key of a schema with its path; those of a profile that only override are told by the keys that they override.
fn keys(schema: &Value) -> Vec<Key> {
    let mut keys = Vec::new();
    add_keys(schema, "", &mut keys);
    keys
}

fn add_keys(schema: &Value, path: &str, keys: &mut Vec<Key>) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, below) in properties(schema) {
        let path = joined(path, &name);
        keys.push(Key {
            is_required: required.contains(&json!(name)),
            schema: below.clone(),
            path: path.clone(),
        });
        let about = below["description"].as_str().unwrap_or_default();
        let is_said_elsewhere = ["Overrides ", "Replaces "]
            .iter()
            .any(|word| about.starts_with(word));
        if !is_said_elsewhere {
            add_below(&below, &path, keys);
        }
    }
    if schema["additionalProperties"].is_object() {
        let path = joined(path, "(name)");
        let below = &schema["additionalProperties"];
        if below["description"].is_string() {
            keys.push(Key {
                is_required: false,
                schema: below.clone(),
                path: path.clone(),
            });
        }
        add_below(below, &path, keys);
    }
}

fn add_below(schema: &Value, path: &str, keys: &mut Vec<Key>) {
    add_keys(schema, path, keys);
    if schema["items"]["properties"].is_object() {
        add_keys(&schema["items"], &format!("{path}[]"), keys);
    }
}

/// Returns the keys of a mapping, of whichever form of the schema has some.
fn properties(schema: &Value) -> Map<String, Value> {
    let forms = schema["anyOf"].as_array().into_iter().flatten();
    let mut forms = forms
        .chain([schema])
        .filter_map(|form| form["properties"].as_object());
    forms.next().cloned().unwrap_or_default()
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() {
        return name.to_owned();
    }
    format!("{path}.{name}")
}

/// Adds the path of each key that stands in a document, as the schema calls it.
fn add_paths(document: &Value, schema: &Value, path: &str, shown: &mut BTreeSet<String>) {
    let known = properties(schema);
    for (name, value) in document.as_object().into_iter().flatten() {
        let (below, path) = match known.get(name) {
            Some(below) => (below.clone(), joined(path, name)),
            None => (schema["additionalProperties"].clone(), joined(path, "(name)")),
        };
        shown.insert(path.clone());
        match value.as_array() {
            Some(entries) => entries
                .iter()
                .for_each(|entry| add_paths(entry, &below["items"], &format!("{path}[]"), shown)),
            None => add_paths(value, &below, &path, shown),
        }
    }
}

fn type_of(schema: &Value) -> String {
    let forms: Vec<&Value> = match schema["anyOf"].as_array() {
        Some(forms) => forms.iter().collect(),
        None => vec![schema],
    };
    let types: Vec<String> = forms.into_iter().filter_map(type_of_form).collect();
    types.join(" or ")
}

/// Returns the type of one form in words; `null` goes without saying.
fn type_of_form(form: &Value) -> Option<String> {
    if let Some(values) = form["enum"].as_array() {
        let words = values.iter().filter(|value| !value.is_null());
        let words: Vec<String> = words
            .map(|value| format!("`{}`", value.as_str().unwrap_or_default()))
            .collect();
        return Some(words.join(", "));
    }
    let pattern = form["pattern"].as_str().unwrap_or_default();
    if pattern.contains("\\{\\{") {
        return Some("`\"{{PARAMETER}}\"`".into());
    }
    if pattern.starts_with("^(none|") {
        return Some("duration or `none`".into());
    }
    let types: Vec<&str> = match form["type"].as_array() {
        Some(types) => types.iter().filter_map(Value::as_str).collect(),
        None => form["type"].as_str().into_iter().collect(),
    };
    let types: Vec<&str> = types.into_iter().filter(|name| *name != "null").collect();
    match types.as_slice() {
        [] => None,
        ["array"] => Some(format!("list of {}", plural(&form["items"]))),
        ["object"] => Some("mapping".into()),
        ["string"] => Some("text".into()),
        ["boolean"] => Some("`true`, `false`".into()),
        ["integer"] => Some("whole number".into()),
        ["number"] => Some("number".into()),
        ["number", "string"] if !pattern.is_empty() => Some("amount, such as `500m`, `2`, `4Gi`".into()),
        several => Some(several.join(", ")),
    }
}

fn plural(items: &Value) -> &'static str {
    match items["type"].as_str() {
        Some("object") => "mappings",
        Some("string") => "texts",
        _ => "values",
    }
}

/// Returns the limits of a value that are not its type.
fn limits(schema: &Value) -> String {
    let mut limits = Vec::new();
    // 2^32 - 1 is the end of a type, and no limit that anybody meets.
    if let Some(most) = schema["maximum"]
        .as_u64()
        .filter(|most| *most < u64::from(u32::MAX))
    {
        limits.push(format!("at most {most}"));
    }
    if let Some(most) = schema["maxLength"].as_u64() {
        limits.push(format!("at most {most} characters"));
    }
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    if pattern.starts_with("^[a-z0-9](") {
        limits.push("small letters, digits, `.` and `-`".into());
    }
    if schema["format"] == "regex" {
        limits.push("a regular expression with a group".into());
    }
    limits.join(", ")
}
