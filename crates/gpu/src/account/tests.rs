//! Traces whose sums are made by hand. The device of each is called `GPU-1`, and time begins at 0 s.

mod device_totals;
mod edges;
mod figures;
mod gaps;
mod parts;
mod shared;
mod summary;

use blueproof_core::{
    domain::{Bytes, GpuUse},
    gpu::{
        BusySample, DeviceEvent, DeviceUuid, Fault, FaultKind, Figure, GpuProcess, GpuSnapshot, Reading,
        Readings, Sample,
    },
};
use jiff::{SignedDuration, Timestamp};

use super::*;

const GPU: &str = "GPU-1";

/// A ledger that is told of whole devices and of what was read of them, by name and in seconds.
struct Told(Ledger);

impl Told {
    /// Returns one whose devices are meant to be read each second.
    fn new() -> Self {
        Self(Ledger::new(SignedDuration::from_secs(1)))
    }

    fn hold(&mut self, seconds: f64, holder: &str) {
        self.0.hold(at(seconds), &named(holder), &[device(GPU)]);
    }

    fn release(&mut self, seconds: f64, holder: &str) {
        self.0.release(at(seconds), &named(holder));
    }

    fn read(&mut self, seconds: f64, samples: impl Into<Vec<Sample>>) {
        self.0.observe(&GpuSnapshot {
            at: at(seconds),
            took: SignedDuration::ZERO,
            samples: samples.into(),
        });
    }

    fn report(&mut self, seconds: f64, xid: u64) {
        self.0.report_event(&DeviceEvent {
            at: at(seconds),
            device: device(GPU),
            xid,
        });
    }

    /// Returns what a holder is charged with on the one device that it had.
    fn usage_record(&self, holder: &str) -> DeviceUsage {
        let usage_record = self.0.usage_record(&named(holder)).expect("it held something");
        let [device] = <[DeviceUsage; 1]>::try_from(usage_record.devices).expect("it held one device");
        self.check();
        device
    }

    fn device_totals(&self) -> DeviceTotals {
        self.check();
        self.0.device_totals(&device(GPU)).expect("it was heard of")
    }

    /// Nothing is lost, and nothing is charged twice.
    fn check(&self) {
        for device in self.0.devices() {
            let device_totals = self.0.device_totals(device).expect("it was heard of");
            assert_eq!(device_totals.divided(), device_totals.total, "{device}");
        }
    }
}

/// Returns a sample in which nothing was read: the device knows nothing.
fn sample() -> Sample {
    Sample {
        device: device(GPU),
        partition: None,
        readings: Readings::default(),
        processes: Reading::Unsupported,
        busy: Reading::Unsupported,
    }
}

/// Returns a sample of a device that does not answer any more.
fn lost() -> Sample {
    let mut sample = sample();
    for figure in Figure::ALL {
        sample.readings.set(*figure, failed());
    }
    sample.processes = failed();
    sample.busy = failed();
    sample
}

fn failed<T>() -> Reading<T> {
    Reading::Failed(Fault::new(FaultKind::Lost, "GPU_IS_LOST"))
}

/// What a sample may say more.
trait Saying: Sized {
    /// What the driver's own samples say: when each period ended, and how busy the device was in it.
    fn busy(self, samples: &[(f64, f64)]) -> Self;
    fn figure(self, figure: Figure, value: f64) -> Self;
    /// Processes by number, with their memory in bytes and in which share of the time they ran.
    fn processes(self, processes: &[(u32, u64, f64)]) -> Self;

    fn joules(self, joules: f64) -> Self {
        self.figure(Figure::Energy, joules)
    }
}

impl Saying for Sample {
    fn busy(mut self, samples: &[(f64, f64)]) -> Self {
        let samples = samples.iter().map(|&(seconds, utilization)| BusySample {
            at: at(seconds),
            utilization,
        });
        self.busy = Reading::Value(samples.collect());
        self
    }

    fn figure(mut self, figure: Figure, value: f64) -> Self {
        self.readings.set(figure, Reading::Value(value));
        self
    }

    fn processes(mut self, processes: &[(u32, u64, f64)]) -> Self {
        let processes = processes.iter().map(|&(pid, memory, utilization)| GpuProcess {
            pid,
            memory: Reading::Value(Bytes(memory)),
            utilization: Reading::Value(utilization),
        });
        self.processes = Reading::Value(processes.collect());
        self
    }
}

fn at(seconds: f64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs_f64(seconds)
}

fn named(holder: &str) -> Holder {
    Holder(holder.to_owned())
}

fn device(uuid: &str) -> DeviceUuid {
    DeviceUuid(uuid.to_owned())
}

/// Returns allocated and busy seconds, and joules.
fn sums(amounts: Amounts) -> (f64, Option<f64>, Option<f64>) {
    (
        amounts.allocated_seconds(),
        amounts.busy_seconds(),
        amounts.joules(),
    )
}

fn coverage(usage_record: &DeviceUsage) -> (f64, f64, f64) {
    let seen = usage_record.amounts.coverage().expect("it had time");
    (seen.busy, seen.energy, seen.memory)
}
