//! The one state of a copy of the library, and the way every call takes through it.
//!
//! A call is counted, refused before `nvmlInit`, made to wait where the scenario says that it is slow, made to fail
//! where it says so, and only then answered. It waits without the lock, so that calls about other devices go on.

use crate::answers::accounting::Accounting;
use crate::answers::events::EventSets;
use crate::answers::gpm::GpmSamples;
use crate::handle::Handle;
use crate::returns::{Answer, NvmlReturn};
use crate::scenario::{Clock, Device, MigInstance, Scenario};
use crate::source;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

static LIBRARY: Mutex<Library> = Mutex::new(Library::new());
/// Told whenever something may have happened that a caller waits for.
static CHANGED: Condvar = Condvar::new();

/// What a copy of the library knows.
pub(crate) struct Library {
    n_inits: u32,
    pub(crate) scenario: Scenario,
    /// Where the scenario was read from by request; `None` is where [`source`] finds it.
    path: Option<PathBuf>,
    /// The second at which virtual time stands, or which real time is ahead of its start.
    offset: f64,
    started: Option<Instant>,
    n_calls: BTreeMap<&'static str, u64>,
    pub(crate) event_sets: EventSets,
    pub(crate) gpm_samples: GpmSamples,
    accounting: BTreeMap<usize, Accounting>,
}

/// Whom a call is about, and when: what an answer is made from.
pub(crate) struct Target<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) device: &'a Device,
    pub(crate) handle: Handle,
    pub(crate) mig: Option<&'a MigInstance>,
    pub(crate) accounting: Accounting,
    pub(crate) now: f64,
}

/// Locks the state. A panic cannot have left it half changed: no change has a second half.
pub(crate) fn lock() -> MutexGuard<'static, Library> {
    LIBRARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a client in, and reads the scenario for the first.
pub(crate) fn init(function: &'static str) -> Answer<()> {
    let delay = {
        let mut library = lock();
        library.count(function);
        if library.n_inits == 0 {
            library.scenario = source::load(library.path.as_deref())?;
        }
        library.started.get_or_insert_with(Instant::now);
        library.delay(function, None)
    };
    thread::sleep(delay);
    let mut library = lock();
    library.fault(function, None)?;
    library.n_inits += 1;
    Ok(())
}

/// Counts a client out; with the last, its event sets and samples are gone.
pub(crate) fn shutdown(function: &'static str) -> Answer<()> {
    call(
        function,
        |_| Ok(None),
        |library| {
            library.n_inits -= 1;
            if library.n_inits == 0 {
                library.event_sets = EventSets::new();
                library.gpm_samples = GpmSamples::new();
            }
            Ok(())
        },
    )?;
    CHANGED.notify_all();
    Ok(())
}

/// Takes one call its way. `whom` says which device it is about, if any.
pub(crate) fn call<T>(
    function: &'static str,
    whom: impl FnOnce(&Scenario) -> Answer<Option<Handle>>,
    answer: impl FnOnce(&mut Library) -> Answer<T>,
) -> Answer<T> {
    let (device, delay) = {
        let mut library = lock();
        library.count(function);
        library.ready()?;
        let device = whom(&library.scenario)?.map(|handle| handle.device);
        (device, library.delay(function, device))
    };
    if !delay.is_zero() {
        thread::sleep(delay);
    }
    let mut library = lock();
    library.ready()?;
    library.fault(function, device)?;
    answer(&mut library)
}

/// Answers a call about one device.
pub(crate) fn ask<T>(
    function: &'static str,
    handle: Option<Handle>,
    answer: impl FnOnce(&Target<'_>) -> Answer<T>,
) -> Answer<T> {
    change(function, handle, |library, handle| {
        answer(&library.target(handle)?)
    })
}

/// Answers a call about one device that may change the library's state.
pub(crate) fn change<T>(
    function: &'static str,
    handle: Option<Handle>,
    answer: impl FnOnce(&mut Library, Handle) -> Answer<T>,
) -> Answer<T> {
    let known = |scenario: &Scenario| {
        let handle = handle.ok_or(NvmlReturn::InvalidArgument)?;
        find(scenario, handle)?;
        Ok(Some(handle))
    };
    call(function, known, |library| {
        answer(library, handle.ok_or(NvmlReturn::InvalidArgument)?)
    })
}

/// Answers a call that looks for a device.
pub(crate) fn look_up(function: &'static str, find: impl Fn(&Scenario) -> Answer<Handle>) -> Answer<Handle> {
    call(
        function,
        |scenario| find(scenario).map(Some),
        |library| find(&library.scenario),
    )
}

/// Waits for a change for at most some time, without the lock.
pub(crate) fn wait_for_change(
    library: MutexGuard<'static, Library>,
    at_most: Duration,
) -> MutexGuard<'static, Library> {
    let woken = CHANGED.wait_timeout(library, at_most);
    woken.unwrap_or_else(PoisonError::into_inner).0
}

/// Moves the time, and wakes whoever waits for what happens in it.
pub(crate) fn set_time(second: impl FnOnce(f64) -> f64) {
    let mut library = lock();
    let now = library.now();
    library.offset = second(now) - (now - library.offset);
    CHANGED.notify_all();
}

/// Answers from another scenario from now on. Handles, time and clients stay.
pub(crate) fn replace_scenario(path: PathBuf) -> Answer<()> {
    let mut library = lock();
    library.scenario = source::load(Some(&path))?;
    library.path = Some(path);
    CHANGED.notify_all();
    Ok(())
}

/// Returns how often a function was called; `*` is all of them together.
pub(crate) fn n_calls(function: &str) -> u64 {
    let library = lock();
    match function {
        "*" => library.n_calls.values().sum(),
        one => library.n_calls.get(one).copied().unwrap_or(0),
    }
}

/// Returns the names of the functions that were called, a line each.
pub(crate) fn called() -> String {
    let names: Vec<_> = lock().n_calls.keys().copied().collect();
    names.join("\n")
}

impl Library {
    const fn new() -> Self {
        Self {
            n_inits: 0,
            scenario: Scenario::EMPTY,
            path: None,
            offset: 0.0,
            started: None,
            n_calls: BTreeMap::new(),
            event_sets: EventSets::new(),
            gpm_samples: GpmSamples::new(),
            accounting: BTreeMap::new(),
        }
    }

    /// Returns the second at which the scenario is.
    pub(crate) fn now(&self) -> f64 {
        match self.scenario.clock {
            Clock::Virtual => self.offset,
            Clock::File => source::time().unwrap_or_default(),
            Clock::Real => {
                self.offset
                    + self
                        .started
                        .map_or(0.0, |started| started.elapsed().as_secs_f64())
            }
        }
    }

    /// Refuses whoever has not called `nvmlInit`.
    pub(crate) fn ready(&self) -> Answer<()> {
        if self.n_inits == 0 {
            Err(NvmlReturn::Uninitialized)
        } else {
            Ok(())
        }
    }

    /// Fails where the scenario says that a call fails now.
    pub(crate) fn fault(&self, function: &str, device: Option<usize>) -> Answer<()> {
        let now = self.now();
        let applies = |fault: &&crate::Fault| {
            let times = (fault.from, fault.to);
            is_named(&fault.function, function, device) && is_meant(fault.device, device) && is_in(times, now)
        };
        self.scenario
            .faults
            .iter()
            .find(applies)
            .map_or(Ok(()), |fault| Err(fault.returns))
    }

    /// Returns how long a call takes now.
    fn delay(&self, function: &str, device: Option<usize>) -> Duration {
        let now = self.now();
        let applies = |delay: &&crate::Delay| {
            let times = (delay.from, delay.to);
            is_named(&delay.function, function, device) && is_meant(delay.device, device) && is_in(times, now)
        };
        let delays = self.scenario.delays.iter().filter(applies);
        Duration::from_millis(delays.map(|delay| delay.milliseconds).sum())
    }

    /// Returns what an answer about a device is made from.
    pub(crate) fn target(&self, handle: Handle) -> Answer<Target<'_>> {
        let (device, mig) = find(&self.scenario, handle)?;
        let accounting = self.accounting.get(&handle.device).copied();
        Ok(Target {
            scenario: &self.scenario,
            device,
            handle,
            mig,
            accounting: accounting.unwrap_or_else(|| Accounting::at_start(device)),
            now: self.now(),
        })
    }

    /// Remembers how a device records processes from now on.
    pub(crate) fn set_accounting(&mut self, device: usize, accounting: Accounting) {
        self.accounting.insert(device, accounting);
    }

    fn count(&mut self, function: &'static str) {
        *self.n_calls.entry(function).or_default() += 1;
    }
}

/// Returns what a handle names.
fn find(scenario: &Scenario, handle: Handle) -> Answer<(&Device, Option<&MigInstance>)> {
    let device = scenario
        .devices
        .get(handle.device)
        .ok_or(NvmlReturn::InvalidArgument)?;
    let Some(index) = handle.mig else {
        return Ok((device, None));
    };
    let instance = device.mig.as_ref().and_then(|mig| mig.instances.get(index));
    Ok((device, Some(instance.ok_or(NvmlReturn::InvalidArgument)?)))
}

/// Says whether a fault's or delay's function is the one that is called.
fn is_named(pattern: &str, function: &str, device: Option<usize>) -> bool {
    pattern == function || (pattern == "*" && device.is_some())
}

/// Says whether a fault's or delay's device is the one that the call is about.
fn is_meant(device: Option<usize>, called: Option<usize>) -> bool {
    device.is_none() || device == called
}

/// Says whether it is time for a fault or delay.
fn is_in((from, to): (f64, Option<f64>), now: f64) -> bool {
    from <= now && to.is_none_or(|to| now < to)
}

impl Target<'_> {
    /// Refuses what cannot be asked of a MIG instance.
    pub(crate) fn whole(&self) -> Answer<&Device> {
        if self.mig.is_some() {
            Err(NvmlReturn::NotSupported)
        } else {
            Ok(self.device)
        }
    }

    /// Refuses what cannot be asked of a MIG instance, nor of a device that is divided.
    pub(crate) fn undivided(&self) -> Answer<&Device> {
        if self.device.mig.as_ref().is_some_and(|mig| mig.enabled) {
            return Err(NvmlReturn::NotSupported);
        }
        self.whole()
    }

    /// Returns a second as NVML's timestamps have it, in microseconds since 1970.
    pub(crate) fn stamp(&self, second: f64) -> u64 {
        stamp(self.scenario, second)
    }

    /// Returns the second at which the driver was last loaded.
    pub(crate) fn driver_loaded_at(&self) -> f64 {
        let reloads = self.scenario.driver_reloads.iter().copied();
        reloads.filter(|reload| *reload <= self.now).fold(0.0, f64::max)
    }
}

/// Returns a second as microseconds since 1970; whole microseconds of the scenario stay exact.
pub(crate) fn stamp(scenario: &Scenario, second: f64) -> u64 {
    (scenario.starts_at_unix_seconds * 1_000_000).saturating_add_signed((second * 1e6).round() as i64)
}
