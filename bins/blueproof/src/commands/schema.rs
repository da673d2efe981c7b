//! `blueproof schema KIND`.

use blueproof_core::{ports::LoggedEvent, view::RunView};

use crate::{
    cli::{Schema, SchemaKind},
    config::ConfigFile,
    exit::{Exit, Problem},
    output::{self, Encoding},
};

pub(crate) fn schema(arguments: &Schema) -> Result<Exit, Problem> {
    let schema = schema_for(arguments.kind);
    output::print(&output::encode(&schema, Encoding::Json)?)?;
    Ok(Exit::Ok)
}

fn schema_for(kind: SchemaKind) -> schemars::Schema {
    match kind {
        SchemaKind::Config => schemars::schema_for!(ConfigFile),
        SchemaKind::Event => output::schema_of::<LoggedEvent>(),
        SchemaKind::Run => output::document_schema::<RunView>("Run"),
    }
}
