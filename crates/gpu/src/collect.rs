//! Reads devices on a thread of its own, so that a driver that hangs keeps nobody waiting.
//!
//! Whoever asks waits for a reading that begins after they asked, or, past a deadline, gets the one before and is told so.
//! Those who ask together share one reading. Events are taken with each reading, so that it comes with all errors until
//! then, and every second, whether anybody asks or not. A reading that fails leaves nothing behind: what was read before is
//! not told as if it were now. Where nothing can be read at all, the probe is opened anew, later and later.
//!
//! Who must not miss a reading is told of each on that thread, before anybody who waits for it goes on; and where the
//! machine's clock was set in between, of that first.

mod pace;

use std::{
    collections::BTreeSet,
    sync::{Arc, Condvar, Mutex, MutexGuard, mpsc},
    thread,
    time::{Duration, Instant},
};

use blueproof_core::{
    gpu::{DeviceEvent, DeviceUuid, GpuInventory, GpuSnapshot},
    ports::{GpuProbe, ProbeError},
};
use jiff::{SignedDuration, Timestamp};
use pace::{Pace, Wall};

use crate::pages::{Errors, Peaks};

/// How often events are taken, and devices read for whoever must not miss anything.
const EVENTS_EVERY: Duration = Duration::from_secs(1);

/// The same, for books that are kept of what is witnessed.
pub const WITNESSED_EVERY: SignedDuration = SignedDuration::from_secs(EVENTS_EVERY.as_secs().cast_signed());

/// How long it takes until the probe is opened again, at first and at most.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const AGAIN_AFTER_AT_MOST: Duration = Duration::from_secs(60);

/// Opens a probe.
pub type Open = Box<dyn FnMut() -> Result<Box<dyn GpuProbe>, ProbeError> + Send>;

/// Is told of everything in the order in which it is read, on the thread that reads.
pub trait Witness: Send {
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
    asks: mpsc::Sender<()>,
    shared: Arc<Shared>,
}

/// What a collector has.
#[derive(Debug, Clone)]
pub struct Collected {
    /// The last reading; `None` where none ever ended.
    pub reading: Option<Arc<Reading>>,
    /// How long ago it began.
    pub age: Option<Duration>,
    /// Whether it began before it was asked for, because the next one takes too long.
    pub is_cached: bool,
    /// How busy devices were at most of late.
    pub peaks: Peaks,
    /// The errors that drivers reported.
    pub errors: Errors,
    /// The devices that were listened to.
    pub heard: BTreeSet<DeviceUuid>,
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

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Told of each reading that ends.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    last: Option<(Instant, Arc<Reading>)>,
    peaks: Peaks,
    errors: Errors,
    heard: BTreeSet<DeviceUuid>,
    failures: u64,
    clock_set: Option<ClockSet>,
    is_over: bool,
}

impl Collector {
    /// Starts the thread, which reads when it is asked. It ends when the collector is dropped and the driver answers.
    pub fn start(open: Open) -> Self {
        Self::start_with(open, None, AGAIN_AFTER, Box::new(Timestamp::now))
    }

    /// Starts the thread, which reads also every second by itself, for somebody who must not miss anything.
    pub fn start_witnessed(open: Open, witness: Box<dyn Witness>) -> Self {
        Self::start_with(open, Some(witness), AGAIN_AFTER, Box::new(Timestamp::now))
    }

    fn start_with(open: Open, witness: Option<Box<dyn Witness>>, again_after: Duration, wall: Wall) -> Self {
        let (asks, asked) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let worker = Worker {
            open,
            witness,
            pace: Pace::of(wall),
            probe: None,
            pause: again_after,
            again_after,
            not_before: Instant::now(),
            blind: None,
            shared: Arc::clone(&shared),
        };
        let started = thread::Builder::new()
            .name("gpu-probe".into())
            .spawn(move || worker.work(&asked));
        if started.is_err() {
            shared.lock().is_over = true;
        }
        Self { asks, shared }
    }

    /// Reads all devices, and waits for that at most so long.
    pub fn collect(&self, within: Duration) -> Collected {
        let asked_at = Instant::now();
        // A thread that has ended is told by `is_over`.
        let _ = self.asks.send(());
        let is_waiting = |state: &mut State| {
            let is_new = state.last.as_ref().is_some_and(|(begun, _)| *begun >= asked_at);
            !is_new && !state.is_over
        };
        let waited = self
            .shared
            .ended
            .wait_timeout_while(self.shared.lock(), within, is_waiting);
        let (state, _) = waited.expect("nobody panics while they hold it");
        state.collected(asked_at)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while they hold it")
    }
}

impl State {
    fn count(&mut self, events: &[DeviceEvent]) {
        events.iter().for_each(|event| self.errors.count(event));
    }

    fn collected(&self, asked_at: Instant) -> Collected {
        let begun = self.last.as_ref().map(|(begun, _)| *begun);
        Collected {
            reading: self.last.as_ref().map(|(_, reading)| Arc::clone(reading)),
            age: begun.map(|begun| begun.elapsed()),
            is_cached: begun.is_some_and(|begun| begun < asked_at),
            peaks: self.peaks.clone(),
            errors: self.errors.clone(),
            heard: self.heard.clone(),
            failures: self.failures,
            clock_set: self.clock_set,
        }
    }
}

/// The thread that reads.
struct Worker {
    open: Open,
    /// Who is told of each reading.
    witness: Option<Box<dyn Witness>>,
    pace: Pace,
    probe: Option<Box<dyn GpuProbe>>,
    /// How long after a first failure the probe is opened again, how long after the next, and when that is.
    again_after: Duration,
    pause: Duration,
    not_before: Instant,
    /// Why the probe could not be opened.
    blind: Option<ProbeError>,
    shared: Arc<Shared>,
}

impl Worker {
    fn work(mut self, asked: &mpsc::Receiver<()>) {
        loop {
            match asked.recv_timeout(EVENTS_EVERY) {
                Ok(()) => {
                    // Whoever asked until now is answered by one reading.
                    while asked.try_recv().is_ok() {}
                    self.read();
                }
                Err(mpsc::RecvTimeoutError::Timeout) if self.witness.is_some() => self.read(),
                Err(mpsc::RecvTimeoutError::Timeout) => self.take_events(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn read(&mut self) {
        self.notice_clock();
        let mut begun = Instant::now();
        let mut reading = self.try_read();
        if self.notice_clock() {
            // Nobody knows of which clock its time is.
            begun = Instant::now();
            reading = self.try_read();
        }
        if let (Some(witness), Ok((inventory, snapshot))) = (&mut self.witness, &reading) {
            witness.read(inventory, snapshot);
        }
        let failed = reading.is_err();
        let heard = self.probe.as_ref().map(|probe| probe.heard());
        let events = self.events();
        let mut state = self.shared.lock();
        state.count(&events);
        if let Ok((_, snapshot)) = &reading {
            state.peaks.read(snapshot);
        }
        state.failures += u64::from(failed);
        state.heard = heard.unwrap_or_default();
        state.last = Some((begun, Arc::new(reading)));
        drop(state);
        self.shared.ended.notify_all();
    }

    /// Returns whether the machine's clock was set, and tells everybody that it was.
    fn notice_clock(&mut self) -> bool {
        let Some(by) = self.pace.set_by() else {
            return false;
        };
        if let Some(witness) = &mut self.witness {
            witness.clock_set(by);
        }
        let mut state = self.shared.lock();
        state.peaks.clock_set(by);
        let times = state.clock_set.map_or(0, |before| before.times) + 1;
        state.clock_set = Some(ClockSet { times, by });
        true
    }

    fn try_read(&mut self) -> Reading {
        let probe = self.probe()?;
        let read = probe
            .inventory()
            .and_then(|inventory| Ok((inventory, probe.snapshot()?)));
        if let Err(error) = &read {
            self.close(error.clone());
        }
        read
    }

    fn take_events(&mut self) {
        let events = self.events();
        self.shared.lock().count(&events);
    }

    fn events(&mut self) -> Vec<DeviceEvent> {
        let events = self.probe.as_mut().map(|probe| probe.events());
        let events = events.and_then(Result::ok).unwrap_or_default();
        if let Some(witness) = &mut self.witness {
            events.iter().for_each(|event| witness.reported(event));
        }
        events
    }

    /// Returns the probe, which is opened where that is due.
    fn probe(&mut self) -> Result<&mut Box<dyn GpuProbe>, ProbeError> {
        if self.probe.is_none() {
            let waits = Instant::now() < self.not_before;
            if let Some(error) = self.blind.clone().filter(|_| waits) {
                return Err(error);
            }
            match (self.open)() {
                Ok(probe) => {
                    self.probe = Some(probe);
                    self.blind = None;
                    self.pause = self.again_after;
                }
                Err(error) => {
                    self.close(error.clone());
                    return Err(error);
                }
            }
        }
        Ok(self.probe.as_mut().expect("it was just opened"))
    }

    /// Lets go of the probe until later.
    fn close(&mut self, error: ProbeError) {
        self.probe = None;
        self.blind = Some(error);
        self.not_before = Instant::now() + self.pause;
        self.pause = (self.pause * 2).clamp(self.again_after, AGAIN_AFTER_AT_MOST.max(self.again_after));
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
