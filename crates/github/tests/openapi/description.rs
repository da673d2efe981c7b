//! An OpenAPI 3.0 description, and what it says of requests and answers.
//!
//! OpenAPI 3.0 has a dialect of JSON Schema of its own: `nullable`, and members beside `$ref` that count for nothing. It is
//! brought into JSON Schema here, and only what an operation refers to is compiled: the whole of GitHub's has 13 MB.

use std::collections::{BTreeMap, BTreeSet};

use boon::{Compiler, Schemas};
use serde_json::{Map, Value, json};

/// Where the schema of an operation is compiled.
const SCHEMA: &str = "https://description.invalid/schema";

/// An OpenAPI 3.0 description.
pub(crate) struct Description(Value);

/// A request, as it was sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) method: String,
    /// Without the query, as it was written.
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// How a schema is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// All that is required is there, and nothing that is not named: GitHub ignores a member that it does not know, so a misspelt one
    /// would be noticed by nobody.
    Whole,
    /// What is there is as described. Members may be missing: the fake answers what is read of it.
    Part,
}

impl Description {
    /// Takes a description.
    pub(crate) fn new(description: Value) -> Self {
        Self(description)
    }

    /// Returns why a request is not as described, or the operation that it asks for.
    pub(crate) fn check(&self, sent: &Sent) -> Result<String, String> {
        let (template, values) = self.find(&sent.method, &sent.path)?;
        let operation = self.operation(&template, &sent.method);
        let id = operation["operationId"].as_str().unwrap_or(&template).to_owned();
        let refused = |why: String| format!("{id}: {why}");
        self.check_parameters(operation, &values, &sent.query)
            .map_err(refused)?;
        self.check_body(operation, &sent.body).map_err(refused)?;
        Ok(id)
    }

    /// Returns why an answer is not a part of what is described.
    pub(crate) fn check_answer(
        &self,
        method: &str,
        path: &str,
        status: u16,
        body: &Value,
    ) -> Result<(), String> {
        let (template, _) = self.find(method, path)?;
        let answers = &self.operation(&template, method)["responses"];
        let answer = self.resolved(&answers[status.to_string()]);
        if answer.is_null() {
            return Err(format!("{method} {template} is never answered with {status}"));
        }
        match answer.pointer("/content/application~1json/schema") {
            Some(schema) => self.valid(schema, body, Reading::Part),
            None => Err(format!("{method} {template} has no answer in JSON with {status}")),
        }
        .map_err(|why| format!("{method} {template}, {status}: {why}"))
    }

    fn operation(&self, template: &str, method: &str) -> &Value {
        &self.0["paths"][template][method.to_ascii_lowercase()]
    }

    /// Returns what a path is a case of, with the values of its parameters. Where several fit, it is the one with the most words.
    fn find(&self, method: &str, path: &str) -> Result<(String, BTreeMap<String, String>), String> {
        let templates = self.0["paths"].as_object().into_iter().flatten();
        let fitting = templates.filter_map(|(template, operations)| {
            let operation = operations.get(method.to_ascii_lowercase())?;
            let values = self.fit(template, path, operation)?;
            let words: Vec<bool> = template.split('/').map(|part| !part.starts_with('{')).collect();
            Some((words, template.clone(), values))
        });
        let best = fitting.max_by(|left, right| left.0.cmp(&right.0));
        let (_, template, values) = best.ok_or_else(|| format!("there is no {method} {path}"))?;
        Ok((template, values))
    }

    fn fit(&self, template: &str, path: &str, operation: &Value) -> Option<BTreeMap<String, String>> {
        let mut values = BTreeMap::new();
        let mut rest: Vec<&str> = path.split('/').collect();
        let parts: Vec<&str> = template.split('/').collect();
        for (place, part) in parts.iter().enumerate() {
            let Some(name) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) else {
                (!rest.is_empty() && rest.remove(0) == *part).then_some(())?;
                continue;
            };
            let is_long = self
                .parameters(operation)
                .any(|one| one["name"] == name && one["x-multi-segment"] == true);
            let after = parts.len() - place - 1;
            let most = if is_long { usize::MAX } else { 1 };
            let taken: Vec<&str> = rest.drain(..rest.len().saturating_sub(after).min(most)).collect();
            let value = taken.join("/");
            (!value.is_empty()).then_some(())?;
            match name.split_once('}') {
                None => drop(values.insert(name.to_owned(), value)),
                // Two in one part, as in `{base}...{head}`.
                Some((first, rest)) => {
                    let (between, second) = rest.split_once('{')?;
                    let (before, after) = value.split_once(between)?;
                    values.insert(first.to_owned(), before.to_owned());
                    values.insert(second.to_owned(), after.to_owned());
                }
            }
        }
        rest.is_empty().then_some(values)
    }

    fn parameters<'a>(&'a self, operation: &'a Value) -> impl Iterator<Item = &'a Value> {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        parameters.map(|parameter| self.resolved(parameter))
    }

    fn check_parameters(
        &self,
        operation: &Value,
        path: &BTreeMap<String, String>,
        query: &[(String, String)],
    ) -> Result<(), String> {
        let of = |place: &'static str| self.parameters(operation).filter(move |one| one["in"] == place);
        for parameter in of("path") {
            let name = name(parameter);
            let value = path
                .get(name)
                .ok_or_else(|| format!("`{name}` is missing in the path"))?;
            self.check_value(parameter, value)?;
        }
        for parameter in of("query").filter(|parameter| parameter["required"] == true) {
            let is_there = query.iter().any(|(asked, _)| name(parameter) == asked);
            is_there
                .then_some(())
                .ok_or_else(|| format!("the query lacks `{}`", name(parameter)))?;
        }
        for (asked, value) in query {
            let known = of("query").find(|parameter| name(parameter) == asked);
            self.check_value(known.ok_or_else(|| format!("the query has no `{asked}`"))?, value)?;
        }
        Ok(())
    }

    /// What stands in an address is text: a number is read as one where a number is due.
    fn check_value(&self, parameter: &Value, value: &str) -> Result<(), String> {
        let schema = &parameter["schema"];
        let kind = self.resolved(schema)["type"].as_str().unwrap_or_default();
        let read = match kind {
            "integer" | "number" | "boolean" => serde_json::from_str(value).unwrap_or_else(|_| json!(value)),
            _ => json!(value),
        };
        let name = name(parameter);
        self.valid(schema, &read, Reading::Whole)
            .map_err(|why| format!("the parameter `{name}` is `{value}`: {why}"))
    }

    fn check_body(&self, operation: &Value, body: &[u8]) -> Result<(), String> {
        let described = self.resolved(&operation["requestBody"]);
        match (
            body.is_empty(),
            described.pointer("/content/application~1json/schema"),
        ) {
            (true, _) if described["required"] == true => Err("it has no body".into()),
            (true, _) => Ok(()),
            (false, None) => Err("it has a body, and none is described".into()),
            (false, Some(schema)) => {
                let body = serde_json::from_slice(body).map_err(|error| format!("its body: {error}"))?;
                self.valid(schema, &body, Reading::Whole)
            }
        }
    }

    fn valid(&self, schema: &Value, instance: &Value, reading: Reading) -> Result<(), String> {
        let mut compiler = Compiler::new();
        compiler.enable_format_assertions();
        let added = compiler.add_resource(SCHEMA, self.bundled(schema, reading));
        added.map_err(|error| format!("its schema: {error}"))?;
        let mut schemas = Schemas::new();
        let compiled = compiler.compile(SCHEMA, &mut schemas);
        let compiled = compiled.map_err(|error| format!("its schema: {error}"))?;
        let checked = schemas.validate(instance, compiled);
        checked.map_err(|error| format!("{error:#}"))
    }

    /// Returns a schema with all that it refers to.
    fn bundled(&self, schema: &Value, reading: Reading) -> Value {
        let mut read = Bundle {
            reading,
            open: BTreeSet::new(),
        };
        let root = read.json_schema(schema, Members::Closed);
        let mut known = Map::new();
        while let Some((name, members)) = read.open.pop_first() {
            let key = key(&name, members);
            if !known.contains_key(&key) {
                let of = &self.0["components"]["schemas"][&name];
                known.insert(key, read.json_schema(of, members));
            }
        }
        json!({ "$defs": known, "allOf": [root] })
    }

    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        let reference = value["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
        let Some(pointer) = reference else { return value };
        self.0.pointer(pointer).unwrap_or(&Value::Null)
    }
}

fn name(parameter: &Value) -> &str {
    parameter["name"].as_str().unwrap_or_default()
}

/// Brings schemas of OpenAPI 3.0 into JSON Schema.
struct Bundle {
    reading: Reading,
    /// What was referred to, and was not read yet.
    open: BTreeSet<(String, Members)>,
}

/// Whether an object may have members that its schema does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Members {
    /// It may not.
    Closed,
    /// The schema is one of several that an object is held to, and the others name the rest.
    Open,
}

fn key(name: &str, members: Members) -> String {
    match members {
        Members::Closed => name.to_owned(),
        Members::Open => format!("{name}, open"),
    }
}

impl Bundle {
    fn json_schema(&mut self, schema: &Value, members: Members) -> Value {
        let Value::Object(written) = schema else {
            return schema.clone();
        };
        if let Some(to) = written.get("$ref").and_then(Value::as_str) {
            let name = to.rsplit('/').next().unwrap_or_default();
            self.open.insert((name.to_owned(), members));
            let key = key(name, members).replace(' ', "%20");
            return json!({ "$ref": format!("#/$defs/{key}") });
        }
        let mut read = Map::new();
        for (key, value) in written {
            if let Some((key, value)) = self.member(key, value) {
                read.insert(key, value);
            }
        }
        let is_closed = members == Members::Closed && !written.contains_key("allOf");
        if is_closed && written.contains_key("properties") && !written.contains_key("additionalProperties") {
            read.insert("additionalProperties".into(), json!(false));
        }
        match written.get("nullable") {
            Some(Value::Bool(true)) => json!({ "anyOf": [{ "type": "null" }, read] }),
            _ => Value::Object(read),
        }
    }

    /// Returns what a member of a schema is in JSON Schema, if it is anything there.
    fn member(&mut self, key: &str, value: &Value) -> Option<(String, Value)> {
        let is_part = self.reading == Reading::Part;
        let read = match key {
            "nullable" | "example" | "examples" | "default" | "description" | "title" | "discriminator" => {
                return None;
            }
            "required" if is_part => return None,
            // Without what is required of each, several fit.
            "oneOf" if is_part => return Some(("anyOf".into(), self.all(value, Members::Closed))),
            "oneOf" | "anyOf" => self.all(value, Members::Closed),
            "allOf" => self.all(value, Members::Open),
            "properties" => {
                let schemas = value.as_object().into_iter().flatten();
                let read =
                    schemas.map(|(name, schema)| (name.clone(), self.json_schema(schema, Members::Closed)));
                Value::Object(read.collect())
            }
            "items" | "additionalProperties" | "not" => self.json_schema(value, Members::Closed),
            _ => value.clone(),
        };
        Some((key.to_owned(), read))
    }

    fn all(&mut self, schemas: &Value, members: Members) -> Value {
        let schemas = schemas.as_array().into_iter().flatten();
        schemas.map(|schema| self.json_schema(schema, members)).collect()
    }
}
