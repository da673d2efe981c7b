//! What was not seen, and what cannot be so.

use super::*;

#[test]
fn a_counter_that_goes_back_counts_from_there() {
    let mut told = Told::new();
    told.read(0.0, [sample().joules(5000.0)]);
    told.hold(0.0, "r-1.1");
    told.read(1.0, [sample().joules(5100.0)]);
    told.read(2.0, [sample().joules(30.0)]);
    told.read(3.0, [sample().joules(80.0)]);
    told.release(3.0, "r-1.1");

    // 100 J, then the 30 J since the driver was loaded anew, then 50 J.
    let usage_record = told.usage_record("r-1.1");
    assert_eq!(usage_record.amounts.joules(), Some(180.0));
    assert_eq!(usage_record.reloads, 1);
    // In the second in which that was, something was drawn that no counter shows.
    assert_eq!(coverage(&usage_record).1, 2.0 / 3.0);
}

#[test]
fn a_counter_that_goes_back_a_little_did_not_begin_anew() {
    let mut told = Told::new();
    told.read(0.0, [sample().joules(10_000.0)]);
    told.hold(0.0, "r-1.1");
    told.read(1.0, [sample().joules(10_100.0)]);
    told.read(2.0, [sample().joules(10_090.0)]);
    told.read(3.0, [sample().joules(10_300.0)]);
    told.release(3.0, "r-1.1");
    let usage_record = told.usage_record("r-1.1");
    assert_eq!(
        (usage_record.amounts.joules(), usage_record.reloads),
        (Some(300.0), 0)
    );
}

#[test]
fn a_counter_that_goes_far_back_to_what_cannot_have_been_drawn_since_says_nothing_of_that_time() {
    let mut told = Told::new();
    told.read(0.0, [sample().joules(90_000.0)]);
    told.hold(0.0, "r-1.1");
    told.read(1.0, [sample().joules(50_000.0)]);
    told.read(2.0, [sample().joules(50_100.0)]);
    told.release(2.0, "r-1.1");
    let usage_record = told.usage_record("r-1.1");
    assert_eq!(
        (usage_record.amounts.joules(), usage_record.reloads),
        (Some(100.0), 0)
    );
    assert_eq!(coverage(&usage_record).1, 0.5);
}

#[test]
fn a_reload_with_an_edge_in_it_is_one_reload() {
    let mut told = Told::new();
    told.read(0.0, [sample().joules(5000.0)]);
    told.hold(0.0, "r-1.1");
    told.hold(0.5, "r-2.1");
    told.read(1.0, [sample().joules(30.0)]);

    assert_eq!(told.usage_record("r-1.1").reloads, 1);
}

#[test]
fn a_device_that_is_lost_is_allocated_and_not_seen() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[]).joules(0.0)]);
    told.hold(0.0, "r-1.1");
    told.read(1.0, [sample().busy(&[(1.0, 1.0)]).joules(300.0)]);
    for seconds in 2..=4 {
        told.read(f64::from(seconds), [lost()]);
    }
    told.release(4.0, "r-1.1");

    let usage_record = told.usage_record("r-1.1");
    assert_eq!(sums(usage_record.amounts), (4.0, Some(1.0), Some(300.0)));
    assert_eq!(coverage(&usage_record), (0.25, 0.25, 0.0));
}

#[test]
fn a_device_that_vanishes_from_snapshots_is_allocated_and_not_seen() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[])]);
    told.hold(0.0, "r-1.1");
    told.read(4.0, []);

    assert_eq!(sums(told.usage_record("r-1.1").amounts), (4.0, None, None));
}

#[test]
fn what_never_was_read_is_not_known_and_not_zero() {
    let mut told = Told::new();
    told.hold(0.0, "r-1.1");
    told.read(0.5, [lost()]);
    told.release(1.0, "r-1.1");

    let usage_record = told.usage_record("r-1.1");
    assert_eq!(sums(usage_record.amounts), (1.0, None, None));
    assert_eq!(
        (
            usage_record.source,
            usage_record.peak_utilization,
            usage_record.peak_memory
        ),
        (None, None, None)
    );
}

#[test]
fn a_gap_in_the_drivers_samples_is_not_filled() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[])]);
    told.hold(0.0, "r-1.1");
    told.read(1.0, [sample().busy(&[(0.5, 1.0), (1.0, 1.0)])]);
    // The driver remembers the last second only.
    told.read(10.0, [sample().busy(&[(9.5, 0.4), (10.0, 0.4)])]);
    told.release(10.0, "r-1.1");

    // 1 s × 1, then two periods of half a second: 1 s × 0.4. The 8 s in between are not known.
    let usage_record = told.usage_record("r-1.1");
    assert_eq!(sums(usage_record.amounts), (10.0, Some(1.4), None));
    assert_eq!(coverage(&usage_record).0, 0.2);
}

#[test]
fn the_first_period_that_is_ever_met_with_is_as_long_as_the_next() {
    let mut told = Told::new();
    told.hold(0.0, "r-1.1");
    told.read(1.0, [sample().busy(&[(0.5, 1.0), (0.75, 0.5), (1.0, 0.5)])]);

    // 0.25 s × 1 + 0.5 s × 0.5 = 0.5 s; of the first quarter of a second nobody can say anything.
    assert_eq!(told.usage_record("r-1.1").amounts.busy_seconds(), Some(0.5));
    assert_eq!(coverage(&told.usage_record("r-1.1")).0, 0.75);
}

#[test]
fn energy_over_a_gap_is_known_because_the_counter_went_on() {
    let mut told = Told::new();
    told.read(0.0, [sample().joules(0.0)]);
    told.hold(0.0, "r-1.1");
    told.read(1.0, [lost()]);
    told.read(50.0, [sample().joules(700.0)]);
    told.release(50.0, "r-1.1");

    assert_eq!(told.usage_record("r-1.1").amounts.joules(), Some(700.0));
    assert_eq!(coverage(&told.usage_record("r-1.1")).1, 1.0);
}

#[test]
fn samples_that_could_not_be_read_once_are_not_lost_if_the_driver_remembers_them() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[])]);
    told.hold(0.0, "r-1.1");
    told.read(1.0, [lost()]);
    told.release(1.0, "r-1.1");
    told.read(2.0, [sample().busy(&[(1.0, 0.5), (2.0, 0.25)])]);

    assert_eq!(told.usage_record("r-1.1").amounts.busy_seconds(), Some(0.5));
    assert_eq!(told.device_totals().idle.busy_seconds(), Some(0.25));
}

#[test]
fn a_driver_without_samples_is_asked_at_each_snapshot_and_that_is_said() {
    let used = |share| sample().figure(Figure::Utilization, share);
    let mut told = Told::new();
    told.read(0.0, [used(1.0)]);
    told.hold(0.0, "r-1.1");
    told.read(1.0, [used(0.5)]);
    told.read(2.0, [used(0.2)]);
    // Of 10 s only the last one, since snapshots are a second apart.
    told.read(12.0, [used(1.0)]);
    told.release(12.0, "r-1.1");

    // 1 s × 0.5 + 1 s × 0.2 + 1 s × 1 = 1.7 s; what was read at the first edge is the predecessor's.
    let usage_record = told.usage_record("r-1.1");
    assert_eq!(sums(usage_record.amounts), (12.0, Some(1.7), None));
    assert_eq!(usage_record.source, Some(Source::Moments));
    assert_eq!(coverage(&usage_record).0, 0.25);
}

#[test]
fn a_moment_that_could_not_be_read_is_not_made_up_from_the_next() {
    let used = |share| sample().figure(Figure::Utilization, share);
    let mut unread = sample();
    unread.readings.set(Figure::Utilization, failed());
    let mut told = Told::new();
    told.read(0.0, [used(0.0)]);
    told.hold(0.0, "r-1.1");
    told.read(1.0, [unread]);
    told.read(2.0, [used(0.5)]);

    assert_eq!(sums(told.usage_record("r-1.1").amounts), (2.0, Some(0.5), None));
    assert_eq!(coverage(&told.usage_record("r-1.1")).0, 0.5);
}

#[test]
fn readings_that_no_device_can_give_are_left_out() {
    for nonsense in [f64::NAN, f64::INFINITY, f64::MAX, -1.0] {
        let mut told = Told::new();
        told.read(0.0, [sample().busy(&[]).joules(10.0)]);
        told.hold(0.0, "r-1.1");
        let used = sample().figure(Figure::MemoryUsed, f64::NAN);
        told.read(1.0, [used.busy(&[(1.0, f64::NAN)]).joules(nonsense)]);
        told.read(2.0, [sample().busy(&[(2.0, 7.0), (9999.0, 1.0)]).joules(30.0)]);
        told.read(3.0, [sample().busy(&[(3.0, 0.5)])]);

        // 1 s that cannot be more than busy, and 1 s × 0.5. A sample from the far future is not believed.
        let usage_record = told.usage_record("r-1.1");
        assert_eq!(
            sums(usage_record.amounts),
            (3.0, Some(1.5), Some(20.0)),
            "{nonsense}"
        );
        assert_eq!(usage_record.peak_memory, None, "{nonsense}");
    }
}

#[test]
fn the_greatest_readings_can_be_counted() {
    let mut told = Told::new();
    let (begin, end) = (Timestamp::MIN, Timestamp::MAX);
    for (holder, pid) in [("r-1.1", 1), ("r-2.1", 2)] {
        told.0.hold(begin, &named(holder), &[device(GPU)]);
        told.0.claim(&named(holder), [pid]);
    }
    for (at, joules) in [(begin, 0.0), (end, 1e12)] {
        let used = sample()
            .figure(Figure::Utilization, f64::INFINITY)
            .figure(Figure::MemoryUsed, f64::MAX);
        told.0.observe(&GpuSnapshot {
            at,
            took: SignedDuration::MAX,
            samples: vec![
                used.joules(joules)
                    .processes(&[(1, u64::MAX, 1.0), (1, u64::MAX, 1.0)]),
            ],
        });
    }

    assert_eq!(told.device_totals().total.joules(), Some(1e12));
    assert_eq!(told.usage_record("r-1.1").amounts.busy_seconds(), Some(1.0));
}

/// Says of each holder what it is charged with and when it had the device, by the clock as it was.
fn charged(told: &Told, by: f64, holders: &[&str]) -> Vec<String> {
    let told = holders.iter().map(|holder| {
        let usage_record = told.0.usage_record(&named(holder)).expect("it held something");
        let seconds = |at: Timestamp| at.as_duration().as_secs_f64() - by;
        let (from, until) = (seconds(usage_record.from), usage_record.until.map(seconds));
        format!("{from} {until:?} {:?}", told.usage_record(holder))
    });
    told.collect()
}

#[test]
fn a_clock_that_is_set_changes_nothing_of_what_drivers_tell_of_periods() {
    let usage_records = [0.0, 7200.0, -7200.0].map(|by| {
        let mut told = Told::new();
        let memory = |sample: Sample| sample.figure(Figure::MemoryUsed, 4096.0);
        told.read(8000.0, [memory(sample().busy(&[(8000.0, 0.0)]).joules(0.0))]);
        told.hold(8000.5, "r-1.1");
        // The driver is ahead: a part of the last period is of later.
        told.read(
            8001.0,
            [memory(
                sample().busy(&[(8000.75, 0.5), (8001.5, 1.0)]).joules(100.0),
            )],
        );
        told.release(8001.25, "r-1.1");
        told.hold(8001.25, "r-2.1");
        told.0.clock_set(SignedDuration::from_secs_f64(by));
        let read = |second: f64, busy: &[(f64, f64)], joules| {
            let busy: Vec<_> = busy.iter().map(|&(end, busy)| (end + by, busy)).collect();
            (second + by, [memory(sample().busy(&busy).joules(joules))])
        };
        for (second, sample) in [
            read(8002.0, &[(8001.5, 1.0), (8002.0, 0.25)], 300.0),
            read(8003.0, &[(8003.0, 0.5)], 500.0),
        ] {
            told.read(second, sample);
        }
        charged(&told, by, &["r-1.1", "r-2.1"])
    });
    assert_eq!(usage_records, [0; 3].map(|_| usage_records[0].clone()));
}

#[test]
fn a_clock_that_is_set_changes_nothing_of_what_is_read_of_moments() {
    let usage_records = [0.0, 7200.0, -7200.0].map(|by| {
        let mut told = Told::new();
        let busy = |share| {
            let processes = [(1, 1024, 0.75 * share), (2, 2048, 0.25 * share)];
            sample().figure(Figure::Utilization, share).processes(&processes)
        };
        told.read(8000.0, [busy(0.0)]);
        for (holder, pid) in [("r-1.1", 1), ("r-2.1", 2)] {
            told.hold(8000.0, holder);
            told.0.claim(&named(holder), [pid]);
        }
        told.read(8001.0, [busy(1.0)]);
        told.0.clock_set(SignedDuration::from_secs_f64(by));
        told.read(8002.0 + by, [busy(0.5)]);
        told.release(8002.0 + by, "r-1.1");
        told.read(8003.0 + by, [busy(0.5)]);
        charged(&told, by, &["r-1.1", "r-2.1"])
    });
    assert_eq!(usage_records, [0; 3].map(|_| usage_records[0].clone()));
}

#[test]
fn snapshots_that_are_out_of_order_are_left_out_and_counted() {
    let mut told = Told::new();
    told.read(10.0, [sample().busy(&[]).joules(0.0)]);
    told.hold(10.0, "r-1.1");
    told.read(12.0, [sample().busy(&[(11.0, 0.5), (12.0, 0.5)]).joules(100.0)]);
    told.read(11.0, [sample().busy(&[(11.0, 1.0)]).joules(90.0)]);
    told.read(13.0, [sample().busy(&[(13.0, 0.5)]).joules(150.0)]);
    told.release(13.0, "r-1.1");

    let usage_record = told.usage_record("r-1.1");
    assert_eq!(sums(usage_record.amounts), (3.0, Some(1.5), Some(150.0)));
    assert_eq!(
        (
            usage_record.ignored_snapshots,
            usage_record.late_edges,
            usage_record.reloads
        ),
        (1, 0, 0)
    );
}

#[test]
fn an_edge_that_is_told_late_counts_from_when_it_was_told() {
    let mut told = Told::new();
    told.read(10.0, [sample().joules(0.0)]);
    told.hold(5.0, "r-1.1");
    told.read(12.0, [sample().joules(100.0)]);
    told.release(11.0, "r-1.1");

    let usage_record = told.usage_record("r-1.1");
    assert_eq!(sums(usage_record.amounts), (2.0, None, Some(100.0)));
    assert_eq!(usage_record.late_edges, 2);
}

#[test]
fn an_edge_in_the_middle_of_a_reading_loses_nothing() {
    let mut told = Told::new();
    told.read(0.0, [sample().joules(0.0)]);
    told.hold(0.0, "r-1.1");
    told.release(1.01, "r-1.1");
    // Reading began before the edge and ended after it.
    told.0.observe(&GpuSnapshot {
        at: at(1.0),
        took: SignedDuration::from_millis(20),
        samples: vec![sample().joules(50.0)],
    });

    let usage_record = told.usage_record("r-1.1");
    assert_eq!(sums(usage_record.amounts), (1.01, None, Some(50.0)));
    assert_eq!(usage_record.ignored_snapshots, 0);
}

#[test]
fn what_is_kept_does_not_grow_with_time() {
    let size_after = |seconds: u32| {
        let mut told = Told::new();
        told.hold(0.0, "r-1.1");
        told.hold(0.0, "r-2.1");
        // Of what waits for the driver's samples there is always the same.
        for second in 1..=seconds {
            let never = sample().busy(&[]).processes(&[(1, 0, 0.5)]);
            told.read(f64::from(second), [never.joules(f64::from(second))]);
        }
        format!("{:?}", told.0).len()
    };
    assert!(size_after(4000) < size_after(1000) + 5000);
}
