//! `blueproof schema KIND`.

use crate::{
    cli::{Schema, SchemaKind},
    config::ConfigFile,
    exit::{Exit, Problem},
    output::{self, Encoding},
};

pub(crate) fn schema(arguments: &Schema) -> Result<Exit, Problem> {
    let schema = match arguments.kind {
        SchemaKind::Config => schemars::schema_for!(ConfigFile),
    };
    output::print(&output::encode(&schema, Encoding::Json)?)?;
    Ok(Exit::Ok)
}
