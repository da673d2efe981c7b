//! `blueproof completion SHELL`.

use clap::CommandFactory;

use crate::{
    cli::{Cli, Completion},
    exit::{Exit, Problem},
    output,
};

pub(crate) fn completion(arguments: &Completion) -> Result<Exit, Problem> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "blueproof", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
