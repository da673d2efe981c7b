//! Where the parts of a file stand.

use blueproof_diagnostic::yaml::{Entry, Spot, Value, YamlNode};
use serde_json::value::RawValue;

/// The lines of a text, for finding the place of a part that was borrowed from it.
pub(super) struct LineIndex<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(after_breaks).collect();
        Self { text, starts }
    }

    /// Returns where `part` begins; it must be borrowed from the text.
    pub(super) fn offset_of(&self, part: &str) -> usize {
        let offset = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        offset.min(self.text.len())
    }

    /// Returns the line of a byte, counted from one.
    pub(super) fn line(&self, offset: usize) -> u32 {
        let line = self.starts.partition_point(|start| *start <= offset);
        u32::try_from(line).unwrap_or(u32::MAX)
    }

    /// Returns the line and column of a byte.
    pub(super) fn spot(&self, offset: usize) -> Spot {
        let line = self.line(offset);
        let start = self.starts[line as usize - 1];
        let column = self
            .text
            .get(start..offset)
            .map_or(0, |before| before.chars().count());
        Spot {
            line,
            column: u32::try_from(column + 1).unwrap_or(u32::MAX),
        }
    }

    /// Makes a tree of a JSON value. The key of an entry stands, as far as is told, where its value does.
    pub(super) fn node(&self, raw: &RawValue) -> Result<YamlNode, serde_json::Error> {
        let text = raw.get();
        let spot = super::spot_of(self, text);
        let value = match text.as_bytes().first() {
            Some(b'{') => {
                let fields: Vec<(String, &RawValue)> = super::shape::object(text)?;
                let entry = |(key, raw): (String, &RawValue)| {
                    let node = self.node(raw)?;
                    let spot = node.spot;
                    Ok(Entry { key, spot, node })
                };
                Value::Map(
                    fields
                        .into_iter()
                        .map(entry)
                        .collect::<Result<_, serde_json::Error>>()?,
                )
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text)?;
                Value::List(
                    items
                        .into_iter()
                        .map(|item| self.node(item))
                        .collect::<Result<_, _>>()?,
                )
            }
            Some(b'"') => Value::Text(serde_json::from_str(text)?),
            Some(b't') => Value::Bool(true),
            Some(b'f') => Value::Bool(false),
            Some(b'n') | None => Value::Null,
            Some(_) => match text.parse() {
                Ok(whole) => Value::Int(whole),
                Err(_) => Value::Float(serde_json::from_str(text)?),
            },
        };
        Ok(YamlNode { value, spot })
    }
}
