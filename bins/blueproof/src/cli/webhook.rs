//! What can be typed about deliveries of webhooks.

use std::path::PathBuf;

use blueproof_github::webhook::{DeliveryId, EventName};
use clap::{Args, Subcommand, ValueEnum};

use crate::{
    exit::{Exit, FAILS, MISTAKE, help_saying},
    output::{DocumentFormat, Format},
};

/// Show deliveries of GitHub's webhooks, and have them worked on again.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  blueproof webhook list --state given-up\n  blueproof webhook replay 72d3162e"
)]
pub(crate) struct Webhook {
    #[command(subcommand)]
    pub(crate) command: WebhookCommand,
}

/// What is done about deliveries.
#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// List the deliveries that are stored, the newest first
    List(WebhookList),
    /// Show one delivery: how it stands, and its payload
    Show(WebhookShow),
    /// Have a delivery worked on again
    Replay(WebhookReplay),
    /// Sign a payload and send it, as GitHub does
    Send(WebhookSend),
}

/// List the deliveries that are stored, the newest first.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  blueproof webhook list\n  blueproof webhook list --state pending,given-up -o json"
)]
pub(crate) struct WebhookList {
    /// Only deliveries in one of these states
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub(crate) state: Vec<WebhookState>,
    /// Look at this many deliveries, the newest first
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
}

/// How a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WebhookState {
    /// It is to be worked on
    Pending,
    /// It was worked on
    Handled,
    /// It is not worked on any more, and its reason is shown
    GivenUp,
}

/// Show one delivery: how it stands, and its payload.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  blueproof webhook show 72d3162e\n  blueproof webhook show 72d3162e --payload > payload.json"
)]
pub(crate) struct WebhookShow {
    /// The delivery's id, or as many of its first digits as no other one has
    #[arg(value_name = "ID")]
    pub(crate) id: DeliveryId,
    /// Print the payload alone, byte for byte
    #[arg(long, conflicts_with = "output")]
    pub(crate) payload: bool,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// Have a delivery worked on again.
///
/// What it asks for has the key that it had before, so nothing is done twice: an approval that was given stays one approval, and one that
/// was revoked since stays revoked. The process that leads works on it, at its next poll at the latest.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof webhook replay 72d3162e")]
pub(crate) struct WebhookReplay {
    /// The delivery's id, or as many of its first digits as no other one has
    #[arg(value_name = "ID")]
    pub(crate) id: DeliveryId,
}

/// Sign a payload and send it, as GitHub does.
///
/// It is for trying a receiver by hand. A delivery whose id is known already is not worked on again.
#[derive(Debug, Args)]
#[command(after_help = help_saying(
    "Example:\n  blueproof webhook send payload.json --event issue_comment --secret-file webhook-secret",
    &[(Exit::Ok, "the receiver took it"), (Exit::Failed, "the receiver refused it"), (Exit::Usage, MISTAKE), (Exit::Infrastructure, FAILS)],
))]
pub(crate) struct WebhookSend {
    /// The file with the payload; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The kind of event, such as `issue_comment`
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: EventName,
    /// The file with the webhook's secret
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: PathBuf,
    /// The delivery's id; a new one where none is given
    #[arg(long, value_name = "ID")]
    pub(crate) delivery: Option<DeliveryId>,
    /// Where it is sent: https://, or http:// to this machine
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8790/webhooks/github"
    )]
    pub(crate) to: String,
}
