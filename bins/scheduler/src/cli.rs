//! The command line.

use std::path::PathBuf;

use blueproof_core::domain::{Bytes, Cpus};
use blueproof_host::{
    Retention,
    api::{Address, Role},
};
use blueproof_machine::IsolationPolicy;
use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::{SignedDuration, Timestamp};

/// Runs the scheduler and serves its API.
#[derive(Debug, Parser)]
#[command(
    name = "blueproof-scheduler",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the scheduler and serve its API, until SIGTERM
    Serve(Box<Serve>),
    /// Create, list and remove tokens for the API
    Token(Token),
    /// Print the OpenAPI description of the API
    Openapi,
    /// Write files of blueproof's from those of other programs
    #[command(subcommand)]
    Import(Import),
    /// Answer hooks of GitHub's runner
    #[command(subcommand)]
    Hook(Hook),
}

/// From which program.
#[derive(Debug, Subcommand)]
pub(crate) enum Import {
    /// Print the RunnerScaleSet for the values of the Helm chart gha-runner-scale-set; name what has no place in it
    Arc(Arc),
}

/// The values of a chart.
#[derive(Debug, Args)]
pub(crate) struct Arc {
    /// The file with the values
    pub(crate) values: PathBuf,
    /// The name of the Helm release, which is the scale set's name where the values set none
    #[arg(long, value_name = "RELEASE")]
    pub(crate) name: Option<String>,
}

/// Which hook.
#[derive(Debug, Subcommand)]
pub(crate) enum Hook {
    /// Ask the scheduler whether the job may start that is about to; end with an error unless it may
    JobStarted(JobStarted),
}

/// Where to ask.
#[derive(Debug, Args)]
pub(crate) struct JobStarted {
    /// The address of the scheduler's `--runner-hook`, such as http://127.0.0.1:8791
    #[arg(long, value_name = "URL")]
    pub(crate) scheduler: String,
}

/// What is served, and where.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The store of all runs; it is created if it does not exist
    #[arg(long, value_name = "FILE", env = "BLUEPROOF_STORE")]
    pub(crate) store: Option<PathBuf>,
    /// Where to listen: unix:PATH, or a loopback address and port [default: scheduler.sock beside the store]
    #[arg(long, value_name = "ADDRESS", env = "BLUEPROOF_LISTEN", value_delimiter = ',')]
    pub(crate) listen: Vec<Address>,
    #[command(flatten)]
    pub(crate) tokens: TokensFile,
    /// The connection to GitHub, a file of the kind GitHubConnection: pull requests of its repositories are followed
    #[arg(long, value_name = "FILE", env = "BLUEPROOF_GITHUB")]
    pub(crate) github: Option<PathBuf>,
    /// Files of the kind RunnerScaleSet: runners of GitHub Actions are made for the jobs of each
    #[arg(long, value_name = "FILE", env = "BLUEPROOF_RUNNERS", value_delimiter = ',')]
    pub(crate) runners: Vec<PathBuf>,
    /// Where runners ask whether a job may start: a loopback address and port, such as 127.0.0.1:8791
    #[arg(long, value_name = "ADDRESS", env = "BLUEPROOF_RUNNER_HOOK")]
    pub(crate) runner_hook: Option<Address>,
    #[command(flatten)]
    pub(crate) machine: Machine,
    #[command(flatten)]
    pub(crate) limits: Limits,
    /// The format of the log on stderr
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        env = "BLUEPROOF_LOG_FORMAT"
    )]
    pub(crate) log_format: LogFormat,
    /// The filter of the log, as in tracing: `info`, `blueproof_core=debug`
    #[arg(
        long = "log-level",
        alias = "log",
        value_name = "FILTER",
        default_value = "info",
        env = "BLUEPROOF_LOG"
    )]
    pub(crate) log: String,
}

/// What runs may use of this machine.
#[derive(Debug, Args)]
pub(crate) struct Machine {
    /// The folder that keeps Python environments for reuse
    #[arg(long, value_name = "FOLDER", env = "BLUEPROOF_ENVIRONMENTS")]
    pub(crate) environments: Option<PathBuf>,
    /// How many cores the local queue may promise [default: all]
    #[arg(long, value_name = "CORES", env = "BLUEPROOF_LOCAL_CPU")]
    pub(crate) cpu: Option<Cpus>,
    /// How much memory the local queue may promise [default: all]
    #[arg(long, value_name = "BYTES", env = "BLUEPROOF_LOCAL_MEMORY")]
    pub(crate) memory: Option<Bytes>,
    /// Whether a request for a run of a folder of this machine approves that run [default: `false` if the API listens on an
    /// address, where any holder of a token could run any content; else as the store had it last, and `true` for a new one]
    #[arg(long, value_name = "BOOL", env = "BLUEPROOF_LOCAL_SELF_APPROVE", action = clap::ArgAction::Set)]
    pub(crate) self_approve: Option<bool>,
    /// The users or tokens, by name, that may approve the runs of others
    #[arg(
        long = "approver",
        value_name = "NAME",
        env = "BLUEPROOF_LOCAL_APPROVERS",
        value_delimiter = ',',
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    pub(crate) approvers: Vec<String>,
    /// Which notebooks run in a sandbox
    #[arg(
        long,
        value_name = "NOTEBOOKS",
        default_value = "strangers",
        env = "BLUEPROOF_LOCAL_ISOLATION"
    )]
    pub(crate) isolation: Isolation,
    /// The `blueproof` program, which carries out attempts [default: the one beside this program]
    #[arg(long, value_name = "FILE", env = "BLUEPROOF_AGENT")]
    pub(crate) agent: Option<PathBuf>,
}

/// Which notebooks run in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Isolation {
    /// Those of pull requests; they do not run where no sandbox can be made
    Strangers,
    /// All of them
    Always,
    /// None: nothing on this machine needs protection
    Disposable,
}

impl From<Isolation> for IsolationPolicy {
    fn from(isolation: Isolation) -> Self {
        match isolation {
            Isolation::Strangers => Self::Strangers,
            Isolation::Always => Self::Always,
            Isolation::Disposable => Self::Disposable,
        }
    }
}

/// How long runs that have ended are kept; by default for ever.
#[derive(Debug, Args)]
pub(crate) struct Limits {
    /// Keep runs for this long after they ended, such as 90d
    #[arg(long, value_name = "DURATION", value_parser = span, env = "BLUEPROOF_RETENTION_AGE")]
    pub(crate) retention_age: Option<SignedDuration>,
    /// Keep this many runs, those that ended last
    #[arg(long, value_name = "N", env = "BLUEPROOF_RETENTION_RUNS")]
    pub(crate) retention_runs: Option<usize>,
    /// Keep outputs of runs up to this size, such as 50Gi; the runs themselves stay
    #[arg(long, value_name = "BYTES", env = "BLUEPROOF_RETENTION_OUTPUT")]
    pub(crate) retention_output: Option<Bytes>,
}

/// Where tokens are kept.
#[derive(Debug, Args)]
pub(crate) struct TokensFile {
    /// The file of tokens [default: scheduler-tokens.yaml in the user's configuration folder]
    #[arg(long = "tokens", value_name = "FILE", env = "BLUEPROOF_TOKENS")]
    pub(crate) path: Option<PathBuf>,
}

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text for people
    Text,
    /// One JSON object a line
    Json,
}

/// What to do with tokens.
#[derive(Debug, Args)]
pub(crate) struct Token {
    #[command(flatten)]
    pub(crate) file: TokensFile,
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it; it is not shown again
    Create {
        /// The name of the person or program that uses the token
        name: String,
        /// The role of the token
        #[arg(long, value_parser = role)]
        role: Role,
        /// When the token expires: a time such as 2027-01-31T00:00:00Z, or a span from now such as 90d [default: never]
        #[arg(long, value_name = "WHEN", value_parser = expires)]
        expires: Option<Timestamp>,
    },
    /// List tokens with their names, roles and expiry
    List,
    /// Remove a token, which is refused from now on
    Remove {
        /// The name of the token
        name: String,
    },
}

fn role(text: &str) -> Result<Role, String> {
    let found = Role::ALL.into_iter().find(|role| role.as_str() == text);
    found.ok_or_else(|| "the roles are read, run, approve and admin".into())
}

fn expires(text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let at = span(text)
        .ok()
        .and_then(|span| Timestamp::now().checked_add(span).ok());
    at.ok_or_else(|| {
        "give a time such as 2027-01-31T00:00:00Z, or a number of days or hours such as 90d or 12h".into()
    })
}

/// Reads a number of days or hours.
fn span(text: &str) -> Result<SignedDuration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    let hours = text.strip_suffix('h').and_then(|hours| hours.parse::<u32>().ok());
    let hours = days.map(|days| i64::from(days) * 24).or(hours.map(i64::from));
    let span = hours.map(SignedDuration::from_hours);
    span.ok_or_else(|| "give a number of days or hours, such as 90d or 12h".into())
}

impl Limits {
    /// Returns the limits.
    pub(crate) fn retention(&self) -> Retention {
        Retention {
            age: self.retention_age,
            runs: self.retention_runs,
            output: self.retention_output,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn what_can_be_typed_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_token_expires_at_a_time_or_after_a_span() {
        let at = "2027-01-31T00:00:00Z";
        assert_eq!(expires(at), Ok(at.parse().expect("a time")));
        let in_days = expires("90d").expect("a span").duration_since(Timestamp::now());
        assert!((in_days.as_hours() - 90 * 24).abs() <= 1);
        for wrong in ["", "d", "-1d", "soon", "1y"] {
            expires(wrong).expect_err(wrong);
        }
    }
}
