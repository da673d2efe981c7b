//! Blueprints: the format, reading one with all of its mistakes shown at once, and making a plan of it.
//!
//! ```no_run
//! use std::path::Path;
//! use blueproof_notebook::blueprint::Blueprint;
//!
//! let loaded = Blueprint::load(Path::new("examples/nano-lm"))?;
//! let resolved = loaded.resolve(Some("smoke"), &[("steps".into(), "40".into())])?;
//! assert_eq!(resolved.name.as_str(), "nano-lm");
//! # Ok::<(), Vec<blueproof_diagnostic::Diagnostic>>(())
//! ```

mod check;
mod default_name;
pub mod expect;
mod find;
pub mod format;
mod load;
pub mod network;
pub mod parameters;
mod pod_sets;
mod request;
mod resolve;
pub mod resources;
#[cfg(test)]
mod tests;
pub mod value;

use std::path::{Path, PathBuf};

use blueproof_core::domain::BlueprintName;
use blueproof_diagnostic::{
    SourceLocation,
    yaml::{Decode, Source, Spot, YamlNode},
};

pub(crate) use check::LEAST_MEMORY;
pub(crate) use default_name::{default_name, folder_of};
pub use find::{Found, Listing, find, list, list_at_most};
pub use format::{Blueprint, Retries};
pub use resolve::Resolved;
pub(crate) use resources::is_resource;

use crate::ipynb::Notebook;

/// What the file of a blueprint is called.
pub const FILE_NAME: &str = "blueprint.yaml";

/// A blueprint that was read and found to be without mistakes, with its notebook.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The blueprint, as it is written.
    pub blueprint: Blueprint,
    /// Its name, which may come from the notebook's file.
    pub name: BlueprintName,
    folder: PathBuf,
    notebook: Notebook,
    source: Source,
    root: YamlNode,
}

impl Loaded {
    /// Returns the folder that holds the blueprint. All of its paths are relative to it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the notebook.
    pub fn notebook(&self) -> &Notebook {
        &self.notebook
    }

    /// Returns the place of the value under these keys, or of the nearest one above that is written down.
    pub fn place_of(&self, keys: &[&str]) -> SourceLocation {
        self.source.place(self.spot_of(keys))
    }

    fn spot_of(&self, keys: &[&str]) -> Spot {
        let mut node = &self.root;
        for key in keys {
            let Some(below) = node.get(key) else {
                break;
            };
            node = below;
        }
        node.spot
    }

    /// Returns the names of its profiles, in order.
    pub fn profiles(&self) -> impl Iterator<Item = &str> {
        self.blueprint.spec.profiles.keys().map(String::as_str)
    }
}

/// Returns the JSON Schema (draft 2020-12) of `blueprint.yaml`.
///
/// It is made of the same declarations as the reader. What a schema cannot say, such as that an expectation needs its
/// metric, only the reader checks.
pub fn schema() -> serde_json::Value {
    let mut schema = Blueprint::schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["$id"] = "https://blueproof.dev/schemas/v1alpha1/blueprint.json".into();
    schema["title"] = "Blueprint".into();
    schema
}
