//! What can be typed to have something done.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use jiff::SignedDuration;

use super::attempt::AttemptChoice;
use crate::{
    complete,
    exit::{self, Exit},
    output::DocumentFormat,
    select::RunSelector,
};

/// Test a blueprint or a notebook.
#[derive(Debug, Args)]
#[command(
    after_help = exit::help("Examples:\n  blueproof run nano-lm\n  blueproof run examples/small-gpt --profile smoke -p steps=50\n\n\
    While it goes on:\n  \
    Ctrl-C   interrupts the cell and ends the notebook there; a second one ends the run at once;\n           \
    a third one lets go of it: its agent ends it, and `blueproof wait last` shows how\n  \
    SIGTERM  ends the run at once; a second one lets go of it\n  \
    SIGHUP   leaves the run to itself, as with --detach: the terminal is gone\n  \
    With `retry` it is the same. `wait` and `cancel` only stop waiting.", &Exit::OF_RUNS)
)]
pub(crate) struct Run {
    /// The name of a blueprint in this checkout, or the path of a blueprint, its folder, or a notebook
    #[arg(add = ArgValueCompleter::new(complete::blueprints_and_paths))]
    pub(crate) blueprint: String,
    /// The profile to test it under
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// The value of a parameter
    #[arg(short, long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) parameters: Vec<(String, String)>,
    /// The LocalQueue to put it into; by default `local`, else the only one
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// Its priority, as a number or as the name of a WorkloadPriorityClass: higher goes first
    #[arg(
        long,
        value_name = "N|NAME",
        default_value = "0",
        allow_negative_numbers = true
    )]
    pub(crate) priority: String,
    /// Print the run's id and return at once
    #[arg(long)]
    pub(crate) detach: bool,
    /// Print nothing but the verdict, and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// Wait for runs.
#[derive(Debug, Args)]
#[command(after_help = exit::help("Example:\n  blueproof wait last --timeout 10m", &Exit::OF_RUNS))]
pub(crate) struct Wait {
    /// The runs: r-41, 41, last (the newest of this project), or a blueprint for its newest
    #[arg(value_name = "RUN", required = true, add = ArgValueCandidates::new(complete::runs))]
    pub(crate) runs: Vec<RunSelector>,
    /// Stop waiting after this long, with exit code 8
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub(crate) timeout: Option<SignedDuration>,
    /// Print nothing but the verdict, and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// End a run.
#[derive(Debug, Args)]
#[command(after_help = exit::help_saying(
    "Examples:\n  blueproof cancel last\n  blueproof cancel r-41 r-42",
    &[
        (Exit::Ok, "the run is over"),
        (Exit::Usage, exit::MISTAKE),
        (Exit::Infrastructure, exit::FAILS),
        (Exit::Interrupted, "the command was interrupted; the run is ended all the same"),
    ],
))]
pub(crate) struct Cancel {
    /// The runs: r-41, 41, last (the newest of this project), or a blueprint for its newest
    #[arg(value_name = "RUN", required = true, add = ArgValueCandidates::new(complete::runs))]
    pub(crate) runs: Vec<RunSelector>,
}

/// Retry a run that has ended.
#[derive(Debug, Args)]
#[command(after_help = exit::help("Example:\n  blueproof retry last", &Exit::OF_RUNS))]
pub(crate) struct Retry {
    /// The run: r-41, 41, last (the newest of this project), or a blueprint for its newest
    #[arg(value_name = "RUN", add = ArgValueCandidates::new(complete::runs))]
    pub(crate) run: RunSelector,
    /// Print the run's id and return at once
    #[arg(long)]
    pub(crate) detach: bool,
    /// Print nothing but the verdict, and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// Show what a run printed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  blueproof logs -f last\n  blueproof logs last --failed")]
pub(crate) struct Logs {
    /// The run: r-41, 41, last (the newest of this project), or a blueprint for its newest
    #[arg(value_name = "RUN", add = ArgValueCandidates::new(complete::runs))]
    pub(crate) run: RunSelector,
    #[command(flatten)]
    pub(crate) attempt: AttemptChoice,
    /// Follow the output until the run ends
    #[arg(short, long, conflicts_with = "attempt")]
    pub(crate) follow: bool,
    /// Only this cell, by its position in the notebook
    #[arg(long, value_name = "N", conflicts_with = "failed")]
    pub(crate) cell: Option<u32>,
    /// Only the cell that failed
    #[arg(long, conflicts_with = "follow")]
    pub(crate) failed: bool,
}

/// Look for mistakes and hazards in a blueprint and its notebook.
#[derive(Debug, Args)]
#[command(after_help = exit::help(
    "Example:\n  blueproof check examples/nano-lm",
    &[Exit::Ok, Exit::Failed, Exit::Usage, Exit::Infrastructure],
))]
pub(crate) struct Check {
    /// Blueprints, their folders, or notebooks; every blueprint of this checkout where none is named
    #[arg(value_name = "PATH", add = ArgValueCompleter::new(complete::blueprints_and_paths))]
    pub(crate) paths: Vec<String>,
    /// Fail on warnings, too
    #[arg(long)]
    pub(crate) strict: bool,
    /// The output format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// Write a blueprint for a notebook.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  blueproof init train.ipynb\n  blueproof init train.ipynb --stdout")]
pub(crate) struct Init {
    /// The notebook
    #[arg(value_name = "NOTEBOOK")]
    pub(crate) notebook: PathBuf,
    /// Overwrite an existing blueprint
    #[arg(long)]
    pub(crate) force: bool,
    /// Print it instead of writing it
    #[arg(long, conflicts_with = "force")]
    pub(crate) stdout: bool,
}

/// Show where a run's report is, or print it.
///
/// Of a run on a server the page is copied into your cache folder.
#[derive(Debug, Args)]
#[command(
    after_help = exit::help(
        "Examples:\n  blueproof report last --open\n  blueproof report last --format junit > junit.xml",
        &[Exit::Ok, Exit::Usage, Exit::Infrastructure, Exit::Pending],
    )
)]
pub(crate) struct Report {
    /// The run: r-41, 41, last (the newest of this project), or a blueprint for its newest
    #[arg(value_name = "RUN", add = ArgValueCandidates::new(complete::runs))]
    pub(crate) run: RunSelector,
    #[command(flatten)]
    pub(crate) attempt: AttemptChoice,
    /// Print the report in this format
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<ReportFormat>,
    /// Open the page; its path is printed, too
    #[arg(long, conflicts_with = "format")]
    pub(crate) open: bool,
}

/// The formats of a report.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ReportFormat {
    Html,
    Json,
    Junit,
}

/// List the files that a run kept, or copy them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  blueproof artifacts last\n  blueproof artifacts last --to ./out")]
pub(crate) struct Artifacts {
    /// The run: r-41, 41, last (the newest of this project), or a blueprint for its newest
    #[arg(value_name = "RUN", add = ArgValueCandidates::new(complete::runs))]
    pub(crate) run: RunSelector,
    #[command(flatten)]
    pub(crate) attempt: AttemptChoice,
    /// Copy them into this folder, which is created
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<PathBuf>,
    /// Overwrite files of the same names there
    #[arg(long, requires = "to")]
    pub(crate) overwrite: bool,
    /// How they are listed: as documents with the names as they are, which else stand one a line, with escapes as in `ls -b`
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<DocumentFormat>,
}

/// Carry out one attempt: what a cluster driver starts, not people.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// The attempt's folder
    pub(crate) folder: PathBuf,
}

/// Become another program that dies with its parent: the step between an agent and its kernel.
#[derive(Debug, Args)]
pub(crate) struct Launch {
    /// The parent's id, the program, and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a parameter is given as NAME=VALUE")?;
    Ok((name.trim().into(), value.into()))
}

pub(super) fn span(text: &str) -> Result<SignedDuration, String> {
    let span: SignedDuration = text
        .parse()
        .map_err(|_| "a duration looks like 90s, 10m or 1h30m".to_owned())?;
    if span.is_negative() {
        Err("a duration is not negative".into())
    } else {
        Ok(span)
    }
}

/// Reads a span of time; days are 24 hours.
pub(super) fn days(text: &str) -> Result<SignedDuration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<i32>().ok());
    let span = match days {
        Some(days) => Some(SignedDuration::from_hours(24) * days),
        None => text.parse::<SignedDuration>().ok(),
    };
    span.filter(|span| span.is_positive())
        .ok_or_else(|| "spans are written as 30d, 12h or 90m".into())
}
