//! `blueproof schema KIND`.

use blueproof_core::ports::LoggedFact;
use blueproof_notebook::blueprint;

use crate::{
    cli::{Schema, SchemaKind},
    config::ConfigFile,
    exit::{Exit, Problem},
    output::{self, Encoding},
    show::runs::Listed,
};

pub(crate) fn schema(arguments: &Schema) -> Result<Exit, Problem> {
    let schema = schema_for(arguments.kind);
    output::print(&output::encode(&schema, Encoding::Json)?)?;
    Ok(Exit::Ok)
}

fn schema_for(kind: SchemaKind) -> serde_json::Value {
    match kind {
        SchemaKind::Blueprint => blueprint::schema(),
        SchemaKind::Config => schemars::schema_for!(ConfigFile).to_value(),
        SchemaKind::Event => output::schema_of::<LoggedFact>().to_value(),
        SchemaKind::GitHubConnection => blueproof_github::connection::Connection::schema(),
        SchemaKind::PullRequestPolicy => blueproof_github::policy::Policy::schema(),
        SchemaKind::RunnerScaleSet => blueproof_runners::settings::RunnerScaleSet::schema(),
        SchemaKind::Simulation => blueproof_simulation::schema(),
        SchemaKind::Run => output::document_schema::<Listed<'_>>("Run").to_value(),
    }
}
