//! The arguments.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

/// What the GPUs of this machine are and do, for Prometheus.
#[derive(Debug, Parser)]
#[command(
    name = "blueproof-exporter",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Where to listen; in a cluster `0.0.0.0:9477`.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:9477",
        env = "BLUEPROOF_EXPORTER_LISTEN"
    )]
    pub(crate) listen: SocketAddr,

    /// A file with TLS and passwords, as exporter-toolkit of Prometheus has it; all paths ask for them then, `/health` too.
    #[arg(
        long,
        value_name = "FILE",
        env = "BLUEPROOF_EXPORTER_WEB_CONFIG",
        conflicts_with = "once"
    )]
    pub(crate) web_config: Option<PathBuf>,

    /// Print one page, and end.
    #[arg(long)]
    pub(crate) once: bool,

    /// Which page `/metrics` is; `/metrics/native` and `/metrics/dcgm` are both there.
    #[arg(
        long,
        value_name = "PAGE",
        default_value = "native",
        env = "BLUEPROOF_EXPORTER_PAGE"
    )]
    pub(crate) page: PageKind,

    /// What the label with the host's name is called on the page of dcgm-exporter.
    #[arg(long, value_name = "LABEL", default_value = "Hostname")]
    pub(crate) host_label: HostLabel,

    /// The host's name; by default this machine's.
    #[arg(long, value_name = "NAME", env = "NODE_NAME")]
    pub(crate) host: Option<String>,

    /// How many milliseconds a scrape waits for devices at most; by default half a second less than the scraper does, which
    /// Prometheus says with each scrape. After that it gets what was read before, and is told so.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub(crate) wait: Option<Duration>,

    /// What else to read, or to show; may be several, with commas between them.
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        env = "BLUEPROOF_EXPORTER_COLLECT"
    )]
    pub(crate) collect: Vec<Collect>,

    /// The socket by which this node's kubelet tells who has which device; by default the usual one, where it is.
    #[arg(long, value_name = "SOCKET", env = "BLUEPROOF_EXPORTER_POD_RESOURCES")]
    pub(crate) pod_resources: Option<PathBuf>,

    /// One more resource that is GPUs, besides `nvidia.com/gpu` and `nvidia.com/mig-*`; a `*` at its end stands for anything.
    #[arg(long = "gpu-resource", value_name = "NAME")]
    pub(crate) gpu_resources: Vec<String>,

    /// The folder of this machine's runs, beside blueproof's store: shows what attempts make of the devices they were given.
    #[arg(
        long,
        value_name = "FOLDER",
        env = "BLUEPROOF_EXPORTER_RUNS",
        conflicts_with = "recorded"
    )]
    pub(crate) runs: Option<PathBuf>,

    /// The NVIDIA driver's library, if not the system's.
    #[arg(long, value_name = "PATH", conflicts_with = "recorded")]
    pub(crate) library: Option<PathBuf>,

    /// Read TPUs instead, from the page of their device plugin; on a node of GKE `http://127.0.0.1:2112/metrics`.
    #[arg(
        long,
        value_name = "URL",
        env = "TPU_DEVICE_PLUGIN_ADDR",
        conflicts_with_all = ["library", "recorded"]
    )]
    pub(crate) tpu: Option<String>,

    /// Show a recording instead of devices.
    #[arg(long, value_name = "FILE")]
    pub(crate) recorded: Option<PathBuf>,

    /// Write all that is read to a file that is not there yet.
    #[arg(long, value_name = "FILE", conflicts_with = "recorded")]
    pub(crate) record: Option<PathBuf>,
}

/// What it can do but serve pages.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Job(Job),
    Health(Health),
}

/// How the GPUs fare: what each check finds of them.
///
/// The exit code is 0 where all that counts is ok, 1 where there is a problem, and 3 where it is not known.
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// How many devices there should be; where nobody says, fewer are no problem.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) expect: Option<u32>,
    /// As what it is printed.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: HealthFormat,
    /// Go on, and keep the node's labels in this file, as node-feature-discovery reads it: Autopilot's and ours. Each
    /// change is printed. What stands in the file is taken over.
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub(crate) labels: Option<PathBuf>,
    /// How many seconds there are from one look to the next.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "15",
        value_parser = clap::value_parser!(u32).range(1..),
        requires = "labels"
    )]
    pub(crate) every: u32,
    /// The NVIDIA driver's library, if not the system's.
    #[arg(long, value_name = "PATH")]
    pub(crate) library: Option<PathBuf>,
}

/// As what findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HealthFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// What one job makes of the GPUs, where nobody scrapes.
///
/// Around a command: `job -- python train.py`. Around steps: `job start`, the steps, `job stop`. The summary goes to the
/// terminal, to the step's summary on GitHub (GITHUB_STEP_SUMMARY), and to files.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Job {
    #[command(subcommand)]
    pub(crate) command: Option<JobCommand>,
    #[command(flatten)]
    pub(crate) watched: Watched,
    #[command(flatten)]
    pub(crate) published: Published,
    /// The command, behind two dashes. Its exit code is passed on.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) words: Vec<OsString>,
}

/// A part of a job that is several steps.
#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Begin to watch, in the background.
    Start(Start),
    /// Watch until told to end.
    #[command(hide = true)]
    Keep(Start),
    /// End, and publish the summary.
    Stop(Stop),
    /// Print what is known, also while the job goes on.
    Report(Report),
}

/// Begin to watch, in the background.
#[derive(Debug, Args)]
pub(crate) struct Start {
    #[command(flatten)]
    pub(crate) state: State,
    #[command(flatten)]
    pub(crate) watched: Watched,
}

/// End, and publish the summary.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    #[command(flatten)]
    pub(crate) state: State,
    #[command(flatten)]
    pub(crate) published: Published,
}

/// Print what is known.
#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) state: State,
    /// As what.
    #[arg(long, short, value_name = "FORMAT", default_value = "markdown")]
    pub(crate) output: ReportFormat,
}

/// As what a summary is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people.
    Markdown,
    /// For programs; it has a schema version.
    Json,
}

/// Where a job's files are.
#[derive(Debug, Args)]
pub(crate) struct State {
    /// The folder in which the job is known; on a runner of GitHub one below RUNNER_TEMP.
    #[arg(long = "state", value_name = "FOLDER", env = "BLUEPROOF_JOB_STATE")]
    pub(crate) folder: Option<PathBuf>,
}

/// Whose devices are watched, and through what.
#[derive(Debug, Args)]
pub(crate) struct Watched {
    /// What the job is called in its summary; by default as on GitHub, or as the command.
    #[arg(long, value_name = "NAME", env = "GITHUB_JOB")]
    pub(crate) name: Option<String>,
    /// The NVIDIA driver's library, if not the system's.
    #[arg(long, value_name = "PATH")]
    pub(crate) library: Option<PathBuf>,
}

/// Where a summary goes.
#[derive(Debug, Args)]
pub(crate) struct Published {
    /// Write it to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write it to this file as Markdown.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Push it to a collector of OpenTelemetry at this address, such as `http://localhost:4318`: OTLP over HTTP, as JSON.
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub(crate) otlp: Option<String>,
    /// Do not print it.
    #[arg(long = "quiet", short, action = ArgAction::SetFalse)]
    pub(crate) is_told: bool,
}

/// What is not read, or not shown, unless somebody wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Collect {
    /// What goes over PCIe, also of NVIDIA's cards before Hopper: the driver counts 40 ms for each.
    Pcie,
    /// Memory and use of each process that is on a device: there are as many series as processes come and go.
    Processes,
}

/// A page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageKind {
    /// Our own.
    Native,
    /// In dcgm-exporter's names.
    Dcgm,
}

/// What the label with the host's name is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostLabel {
    /// As in dcgm-exporter until 2026, and in most dashboards.
    #[value(name = "Hostname")]
    Capital,
    /// As in dcgm-exporter since.
    #[value(name = "hostname")]
    Small,
    /// It is left out.
    #[value(name = "none")]
    None,
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let number = text
        .parse()
        .map_err(|_| "want a number of milliseconds, such as 40".to_owned())?;
    Ok(Duration::from_millis(number))
}
