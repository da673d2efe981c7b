//! NVIDIA's devices, by the library that comes with their driver.
//!
//! The library is looked up when a probe is opened, so one program runs with and without it. Handles of devices are asked
//! for anew each time, by their place: an index means something else after a reset. What fails for one device is noted
//! there; the others are read all the same.

mod devices;
mod errors;
mod events;
mod figures;
mod gpm;
mod processes;
mod raw;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    time::{Instant, SystemTime},
};

use blueproof_core::{
    gpu::{
        BusySample, DeviceEvent, DeviceUuid, Figure, GpuInventory, GpuSnapshot, Partition, Reading, Readings,
        Sample,
    },
    ports::{GpuProbe, ProbeError},
};
use jiff::{SignedDuration, Timestamp};
use nvml_wrapper::{
    Device, Nvml, enum_wrappers::device::Sampling, enums::device::SampleValue, error::NvmlError,
};
use self_cell::self_cell;

use self::{errors::blind, events::Watch, gpm::Meters};

/// The name under which loaders find the library.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// A driver's clock may be ahead of ours by so much.
const AHEAD_AT_MOST: SignedDuration = SignedDuration::from_secs(1);

/// Reads NVIDIA's devices.
pub struct NvmlProbe {
    session: Session,
    /// Who was there when that was last asked, to know who a device was that does not answer any more.
    known: GpuInventory,
    /// What was read last of each device's own samples.
    seen: BTreeMap<DeviceUuid, Window>,
    pcie: Pcie,
}

/// A time of which a driver told by samples, in its own microseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    /// `None` is as far back as it remembers.
    since: Option<u64>,
    until: Option<u64>,
}

/// How it is read what goes over PCIe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pcie {
    /// From performance monitors, where there are some.
    Monitored,
    /// Elsewhere by a call, too, in which the driver counts for a while.
    Counted,
}

self_cell!(
    /// The library, and what is open in it.
    struct Session {
        owner: Nvml,
        #[covariant]
        dependent: Open,
    }
);

/// What stays open from one call to the next.
#[derive(Default)]
struct Open<'nvml> {
    watch: Watch<'nvml>,
    meters: Meters<'nvml>,
}

impl NvmlProbe {
    /// Loads the library that the system has, and begins to listen for errors.
    ///
    /// # Errors
    ///
    /// Where there is no library, no driver, or no right to use it; it may be tried again.
    pub fn open() -> Result<Self, ProbeError> {
        Self::open_library(LIBRARY.as_ref())
    }

    /// Loads the library from a path: another root's, or one that only tests have.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn open_library(path: &OsStr) -> Result<Self, ProbeError> {
        let nvml = Nvml::builder().lib_path(path).init();
        let nvml = nvml.map_err(|error| blind("could not use the NVIDIA driver", &error))?;
        let mut probe = Self {
            session: Session::new(nvml, |_| Open::default()),
            known: GpuInventory::default(),
            seen: BTreeMap::new(),
            pcie: Pcie::Monitored,
        };
        probe.inventory()?;
        Ok(probe)
    }

    /// Has it ask what goes over PCIe also where performance monitors do not tell. For that the driver counts 20 ms in each
    /// direction, of one device after the other.
    pub fn counting_pcie(mut self) -> Self {
        self.pcie = Pcie::Counted;
        self
    }

    /// Returns how many devices there are, by place.
    fn count(&self) -> Result<u32, ProbeError> {
        let count = self.session.borrow_owner().device_count();
        count.map_err(|error| blind("could not count the NVIDIA devices", &error))
    }

    /// Reads the device in a place, and its parts.
    fn sample(&mut self, place: u32, now: Timestamp) -> Vec<Sample> {
        let was = self.known.devices.iter().find(|device| device.index == place);
        let was = was.map(|device| (device.uuid.clone(), device.partitions.clone()));
        let Self {
            session, seen, pcie, ..
        } = self;
        session.with_dependent_mut(|nvml, open| {
            let device = nvml.device_by_index(place);
            let named = device.and_then(|device| Ok((DeviceUuid(device.uuid()?), device)));
            match (named, was) {
                (Ok((uuid, device)), was) => {
                    let partitions = was.filter(|(of, _)| *of == uuid).map(|(_, parts)| parts);
                    let reader = Reader {
                        device: &device,
                        uuid,
                        now,
                        pcie: *pcie,
                    };
                    reader.read(&mut open.meters, seen, &partitions.unwrap_or_default())
                }
                (Err(error), Some((uuid, _))) => vec![unread(uuid, &error)],
                // It never said who it is, so there is nobody to tell of.
                (Err(_), None) => Vec::new(),
            }
        })
    }
}

impl GpuProbe for NvmlProbe {
    fn inventory(&mut self) -> Result<GpuInventory, ProbeError> {
        let known = devices::inventory(self.session.borrow_owner(), &self.known)?;
        self.session
            .with_dependent_mut(|nvml, open| open.watch.follow(nvml, &known));
        self.known.clone_from(&known);
        Ok(known)
    }

    fn snapshot(&mut self) -> Result<GpuSnapshot, ProbeError> {
        let (at, begun) = (now(), Instant::now());
        let samples = (0..self.count()?)
            .flat_map(|place| self.sample(place, at))
            .collect();
        Ok(GpuSnapshot {
            at,
            took: SignedDuration::try_from(begun.elapsed()).unwrap_or(SignedDuration::MAX),
            samples,
        })
    }

    fn events(&mut self) -> Result<Vec<DeviceEvent>, ProbeError> {
        let at = now();
        Ok(self.session.with_dependent_mut(|_, open| open.watch.drain(at)))
    }

    fn heard(&self) -> BTreeSet<DeviceUuid> {
        self.session.borrow_dependent().watch.heard()
    }
}

/// Reads one device.
struct Reader<'a, 'nvml> {
    device: &'a Device<'nvml>,
    uuid: DeviceUuid,
    now: Timestamp,
    pcie: Pcie,
}

impl<'nvml> Reader<'_, 'nvml> {
    fn read(
        self,
        meters: &mut Meters<'nvml>,
        seen: &mut BTreeMap<DeviceUuid, Window>,
        partitions: &[Partition],
    ) -> Vec<Sample> {
        let window = seen.entry(self.uuid.clone()).or_default();
        window.heed_clock(now());
        let (busy, until) = busy(self.device, window.until);
        window.extend(until);
        let mut readings = figures::of_device(self.device);
        readings.extend(meters.of_device(self.device, &self.uuid, self.now));
        if self.pcie == Pcie::Counted && readings.value(Figure::PcieSent).is_none() {
            readings.extend(figures::pcie(self.device));
        }
        let whole = Sample {
            device: self.uuid.clone(),
            partition: None,
            readings,
            processes: processes::of_device(self.device, window.since),
            busy,
        };
        let parts: Vec<_> = partitions
            .iter()
            .map(|part| self.read_part(part, meters))
            .collect();
        std::iter::once(whole).chain(parts).collect()
    }

    /// Reads a part. Only memory, processes and activity are told of parts.
    fn read_part(&self, partition: &Partition, meters: &mut Meters<'nvml>) -> Sample {
        let handle = self.device.nvml().device_by_uuid(partition.uuid.0.as_str());
        let (mut readings, processes) = match &handle {
            Ok(handle) => (figures::of_memory(handle), processes::of_partition(handle)),
            Err(error) => (Readings::default(), errors::unread(error)),
        };
        readings.extend(meters.of_partition(self.device, partition, self.now));
        Sample {
            device: self.uuid.clone(),
            partition: Some(partition.uuid.clone()),
            readings,
            processes,
            busy: Reading::Unsupported,
        }
    }
}

impl Window {
    /// Begins anew where the clock went back: the driver, whose times are of the same clock, tells nothing new until then.
    fn heed_clock(&mut self, now: Timestamp) {
        if self.until.is_some_and(|until| is_ahead(until, now)) {
            *self = Self {
                since: None,
                until: u64::try_from(now.as_microsecond()).ok(),
            };
        }
    }

    /// Goes on to the last sample that was told. Where none was, who asks is told of the same time once more.
    fn extend(&mut self, until: Option<u64>) {
        if until > self.until {
            self.since = self.until;
            self.until = until;
        }
    }
}

/// Returns whether a time in the driver's microseconds is not yet: it is of before the clock went back.
fn is_ahead(micros: u64, now: Timestamp) -> bool {
    driver_time(micros).is_none_or(|at| at.duration_since(now) > AHEAD_AT_MOST)
}

/// Returns how busy a device was since a time in the driver's microseconds, and until when that is known.
fn busy(device: &Device<'_>, since: Option<u64>) -> (Reading<Vec<BusySample>>, Option<u64>) {
    let samples = match device.samples(Sampling::GpuUtilization, since) {
        // The driver's word for a device that did nothing.
        Err(NvmlError::NotFound) => Ok(Vec::new()),
        other => other,
    };
    let now = now();
    let samples = samples.map(|mut samples| {
        samples.retain(|sample| !is_ahead(sample.timestamp, now));
        samples
    });
    let until = samples.iter().flatten().map(|sample| sample.timestamp).max();
    let busy = errors::read(samples).map(|samples| {
        let new = samples
            .iter()
            .filter(|sample| since.is_none_or(|since| sample.timestamp > since));
        let told = new.filter_map(|sample| {
            Some(BusySample {
                at: driver_time(sample.timestamp)?,
                utilization: figures::percent(number(&sample.value))?,
            })
        });
        told.collect()
    });
    (busy, until)
}

/// Returns a sample of somebody who does not answer.
fn unread(device: DeviceUuid, error: &NvmlError) -> Sample {
    let lost = || errors::unread(error);
    Sample {
        device,
        partition: None,
        readings: figures::unread(error),
        processes: lost(),
        busy: errors::unread(error),
    }
}

/// Returns a time that the driver gives in microseconds.
fn driver_time(micros: u64) -> Option<Timestamp> {
    Timestamp::from_microsecond(i64::try_from(micros).ok()?).ok()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "beyond 2^53 nobody tells amounts apart"
)]
fn number(value: &SampleValue) -> f64 {
    match value {
        SampleValue::F64(value) => *value,
        SampleValue::U32(value) => f64::from(*value),
        SampleValue::U64(value) => *value as f64,
        SampleValue::I64(value) => *value as f64,
    }
}

fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).expect("the clock shows a date of this age")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_before_the_clock_went_back_begins_anew() {
        let micros = |at: Timestamp| u64::try_from(at.as_microsecond()).expect("after 1970");
        let (before, hour) = (micros(now()), SignedDuration::from_hours(1));
        let told = Window {
            since: Some(before - 1_000_000),
            until: Some(before),
        };
        let mut window = told;
        window.heed_clock(now());
        assert_eq!((window.since, window.until), (told.since, told.until));

        let mut window = Window {
            until: Some(micros(now() + hour)),
            ..told
        };
        window.heed_clock(now());
        assert_eq!(window.since, None);
        assert!(
            window
                .until
                .is_some_and(|until| (before..=micros(now())).contains(&until))
        );
        assert!(
            is_ahead(micros(now() + hour), now()),
            "what the driver remembers of then is left out"
        );
    }
}
