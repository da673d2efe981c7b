//! What a probe answered, written down and played back.
//!
//! A recording is a text file with one JSON object in each line: a header, and then inventories, snapshots and events in the
//! order in which they were read. What was recorded on a machine with devices can be looked at, and tested with, on one
//! without.
//!
//! ```
//! use blueproof_core::{ports::GpuProbe, testing::{FakeProbe, device}};
//! use blueproof_gpu::recorded::{Recorded, Recorder};
//!
//! let path = std::env::temp_dir().join(format!("gpus-{}.jsonl", std::process::id()));
//! let mut recorder = Recorder::new(FakeProbe::of(vec![device(0)]), std::fs::File::create(&path)?);
//! let (inventory, snapshot) = (recorder.inventory()?, recorder.snapshot()?);
//! assert!(recorder.failure().is_none());
//!
//! let file = std::io::BufReader::new(std::fs::File::open(&path)?);
//! let mut recorded = Recorded::read("gpus.jsonl", file)?;
//! assert_eq!((recorded.inventory()?, recorded.snapshot()?), (inventory, snapshot));
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    io::{self, BufRead, Write},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use blueproof_core::{
    gpu::{DeviceEvent, DeviceUuid, GpuInventory, GpuSnapshot},
    ports::{EventQueue, GpuEvents, GpuProbe, ProbeError},
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use serde::{Deserialize, Serialize};

/// What a recording calls itself.
const FORMAT: &str = "blueproof.dev/gpu-recording";

/// How it is written; a newer one is not read. Since the second it says which devices are listened to.
const VERSION: u32 = 2;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    format: String,
    version: u32,
}

/// A line after the first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Entry {
    Inventory(GpuInventory),
    Snapshot(GpuSnapshot),
    Events(Vec<DeviceEvent>),
    /// From then on, these are listened to.
    ListenedTo(BTreeSet<DeviceUuid>),
}

/// Passes a probe on, and writes down what it answers.
///
/// A disk that is full keeps nobody from reading devices: the recording ends there.
#[derive(Debug)]
pub struct Recorder<P, W> {
    probe: P,
    log: Arc<Mutex<Log<W>>>,
}

/// What is written.
#[derive(Debug)]
struct Log<W> {
    file: W,
    has_begun: bool,
    failure: Option<io::Error>,
    /// Who was listened to when that was noted last.
    listened_to: BTreeSet<DeviceUuid>,
}

impl<P: GpuProbe, W: Write + Send> Recorder<P, W> {
    /// Writes what a probe answers from now on.
    pub fn new(probe: P, file: W) -> Self {
        Self {
            probe,
            log: Arc::new(Mutex::new(Log {
                file,
                has_begun: false,
                failure: None,
                listened_to: BTreeSet::new(),
            })),
        }
    }

    /// Returns why nothing is written any more, if that is so.
    pub fn failure(&self) -> Option<io::ErrorKind> {
        lock(&self.log).failure.as_ref().map(io::Error::kind)
    }
}

impl<W: Write> Log<W> {
    fn note(&mut self, entry: &Entry) {
        if self.failure.is_some() {
            return;
        }
        let header = (!self.has_begun).then(|| Header {
            format: FORMAT.into(),
            version: VERSION,
        });
        self.has_begun = true;
        let written = header.map_or(Ok(()), |header| line(&mut self.file, &header));
        self.failure = written.and_then(|()| line(&mut self.file, entry)).err();
    }
}

fn lock<W>(log: &Mutex<Log<W>>) -> MutexGuard<'_, Log<W>> {
    log.lock().expect("nobody panics while they hold it")
}

fn line(file: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.flush()
}

impl<P: GpuProbe, W: Write + Send + 'static> GpuProbe for Recorder<P, W> {
    fn inventory(&mut self) -> Result<GpuInventory, ProbeError> {
        let inventory = self.probe.inventory()?;
        lock(&self.log).note(&Entry::Inventory(inventory.clone()));
        Ok(inventory)
    }

    fn snapshot(&mut self) -> Result<GpuSnapshot, ProbeError> {
        let snapshot = self.probe.snapshot()?;
        lock(&self.log).note(&Entry::Snapshot(snapshot.clone()));
        Ok(snapshot)
    }

    fn wait_until(&mut self, until: Instant) {
        self.probe.wait_until(until);
    }

    fn events(&mut self) -> Arc<dyn GpuEvents> {
        Arc::new(RecordedEvents {
            inner: self.probe.events(),
            log: Arc::clone(&self.log),
        })
    }
}

/// Passes events on, and writes down those that are taken.
struct RecordedEvents<W> {
    inner: Arc<dyn GpuEvents>,
    log: Arc<Mutex<Log<W>>>,
}

impl<W: Write + Send> GpuEvents for RecordedEvents<W> {
    fn wait(&self, within: Duration) {
        self.inner.wait(within);
    }

    fn take(&self) -> Vec<DeviceEvent> {
        let (listened_to, events) = (self.inner.listened_to(), self.inner.take());
        let mut log = lock(&self.log);
        if log.listened_to != listened_to {
            log.listened_to.clone_from(&listened_to);
            log.note(&Entry::ListenedTo(listened_to));
        }
        if !events.is_empty() {
            log.note(&Entry::Events(events.clone()));
        }
        events
    }

    fn listened_since(&self) -> BTreeMap<DeviceUuid, Instant> {
        self.inner.listened_since()
    }
}

/// Plays a recording back. At its end the last snapshot stands still.
#[derive(Debug, Clone)]
pub struct Recorded {
    rest: VecDeque<Entry>,
    inventory: GpuInventory,
    last: GpuSnapshot,
    events: Arc<EventQueue>,
}

impl Recorded {
    /// Reads a recording; errors call it by this name.
    ///
    /// # Errors
    ///
    /// The first line that is not one of a recording, and a recording that has no snapshot.
    pub fn read(name: &str, file: impl BufRead) -> Result<Self, Diagnostic> {
        let mut lines = file.lines().enumerate();
        let wrong = |line: usize, why: &dyn fmt::Display| wrong(name, line, why);
        let first = lines
            .next()
            .map(|(_, line)| line.map_err(|error| wrong(0, &error)));
        let header: Header = serde_json::from_str(&first.transpose()?.unwrap_or_default())
            .map_err(|error| wrong(0, &error))?;
        if header.format != FORMAT || header.version > VERSION {
            let why = format!("it is `{}`, version {}", header.format, header.version);
            return Err(wrong(0, &why));
        }
        let entries = lines.map(|(number, line)| {
            let line = line.map_err(|error| wrong(number, &error))?;
            serde_json::from_str(&line).map_err(|error| wrong(number, &error))
        });
        let rest = entries.collect::<Result<VecDeque<Entry>, _>>()?;
        let snapshot = rest.iter().find_map(|entry| match entry {
            Entry::Snapshot(snapshot) => Some(snapshot.clone()),
            Entry::Inventory(_) | Entry::Events(_) | Entry::ListenedTo(_) => None,
        });
        Ok(Self {
            last: snapshot.ok_or_else(|| wrong(rest.len(), &"nothing was read before it ends"))?,
            rest,
            inventory: GpuInventory::default(),
            events: Arc::default(),
        })
    }

    /// Returns whether there is nothing more to come.
    pub fn is_over(&self) -> bool {
        let is_snapshot = |entry: &Entry| matches!(entry, Entry::Snapshot(_));
        !self.rest.iter().any(is_snapshot)
    }

    fn listen_to(&self, devices: BTreeSet<DeviceUuid>) {
        for gone in self.events.listened_to().difference(&devices) {
            self.events.leave(gone);
        }
        devices.into_iter().for_each(|device| self.events.listen(device));
    }

    /// Takes what comes before the next snapshot.
    fn advance(&mut self) {
        while let Some(entry) = self.rest.pop_front() {
            match entry {
                Entry::Inventory(inventory) => self.inventory = inventory,
                Entry::Events(events) => events.into_iter().for_each(|event| self.events.push(event)),
                Entry::ListenedTo(devices) => self.listen_to(devices),
                snapshot @ Entry::Snapshot(_) => return self.rest.push_front(snapshot),
            }
        }
    }
}

impl GpuProbe for Recorded {
    fn inventory(&mut self) -> Result<GpuInventory, ProbeError> {
        self.advance();
        Ok(self.inventory.clone())
    }

    fn snapshot(&mut self) -> Result<GpuSnapshot, ProbeError> {
        self.advance();
        if let Some(Entry::Snapshot(next)) = self.rest.pop_front() {
            self.last.clone_from(&next);
            self.advance();
            return Ok(next);
        }
        // How busy devices were is told once.
        for sample in &mut self.last.samples {
            sample.busy = sample.busy.as_ref().map(|_| Vec::new());
        }
        Ok(self.last.clone())
    }

    fn events(&mut self) -> Arc<dyn GpuEvents> {
        self.advance();
        Arc::clone(&self.events) as Arc<dyn GpuEvents>
    }
}

fn wrong(name: &str, line: usize, why: &dyn fmt::Display) -> Diagnostic {
    let message = format!("`{name}` is not a recording of GPUs that can be read");
    let place = SourceLocation {
        file: name.to_owned(),
        line: u32::try_from(line + 1).ok(),
        column: None,
        source: None,
    };
    Diagnostic::error(Code::GpuRecording, message)
        .because(why.to_string())
        .at(place)
        .hint("record one with `blueproof-exporter --record FILE`")
}

#[cfg(test)]
mod tests;
