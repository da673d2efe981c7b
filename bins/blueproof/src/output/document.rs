//! Answers for programs.

use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_notebook::text::{self, harmless_json};
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Value, json};

use crate::exit::{Exit, Problem};

/// The version of every document that is written.
const API_VERSION: &str = "blueproof.dev/v1alpha1";

/// A document that says what it is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document<T> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    body: T,
}

/// A list that says what it is.
#[derive(Debug, Serialize)]
struct List<T> {
    items: Vec<Document<T>>,
}

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// JSON for people and programs, over many lines.
    Json,
    /// JSON on one line, for streams.
    JsonLine,
    Yaml,
    /// YAML behind a `---`, for streams.
    YamlStream,
}

impl<T: Serialize> Document<T> {
    /// Returns a document of this kind.
    pub(crate) fn new(kind: &'static str, body: T) -> Self {
        Self {
            api_version: API_VERSION,
            kind,
            body,
        }
    }

    /// Returns a document that lists documents.
    pub(crate) fn list(
        kind: &'static str,
        of: &'static str,
        items: impl IntoIterator<Item = T>,
    ) -> Document<impl Serialize> {
        let items = items.into_iter().map(|item| Document::new(of, item)).collect();
        Document::new(kind, List { items })
    }
}

/// Returns the schema of what is written of a `T`.
pub(crate) fn schema_of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>()
}

/// Returns the schema of the documents that are written of this kind.
pub(crate) fn document_schema<T: JsonSchema>(kind: &'static str) -> Schema {
    let mut schema = schema_of::<T>();
    schema.insert("title".into(), kind.into());
    let says = [("apiVersion", API_VERSION), ("kind", kind)];
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.extend(says.map(|(key, value)| (key.into(), json!({ "type": "string", "const": value }))));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.extend(says.map(|(key, _)| key.into()));
    }
    schema
}

/// Writes a document, with a line break at its end. Nothing in it is obeyed by a terminal or a step of a CI job.
pub(crate) fn encode(document: &impl Serialize, encoding: Encoding) -> Result<String, Problem> {
    let text = match encoding {
        Encoding::Json => json(document)?,
        Encoding::JsonLine => {
            harmless_json(&serde_json::to_string(document).map_err(|error| unwritable(&error))?)
        }
        Encoding::Yaml => yaml(document)?,
        Encoding::YamlStream => format!("---\n{}", yaml(document)?),
    };
    Ok(format!("{}\n", text.trim_end()))
}

fn json(document: &impl Serialize) -> Result<String, Problem> {
    let json = serde_json::to_string_pretty(document).map_err(|error| unwritable(&error))?;
    Ok(harmless_json(&json))
}

/// Block style has no escapes. Where a text needs one, the whole is written in flow style, which JSON is.
fn yaml(document: &impl Serialize) -> Result<String, Problem> {
    let block = serde_saphyr::to_string(document).map_err(|error| unwritable(&error))?;
    if text::block(&block) == block.trim_end() {
        Ok(block)
    } else {
        json(document)
    }
}

fn unwritable(error: &dyn std::error::Error) -> Problem {
    Problem {
        diagnostics: vec![
            Diagnostic::error(Code::Unwritable, "the answer has no form in this format")
                .caused_by(error)
                .hint("ask for `-o json`"),
        ],
        exit: Exit::Infrastructure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Word {
        text: &'static str,
    }

    fn written(text: &'static str, encoding: Encoding) -> String {
        encode(&Document::new("Word", Word { text }), encoding).expect("it is plain data")
    }

    #[test]
    fn every_document_says_what_it_is() {
        let json = "{\n  \"apiVersion\": \"blueproof.dev/v1alpha1\",\n  \"kind\": \"Word\",\n  \"text\": \"hi\"\n}\n";
        assert_eq!(written("hi", Encoding::Json), json);
        let line = "{\"apiVersion\":\"blueproof.dev/v1alpha1\",\"kind\":\"Word\",\"text\":\"hi\"}\n";
        assert_eq!(written("hi", Encoding::JsonLine), line);
        let yaml = "apiVersion: blueproof.dev/v1alpha1\nkind: Word\ntext: hi\n";
        assert_eq!(written("hi", Encoding::Yaml), yaml);
        assert_eq!(written("hi", Encoding::YamlStream), format!("---\n{yaml}"));
    }

    #[test]
    fn words_of_others_come_back_as_they_were_and_are_obeyed_by_nobody() {
        let rows = [
            "a\u{1b}[2J\u{9b}b\n::set-env x\n---\nkind: Run # {{\"'\t\u{7f}\r\n",
            "ok\n::set-env name=A::b\n  ::stop-commands::x",
            "a\u{202e}b\u{2066}c\u{e0041}\u{9b}31m",
            "a##[group]b ##vso[task.x]y",
            "::error::x",
        ];
        for hostile in rows {
            for encoding in [
                Encoding::Json,
                Encoding::JsonLine,
                Encoding::Yaml,
                Encoding::YamlStream,
            ] {
                let text = written(hostile, encoding);
                let back: Value = match encoding {
                    Encoding::Json | Encoding::JsonLine => serde_json::from_str(&text).expect("JSON"),
                    Encoding::Yaml | Encoding::YamlStream => serde_saphyr::from_str(&text).expect("YAML"),
                };
                assert_eq!(back["text"], hostile, "{text}");
                assert_eq!(text::block(&text), text.trim_end(), "{encoding:?}");
            }
        }
    }

    #[test]
    fn yaml_of_many_lines_stays_yaml_for_people() {
        let text = written("one\ntwo", Encoding::Yaml);
        assert!(text.ends_with("text: |-\n  one\n  two\n"), "{text}");
    }
}
