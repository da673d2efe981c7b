//! What can be typed to look at things. Nothing here changes anything.

use blueproof_core::{domain::BlueprintName, metrics};
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::{Shell, engine::ArgValueCandidates};

use super::attempt::AttemptChoice;
use crate::{
    complete,
    output::{DocumentFormat, Format},
    select::RunSelector,
};

/// List runs, blueprints, events or commands.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof get runs")]
pub(crate) struct Get {
    #[command(subcommand)]
    pub(crate) kind: GetKind,
}

/// What is listed.
#[derive(Debug, Subcommand)]
pub(crate) enum GetKind {
    /// List runs, the newest first
    #[command(visible_alias = "run")]
    Runs(GetRuns),
    /// List the blueprints of this checkout, with their profiles
    #[command(visible_alias = "blueprint")]
    Blueprints(GetBlueprints),
    /// List the facts of the log, the oldest first
    #[command(visible_alias = "event")]
    Events(GetEvents),
    /// List the commands that were sent to the leader, with their results, the newest first
    #[command(visible_alias = "command")]
    Commands(GetCommands),
}

/// List the facts of the log, the oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof get events -o jsonl > log.jsonl")]
pub(crate) struct GetEvents {
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<EventFormat>,
}

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventFormat {
    /// The whole log, one JSON object a line: what `whatif --log` reads
    Jsonl,
}

/// List the commands that were sent to the leader, with their results, the newest first.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof get commands")]
pub(crate) struct GetCommands {
    /// The maximum number of entries
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// List the blueprints of this checkout, with their profiles.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof get blueprints")]
pub(crate) struct GetBlueprints {
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
}

/// List runs, the newest first.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof get runs --status failed -o name")]
pub(crate) struct GetRuns {
    /// Only these: r-41, 41, last (the newest of this project), or all of a blueprint
    #[arg(value_name = "RUN", add = ArgValueCandidates::new(complete::runs))]
    pub(crate) runs: Vec<RunSelector>,
    #[command(flatten)]
    pub(crate) attempt: AttemptChoice,
    /// Only runs in this state, such as running or failed; `active` and `ended` are all that have not ended, or have
    #[arg(
        long,
        value_name = "STATUS",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub(crate) status: Vec<Status>,
    /// Only runs of this blueprint
    #[arg(short, long, value_name = "NAME", add = ArgValueCandidates::new(complete::blueprints))]
    pub(crate) blueprint: Option<BlueprintName>,
    /// The maximum number of entries
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Follow, and list a run again whenever it has changed
    #[arg(short, long, conflicts_with = "attempt")]
    pub(crate) watch: bool,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
}

/// How a run may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Status {
    /// Not ended yet, in any state
    Active,
    /// Ended, with any verdict
    Ended,
    AwaitingApproval,
    Queued,
    Reserved,
    Starting,
    Running,
    Passed,
    Failed,
    InfrastructureFailed,
    TimedOut,
    Cancelled,
    Refused,
    Superseded,
}

/// Show one thing in full.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof describe run last")]
pub(crate) struct Describe {
    #[command(subcommand)]
    pub(crate) kind: DescribeKind,
}

/// What is described.
#[derive(Debug, Subcommand)]
pub(crate) enum DescribeKind {
    /// Show one run in full
    #[command(
        visible_alias = "runs",
        after_help = "Example:\n  blueproof describe run last"
    )]
    Run {
        /// The run: r-41, 41, last (the newest of this project), or a blueprint for its newest
        #[arg(value_name = "RUN", add = ArgValueCandidates::new(complete::runs))]
        run: RunSelector,
    },
}

/// Explain why a run is pending, and what would get it admitted.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof why last")]
pub(crate) struct Why {
    /// The run: r-41, 41, last (the newest of this project), or a blueprint for its newest
    #[arg(value_name = "RUN", add = ArgValueCandidates::new(complete::runs))]
    pub(crate) run: RunSelector,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// Print metrics of queues and runs for Prometheus.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof metrics > blueproof.prom")]
pub(crate) struct Metrics {
    /// The format of the page
    #[arg(short, long, value_name = "FORMAT", default_value = "prometheus")]
    pub(crate) output: MetricsFormat,
}

/// A format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricsFormat {
    /// Prometheus' text format 0.0.4, which node_exporter's textfile collector takes too
    Prometheus,
    /// OpenMetrics 1.0
    #[value(name = "openmetrics")]
    OpenMetrics,
}

impl From<MetricsFormat> for metrics::Format {
    fn from(format: MetricsFormat) -> Self {
        match format {
            MetricsFormat::Prometheus => Self::Prometheus,
            MetricsFormat::OpenMetrics => Self::OpenMetrics,
        }
    }
}

/// Say what a code means.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof explain BP0203")]
pub(crate) struct Explain {
    /// The code, such as BP0203; without one all are listed
    #[arg(add = ArgValueCandidates::new(complete::codes))]
    pub(crate) code: Option<String>,
}

/// Print the JSON Schema of a file that is read, or of a document that is written.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof schema config > config.schema.json")]
pub(crate) struct Schema {
    /// The kind of file or document
    pub(crate) kind: SchemaKind,
}

/// A kind of file or document that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// A blueprint
    Blueprint,
    /// A configuration file
    Config,
    /// An event of the log
    Event,
    /// The connection of a scheduler to GitHub
    #[value(name = "github-connection")]
    GitHubConnection,
    /// What a repository says about its pull requests, in `.github/blueproof.yaml`
    PullRequestPolicy,
    /// A run, as `get run -o json` writes it
    Run,
    /// Runners of a scale set, as `blueproof-scheduler serve --runners` reads them
    RunnerScaleSet,
    /// Jobs and queues to simulate, as `simulate -f` reads them
    Simulation,
}

/// Say what is configured.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof config show --origin")]
pub(crate) struct Configuration {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// What of the configuration is shown.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the values in effect
    #[command(after_help = "Example:\n  blueproof config show --origin")]
    Show(ConfigShow),
    /// List the configuration files, in order of precedence
    #[command(after_help = "Example:\n  blueproof config path")]
    Path,
    /// List the contexts: schedulers and stores with a name
    #[command(after_help = "Example:\n  blueproof config get-contexts -o name")]
    GetContexts(ConfigGetContexts),
    /// Print the name of the current context
    #[command(after_help = "Example:\n  blueproof config current-context")]
    CurrentContext,
    /// Make a context the current one, in the file that `--config` names, or else in your own
    #[command(after_help = "Example:\n  blueproof config use-context team")]
    UseContext(ConfigUseContext),
}

/// List the contexts.
#[derive(Debug, Args)]
pub(crate) struct ConfigGetContexts {
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<ContextFormat>,
}

/// How contexts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ContextFormat {
    /// A JSON document
    Json,
    /// A YAML document
    Yaml,
    /// Only the names
    Name,
}

/// Make a context the current one.
#[derive(Debug, Args)]
pub(crate) struct ConfigUseContext {
    /// The name of the context
    pub(crate) name: String,
}

/// Show the values in effect.
#[derive(Debug, Args)]
pub(crate) struct ConfigShow {
    /// Show where each value comes from
    #[arg(long)]
    pub(crate) origin: bool,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// Print a script that completes commands in a shell.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof completion fish > ~/.config/fish/completions/blueproof.fish")]
pub(crate) struct Completion {
    /// The shell
    pub(crate) shell: Shell,
}

/// Print the version.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  blueproof version -o json")]
pub(crate) struct Version {
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}
