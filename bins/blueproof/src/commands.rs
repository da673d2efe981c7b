//! One file for each thing that can be done.

mod agent;
mod audit;
mod backtest;
mod blueprints;
mod check;
mod completion;
mod config;
mod describe;
mod endless;
mod events;
mod explain;
mod follow;
mod gate;
mod get;
mod github;
mod host;
mod kept;
mod logs;
mod metrics;
mod policy;
mod quota;
mod recorded;
mod run;
mod schema;
mod simulate;
mod store;
mod version;
mod wait;
mod webhook;
mod whatif;
mod why;

use crate::{
    cli::{Cli, Command},
    config::{Config, ConfigFlags, ProcessEnv},
    exit::{Exit, Problem},
    reading::{Reading, block_on},
    session::Session,
};

/// Does what was typed.
pub(crate) fn carry_out(cli: Cli) -> Result<Exit, Problem> {
    match cli.command {
        Command::Run(arguments) => {
            // The folder is read before the store is opened, which may lie in it: closing a file drops the locks that SQLite
            // holds on it in this process (https://sqlite.org/howtocorrupt.html, section 2.2).
            let draft = run::draft(&arguments)?;
            with_session(&cli.flags, async |session| {
                run::run(session, draft, &arguments).await
            })
        }
        Command::Wait(arguments) => {
            with_session(&cli.flags, async |session| wait::wait(session, &arguments).await)
        }
        Command::Cancel(arguments) => with_session(&cli.flags, async |session| {
            wait::cancel(session, &arguments).await
        }),
        Command::Retry(arguments) => {
            with_session(&cli.flags, async |session| wait::retry(session, &arguments).await)
        }
        Command::Approve(arguments) => gate::approve(&arguments, &cli.flags),
        Command::Revoke(arguments) => gate::revoke(&arguments, &cli.flags),
        Command::Hold(arguments) => gate::hold(&arguments, &cli.flags),
        Command::Resume(arguments) => gate::resume(&arguments, &cli.flags),
        Command::Audit(arguments) => audit::audit(&arguments, &cli.flags),
        Command::Host => {
            let config = Config::load(&cli.flags, &ProcessEnv::of_this_process()?)?;
            block_on(host::host(&config))
        }
        Command::Agent(arguments) => agent::agent(&arguments),
        Command::AgentLaunch(arguments) => agent::become_program(arguments),
        Command::Logs(arguments) => {
            let reading = Reading::open(&cli.flags)?;
            block_on(logs::logs(&reading, &arguments))
        }
        Command::Report(arguments) => {
            let reading = Reading::open(&cli.flags)?;
            block_on(kept::report(&reading, &arguments))
        }
        Command::Artifacts(arguments) => {
            let reading = Reading::open(&cli.flags)?;
            block_on(kept::artifacts(&reading, &arguments))
        }
        Command::Check(arguments) => check::check(&arguments, &cli.flags),
        Command::Init(arguments) => check::init(&arguments),
        Command::Get(arguments) => get::get(&arguments, &cli.flags),
        Command::Ls(arguments) => block_on(get::get_runs(&arguments, &cli.flags)),
        Command::Describe(arguments) => describe::describe(&arguments, &cli.flags),
        Command::Why(arguments) => why::why(&arguments, &cli.flags),
        Command::Quota(arguments) => quota::quota(&arguments, &cli.flags),
        Command::Store(arguments) => store::store(&arguments, &cli.flags),
        Command::Webhook(arguments) => webhook::webhook(&arguments, &cli.flags),
        Command::GitHub(arguments) => github::github(&arguments),
        Command::Metrics(arguments) => metrics::metrics(&arguments, &cli.flags),
        Command::Simulate(arguments) => simulate::simulate(&arguments),
        Command::WhatIf(arguments) => whatif::whatif(&arguments, &cli.flags),
        Command::Backtest(arguments) => backtest::backtest(&arguments, &cli.flags),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Schema(arguments) => schema::schema(&arguments),
        Command::Config(arguments) => config::config(&arguments, &cli.flags),
        Command::Completion(arguments) => completion::completion(&arguments),
        Command::Version(arguments) => version::version(&arguments),
    }
}

/// Opens a session, and does in it what a command is for.
fn with_session(
    flags: &ConfigFlags,
    command: impl AsyncFnOnce(&Session) -> Result<Exit, Problem>,
) -> Result<Exit, Problem> {
    let config = Config::load(flags, &ProcessEnv::of_this_process()?)?;
    block_on(async {
        let session = Session::open(&config).await?;
        command(&session).await
    })
}
