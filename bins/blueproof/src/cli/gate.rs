//! What can be typed about approvals and holds.

use blueproof_core::domain::{BlueprintName, ProfileName};
use clap::{ArgGroup, Args};
use clap_complete::engine::ArgValueCandidates;
use jiff::SignedDuration;

use super::act::span;
use crate::{
    complete,
    exit::{self, Exit},
    output::DocumentFormat,
    select::{ContentSelector, RunSelector},
};

/// The codes of commands that the gate may refuse.
const EXITS: [Exit; 4] = [Exit::Ok, Exit::Usage, Exit::Infrastructure, Exit::Refused];

/// Approve content, so that it may run.
#[derive(Debug, Args)]
#[command(after_help = exit::help(
    "Examples:\n  blueproof approve 1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d --pull-request 12 --for 24h\n  blueproof approve r-41",
    &EXITS,
))]
pub(crate) struct Approve {
    #[command(flatten)]
    pub(crate) contents: Contents,
    /// Only this blueprint of it; may be repeated
    #[arg(short, long = "blueprint", value_name = "NAME", add = ArgValueCandidates::new(complete::blueprints))]
    pub(crate) blueprints: Vec<BlueprintName>,
    /// Only under this profile; may be repeated
    #[arg(long = "profile", value_name = "PROFILE")]
    pub(crate) profiles: Vec<ProfileName>,
    /// Let the approval expire after this long
    #[arg(long = "for", value_name = "DURATION", value_parser = span)]
    pub(crate) expires_after: Option<SignedDuration>,
    /// Approve whatever is asked for with this content, and not only what its runs ask for now
    #[arg(long)]
    pub(crate) any_job: bool,
    /// Show what would be approved, and approve nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Revoke approvals: attempts under them are stopped.
#[derive(Debug, Args)]
#[command(after_help = exit::help(
    "Example:\n  blueproof revoke 1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d",
    &EXITS,
))]
pub(crate) struct Revoke {
    #[command(flatten)]
    pub(crate) contents: Contents,
}

/// Content that runs test.
#[derive(Debug, Args)]
pub(crate) struct Contents {
    /// The content: all 40 digits of a commit, `snapshot:` and all 64 of a folder's digest, or a run of it, such as r-41
    #[arg(value_name = "HEAD|RUN", required = true)]
    pub(crate) named: Vec<ContentSelector>,
    /// The pull request, where several have this head
    #[arg(long, value_name = "N")]
    pub(crate) pull_request: Option<u64>,
}

/// Hold a run, or all runs of a pull request, so that none starts.
#[derive(Debug, Args)]
#[command(after_help = exit::help("Example:\n  blueproof hold --pull-request 12", &EXITS))]
pub(crate) struct Hold {
    #[command(flatten)]
    pub(crate) what: Holdable,
}

/// Let go on what is held.
#[derive(Debug, Args)]
#[command(after_help = exit::help("Example:\n  blueproof resume --pull-request 12", &EXITS))]
pub(crate) struct Resume {
    #[command(flatten)]
    pub(crate) what: Holdable,
}

/// What can be held.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["run", "pull_request"]))]
pub(crate) struct Holdable {
    /// The run: r-41, 41, last (the newest of this project), or a blueprint for its newest
    #[arg(value_name = "RUN", add = ArgValueCandidates::new(complete::runs))]
    pub(crate) run: Option<RunSelector>,
    /// All runs of this pull request, and future ones
    #[arg(long, value_name = "N")]
    pub(crate) pull_request: Option<u64>,
}

/// List approvals, revocations, holds and cancellations, the oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  blueproof audit --pull-request 12\n  blueproof audit --by ada -o json")]
pub(crate) struct Audit {
    /// Only entries of this run, of its pull request, and of approvals that cover it
    #[arg(long, value_name = "RUN", add = ArgValueCandidates::new(complete::runs))]
    pub(crate) run: Option<RunSelector>,
    /// Only entries of this pull request and its runs
    #[arg(long, value_name = "N")]
    pub(crate) pull_request: Option<u64>,
    /// Only what this user did: a login, a GitHub user's id, or a user of this machine
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}
