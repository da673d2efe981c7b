//! One file for each thing that can be done.

mod agent;
mod completion;
mod config;
mod explain;
mod follow;
mod run;
mod schema;
mod version;
mod wait;

use crate::{
    cli::{Cli, Command},
    config::{Config, Surroundings},
    exit::{Exit, Problem},
    session::Session,
};

/// Does what was typed.
pub(crate) fn carry_out(cli: Cli) -> Result<Exit, Problem> {
    match cli.command {
        Command::Run(arguments) => {
            with_session(&cli.place, async |session| run::run(session, &arguments).await)
        }
        Command::Wait(arguments) => {
            with_session(&cli.place, async |session| wait::wait(session, &arguments).await)
        }
        Command::Cancel(arguments) => with_session(&cli.place, async |session| {
            wait::cancel(session, &arguments).await
        }),
        Command::Retry(arguments) => {
            with_session(&cli.place, async |session| wait::retry(session, &arguments).await)
        }
        Command::Host => with_session(&cli.place, async |session| {
            session.until_idle().await.map(|()| Exit::Ok)
        }),
        Command::Agent(arguments) => agent::agent(&arguments),
        Command::AgentLaunch(arguments) => agent::become_program(arguments),
        Command::Check(_)
        | Command::Init(_)
        | Command::Logs(_)
        | Command::Report(_)
        | Command::Artifacts(_) => Ok(Exit::Ok),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Schema(arguments) => schema::schema(&arguments),
        Command::Config(arguments) => config::config(&arguments, &cli.place),
        Command::Completion(arguments) => completion::completion(&arguments),
        Command::Version(arguments) => version::version(&arguments),
    }
}

/// Opens a session, and does in it what a command is for.
fn with_session(
    place: &crate::cli::Place,
    command: impl AsyncFnOnce(&Session) -> Result<Exit, Problem>,
) -> Result<Exit, Problem> {
    let config = Config::load(place, &Surroundings::of_this_process()?)?;
    block_on(async {
        let session = Session::open(&config).await?;
        command(&session).await
    })
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("x")
        .block_on(work)
}
