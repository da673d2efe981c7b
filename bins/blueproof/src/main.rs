//! People's command line, and the whole pipeline in one process.
//!
//! Arguments in, a command, an exit code out. What is decided is decided in the libraries.

mod backend;
mod cli;
mod commands;
mod complete;
mod config;
mod current_project;
mod exit;
mod output;
mod reading;
mod select;
mod session;
mod show;

use clap::CommandFactory;

use cli::Cli;
use exit::{Exit, Problem};

fn main() -> std::process::ExitCode {
    match try_main() {
        Ok(code) => code.into(),
        Err(problem) => {
            show::problem(&problem);
            output::print_problem(&problem);
            problem.exit.into()
        }
    }
}

fn try_main() -> Result<Exit, Problem> {
    if complete::answer_shell(Cli::command) {
        return Ok(Exit::Ok);
    }
    let cli = Cli::of_this_process()?;
    cli.look.color.apply();
    commands::carry_out(cli)
}
