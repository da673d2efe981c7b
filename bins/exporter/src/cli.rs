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

    /// Where to listen, such as `:9477`, which is every address of this machine, or `localhost:9477`.
    /// By default `127.0.0.1:9477`, and dcgm-exporter's `:9400` in its place.
    #[arg(long, value_name = "ADDRESS", env = "BLUEPROOF_EXPORTER_LISTEN")]
    pub(crate) listen: Option<Listen>,

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

    /// Which page `/metrics` is; `/metrics/native` and `/metrics/dcgm` are both there. By default our own, and dcgm-exporter's
    /// in its place.
    #[arg(long, value_name = "PAGE", env = "BLUEPROOF_EXPORTER_PAGE")]
    pub(crate) page: Option<PageKind>,

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

    /// The file in which this node's kubelet writes down the UIDs of pods with devices; read where
    /// `--kubernetes-enable-pod-uid` asks for them.
    #[arg(
        long,
        value_name = "FILE",
        env = "BLUEPROOF_EXPORTER_KUBELET_CHECKPOINT",
        default_value = USUAL_CHECKPOINT
    )]
    pub(crate) kubelet_checkpoint: PathBuf,

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

    /// Read TPUs instead, from the page of their device plugin; on a node of GKE `127.0.0.1:2112`. A URL may be given, too.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "BLUEPROOF_EXPORTER_TPU",
        value_parser = tpu_page,
        conflicts_with_all = ["library", "recorded"]
    )]
    pub(crate) tpu: Option<String>,

    /// Show a recording instead of devices.
    #[arg(long, value_name = "FILE")]
    pub(crate) recorded: Option<PathBuf>,

    /// Write all that is read to a file that is not there yet.
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

/// Where we listen, if nobody says anything else.
pub(crate) const OUR_ADDRESS: &str = "127.0.0.1:9477";

/// What dcgm-exporter is told, in its own words. Any of it puts us in its place: its port, and its page at `/metrics`.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "In the place of dcgm-exporter")]
pub(crate) struct DropIn {
    /// Be in the place of dcgm-exporter: its port 9400, and its page at `/metrics`.
    #[arg(long)]
    pub(crate) dcgm_exporter: bool,

    /// A file that says which fields to show, such as its `default-counters.csv`.
    #[arg(long, short = 'f', value_name = "FILE", env = "DCGM_EXPORTER_COLLECTORS")]
    pub(crate) collectors: Option<PathBuf>,

    /// Where to listen.
    #[arg(long, short = 'a', value_name = "ADDRESS", env = "DCGM_EXPORTER_LISTEN")]
    pub(crate) address: Option<Listen>,

    /// Passed over: devices are read with each scrape.
    #[arg(long, short = 'c', value_name = "MS", env = "DCGM_EXPORTER_INTERVAL")]
    pub(crate) collect_interval: Option<u64>,

    /// Say which pod has which device; without it nobody is asked, as in dcgm-exporter.
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

    /// Say which UID a pod has, by the checkpoint of the kubelet's device manager: its folder `device-plugins` must be
    /// mounted. Where a pod cannot be told from another, it has no `pod_uid`.
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

    /// As `--gpu-resource`, several with commas between them.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        env = "NVIDIA_RESOURCE_NAMES"
    )]
    pub(crate) nvidia_resource_names: Vec<String>,

    /// Write a dash for each blank in a model's name.
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

    /// Which devices to tell of; only `f`, which are all.
    #[arg(long, short = 'd', value_name = "DEVICES", env = "DCGM_EXPORTER_DEVICES_STR")]
    pub(crate) devices: Option<String>,
}

impl DropIn {
    /// Returns whether it is in the place of dcgm-exporter.
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

    /// Returns whether the kubelet is asked who has what.
    pub(crate) fn asks_kubelet(&self) -> bool {
        self.kubernetes.unwrap_or(!self.is_dropped_in())
    }
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
    /// For how many seconds all has to be ok until a node passes.
    #[arg(long, value_name = "SECONDS", default_value = "120", requires = "labels")]
    pub(crate) pass_after: u32,
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
    #[arg(long = "quiet", short = 'q', action = ArgAction::SetFalse)]
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
