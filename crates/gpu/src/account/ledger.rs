//! The ledger: what it is told, and what it answers.

use std::collections::BTreeMap;

use blueproof_core::gpu::{DeviceEvent, DeviceUuid, GpuSnapshot};
use jiff::{SignedDuration, Timestamp};

use super::{
    Holder,
    claims::Claims,
    meter::Meter,
    usage_record::{DeviceTotals, DeviceUsage, UsageRecord},
    utilization::{Moment, micros},
};

/// Who had which device, and what came of it.
///
/// Tell it everything in the order in which it happened. At both ends of a window take a snapshot first, [`observe`] it,
/// then tell the edge with the same time: what was drawn and used until then is whoever's had the device until then.
/// Whatever is repeated, late or unknown does no harm. What is kept does not grow with time, only with holders that were
/// not forgotten and devices.
///
/// [`observe`]: Self::observe
#[derive(Debug, Clone)]
pub struct Ledger {
    read_every: i64,
    meters: BTreeMap<DeviceUuid, Meter>,
    /// The device of each part.
    wholes: BTreeMap<DeviceUuid, DeviceUuid>,
    claims: Claims,
    read_at: Option<i64>,
}

impl Ledger {
    /// Returns one that knows of nothing. A value that is read of a moment stands for the time since the snapshot before;
    /// if that is more than twice `read_every`, only for `read_every`.
    pub fn new(read_every: SignedDuration) -> Self {
        Self {
            read_every: i64::try_from(read_every.as_micros()).unwrap_or(i64::MAX / 4),
            meters: BTreeMap::new(),
            wholes: BTreeMap::new(),
            claims: Claims::default(),
            read_at: None,
        }
    }

    /// Gives devices, or parts, to a holder. Those that it holds already it holds on; those of others it shares.
    pub fn hold(&mut self, at: Timestamp, holder: &Holder, devices: &[DeviceUuid]) {
        let at = micros(at);
        for device in devices {
            let meter = self.meter(device, at);
            if meter.hold(at, holder)
                && let Some(whole) = self.whole_of(device)
            {
                whole.part_held(at, 1);
            }
        }
    }

    /// Takes all its devices from a holder.
    pub fn release(&mut self, at: Timestamp, holder: &Holder) {
        let at = micros(at);
        let mut parts = Vec::new();
        for (device, meter) in &mut self.meters {
            if meter.release(at, holder) {
                parts.extend(self.wholes.get(device));
            }
        }
        for whole in parts {
            if let Some(whole) = self.meters.get_mut(whole) {
                whole.part_released(at);
            }
        }
        self.claims.release(at, holder);
    }

    /// Notes which processes are a holder's, all of them, by the numbers that the driver tells. They are needed where
    /// devices are shared, and to tell a holder's memory from others'.
    pub fn claim(&mut self, holder: &Holder, pids: impl IntoIterator<Item = u32>) {
        self.claims.replace(holder, pids);
    }

    /// Takes in what was read. A snapshot that is older than the last is left out, and counted on the bills of those who
    /// hold its devices; the same one twice counts once.
    pub fn observe(&mut self, snapshot: &GpuSnapshot) {
        let at = micros(snapshot.at);
        match self.read_at {
            Some(read_at) if at == read_at => return,
            Some(read_at) if at < read_at => return self.ignore(snapshot),
            Some(_) | None => self.read_at = Some(at),
        }
        let took = i64::try_from(snapshot.took.as_micros()).unwrap_or(0).max(0);
        let moment = Moment {
            at,
            ended: at.saturating_add(took),
            every: self.read_every,
        };
        self.learn_parts(snapshot, at);
        for sample in &snapshot.samples {
            let device = sample.partition.as_ref().unwrap_or(&sample.device);
            let meter = meter(&mut self.meters, device, at);
            meter.observe(sample, moment, &self.claims);
        }
        // Time passes, too, for devices of which nothing could be read.
        for meter in self.meters.values_mut() {
            meter.cut(at);
        }
        self.claims.drop_released(at);
    }

    /// Takes in that the clock was set by so much, forwards or back: what is told from now on is of the clock as it is.
    ///
    /// All that is known moves along, so that what took an hour has still taken an hour.
    pub fn clock_set(&mut self, by: SignedDuration) {
        let by = i64::try_from(by.as_micros()).unwrap_or(0);
        self.read_at = self.read_at.map(|at| at + by);
        self.claims.move_by(by);
        for meter in self.meters.values_mut() {
            meter.move_by(by);
        }
    }

    /// Counts an error for whoever held the device, or a part of it, when it was met with. At an edge it is counted for
    /// whoever releases the device.
    pub fn report_event(&mut self, event: &DeviceEvent) {
        let at = micros(event.at);
        self.meter(&event.device, at).count(event.xid);
        for (device, meter) in &mut self.meters {
            if *device == event.device || self.wholes.get(device) == Some(&event.device) {
                meter.count_for_holders(at, event.xid);
            }
        }
    }

    /// Returns what a holder is charged with until now; `None` if it never held anything, or was forgotten.
    pub fn usage_record(&self, holder: &Holder) -> Option<UsageRecord> {
        let mut windows = Vec::new();
        let mut devices = Vec::new();
        for (device, meter) in &self.meters {
            if let Some(line) = meter.line(holder) {
                windows.extend_from_slice(&line.windows);
                let part_of = self.wholes.get(device).cloned();
                devices.push(DeviceUsage::new(device.clone(), part_of, &line));
            }
        }
        let from = windows.iter().map(|window| window.from).min()?;
        let until = windows.iter().map(|window| window.until);
        let until: Option<Vec<_>> = until.collect();
        Some(UsageRecord {
            holder: holder.clone(),
            from: timestamp(from),
            until: until.and_then(|until| until.into_iter().max()).map(timestamp),
            devices,
        })
    }

    /// Returns how a device's time and energy were divided until now; `None` if it was never heard of.
    pub fn device_totals(&self, device: &DeviceUuid) -> Option<DeviceTotals> {
        let meter = self.meters.get(device)?;
        Some(DeviceTotals::new(&meter.closed(), meter.xids.clone()))
    }

    /// Returns the devices, and parts, that were heard of.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceUuid> {
        self.meters.keys()
    }

    /// Forgets a holder that has released its devices; balances still contain what it was charged with. Nothing happens
    /// while it holds some.
    pub fn forget(&mut self, holder: &Holder) {
        for meter in self.meters.values_mut() {
            let lines = &mut meter.device_account.lines;
            if lines.get(holder).is_some_and(|line| !line.is_open()) {
                lines.remove(holder);
            }
        }
    }

    fn meter(&mut self, device: &DeviceUuid, at: i64) -> &mut Meter {
        meter(&mut self.meters, device, at)
    }

    fn whole_of(&mut self, part: &DeviceUuid) -> Option<&mut Meter> {
        self.meters.get_mut(self.wholes.get(part)?)
    }

    fn ignore(&mut self, snapshot: &GpuSnapshot) {
        for sample in &snapshot.samples {
            let device = sample.partition.as_ref().unwrap_or(&sample.device);
            if let Some(meter) = self.meters.get_mut(device) {
                meter.ignore();
            }
        }
    }

    /// Notes which parts are whose. One may be held before it was first read.
    fn learn_parts(&mut self, snapshot: &GpuSnapshot, at: i64) {
        for sample in &snapshot.samples {
            let Some(part) = &sample.partition else {
                continue;
            };
            if self.wholes.contains_key(part) {
                continue;
            }
            self.wholes.insert(part.clone(), sample.device.clone());
            let held = self.meters.get(part).map_or(0, Meter::n_holders);
            self.meter(&sample.device, at).part_held(at, held);
        }
    }
}

fn meter<'a>(meters: &'a mut BTreeMap<DeviceUuid, Meter>, device: &DeviceUuid, at: i64) -> &'a mut Meter {
    // Asked first, since a name is copied only to be kept.
    if !meters.contains_key(device) {
        meters.insert(device.clone(), Meter::new(at));
    }
    meters.get_mut(device).expect("it was just put there")
}

fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).expect("it was a timestamp when it was told")
}
