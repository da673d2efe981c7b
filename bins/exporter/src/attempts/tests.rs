//! Attempts on a device whose readings are told, by files as the local driver and its agents write them.

use std::{
    collections::BTreeMap,
    fs::{self, File},
};

use blueproof_core::{
    attempt::{AttemptLayout, LogKey, LogWriter, ProcessName, Record, RecordKind},
    domain::{
        AttemptId, Bytes, Cpus, Gpus, Head, Outcome, Repository, RequestKey, Resources, RunId, Source,
        Timeouts, Verdict,
    },
    gpu::{BusySample, Device, Figure, GpuProcess},
    testing::{device, snapshot},
};
use blueproof_gpu::account::UsageRecord;
use jiff::ToSpan as _;

use super::*;

/// What the device draws.
const WATTS: f64 = 100.0;

struct Machine {
    runs: tempfile::TempDir,
    device: Device,
    watch: AttemptWatch,
    sink: Box<dyn SnapshotSink>,
    processes: Vec<GpuProcess>,
}

impl Machine {
    fn new() -> Self {
        let runs = tempfile::tempdir().expect("a folder");
        let (watch, sink) = AttemptWatch::below(runs.path().to_owned());
        Self {
            runs,
            device: device(0),
            watch,
            sink,
            processes: Vec::new(),
        }
    }

    fn claim(&self) -> PathBuf {
        self.runs.path().join(".devices").join(&self.device.uuid.0)
    }

    /// Gives the device to an attempt, whose agent begins at once.
    fn give(&self, run: u64, at: f64) -> AttemptId {
        let attempt = RunId(run).attempt(1);
        let layout = AttemptLayout::of(attempt, self.runs.path());
        fs::create_dir_all(layout.root()).expect("it is ours");
        fs::create_dir_all(self.runs.path().join(".devices")).expect("it is ours");
        fs::write(self.claim(), attempt.to_string()).expect("it is ours");
        let given_at = std::time::UNIX_EPOCH + std::time::Duration::from_secs_f64(at);
        let file = File::options().write(true).open(self.claim());
        file.and_then(|file| file.set_modified(given_at))
            .expect("it is ours");
        let spec = serde_json::to_vec(&spec(attempt)).expect("plain data");
        fs::write(layout.spec(), spec).expect("it is ours");
        let begun = RecordKind::Begun {
            process: ProcessName::of(std::process::id()).expect("this one is here"),
            version: "1".into(),
            marker: String::new(),
            sockets: PathBuf::new(),
            cgroup: None,
        };
        self.write(attempt, at, begun);
        attempt
    }

    /// Lets an attempt end, and its driver take the device back.
    fn end(&self, attempt: AttemptId, at: f64) {
        let outcome = Box::new(Outcome {
            verdict: Verdict::Passed,
            usage: None,
            metrics: BTreeMap::new(),
            notices: Vec::new(),
        });
        self.write(attempt, at, RecordKind::Finished { outcome });
        fs::remove_file(self.claim()).expect("it was given");
    }

    fn write(&self, attempt: AttemptId, at: f64, kind: RecordKind) {
        let layout = AttemptLayout::of(attempt, self.runs.path());
        let key = LogKey::of(&[1; 32], attempt);
        let (mut log, _) = LogWriter::open(&layout.log(), key).expect("it is ours");
        log.append(&Record { at: moment(at), kind }).expect("it is ours");
    }

    /// Reads the device at a second. In the one before it was busy for this share of each quarter.
    fn read(&mut self, second: i64, busy: f64) {
        let mut read = snapshot(second, std::slice::from_ref(&self.device));
        let sample = &mut read.samples[0];
        let quarters = (1..=4).map(|quarter| BusySample {
            at: moment(second as f64 - 1.0 + f64::from(quarter) / 4.0),
            utilization: busy,
        });
        sample.busy = Reading::Value(quarters.collect());
        sample
            .readings
            .set(Figure::Energy, Reading::Value(second as f64 * WATTS));
        sample.readings.set(Figure::MemoryUsed, Reading::Value(4096.0));
        sample.processes = Reading::Value(self.processes.clone());
        let inventory = GpuInventory {
            devices: vec![self.device.clone()],
            ..GpuInventory::default()
        };
        self.sink.read(&inventory, &read);
    }

    fn usage_record(&self, attempt: AttemptId) -> UsageRecord {
        let seen = self.watch.seen().attempts;
        let shown = seen.iter().find(|shown| shown.attempt == attempt.to_string());
        shown
            .and_then(|shown| shown.usage_record.clone())
            .expect("it is shown")
    }
}

fn moment(second: f64) -> Timestamp {
    Timestamp::UNIX_EPOCH + ((second * 1000.0).round() as i64).milliseconds()
}

fn spec(attempt: AttemptId) -> AttemptSpec {
    AttemptSpec {
        store: "test".into(),
        attempt,
        request: RequestKey("a".into()),
        repository: Repository::GitHub(7),
        pull_request: Some(123),
        blueprint: "mnist".parse().expect("a name"),
        profile: Some("gpu".parse().expect("a name")),
        source: Source::Folder(PathBuf::new()),
        head: Head::Commit("a".repeat(40)),
        environments: PathBuf::new(),
        granted: Resources {
            cpu: Cpus::cores(2),
            gpu: Gpus(2),
            ..Resources::default()
        },
        further: BTreeMap::new(),
        devices: None,
        sandbox: Default::default(),
        timeouts: Timeouts::default(),
        work: serde_json::Value::Null,
    }
}

#[test]
fn who_comes_after_another_is_charged_with_its_own_seconds_and_joules() {
    let mut machine = Machine::new();
    machine.read(100, 0.0);
    for second in 101..=105 {
        machine.read(second, 0.0);
    }
    let first = machine.give(1, 105.5);
    for second in 106..=112 {
        machine.read(second, if second == 106 { 0.0 } else { 1.0 });
    }
    machine.end(first, 112.25);
    let second = machine.give(2, 112.5);
    machine.read(113, 0.0);
    for at in 114..=120 {
        machine.read(at, 0.5);
    }
    machine.end(second, 120.75);
    for at in 121..=123 {
        machine.read(at, 0.0);
    }

    let expected = [(first, 6.75, 6.0), (second, 8.25, 3.5)];
    for (attempt, allocated, busy) in expected {
        let total = machine.usage_record(attempt).total();
        assert_eq!(total.allocated_seconds(), allocated, "{attempt}");
        assert_eq!(total.busy_seconds(), Some(busy), "{attempt}");
        assert_eq!(total.joules(), Some(allocated * WATTS), "{attempt}");
    }
    let seen = machine.watch.seen();
    let [of_device] = &seen.device_totals[..] else {
        panic!("there is one device: {seen:?}");
    };
    assert_eq!(of_device.device_totals.divided(), of_device.device_totals.total);
    assert_eq!(of_device.device_totals.idle.allocated_seconds(), 23.0 - 15.0);
    assert_eq!(of_device.device_totals.total.joules(), Some(23.0 * WATTS));
}

#[test]
fn an_attempt_is_shown_with_whose_it_is_and_for_two_minutes_after_its_end() {
    let mut machine = Machine::new();
    machine.read(100, 0.0);
    let attempt = machine.give(41, 100.5);
    machine.read(101, 1.0);
    let seen = machine.watch.seen();
    let expected = pages::Attempt {
        attempt: "r-41.1".into(),
        run: "r-41".into(),
        repository: "GitHub repository 7".into(),
        pull_request: "123".into(),
        blueprint: "mnist".into(),
        profile: "gpu".into(),
        promised: Some(2),
        usage_record: Some(machine.usage_record(attempt)),
    };
    assert_eq!(seen.attempts, [expected]);
    machine.end(attempt, 101.5);
    machine.read(102, 0.0);
    machine.read(221, 0.0);
    assert_eq!(machine.usage_record(attempt).until, Some(moment(101.5)));
    machine.read(222, 0.0);
    let seen = machine.watch.seen();
    assert_eq!(seen.attempts, []);
    let held = seen.device_totals[0].device_totals.held;
    assert_eq!(held.allocated_seconds(), 1.0, "it stays charged");
}

#[test]
fn a_clock_that_is_set_takes_no_device_from_anybody_and_gives_nobody_more() {
    for by in [-90_000, 90_000] {
        let mut machine = Machine::new();
        machine.read(100_000, 0.0);
        let first = machine.give(1, 100_000.5);
        machine.read(100_001, 1.0);
        let new = |second: i64| second + by;
        machine.sink.clock_set(SignedDuration::from_secs(by));
        machine.read(new(100_002), 1.0);
        machine.end(first, new(100_003) as f64);
        machine.read(new(100_003), 1.0);
        let second = machine.give(2, new(100_003) as f64);
        machine.read(new(100_004), 1.0);
        machine.read(new(100_005), 1.0);
        for (attempt, allocated) in [(first, 2.5), (second, 2.0)] {
            let total = machine.usage_record(attempt).total();
            assert_eq!(total.allocated_seconds(), allocated, "{attempt}, {by}");
            assert_eq!(total.busy_seconds(), Some(allocated), "{attempt}, {by}");
        }
        machine.read(new(100_124), 0.0);
        assert_eq!(
            machine.watch.seen().attempts.len(),
            1,
            "{by}: it is gone after two minutes"
        );
    }
}

#[test]
fn memory_is_of_the_attempts_own_processes() {
    let mut machine = Machine::new();
    let process = |pid, memory| GpuProcess {
        pid,
        memory: Reading::Value(Bytes(memory)),
        utilization: Reading::Unsupported,
    };
    machine.processes = vec![process(std::process::id(), 1024), process(1, 2048)];
    machine.read(100, 0.0);
    let attempt = machine.give(1, 100.5);
    machine.read(101, 0.0);
    machine.read(102, 0.0);
    let usage_record = machine.usage_record(attempt);
    let peak = usage_record.devices[0].peak_memory.expect("it was read");
    assert_eq!(peak.bytes, Bytes(1024));
}

#[test]
fn while_it_cannot_be_read_who_has_what_that_is_told_and_nobody_loses_anything() {
    let mut machine = Machine::new();
    machine.read(100, 0.0);
    let attempt = machine.give(1, 100.5);
    machine.read(101, 1.0);
    fs::remove_file(machine.claim()).expect("it was given");
    fs::create_dir(machine.claim()).expect("it is ours");
    machine.read(102, 1.0);
    assert!(!machine.watch.seen().is_known);
    assert!(machine.watch.silent().is_some());
    fs::remove_dir(machine.claim()).expect("it is ours");
    machine.give(1, 100.5);
    machine.read(103, 1.0);
    assert!(machine.watch.seen().is_known);
    assert_eq!(machine.watch.silent(), None);
    assert_eq!(machine.usage_record(attempt).total().allocated_seconds(), 2.5);
}
