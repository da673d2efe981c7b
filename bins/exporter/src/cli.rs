//! The arguments.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _},
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use blueproof_cluster::pod_resources::USUAL_CHECKPOINT;
use clap::{
    ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum,
    builder::{BoolishValueParser, Resettable},
};

/// Exports metrics of this machine's GPUs to Prometheus.
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

    /// Where to listen, such as `:9477`, which is every address of this machine, or `localhost:9477`.
    /// By default `127.0.0.1:9477`, and `:9400` as a replacement for dcgm-exporter.
    #[arg(long, value_name = "ADDRESS", env = "BLUEPROOF_EXPORTER_LISTEN")]
    pub(crate) listen: Option<Listen>,

    /// A file with TLS and passwords in the format of Prometheus' exporter-toolkit; they protect all paths, `/health` too.
    #[arg(
        long,
        value_name = "FILE",
        env = "BLUEPROOF_EXPORTER_WEB_CONFIG",
        conflicts_with = "once"
    )]
    pub(crate) web_config: Option<PathBuf>,

    /// Print one page and exit.
    #[arg(long)]
    pub(crate) once: bool,

    /// The page at `/metrics`; `/metrics/native` and `/metrics/dcgm` are always served. By default the native page, and
    /// dcgm-exporter's as a replacement for it.
    #[arg(long, value_name = "PAGE", env = "BLUEPROOF_EXPORTER_PAGE")]
    pub(crate) page: Option<PageKind>,

    /// The name of the label with the host's name, on the page of dcgm-exporter.
    #[arg(long, value_name = "LABEL", default_value = "Hostname")]
    pub(crate) host_label: HostLabel,

    /// The host's name; by default the name of this machine.
    #[arg(long, value_name = "NAME", env = "NODE_NAME")]
    pub(crate) host: Option<String>,

    /// How many milliseconds a scrape waits for devices at most; by default half a second less than the scrape timeout that
    /// Prometheus sends. After that the scrape gets the previous readings, with their age.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub(crate) wait: Option<Duration>,

    /// What else to collect; several are separated by commas.
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        env = "BLUEPROOF_EXPORTER_COLLECT"
    )]
    pub(crate) collect: Vec<Collect>,

    /// The kubelet's pod resources socket, which reports the devices of pods; by default the usual path, if it exists.
    #[arg(long, value_name = "SOCKET", env = "BLUEPROOF_EXPORTER_POD_RESOURCES")]
    pub(crate) pod_resources: Option<PathBuf>,

    /// The checkpoint of the kubelet's device manager, with the UIDs of pods with devices; it is read with
    /// `--kubernetes-enable-pod-uid`.
    #[arg(
        long,
        value_name = "FILE",
        env = "BLUEPROOF_EXPORTER_KUBELET_CHECKPOINT",
        default_value = USUAL_CHECKPOINT
    )]
    pub(crate) kubelet_checkpoint: PathBuf,

    /// One more resource name of GPUs, besides `nvidia.com/gpu` and `nvidia.com/mig-*`; a `*` at its end matches anything.
    #[arg(long = "gpu-resource", value_name = "NAME")]
    pub(crate) gpu_resources: Vec<String>,

    /// The folder of this machine's runs, beside blueproof's store; it adds metrics of attempts and their devices.
    #[arg(
        long,
        value_name = "FOLDER",
        env = "BLUEPROOF_EXPORTER_RUNS",
        conflicts_with = "recorded"
    )]
    pub(crate) runs: Option<PathBuf>,

    /// The NVIDIA driver's library; by default the system's.
    #[arg(long, value_name = "PATH", conflicts_with = "recorded")]
    pub(crate) library: Option<PathBuf>,

    /// Read TPUs instead, from the metrics of their device plugin: an address, on a node of GKE `127.0.0.1:2112`, or a URL.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "BLUEPROOF_EXPORTER_TPU",
        value_parser = tpu_page,
        conflicts_with_all = ["library", "recorded"]
    )]
    pub(crate) tpu: Option<String>,

    /// Read a recording instead of devices.
    #[arg(long, value_name = "FILE")]
    pub(crate) recorded: Option<PathBuf>,

    /// Record all readings to a new file.
    #[arg(long, value_name = "FILE", conflicts_with = "recorded")]
    pub(crate) record: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) drop_in: DropIn,
}

impl Cli {
    /// Returns what was typed. A variable that is set to nothing counts as not set: that is what templates of Kubernetes
    /// leave of a value that is not.
    pub(crate) fn understood(arguments: Vec<OsString>) -> Result<Self, clap::Error> {
        let matches = without_empty_variables(Self::command()).try_get_matches_from(arguments)?;
        Self::from_arg_matches(&matches)
    }
}

fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |variable: &OsStr| env::var_os(variable).is_some_and(|value| value.is_empty());
    let command = command.mut_args(|argument| match argument.get_env() {
        Some(variable) if is_empty(variable) => argument.env(Resettable::Reset),
        Some(_) | None => argument,
    });
    command.mut_subcommands(without_empty_variables)
}

/// Where the exporter listens by default.
pub(crate) const OUR_ADDRESS: &str = "127.0.0.1:9477";

/// Options of dcgm-exporter. Any of them makes this exporter its replacement: with its port, and its page at `/metrics`.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "As a replacement for dcgm-exporter")]
pub(crate) struct DropIn {
    /// Replace dcgm-exporter: with its port 9400, and its page at `/metrics`.
    #[arg(long)]
    pub(crate) dcgm_exporter: bool,

    /// A file with the fields to export, such as dcgm-exporter's `default-counters.csv`.
    #[arg(long, short = 'f', value_name = "FILE", env = "DCGM_EXPORTER_COLLECTORS")]
    pub(crate) collectors: Option<PathBuf>,

    /// Where to listen.
    #[arg(long, short = 'a', value_name = "ADDRESS", env = "DCGM_EXPORTER_LISTEN")]
    pub(crate) address: Option<Listen>,

    /// Ignored: devices are read with each scrape.
    #[arg(long, short = 'c', value_name = "MS", env = "DCGM_EXPORTER_INTERVAL")]
    pub(crate) collect_interval: Option<u64>,

    /// Add the pods of devices; without it the kubelet is not asked, as in dcgm-exporter.
    #[arg(
        long,
        short = 'k',
        value_name = "TRUE",
        env = "DCGM_EXPORTER_KUBERNETES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) kubernetes: Option<bool>,

    /// Add the UIDs of pods, from the checkpoint of the kubelet's device manager: its folder `device-plugins` must be
    /// mounted. A pod whose UID is ambiguous has no `pod_uid`.
    #[arg(
        long,
        env = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) kubernetes_enable_pod_uid: bool,

    /// Leave out the label with the host's name.
    #[arg(
        long,
        short = 'n',
        env = "DCGM_EXPORTER_NO_HOSTNAME",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) no_hostname: bool,

    /// As `--web-config`.
    #[arg(long, value_name = "FILE", env = "DCGM_EXPORTER_WEB_CONFIG_FILE")]
    pub(crate) web_config_file: Option<PathBuf>,

    /// As `--pod-resources`.
    #[arg(long, value_name = "SOCKET", env = "DCGM_POD_RESOURCES_KUBELET_SOCKET")]
    pub(crate) pod_resources_kubelet_socket: Option<PathBuf>,

    /// As `--gpu-resource`; several are separated by commas.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        env = "NVIDIA_RESOURCE_NAMES"
    )]
    pub(crate) nvidia_resource_names: Vec<String>,

    /// Replace each blank in a model's name by a dash.
    #[arg(
        long,
        env = "DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) replace_blanks_in_model_name: bool,

    /// The devices to export; only `f`, which is all of them.
    #[arg(long, short = 'd', value_name = "DEVICES", env = "DCGM_EXPORTER_DEVICES_STR")]
    pub(crate) devices: Option<String>,
}

impl DropIn {
    /// Returns whether it replaces dcgm-exporter.
    pub(crate) fn is_dropped_in(&self) -> bool {
        self.dcgm_exporter
            || self.collectors.is_some()
            || self.address.is_some()
            || self.collect_interval.is_some()
            || self.kubernetes.is_some()
            || self.kubernetes_enable_pod_uid
            || self.no_hostname
            || self.web_config_file.is_some()
            || self.pod_resources_kubelet_socket.is_some()
            || self.replace_blanks_in_model_name
            || self.devices.is_some()
            || !self.nvidia_resource_names.is_empty()
    }

    /// Returns whether the kubelet is asked for the devices of pods.
    pub(crate) fn asks_kubelet(&self) -> bool {
        self.kubernetes.unwrap_or(!self.is_dropped_in())
    }
}

/// The commands other than serving pages.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Job(Job),
    Health(Health),
}

/// Checks the health of the GPUs.
///
/// The exit code is 0 if all checks pass, 1 if there is a problem, and 3 if the health is unknown.
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// How many devices the machine should have; by default any number is accepted.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) expect: Option<u32>,
    /// The output format.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: HealthFormat,
    /// Keep running, and write the node's labels (Autopilot's and our own) to this file for node-feature-discovery. Each
    /// change is printed. Labels that are in the file already are taken over.
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub(crate) labels: Option<PathBuf>,
    /// The seconds between two checks.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "15",
        value_parser = clap::value_parser!(u32).range(1..),
        requires = "labels"
    )]
    pub(crate) every: u32,
    /// For how many seconds all checks must pass before the node does.
    #[arg(long, value_name = "SECONDS", default_value = "120", requires = "labels")]
    pub(crate) pass_after: u32,
    /// The NVIDIA driver's library; by default the system's.
    #[arg(long, value_name = "PATH")]
    pub(crate) library: Option<PathBuf>,
}

/// The format of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HealthFormat {
    /// Text for people.
    Text,
    /// JSON for programs.
    Json,
}

/// Reports how one job uses the GPUs, without Prometheus.
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
    /// The command, after two dashes. Its exit code is passed on.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) words: Vec<OsString>,
}

/// A part of a job of several steps.
#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Start watching in the background.
    Start(Start),
    /// Watch until asked to stop.
    #[command(hide = true)]
    Keep(Start),
    /// Stop watching and publish the summary.
    Stop(Stop),
    /// Print the current summary, also while the job runs.
    Report(Report),
}

/// Start watching in the background.
#[derive(Debug, Args)]
pub(crate) struct Start {
    #[command(flatten)]
    pub(crate) state: State,
    #[command(flatten)]
    pub(crate) watched: Watched,
}

/// Stop watching and publish the summary.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    #[command(flatten)]
    pub(crate) state: State,
    #[command(flatten)]
    pub(crate) published: Published,
}

/// Print the current summary.
#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) state: State,
    /// The output format.
    #[arg(long, short, value_name = "FORMAT", default_value = "markdown")]
    pub(crate) output: ReportFormat,
}

/// The format of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Markdown for people.
    Markdown,
    /// JSON for programs, with a schema version.
    Json,
}

/// Where a job's files are.
#[derive(Debug, Args)]
pub(crate) struct State {
    /// The folder that identifies the job; on a GitHub runner by default one below RUNNER_TEMP.
    #[arg(long = "state", value_name = "FOLDER", env = "BLUEPROOF_JOB_STATE")]
    pub(crate) folder: Option<PathBuf>,
}

/// What is watched, and how.
#[derive(Debug, Args)]
pub(crate) struct Watched {
    /// The name of the job in its summary; by default the name of the GitHub job, or the command.
    #[arg(long, value_name = "NAME", env = "GITHUB_JOB")]
    pub(crate) name: Option<String>,
    /// The NVIDIA driver's library; by default the system's.
    #[arg(long, value_name = "PATH")]
    pub(crate) library: Option<PathBuf>,
}

/// Where a summary goes.
#[derive(Debug, Args)]
pub(crate) struct Published {
    /// Write the summary to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the summary to this file as Markdown.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Push the summary to an OpenTelemetry collector, such as `http://localhost:4318`, by OTLP over HTTP as JSON.
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub(crate) otlp: Option<String>,
    /// Do not print the summary.
    #[arg(long = "quiet", short = 'q', action = ArgAction::SetFalse)]
    pub(crate) is_told: bool,
}

/// What is collected only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Collect {
    /// PCIe traffic, also of NVIDIA devices before Hopper: the driver takes 40 ms for each.
    Pcie,
    /// Memory and utilization of each process on a device: each process adds series of its own.
    Processes,
}

/// A page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageKind {
    /// The exporter's own metrics.
    Native,
    /// Metrics with dcgm-exporter's names.
    Dcgm,
}

/// The name of the label with the host's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostLabel {
    /// As in dcgm-exporter until 2026, and in most dashboards.
    #[value(name = "Hostname")]
    Capital,
    /// As in dcgm-exporter since 2026.
    #[value(name = "hostname")]
    Small,
    /// Without that label.
    #[value(name = "none")]
    None,
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let number = text
        .parse()
        .map_err(|_| "want a number of milliseconds, such as 40".to_owned())?;
    Ok(Duration::from_millis(number))
}

/// Where to listen: what was written, and the addresses that it stands for, of which the first that can be is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listen {
    text: String,
    pub(crate) addresses: Vec<SocketAddr>,
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let every = [IpAddr::from(Ipv6Addr::UNSPECIFIED), Ipv4Addr::UNSPECIFIED.into()];
        let addresses: Vec<_> = match text.strip_prefix(':') {
            Some(port) => {
                let port = port.parse().map_err(|_| WANTS_ADDRESS.to_owned())?;
                every.map(|every| SocketAddr::new(every, port)).into()
            }
            None => text
                .to_socket_addrs()
                .map_err(|error| format!("{WANTS_ADDRESS} ({error})"))?
                .collect(),
        };
        Ok(Self {
            text: text.to_owned(),
            addresses,
        })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

const WANTS_ADDRESS: &str = "want a host and a port, such as localhost:9477, or :9477 for every address";

/// Returns the URL of a device plugin's page: where only a host and a port are given, it is where GKE's has it.
fn tpu_page(text: &str) -> Result<String, String> {
    let (address, is_url) = match text.split_once("://") {
        Some((_, rest)) => (rest, true),
        None => (text, false),
    };
    if address.is_empty() || address.contains(char::is_whitespace) {
        return Err("want a host and a port, such as 127.0.0.1:2112, or a URL".to_owned());
    }
    let url = if is_url {
        text.to_owned()
    } else {
        format!("http://{address}/metrics")
    };
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood_as_people_write_them() {
        let addresses = |text: &str| {
            let listen = text.parse::<Listen>();
            listen.map(|listen| {
                listen
                    .addresses
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
            })
        };
        let every = ["[::]:9400", "0.0.0.0:9400"].map(str::to_owned);
        assert_eq!(addresses(":9400"), Ok(every.into()));
        assert_eq!(addresses("127.0.0.1:9477"), Ok(vec!["127.0.0.1:9477".to_owned()]));
        assert_eq!(addresses("[::1]:9477"), Ok(vec!["[::1]:9477".to_owned()]));
        let local = addresses("localhost:9477").expect("every machine knows itself");
        assert!(local.contains(&"127.0.0.1:9477".to_owned()), "{local:?}");
        for wrong in ["9400", ":", ":port", "127.0.0.1"] {
            assert!(addresses(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_device_plugin_is_named_by_host_and_port_or_by_a_url() {
        for (text, url) in [
            ("10.0.0.7:2112", "http://10.0.0.7:2112/metrics"),
            ("node-1:2112", "http://node-1:2112/metrics"),
            ("http://127.0.0.1:2112/metrics", "http://127.0.0.1:2112/metrics"),
            ("https://tpu/page", "https://tpu/page"),
        ] {
            assert_eq!(tpu_page(text).as_deref(), Ok(url));
        }
        assert!(tpu_page("").is_err() && tpu_page("http://").is_err());
    }

    #[test]
    fn a_job_is_quiet_by_its_first_letter() {
        let quiet = |letter: &str| {
            let cli = Cli::try_parse_from(["blueproof-exporter", "job", letter, "--", "true"]);
            cli.map(|cli| match cli.command {
                Some(Command::Job(job)) => !job.published.is_told,
                Some(Command::Health(_)) | None => false,
            })
        };
        assert_eq!(quiet("-q").ok(), Some(true));
        assert!(quiet("-i").is_err(), "it stands for nothing");
    }
}
