//! How devices fare: what was read of them is looked over, and nothing is read here.
//!
//! [`check`] asks what the driver's library can answer, [`judge`] says whether the machine or the job was at fault in an
//! attempt, [`unhealthy_devices()`] which devices are unhealthy, [`leftovers()`] what one tenant leaves to the next, and
//! [`Labels`] what a node is to be labelled. There is no clock in here, no device and no Kubernetes: time, readings and the
//! labels as they stand are arguments.
//!
//! Around an attempt: [`check`] some snapshots before it begins, and look at [`leftovers()`] since the machine was idle, or
//! without a `before` for processes alone; keep the last snapshot and all events; [`judge`] by them and a snapshot from
//! after its end.
//!
//! An answer is ok, a problem or unknown, and whatever could not be asked is unknown. Nothing turns unknown into ok:
//! neither a card that does not tell, nor a reading that failed, nor a check that needs more than the driver's library.
//!
//! ```
//! use blueproof_core::gpu::GpuInventory;
//! use blueproof_gpu::health::{CheckPolicy, Facts, Health, Reports, check};
//!
//! let inventory = GpuInventory::default();
//! let facts = Facts { inventory: Ok(&inventory), snapshots: &[], reports: Reports::NONE };
//! let policy = CheckPolicy::expecting(1);
//! let findings = check(&policy, &facts);
//! assert_eq!(findings.health(&policy.counting), Health::Problem);
//! ```

mod answer;
mod attempt;
mod checks;
mod facts;
mod findings;
mod labels;
mod leftovers;
mod pcie;
mod policy;
mod text;
mod unhealthy;
mod xid;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use blueproof_core::{
    gpu::{DeviceEvent, DeviceUuid, GpuInventory, GpuSnapshot},
    ports::ProbeErrorKind,
};

pub use answer::{Answer, CheckId, Health, Scope, Severity, Why};
pub use attempt::{AttemptVerdict, Blame, Evidence, FlightRecord, Judgement, judge};
pub use findings::{Finding, Findings};
pub use labels::{AUTOPILOT_LABEL, LabelChange, Labels, OWN_LABEL, Person, Testing};
pub use leftovers::{LeftMemory, LeftProcess, Leftovers, Unseen, leftovers};
pub use policy::{CheckPolicy, LabelPolicy, Streak};
pub use unhealthy::unhealthy_devices;
pub use xid::{XidClass, xid_class, xid_words};

/// What was read of a machine, for checks to look at.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Which devices there are, or why nothing can be said of any.
    pub inventory: Result<&'a GpuInventory, ProbeErrorKind>,
    /// What was read of them, the earliest first. Some checks need several, and say so.
    pub snapshots: &'a [GpuSnapshot],
    /// What drivers reported meanwhile.
    pub reports: Reports<'a>,
}

/// What drivers reported, and of which devices they were listened to: that nothing was reported of another one means nothing.
#[derive(Debug, Clone, Copy)]
pub struct Reports<'a> {
    /// What was reported, in its order.
    pub events: &'a [DeviceEvent],
    /// Of which devices reports were listened to.
    pub heard: Heard<'a>,
}

/// The devices whose drivers were listened to.
#[derive(Debug, Clone, Copy)]
pub enum Heard<'a> {
    /// All of them.
    All,
    /// These, and maybe none.
    Only(&'a BTreeSet<DeviceUuid>),
}

static NOBODY: BTreeSet<DeviceUuid> = BTreeSet::new();

impl<'a> Reports<'a> {
    /// Nobody listened.
    pub const NONE: Self = Self {
        events: &[],
        heard: Heard::Only(&NOBODY),
    };

    /// Returns all that was reported, where all drivers were listened to.
    pub const fn of_all(events: &'a [DeviceEvent]) -> Self {
        Self {
            events,
            heard: Heard::All,
        }
    }

    /// Returns what was reported of a device; `None` where nobody listened, which is not the same as nothing.
    fn of(&self, device: &DeviceUuid) -> Option<Vec<&'a DeviceEvent>> {
        let events: Vec<_> = self
            .events
            .iter()
            .filter(|event| event.device == *device)
            .collect();
        let is_heard = match self.heard {
            Heard::All => true,
            Heard::Only(devices) => devices.contains(device),
        };
        (is_heard || !events.is_empty()).then_some(events)
    }
}

/// Looks over all that was read of a machine. Every check answers, whatever became of the others.
pub fn check(policy: &CheckPolicy, facts: &Facts<'_>) -> Findings {
    check_devices(policy, facts, &facts.devices())
}

/// Looks over certain devices, which are all that there should be.
fn check_devices(policy: &CheckPolicy, facts: &Facts<'_>, devices: &BTreeSet<DeviceUuid>) -> Findings {
    let machine = [CheckId::Driver, CheckId::DeviceCount].map(|check| Finding {
        check,
        device: None,
        answer: checks::of_machine(check, policy, facts, devices),
    });
    let each = devices.iter().flat_map(|device| {
        let facts = facts::DeviceFacts::of(facts, device);
        CheckId::of_devices().map(move |check| Finding {
            check,
            device: Some(device.clone()),
            answer: checks::of_device(check, policy, &facts),
        })
    });
    let elsewhere = CheckId::ALL.iter().filter_map(|check| {
        let needs = check.needs()?.to_owned();
        Some(Finding {
            check: *check,
            device: None,
            answer: Answer::Unknown {
                why: Why::NotDoneHere { needs },
            },
        })
    });
    Findings(machine.into_iter().chain(each).chain(elsewhere).collect())
}

impl Facts<'_> {
    /// Returns all devices of which anything was said: one that fell off the bus is in no later inventory.
    fn devices(&self) -> BTreeSet<DeviceUuid> {
        let listed = self
            .inventory
            .iter()
            .flat_map(|inventory| &inventory.devices)
            .map(|device| &device.uuid);
        let read = self
            .snapshots
            .iter()
            .flat_map(|snapshot| &snapshot.samples)
            .map(|sample| &sample.device);
        let reported = self.reports.events.iter().map(|event| &event.device);
        listed.chain(read).chain(reported).cloned().collect()
    }
}
