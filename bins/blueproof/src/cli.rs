//! What can be typed.

mod act;
mod attempt;
mod gate;
mod github;
mod mistake;
mod quota;
mod read;
mod simulate;
mod store;
mod webhook;

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{config::ConfigFlags, exit::Problem};
pub(crate) use act::{
    Agent, Artifacts, Cancel, Check, Init, Launch, Logs, Report, ReportFormat, Retry, Run, Wait,
};

pub(crate) use gate::{Approve, Audit, Contents, Hold, Holdable, Resume, Revoke};
pub(crate) use github::{GitHub, GitHubAppCommand, GitHubAppCreate, GitHubCommand};
pub(crate) use quota::{Quota, QuotaApply, QuotaCommand, QuotaDescribe, QuotaGet};
pub(crate) use read::{
    Completion, ConfigCommand, ConfigGetContexts, ConfigShow, Configuration, ContextFormat, Describe,
    DescribeKind, EventFormat, Explain, Get, GetBlueprints, GetCommands, GetEvents, GetKind, GetRuns,
    Metrics, Schema, SchemaKind, Status, Version, Why,
};

pub(crate) use store::{StoreArguments, StoreCommand, StorePrune};

pub(crate) use webhook::{
    Webhook, WebhookCommand, WebhookList, WebhookReplay, WebhookSend, WebhookShow, WebhookState,
};

pub(crate) use simulate::{Backtest, Generator, Plainer, Simulate, WhatIf};

/// Tests notebooks, and the GPUs they need, from pull requests.
#[derive(Debug, Parser)]
#[command(name = "blueproof", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) look: Look,
    #[command(flatten)]
    pub(crate) flags: ConfigFlags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How answers look.
#[derive(Debug, Args)]
pub(crate) struct Look {
    /// When to use colour
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global options"
    )]
    pub(crate) color: Color,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Test a blueprint or a notebook
    Run(Run),
    /// Check blueprints and their notebooks for mistakes and hazards
    Check(Check),
    /// Write a blueprint for a notebook
    Init(Init),
    /// Show what a run printed
    Logs(Logs),
    /// Wait for runs
    Wait(Wait),
    /// Cancel a run
    Cancel(Cancel),
    /// Retry a run that has ended
    Retry(Retry),
    /// Approve content, so that it may run
    Approve(Approve),
    /// Revoke approvals: attempts under them are stopped
    Revoke(Revoke),
    /// Hold a run, or all runs of a pull request, so that none starts
    Hold(Hold),
    /// Resume what is held
    Resume(Resume),
    /// List approvals, revocations, holds and cancellations, the oldest first
    Audit(Audit),
    /// Show where a run's report is, or print it
    Report(Report),
    /// List the files that a run kept, or copy them
    Artifacts(Artifacts),
    /// List runs, blueprints, events or commands
    Get(Get),
    /// List runs, as `get runs` does
    Ls(GetRuns),
    /// Show one run in full
    Describe(Describe),
    /// Explain why a run is pending, and what would get it admitted
    Why(Why),
    /// Show queues and their quota, and change them
    Quota(Quota),
    /// Check the store, repair it, and remove old runs
    Store(StoreArguments),
    /// Show deliveries of GitHub's webhooks, and have them worked on again
    Webhook(Webhook),
    /// Connect a scheduler to GitHub
    #[command(name = "github")]
    GitHub(GitHub),
    /// Print metrics of queues and runs for Prometheus
    Metrics(Metrics),
    /// Simulate jobs and queues in virtual time
    Simulate(Simulate),
    /// Replay recorded runs against other queues
    #[command(name = "whatif")]
    WhatIf(WhatIf),
    /// Show how accurate estimates of starts and ends were
    Backtest(Backtest),
    /// Explain an error code
    Explain(Explain),
    /// Print the JSON Schema of a file or document
    Schema(Schema),
    /// Show the configuration
    Config(Configuration),
    /// Print a script that completes commands in a shell
    Completion(Completion),
    /// Print the version
    Version(Version),
    /// Carry out one attempt
    #[command(hide = true)]
    Agent(Agent),
    /// Become another program that dies with its parent
    #[command(hide = true, disable_help_flag = true)]
    AgentLaunch(Launch),
    /// Lead until no run remains to be finished
    #[command(hide = true)]
    Host,
}

impl Cli {
    /// Returns what was typed. Where help or the version is asked for, it is printed and the process ends.
    pub(crate) fn of_this_process() -> Result<Self, Problem> {
        let typed: Vec<OsString> = std::env::args_os().collect();
        let mistaken = |error: clap::Error| mistake::problem(&typed, &error);
        Self::try_parse_from(&typed).or_else(|error| match mistake::with_kind_of_thing(&typed, &error) {
            Some(completed) => Self::try_parse_from(completed).map_err(mistaken),
            None => Err(mistaken(error)),
        })
    }
}

impl Color {
    /// Makes everything that is printed from now on follow this choice. `auto` heeds NO_COLOR and CLICOLOR_FORCE, and
    /// whether it is a terminal that is printed to.
    pub(crate) fn apply(self) {
        match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}
