//! Reads devices on a thread of its own, so that a driver that hangs keeps nobody waiting.
//!
//! Whoever asks waits for a reading that begins after they asked, or, past a deadline, gets the one before and is told so,
//! while that is not too old: past a bound nothing is known. Those who ask together share one reading. A reading that fails
//! leaves nothing behind: what was read before is not told as if it were now. Where nothing can be read at all, the probe is
//! opened anew, later and later.
//!
//! Another thread takes what drivers report, as it comes, also while a reading hangs. Whoever asks is told of all that was
//! reported until then.
//!
//! A driver that is open cannot be upgraded, and its devices cannot be divided anew. So it is closed where nobody has asked
//! for a while, and for some time where that is asked for.
//!
//! Who must not miss a reading is told of each on that thread, before anybody who waits for it goes on; and where the
//! machine's clock was set in between, of that first.

mod pace;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, mpsc},
    thread,
    time::{Duration, Instant},
};

use blueproof_core::{
    gpu::{DeviceEvent, DeviceUuid, GpuInventory, GpuSnapshot, Sample},
    ports::{GpuEvents, GpuProbe, ProbeError, ProbeErrorKind},
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::{SignedDuration, Timestamp};
use pace::{Pace, Wall};

use crate::pages::{Errors, Peaks};

/// How often devices are read for whoever must not miss anything, and how long one wait for events lasts.
const EVENTS_EVERY: Duration = Duration::from_secs(1);

/// How long a reading may be told after it began: no longer than it takes to the next scrape, by the usual interval.
pub const FRESH_FOR: Duration = Duration::from_secs(15);

/// Nobody waits for a reading that has taken so long already: then the driver hangs. To load one that nobody used takes
/// several seconds.
const HANGS_AFTER: Duration = Duration::from_secs(10);

/// After how long without anybody asking the driver is closed: longer than between two scrapes of any setup we know.
const IDLE_AFTER: Duration = Duration::from_secs(300);

/// The same, for books that are kept of what is witnessed.
pub const WITNESSED_EVERY: SignedDuration = SignedDuration::from_secs(EVENTS_EVERY.as_secs().cast_signed());

/// For how long it is not known whether an error was reported, after nobody listened for a while.
const UNHEARD_FOR: Duration = Duration::from_secs(600);

/// How long it takes until the probe is opened again, at first and at most.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const AGAIN_AFTER_AT_MOST: Duration = Duration::from_secs(60);

/// Opens a probe.
pub type Open = Box<dyn FnMut() -> Result<Box<dyn GpuProbe>, ProbeError> + Send>;

/// Is told of everything in the order in which it is read or reported, by one thread at a time.
pub trait SnapshotSink: Send {
    /// Takes in a reading.
    fn read(&mut self, inventory: &GpuInventory, snapshot: &GpuSnapshot);

    /// Takes in what a driver reported.
    fn reported(&mut self, event: &DeviceEvent);

    /// Takes in that the machine's clock was set by so much, forwards or back. The times that were told are of the clock as
    /// it was, the next ones of the clock as it is.
    fn clock_set(&mut self, by: SignedDuration);
}

/// What was read, or why nothing could be.
pub type Reading = Result<(GpuInventory, GpuSnapshot), ProbeError>;

/// Reads devices for whoever asks.
#[derive(Debug)]
pub struct Collector {
    asks: mpsc::Sender<Ask>,
    shared: Arc<Shared>,
    limits: Limits,
}

/// What the thread that reads is asked for.
#[derive(Debug, Clone, Copy)]
enum Ask {
    /// To read, for somebody who waits until a time.
    Read(Instant),
    /// To close the driver for so long.
    Release(Duration),
    /// To open it again, if it was closed.
    Reopen,
}

/// When what was read, or asked, is too long ago.
#[derive(Debug, Clone, Copy)]
struct Limits {
    fresh_for: Duration,
    idle_after: Duration,
    again_after: Duration,
    unheard_for: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fresh_for: FRESH_FOR,
            idle_after: IDLE_AFTER,
            again_after: AGAIN_AFTER,
            unheard_for: UNHEARD_FOR,
        }
    }
}

/// What a collector has.
#[derive(Debug, Clone)]
pub struct Collected {
    /// The last reading; `None` where none ever ended, or it is older than [`FRESH_FOR`].
    pub reading: Option<Arc<Reading>>,
    /// How long ago the last one began, also where it is too old to be told; `None` where none ever ended.
    pub age: Option<Duration>,
    /// Whether it began before it was asked for, because the next one takes too long.
    pub is_cached: bool,
    /// How busy devices were at most of late.
    pub peaks: Peaks,
    /// The errors that drivers reported.
    pub errors: Errors,
    /// The devices that are listened to, and were without a break of late.
    pub listened_to: BTreeSet<DeviceUuid>,
    /// Those to which nobody listened at some time since they were listened to first.
    pub missed: BTreeSet<DeviceUuid>,
    /// How often nothing could be read.
    pub failures: u64,
    /// How the machine's clock was set, if it was.
    pub clock_set: Option<ClockSet>,
}

/// How a clock was set meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSet {
    /// How often.
    pub times: u64,
    /// By how much the last time, forwards or back.
    pub by: SignedDuration,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Told of each reading that ends.
    ended: Condvar,
    /// Who is told of everything. Whoever takes events holds it until they are counted, so that nobody finds them gone
    /// and not yet told.
    sink: Mutex<Option<Box<dyn SnapshotSink>>>,
}

#[derive(Default)]
struct State {
    last: Option<(Instant, Arc<Reading>)>,
    /// When the reading began that goes on.
    reads_since: Option<Instant>,
    peaks: Peaks,
    errors: Errors,
    events: Option<Arc<dyn GpuEvents>>,
    hearing: BTreeMap<DeviceUuid, Hearing>,
    failures: u64,
    clock_set: Option<ClockSet>,
    is_over: bool,
}

/// Since when a device is listened to: at first, and without a break.
#[derive(Debug, Clone, Copy)]
struct Hearing {
    first: Instant,
    since: Instant,
}

impl Hearing {
    fn missed_some(&self) -> bool {
        self.first != self.since
    }
}

impl Collector {
    /// Starts the thread, which reads when it is asked. It ends when the collector is dropped and the driver answers.
    pub fn start(open: Open) -> Self {
        Self::start_with(open, None, Limits::default(), Box::new(Timestamp::now))
    }

    /// Starts the thread, which reads also every second by itself, for somebody who must not miss anything.
    pub fn start_witnessed(open: Open, sink: Box<dyn SnapshotSink>) -> Self {
        Self::start_with(open, Some(sink), Limits::default(), Box::new(Timestamp::now))
    }

    fn start_with(open: Open, sink: Option<Box<dyn SnapshotSink>>, limits: Limits, wall: Wall) -> Self {
        let (asks, asked) = mpsc::channel();
        let is_witnessed = sink.is_some();
        let shared = Arc::new(Shared {
            sink: Mutex::new(sink),
            ..Shared::default()
        });
        let worker = Worker {
            open,
            is_witnessed,
            pace: Pace::of(wall),
            probe: None,
            limits,
            pause: limits.again_after,
            not_before: Instant::now(),
            blind: None,
            asked_at: Instant::now(),
            shared: Arc::clone(&shared),
        };
        let started = thread::Builder::new()
            .name("gpu-probe".into())
            .spawn(move || worker.work(&asked));
        if started.is_err() {
            shared.lock().is_over = true;
        }
        Self { asks, shared, limits }
    }

    /// Reads all devices, and waits for that at most so long; less where the driver hangs already.
    pub fn collect(&self, within: Duration) -> Collected {
        let asked_at = Instant::now();
        // A thread that has ended is told by `is_over`.
        let _ = self.asks.send(Ask::Read(asked_at + within.min(HANGS_AFTER)));
        let state = self.shared.lock();
        let hung = state.reads_since.map_or(Duration::ZERO, |since| since.elapsed());
        let within = within.min(HANGS_AFTER.saturating_sub(hung));
        let is_waiting = |state: &mut State| {
            let is_new = state.last.as_ref().is_some_and(|(begun, _)| *begun >= asked_at);
            !is_new && !state.is_over
        };
        let waited = self.shared.ended.wait_timeout_while(state, within, is_waiting);
        let (mut state, _) = waited.expect("nobody panics while they hold it");
        state.collected(asked_at, self.limits)
    }

    /// Closes the driver, as soon as it answers, for so long or until [`Self::reopen`]: meanwhile nothing is known of any
    /// device, and the driver can be upgraded, or devices be divided anew.
    pub fn release(&self, lasts: Duration) {
        let _ = self.asks.send(Ask::Release(lasts));
    }

    /// Opens the driver with the next reading, if it was closed by [`Self::release`], or could not be opened before.
    pub fn reopen(&self) {
        let _ = self.asks.send(Ask::Reopen);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while they hold it")
    }

    fn sink(&self) -> MutexGuard<'_, Option<Box<dyn SnapshotSink>>> {
        self.sink.lock().expect("no witness panics")
    }

    /// Takes what was reported, tells it and counts it.
    fn take(&self, events: &dyn GpuEvents) {
        let mut sink = self.sink();
        let events = events.take();
        if let Some(sink) = sink.as_mut() {
            events.iter().for_each(|event| sink.reported(event));
        }
        let mut state = self.lock();
        events.iter().for_each(|event| state.errors.count(event));
    }
}

impl State {
    /// Returns the devices to which somebody listens, and did without a break of late.
    fn hear(&mut self, unheard_for: Duration) -> BTreeSet<DeviceUuid> {
        let heard = self.events.as_ref().map(|events| events.listened_since());
        let mut listened_to = BTreeSet::new();
        for (device, since) in heard.unwrap_or_default() {
            let new = Hearing { first: since, since };
            let hearing = self.hearing.entry(device.clone()).or_insert(new);
            hearing.since = since;
            if !hearing.missed_some() || since.elapsed() >= unheard_for {
                listened_to.insert(device);
            }
        }
        listened_to
    }

    fn collected(&mut self, asked_at: Instant, limits: Limits) -> Collected {
        let listened_to = self.hear(limits.unheard_for);
        let missed = self.hearing.iter().filter(|(_, of)| of.missed_some());
        let missed = missed.map(|(device, _)| device.clone()).collect();
        let last = self
            .last
            .as_ref()
            .map(|(begun, reading)| (begun.elapsed(), reading));
        let fresh = last.filter(|(age, _)| *age <= limits.fresh_for);
        Collected {
            reading: fresh.map(|(_, reading)| Arc::clone(reading)),
            age: last.map(|(age, _)| age),
            is_cached: self.last.as_ref().is_some_and(|(begun, _)| *begun < asked_at),
            peaks: self.peaks.clone(),
            errors: self.errors.clone(),
            listened_to,
            missed,
            failures: self.failures,
            clock_set: self.clock_set,
        }
    }
}

/// The thread that reads.
struct Worker {
    open: Open,
    is_witnessed: bool,
    pace: Pace,
    /// The probe, and whoever listens meanwhile: they end when their end of the channel is dropped.
    probe: Option<(Box<dyn GpuProbe>, mpsc::Sender<()>)>,
    limits: Limits,
    /// How long after the next failure the probe is opened again, and when that is.
    pause: Duration,
    not_before: Instant,
    /// Why there is no probe.
    blind: Option<ProbeError>,
    /// When somebody last asked.
    asked_at: Instant,
    shared: Arc<Shared>,
}

impl Worker {
    fn work(mut self, asked: &mpsc::Receiver<Ask>) {
        loop {
            match asked.recv_timeout(EVENTS_EVERY) {
                Ok(first) => self.answer(std::iter::once(first).chain(asked.try_iter())),
                Err(mpsc::RecvTimeoutError::Timeout) if self.is_witnessed => {
                    self.read(Instant::now() + HANGS_AFTER);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => self.close_if_idle(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Does what was asked until now; who asked for a reading is answered by one.
    fn answer(&mut self, asks: impl Iterator<Item = Ask>) {
        let mut waits_until = None;
        for ask in asks {
            match ask {
                Ask::Read(until) => waits_until = waits_until.max(Some(until)),
                Ask::Release(lasts) => self.release(lasts),
                Ask::Reopen => self.not_before = Instant::now(),
            }
        }
        if let Some(until) = waits_until {
            self.asked_at = Instant::now();
            self.read(until);
        }
    }

    /// Reads all devices, for whoever waits until a time.
    fn read(&mut self, until: Instant) {
        self.notice_clock();
        let mut begun = Instant::now();
        self.shared.lock().reads_since = Some(begun);
        let mut reading = self.try_read(until);
        if self.notice_clock() {
            // Nobody knows of which clock its time is.
            begun = Instant::now();
            reading = self.try_read(until);
        }
        if let (Some(sink), Ok((inventory, snapshot))) = (self.shared.sink().as_mut(), &reading) {
            sink.read(inventory, snapshot);
        }
        let events = self.probe.as_mut().map(|(probe, _)| probe.events());
        if let Some(events) = &events {
            self.shared.take(&**events);
        }
        let mut state = self.shared.lock();
        if let Ok((_, snapshot)) = &reading {
            state.peaks.read(snapshot);
        }
        let is_failure = reading
            .as_ref()
            .map_or(true, |(_, snapshot)| snapshot.is_silent());
        state.failures += u64::from(is_failure);
        state.events = events;
        // Also where nobody asks before it is closed.
        state.hear(self.limits.unheard_for);
        state.reads_since = None;
        state.last = Some((begun, Arc::new(reading)));
        drop(state);
        self.shared.ended.notify_all();
    }

    /// Returns whether the machine's clock was set, and tells everybody that it was.
    fn notice_clock(&mut self) -> bool {
        let Some(by) = self.pace.set_by() else {
            return false;
        };
        if let Some(sink) = self.shared.sink().as_mut() {
            sink.clock_set(by);
        }
        let mut state = self.shared.lock();
        state.peaks.clock_set(by);
        let times = state.clock_set.map_or(0, |before| before.times) + 1;
        state.clock_set = Some(ClockSet { times, by });
        true
    }

    fn try_read(&mut self, until: Instant) -> Reading {
        let probe = self.probe()?;
        probe.wait_until(until);
        let read = probe
            .inventory()
            .and_then(|inventory| Ok((inventory, probe.snapshot()?)));
        if let Err(error) = &read
            // What hangs cannot be ended, and would hang again beside it.
            && error.reason != ProbeErrorKind::NotAnswering
        {
            self.close(error.clone());
        }
        read
    }

    /// Returns the probe, which is opened where that is due.
    fn probe(&mut self) -> Result<&mut dyn GpuProbe, ProbeError> {
        if self.probe.is_none() {
            let waits = Instant::now() < self.not_before;
            if let Some(error) = self.blind.clone().filter(|_| waits) {
                return Err(error);
            }
            match (self.open)() {
                Ok(mut probe) => {
                    let listening = listen(Arc::clone(&self.shared), probe.events());
                    self.probe = Some((probe, listening));
                    self.blind = None;
                    self.pause = self.limits.again_after;
                }
                Err(error) => {
                    self.close(error.clone());
                    return Err(error);
                }
            }
        }
        let (probe, _) = self.probe.as_mut().expect("it was just opened");
        Ok(probe.as_mut())
    }

    /// Lets go of the probe until later.
    fn close(&mut self, error: ProbeError) {
        self.probe = None;
        self.blind = Some(error);
        self.not_before = Instant::now() + self.pause;
        self.pause = (self.pause * 2).clamp(
            self.limits.again_after,
            AGAIN_AFTER_AT_MOST.max(self.limits.again_after),
        );
    }

    fn release(&mut self, lasts: Duration) {
        self.probe = None;
        self.blind = Some(released(lasts));
        self.not_before = Instant::now() + lasts;
    }

    /// Lets go of a driver that nobody has asked for a while. One that hangs is kept: those who wait for it cannot be ended,
    /// and would only become more.
    fn close_if_idle(&mut self) {
        if self.probe.is_none() || self.asked_at.elapsed() < self.limits.idle_after {
            return;
        }
        let mut state = self.shared.lock();
        let hangs = state.last.as_ref().is_some_and(|(_, reading)| hangs(reading));
        if !hangs {
            self.probe = None;
            state.events = None;
        }
    }
}

/// Takes events as they come, until the other end of the channel that is returned is dropped.
fn listen(shared: Arc<Shared>, events: Arc<dyn GpuEvents>) -> mpsc::Sender<()> {
    let (listening, closed) = mpsc::channel();
    // Where there can be no more threads, they are taken with each reading.
    let _ = thread::Builder::new().name("gpu-reports".into()).spawn(move || {
        while closed.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
            events.wait(EVENTS_EVERY);
            shared.take(&*events);
        }
    });
    listening
}

/// Returns whether a device did not answer, or none did.
fn hangs(reading: &Reading) -> bool {
    match reading {
        Ok((_, snapshot)) => snapshot.samples.iter().any(Sample::hangs),
        Err(error) => error.reason == ProbeErrorKind::NotAnswering,
    }
}

fn released(lasts: Duration) -> ProbeError {
    let message = "the driver was closed because that was asked for";
    let diagnostic = Diagnostic::error(Code::GpuReleased, message)
        .because(format!("it is opened again after {lasts:?}"))
        .hint("send SIGHUP to open it at once");
    ProbeError {
        reason: ProbeErrorKind::Released,
        diagnostic: Box::new(diagnostic),
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Ok(mut state) = self.shared.state.lock() {
            state.is_over = true;
        }
        self.shared.ended.notify_all();
    }
}

#[cfg(test)]
mod tests;
