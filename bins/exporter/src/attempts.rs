//! What attempts of this machine make of its devices, while they go on.
//!
//! Devices are read every second then, and it is looked who has which. So an attempt's figures here are a second old at
//! most. Those that are kept of it are in the run's report: there its own agent reads at both ends.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
};

use blueproof_cluster::local::{self, Occupancy, Occupant};
use blueproof_core::{
    attempt::AttemptSpec,
    gpu::{DeviceEvent, DeviceUuid, GpuInventory, GpuSnapshot, Reading},
};
use blueproof_diagnostic::Diagnostic;
use blueproof_gpu::{
    account::{Holder, Ledger},
    collect::{SnapshotSink, WITNESSED_EVERY},
    pages::{self, DeviceAccounting},
};
use jiff::{SignedDuration, Timestamp};

/// For how long an attempt that has ended is shown: who scrapes once a minute gets its last figures.
const SHOWN_FOR: SignedDuration = SignedDuration::from_mins(2);

/// Knows what attempts make of devices.
pub(crate) struct AttemptWatch {
    accounts: Arc<Mutex<AttemptAccounts>>,
}

struct AttemptAccounts {
    ledger: Ledger,
    attempts: BTreeMap<local::Holder, Shown>,
    /// Each device, and each part of it.
    devices: Vec<(DeviceUuid, Option<DeviceUuid>)>,
    silent: Option<Diagnostic>,
}

/// An attempt that is shown.
#[derive(Default)]
struct Shown {
    spec: Option<Arc<AttemptSpec>>,
    /// When it had no devices any more.
    gone_at: Option<Timestamp>,
}

/// Writes down what is read, and who had it.
struct AttemptAccountant {
    occupancy: Occupancy,
    accounts: Arc<Mutex<AttemptAccounts>>,
}

impl AttemptWatch {
    /// Watches the attempts below the folder `runs`. Returns also who is to be told of what is read. Until something is, it
    /// is known whether there is such a folder.
    pub(crate) fn below(runs: PathBuf) -> (Self, Box<dyn SnapshotSink>) {
        let mut occupancy = Occupancy::below(runs);
        let accounts = Arc::new(Mutex::new(AttemptAccounts {
            ledger: Ledger::new(WITNESSED_EVERY),
            attempts: BTreeMap::new(),
            devices: Vec::new(),
            silent: occupancy.look(&[]).err().map(|error| *error.diagnostic),
        }));
        let accountant = AttemptAccountant {
            occupancy,
            accounts: Arc::clone(&accounts),
        };
        (Self { accounts }, Box::new(accountant))
    }

    /// Returns what is known now.
    pub(crate) fn seen(&self) -> pages::Attempts {
        let accounts = lock(&self.accounts);
        let attempts = accounts.attempts.iter();
        let device_totals = accounts.devices.iter().filter_map(|(device, partition)| {
            Some(DeviceAccounting {
                device: device.clone(),
                partition: partition.clone(),
                device_totals: accounts
                    .ledger
                    .device_totals(partition.as_ref().unwrap_or(device))?,
            })
        });
        pages::Attempts {
            is_known: accounts.silent.is_none(),
            attempts: attempts
                .map(|(attempt, shown)| shown.seen(attempt, &accounts.ledger))
                .collect(),
            device_totals: device_totals.collect(),
        }
    }

    /// Returns why it is not known who has what.
    pub(crate) fn silent(&self) -> Option<Diagnostic> {
        lock(&self.accounts).silent.clone()
    }
}

impl SnapshotSink for AttemptAccountant {
    fn read(&mut self, inventory: &GpuInventory, snapshot: &GpuSnapshot) {
        let units: Vec<_> = inventory.units().cloned().collect();
        let looked = self.occupancy.look(&units);
        let mut accounts = lock(&self.accounts);
        match looked {
            Ok(occupants) => {
                accounts.silent = None;
                accounts.take_in(&occupants, snapshot);
            }
            Err(error) => accounts.silent = Some(*error.diagnostic),
        }
        accounts.ledger.observe(snapshot);
        accounts.forget(snapshot.at);
        accounts.devices = places(inventory);
    }

    fn reported(&mut self, event: &DeviceEvent) {
        lock(&self.accounts).ledger.report_event(event);
    }

    fn clock_set(&mut self, by: SignedDuration) {
        let mut accounts = lock(&self.accounts);
        accounts.ledger.clock_set(by);
        let gone = accounts
            .attempts
            .values_mut()
            .filter_map(|shown| shown.gone_at.as_mut());
        gone.for_each(|gone_at| *gone_at += by);
    }
}

impl AttemptAccounts {
    /// Takes in who had what until the snapshot was taken. Who came later is taken in with the next one.
    fn take_in(&mut self, occupants: &[Occupant], snapshot: &GpuSnapshot) {
        let had_it = |occupant: &&Occupant| {
            self.attempts.contains_key(&occupant.holder) || occupant.since <= snapshot.at
        };
        let (gone, here): (Vec<_>, Vec<_>) = occupants
            .iter()
            .filter(had_it)
            .partition(|occupant| is_gone(occupant));
        // First, so that nobody shares a device with whoever had it before.
        for gone in gone {
            let at = gone.ended_at.unwrap_or(snapshot.at).min(snapshot.at);
            if let Some(shown) = self.attempts.get_mut(&gone.holder) {
                shown.gone_at.get_or_insert(at);
                self.ledger.release(at, &holder(&gone.holder));
            }
        }
        let processes = processes(snapshot);
        for occupant in here {
            let shown = self.attempts.entry(occupant.holder.clone()).or_default();
            shown.spec.clone_from(&occupant.spec);
            let holder = holder(&occupant.holder);
            self.ledger.hold(occupant.since, &holder, &occupant.devices);
            let processes = processes.iter().copied();
            self.ledger
                .claim(&holder, processes.filter(|pid| occupant.has_started(*pid)));
        }
    }

    fn forget(&mut self, now: Timestamp) {
        let Self { attempts, ledger, .. } = self;
        attempts.retain(|attempt, shown| {
            let is_old = shown
                .gone_at
                .is_some_and(|gone_at| now.duration_since(gone_at) > SHOWN_FOR);
            if is_old {
                ledger.forget(&holder(attempt));
            }
            !is_old
        });
    }
}

impl Shown {
    fn seen(&self, attempt: &local::Holder, ledger: &Ledger) -> pages::Attempt {
        let (name, run) = (attempt.to_string(), attempt.attempt.run.to_string());
        let usage_record = ledger.usage_record(&holder(attempt));
        let Some(spec) = &self.spec else {
            return pages::Attempt {
                attempt: name,
                run,
                usage_record,
                ..pages::Attempt::default()
            };
        };
        let text = |value: Option<String>| value.unwrap_or_default();
        pages::Attempt {
            attempt: name,
            run,
            repository: spec.repository.to_string(),
            pull_request: text(spec.pull_request.map(|number| number.to_string())),
            blueprint: spec.blueprint.to_string(),
            profile: text(spec.profile.as_ref().map(ToString::to_string)),
            promised: Some(spec.granted.gpu.0.into()),
            usage_record,
        }
    }
}

fn is_gone(occupant: &Occupant) -> bool {
    occupant.ended_at.is_some() || occupant.devices.is_empty()
}

fn holder(attempt: &local::Holder) -> Holder {
    Holder(attempt.to_string())
}

fn processes(snapshot: &GpuSnapshot) -> Vec<u32> {
    let processes = snapshot
        .samples
        .iter()
        .filter_map(|sample| match &sample.processes {
            Reading::Value(processes) => Some(processes),
            Reading::Unsupported | Reading::Failed(_) => None,
        });
    processes.flatten().map(|process| process.pid).collect()
}

fn places(inventory: &GpuInventory) -> Vec<(DeviceUuid, Option<DeviceUuid>)> {
    let devices = inventory.devices.iter().flat_map(|device| {
        let parts = device.partitions.iter().map(|part| Some(part.uuid.clone()));
        std::iter::once(None)
            .chain(parts)
            .map(|part| (device.uuid.clone(), part))
    });
    devices.collect()
}

fn lock(accounts: &Mutex<AttemptAccounts>) -> MutexGuard<'_, AttemptAccounts> {
    accounts.lock().expect("nobody panics while they hold it")
}

#[cfg(test)]
mod tests;
