//! One file for each thing that can be done.

mod completion;
mod config;
mod explain;
mod schema;
mod version;

use crate::{
    cli::{Cli, Command},
    exit::{Exit, Problem},
};

/// Does what was typed.
pub(crate) fn carry_out(cli: Cli) -> Result<Exit, Problem> {
    match cli.command {
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Schema(arguments) => schema::schema(&arguments),
        Command::Config(arguments) => config::config(&arguments, &cli.place),
        Command::Completion(arguments) => completion::completion(&arguments),
        Command::Version(arguments) => version::version(&arguments),
    }
}
