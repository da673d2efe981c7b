//! What is read of one device, and of its parts.

use std::collections::BTreeMap;

use blueproof_core::gpu::{BusySample, DeviceUuid, Fault, Figure, Partition, Reading, Readings, Sample};
use jiff::{SignedDuration, Timestamp};
use nvml_wrapper::{Device, enum_wrappers::device::Sampling, error::NvmlError};

use super::{Also, Pcie, errors, figures, gpm::Meters, now, possible::possible, processes};

/// A driver's clock may be ahead of ours by so much.
const AHEAD_AT_MOST: SignedDuration = SignedDuration::from_secs(1);

/// A time of which a driver told by samples, in its own microseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Window {
    /// `None` is as far back as it remembers.
    since: Option<u64>,
    until: Option<u64>,
}

/// Reads one device.
pub(super) struct Reader<'a, 'nvml> {
    pub(super) device: &'a Device<'nvml>,
    pub(super) uuid: DeviceUuid,
    pub(super) now: Timestamp,
    pub(super) also: Also,
}

impl<'nvml> Reader<'_, 'nvml> {
    pub(super) fn read(
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
        if self.also.reads_policies {
            readings.extend(figures::policies(self.device));
        }
        if self.also.pcie == Pcie::Counted && readings.value(Figure::PcieSent).is_none() {
            readings.extend(figures::pcie(self.device));
        }
        let whole = Sample {
            device: self.uuid.clone(),
            partition: None,
            readings: possible(readings),
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
            readings: possible(readings),
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
                utilization: figures::percent(figures::number(&sample.value))?,
            })
        });
        told.collect()
    });
    (busy, until)
}

/// Returns a sample of a device of which nothing can be read.
pub(super) fn unread(device: DeviceUuid, fault: &Fault) -> Sample {
    Sample {
        device,
        partition: None,
        readings: figures::unread(fault),
        processes: Reading::Failed(fault.clone()),
        busy: Reading::Failed(fault.clone()),
    }
}

/// Returns a time that the driver gives in microseconds.
fn driver_time(micros: u64) -> Option<Timestamp> {
    Timestamp::from_microsecond(i64::try_from(micros).ok()?).ok()
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
