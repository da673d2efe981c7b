//! From a reading of devices to a page.

use std::{
    fs::{File, OpenOptions},
    io::BufReader,
    path::Path,
    sync::Mutex,
    time::Duration,
};

use blueproof_core::{
    diagnostic::{Code, Diagnostic},
    metrics::Format,
    ports::{Blindness, GpuProbe, ProbeError},
};
use blueproof_gpu::{
    collect::{Collected, Collector, Open},
    nvml::NvmlProbe,
    pages::{Collection, Seen, dcgm, native},
    recorded::{Recorded, Recorder},
};
use jiff::SignedDuration;

use crate::{
    cli::{Cli, HostLabel, PageKind},
    tell,
};

/// Reads devices, and writes pages of what it read.
pub(crate) struct Exporter {
    collector: Collector,
    options: dcgm::Options,
    /// Which page is the usual one, and how long who asks for it waits.
    pub(crate) page: PageKind,
    pub(crate) wait: Duration,
    /// What was told last of why nothing can be read, so that it is told once.
    told: Mutex<Option<Code>>,
}

/// What is answered to a scrape.
pub(crate) struct Answer {
    pub(crate) page: String,
    /// Why nothing could be read.
    pub(crate) blind: Option<Diagnostic>,
}

impl Exporter {
    /// Begins to read devices, or a recording of some.
    pub(crate) fn start(cli: &Cli) -> Result<Self, Diagnostic> {
        let host = cli.host.clone().unwrap_or_else(this_host);
        let host_label = match cli.host_label {
            HostLabel::Capital => Some(dcgm::HostLabel::Capital),
            HostLabel::Small => Some(dcgm::HostLabel::Small),
            HostLabel::None => None,
        };
        Ok(Self {
            collector: Collector::start(source(cli)?),
            options: dcgm::Options { host_label, host },
            page: cli.page,
            wait: cli.wait,
            told: Mutex::default(),
        })
    }

    /// Reads devices, waits for that at most so long, and writes the page.
    pub(crate) fn answer(&self, page: PageKind, format: Format, within: Duration) -> Answer {
        let collected = self.collector.collect(within);
        let seen = seen(&collected);
        Answer {
            page: match page {
                PageKind::Native => native::render(&seen, format),
                PageKind::Dcgm => dcgm::render(&seen, &self.options),
            },
            blind: blind(&collected),
        }
    }

    /// Returns why nothing can be read, if that is so now.
    pub(crate) fn blind(&self) -> Option<Diagnostic> {
        blind(&self.collector.collect(self.wait))
    }

    /// Tells whoever looks at the log when nothing can be read any more, and when it can again.
    pub(crate) fn tell_once(&self, blind: Option<&Diagnostic>) {
        let mut told = self.told.lock().expect("nobody panics while they hold it");
        let code = blind.map(|diagnostic| diagnostic.code);
        if *told == code {
            return;
        }
        *told = code;
        match blind {
            Some(diagnostic) => tell(diagnostic),
            None => eprintln!("devices are read again"),
        }
    }
}

fn blind(collected: &Collected) -> Option<Diagnostic> {
    match collected.reading.as_deref() {
        Some(Ok((inventory, _))) if inventory.devices.is_empty() => Some(
            Diagnostic::error(Code::GpuNone, "the driver knows no device")
                .hint("see what `lspci -d 10de:` and `nvidia-smi -L` list"),
        ),
        Some(Ok(_)) => None,
        Some(Err(error)) => Some((*error.diagnostic).clone()),
        None => Some(
            Diagnostic::error(Code::GpuDriverError, "the driver has not answered yet")
                .hint("wait, and see `dmesg | grep -i -e nvrm -e xid` if it stays so"),
        ),
    }
}

fn seen(collected: &Collected) -> Seen {
    let reading = collected.reading.as_deref();
    Seen {
        devices: reading.and_then(|reading| reading.as_ref().ok()).cloned(),
        errors: collected.errors.clone(),
        collection: Collection {
            age: collected.age.and_then(|age| SignedDuration::try_from(age).ok()),
            is_cached: collected.is_cached,
            blind: reading
                .and_then(|reading| reading.as_ref().err())
                .map(|error| error.reason),
            failures: collected.failures,
        },
        ..Seen::default()
    }
}

/// Returns how a probe is opened, which may be more than once.
fn source(cli: &Cli) -> Result<Open, Diagnostic> {
    if let Some(path) = &cli.recorded {
        let recorded = recording(path)?;
        return Ok(Box::new(move || Ok(Box::new(recorded.clone()))));
    }
    let library = cli.library.clone();
    let open = move || match &library {
        Some(path) => NvmlProbe::open_library(path.as_os_str()),
        None => NvmlProbe::open(),
    };
    let Some(path) = &cli.record else {
        return Ok(Box::new(move || Ok(Box::new(open()?))));
    };
    let file = new_file(path)?;
    Ok(Box::new(move || {
        let file = file.try_clone().map_err(|error| ProbeError {
            reason: Blindness::DriverError,
            diagnostic: Box::new(unwritable("the recording", &error)),
        })?;
        let probe: Box<dyn GpuProbe> = Box::new(Recorder::new(open()?, file));
        Ok(probe)
    }))
}

fn recording(path: &Path) -> Result<Recorded, Diagnostic> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| {
        Diagnostic::error(Code::FileMissing, format!("could not read `{name}`"))
            .because(error.to_string())
            .hint("name a file that `blueproof-exporter --record FILE` wrote")
    })?;
    Recorded::read(&name, BufReader::new(file))
}

fn new_file(path: &Path) -> Result<File, Diagnostic> {
    let name = path.display().to_string();
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.map_err(|error| unwritable(&format!("`{name}`"), &error))
}

fn unwritable(what: &str, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error(Code::Unwritable, format!("could not write {what}"))
        .because(error.to_string())
        .hint("name a file that is not there yet, in a folder that you may write to")
}

fn this_host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
