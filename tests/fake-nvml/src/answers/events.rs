//! Events: which XIDs a set has yet to be told of, and the waiting for them.
//!
//! As in NVML, each XID is one event for each set that its device was registered with, and every event carries the
//! device's newest XID: whoever waits too rarely learns how many there were, but not which.

use crate::handle::Handle;
use crate::library::{self, Library};
use crate::returns::{Answer, NvmlReturn};
use crate::scenario::{Clock, Xid};
use nvml_wrapper_sys::bindings::nvmlEventTypeXidCriticalError;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const XID: u64 = nvmlEventTypeXidCriticalError as u64;

/// How often it is looked whether another process has moved the time.
const LOOKS_EVERY: Duration = Duration::from_millis(5);

/// The sets that callers have made, by the handle that they hold.
pub(crate) struct EventSets {
    sets: BTreeMap<usize, EventSet>,
    n_created: usize,
}

/// What one set waits for, and what it was told already.
#[derive(Debug, Default)]
struct EventSet {
    registered: BTreeMap<usize, Registration>,
    /// Devices and the places of their XIDs.
    delivered: BTreeSet<(usize, usize)>,
}

/// What one set wants to know of one device.
#[derive(Debug, Clone, Copy)]
struct Registration {
    types: u64,
    /// XIDs up to this second happened before anybody listened.
    since: f64,
}

/// An event as a caller is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) device: Handle,
    pub(crate) event_type: u64,
    pub(crate) data: u64,
    pub(crate) gpu_instance: u32,
    pub(crate) compute_instance: u32,
}

impl EventSets {
    /// Makes a table without sets.
    pub(crate) const fn new() -> Self {
        Self {
            sets: BTreeMap::new(),
            n_created: 0,
        }
    }

    /// Makes a set that waits for nothing yet.
    pub(crate) fn create(&mut self) -> usize {
        self.n_created += 1;
        // Away from null, and unlike the small numbers that an uninitialised handle might hold.
        let handle = 0x6576_0000 + self.n_created;
        self.sets.insert(handle, EventSet::default());
        handle
    }

    /// Takes a set away.
    pub(crate) fn free(&mut self, set: usize) -> Answer<()> {
        self.sets
            .remove(&set)
            .map(|_| ())
            .ok_or(NvmlReturn::InvalidArgument)
    }
}

/// Lets a set be told of a device's events from now on.
pub(crate) fn register(library: &mut Library, handle: Handle, types: u64, set: usize) -> Answer<()> {
    let target = library.target(handle)?;
    if types & !target.whole()?.supported_event_types != 0 {
        return Err(NvmlReturn::NotSupported);
    }
    let since = target.now;
    let set = library
        .event_sets
        .sets
        .get_mut(&set)
        .ok_or(NvmlReturn::InvalidArgument)?;
    let registration = set
        .registered
        .entry(handle.device)
        .or_insert(Registration { types, since });
    registration.types |= types;
    Ok(())
}

/// Waits until a set has an event, or for some time, in real time whatever the clock is.
pub(crate) fn wait(function: &'static str, set: usize, timeout: Duration) -> Answer<Event> {
    library::call(function, |_| Ok(None), |_| Ok(()))?;
    let deadline = Instant::now() + timeout;
    let mut library = library::lock();
    loop {
        library.ready()?;
        if let Some(event) = next_event(&mut library, set)? {
            return Ok(event);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(NvmlReturn::Timeout);
        }
        let pause = until_next(&library, set).map_or(left, |next| next.min(left));
        library = library::wait_for_change(library, pause);
    }
}

/// Takes the next event that a set has not been told of. A lost device shows only where no event is left.
fn next_event(library: &mut Library, set: usize) -> Answer<Option<Event>> {
    let now = library.now();
    let registered = &library
        .event_sets
        .sets
        .get(&set)
        .ok_or(NvmlReturn::InvalidArgument)?
        .registered;
    let devices: Vec<_> = registered.keys().copied().collect();
    for device in &devices {
        let Some((place, newest)) = pending(library, set, *device, now) else {
            continue;
        };
        if let Some(set) = library.event_sets.sets.get_mut(&set) {
            set.delivered.insert((*device, place));
        }
        return Ok(Some(event(library, *device, newest)));
    }
    for device in devices {
        library.fault("nvmlEventSetWait_v2", Some(device))?;
    }
    Ok(None)
}

/// Returns the place of a device's first XID that a set has not been told of, and its newest.
fn pending(library: &Library, set: usize, device: usize, now: f64) -> Option<(usize, Xid)> {
    let set = library.event_sets.sets.get(&set)?;
    let registration = set
        .registered
        .get(&device)
        .filter(|registration| registration.types & XID != 0)?;
    let xids = library.scenario.devices.get(device)?.xids.iter().enumerate();
    let due = xids.filter(|(place, xid)| {
        xid.at > registration.since && xid.at <= now && !set.delivered.contains(&(device, *place))
    });
    let mut due: Vec<_> = due.collect();
    due.sort_by(|a, b| a.1.at.total_cmp(&b.1.at));
    Some((due.first()?.0, *due.last()?.1))
}

fn event(library: &Library, device: usize, xid: Xid) -> Event {
    let (gpu_instance, compute_instance) =
        super::mig::instance_ids(&library.scenario.devices[device], xid.mig);
    Event {
        device: Handle::of(device),
        event_type: XID,
        data: xid.code,
        gpu_instance,
        compute_instance,
    }
}

/// Returns how long it is until a registered device's next XID, where time passes by itself.
fn until_next(library: &Library, set: usize) -> Option<Duration> {
    match library.scenario.clock {
        Clock::Virtual => return None,
        Clock::File => return Some(LOOKS_EVERY),
        Clock::Real => {}
    }
    let now = library.now();
    let devices = library.event_sets.sets.get(&set)?.registered.keys();
    let xids = devices
        .filter_map(|device| library.scenario.devices.get(*device))
        .flat_map(|device| &device.xids);
    let next = xids
        .map(|xid| xid.at - now)
        .filter(|left| *left > 0.0)
        .min_by(f64::total_cmp)?;
    // A little more, so that it has happened when the wait is over.
    Some(Duration::from_secs_f64(next + 1e-4))
}
