//! One file for each thing that can be done.

mod explain;

use crate::{
    cli::{Cli, Command},
    exit::{Exit, Problem},
};

/// Does what was typed.
pub(crate) fn carry_out(cli: Cli) -> Result<Exit, Problem> {
    match cli.command {
        Command::Explain(arguments) => explain::explain(&arguments),
    }
}
