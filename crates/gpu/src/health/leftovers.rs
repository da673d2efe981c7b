//! What one tenant of a device leaves to the next: processes, and memory in use.
//!
//! Nothing is ended or freed here, and whose processes they are nobody says: a number that was there before and is there
//! after is taken for the same process.

use std::collections::BTreeSet;

use blueproof_core::{
    domain::Bytes,
    gpu::{DeviceUuid, Figure, GpuProcess, GpuSnapshot, Reading, Sample},
};
use serde::{Deserialize, Serialize};

use super::facts::value_of;

/// What is left on devices, and on their parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leftovers {
    /// Processes that were not there before.
    pub processes: Vec<LeftProcess>,
    /// Devices of which more memory is in use than before.
    pub memory: Vec<LeftMemory>,
    /// What could not be seen, so that something may be left there.
    pub unseen: Vec<Unseen>,
}

/// A process that is left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftProcess {
    /// The device, or the part of one, that it uses.
    pub place: DeviceUuid,
    /// Its number, in the namespace in which the driver tells it.
    pub pid: u32,
    /// The memory that it has there, in bytes, if the driver tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
}

/// Memory that is left in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftMemory {
    /// The device, or the part of one.
    pub place: DeviceUuid,
    /// What was in use before, in bytes.
    pub before: Bytes,
    /// What is in use now, in bytes.
    pub after: Bytes,
}

/// Something that could not be seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unseen {
    /// The device, or the part of one.
    pub place: DeviceUuid,
    /// What, and why.
    pub words: String,
}

impl Leftovers {
    /// Returns whether nothing is left, and that is known.
    pub fn is_clean(&self) -> bool {
        self.processes.is_empty() && self.memory.is_empty() && self.unseen.is_empty()
    }
}

/// Returns what is left on devices, or on parts of them, that was not there before.
///
/// Without a `before`, nothing should be there at all: every process is left, and of memory nothing can be said. Growth of
/// memory up to `memory_at_most` is no leftover.
pub fn leftovers(
    places: &BTreeSet<DeviceUuid>,
    before: Option<&GpuSnapshot>,
    after: Option<&GpuSnapshot>,
    memory_at_most: Bytes,
) -> Leftovers {
    let mut left = Leftovers::default();
    let samples = after.map(|after| after.samples.as_slice()).unwrap_or_default();
    for place in places {
        let of_it: Vec<_> = samples.iter().filter(|sample| is_within(sample, place)).collect();
        if of_it.is_empty() {
            left.note(place, "nothing was read of it afterwards");
        }
        for sample in of_it {
            let place = place_of(sample);
            let same = |other: &&Sample| place_of(other) == place;
            let earlier = before.map(|before| before.samples.iter().find(same));
            left.add_processes(sample, earlier);
            left.add_memory(sample, earlier.flatten(), memory_at_most);
        }
    }
    left
}

/// Returns whether a sample is of a place, or of a part of it.
fn is_within(sample: &Sample, place: &DeviceUuid) -> bool {
    sample.device == *place || sample.partition.as_ref() == Some(place)
}

fn place_of(sample: &Sample) -> &DeviceUuid {
    sample.partition.as_ref().unwrap_or(&sample.device)
}

impl Leftovers {
    fn note(&mut self, place: &DeviceUuid, words: impl Into<String>) {
        self.unseen.push(Unseen {
            place: place.clone(),
            words: words.into(),
        });
    }

    /// Notes who is there and was not. The outer `None` is that nobody should be there.
    fn add_processes(&mut self, now: &Sample, earlier: Option<Option<&Sample>>) {
        let place = place_of(now);
        let was = match earlier.map(|earlier| earlier.map(|sample| &sample.processes)) {
            None => &[],
            Some(Some(Reading::Value(was))) => was.as_slice(),
            Some(Some(Reading::Unsupported | Reading::Failed(_)) | None) => {
                return self.note(place, "who used it before is not known");
            }
        };
        let there = match &now.processes {
            Reading::Value(there) => there,
            Reading::Unsupported => return self.note(place, "the driver does not tell who uses it"),
            Reading::Failed(fault) => {
                return self.note(place, format!("could not read who uses it: {}", fault.word));
            }
        };
        let is_new = |process: &&GpuProcess| was.iter().all(|other| other.pid != process.pid);
        self.processes
            .extend(there.iter().filter(is_new).map(|process| LeftProcess {
                place: place.clone(),
                pid: process.pid,
                memory: process.memory.clone().value(),
            }));
    }

    /// Notes whether more memory is in use than was.
    fn add_memory(&mut self, now: &Sample, earlier: Option<&Sample>, at_most: Bytes) {
        let place = place_of(now);
        let Some(earlier) = earlier else {
            return self.note(place, "how much memory was in use before is not known");
        };
        let used = |sample| value_of(sample, Figure::MemoryUsed).map(bytes);
        match (used(earlier), used(now)) {
            (Ok(before), Ok(after)) if after.0.saturating_sub(before.0) > at_most.0 => {
                self.memory.push(LeftMemory {
                    place: place.clone(),
                    before,
                    after,
                });
            }
            (Ok(_), Ok(_)) => {}
            (Err(why), _) => self.note(place, format!("memory in use before: {why}")),
            (_, Err(why)) => self.note(place, format!("memory in use: {why}")),
        }
    }
}

/// Returns a figure in bytes. It was found to be finite and not negative.
fn bytes(figure: f64) -> Bytes {
    Bytes(figure as u64)
}
