//! People's command line, and the whole pipeline in one process.
//!
//! Arguments in, a command, an exit code out. What is decided is decided in the libraries.

mod cli;
mod commands;
mod config;
mod exit;
mod output;
mod reporter;
mod select;
mod session;
mod show;

use clap::Parser;

fn main() -> std::process::ExitCode {
    let cli = cli::Cli::parse();
    cli.look.color.apply();
    match commands::carry_out(cli) {
        Ok(code) => code.into(),
        Err(problem) => {
            show::problem(&problem);
            problem.exit.into()
        }
    }
}
