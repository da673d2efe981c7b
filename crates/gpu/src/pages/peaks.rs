//! How busy each device was at most of late, whoever reads it meanwhile.

use std::collections::{BTreeMap, VecDeque};

use blueproof_core::gpu::{DeviceUuid, GpuSnapshot, Sample};
use jiff::{SignedDuration, Timestamp};

/// How long a reading counts. Prometheus reads each minute if nobody says otherwise, and may be a little late.
const LATELY: SignedDuration = SignedDuration::from_secs(65);

/// The most of what drivers' own samples told of late.
///
/// A driver tells each sample once. If the page had only those of its own reading, of two who read it each would see what
/// the other did not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Peaks {
    devices: BTreeMap<Part, VecDeque<Peak>>,
}

/// A device, and the part of it.
type Part = (DeviceUuid, Option<DeviceUuid>);

/// The most of what was told in one reading. What was told later, and is not less, takes its place.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Peak {
    read_at: Timestamp,
    utilization: f64,
}

impl Peaks {
    /// Takes in what was read, and forgets what is too long ago.
    pub fn read(&mut self, snapshot: &GpuSnapshot) {
        for sample in &snapshot.samples {
            self.push(sample, snapshot.at);
        }
        let oldest = snapshot.at - LATELY;
        self.devices.retain(|_, peaks| {
            while peaks.front().is_some_and(|peak| peak.read_at < oldest) {
                peaks.pop_front();
            }
            !peaks.is_empty()
        });
    }

    fn push(&mut self, sample: &Sample, read_at: Timestamp) {
        let busy = sample.busy.as_ref().value().map(Vec::as_slice);
        let told = busy.unwrap_or_default().iter().map(|told| told.utilization);
        let Some(utilization) = told.reduce(f64::max) else {
            return;
        };
        let peaks = self.devices.entry(part(sample)).or_default();
        while peaks.back().is_some_and(|peak| peak.utilization <= utilization) {
            peaks.pop_back();
        }
        peaks.push_back(Peak { read_at, utilization });
    }

    /// Takes in that the clock was set by so much.
    pub fn clock_set(&mut self, by: SignedDuration) {
        for peak in self.devices.values_mut().flatten() {
            peak.read_at += by;
        }
    }

    /// Returns how busy the device or part was at most; `None` where its driver told nothing of late.
    pub fn of(&self, sample: &Sample) -> Option<f64> {
        let peaks = self.devices.get(&part(sample))?;
        peaks.front().map(|peak| peak.utilization)
    }
}

fn part(sample: &Sample) -> Part {
    (sample.device.clone(), sample.partition.clone())
}

#[cfg(test)]
mod tests {
    use blueproof_core::{
        gpu::{BusySample, Reading},
        testing::{device, snapshot},
    };

    use super::*;

    /// Returns what is known after each reading: of a second, and of what the driver told of it.
    fn known(readings: &[(i64, Reading<&[f64]>)]) -> Vec<Option<f64>> {
        let mut peaks = Peaks::default();
        let known = readings.iter().map(|(second, busy)| {
            let mut snapshot = snapshot(*second, &[device(0)]);
            let at = snapshot.at;
            snapshot.samples[0].busy = busy.as_ref().map(|busy| {
                let told = busy.iter().map(|&utilization| BusySample { at, utilization });
                told.collect()
            });
            peaks.read(&snapshot);
            peaks.of(&snapshot.samples[0])
        });
        known.collect()
    }

    #[test]
    fn who_reads_right_after_another_sees_what_they_saw() {
        let of_both = [
            (100, Reading::Value(&[0.25, 0.75, 0.5][..])),
            (100, Reading::Value(&[])),
        ];
        assert_eq!(known(&of_both), [Some(0.75); 2]);
    }

    #[test]
    fn the_most_is_told_until_it_is_too_long_ago_and_then_what_came_after_it() {
        let readings = [
            (100, Reading::Value(&[0.5][..])),
            (110, Reading::Value(&[0.75])),
            (120, Reading::Value(&[0.25, 0.125])),
            (175, Reading::Value(&[])),
            (176, Reading::Value(&[])),
            (186, Reading::Value(&[])),
        ];
        let expected = [Some(0.5), Some(0.75), Some(0.75), Some(0.75), Some(0.25), None];
        assert_eq!(known(&readings), expected);
    }

    #[test]
    fn where_no_driver_tells_there_is_none() {
        assert_eq!(known(&[(100, Reading::Unsupported)]), [None]);
    }

    #[test]
    fn a_clock_that_is_set_makes_nothing_older_or_younger() {
        let told = |second| {
            let mut snapshot = snapshot(second, &[device(0)]);
            let at = snapshot.at;
            let told = BusySample { at, utilization: 0.5 };
            snapshot.samples[0].busy = Reading::Value(vec![told]);
            snapshot
        };
        for by in [3600, -3600] {
            let (first, mut peaks) = (told(4000), Peaks::default());
            peaks.read(&first);
            peaks.clock_set(SignedDuration::from_secs(by));
            for (second, expected) in [(4065, Some(0.5)), (4066, None)] {
                peaks.read(&snapshot(second + by, &[device(0)]));
                assert_eq!(peaks.of(&first.samples[0]), expected, "{second} s, {by} s");
            }
        }
    }
}
