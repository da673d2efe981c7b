//! What a device did, by who is charged with it.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::{
    Holder,
    amounts::{Amounts, WHOLE, divided, picos, share},
};

/// Who has a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whose {
    /// Nobody.
    Nobody,
    /// Whoever holds parts of it.
    Parts,
    /// These, in the order in which they came.
    Held(Arc<[Holder]>),
}

/// A time in microseconds, from an edge to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: i64,
    pub(super) until: Option<i64>,
}

/// What a holder is charged with on one device.
#[derive(Debug, Clone, Default)]
pub(super) struct AccountEntry {
    pub(super) windows: Vec<Window>,
    pub(super) amounts: Amounts,
    /// What the device drew meanwhile that none of those who shared it is charged with, in microjoules.
    pub(super) unclaimed: u128,
    pub(super) is_shared: bool,
    pub(super) is_coarse: bool,
    pub(super) is_fine: bool,
    pub(super) peak: Option<u64>,
    pub(super) peak_of_processes: Option<u64>,
    pub(super) peak_of_device: Option<u64>,
    pub(super) xids: BTreeMap<u64, u32>,
    pub(super) reloads: u32,
    /// When the last reload was noticed: a stretch each side of an edge is no second one.
    pub(super) reload_at: Option<i64>,
    pub(super) ignored: u32,
    pub(super) late_edges: u32,
}

/// A device's books. Lines of holders that were forgotten are gone, their amounts are in `held` all the same.
#[derive(Debug, Clone, Default)]
pub(super) struct DeviceAccount {
    /// What the device did, as it was read and before anything is divided.
    pub(super) total: Amounts,
    pub(super) held: Amounts,
    pub(super) idle: Amounts,
    pub(super) parts: Amounts,
    pub(super) undivided: Amounts,
    pub(super) lines: BTreeMap<Holder, AccountEntry>,
}

/// A time in which nothing changed hands, in microseconds.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    pub(super) from: i64,
    pub(super) until: i64,
    pub(super) whose: Whose,
    /// By which the busy time of a shared device is divided: of its holders, and at last of all others.
    pub(super) weights: Option<Vec<u128>>,
    /// How busy each of those who share it was.
    active: Vec<u128>,
    /// Of how much time it is known how busy each was.
    known: u128,
    /// What a shared device drew: it is divided once all is known of how busy it was.
    energy: u128,
    energy_seen: u128,
}

impl Whose {
    pub(super) fn holders(&self) -> &[Holder] {
        match self {
            Self::Nobody | Self::Parts => &[],
            Self::Held(holders) => holders,
        }
    }

    pub(super) fn is_shared(&self) -> bool {
        self.holders().len() > 1
    }
}

impl AccountEntry {
    /// Returns whether it held the device all the while.
    pub(super) fn spans(&self, from: i64, until: i64) -> bool {
        let spans =
            |window: &Window| window.from <= from && window.until.is_none_or(|released| until <= released);
        self.windows.iter().any(spans)
    }

    /// Returns whether it held the device at a moment. What is met with at an edge is of what went before.
    pub(super) fn had_at(&self, at: i64) -> bool {
        let had = |window: &Window| window.from < at && window.until.is_none_or(|released| at <= released);
        self.windows.iter().any(had)
    }

    /// Moves the times by so much.
    pub(super) fn move_by(&mut self, by: i64) {
        self.reload_at = self.reload_at.map(|at| at + by);
        for window in &mut self.windows {
            window.from += by;
            window.until = window.until.map(|until| until + by);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.windows.last().is_some_and(|window| window.until.is_none())
    }
}

impl DeviceAccount {
    /// Charges whoever had the device, in equal shares.
    pub(super) fn charge(&mut self, whose: &Whose, amounts: Amounts) {
        match whose {
            Whose::Nobody => self.idle += amounts,
            Whose::Parts => self.parts += amounts,
            Whose::Held(holders) => {
                for (place, holder) in holders.iter().enumerate() {
                    self.charge_holder(holder, amounts.share(place, holders.len()));
                }
            }
        }
    }

    fn charge_holder(&mut self, holder: &Holder, amounts: Amounts) {
        self.held += amounts;
        if let Some(line) = self.lines.get_mut(holder) {
            line.amounts += amounts;
        }
    }

    /// Changes the line of each who had the device.
    pub(super) fn note(&mut self, whose: &Whose, mut change: impl FnMut(&mut AccountEntry)) {
        for holder in whose.holders() {
            if let Some(line) = self.lines.get_mut(holder) {
                change(line);
            }
        }
    }
}

impl Stretch {
    pub(super) fn new(from: i64, until: i64, whose: Whose) -> Self {
        Self {
            from,
            until,
            active: vec![0; whose.holders().len()],
            whose,
            weights: None,
            known: 0,
            energy: 0,
            energy_seen: 0,
        }
    }

    /// Charges with how busy the device was in a part of this, in millionths of so many microseconds.
    pub(super) fn charge_busy(&mut self, device_account: &mut DeviceAccount, micros: i64, utilization: u64) {
        let amounts = Amounts {
            busy: picos(micros) / u128::from(WHOLE) * u128::from(utilization),
            busy_seen: picos(micros),
            ..Amounts::default()
        };
        device_account.total += amounts;
        if !self.whose.is_shared() {
            device_account.charge(&self.whose, amounts);
            return;
        }
        let Some(shares) = self.divide(amounts.busy) else {
            device_account.undivided += amounts;
            return;
        };
        self.known += amounts.busy_seen;
        let among = self.active.len();
        for (place, holder) in self.whose.holders().iter().enumerate() {
            let of_holder = Amounts {
                busy: shares[place],
                busy_seen: share(amounts.busy_seen, place, among),
                ..Amounts::default()
            };
            self.active[place] += shares[place];
            device_account.charge_holder(holder, of_holder);
        }
        device_account.undivided.busy += shares[among];
    }

    /// Returns what each of those who share the device has of something, and at last what others have.
    pub(super) fn divide(&self, whole: u128) -> Option<Vec<u128>> {
        let among = self.active.len();
        if among == 1 {
            return Some(vec![whole, 0]);
        }
        match &self.weights {
            Some(weights) => divided(whole, weights),
            None => (whole == 0).then(|| vec![0; among + 1]),
        }
    }

    /// Charges with what the device drew in a part of this.
    pub(super) fn charge_energy(&mut self, device_account: &mut DeviceAccount, energy: u128, seen: u128) {
        if self.whose.is_shared() {
            self.energy += energy;
            self.energy_seen += seen;
            return;
        }
        let amounts = Amounts {
            energy,
            energy_seen: seen,
            ..Amounts::default()
        };
        device_account.charge(&self.whose, amounts);
    }

    /// Charges those who share the device with what it drew: each for as long as it was busy with theirs. What it drew
    /// while it rested, or was not seen, is charged to none of them.
    pub(super) fn settle(&self, device_account: &mut DeviceAccount) {
        if !self.whose.is_shared() {
            return;
        }
        // In microseconds, so that the products stay within what can be counted.
        let all = picos(self.until - self.from) / u128::from(WHOLE);
        let mut weights: Vec<_> = self
            .active
            .iter()
            .map(|active| active / u128::from(WHOLE))
            .collect();
        weights.push(all - weights.iter().sum::<u128>());
        let Some(shares) = divided(self.energy, &weights) else {
            return;
        };
        let among = self.active.len();
        let seen = self.energy_seen.min(self.known);
        let unclaimed = shares[among];
        for (place, holder) in self.whose.holders().iter().enumerate() {
            let of_holder = Amounts {
                energy: shares[place],
                energy_seen: share(seen, place, among),
                ..Amounts::default()
            };
            device_account.charge_holder(holder, of_holder);
        }
        device_account.note(&self.whose, |line| line.unclaimed += unclaimed);
        device_account.undivided.energy += unclaimed;
        device_account.undivided.energy_seen += self.energy_seen - seen;
    }
}

/// Calls for each stretch that shares time with the given one, with that time. Returns the microseconds that none has.
pub(super) fn spread(
    stretches: &mut VecDeque<Stretch>,
    from: i64,
    until: i64,
    mut each: impl FnMut(&mut Stretch, i64, i64),
) -> i64 {
    let first = stretches.partition_point(|stretch| stretch.until <= from);
    let mut left = (until - from).max(0);
    for stretch in stretches.range_mut(first..) {
        let (start, end) = (stretch.from.max(from), stretch.until.min(until));
        if end <= start {
            break;
        }
        left -= end - start;
        each(stretch, start, end);
    }
    left
}
