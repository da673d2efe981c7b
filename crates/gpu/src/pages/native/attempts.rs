//! What attempts that go on make of their devices.

use blueproof_core::metrics::{Exposition, Family};

use super::{
    ATTEMPT_ALLOCATED, ATTEMPT_BUSY, ATTEMPT_ENERGY, ATTEMPT_GPUS, ATTEMPT_INFO, ATTEMPT_MEMORY,
    ATTEMPT_PEAK, ATTEMPT_SEEN, ATTEMPT_XIDS, ATTEMPTS_UP, CHARGED, CHARGED_BUSY, CHARGED_ENERGY, count,
    each, one,
};
use crate::{
    account::{Amounts, DeviceUsage},
    pages::{Attempt, Attempts, DeviceAccounting, PageInput},
};

/// What is told of an attempt's use of a device.
type Use = (&'static Family, fn(&DeviceUsage) -> Option<f64>);

const USES: [Use; 6] = [
    (&ATTEMPT_ALLOCATED, |usage_record| {
        Some(usage_record.amounts.allocated_seconds())
    }),
    (&ATTEMPT_SEEN, |usage_record| {
        Some(usage_record.amounts.seen_seconds())
    }),
    (&ATTEMPT_BUSY, |usage_record| usage_record.amounts.busy_seconds()),
    (&ATTEMPT_ENERGY, |usage_record| usage_record.amounts.joules()),
    (&ATTEMPT_PEAK, |usage_record| usage_record.peak_utilization),
    (&ATTEMPT_MEMORY, |usage_record| {
        usage_record.peak_memory.map(|memory| count(memory.bytes.0))
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
pub(super) fn attempts(seen: &PageInput, page: &mut Exposition) {
    let Some(of) = &seen.attempts else { return };
    one(page, &ATTEMPTS_UP, f64::from(u8::from(of.is_known)));
    if seen.devices.is_none() {
        return;
    }
    infos(of, page);
    for (family, value) in USES {
        let usage_records = of.attempts.iter().flat_map(|attempt| {
            let devices = attempt
                .usage_record
                .iter()
                .flat_map(|usage_record| &usage_record.devices);
            devices
                .filter_map(move |usage_record| Some((labels(attempt, usage_record), value(usage_record)?)))
        });
        each(page, family, usage_records);
    }
    errors(of, page);
    for (family, value) in DIVISIONS {
        let parts = of.device_totals.iter().flat_map(parts);
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
        let devices = attempt
            .usage_record
            .as_ref()
            .map(|usage_record| usage_record.devices.len() as u64);
        let kinds = [("promised", attempt.promised), ("given", devices)];
        let name = attempt.attempt.as_str();
        kinds
            .into_iter()
            .filter_map(move |(kind, number)| Some((vec![("attempt", name), ("kind", kind)], count(number?))))
    });
    each(page, &ATTEMPT_GPUS, gpus);
}

fn errors(of: &Attempts, page: &mut Exposition) {
    let usage_records = of.attempts.iter().flat_map(|attempt| {
        let devices = attempt
            .usage_record
            .iter()
            .flat_map(|usage_record| &usage_record.devices);
        devices.map(move |usage_record| (attempt, usage_record))
    });
    let errors = usage_records.flat_map(|(attempt, usage_record)| {
        let xids = usage_record.xids.iter();
        xids.map(move |(xid, times)| (attempt, usage_record, xid.to_string(), *times))
    });
    let errors: Vec<_> = errors.collect();
    let samples = errors.iter().map(|(attempt, usage_record, xid, times)| {
        let mut labels = labels(attempt, usage_record);
        labels.push(("xid", xid.as_str()));
        (labels, f64::from(*times))
    });
    each(page, &ATTEMPT_XIDS, samples);
}

fn labels<'a>(attempt: &'a Attempt, usage_record: &'a DeviceUsage) -> Vec<(&'static str, &'a str)> {
    let (uuid, partition) = match &usage_record.part_of {
        Some(whole) => (whole, usage_record.device.0.as_str()),
        None => (&usage_record.device, ""),
    };
    vec![
        ("attempt", &attempt.attempt),
        ("uuid", &uuid.0),
        ("partition", partition),
    ]
}

fn parts(of: &DeviceAccounting) -> impl Iterator<Item = (Vec<(&'static str, &str)>, &Amounts)> {
    let device_totals = &of.device_totals;
    let parts = [
        ("attempts", &device_totals.held),
        ("nobody", &device_totals.idle),
        ("parts", &device_totals.parts),
        ("undivided", &device_totals.undivided),
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
