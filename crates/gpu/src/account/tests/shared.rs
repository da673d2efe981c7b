//! Several holders on one device.

use super::*;

#[test]
fn two_holders_share_the_time_equally_and_the_work_by_their_processes() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[]).joules(0.0)]);
    told.hold(0.0, "r-1.1");
    told.0.claim(&named("r-1.1"), [1]);
    told.read(1.0, [sample().busy(&[(1.0, 0.6)]).joules(200.0)]);
    told.hold(1.0, "r-2.1");
    told.0.claim(&named("r-2.1"), [2]);
    let ran = [(1, 10, 0.6), (2, 20, 0.2)];
    told.read(2.0, [sample().busy(&[(2.0, 0.4)]).joules(300.0).processes(&ran)]);
    told.release(2.0, "r-1.1");
    told.release(2.0, "r-2.1");

    // Alone for 1 s: 0.6 s busy, 200 J. Then half of 1 s; 0.6 / (0.6 + 0.2) of 0.4 s, which is 0.3 s; and the same share
    // of the second, 0.3 of 100 J.
    let first = told.usage_record("r-1.1");
    assert_eq!(sums(first.amounts), (1.5, Some(0.9), Some(230.0)));
    // Half of 1 s; 0.2 / 0.8 of 0.4 s, which is 0.1 s; 0.1 of 100 J.
    let second = told.usage_record("r-2.1");
    assert_eq!(sums(second.amounts), (0.5, Some(0.1), Some(10.0)));
    // In the other 0.6 s of the second the device rested.
    assert_eq!(sums(told.device_totals().undivided), (0.0, None, Some(60.0)));
    assert_eq!(second.unclaimed_joules, Some(60.0));

    assert!(first.is_shared && second.is_shared);
    assert_eq!(
        (first.peak_utilization, second.peak_utilization),
        (Some(0.6), Some(0.1))
    );
    assert_eq!(coverage(&second), (1.0, 1.0, 0.0));
}

#[test]
fn work_that_nobody_claims_is_charged_to_none_of_those_who_share() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[]).joules(0.0)]);
    for (holder, pid) in [("r-1.1", 1), ("r-2.1", 2)] {
        told.hold(0.0, holder);
        told.0.claim(&named(holder), [pid]);
    }
    let ran = [(1, 0, 0.3), (99, 0, 0.1)];
    told.read(1.0, [sample().busy(&[(1.0, 0.8)]).joules(10.0).processes(&ran)]);

    // 0.3 / (0.3 + 0.1) of 0.8 s is 0.6 s; the stranger has 0.2 s.
    assert_eq!(
        sums(told.usage_record("r-1.1").amounts),
        (0.5, Some(0.6), Some(6.0))
    );
    assert_eq!(
        sums(told.usage_record("r-2.1").amounts),
        (0.5, Some(0.0), Some(0.0))
    );
    assert_eq!(sums(told.device_totals().undivided), (0.0, Some(0.2), Some(4.0)));
}

#[test]
fn where_nobody_says_whose_processes_they_are_the_work_is_known_of_none() {
    for (why, processes) in [
        ("the driver does not tell of processes", Reading::Unsupported),
        ("they could not be read", failed()),
        ("none ran", Reading::Value(Vec::new())),
    ] {
        let mut told = Told::new();
        told.read(0.0, [sample().busy(&[]).joules(0.0)]);
        told.hold(0.0, "r-1.1");
        told.hold(0.0, "r-2.1");
        let read = sample().busy(&[(1.0, 0.5)]).joules(10.0);
        told.read(1.0, [Sample { processes, ..read }]);

        assert_eq!(
            sums(told.usage_record("r-1.1").amounts),
            (0.5, None, None),
            "{why}"
        );
        assert_eq!(coverage(&told.usage_record("r-1.1")), (0.0, 0.0, 0.0), "{why}");
        assert_eq!(
            sums(told.device_totals().undivided),
            (0.0, Some(0.5), Some(10.0)),
            "{why}"
        );
    }
}

#[test]
fn a_late_sample_of_a_shared_device_is_divided_as_the_device_was_used_then() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[])]);
    for (holder, pid) in [("r-1.1", 1), ("r-2.1", 2)] {
        told.hold(0.0, holder);
        told.0.claim(&named(holder), [pid]);
    }
    told.read(1.0, [sample().busy(&[]).processes(&[(1, 0, 0.5)])]);
    told.release(1.0, "r-1.1");
    told.read(
        2.0,
        [sample().busy(&[(1.0, 0.5), (2.0, 0.7)]).processes(&[(2, 0, 0.7)])],
    );

    assert_eq!(told.usage_record("r-1.1").amounts.busy_seconds(), Some(0.5));
    assert_eq!(told.usage_record("r-2.1").amounts.busy_seconds(), Some(0.7));
}

#[test]
fn processes_are_still_a_holders_when_the_last_edge_is_read_after_its_release() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[])]);
    for (holder, pid) in [("r-1.1", 1), ("r-2.1", 2)] {
        told.hold(0.0, holder);
        told.0.claim(&named(holder), [pid]);
    }
    told.release(1.0, "r-1.1");
    told.read(1.0, [sample().busy(&[(1.0, 0.5)]).processes(&[(1, 0, 0.5)])]);
    assert_eq!(told.usage_record("r-1.1").amounts.busy_seconds(), Some(0.5));

    // Numbers are used again, and the claim is over.
    told.hold(1.0, "r-1.1");
    told.read(2.0, [sample().busy(&[(2.0, 0.5)]).processes(&[(1, 0, 0.5)])]);
    assert_eq!(told.usage_record("r-1.1").amounts.busy_seconds(), Some(0.5));
}

#[test]
fn the_last_claim_is_the_one_that_counts() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[])]);
    told.hold(0.0, "r-1.1");
    told.hold(0.0, "r-2.1");
    told.0.claim(&named("r-1.1"), [1, 2]);
    told.0.claim(&named("r-1.1"), [1]);
    told.0.claim(&named("r-2.1"), [1]);
    told.read(
        1.0,
        [sample()
            .busy(&[(1.0, 0.5)])
            .processes(&[(1, 0, 0.3), (2, 0, 0.2)])],
    );

    // 0.3 s are of process 1, which the second claimed last, and 0.2 s of process 2, which nobody claims any more.
    assert_eq!(told.usage_record("r-1.1").amounts.busy_seconds(), Some(0.0));
    assert_eq!(told.usage_record("r-2.1").amounts.busy_seconds(), Some(0.3));
    assert_eq!(told.device_totals().undivided.busy_seconds(), Some(0.2));
}

#[test]
fn a_claim_that_is_made_after_a_release_outlives_it() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[])]);
    told.hold(0.0, "r-2.1");
    told.hold(0.0, "r-1.1");
    told.0.claim(&named("r-1.1"), [1]);
    told.release(0.0, "r-1.1");
    told.hold(0.0, "r-1.1");
    told.0.claim(&named("r-1.1"), [1]);
    for seconds in [1.0, 2.0] {
        let ran = sample().processes(&[(1, 0, 0.5)]);
        told.read(seconds, [ran.busy(&[(seconds, 0.5)])]);
    }

    assert_eq!(told.usage_record("r-1.1").amounts.busy_seconds(), Some(1.0));
}

#[test]
fn what_cannot_be_divided_evenly_is_divided_without_remainder() {
    let mut told = Told::new();
    for holder in ["r-1.1", "r-2.1", "r-3.1"] {
        told.hold(0.0, holder);
    }
    told.read(0.000_001, [sample()]);

    // A third of a microsecond is no whole number of picoseconds.
    let usage_records = ["r-1.1", "r-2.1", "r-3.1"].map(|holder| told.usage_record(holder).amounts.allocated);
    assert_eq!(usage_records, [333_333, 333_333, 333_334]);
}
