//! What can be typed about GitHub itself.

use std::path::PathBuf;

use blueproof_github::connection::RepositoryName;
use clap::{Args, Subcommand};
use jiff::SignedDuration;

use super::act::span;
use crate::exit::{self, Exit};

/// Connect a scheduler to GitHub.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  blueproof github app create --organization kubeflow --repository kubeflow/trainer"
)]
pub(crate) struct GitHub {
    #[command(subcommand)]
    pub(crate) command: GitHubCommand,
}

/// What is done about GitHub.
#[derive(Debug, Subcommand)]
pub(crate) enum GitHubCommand {
    /// Register a GitHub App
    App(GitHubApp),
}

/// Register a GitHub App.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  blueproof github app create --organization kubeflow --repository kubeflow/trainer"
)]
pub(crate) struct GitHubApp {
    #[command(subcommand)]
    pub(crate) command: GitHubAppCommand,
}

/// What is done about an App.
#[derive(Debug, Subcommand)]
pub(crate) enum GitHubAppCommand {
    /// Register an App, and write its key, the secret of its webhook and github.yaml
    Create(GitHubAppCreate),
}

/// Register an App, and write its key, the secret of its webhook and github.yaml.
///
/// A page on this machine leads to GitHub, which shows the App with the rights that blueproof needs and no others, and sends the key back
/// to this command. No file is overwritten. With --print nothing is registered: the steps are printed for another machine's browser.
#[derive(Debug, Args)]
#[command(after_help = exit::help(
    "Examples:\n  blueproof github app create --organization kubeflow --repository kubeflow/trainer \\\n    \
     --webhook-url https://gpu.example.org/webhooks/github\n  \
     blueproof github app create --repository ada/notebooks --print",
    &[Exit::Ok, Exit::Usage, Exit::Infrastructure, Exit::TimedOut],
))]
pub(crate) struct GitHubAppCreate {
    /// The organisation that owns the App; your own account where none is named
    #[arg(long, value_name = "LOGIN")]
    pub(crate) organization: Option<String>,
    /// A repository to follow; may be repeated
    #[arg(long = "repository", value_name = "OWNER/NAME", required = true)]
    pub(crate) repositories: Vec<RepositoryName>,
    /// The App's name, which no other App on GitHub has [default: blueproof for OWNER]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The page about the App [default: the first repository]
    #[arg(long, value_name = "URL")]
    pub(crate) homepage: Option<String>,
    /// Where GitHub sends webhooks: your proxy, with the path /webhooks/github; without it pull requests are polled
    #[arg(long, value_name = "URL")]
    pub(crate) webhook_url: Option<String>,
    /// Give the App the right and the event that repositories with a merge queue need besides
    #[arg(long)]
    pub(crate) merge_queue: bool,
    /// Where the scheduler takes webhooks from the proxy
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8790")]
    pub(crate) listen: String,
    /// The folder that app.pem, webhook-secret and github.yaml are written to
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Wait this long until the App is registered, and as long until it is installed
    #[arg(long, value_name = "DURATION", value_parser = span, default_value = "30m")]
    pub(crate) wait: SignedDuration,
    /// The address of GitHub's API
    #[arg(long, value_name = "URL", default_value = "https://api.github.com")]
    pub(crate) api: String,
    /// The address of GitHub's pages
    #[arg(long, value_name = "URL", default_value = "https://github.com")]
    pub(crate) web: String,
    /// Print the manifest and the steps, and register nothing
    #[arg(long)]
    pub(crate) print: bool,
}
