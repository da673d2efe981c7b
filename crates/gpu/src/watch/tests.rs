//! Jobs in a time that the test sets.

use std::sync::{
    atomic::{AtomicU32, Ordering},
    mpsc,
};

use blueproof_core::{
    gpu::{BusySample, Figure, Reading, Readings, Sample},
    ports::{GpuProbe, ProbeErrorKind},
    testing::{FakeProbe, device},
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::SignedDuration;

use super::*;

/// A device that draws 100 W, and is half busy for ten seconds, then wholly.
struct Acting {
    second: Arc<AtomicU32>,
    told_until: u32,
}

fn at(second: u32) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second.into())
}

impl GpuProbe for Acting {
    fn inventory(&mut self) -> Result<GpuInventory, ProbeError> {
        FakeProbe::of(vec![device(0)]).inventory()
    }

    fn snapshot(&mut self) -> Result<GpuSnapshot, ProbeError> {
        let now = self.second.load(Ordering::SeqCst);
        let busy = (self.told_until + 1..=now).map(|second| BusySample {
            at: at(second),
            utilization: if second <= 10 { 0.5 } else { 1.0 },
        });
        let busy = Reading::Value(busy.collect());
        self.told_until = now;
        let mut readings = Readings::default();
        readings.set(Figure::Energy, Reading::Value(f64::from(now) * 100.0));
        Ok(GpuSnapshot {
            at: at(now),
            took: SignedDuration::ZERO,
            samples: vec![Sample {
                device: device(0).uuid,
                partition: None,
                readings,
                processes: Reading::Unsupported,
                busy,
            }],
        })
    }
}

fn holder() -> Holder {
    Holder("r-1.1".into())
}

#[test]
fn parts_come_to_the_whole() {
    let second = Arc::new(AtomicU32::new(0));
    let clock = Arc::clone(&second);
    let acting = move || Acting {
        second: Arc::clone(&clock),
        told_until: 0,
    };
    let mut meter = AttemptMeter::new(Box::new(move || Ok(Box::new(acting()))), holder());
    meter.begin(&[device(0).uuid]);
    meter.turn_to(1);
    second.store(10, Ordering::SeqCst);
    meter.turn_to(2);
    second.store(30, Ordering::SeqCst);
    let used = meter.end();

    let whole = used.whole.expect("it had a device");
    assert_eq!(
        (whole.devices, whole.allocated_seconds, whole.seen_seconds),
        (1, 30.0, 30.0)
    );
    assert_eq!((whole.busy_seconds, whole.joules), (Some(25.0), Some(3000.0)));
    assert_eq!(whole.peak_utilization, Some(1.0));
    let of_cells: Vec<_> = used
        .cells
        .iter()
        .map(|(cell, used)| (*cell, used.allocated_seconds, used.busy_seconds, used.joules))
        .collect();
    assert_eq!(
        of_cells,
        [
            (1, 10.0, Some(5.0), Some(1000.0)),
            (2, 20.0, Some(20.0), Some(2000.0))
        ]
    );
}

#[test]
fn a_job_whose_driver_hangs_ends_all_the_same() {
    /// It never answers.
    struct Hanging(mpsc::Receiver<()>);
    impl GpuProbe for Hanging {
        fn inventory(&mut self) -> Result<GpuInventory, ProbeError> {
            FakeProbe::of(vec![device(0)]).inventory()
        }

        fn snapshot(&mut self) -> Result<GpuSnapshot, ProbeError> {
            let _ = self.0.recv();
            FakeProbe::of(vec![device(0)]).snapshot()
        }
    }
    let (let_go, hangs) = mpsc::channel();
    let mut hanging = Some(Hanging(hangs));
    let open: Open = Box::new(move || Ok(Box::new(hanging.take().expect("it is opened once"))));
    let mut watch = Watch::start(open, holder());
    // As after an edge at which it hung.
    watch.unanswered = Some(Instant::now());
    watch.begin(&[device(0).uuid]);
    watch.turn_to(Holder("1".into()));
    watch.end();
    let used = watch.usage_record().expect("it had a device").used();
    assert_eq!(
        (used.busy_seconds, used.joules, used.seen_seconds),
        (None, None, 0.0)
    );
    drop(let_go);
}

#[test]
fn a_driver_that_was_slow_once_is_waited_for_again_after_it_has_answered() {
    /// It keeps the first who asks waiting.
    struct SlowOnce(mpsc::Receiver<()>);
    impl GpuProbe for SlowOnce {
        fn inventory(&mut self) -> Result<GpuInventory, ProbeError> {
            FakeProbe::of(vec![device(0)]).inventory()
        }

        fn snapshot(&mut self) -> Result<GpuSnapshot, ProbeError> {
            let _ = self.0.recv();
            FakeProbe::of(vec![device(0)]).snapshot()
        }
    }
    let (let_go, waits) = mpsc::channel();
    let mut slow = Some(SlowOnce(waits));
    let open: Open = Box::new(move || Ok(Box::new(slow.take().expect("it is opened once"))));
    let mut watch = Watch::start(open, holder());
    let asked_at = Instant::now();
    watch.unanswered = Some(asked_at);
    watch.begin(&[device(0).uuid]);
    assert_eq!(watch.unanswered, Some(asked_at), "it still hangs");

    drop(let_go);
    while !watch.was_read_since(asked_at) {
        std::thread::yield_now();
    }
    watch.edge(Duration::from_secs(60));
    assert_eq!(watch.unanswered, None);
}

#[test]
fn a_job_without_a_driver_has_a_time_and_no_figures() {
    let open: Open = Box::new(|| {
        Err(ProbeError {
            reason: ProbeErrorKind::LibraryMissing,
            diagnostic: Box::new(Diagnostic::error(Code::GpuLibrary, "no library")),
        })
    });
    let mut watch = Watch::start(open, holder());
    assert_eq!(
        watch.inventory().map_err(|error| error.reason),
        Err(ProbeErrorKind::LibraryMissing)
    );
    watch.begin(&[device(0).uuid]);
    watch.end();
    let usage_record = watch.usage_record().expect("it was given a device");
    assert_eq!(
        (usage_record.total().busy_seconds(), usage_record.until.is_some()),
        (None, true)
    );
}

#[test]
fn an_attempt_that_is_given_nothing_opens_nothing() {
    let open: Open = Box::new(|| panic!("nobody asked"));
    let mut meter = AttemptMeter::new(open, holder());
    meter.turn_to(1);
    assert_eq!(meter.end(), GpuUsed::default());
}

#[test]
fn a_device_that_breaks_and_a_program_that_errs_are_told_apart() {
    for (xid, at_fault, noticed) in [
        (79, true, None),
        (31, false, Some(Code::DeviceError)),
        (63, false, None),
    ] {
        let probe = FakeProbe::of(vec![device(0)]);
        let opened = probe.clone();
        let mut meter = AttemptMeter::new(Box::new(move || Ok(Box::new(opened.clone()))), holder());
        meter.begin(&[device(0).uuid]);
        probe.report(DeviceEvent {
            at: Timestamp::now(),
            device: device(0).uuid,
            xid,
        });
        let used = meter.end();
        assert_eq!(
            used.fault.map(|fault| fault.code),
            at_fault.then_some(Code::DeviceFault),
            "{xid}"
        );
        let unhealthy: Vec<_> = used.unhealthy.into_keys().collect();
        let expected = at_fault.then(|| device(0).uuid);
        assert_eq!(unhealthy, Vec::from_iter(expected), "{xid}");
        assert_eq!(used.notices.first().map(|notice| notice.code), noticed, "{xid}");
    }
}
