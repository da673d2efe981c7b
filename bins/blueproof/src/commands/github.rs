//! `blueproof github`: what a scheduler needs of GitHub.

mod create;
mod files;

use crate::{
    cli::{GitHub, GitHubAppCommand, GitHubCommand},
    exit::{Exit, Problem},
    reading,
};

pub(super) fn github(arguments: &GitHub) -> Result<Exit, Problem> {
    let GitHubCommand::App(app) = &arguments.command;
    let GitHubAppCommand::Create(create) = &app.command;
    reading::block_on(create::create(create))
}
