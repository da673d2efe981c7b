//! The scheduler as a server.
//!
//! Arguments in; what is decided, run and served is in the libraries.

mod cli;
mod github;
mod hook;
mod import;
mod places;
mod runners;
mod serve;
mod token;

use std::{io::Write as _, process::ExitCode};

use blueproof_diagnostic::Diagnostic;
use clap::Parser as _;
use cli::{Cli, Command, Hook, Import};

/// The exit code for what is typed or configured, and is wrong.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(arguments) => serve::serve(&arguments),
        Command::Token(arguments) => token::token(&arguments),
        Command::Openapi => openapi(),
        Command::Import(Import::Arc(arguments)) => import::arc(&arguments),
        Command::Hook(Hook::JobStarted(arguments)) => hook::job_started(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            // With nobody to read it, there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "{problem:#}");
            ExitCode::from(USAGE)
        }
    }
}

fn openapi() -> Result<(), Diagnostic> {
    println!("{}", blueproof_host::api::description(env!("CARGO_PKG_VERSION")));
    Ok(())
}
