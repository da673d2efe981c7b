//! The arguments.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Parser, ValueEnum};

/// What the GPUs of this machine are and do, for Prometheus.
#[derive(Debug, Parser)]
#[command(name = "blueproof-exporter", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// Where to listen; in a cluster `0.0.0.0:9477`.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:9477",
        env = "BLUEPROOF_EXPORTER_LISTEN"
    )]
    pub(crate) listen: SocketAddr,

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

    /// How many milliseconds a scrape waits for devices to be read. After that it gets what was read before, and is told so.
    #[arg(long, value_name = "MS", default_value = "40", value_parser = milliseconds)]
    pub(crate) wait: Duration,

    /// The NVIDIA driver's library, if not the system's.
    #[arg(long, value_name = "PATH", conflicts_with = "recorded")]
    pub(crate) library: Option<PathBuf>,

    /// Show a recording instead of devices.
    #[arg(long, value_name = "FILE")]
    pub(crate) recorded: Option<PathBuf>,

    /// Write all that is read to a file that is not there yet.
    #[arg(long, value_name = "FILE", conflicts_with = "recorded")]
    pub(crate) record: Option<PathBuf>,
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
