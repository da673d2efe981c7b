//! Sums, whatever happens.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const DEVICES: [&str; 2] = ["GPU-1", "GPU-2"];
const HOLDERS: [&str; 3] = ["r-1.1", "r-2.1", "r-3.1"];

/// Something that a ledger is told, at a time in microseconds.
#[derive(Debug, Clone)]
enum Happening {
    Hold(usize, Vec<usize>),
    Release(usize),
    Claim(usize, Vec<u32>),
    Read(Vec<Sample>),
    Report(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let holder = 0..HOLDERS.len();
    prop_oneof![
        2 => (holder.clone(), prop::collection::vec(0..DEVICES.len(), 1..3)).prop_map(|(of, all)| Happening::Hold(of, all)),
        2 => holder.clone().prop_map(Happening::Release),
        1 => (holder, prop::collection::vec(0..6_u32, 0..4)).prop_map(|(of, pids)| Happening::Claim(of, pids)),
        6 => prop::collection::vec(any_sample(), 0..4).prop_map(Happening::Read),
        1 => (0..3_u64).prop_map(Happening::Report),
    ]
}

/// Returns what may be read, sense or none; ring times are relative to nothing, so many are old or of the future.
fn any_sample() -> impl Strategy<Value = Sample> {
    let share = || prop_oneof![4 => 0.0..1.0, 1 => Just(1.0), 1 => Just(0.0), 1 => Just(f64::NAN)];
    let ring = prop::collection::vec((0..40_000_000_i64, share()), 0..12);
    let ring = reading(ring.prop_map(|mut ring| {
        ring.sort_by_key(|(at, _)| *at);
        let busy = ring.into_iter().map(|(at, utilization)| BusySample {
            at: micros(at),
            utilization,
        });
        busy.collect::<Vec<_>>()
    }));
    let process =
        (0..6_u32, reading(0..1000_u64), reading(share())).prop_map(|(pid, memory, utilization)| {
            GpuProcess {
                pid,
                memory: memory.map(Bytes),
                utilization,
            }
        });
    let processes = reading(prop::collection::vec(process, 0..4));
    let figures = (
        reading(0.0..1e4),
        reading(share()),
        reading(share()),
        reading(0.0..1e9),
    );
    (0..DEVICES.len(), any::<bool>(), ring, processes, figures).prop_map(
        |(of, is_part, busy, processes, figures)| {
            let (energy, utilization, active, memory) = figures;
            Sample {
                device: device(DEVICES[of]),
                partition: is_part.then(|| device("MIG-1")),
                readings: Readings::from_iter([
                    (Figure::Energy, energy),
                    (Figure::Utilization, utilization),
                    (Figure::EngineActive, active),
                    (Figure::MemoryUsed, memory),
                ]),
                processes,
                busy,
            }
        },
    )
}

fn reading<T: std::fmt::Debug + Clone + 'static>(
    of: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Reading<T>> {
    prop_oneof![8 => of.prop_map(Reading::Value), 1 => Just(Reading::Unsupported), 1 => Just(failed())]
}

fn micros(at: i64) -> Timestamp {
    Timestamp::from_microsecond(at).expect("it is about 1970")
}

fn tell(ledger: &mut Ledger, at: i64, happening: &Happening) {
    let holder = |of: &usize| named(HOLDERS[*of]);
    match happening {
        Happening::Hold(of, all) => {
            let all: Vec<_> = all.iter().map(|one| device(DEVICES[*one])).collect();
            ledger.hold(micros(at), &holder(of), &all);
            if all.len() == 1 {
                ledger.hold(micros(at), &holder(of), &[device("MIG-1")]);
            }
        }
        Happening::Release(of) => ledger.release(micros(at), &holder(of)),
        Happening::Claim(of, pids) => ledger.claim(&holder(of), pids.iter().copied()),
        Happening::Read(samples) => ledger.observe(&GpuSnapshot {
            at: micros(at),
            took: SignedDuration::from_millis(5),
            samples: samples.clone(),
        }),
        Happening::Report(xid) => ledger.report_event(&DeviceEvent {
            at: micros(at),
            device: device(GPU),
            xid: *xid,
        }),
    }
}

/// Returns what holders are charged with on a device.
fn charged(ledger: &Ledger, on: &DeviceUuid) -> Amounts {
    let usage_records = HOLDERS
        .iter()
        .filter_map(|holder| ledger.usage_record(&named(holder)));
    let lines = usage_records.flat_map(|usage_record| usage_record.devices);
    lines
        .filter(|line| line.device == *on)
        .map(|line| line.amounts)
        .sum()
}

proptest! {
    #[test]
    fn what_holders_are_charged_with_and_what_nobody_is_add_up_to_what_the_device_did(
        story in prop::collection::vec((-500_000..2_000_000_i64, happening()), 1..60),
    ) {
        let mut ledger = Ledger::new(SignedDuration::from_secs(1));
        let mut now = 0;
        for (passed, happening) in &story {
            now = (now + passed).max(0);
            tell(&mut ledger, now, happening);
            for device in ledger.devices() {
                let device_totals = ledger.device_totals(device).expect("it was heard of");
                prop_assert_eq!(device_totals.divided(), device_totals.total);
                prop_assert_eq!(charged(&ledger, device), device_totals.held);
                // Nothing is seen that was not there, give or take a picosecond of rounding for each share.
                let total = device_totals.total;
                prop_assert!(total.busy <= total.busy_seen && total.busy_seen <= total.allocated);
                prop_assert!(total.memory_seen <= total.allocated && total.energy_seen <= total.allocated);
            }
        }
    }

    /// One holder at a time, a driver that samples evenly and late, and a counter that is now and then set back: each sum
    /// is made anew by looking at every sample for every window.
    #[test]
    fn each_holder_is_charged_with_what_happened_in_its_windows(
        period in 50_000..1_000_000_i64,
        late in 0..400_000_i64,
        shares in prop::collection::vec(0..=100_u32, 1..80),
        edges in prop::collection::btree_set(1..20_000_000_i64, 2..12),
        reads in prop::collection::btree_set(1..20_000_000_i64, 1..30),
        reload in prop::option::of(0..20_000_000_i64),
    ) {
        let end = 25_000_000;
        let joules = |at: i64| match reload {
            Some(reload) if at >= reload => (at - reload) as f64 / 1e4,
            _ => (at + 7_000_000) as f64 / 1e4,
        };
        let ring = shares.iter().zip(1..).map(|(share, n)| (n * period, *share));
        let ring: Vec<_> = ring.filter(|(until, _)| *until <= end).collect();
        // A snapshot at each edge and now and then; each tells what the driver knew by then and had not told.
        let mut at_all: Vec<_> = edges.union(&reads).copied().collect();
        at_all.push(end);
        let mut ledger = Ledger::new(SignedDuration::from_secs(1));
        let mut told_until = 0;
        ledger.observe(&GpuSnapshot { at: micros(0), took: SignedDuration::ZERO, samples: vec![sample().busy(&[]).joules(joules(0))] });
        for at in at_all {
            let known = if at == end { end } else { at - late };
            let new = ring.iter().filter(|(until, _)| *until > told_until && *until <= known);
            let new: Vec<_> = new.map(|(until, share)| (*until as f64 / 1e6, f64::from(*share) / 100.0)).collect();
            told_until = told_until.max(known);
            ledger.observe(&GpuSnapshot { at: micros(at), took: SignedDuration::ZERO, samples: vec![sample().busy(&new).joules(joules(at))] });
            if let Some(place) = edges.iter().position(|edge| *edge == at) {
                ledger.release(micros(at), &named(&format!("r-{place}.1")));
                ledger.hold(micros(at), &named(&format!("r-{}.1", place + 1)), &[device(GPU)]);
            }
        }
        let bounds: Vec<_> = edges.iter().copied().chain([end]).collect();
        for (place, window) in bounds.windows(2).enumerate() {
            let usage_record = ledger.usage_record(&named(&format!("r-{}.1", place + 1))).expect("it held the device");
            let within = |until: i64| (until.min(window[1]) - (until - period).max(window[0])).max(0);
            let busy: i64 = ring.iter().map(|(until, share)| within(*until) * i64::from(*share) * 10_000).sum();
            prop_assert_eq!(usage_record.total().allocated, u128::from((window[1] - window[0]).unsigned_abs()) * 1_000_000);
            prop_assert_eq!(usage_record.total().busy, u128::from(busy.unsigned_abs()));
            let reloaded = reload.is_some_and(|reload| window[0] < reload && reload <= window[1]);
            let before = if reloaded { None } else { Some(joules(window[0])) };
            if let Some(before) = before {
                let drawn = (joules(window[1]) - before) * 1e6;
                prop_assert!((usage_record.total().energy as f64 - drawn).abs() < 1.5, "{} J", drawn / 1e6);
            }
        }
    }
}

#[test]
fn errors_on_a_device_are_counted_once_however_many_held_it() {
    let mut told = Told::new();
    for holder in HOLDERS {
        told.hold(0.0, holder);
    }
    told.report(1.0, 31);

    assert_eq!(told.device_totals().xids, BTreeMap::from([(31, 1)]));
    assert_eq!(told.usage_record("r-3.1").xids, BTreeMap::from([(31, 1)]));
}
