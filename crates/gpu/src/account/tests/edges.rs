//! Whose something is that happened about when a device changed hands.

use std::collections::BTreeMap;

use super::*;

#[test]
fn of_two_attempts_on_one_device_each_is_charged_with_its_own() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[]).joules(1000.0)]);
    told.hold(0.0, "r-41.1");
    told.read(1.0, [sample().busy(&[(1.0, 0.5)]).joules(1100.0)]);
    told.read(2.0, [sample().busy(&[(2.0, 1.0)]).joules(1300.0)]);
    told.release(2.0, "r-41.1");
    told.hold(2.0, "r-41.2");
    told.read(3.0, [sample().busy(&[(3.0, 0.25)]).joules(1350.0)]);
    told.release(3.0, "r-41.2");
    told.read(4.0, [sample().busy(&[(4.0, 0.0)]).joules(1360.0)]);

    // 1 s × 0.5 + 1 s × 1 = 1.5 s, and 1300 J - 1000 J = 300 J.
    assert_eq!(
        sums(told.usage_record("r-41.1").amounts),
        (2.0, Some(1.5), Some(300.0))
    );
    // 1 s × 0.25 = 0.25 s, and 1350 J - 1300 J = 50 J.
    assert_eq!(
        sums(told.usage_record("r-41.2").amounts),
        (1.0, Some(0.25), Some(50.0))
    );
    assert_eq!(sums(told.device_totals().idle), (1.0, Some(0.0), Some(10.0)));
    assert_eq!(sums(told.device_totals().total), (4.0, Some(1.75), Some(360.0)));
}

#[test]
fn a_period_that_reaches_over_an_edge_is_divided_by_time() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[(-0.5, 0.0)])]);
    told.hold(0.0, "r-1.1");
    // The driver is half a period behind: of 0.5 s to 1.5 s it tells after the edge only.
    told.read(1.0, [sample().busy(&[(0.5, 0.2)])]);
    told.release(1.0, "r-1.1");
    told.hold(1.0, "r-2.1");
    told.read(2.0, [sample().busy(&[(1.5, 0.8)])]);

    // 0.5 s × 0.2 + 0.5 s × 0.8 = 0.5 s: the first period, too, began before the window.
    assert_eq!(sums(told.usage_record("r-1.1").amounts), (1.0, Some(0.5), None));
    assert_eq!(sums(told.usage_record("r-2.1").amounts), (1.0, Some(0.4), None));
    assert_eq!(coverage(&told.usage_record("r-1.1")).0, 1.0);
    assert_eq!(coverage(&told.usage_record("r-2.1")).0, 0.5);
    // Of neither period can be said whose its busiest moment was.
    assert_eq!(told.usage_record("r-1.1").peak_utilization, None);
}

#[test]
fn a_driver_that_is_ahead_charges_nobody_beyond_the_edge() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[])]);
    told.hold(0.0, "r-1.1");
    told.read(1.0, [sample().busy(&[(0.5, 0.5), (1.1, 0.75)])]);
    told.release(1.0, "r-1.1");

    // 0.5 s × 0.5 + 0.5 s × 0.75 = 0.625 s; the last 0.1 s of the period are of whoever comes next.
    assert_eq!(told.usage_record("r-1.1").amounts.busy_seconds(), Some(0.625));
    told.read(2.0, [sample().busy(&[])]);
    assert_eq!(told.device_totals().idle.busy_seconds(), Some(0.075));
    // Nor is the busier period's peak its own.
    assert_eq!(told.usage_record("r-1.1").peak_utilization, Some(0.5));
}

#[test]
fn an_attempt_that_is_shorter_than_a_period_is_charged_with_its_part_of_it() {
    let mut told = Told::new();
    told.read(9.0, [sample().busy(&[(8.95, 0.0)]).joules(0.0)]);
    told.read(10.0, [sample().busy(&[(9.95, 0.0)]).joules(100.0)]);
    told.hold(10.0, "r-1.1");
    told.read(10.05, [sample().busy(&[]).joules(120.0)]);
    told.release(10.05, "r-1.1");
    assert_eq!(
        told.usage_record("r-1.1").amounts.busy_seconds(),
        None,
        "nobody knows yet"
    );
    told.read(11.0, [sample().busy(&[(10.15, 0.8)]).joules(200.0)]);

    // 0.05 s × 0.8 = 0.04 s; 120 J - 100 J = 20 J.
    assert_eq!(
        sums(told.usage_record("r-1.1").amounts),
        (0.05, Some(0.04), Some(20.0))
    );
    assert_eq!(coverage(&told.usage_record("r-1.1")), (1.0, 1.0, 0.0));
    // 0.15 s of the same period, 0.8 each: 0.12 s are nobody's.
    assert_eq!(told.device_totals().idle.busy_seconds(), Some(0.12));
}

#[test]
fn energy_is_divided_by_time_where_no_snapshot_was_taken_at_the_edge() {
    let mut told = Told::new();
    told.read(0.0, [sample().joules(0.0)]);
    told.hold(1.0, "r-1.1");
    told.release(2.0, "r-1.1");
    told.read(4.0, [sample().joules(100.0)]);

    // 100 J in 4 s, of which it had one.
    assert_eq!(told.usage_record("r-1.1").amounts.joules(), Some(25.0));
}

#[test]
fn memory_at_the_first_edge_is_the_predecessors_and_at_the_last_its_own() {
    let used = |bytes| sample().figure(Figure::MemoryUsed, bytes);
    for edges_first in ["edges first", "snapshots first"] {
        let mut told = Told::new();
        let edge = |told: &mut Told, seconds, bytes, tell: &dyn Fn(&mut Told)| {
            if edges_first == "edges first" {
                tell(told);
                told.read(seconds, [used(bytes)]);
            } else {
                told.read(seconds, [used(bytes)]);
                tell(told);
            }
        };
        edge(&mut told, 1.0, 9e9, &|told| told.hold(1.0, "r-1.1"));
        told.read(2.0, [used(3e9)]);
        edge(&mut told, 3.0, 4e9, &|told| told.release(3.0, "r-1.1"));
        told.read(4.0, [used(7e9)]);

        let peak = PeakMemory {
            bytes: Bytes(4_000_000_000),
            of: MemoryOf::Device,
        };
        assert_eq!(
            told.usage_record("r-1.1").peak_memory,
            Some(peak),
            "{edges_first}"
        );
        assert_eq!(coverage(&told.usage_record("r-1.1")).2, 1.0, "{edges_first}");
    }
}

#[test]
fn memory_is_that_of_the_holders_processes_where_they_are_known() {
    let mut told = Told::new();
    told.hold(0.0, "r-1.1");
    told.0.claim(&named("r-1.1"), [7, 8]);
    let used = |processes: &[_]| sample().figure(Figure::MemoryUsed, 100.0).processes(processes);
    told.read(1.0, [used(&[(7, 10, 0.0), (8, 20, 0.0), (9, 40, 0.0)])]);
    told.read(2.0, [used(&[(7, 25, 0.0), (9, 60, 0.0)])]);

    // At 1 s 10 + 20 = 30 bytes, at 2 s 25; the rest is of processes that nobody claimed.
    let peak = PeakMemory {
        bytes: Bytes(30),
        of: MemoryOf::Processes,
    };
    assert_eq!(told.usage_record("r-1.1").peak_memory, Some(peak));
}

#[test]
fn errors_are_counted_for_whoever_had_the_device_when_they_were_met_with() {
    let mut told = Told::new();
    told.hold(1.0, "r-1.1");
    told.report(1.0, 79); // at the edge: of what was there before
    told.report(1.5, 31);
    told.report(2.0, 31); // at the other edge
    told.release(2.0, "r-1.1");
    told.report(1.9, 13); // told late
    told.report(2.1, 48);

    assert_eq!(
        told.usage_record("r-1.1").xids,
        BTreeMap::from([(13, 1), (31, 2)])
    );
    assert_eq!(
        told.device_totals().xids,
        BTreeMap::from([(13, 1), (31, 2), (48, 1), (79, 1)])
    );
}

#[test]
fn what_is_told_twice_counts_once() {
    let mut told = Told::new();
    let mut twice = Told::new();
    for (ledger, times) in [(&mut told, 1), (&mut twice, 2)] {
        let mut each = |tell: &dyn Fn(&mut Told)| (0..times).for_each(|_| tell(&mut *ledger));
        each(&|told| told.read(0.0, [sample().busy(&[]).joules(0.0)]));
        each(&|told| told.hold(0.0, "r-1.1"));
        each(&|told| told.read(1.0, [sample().busy(&[(1.0, 0.5)]).joules(10.0)]));
        each(&|told| told.release(1.0, "r-1.1"));
    }
    twice.release(1.0, "r-9.9");

    assert_eq!(
        twice.0.usage_record(&named("r-1.1")),
        told.0.usage_record(&named("r-1.1"))
    );
    assert_eq!(twice.device_totals(), told.device_totals());
    assert_eq!(twice.0.usage_record(&named("r-9.9")), None);
}

#[test]
fn a_holder_that_is_forgotten_stays_in_the_balance() {
    let mut told = Told::new();
    told.hold(0.0, "r-1.1");
    told.0.forget(&named("r-1.1"));
    told.release(5.0, "r-1.1");
    assert!(told.0.usage_record(&named("r-1.1")).is_some(), "it held a device");
    told.0.forget(&named("r-1.1"));

    assert_eq!(told.0.usage_record(&named("r-1.1")), None);
    assert_eq!(told.device_totals().held.allocated_seconds(), 5.0);
}

#[test]
fn a_bill_is_of_all_devices_and_all_windows() {
    let mut told = Told::new();
    let both = [device("GPU-1"), device("GPU-2")];
    told.0.hold(at(0.0), &named("r-1.1"), &both);
    told.release(10.0, "r-1.1");
    told.hold(20.0, "r-1.1");
    let open = told.0.usage_record(&named("r-1.1")).expect("it held something");
    told.release(21.0, "r-1.1");
    let closed = told.0.usage_record(&named("r-1.1")).expect("it held something");

    assert_eq!((open.from, open.until), (at(0.0), None));
    assert_eq!((closed.from, closed.until), (at(0.0), Some(at(21.0))));
    // Two devices for 10 s, and one of them for a second more.
    assert_eq!(closed.total().allocated_seconds(), 21.0);
}
