//! The checks that the driver's library can answer, but for those of PCI Express.
//!
//! A problem that is seen is told even where the rest could not be read; only "ok" needs all of it.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_core::{
    gpu::{DeviceUuid, Figure, GpuSnapshot, Reading, Sample},
    ports::ProbeErrorKind,
};

use super::{
    Answer, CheckId, CheckPolicy, Facts, Severity, Why,
    answer::words_of,
    facts::{DeviceFacts, value_of},
    pcie,
    xid::{XidClass, xid_class, xid_words},
};

/// Does a check of the machine.
pub(super) fn of_machine(
    check: CheckId,
    policy: &CheckPolicy,
    facts: &Facts<'_>,
    devices: &BTreeSet<DeviceUuid>,
) -> Answer {
    match check {
        CheckId::Driver => driver(facts),
        CheckId::DeviceCount => device_count(policy, facts, devices),
        CheckId::Presence
        | CheckId::RemappedRows
        | CheckId::RetiredPages
        | CheckId::Slowdown
        | CheckId::Ecc
        | CheckId::PcieWidth
        | CheckId::PcieGeneration
        | CheckId::PcieReplays
        | CheckId::Xids
        | CheckId::PcieBandwidth
        | CheckId::GpuMemory
        | CheckId::DcgmLevel3 => not_here(check),
    }
}

/// Does a check of a device.
pub(super) fn of_device(check: CheckId, policy: &CheckPolicy, facts: &DeviceFacts<'_>) -> Answer {
    match check {
        CheckId::Presence => presence(facts),
        CheckId::RemappedRows => remapped_rows(facts),
        CheckId::RetiredPages => retired_pages(policy, facts),
        CheckId::Slowdown => slowdown(policy, facts),
        CheckId::Ecc => ecc(facts),
        CheckId::PcieWidth => pcie::width(facts),
        CheckId::PcieGeneration => pcie::generation(policy, facts),
        CheckId::PcieReplays => pcie::replays(policy, facts),
        CheckId::Xids => xids(facts),
        CheckId::Driver
        | CheckId::DeviceCount
        | CheckId::PcieBandwidth
        | CheckId::GpuMemory
        | CheckId::DcgmLevel3 => not_here(check),
    }
}

fn not_here(check: CheckId) -> Answer {
    let needs = check.needs().unwrap_or("another scope").to_owned();
    Why::NotDoneHere { needs }.into()
}

fn driver(facts: &Facts<'_>) -> Answer {
    match facts.inventory {
        Ok(inventory) if inventory.unidentified > 0 => Answer::undecided(format!(
            "the driver counts {}, and {} never said who they are",
            inventory.counted(),
            inventory.unidentified
        )),
        Ok(inventory) => match &inventory.driver_version {
            Some(version) => Answer::ok(format!("driver {version} answers")),
            None => Answer::undecided("the driver does not tell its version"),
        },
        Err(ProbeErrorKind::VersionMismatch) => Answer::problem(
            Severity::Warn,
            "driver and library are of different versions: no program can use the devices",
        ),
        Err(ProbeErrorKind::DriverNotLoaded) => {
            Answer::problem(Severity::Warn, "the library is here, and no driver is loaded")
        }
        Err(
            blind @ (ProbeErrorKind::LibraryMissing
            | ProbeErrorKind::NoPermission
            | ProbeErrorKind::NoDevices
            | ProbeErrorKind::DriverError
            | ProbeErrorKind::NotAnswering
            | ProbeErrorKind::Released),
        ) => Why::from(blind).into(),
    }
}

fn device_count(policy: &CheckPolicy, facts: &Facts<'_>, devices: &BTreeSet<DeviceUuid>) -> Answer {
    let count = match facts.inventory {
        Ok(inventory) => {
            let listed = inventory.devices.iter().map(|device| &device.uuid);
            let counted = listed.filter(|uuid| devices.contains(*uuid) && !is_lost(facts, uuid));
            counted.count()
        }
        Err(ProbeErrorKind::NoDevices) => 0,
        Err(
            blind @ (ProbeErrorKind::LibraryMissing
            | ProbeErrorKind::DriverNotLoaded
            | ProbeErrorKind::NoPermission
            | ProbeErrorKind::VersionMismatch
            | ProbeErrorKind::DriverError
            | ProbeErrorKind::NotAnswering
            | ProbeErrorKind::Released),
        ) => return Why::from(blind).into(),
    };
    let silent = facts
        .inventory
        .map_or(0, |inventory| inventory.unidentified as usize)
        + hanging(facts);
    if silent > 0 {
        return Answer::undecided(format!("{silent} do not answer"));
    }
    let Some(expected) = policy.expected_devices else {
        return Answer::undecided(format!(
            "{count} answer, and nobody said how many there should be"
        ));
    };
    match count.cmp(&usize::try_from(expected).unwrap_or(usize::MAX)) {
        std::cmp::Ordering::Equal => Answer::ok(format!("{count} of {expected} answer")),
        std::cmp::Ordering::Less => {
            Answer::problem(Severity::Warn, format!("only {count} of {expected} answer"))
        }
        std::cmp::Ordering::Greater => {
            Answer::undecided(format!("{count} answer where {expected} should be"))
        }
    }
}

fn is_lost(facts: &Facts<'_>, device: &DeviceUuid) -> bool {
    let last = facts.snapshots.last();
    last.is_some_and(|snapshot| snapshot.of(device).is_none_or(Sample::is_lost))
}

/// Returns how many devices do not answer.
fn hanging(facts: &Facts<'_>) -> usize {
    let last = facts.snapshots.last();
    let wholes = last.into_iter().flat_map(GpuSnapshot::wholes);
    wholes.filter(|sample| sample.hangs()).count()
}

fn presence(facts: &DeviceFacts<'_>) -> Answer {
    let Some(last) = facts.samples.last() else {
        return Answer::undecided("no snapshot was taken");
    };
    let Some(last) = last else {
        return Answer::problem(Severity::Evict, "it is gone: the last snapshot has nothing of it");
    };
    if last.is_lost() {
        return Answer::problem(
            Severity::Evict,
            "it is lost: the driver does not reach it any more",
        );
    }
    let gone = |sample: &&Option<&Sample>| sample.is_none_or(Sample::is_lost);
    let away = facts.samples.iter().skip_while(gone).filter(gone).count();
    if away > 0 {
        let all = facts.samples.len();
        return Answer::problem(
            Severity::Evict,
            format!("it was lost in {away} of {all} snapshots, and came back"),
        );
    }
    if last.hangs() {
        return Answer::undecided("it does not answer");
    }
    let told = last
        .readings
        .iter()
        .filter(|(_, reading)| matches!(reading, Reading::Value(_)));
    match told.count() {
        0 => Answer::undecided("the driver tells no figure of it"),
        count => Answer::ok(format!("it tells {count} figures")),
    }
}

fn remapped_rows(facts: &DeviceFacts<'_>) -> Answer {
    let failure = facts.flag(Figure::RowRemapFailure);
    let pending = facts.flag(Figure::RowRemapPending);
    let replaced = || {
        let count = |figure| {
            facts
                .latest(figure)
                .map_or("?".to_owned(), |count| count.to_string())
        };
        let uncorrectable = count(Figure::UncorrectableRemappedRows);
        let correctable = count(Figure::CorrectableRemappedRows);
        format!("replaced so far: {uncorrectable} after uncorrectable errors, {correctable} after others")
    };
    match (failure, pending) {
        (Ok(true), _) => Answer::problem(
            Severity::Evict,
            format!("a row could not be replaced; {}", replaced()),
        ),
        (_, Ok(true)) => Answer::problem(
            Severity::Warn,
            format!("rows wait for a reset to be replaced; {}", replaced()),
        ),
        (Ok(false), Ok(false)) => Answer::ok(format!("no row waits; {}", replaced())),
        (failure, pending) => first_why([failure.err(), pending.err()]),
    }
}

fn retired_pages(policy: &CheckPolicy, facts: &DeviceFacts<'_>) -> Answer {
    let most = f64::from(policy.retired_pages_at_most);
    let pending = facts.flag(Figure::RetiredPagesPending);
    let correctable = facts.latest(Figure::RetiredPagesCorrectable);
    let uncorrectable = facts.latest(Figure::RetiredPagesUncorrectable);
    let known = correctable.as_ref().unwrap_or(&0.0) + uncorrectable.as_ref().unwrap_or(&0.0);
    if known > most {
        let evidence = format!("{known} pages are given up, and {most} is the most that is well");
        return Answer::problem(Severity::Warn, evidence);
    }
    match (pending, correctable, uncorrectable) {
        (Ok(true), _, _) => Answer::problem(
            Severity::Warn,
            format!("pages wait for a reset to be given up; {known} are so far"),
        ),
        (Ok(false), Ok(_), Ok(_)) => Answer::ok(format!("no page waits; {known} are given up")),
        (pending, correctable, uncorrectable) => {
            first_why([pending.err(), correctable.err(), uncorrectable.err()])
        }
    }
}

/// Returns why a check does not know. That a card does not tell is said only where nothing else stands in the way: it
/// excuses a check, and what failed does not.
fn first_why<const N: usize>(whys: [Option<Why>; N]) -> Answer {
    let whys = whys.into_iter().flatten();
    let excuse_last = whys.min_by_key(|why| matches!(why, Why::NotTold { .. }));
    excuse_last.map_or_else(|| Answer::undecided("it was not read"), Answer::from)
}

/// What hardware may slow a device down for. The first is said together with each of the others.
const SLOWDOWNS: [Figure; 3] = [
    Figure::HardwareSlowdown,
    Figure::HardwareThermalSlowdown,
    Figure::HardwarePowerBrake,
];

fn slowdown(policy: &CheckPolicy, facts: &DeviceFacts<'_>) -> Answer {
    let problem_from = policy.slowdown_problem_from.max(2);
    let window = policy.slowdown_readings.max(problem_from);
    let (mut readings, mut slowed, mut unread) = (0, 0, None);
    let mut reasons: BTreeMap<Figure, usize> = BTreeMap::new();
    for sample in facts.samples.iter().rev().take(window) {
        let mut is_slowed = false;
        for figure in SLOWDOWNS {
            match sample.map_or(Err(Why::NotRead { figure }), |sample| value_of(sample, figure)) {
                Ok(0.0) => {}
                Ok(_) => {
                    is_slowed = true;
                    *reasons.entry(figure).or_default() += 1;
                }
                // The latest says best why nothing is known now.
                Err(why) => unread = unread.or(Some(why)),
            }
        }
        readings += 1;
        slowed += usize::from(is_slowed);
    }
    let reasons = reasons
        .iter()
        .map(|(figure, count)| format!("{} in {count}", words_of(*figure)));
    let evidence = || {
        format!(
            "slowed down in {slowed} of {readings} readings ({})",
            Vec::from_iter(reasons).join(", ")
        )
    };
    if slowed >= problem_from {
        return Answer::problem(Severity::Warn, evidence());
    }
    if let Some(why) = unread {
        return why.into();
    }
    match (readings, slowed) {
        (0, _) => Answer::undecided("no snapshot was taken"),
        (_, 0) => Answer::ok(format!("not slowed down in {readings} readings")),
        // Whatever the readings that are missing had said, it would not have been enough.
        _ if slowed + (window - readings) < problem_from => Answer::ok(evidence()),
        _ => Answer::undecided(format!("{}; {window} are needed to tell", evidence())),
    }
}

fn ecc(facts: &DeviceFacts<'_>) -> Answer {
    match facts.latest(Figure::UncorrectedErrors) {
        Ok(0.0) => Answer::ok("no uncorrected error of memory since the driver was loaded"),
        Ok(count) => Answer::problem(
            Severity::Warn,
            format!("{count} uncorrected errors of memory since the driver was loaded"),
        ),
        Err(why) => why.into(),
    }
}

fn xids(facts: &DeviceFacts<'_>) -> Answer {
    let Some(events) = &facts.events else {
        return Answer::undecided("nobody listened to its driver, or not all the time of late");
    };
    let of = |class: XidClass| -> Vec<u64> {
        let numbers = events.iter().map(|event| event.xid);
        numbers.filter(|xid| xid_class(*xid) == class).collect()
    };
    for (class, severity) in [
        (XidClass::Reset, Severity::Evict),
        (XidClass::Contained, Severity::Warn),
    ] {
        let found = of(class);
        if !found.is_empty() {
            return Answer::problem(severity, told(&found));
        }
    }
    let unknown = of(XidClass::Unknown);
    if !unknown.is_empty() {
        return Answer::undecided(told(&unknown));
    }
    match facts.samples.last() {
        Some(Some(last)) if last.is_lost() => return Answer::undecided("what is gone reports nothing"),
        Some(Some(last)) if last.silence().is_some() => return Answer::undecided("it does not answer"),
        Some(Some(_)) => {}
        Some(None) => return Answer::undecided("what is gone reports nothing"),
        None => return Answer::undecided("no snapshot was taken"),
    }
    let harmless = [of(XidClass::Application), of(XidClass::Informational)].concat();
    if harmless.is_empty() {
        return Answer::ok("its driver reported nothing");
    }
    Answer::ok(format!("nothing that is its fault: {}", told(&harmless)))
}

/// Returns what was reported, each number once.
fn told(xids: &[u64]) -> String {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for xid in xids {
        *counts.entry(*xid).or_default() += 1;
    }
    let each = counts.iter().map(|(xid, count)| {
        let times = if *count > 1 {
            format!(" ({count} times)")
        } else {
            String::new()
        };
        format!("XID {xid}{times}: {}", xid_words(*xid))
    });
    Vec::from_iter(each).join("; ")
}
