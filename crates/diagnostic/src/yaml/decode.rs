//! From a tree to types, with every mistake reported and none twice.
//!
//! serde stops at the first mistake and cannot say where a value stood. Here a record is declared once, by
//! `record!`, and its decoder, its list of known keys and its JSON Schema all come from that declaration, so that they
//! cannot disagree.

mod plain;
mod texts;

use serde_json::json;

pub use texts::{FilePath, ServerAddress, is_plain_address, text};

use super::node::{Entry, Source, Spot, Value, YamlNode};
use crate::{Code, Diagnostic, SourceLocation};

/// A JSON Schema.
pub type Schema = serde_json::Value;

/// A type that a document can hold.
pub trait Decode: Sized {
    /// Reads the value, or reports why it cannot be one.
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self>;

    /// Returns the JSON Schema of what [`Decode::decode`] takes.
    fn schema() -> Schema;

    /// Returns what a missing key stands for; `None` where it must be there.
    fn absent() -> Option<Self> {
        None
    }
}

/// The mistakes found so far.
#[derive(Debug)]
pub struct Problems<'a> {
    source: &'a Source,
    found: Vec<Diagnostic>,
}

impl<'a> Problems<'a> {
    /// Returns a search that has found nothing yet.
    pub fn new(source: &'a Source) -> Self {
        let found = Vec::new();
        Self { source, found }
    }

    /// Reports a mistake, unless it is already known.
    pub fn report(&mut self, spot: Spot, diagnostic: Diagnostic) {
        let placed = diagnostic.at(self.source.place(spot));
        if !self.found.contains(&placed) {
            self.found.push(placed);
        }
    }

    /// Adds a mistake that says itself where it is.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// Returns the place of a spot.
    pub fn place(&self, spot: Spot) -> SourceLocation {
        self.source.place(spot)
    }

    /// Reports a value of the wrong kind.
    pub fn wrong_type(&mut self, node: &YamlNode, expected: &str) {
        let message = format!("expected {expected}, found {}", node.kind());
        self.report(
            node.spot,
            Diagnostic::error(Code::WrongType, message).hint(self.source.format.kinds),
        );
    }

    /// Reports a key that must be there.
    pub fn missing(&mut self, spot: Spot, key: &str) {
        let missing = Diagnostic::error(Code::MissingKey, format!("the key `{key}` is missing"));
        self.report(spot, missing.hint(self.source.format.missing));
    }

    /// Reports a key that is part of the format and cannot be acted upon.
    pub fn not_supported(&mut self, spot: Spot, key: &str, instead: &str) {
        self.report(spot, not_supported(key, instead));
    }

    /// Reports a value that is of the right kind and yet not allowed.
    pub fn bad_value(&mut self, spot: Spot, message: impl Into<String>, hint: &str) {
        self.report(spot, Diagnostic::error(Code::BadValue, message).hint(hint));
    }

    /// Returns what was found so far.
    pub fn found(&self) -> &[Diagnostic] {
        &self.found
    }

    /// Returns whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Ends the search: `value` if there was nothing to report, else all of it in the order of the file.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Vec<Diagnostic>> {
        match value {
            Some(value) if self.found.is_empty() => Ok(value),
            Some(_) | None => Err(self.into_found()),
        }
    }

    /// Returns what was found, in the order of the file.
    pub fn into_found(self) -> Vec<Diagnostic> {
        let mut found = self.found;
        found.sort_by_key(|diagnostic| {
            let place = diagnostic.place.as_ref();
            place.map_or((None, None), |place| (place.line, place.column))
        });
        found
    }
}

impl Source {
    /// Reads the document as `read` takes it.
    ///
    /// # Errors
    ///
    /// That it is no YAML, or every mistake in it, with its place.
    pub fn read<T>(
        &self,
        read: impl FnOnce(&YamlNode, &mut Problems<'_>) -> Option<T>,
    ) -> Result<T, Vec<Diagnostic>> {
        let node = YamlNode::from_yaml(self).map_err(|error| vec![error])?;
        let mut problems = Problems::new(self);
        let value = read(&node, &mut problems);
        problems.finish(value)
    }
}

/// A value and the place that it stands at, for mistakes that show only later.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub spot: Spot,
}

impl<T: Decode> Decode for Located<T> {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let value = T::decode(node, problems)?;
        let spot = node.spot;
        Some(Self { value, spot })
    }

    fn schema() -> Schema {
        T::schema()
    }
}

/// Returns the known word that is nearest to `word`, if one is near enough to be meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance =
        |known: &str| strsim::damerau_levenshtein(&word.to_ascii_lowercase(), &known.to_ascii_lowercase());
    let allowed = (word.chars().count() / 3).max(1);
    let scored = known.into_iter().map(|known| (distance(known), known));
    scored
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Returns the only known word that begins with `word`, if that is long enough to mean something.
fn only_that_begins_with<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut longer = known.filter(|known| word.len() > 2 && known.starts_with(word));
    longer.next().filter(|_| longer.next().is_none())
}

/// The entries of a mapping that is being read as a record.
#[derive(Debug)]
pub struct Fields<'n> {
    entries: &'n [Entry],
    spot: Spot,
}

impl<'n> Fields<'n> {
    /// Takes a mapping, reporting the keys that are not `known`, and those that are to come `later` and are set.
    pub fn of(
        node: &'n YamlNode,
        known: &[String],
        later: &[(&str, &str)],
        problems: &mut Problems<'_>,
    ) -> Option<Self> {
        let Some(entries) = node.entries() else {
            problems.wrong_type(node, "a mapping");
            return None;
        };
        let is_set = |entry: &&Entry| {
            entry.node.value != Value::Null || !later.iter().any(|(key, _)| *key == entry.key)
        };
        let unknown = entries.iter().filter(|entry| !known.contains(&entry.key));
        for entry in unknown.filter(is_set) {
            problems.report(entry.spot, refused_key(&entry.key, known, later));
        }
        let spot = node.spot;
        Some(Self { entries, spot })
    }

    /// Reads the value under `key`.
    pub fn take<T: Decode>(&self, key: &str, absent: Option<T>, problems: &mut Problems<'_>) -> Option<T> {
        let entry = self.entries.iter().find(|entry| entry.key == key);
        if let Some(entry) = entry.filter(|entry| entry.node.value != Value::Null) {
            return T::decode(&entry.node, problems);
        }
        if absent.is_none() {
            problems.missing(entry.map_or(self.spot, |entry| entry.spot), key);
        }
        absent
    }
}

fn refused_key(key: &str, known: &[String], later: &[(&str, &str)]) -> Diagnostic {
    if let Some((_, instead)) = later.iter().find(|(name, _)| *name == key) {
        return not_supported(key, instead);
    }
    let unknown = Diagnostic::error(Code::UnknownKey, format!("unknown key `{key}`"));
    let known_keys = || known.iter().map(String::as_str);
    if let Some(meant) = nearest(key, known_keys()).or_else(|| only_that_begins_with(key, known_keys())) {
        return unknown.hint(format!("did you mean `{meant}`?"));
    }
    unknown.hint(format!("known here: {}", known.join(", ")))
}

fn not_supported(key: &str, instead: &str) -> Diagnostic {
    Diagnostic::error(Code::NotSupportedYet, format!("`{key}` is not supported yet"))
        .because("a request that is silently not kept is worse than none")
        .hint(instead)
}

/// Returns a field's name as it is written in a document: `per_node` is `perNode`.
pub fn key_of(field: &str) -> String {
    let mut key = String::new();
    let mut upper = false;
    for c in field.trim_start_matches("r#").chars() {
        match c {
            '_' => upper = true,
            c if upper => {
                key.extend(c.to_uppercase());
                upper = false;
            }
            c => key.push(c),
        }
    }
    key
}

/// Declares a mapping with a fixed set of keys: a struct, its decoder and its schema.
///
/// A field may have a default. Keys under `later` are in the format, but cannot be acted upon: they are refused by
/// name, with what to do instead.
#[macro_export]
#[doc(hidden)]
macro_rules! __record {
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $name:ident {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty $(= $default:expr)?,)*
        }
        $(later { $($later:literal: $instead:literal,)* })?
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name {
            $($(#[doc = $doc])* $vis $field: $type,)*
        }

        impl $crate::yaml::Decode for $name {
            fn decode(
                node: &$crate::yaml::YamlNode,
                problems: &mut $crate::yaml::Problems<'_>,
            ) -> Option<Self> {
                use $crate::yaml::{Fields, key_of};
                let known = [$(key_of(stringify!($field)),)*];
                let fields = Fields::of(node, &known, &[$($(($later, $instead),)*)?], problems)?;
                $(let $field = fields.take(
                    &key_of(stringify!($field)),
                    $crate::__record!(@absent $type $(, $default)?),
                    problems,
                );)*
                Some(Self { $($field: $field?,)* })
            }

            fn schema() -> $crate::yaml::Schema {
                use $crate::yaml::{described, key_of, record_schema};
                record_schema(concat!($($about),*), [$((
                    key_of(stringify!($field)),
                    described(<$type as $crate::yaml::Decode>::schema(), concat!($($doc),*)),
                    $crate::__record!(@absent $type $(, $default)?).is_none(),
                ),)*])
            }

            fn absent() -> Option<Self> {
                Some(Self {
                    $($field: $crate::__record!(@absent $type $(, $default)?)?,)*
                })
            }
        }
    };
    (@absent $type:ty, $default:expr) => { Some::<$type>($default) };
    (@absent $type:ty) => { <$type as $crate::yaml::Decode>::absent() };
}
pub use __record as record;

/// Declares a text that is one of a few words: an enum, its decoder and its schema.
#[macro_export]
#[doc(hidden)]
macro_rules! __choice {
    (
        $(#[doc = $about:literal])*
        $vis:vis enum $name:ident { $($(#[doc = $doc:literal])* $variant:ident = $word:literal,)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $name { $($(#[doc = $doc])* $variant,)* }

        impl $crate::yaml::Decode for $name {
            fn decode(
                node: &$crate::yaml::YamlNode,
                problems: &mut $crate::yaml::Problems<'_>,
            ) -> Option<Self> {
                match $crate::yaml::word(node, &[$($word),*], problems)? {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }

            fn schema() -> $crate::yaml::Schema {
                $crate::yaml::words_schema(&[$($word),*])
            }
        }
    };
}
pub use __choice as choice;

/// Reads a text that must be one of `known`.
pub fn word<'n>(node: &'n YamlNode, known: &[&str], problems: &mut Problems<'_>) -> Option<&'n str> {
    let Value::Text(text) = &node.value else {
        problems.wrong_type(node, &format!("one of {}", known.join(", ")));
        return None;
    };
    if known.contains(&text.as_str()) {
        return Some(text);
    }
    let hint = match nearest(text, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("allowed: {}", known.join(", ")),
    };
    problems.bad_value(node.spot, format!("`{text}` is not allowed here"), &hint);
    None
}

/// Returns the schema of a text that is one of these words.
pub fn words_schema(words: &[&str]) -> Schema {
    json!({ "enum": words })
}

/// Returns the schema of a mapping with these keys: name, schema, whether it must be there.
pub fn record_schema(about: &str, fields: impl IntoIterator<Item = (String, Schema, bool)>) -> Schema {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for (key, schema, must) in fields {
        if must {
            required.push(key.clone());
            properties.insert(key, schema);
        } else {
            properties.insert(key, nullable(schema));
        }
    }
    let mut schema = json!({
        "type": "object",
        "description": about.trim(),
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Returns the schema that also takes `null`, which stands for a key that is not there and takes one away in a profile.
pub fn nullable(mut schema: Schema) -> Schema {
    if let Some(kinds) = schema.get_mut("type") {
        let mut all = kinds.as_array().cloned().unwrap_or_else(|| vec![kinds.clone()]);
        all.push(json!("null"));
        *kinds = json!(all);
    } else if let Some(choices) = schema.get_mut("anyOf").and_then(|any| any.as_array_mut()) {
        choices.push(json!({ "type": "null" }));
    } else if let Some(words) = schema.get_mut("enum").and_then(|words| words.as_array_mut()) {
        words.push(Schema::Null);
    }
    schema
}

/// Puts a field's documentation on its schema.
pub fn described(mut schema: Schema, doc: &str) -> Schema {
    schema["description"] = json!(doc.trim());
    schema
}
