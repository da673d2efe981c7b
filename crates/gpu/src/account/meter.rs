//! One device, or one part of a device: who had it when, and what was read of it.
//!
//! Time is cut into stretches in which nothing changed hands. What is read is charged to the stretches that it is of, so
//! readings that come late, or reach over an edge, find their own.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use blueproof_core::gpu::{Figure, GpuProcess, Reading, Sample};

use super::{
    Holder,
    amounts::{Amounts, WHOLE, microjoules, millionths, picos},
    claims::Claims,
    device_account::{AccountEntry, DeviceAccount, Stretch, Whose, Window, spread},
    utilization::{BusyInterval, Moment, UtilizationSeries},
};

/// So many stretches wait for what is yet to be read of them: minutes, where a shared device is read each second.
const WAIT_AT_MOST: usize = 512;

/// No card draws more: the largest ones draw some 1.2 kW today.
const MOST_WATTS: u128 = 2000;

/// A device, or a part of one.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    pub(super) device_account: DeviceAccount,
    pub(super) xids: BTreeMap<u64, u32>,
    /// When it was first heard of, in microseconds.
    began: i64,
    /// Until when its time was cut into stretches.
    until: i64,
    /// When it was last read.
    read_at: Option<i64>,
    holders: Arc<[Holder]>,
    /// How often parts of it are held.
    parts_held: usize,
    stretches: VecDeque<Stretch>,
    utilization: UtilizationSeries,
    /// What its counter showed, in microjoules, and when.
    counter: Option<(i64, u128)>,
}

impl Meter {
    pub(super) fn new(at: i64) -> Self {
        Self {
            device_account: DeviceAccount::default(),
            xids: BTreeMap::new(),
            began: at,
            until: at,
            read_at: None,
            holders: Arc::new([]),
            parts_held: 0,
            stretches: VecDeque::new(),
            utilization: UtilizationSeries::default(),
            counter: None,
        }
    }

    /// Opens a window; returns whether there was none.
    pub(super) fn hold(&mut self, at: i64, holder: &Holder) -> bool {
        if self.holders.contains(holder) {
            return false;
        }
        let from = at.max(self.until);
        self.cut(from);
        self.holders = self.holders.iter().chain([holder]).cloned().collect();
        let line = self.device_account.lines.entry(holder.clone()).or_default();
        line.windows.push(Window { from, until: None });
        line.late_edges += u32::from(from > at);
        true
    }

    /// Closes a window; returns whether one was open.
    pub(super) fn release(&mut self, at: i64, holder: &Holder) -> bool {
        if !self.holders.contains(holder) {
            return false;
        }
        let until = at.max(self.until);
        self.cut(until);
        self.holders = self
            .holders
            .iter()
            .filter(|one| *one != holder)
            .cloned()
            .collect();
        if let Some(line) = self.device_account.lines.get_mut(holder) {
            line.late_edges += u32::from(until > at);
            if let Some(window) = line.windows.last_mut() {
                window.until = Some(until);
            }
        }
        true
    }

    /// Notes that somebody holds a part of it.
    pub(super) fn part_held(&mut self, at: i64, times: usize) {
        self.cut(at);
        self.parts_held += times;
    }

    /// Notes that somebody holds a part of it no more.
    pub(super) fn part_released(&mut self, at: i64) {
        self.cut(at);
        self.parts_held = self.parts_held.saturating_sub(1);
    }

    pub(super) fn n_holders(&self) -> usize {
        self.holders.len()
    }

    /// Ends the stretch in which it is.
    pub(super) fn cut(&mut self, at: i64) {
        if at <= self.until {
            return;
        }
        let whose = self.whose();
        let allocated = Amounts {
            allocated: picos(at - self.until),
            ..Amounts::default()
        };
        self.device_account.total += allocated;
        self.device_account.charge(&whose, allocated);
        if whose.is_shared() {
            self.device_account.note(&whose, |line| line.is_shared = true);
        }
        match self.stretches.back_mut() {
            Some(last) if last.whose == whose && !whose.is_shared() => last.until = at,
            Some(_) | None => self.stretches.push_back(Stretch::new(self.until, at, whose)),
        }
        self.until = at;
    }

    /// Takes in what was read of it.
    pub(super) fn observe(&mut self, sample: &Sample, moment: Moment, claims: &Claims) {
        if moment.ended < self.until {
            self.ignore();
            return;
        }
        // Edges that were told while it was read count as if they had come just before.
        let at = moment.at.max(self.until);
        let moment = Moment { at, ..moment };
        self.cut(at);
        self.weigh(&sample.processes, claims);
        self.utilization.read(sample, moment, self.read_at);
        while let Some(interval) = self.utilization.next(at) {
            self.charge_busy(interval);
        }
        let joules = sample.readings.value(Figure::Energy);
        if let Some(counted) = joules.and_then(microjoules) {
            self.charge_energy(at, counted);
        }
        self.charge_memory(sample, moment, claims);
        self.settle();
        self.read_at = Some(at);
    }

    /// Notes that something was read of it and could not be used, being older than what is known already.
    pub(super) fn ignore(&mut self) {
        let whose = self.whose();
        self.device_account.note(&whose, |line| line.ignored += 1);
    }

    /// Moves the times by so much.
    pub(super) fn move_by(&mut self, by: i64) {
        self.began += by;
        self.until += by;
        self.read_at = self.read_at.map(|at| at + by);
        self.counter = self.counter.map(|(at, counted)| (at + by, counted));
        self.utilization.move_by(by);
        for stretch in &mut self.stretches {
            stretch.from += by;
            stretch.until += by;
        }
        for line in self.device_account.lines.values_mut() {
            line.move_by(by);
        }
    }

    /// Counts an error, also for whoever held the device.
    pub(super) fn count(&mut self, xid: u64) {
        *self.xids.entry(xid).or_default() += 1;
    }

    /// Counts an error of the device for whoever held it, or this part of it.
    pub(super) fn count_for_holders(&mut self, at: i64, xid: u64) {
        for line in self
            .device_account
            .lines
            .values_mut()
            .filter(|line| line.had_at(at))
        {
            *line.xids.entry(xid).or_default() += 1;
        }
    }

    /// Returns the books as they would be if nothing more were read.
    pub(super) fn closed(&self) -> DeviceAccount {
        let mut device_account = self.device_account.clone();
        for stretch in &self.stretches {
            stretch.settle(&mut device_account);
        }
        device_account
    }

    /// Returns a holder's line as it would be if nothing more were read.
    pub(super) fn line(&self, holder: &Holder) -> Option<AccountEntry> {
        let mut device_account = DeviceAccount {
            lines: BTreeMap::from([(holder.clone(), self.device_account.lines.get(holder)?.clone())]),
            ..DeviceAccount::default()
        };
        for stretch in &self.stretches {
            stretch.settle(&mut device_account);
        }
        device_account.lines.remove(holder)
    }

    fn whose(&self) -> Whose {
        match (self.holders.is_empty(), self.parts_held) {
            (false, _) => Whose::Held(self.holders.clone()),
            (true, 0) => Whose::Nobody,
            (true, _) => Whose::Parts,
        }
    }

    /// Notes by what the time since the last snapshot is divided, where the device was shared.
    fn weigh(&mut self, processes: &Reading<Vec<GpuProcess>>, claims: &Claims) {
        let Reading::Value(processes) = processes else {
            return;
        };
        let read_at = self.read_at.unwrap_or(self.began);
        let new = self.stretches.iter_mut().rev();
        for stretch in new.take_while(|stretch| stretch.from >= read_at) {
            if stretch.whose.is_shared() {
                stretch.weights = weights(stretch.whose.holders(), processes, claims);
            }
        }
    }

    fn charge_busy(&mut self, interval: BusyInterval) {
        let Self {
            device_account,
            stretches,
            ..
        } = self;
        let (from, until) = (interval.charged.max(self.began), interval.until.min(self.until));
        let left = spread(stretches, from, until, |stretch, from, until| {
            stretch.charge_busy(device_account, until - from, interval.utilization);
            device_account.note(&stretch.whose, |line| {
                line.is_coarse |= interval.is_coarse;
                line.is_fine |= !interval.is_coarse;
            });
            if interval.until == until {
                note_peak(device_account, stretch, interval);
            }
        });
        let amounts = Amounts {
            busy: picos(left) / u128::from(WHOLE) * u128::from(interval.utilization),
            busy_seen: picos(left),
            ..Amounts::default()
        };
        device_account.total += amounts;
        device_account.undivided += amounts;
    }

    /// Charges with what the counter shows more than before. If it shows less, the driver was loaded anew: it counts from
    /// there, and what was drawn before that is not known. If it shows more than can have been drawn since, it did not begin
    /// anew, and nobody knows what was drawn.
    fn charge_energy(&mut self, at: i64, counted: u128) {
        let Some((since, before)) = self.counter.replace((at, counted)) else {
            return;
        };
        let is_reload = counted < before;
        let most = MOST_WATTS * u128::from((at - since).max(0).unsigned_abs());
        if is_reload && counted > most {
            if before - counted <= most {
                // It will be there again soon, and would count that twice.
                self.counter = Some((since, before));
            }
            return;
        }
        let energy = if is_reload { counted } else { counted - before };
        let seen = |micros| if is_reload { 0 } else { picos(micros) };
        let all = u128::from((at - since).max(1).unsigned_abs());
        let until = |micros: i64| energy * u128::from((micros - since).max(0).unsigned_abs()) / all;
        let Self {
            device_account,
            stretches,
            ..
        } = self;
        let mut charged = Amounts::default();
        spread(stretches, since, at, |stretch, from, to| {
            let (energy, seen) = (until(to) - until(from), seen(to - from));
            stretch.charge_energy(device_account, energy, seen);
            charged.energy += energy;
            charged.energy_seen += seen;
            if is_reload {
                device_account.note(&stretch.whose, |line| {
                    line.reloads += u32::from(line.reload_at.replace(at) != Some(at));
                });
            }
        });
        let total = Amounts {
            energy,
            energy_seen: seen(at - since),
            ..Amounts::default()
        };
        device_account.total += total;
        device_account.undivided.energy += total.energy - charged.energy;
        device_account.undivided.energy_seen += total.energy_seen - charged.energy_seen;
    }

    /// Notes how full its memory is. That is of whoever had it until now, not of who gets it now.
    fn charge_memory(&mut self, sample: &Sample, moment: Moment, claims: &Claims) {
        let used = sample.readings.value(Figure::MemoryUsed);
        let used = used
            .filter(|bytes| bytes.is_finite() && *bytes >= 0.0)
            .map(|bytes| bytes.round() as u64);
        let Self {
            device_account,
            stretches,
            ..
        } = self;
        let of = |holder: &Holder| memory(holder, &sample.processes, claims);
        if let Some(last) = stretches.back() {
            for holder in last.whose.holders() {
                let of_processes = of(holder);
                if let Some(line) = device_account.lines.get_mut(holder) {
                    line.peak_of_processes = line.peak_of_processes.max(of_processes);
                    line.peak_of_device = line.peak_of_device.max(used);
                }
            }
        }
        let Some(read_at) = self.read_at.filter(|_| used.is_some()) else {
            return;
        };
        spread(
            stretches,
            moment.stands_since(read_at),
            moment.at,
            |stretch, from, until| {
                let seen = Amounts {
                    memory_seen: picos(until - from),
                    ..Amounts::default()
                };
                device_account.total += seen;
                device_account.charge(&stretch.whose, seen);
            },
        );
    }

    /// Lets go of the stretches of which all is known, or that waited too long.
    fn settle(&mut self) {
        let counted = self.counter.map_or(self.until, |(at, _)| at);
        let known = self.utilization.settled().unwrap_or(self.until).min(counted);
        while let Some(first) = self.stretches.front() {
            if first.until > known && self.stretches.len() <= WAIT_AT_MOST {
                return;
            }
            first.settle(&mut self.device_account);
            self.stretches.pop_front();
        }
    }
}

/// Notes how busy whoever held the device for all of a reading's time made it.
fn note_peak(device_account: &mut DeviceAccount, stretch: &Stretch, interval: BusyInterval) {
    let Some(shares) = stretch.divide(u128::from(interval.utilization)) else {
        return;
    };
    for (holder, share) in stretch.whose.holders().iter().zip(shares) {
        let line = device_account.lines.get_mut(holder);
        if let Some(line) = line.filter(|line| line.spans(interval.from, interval.until)) {
            line.peak = line.peak.max(u64::try_from(share).ok());
        }
    }
}

/// Returns how much of the time processes of each holder ran, and at last those of others; `None` where that is not told.
fn weights(holders: &[Holder], processes: &[GpuProcess], claims: &Claims) -> Option<Vec<u128>> {
    let mut weights = vec![0; holders.len() + 1];
    for process in processes {
        let utilization = millionths(process.utilization.clone().value()?)?;
        let owner = claims.owner(process.pid);
        let place = holders.iter().position(|holder| Some(holder) == owner);
        weights[place.unwrap_or(holders.len())] += u128::from(utilization);
    }
    Some(weights)
}

/// Returns the memory of a holder's processes in bytes; `None` where none of them is known here, or one's is not told.
fn memory(holder: &Holder, processes: &Reading<Vec<GpuProcess>>, claims: &Claims) -> Option<u64> {
    let Reading::Value(processes) = processes else {
        return None;
    };
    let own = |process: &&GpuProcess| claims.owner(process.pid) == Some(holder);
    let mut own = processes.iter().filter(own).peekable();
    own.peek()?;
    own.map(|process| process.memory.clone().value().map(|bytes| bytes.0))
        .try_fold(0_u64, |sum, bytes| Some(sum.saturating_add(bytes?)))
}
