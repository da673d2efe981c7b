//! The types of what a notebook assigns as parameters.

use super::{Analysis, Traced, Value};
use crate::ipynb::{Notebook, PARAMETERS_TAG};

/// Returns the names and types of what the cell tagged `parameters` assigns, as far as a parameter can be that; nothing where
/// no cell is tagged so.
pub(crate) fn parameter_types(notebook: &Notebook) -> Vec<(String, &'static str)> {
    if !notebook.code().any(|cell| cell.is_tagged(PARAMETERS_TAG)) {
        return Vec::new();
    }
    let analysis = Analysis::of(notebook);
    let typed = analysis.parameters.iter();
    typed
        .filter_map(|(name, value)| Some((name.clone(), parameter_type(value)?)))
        .collect()
}

/// Returns what the cell tagged `parameters` gives a name, where that tells no type: `None`, a list.
pub(crate) fn untyped_parameter(notebook: &Notebook, name: &str) -> Option<&'static str> {
    let analysis = Analysis::of(notebook);
    let mut assigned = analysis.parameters.iter();
    let (_, value) = assigned.find(|(known, _)| known == name)?;
    kind_without_type(value)
}

/// Returns the type of a parameter with this default.
pub(crate) fn parameter_type(value: &Traced) -> Option<&'static str> {
    match &value.value {
        Value::Bool(_) => Some("bool"),
        Value::Int(_) => Some("int"),
        Value::Float(value) if value.is_finite() => Some("float"),
        Value::Text(_) => Some("string"),
        Value::Float(_)
        | Value::Unknown
        | Value::None
        | Value::List(_)
        | Value::Dict(_)
        | Value::Made(_)
        | Value::Symbol(_) => None,
    }
}

/// Returns what a value is that no type of a parameter takes.
pub(crate) fn kind_without_type(value: &Traced) -> Option<&'static str> {
    match &value.value {
        Value::List(_) => Some("a list"),
        Value::Dict(_) => Some("a dictionary"),
        Value::None => Some("None"),
        Value::Float(number) if !number.is_finite() => Some("no finite number"),
        Value::Unknown | Value::Made(_) | Value::Symbol(_) => Some("computed"),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => None,
    }
}
