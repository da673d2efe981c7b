//! What was read of one device, and what may be worked with of it.

use blueproof_core::gpu::{DeviceEvent, DeviceUuid, Figure, Reading, Sample};

use super::{Facts, Why};

/// What was read of one device.
pub(super) struct DeviceFacts<'a> {
    /// What each snapshot has of it, the earliest first. `None` where one has nothing.
    pub(super) samples: Vec<Option<&'a Sample>>,
    /// Whether it is seen from a virtual machine.
    pub(super) is_virtual: bool,
    /// What its driver reported. `None` where nobody listened.
    pub(super) events: Option<Vec<&'a DeviceEvent>>,
}

impl<'a> DeviceFacts<'a> {
    /// Picks what was read of a device.
    pub(super) fn of(facts: &Facts<'a>, device: &DeviceUuid) -> Self {
        let known = facts
            .inventory
            .ok()
            .and_then(|inventory| inventory.device(device));
        Self {
            is_virtual: known.is_some_and(|device| device.is_virtual == Reading::Value(true)),
            samples: facts
                .snapshots
                .iter()
                .map(|snapshot| snapshot.of(device))
                .collect(),
            events: facts.reports.of(device),
        }
    }

    /// Returns the samples that there are, the earliest first.
    pub(super) fn samples(&self) -> impl DoubleEndedIterator<Item = &'a Sample> {
        self.samples.iter().flatten().copied()
    }

    /// Returns a figure as it was read last. A snapshot that has nothing of the device hides what was read before.
    pub(super) fn latest(&self, figure: Figure) -> Result<f64, Why> {
        match self.samples.last() {
            Some(Some(sample)) => value_of(sample, figure),
            Some(None) | None => Err(Why::NotRead { figure }),
        }
    }

    /// Returns whether something was so when it was read last.
    pub(super) fn flag(&self, figure: Figure) -> Result<bool, Why> {
        self.latest(figure).map(|value| value != 0.0)
    }
}

/// Returns a figure that may be worked with, or why there is none.
pub(super) fn value_of(sample: &Sample, figure: Figure) -> Result<f64, Why> {
    let asked = sample.readings.iter().find(|(asked, _)| *asked == figure);
    match asked.map(|(_, reading)| reading) {
        // The readings themselves do not tell what was not asked for from what a card does not have.
        None => Err(Why::NotRead { figure }),
        Some(Reading::Unsupported) => Err(Why::NotTold { figure }),
        Some(Reading::Failed(fault)) => Err(Why::Fault {
            figure,
            fault: fault.clone(),
        }),
        Some(Reading::Value(value)) if value.is_finite() && *value >= 0.0 => Ok(*value),
        Some(Reading::Value(value)) => Err(Why::Absurd {
            figure,
            told: value.to_string(),
        }),
    }
}
