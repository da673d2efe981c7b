//! The JSON shape of a notebook file, as far as it is looked at.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::Undecoded;

/// The fields of a file that [`File`] tells, but for its metadata, of which it tells a part.
pub(super) const FILE: [&str; 3] = ["cells", "nbformat", "nbformat_minor"];
/// The fields of a cell that [`Cell`] tells, but for its metadata.
pub(super) const CELL: [&str; 5] = ["cell_type", "execution_count", "id", "outputs", "source"];

/// The whole file.
#[derive(Deserialize)]
pub(super) struct File<'t> {
    #[serde(borrow)]
    pub(super) nbformat: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) nbformat_minor: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) cells: Option<&'t RawValue>,
}

/// The notebook's metadata.
#[derive(Default, Deserialize)]
pub(super) struct Metadata<'t> {
    #[serde(borrow)]
    pub(super) language_info: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) kernelspec: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) blueproof: Option<&'t RawValue>,
}

/// What the kernel said of its language.
#[derive(Deserialize)]
pub(super) struct Language {
    pub(super) name: Option<String>,
}

/// The kernel that the notebook was written for.
#[derive(Default, Deserialize)]
pub(super) struct KernelSpec {
    pub(super) name: Option<String>,
    pub(super) display_name: Option<String>,
    pub(super) language: Option<String>,
}

/// A cell.
#[derive(Deserialize)]
pub(super) struct Cell<'t> {
    #[serde(borrow)]
    pub(super) cell_type: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) id: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) source: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) outputs: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) execution_count: Option<&'t RawValue>,
}

/// A cell's metadata.
#[derive(Deserialize)]
pub(super) struct CellMetadata<'t> {
    #[serde(borrow)]
    pub(super) tags: Option<&'t RawValue>,
}

/// Reads an object and keeps the order of its keys.
pub(super) fn object(text: &str) -> Result<Vec<(String, &RawValue)>, serde_json::Error> {
    let Fields(fields) = serde_json::from_str(text)?;
    Ok(fields)
}

/// Reads an object and leaves out the fields that are `told` elsewhere.
pub(super) fn undecoded(text: &str, told: &[&str]) -> Result<Undecoded, serde_json::Error> {
    let mut fields = object(text)?;
    fields.retain(|(name, _)| !told.contains(&name.as_str()));
    Ok(fields
        .into_iter()
        .map(|(name, raw)| (name, raw.to_owned()))
        .collect())
}

struct Fields<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}
