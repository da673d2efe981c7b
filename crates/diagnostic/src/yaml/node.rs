//! A document as a tree that remembers where each value stands.
//!
//! YAML and JSON become the same tree, so that one decoder reads both and every mistake is shown at its place.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::Spanned;

use crate::{Code, Diagnostic, SourceLocation};

/// Longer lines are not repeated in an error: they are data, not something that a person wrote.
const LONGEST_SHOWN_LINE: usize = 240;

/// More than this is not repeated by aliases, however large the format's documents are.
const MOST_REPEATED: usize = 1_000_000;

/// A node of a YAML document: a value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlNode {
    /// The value.
    pub value: Value,
    /// Where it stands.
    pub spot: Spot,
}

/// A line and a column, both counted from one; the line zero is no place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// What a document can hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<YamlNode>),
    /// A mapping, in the order of the document.
    Map(Vec<Entry>),
}

/// One key of a mapping, with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub spot: Spot,
    /// The value.
    pub node: YamlNode,
}

/// The text that a tree was read from, for showing places in it.
#[derive(Debug, Clone)]
pub struct Source {
    /// What the file is called.
    pub file: String,
    /// What is in it.
    pub text: String,
    /// What it ought to be.
    pub format: &'static Format,
}

/// What a document ought to be, in the words of those who are told that it is not.
#[derive(Debug)]
pub struct Format {
    /// As in "this is not YAML that … can be written in".
    pub name: &'static str,
    /// What to do about a value of the wrong kind.
    pub kinds: &'static str,
    /// What to do about a key that is missing.
    pub missing: &'static str,
    /// Whether values may be given as `{{name}}`, which must be in quotes.
    pub placeholders: Placeholders,
    /// Far more values than a document has, aliases followed; one that multiplies itself ends here.
    pub most_nodes: usize,
}

/// Whether a format has `{{name}}` for values that are given later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholders {
    /// It has.
    Quoted,
    /// It has not.
    None,
}

impl YamlNode {
    /// Reads YAML.
    pub fn from_yaml(source: &Source) -> Result<Self, Diagnostic> {
        serde_saphyr::from_str_with_options(&source.text, options(source.format))
            .map_err(|error| yaml_error(source, &error))
    }

    /// Reads YAML that may have several documents, of which the empty ones are left out.
    pub fn all_from_yaml(source: &Source) -> Result<Vec<Self>, Diagnostic> {
        serde_saphyr::from_multiple_with_options(&source.text, options(source.format))
            .map_err(|error| yaml_error(source, &error))
    }

    /// Returns the value under `key` of a mapping.
    pub fn get(&self, key: &str) -> Option<&YamlNode> {
        let entry = self.entries()?.iter().find(|entry| entry.key == key)?;
        Some(&entry.node)
    }

    /// Returns the entries of a mapping.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_) => None,
        }
    }

    /// Says what kind of value this is.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// Lays `over` upon this: mappings are merged by key, `null` removes a key, `{}` empties a mapping, and
    /// everything else is replaced.
    pub fn overlaid(self, over: &YamlNode) -> YamlNode {
        match (self.value, &over.value) {
            (Value::Map(mut entries), Value::Map(changes)) if !changes.is_empty() => {
                for change in changes {
                    lay(&mut entries, change);
                }
                YamlNode {
                    value: Value::Map(entries),
                    spot: self.spot,
                }
            }
            _ => over.clone(),
        }
    }
}

fn lay(entries: &mut Vec<Entry>, change: &Entry) {
    let at = entries.iter().position(|entry| entry.key == change.key);
    if change.node.value == Value::Null {
        entries.retain(|entry| entry.key != change.key);
        return;
    }
    match at {
        Some(at) => {
            let below = entries.remove(at);
            let node = below.node.overlaid(&change.node);
            entries.insert(
                at,
                Entry {
                    key: below.key,
                    spot: change.spot,
                    node,
                },
            );
        }
        None => entries.push(change.clone()),
    }
}

impl Source {
    /// Returns the place of `spot`, with the text of its line.
    pub fn place(&self, spot: Spot) -> SourceLocation {
        if spot.line == 0 {
            return SourceLocation::file(&self.file);
        }
        let line = self.text.lines().nth(spot.line as usize - 1);
        let shown = line.filter(|line| line.len() <= LONGEST_SHOWN_LINE);
        SourceLocation {
            file: self.file.clone(),
            line: Some(spot.line),
            column: (spot.column > 0).then_some(spot.column),
            source: shown.map(|line| line.trim_end().to_owned()),
        }
    }
}

impl Spot {
    /// Returns the spot of the byte at `offset` of `text`.
    pub fn of_offset(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        let number = |n| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            line: number(line),
            column: number(column),
        }
    }
}

fn options(format: &Format) -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        // Documents and events are no more than a few for each value.
        budget: serde_saphyr::budget! {
            max_nodes: format.most_nodes,
            max_documents: format.most_nodes,
            max_events: format.most_nodes.saturating_mul(4),
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: format.most_nodes.min(MOST_REPEATED),
        },
    }
}

fn yaml_error(source: &Source, error: &serde_saphyr::Error) -> Diagnostic {
    let spot = error.location().map_or(Spot::default(), spot_of);
    let place = source.place(spot);
    if matches!(
        error.without_snippet(),
        serde_saphyr::Error::NonFiniteFloat { .. }
    ) {
        return Diagnostic::error(Code::BadValue, "a number must be finite")
            .at(place)
            .hint("give a finite one, or leave the key out where there is no bound");
    }
    let template = place.source.as_deref().is_some_and(|line| line.contains("{{"));
    let message = format!("this is not YAML that {} can be written in", source.format.name);
    let diagnostic = Diagnostic::error(Code::YamlSyntax, message)
        .at(place)
        .because(in_words(error.without_snippet(), source.format.most_nodes));
    if template && source.format.placeholders == Placeholders::Quoted {
        return diagnostic
            .hint("put quotes around a parameter: \"{{gpus}}\"; without them YAML reads a mapping");
    }
    diagnostic
        .hint("look at the line above, too: a missing colon, a tab, an unclosed quote or a key given twice")
}

/// Returns what is wrong in words of YAML, not of the library that reads it.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library tells dozens of errors apart, and most of its words are YAML's"
)]
fn in_words(error: &serde_saphyr::Error, most_nodes: usize) -> String {
    use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter, budget::BudgetBreach};
    match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("the key `{key}` is given twice"),
        Error::DuplicateMappingKey { key: None, .. } => "a key is given twice".into(),
        Error::UnknownAnchor { .. } => "an alias, such as `*name`, has no anchor `&name` before it".into(),
        Error::Budget {
            breach: BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } | BudgetBreach::Documents { .. },
            ..
        } => format!("it has more than {most_nodes} values, which is the most that is read of a file"),
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "it is too large, too deep, or its aliases stand for too much".into()
        }
        other => {
            let message = UserMessageFormatter.format_message(other);
            message.lines().next().unwrap_or_default().to_owned()
        }
    }
}

fn spot_of(location: serde_saphyr::Location) -> Spot {
    let number = |n| u32::try_from(n).unwrap_or(u32::MAX);
    Spot {
        line: number(location.line()),
        column: number(location.column()),
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self {
            value: spanned.value,
            spot: spot_of(spanned.referenced),
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value)
            .map(Value::Int)
            .map_err(|_| E::custom("this number is too large"))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            entries.push(Entry {
                spot: spot_of(key.referenced),
                key: key.value,
                node: map.next_value()?,
            });
        }
        Ok(Value::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format {
        name: "a test",
        kinds: "",
        missing: "",
        placeholders: Placeholders::Quoted,
        most_nodes: 20_000,
    };

    fn source(text: &str) -> Source {
        Source {
            file: "test.yaml".into(),
            text: text.into(),
            format: &FORMAT,
        }
    }

    fn yaml(text: &str) -> Result<YamlNode, Diagnostic> {
        YamlNode::from_yaml(&source(text))
    }

    #[test]
    fn what_is_no_yaml_is_told_in_words_of_yaml_and_not_of_the_library() {
        for (text, says) in [
            ("a: 1\na: 2", "the key `a` is given twice"),
            (
                "a: *nowhere",
                "an alias, such as `*name`, has no anchor `&name` before it",
            ),
            (
                &"- a\n".repeat(20_001),
                "it has more than 20000 values, which is the most that is read of a file",
            ),
            ("a: [1, 2", "unclosed bracket '['"),
            ("a: 1\n b: 2", "mapping values are not allowed in this context"),
        ] {
            let said = yaml(text).expect_err("it is none").causes;
            assert_eq!(said, [says], "{text:.20}");
            for of_the_library in ["Options", "Policy", "budget", "breached"] {
                assert!(!said[0].contains(of_the_library), "{said:?}");
            }
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_refused_as_a_number() {
        for number in [".inf", "-.inf", ".nan", "1e400"] {
            let refused = yaml(&format!("max: {number}")).expect_err("it is no bound");
            assert_eq!(refused.code, Code::BadValue, "{number}");
            assert!(refused.message.contains("finite"), "{refused:?}");
            assert_eq!(refused.place.and_then(|place| place.column), Some(6));
        }
    }

    #[test]
    fn documents_are_no_fewer_than_there_may_be_values() {
        let documents = YamlNode::all_from_yaml(&source(&"a: 1\n---\n".repeat(6000)));
        assert_eq!(documents.expect("it is YAML").len(), 6000);
    }

    #[test]
    fn every_document_of_a_stream_knows_its_place_in_the_file() {
        let documents = YamlNode::all_from_yaml(&source("---\na: 1\n---\n# nothing\n---\nb: 2\n"));
        let spots: Vec<_> = documents
            .expect("it is YAML")
            .iter()
            .map(|node| node.entries().expect("a mapping")[0].spot.line)
            .collect();
        assert_eq!(spots, [2, 6]);
    }

    #[test]
    fn every_key_and_value_knows_its_place() {
        let node = yaml("spec:\n  nodes: 2\n  list: [a, b]\n").expect("it is YAML");
        let spec = node.get("spec").expect("the key is there");
        let nodes = &spec.entries().expect("a mapping")[0];
        assert_eq!(nodes.spot, Spot { line: 2, column: 3 });
        assert_eq!(nodes.node.spot, Spot { line: 2, column: 10 });
        assert_eq!(nodes.node.value, Value::Int(2));
        let Some(Value::List(list)) = spec.get("list").map(|list| &list.value) else {
            panic!("a list");
        };
        assert_eq!(list[1].spot, Spot { line: 3, column: 13 });
    }

    #[test]
    fn a_quoted_number_stays_text() {
        let node = yaml("python: \"3.10\"\nother: 3.10\n").expect("it is YAML");
        assert_eq!(
            node.get("python").map(|n| &n.value),
            Some(&Value::Text("3.10".into()))
        );
        assert_eq!(node.get("other").map(|n| &n.value), Some(&Value::Float(3.1)));
    }

    #[test]
    fn what_is_no_yaml_is_refused_with_its_place() {
        for (text, line) in [
            ("a: [1, 2\nb: 3\n", 2),
            ("a: 1\na: 2\n", 2),
            ("a:\n\t- b\n", 2),
            ("n: {{gpus}}\n", 1),
            ("a: 1\n---\nb: 2\n", 3),
            ("a: 9999999999999999999\n", 1),
        ] {
            let error = yaml(text).expect_err(text);
            assert_eq!(error.code, Code::YamlSyntax, "{text}");
            assert_eq!(error.place.and_then(|place| place.line), Some(line), "{text}");
        }
    }

    #[test]
    fn deep_and_self_multiplying_documents_are_refused() {
        let deep = "[".repeat(100_000);
        assert!(yaml(&deep).is_err());
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..10 {
            let below = level - 1;
            let items = vec![format!("*a{below}"); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        assert!(yaml(&bomb).is_err());
    }

    #[test]
    fn an_overlay_merges_by_key_and_null_removes() {
        let base = yaml("a: {x: 1, y: 2}\nb: [1]\nc: {z: 1}\n").expect("it is YAML");
        let over = yaml("a: {y: 3, x: null}\nb: [2]\nc: {}\nd: 4\n").expect("it is YAML");
        let merged = base.overlaid(&over);
        let keys = |node: &YamlNode| -> Vec<String> {
            let entries = node.entries().unwrap_or_default();
            entries.iter().map(|entry| entry.key.clone()).collect()
        };
        assert_eq!(keys(&merged), ["a", "b", "c", "d"]);
        assert_eq!(keys(merged.get("a").expect("kept")), ["y"]);
        assert_eq!(keys(merged.get("c").expect("kept")), Vec::<String>::new());
    }
}
