//! From a reading of devices to a page.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::BufReader,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::body::Bytes;
use blueproof_core::{
    gpu::{Fault, FaultKind, GpuInventory, GpuSnapshot, Sample},
    metrics::Format,
    ports::{GpuProbe, ProbeError, ProbeErrorKind},
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_gpu::{
    collect::{ClockSet, Collected, Collector, Open, Reading},
    nvml::NvmlProbe,
    pages::{
        Collection, PageInput,
        dcgm::{self, ModelNames},
        native,
    },
    recorded::{Recorded, Recorder},
    tpu::TpuProbe,
};
use jiff::{SignedDuration, Unit};

use crate::{
    attempts::AttemptWatch,
    cli::{Cli, Collect, HostLabel, PageKind},
    dropin::{self, Settings},
    gzip::Packer,
    health::HealthWatch,
    owners::{Owned, OwnerSource},
    tell,
};

/// For how long the driver is closed where that is asked for: an upgrade or a division anew takes a few minutes.
const RELEASED_FOR: Duration = Duration::from_secs(600);

/// Reads devices, and writes pages of what it read.
pub(crate) struct Exporter {
    collector: Collector,
    /// The file of fields that the page of dcgm-exporter shows, if one is named.
    collectors: Option<PathBuf>,
    options: RwLock<dcgm::Options>,
    /// Whether that file asks for what is only read where it does.
    asks_policies: Arc<AtomicBool>,
    /// Which page is the usual one, and how long who asks for one waits at most, if anybody said so.
    pub(crate) page: PageKind,
    pub(crate) wait: Option<Duration>,
    packer: Packer,
    written: Mutex<Written>,
    /// Whom to ask who has which device.
    owners: Option<OwnerSource>,
    attempts: Option<AttemptWatch>,
    health: HealthWatch,
    /// Whether each process has series of its own.
    shows_processes: bool,
    devices_told: Once,
    kubelet_told: Once,
    attempts_told: Once,
    /// How often it was told that the clock was set.
    clock_told: AtomicU64,
}

/// What was told last of what is wrong, so that it is told once.
#[derive(Default)]
struct Once(Mutex<Option<Code>>);

/// Which page is wanted, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) page: PageKind,
    pub(crate) format: Format,
    pub(crate) coding: Coding,
}

/// How a page is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Identity,
}

/// The pages of the last reading that were written already.
#[derive(Default)]
struct Written {
    reading: Option<Arc<Reading>>,
    pages: Vec<(Wanted, Bytes)>,
}

impl Written {
    /// Returns the page, if it was written of this reading. How old one is changes that was made before it was asked for.
    fn of(&self, wanted: Wanted, collected: &Collected) -> Option<Bytes> {
        let (of, now) = (self.reading.as_ref()?, collected.reading.as_ref()?);
        if collected.is_cached || !Arc::ptr_eq(of, now) {
            return None;
        }
        let mut pages = self.pages.iter();
        let (_, page) = pages.find(|(of, _)| *of == wanted)?;
        Some(page.clone())
    }

    /// Keeps a page for the next who asks, and returns it.
    fn add(&mut self, wanted: Wanted, collected: &Collected, page: Bytes) -> Bytes {
        if self.reading.as_ref().map(Arc::as_ptr) != collected.reading.as_ref().map(Arc::as_ptr) {
            self.reading.clone_from(&collected.reading);
            self.pages.clear();
        }
        if !collected.is_cached {
            self.pages.push((wanted, page.clone()));
        }
        page
    }
}

/// What is answered to a scrape.
pub(crate) struct Answer {
    pub(crate) page: Bytes,
    /// Why nothing could be read.
    pub(crate) blind: Option<Diagnostic>,
    /// Why the kubelet tells nothing.
    pub(crate) silent: Option<Diagnostic>,
    /// Why it is not known which attempts have what.
    pub(crate) unread: Option<Diagnostic>,
    /// How the clock was set, if it ever was.
    pub(crate) clock_set: Option<ClockSet>,
}

impl Exporter {
    /// Begins to read devices, or a recording of some.
    pub(crate) fn start(cli: &Cli, settings: Settings) -> Result<Self, Diagnostic> {
        let host = cli.host.clone().unwrap_or_else(this_host);
        let host_label = match settings.host_label {
            HostLabel::Capital => Some(dcgm::HostLabel::Capital),
            HostLabel::Small => Some(dcgm::HostLabel::Small),
            HostLabel::None => None,
        };
        let asks_policies = Arc::new(AtomicBool::new(ask_policies(settings.counters.as_ref())));
        let source = source(cli, &asks_policies)?;
        let (attempts, collector) = match cli.runs.clone().map(AttemptWatch::below) {
            Some((attempts, sink)) => (Some(attempts), Collector::start_witnessed(source, sink)),
            None => (None, Collector::start(source)),
        };
        Ok(Self {
            collector,
            collectors: cli.drop_in.collectors.clone(),
            options: RwLock::new(dcgm::Options {
                host_label,
                host,
                counters: settings.counters,
                model_names: if cli.drop_in.replace_blanks_in_model_name {
                    ModelNames::Dashed
                } else {
                    ModelNames::Told
                },
            }),
            asks_policies,
            page: settings.page,
            wait: cli.wait,
            packer: Packer::new(),
            written: Mutex::default(),
            owners: OwnerSource::start(cli),
            attempts,
            health: HealthWatch::default(),
            shows_processes: cli.collect.contains(&Collect::Processes),
            devices_told: Once::default(),
            kubelet_told: Once::default(),
            attempts_told: Once::default(),
            clock_told: AtomicU64::new(0),
        })
    }

    /// Reads devices, asks who has them, waits for both at most so long, and writes the page. Those who share a reading share
    /// its pages, and one is written at a time, so that memory does not grow with how many ask at once.
    pub(crate) fn answer(&self, wanted: Wanted, within: Duration) -> Answer {
        let asked_at = self.owners.as_ref().map(OwnerSource::ask);
        let collected = self.collector.collect(within);
        let owned = self.owners.as_ref().zip(asked_at).map(|(owners, asked_at)| {
            let reading = collected.reading.as_deref();
            let inventory = reading.and_then(|reading| reading.as_ref().ok());
            owners.owned(asked_at, within, inventory.map(|(inventory, _)| inventory))
        });
        let silent = owned.as_ref().and_then(|owned| owned.silent.clone());
        let mut written = self.written.lock().expect("no page panics");
        let page = match written.of(wanted, &collected) {
            Some(page) => page,
            None => written.add(wanted, &collected, self.write(wanted, &collected, owned)),
        };
        drop(written);
        Answer {
            page,
            blind: blind(&collected),
            silent,
            unread: self.attempts.as_ref().and_then(AttemptWatch::silent),
            clock_set: collected.clock_set,
        }
    }

    fn write(&self, wanted: Wanted, collected: &Collected, owned: Option<Owned>) -> Bytes {
        let mut seen = seen(collected);
        seen.health = self.health.look(collected);
        seen.shows_processes = self.shows_processes;
        seen.attempts = self.attempts.as_ref().map(AttemptWatch::seen);
        if let Some(owned) = owned {
            add(owned, &mut seen);
        }
        let page = match wanted.page {
            PageKind::Native => native::render(&seen, wanted.format),
            PageKind::Dcgm => dcgm::render(&seen, &self.options.read().expect("no page panics")),
        };
        match wanted.coding {
            Coding::Gzip => self.packer.pack(page.as_bytes()).into(),
            Coding::Identity => page.into(),
        }
    }

    /// Returns why nothing can be read, if that is so now.
    pub(crate) fn blind(&self, within: Duration) -> Option<Diagnostic> {
        let collected = self.collector.collect(within);
        let is_old = collected.is_cached && collected.reading.is_some();
        blind(&collected).or_else(|| is_old.then(|| not_answering(collected.age)))
    }

    /// Reads the file of fields anew, and opens the driver, if it was closed. Other files are read anew by themselves, whenever
    /// they change. A file that cannot be read changes nothing.
    pub(crate) fn reload(&self) {
        match self.collectors.as_deref().map(dropin::read_counters).transpose() {
            Ok(counters) => {
                let asked = ask_policies(counters.as_ref());
                self.asks_policies.store(asked, Ordering::Relaxed);
                self.options.write().expect("no page panics").counters = counters;
            }
            Err(problem) => tell(&problem.hint("the fields of before are shown until then")),
        }
        reopen(&self.collector);
    }

    /// Closes the driver for a while, so that it can be upgraded, or its devices reset or divided anew.
    pub(crate) fn release(&self) {
        release(&self.collector);
    }

    /// Tells whoever looks at the log when something goes wrong, and when it is well again.
    pub(crate) fn tell_once(&self, answer: &Answer) {
        self.devices_told
            .tell(answer.blind.as_ref(), "devices are read again");
        self.kubelet_told.tell(
            answer.silent.as_ref(),
            "the kubelet tells again who has which device",
        );
        self.attempts_told.tell(
            answer.unread.as_ref(),
            "it is known again which attempts have which device",
        );
        if let Some(ClockSet { times, by }) = answer.clock_set
            && self.clock_told.fetch_max(times, Ordering::Relaxed) < times
        {
            tell(&clock_set(by));
        }
    }
}

/// Closes the driver for a while, and says so.
pub(crate) fn release(collector: &Collector) {
    collector.release(RELEASED_FOR);
    eprintln!("the driver is closed for {RELEASED_FOR:?}, or until SIGHUP");
}

/// Opens the driver anew, if it was closed, and says so.
pub(crate) fn reopen(collector: &Collector) {
    collector.reopen();
    eprintln!("the driver is opened again with the next reading");
}

fn clock_set(by: SignedDuration) -> Diagnostic {
    let whither = if by.is_negative() { "back" } else { "forwards" };
    let by = by.abs().round(Unit::Second).unwrap_or(by);
    let message = format!("this machine's clock was set {whither} by {by:#}");
    Diagnostic::warning(Code::ClockSet, message)
        .hint("what is counted goes on as if nothing had happened; `timedatectl` tells who keeps the clock")
}

impl Once {
    fn tell(&self, wrong: Option<&Diagnostic>, well: &str) {
        let mut told = self.0.lock().expect("nobody panics while they hold it");
        let code = wrong.map(|diagnostic| diagnostic.code);
        if *told == code {
            return;
        }
        *told = code;
        match wrong {
            Some(diagnostic) => tell(diagnostic),
            None => eprintln!("{well}"),
        }
    }
}

/// Adds who has what.
fn add(owned: Owned, seen: &mut PageInput) {
    // What was read before is charged to nobody: somebody else may have had the device.
    if !seen.collection.is_cached {
        seen.owners = owned.owners;
    }
    seen.attribution = Some(owned.attribution);
}

fn blind(collected: &Collected) -> Option<Diagnostic> {
    match collected.reading.as_deref() {
        Some(Ok((inventory, _))) if inventory.devices.is_empty() => Some(
            Diagnostic::error(Code::GpuNone, "the driver knows no device")
                .hint("see what `lspci -d 10de:` and `nvidia-smi -L` list"),
        ),
        Some(Ok((inventory, snapshot))) => silent(inventory, snapshot),
        Some(Err(error)) => Some((*error.diagnostic).clone()),
        None => Some(not_answering(collected.age)),
    }
}

/// Returns which devices do not answer, if any do not.
fn silent(inventory: &GpuInventory, snapshot: &GpuSnapshot) -> Option<Diagnostic> {
    let known = snapshot
        .wholes()
        .filter_map(|sample| Some((sample, sample.silence()?)));
    let (named, faults): (Vec<_>, Vec<_>) = known
        .map(|(sample, fault)| (format!("{}: {}", sample.device, words(fault)), fault))
        .unzip();
    let devices = named.len() + inventory.unidentified as usize;
    if devices == 0 {
        return None;
    }
    let may_not = |fault: &&Fault| fault.kind == FaultKind::NoPermission;
    let refused = faults
        .into_iter()
        .chain(&inventory.unidentified_because)
        .filter(may_not);
    let is_refused = refused.count() == devices;
    let (code, what, hint) = if is_refused {
        (Code::GpuPermission, "may not be used", ASK_FOR_THEM)
    } else {
        (Code::GpuHangs, "do not answer", SEE_THE_KERNEL)
    };
    let message = format!("{devices} of {} devices {what}", inventory.counted());
    let told = named
        .into_iter()
        .fold(Diagnostic::error(code, message), |told, device| {
            told.because(device)
        });
    let told = match inventory.unidentified {
        0 => told,
        count => told.because(unidentified(count, &inventory.unidentified_because)),
    };
    Some(told.hint(hint))
}

fn words(fault: &Fault) -> String {
    match fault.kind {
        FaultKind::Lost => "the driver has lost it".to_owned(),
        FaultKind::Hangs => "no call comes back".to_owned(),
        FaultKind::NoPermission | FaultKind::Driver => format!("every call ends with {}", fault.word),
    }
}

fn unidentified(count: u32, because: &[Fault]) -> String {
    let words: BTreeSet<_> = because.iter().map(|fault| fault.word.as_str()).collect();
    let words = Vec::from_iter(words).join(", ");
    let told = format!("{count} that never said who they are, or say that they are another");
    if words.is_empty() {
        return told;
    }
    format!("{told} ({words})")
}

/// What to do about devices that others may use.
const ASK_FOR_THEM: &str =
    "let this user open /dev/nvidia*; a container that is given some of the devices only sees the others so";

/// What to do about a driver that hangs.
const SEE_THE_KERNEL: &str =
    "see `dmesg | grep -i -e nvrm -e xid`; what goes on so needs a reset, or a restart of the machine";

fn not_answering(age: Option<Duration>) -> Diagnostic {
    let message = "the driver does not answer";
    let because = match age {
        Some(age) => format!("the last reading that ended began {} s ago", age.as_secs()),
        None => "no reading has ended yet".to_owned(),
    };
    Diagnostic::error(Code::GpuHangs, message)
        .because(because)
        .hint(SEE_THE_KERNEL)
}

fn seen(collected: &Collected) -> PageInput {
    let reading = collected.reading.as_deref();
    PageInput {
        devices: reading.and_then(|reading| reading.as_ref().ok()).cloned(),
        peaks: collected.peaks.clone(),
        errors: collected.errors.clone(),
        listened_to: collected.listened_to.clone(),
        collection: Collection {
            age: collected.age.and_then(|age| SignedDuration::try_from(age).ok()),
            is_cached: collected.is_cached,
            blind: match reading {
                Some(Err(error)) => Some(error.reason),
                Some(Ok((_, snapshot))) => snapshot.is_silent().then(|| blindness(snapshot)),
                None => Some(ProbeErrorKind::NotAnswering),
            },
            failures: collected.failures,
        },
        ..PageInput::default()
    }
}

/// Returns why no device tells anything.
fn blindness(snapshot: &GpuSnapshot) -> ProbeErrorKind {
    let mut faults = snapshot.wholes().filter_map(Sample::silence);
    match faults.next().map(|fault| fault.kind) {
        Some(FaultKind::NoPermission) => ProbeErrorKind::NoPermission,
        Some(FaultKind::Driver) => ProbeErrorKind::DriverError,
        Some(FaultKind::Lost | FaultKind::Hangs) | None => ProbeErrorKind::NotAnswering,
    }
}

/// Returns whether a file of fields asks for what is only read where one does.
fn ask_policies(counters: Option<&dcgm::Counters>) -> bool {
    let mut figures = counters.into_iter().flat_map(dcgm::Counters::figures);
    figures.any(|figure| NvmlProbe::ASKED_FOR.contains(&figure))
}

/// Returns how a probe is opened, which may be more than once.
fn source(cli: &Cli, asks_policies: &Arc<AtomicBool>) -> Result<Open, Diagnostic> {
    if let Some(path) = &cli.recorded {
        let recorded = recording(path)?;
        return Ok(Box::new(move || Ok(Box::new(recorded.clone()))));
    }
    match &cli.tpu {
        Some(address) => {
            let address = address.clone();
            recorded_to(cli.record.as_deref(), move || Ok(TpuProbe::new(address.clone())))
        }
        None => {
            let mut open = nvml(cli.library.clone());
            let counts_pcie = cli.collect.contains(&Collect::Pcie);
            let asks_policies = Arc::clone(asks_policies);
            recorded_to(cli.record.as_deref(), move || {
                let probe = open()?.counting_policies(Arc::clone(&asks_policies));
                Ok(if counts_pcie { probe.counting_pcie() } else { probe })
            })
        }
    }
}

/// Returns how NVIDIA's devices are opened for whoever only reads them.
pub(crate) fn open(library: Option<PathBuf>) -> Open {
    let mut open = nvml(library);
    Box::new(move || Ok(Box::new(open()?)))
}

fn nvml(library: Option<PathBuf>) -> impl FnMut() -> Result<NvmlProbe, ProbeError> {
    move || match &library {
        Some(path) => NvmlProbe::open_library(path.as_os_str()),
        None => NvmlProbe::open(),
    }
}

/// Returns how a probe is opened that writes down what it reads, where that is wanted.
fn recorded_to<P: GpuProbe + 'static>(
    path: Option<&Path>,
    mut open: impl FnMut() -> Result<P, ProbeError> + Send + 'static,
) -> Result<Open, Diagnostic> {
    let Some(path) = path else {
        return Ok(Box::new(move || Ok(Box::new(open()?))));
    };
    let file = new_file(path)?;
    Ok(Box::new(move || {
        let file = file.try_clone().map_err(|error| ProbeError {
            reason: ProbeErrorKind::DriverError,
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use blueproof_core::{
        gpu::DeviceUuid,
        testing::{FakeProbe, device},
    };
    use blueproof_gpu::pages::{Attribution, Owners};

    use super::*;

    #[test]
    fn what_was_read_before_is_charged_to_nobody() {
        for (is_cached, owners) in [(false, 1), (true, 0)] {
            let owned = Owned {
                owners: BTreeMap::from([(DeviceUuid("GPU-1".into()), Owners::default())]),
                attribution: Attribution::default(),
                silent: None,
            };
            let mut seen = PageInput::default();
            seen.collection.is_cached = is_cached;
            add(owned, &mut seen);
            assert_eq!(seen.owners.len(), owners);
            assert!(seen.attribution.is_some(), "how it is known is told all the same");
        }
    }

    #[test]
    fn who_shares_a_reading_shares_its_page_and_who_does_not_gets_another() {
        let probe = FakeProbe::of(vec![device(0)]);
        let collector = Collector::start(Box::new(move || Ok(Box::new(probe.clone()))));
        let long = Duration::from_secs(60);
        let wanted = Wanted {
            page: PageKind::Native,
            format: Format::Prometheus,
            coding: Coding::Identity,
        };
        let collected = collector.collect(long);
        let mut written = Written::default();
        assert_eq!(written.of(wanted, &collected), None);
        written.add(wanted, &collected, Bytes::from_static(b"page"));
        let again = written.of(wanted, &collected);
        assert_eq!(again.as_deref(), Some(&b"page"[..]));
        let packed = Wanted {
            coding: Coding::Gzip,
            ..wanted
        };
        assert_eq!(written.of(packed, &collected), None);
        let cached = Collected {
            is_cached: true,
            ..collected
        };
        assert_eq!(written.of(wanted, &cached), None, "its age is another one");
        assert_eq!(written.of(wanted, &collector.collect(long)), None);
    }
}
