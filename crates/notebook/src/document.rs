//! What a document ought to be that a blueprint is read from: a file of its own, or a notebook's metadata.

use blueproof_diagnostic::yaml::{Format, Placeholders};

/// What a document ought to be that a blueprint is read from.
pub(crate) static FORMAT: Format = Format {
    name: "a blueprint",
    kinds: "`blueproof schema blueprint` prints every key with the kind of its value",
    missing: "`blueproof init NOTEBOOK` writes a whole blueprint",
    placeholders: Placeholders::Quoted,
    most_nodes: 20_000,
};
