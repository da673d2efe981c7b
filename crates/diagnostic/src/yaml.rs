//! Documents that people write, read with every mistake shown at its place.
//!
//! serde stops at the first mistake and cannot say where a value stood. Here a document becomes a tree that remembers,
//! and [`record!`] and [`choice!`] declare what it may hold. What any one document is about is not known here.
//!
//! ```
//! use blueproof_diagnostic::yaml::{Decode, Format, YamlNode, Placeholders, Problems, Source, record};
//!
//! record! {
//!     /// A box.
//!     pub struct Crate {
//!         /// How many it holds.
//!         holds: u32,
//!     }
//! }
//!
//! static FORMAT: Format = Format {
//!     name: "a crate",
//!     kinds: "see the list of keys",
//!     missing: "write it",
//!     placeholders: Placeholders::None,
//!     most_nodes: 100,
//! };
//! let source = Source { file: "crate.yaml".into(), text: "holdz: 3\n".into(), format: &FORMAT };
//! let mut problems = Problems::new(&source);
//! let node = YamlNode::from_yaml(&source)?;
//! let read = Crate::decode(&node, &mut problems);
//! let mistakes = problems.finish(read).expect_err("it has no such key");
//! assert_eq!(mistakes[0].hints, ["did you mean `holds`?"]);
//! # Ok::<(), blueproof_diagnostic::Diagnostic>(())
//! ```

mod decode;
mod node;

pub use decode::{
    Decode, Fields, FilePath, Located, Problems, Schema, ServerAddress, choice, described, is_plain_address,
    key_of, nearest, nullable, record, record_schema, text, word, words_schema,
};
pub use node::{Entry, Format, Placeholders, Source, Spot, Value, YamlNode};
