//! One file for each thing that can be done.

mod completion;
mod config;
mod describe;
mod explain;
mod get;
mod schema;
mod version;
mod why;

use crate::{
    cli::{Cli, Command},
    exit::{Exit, Problem},
};

/// Does what was typed.
pub(crate) fn carry_out(cli: Cli) -> Result<Exit, Problem> {
    match cli.command {
        Command::Get(arguments) => get::get(&arguments, &cli.place),
        Command::Describe(arguments) => describe::describe(&arguments, &cli.place),
        Command::Why(arguments) => why::why(&arguments, &cli.place),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Schema(arguments) => schema::schema(&arguments),
        Command::Config(arguments) => config::config(&arguments, &cli.place),
        Command::Completion(arguments) => completion::completion(&arguments),
        Command::Version(arguments) => version::version(&arguments),
    }
}
