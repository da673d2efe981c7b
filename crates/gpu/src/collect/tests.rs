//! Who asks, and what they get while a driver takes its time.

use std::sync::{
    atomic::{AtomicBool, Ordering},
    mpsc::Receiver,
};

use blueproof_core::{
    gpu::{BusySample, DeviceUuid},
    ports::ProbeErrorKind,
    testing::{FakeProbe, device, snapshot},
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;

use super::*;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn blind() -> ProbeError {
    ProbeError {
        reason: ProbeErrorKind::DriverNotLoaded,
        diagnostic: Box::new(Diagnostic::error(Code::GpuDriver, "no driver")),
    }
}

/// Limits by which a probe that could not be opened is not opened again.
fn never_again() -> Limits {
    Limits {
        again_after: LONG * 60,
        ..Limits::default()
    }
}

fn collector(probe: &FakeProbe) -> Collector {
    let probe = probe.clone();
    Collector::start(Box::new(move || Ok(Box::new(probe.clone()))))
}

/// A probe that hangs, once it is told to, until it is let go.
struct Hanging {
    inner: FakeProbe,
    hangs: Arc<AtomicBool>,
    let_go: Receiver<()>,
}

impl GpuProbe for Hanging {
    fn inventory(&mut self) -> Result<GpuInventory, ProbeError> {
        self.inner.inventory()
    }

    fn snapshot(&mut self) -> Result<GpuSnapshot, ProbeError> {
        if self.hangs.load(Ordering::SeqCst) {
            self.let_go.recv().expect("it is let go at last");
        }
        self.inner.snapshot()
    }

    fn events(&mut self) -> Arc<dyn GpuEvents> {
        self.inner.events()
    }
}

#[test]
fn whoever_asks_gets_a_reading_that_began_after_they_asked() {
    let probe = FakeProbe::of(vec![device(0)]);
    let collector = collector(&probe);
    for count in 1..=3 {
        let collected = collector.collect(LONG);
        assert!(!collected.is_cached);
        assert!(collected.reading.expect("it was read").is_ok());
        assert_eq!(probe.snapshots_taken(), count);
    }
}

#[test]
fn while_a_driver_hangs_the_reading_before_is_told_as_what_it_is() {
    let (hangs, (go, let_go)) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
    let probe = FakeProbe::of(vec![device(0)]);
    let mut hanging = Some(Hanging {
        inner: probe,
        hangs: Arc::clone(&hangs),
        let_go,
    });
    let collector = Collector::start(Box::new(move || {
        Ok(Box::new(hanging.take().expect("it is opened once")))
    }));
    assert!(!collector.collect(LONG).is_cached);
    hangs.store(true, Ordering::SeqCst);
    let meanwhile = collector.collect(Duration::from_millis(1));
    assert!(meanwhile.is_cached);
    assert!(meanwhile.reading.expect("there is one from before").is_ok());
    hangs.store(false, Ordering::SeqCst);
    go.send(()).expect("it hangs");
    assert!(!collector.collect(LONG).is_cached);
}

#[test]
fn a_reading_that_is_older_than_its_bound_is_unknown() {
    let (hangs, (go, let_go)) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
    let mut hanging = Some(Hanging {
        inner: FakeProbe::of(vec![device(0)]),
        hangs: Arc::clone(&hangs),
        let_go,
    });
    let limits = Limits {
        fresh_for: Duration::ZERO,
        ..Limits::default()
    };
    let open: Open = Box::new(move || Ok(Box::new(hanging.take().expect("it is opened once"))));
    let collector = Collector::start_with(open, None, limits, Box::new(Timestamp::now));
    collector.collect(LONG);
    hangs.store(true, Ordering::SeqCst);
    let meanwhile = collector.collect(Duration::from_millis(1));
    assert!(meanwhile.is_cached && meanwhile.reading.is_none());
    assert!(
        meanwhile.age.is_some(),
        "how long nothing was read is told all the same"
    );
    drop(go);
}

#[test]
fn a_reading_is_told_for_fifteen_seconds_where_nothing_else_is_asked_for() {
    let told_after = |seconds| {
        let begun = Instant::now().checked_sub(Duration::from_secs(seconds));
        let mut state = State {
            last: begun.map(|begun| (begun, Arc::new(Err(blind())))),
            ..State::default()
        };
        let limits = Limits::default();
        state.collected(Instant::now(), limits).reading.is_some()
    };
    assert!(told_after(14));
    assert!(!told_after(16));
}

#[test]
fn errors_are_told_while_a_reading_hangs_in_their_order() {
    let (hangs, (go, let_go)) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
    let probe = FakeProbe::of(vec![device(0), device(1)]);
    let mut hanging = Some(Hanging {
        inner: probe.clone(),
        hangs: Arc::clone(&hangs),
        let_go,
    });
    let collector = Collector::start(Box::new(move || {
        Ok(Box::new(hanging.take().expect("it is opened once")))
    }));
    collector.collect(LONG);
    hangs.store(true, Ordering::SeqCst);
    for (place, xid) in [(1, 94), (1, 45), (0, 119)] {
        probe.report(DeviceEvent {
            at: Timestamp::UNIX_EPOCH,
            device: device(place).uuid,
            xid,
        });
    }
    let began = Instant::now();
    let mut collections = std::iter::repeat_with(|| collector.collect(Duration::from_millis(1)));
    let told = collections.find(|collected| {
        assert!(began.elapsed() < LONG, "they are told");
        collected.errors.last(&device(0).uuid) == Some(119)
    });
    let told = told.expect("it goes on");
    assert!(told.is_cached, "the reading hangs");
    assert_eq!(told.errors.last(&device(1).uuid), Some(45));
    assert_eq!(told.errors.counts().count(), 3);
    assert_eq!(told.listened_to.len(), 2);
    drop(go);
}

#[test]
fn the_driver_is_closed_when_nobody_asks_and_on_request_and_opened_again() {
    let (opened, probe) = (Arc::new(Mutex::new(0)), FakeProbe::of(vec![device(0)]));
    let (counted, open) = (Arc::clone(&opened), probe);
    let limits = Limits {
        idle_after: Duration::ZERO,
        ..Limits::default()
    };
    let open: Open = Box::new(move || {
        *counted.lock().expect("nobody panics") += 1;
        Ok(Box::new(open.clone()))
    });
    let collector = Collector::start_with(open, None, limits, Box::new(Timestamp::now));
    let is_open = || {
        !collector
            .shared
            .lock()
            .collected(Instant::now(), Limits::default())
            .listened_to
            .is_empty()
    };
    collector.collect(LONG);
    let began = Instant::now();
    while is_open() {
        assert!(began.elapsed() < LONG, "it is closed when nobody asks");
        thread::yield_now();
    }
    assert!(collector.collect(LONG).reading.expect("it was tried").is_ok());
    assert!(*opened.lock().expect("nobody panics") >= 2, "it was opened again");

    collector.release(LONG * 60);
    let reading = collector.collect(LONG).reading.expect("it was tried");
    let released = reading.as_ref().as_ref().expect_err("it is closed");
    assert_eq!(released.reason, ProbeErrorKind::Released);
    collector.reopen();
    assert!(collector.collect(LONG).reading.expect("it was tried").is_ok());
}

#[test]
fn who_asks_while_the_first_reading_hangs_gets_none() {
    let (go, let_go) = mpsc::channel();
    let mut hanging = Some(Hanging {
        inner: FakeProbe::of(vec![device(0)]),
        hangs: Arc::new(AtomicBool::new(true)),
        let_go,
    });
    let collector = Collector::start(Box::new(move || {
        Ok(Box::new(hanging.take().expect("it is opened once")))
    }));
    let collected = collector.collect(Duration::from_millis(1));
    assert!(collected.reading.is_none());
    assert_eq!(collected.age, None);
    drop(go);
}

#[test]
fn a_reading_that_fails_leaves_nothing_of_the_one_before() {
    let probe = FakeProbe::of(vec![device(0)]);
    let collector = collector(&probe);
    collector.collect(LONG);
    probe.fail(Some(blind()));
    let collected = collector.collect(LONG);
    assert!(!collected.is_cached);
    assert_eq!(collected.reading.expect("it was tried").as_ref(), &Err(blind()));
    assert_eq!(collected.failures, 1);
}

#[test]
fn a_driver_that_is_not_there_is_not_asked_for_at_every_scrape() {
    let (opened, mut opens) = (Arc::new(Mutex::new(0)), 0);
    let told = Arc::clone(&opened);
    let open = move || {
        opens += 1;
        *told.lock().expect("nobody panics") = opens;
        Err(blind())
    };
    let collector = Collector::start_with(Box::new(open), None, never_again(), Box::new(Timestamp::now));
    for _ in 0..5 {
        let collected = collector.collect(LONG);
        assert_eq!(collected.reading.expect("it was tried").as_ref(), &Err(blind()));
    }
    assert_eq!(*opened.lock().expect("nobody panics"), 1);
    assert_eq!(collector.collect(LONG).failures, 6);
}

#[test]
fn whoever_asks_is_told_the_errors_until_then() {
    let probe = FakeProbe::of(vec![device(0)]);
    let collector = collector(&probe);
    collector.collect(LONG);
    for xid in [31, 31, 79] {
        probe.report(DeviceEvent {
            at: Timestamp::UNIX_EPOCH,
            device: DeviceUuid("GPU-00000000".into()),
            xid,
        });
    }
    let errors = collector.collect(LONG).errors;
    let counts: Vec<_> = errors
        .counts()
        .map(|(_, xid, count)| (xid, count.times))
        .collect();
    assert_eq!(counts, [(31, 2), (79, 1)]);
    assert_eq!(errors.last(&DeviceUuid("GPU-00000000".into())), Some(79));
}

#[test]
fn what_the_driver_told_once_is_told_to_each_who_asks() {
    let probe = FakeProbe::of(vec![device(0)]);
    let mut read = snapshot(10, &[device(0)]);
    read.samples[0].busy = blueproof_core::gpu::Reading::Value(vec![BusySample {
        at: read.at,
        utilization: 0.75,
    }]);
    probe.will_read(read.clone());
    let collector = collector(&probe);
    for _ in 0..2 {
        let peaks = collector.collect(LONG).peaks;
        assert_eq!(peaks.of(&read.samples[0]), Some(0.75));
    }
}

#[test]
fn the_probe_of_tests_keeps_the_promises_of_the_port() {
    let mut probe = FakeProbe::of(vec![device(0), device(1)]);
    blueproof_core::testing::contract::probe_keeps_its_promises(&mut probe);
}

/// Writes down what it is told.
struct Scribe(mpsc::Sender<String>);

impl SnapshotSink for Scribe {
    fn read(&mut self, _: &GpuInventory, _: &GpuSnapshot) {
        let _ = self.0.send("read".into());
    }

    fn reported(&mut self, _: &DeviceEvent) {}

    fn clock_set(&mut self, by: SignedDuration) {
        let by = by.round(jiff::Unit::Minute).expect("minutes are a unit");
        let _ = self.0.send(format!("{by:#}"));
    }
}

#[test]
fn a_clock_that_is_set_is_told_of_before_what_is_read_by_it() {
    let probe = FakeProbe::of(vec![device(0)]);
    let wrong_by = Arc::new(Mutex::new(SignedDuration::ZERO));
    let (clock, (tell, told)) = (Arc::clone(&wrong_by), mpsc::channel());
    let wall = move || Timestamp::now() + *clock.lock().expect("nobody panics");
    let collector = Collector::start_with(
        Box::new(move || Ok(Box::new(probe.clone()))),
        Some(Box::new(Scribe(tell))),
        Limits::default(),
        Box::new(wall),
    );
    assert_eq!(collector.collect(LONG).clock_set, None);
    for (times, hours) in [(1, -3), (2, 1)] {
        *wrong_by.lock().expect("nobody panics") += SignedDuration::from_hours(hours);
        let set = collector.collect(LONG).clock_set.expect("it was set");
        let by = set.by.round(jiff::Unit::Minute).expect("minutes are a unit");
        assert_eq!((set.times, by), (times, SignedDuration::from_hours(hours)));
    }
    drop(collector);
    let mut told: Vec<_> = told.iter().collect();
    // It reads every second by itself, too.
    told.dedup();
    let expected = ["read", "3h ago", "read", "1h", "read"];
    assert_eq!(told, expected);
}

#[test]
fn of_a_device_to_which_nobody_listened_for_a_while_nothing_is_known_for_a_while() {
    for (unheard_for, is_heard) in [(LONG * 60, false), (Duration::ZERO, true)] {
        let probe = FakeProbe::of(vec![device(0), device(1)]);
        let (limits, open) = (
            Limits {
                unheard_for,
                ..Limits::default()
            },
            probe.clone(),
        );
        let open: Open = Box::new(move || Ok(Box::new(open.clone())));
        let collector = Collector::start_with(open, None, limits, Box::new(Timestamp::now));
        let before = collector.collect(LONG);
        assert_eq!((before.listened_to.len(), before.missed.len()), (2, 0));
        probe.miss(&device(1).uuid);
        let after = collector.collect(LONG);
        assert!(after.listened_to.contains(&device(0).uuid));
        assert_eq!(after.listened_to.contains(&device(1).uuid), is_heard);
        assert_eq!(after.missed, [device(1).uuid].into());
    }
}
