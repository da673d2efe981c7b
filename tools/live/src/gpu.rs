//! What NVIDIA's driver says and costs.

mod agreement;
mod calls;
mod energy;
mod job;
mod load;
mod scrape;
mod smi;
mod table;
#[cfg(test)]
mod tests;
mod utilization;

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, Result};
use blueproof_core::ports::{GpuProbe as _, ProbeError};
use blueproof_gpu::nvml::NvmlProbe;
use clap::Args;

use self::table::Table;

/// The driver's library, as loaders find it.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// How experiments are made.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder that the CSV files go to; it is made.
    #[arg(long, value_name = "FOLDER", default_value = "target/live/gpu")]
    out: PathBuf,
    /// How long each thing is watched, in seconds.
    #[arg(long, default_value = "20")]
    seconds: u32,
    /// The exporter that is measured.
    #[arg(long, value_name = "PROGRAM")]
    exporter: PathBuf,
    /// The driver's library, if not the system's.
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
    /// A command that keeps a GPU busy for as long as it runs. Without one devices are watched as they are.
    #[arg(last = true, value_name = "LOAD")]
    load: Vec<OsString>,
}

/// What an experiment came to.
#[derive(Debug)]
enum Finding {
    /// What was measured, and in a few words what it says.
    Measured(Table, Vec<String>),
    /// Why it could not be made.
    NotMade(String),
}

type Experiment = (&'static str, fn(&Arguments) -> Result<Finding>);

const EXPERIMENTS: [Experiment; 6] = [
    ("agreement", agreement::run),
    ("calls", calls::run),
    ("energy", energy::run),
    ("utilization", utilization::run),
    ("scrape", scrape::run),
    ("job", job::run),
];

/// Makes the experiments, one after the other. Fails where no device can be read: then nothing was tried.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(why) = blind(arguments) {
        eprintln!("live gpu: nothing was tried\n{why}");
        return Ok(ExitCode::FAILURE);
    }
    fs::create_dir_all(&arguments.out)
        .with_context(|| format!("could not make {}", arguments.out.display()))?;
    for (name, experiment) in EXPERIMENTS {
        eprintln!("live gpu: {name} …");
        match experiment(arguments).with_context(|| format!("the experiment {name}"))? {
            Finding::Measured(table, words) => {
                let path = arguments.out.join(format!("{name}.csv"));
                table.write(&path)?;
                println!("{name}: {}", path.display());
                words.iter().for_each(|line| println!("  {line}"));
            }
            Finding::NotMade(why) => println!("{name}: not made: {why}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns why no device can be read, if that is so.
fn blind(arguments: &Arguments) -> Option<String> {
    match arguments.probe() {
        Err(error) => Some(format!("{:#}", error.diagnostic)),
        Ok(mut probe) => match probe.inventory() {
            Err(error) => Some(format!("{:#}", error.diagnostic)),
            Ok(inventory) => inventory
                .devices
                .is_empty()
                .then(|| "the driver knows no device".to_owned()),
        },
    }
}

impl Arguments {
    fn library(&self) -> &Path {
        self.library.as_deref().unwrap_or(Path::new(LIBRARY))
    }

    fn probe(&self) -> Result<NvmlProbe, ProbeError> {
        NvmlProbe::open_library(self.library().as_os_str())
    }

    fn time(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }
}
