//! What attempts that go on make of their devices.

use blueproof_core::metrics::{Exposition, Family};

use super::{
    ATTEMPT_ALLOCATED, ATTEMPT_BUSY, ATTEMPT_ENERGY, ATTEMPT_GPUS, ATTEMPT_INFO, ATTEMPT_MEMORY,
    ATTEMPT_PEAK, ATTEMPT_SEEN, ATTEMPT_XIDS, ATTEMPTS_UP, CHARGED, CHARGED_BUSY, CHARGED_ENERGY, count,
    each, one,
};
use crate::{
    account::{Amounts, DeviceBill},
    pages::{Attempt, Attempts, DeviceBalance, Seen},
};

/// What is told of an attempt's use of a device.
type Use = (&'static Family, fn(&DeviceBill) -> Option<f64>);

const USES: [Use; 6] = [
    (&ATTEMPT_ALLOCATED, |bill| Some(bill.amounts.allocated_seconds())),
    (&ATTEMPT_SEEN, |bill| Some(bill.amounts.seen_seconds())),
    (&ATTEMPT_BUSY, |bill| bill.amounts.busy_seconds()),
    (&ATTEMPT_ENERGY, |bill| bill.amounts.joules()),
    (&ATTEMPT_PEAK, |bill| bill.peak_utilization),
    (&ATTEMPT_MEMORY, |bill| {
        bill.peak_memory.map(|memory| count(memory.bytes.0))
    }),
];

/// What is told of how a device's time was divided.
type Division = (&'static Family, fn(&Amounts) -> Option<f64>);

const DIVISIONS: [Division; 3] = [
    (&CHARGED, |amounts| Some(amounts.allocated_seconds())),
    (&CHARGED_BUSY, Amounts::busy_seconds),
    (&CHARGED_ENERGY, Amounts::joules),
];

/// Writes who is charged with what, where attempts are looked for. Of devices that cannot be read nothing is told.
pub(super) fn attempts(seen: &Seen, page: &mut Exposition) {
    let Some(of) = &seen.attempts else { return };
    one(page, &ATTEMPTS_UP, f64::from(u8::from(of.is_known)));
    if seen.devices.is_none() {
        return;
    }
    infos(of, page);
    for (family, value) in USES {
        let bills = of.attempts.iter().flat_map(|attempt| {
            let devices = attempt.bill.iter().flat_map(|bill| &bill.devices);
            devices.filter_map(move |bill| Some((labels(attempt, bill), value(bill)?)))
        });
        each(page, family, bills);
    }
    errors(of, page);
    for (family, value) in DIVISIONS {
        let parts = of.balances.iter().flat_map(parts);
        let parts = parts.filter_map(|(labels, amounts)| Some((labels, value(amounts)?)));
        each(page, family, parts);
    }
}

fn infos(of: &Attempts, page: &mut Exposition) {
    let infos = of.attempts.iter().map(|attempt| {
        let values = [
            &attempt.attempt,
            &attempt.run,
            &attempt.repository,
            &attempt.pull_request,
            &attempt.blueprint,
            &attempt.profile,
        ];
        let values = values.map(String::as_str);
        (
            ATTEMPT_INFO
                .labels
                .iter()
                .copied()
                .zip(values)
                .collect::<Vec<_>>(),
            1.0,
        )
    });
    each(page, &ATTEMPT_INFO, infos);
    let gpus = of.attempts.iter().flat_map(|attempt| {
        let devices = attempt.bill.as_ref().map(|bill| bill.devices.len() as u64);
        let kinds = [("promised", attempt.promised), ("given", devices)];
        let name = attempt.attempt.as_str();
        kinds
            .into_iter()
            .filter_map(move |(kind, number)| Some((vec![("attempt", name), ("kind", kind)], count(number?))))
    });
    each(page, &ATTEMPT_GPUS, gpus);
}

fn errors(of: &Attempts, page: &mut Exposition) {
    let bills = of.attempts.iter().flat_map(|attempt| {
        let devices = attempt.bill.iter().flat_map(|bill| &bill.devices);
        devices.map(move |bill| (attempt, bill))
    });
    let errors = bills.flat_map(|(attempt, bill)| {
        let xids = bill.xids.iter();
        xids.map(move |(xid, times)| (attempt, bill, xid.to_string(), *times))
    });
    let errors: Vec<_> = errors.collect();
    let samples = errors.iter().map(|(attempt, bill, xid, times)| {
        let mut labels = labels(attempt, bill);
        labels.push(("xid", xid.as_str()));
        (labels, f64::from(*times))
    });
    each(page, &ATTEMPT_XIDS, samples);
}

fn labels<'a>(attempt: &'a Attempt, bill: &'a DeviceBill) -> Vec<(&'static str, &'a str)> {
    let (uuid, partition) = match &bill.part_of {
        Some(whole) => (whole, bill.device.0.as_str()),
        None => (&bill.device, ""),
    };
    vec![
        ("attempt", &attempt.attempt),
        ("uuid", &uuid.0),
        ("partition", partition),
    ]
}

fn parts(of: &DeviceBalance) -> impl Iterator<Item = (Vec<(&'static str, &str)>, &Amounts)> {
    let balance = &of.balance;
    let parts = [
        ("attempts", &balance.held),
        ("nobody", &balance.idle),
        ("parts", &balance.parts),
        ("undivided", &balance.undivided),
    ];
    parts.into_iter().map(|(to, amounts)| {
        let partition = of.partition.as_ref().map_or("", |part| part.0.as_str());
        (
            vec![
                ("uuid", of.device.0.as_str()),
                ("partition", partition),
                ("to", to),
            ],
            amounts,
        )
    })
}
