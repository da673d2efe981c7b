//! Three machines' worth of devices in one, after a minute of work: what is recorded, and what the pages are of.
//!
//! An A10 whose power cannot be read, and which reported an error; an H200 that trains; an H100 in seven parts.

use std::{fs, sync::Arc, time::Duration};

use blueproof_core::{
    gpu::{DeviceEvent, Figure, GpuInventory, GpuSnapshot},
    ports::{EventQueue, GpuEvents, GpuProbe, ProbeError},
};
use blueproof_gpu::{nvml::NvmlProbe, recorded::Recorder};
use fake_nvml::{
    Device, Fault, Figures, Installed, NvmlReturn, Process, Scenario, Steps, Xid, a10, h100_with_mig, h200,
};
use jiff::{SignedDuration, Timestamp};

/// The second at which the devices are read.
const SECOND: i64 = 60;

/// Longer than it takes until the error is reported.
const LONG: Duration = Duration::from_secs(60);

const MIB: f64 = 1_048_576.0;

/// Returns the recording of the story.
pub(crate) fn recorded() -> String {
    let scenario = scenario();
    let library = Installed::new(&scenario).expect("the library was built beside this test");
    let path = library.path();
    let mut probe = NvmlProbe::open_library(path.as_os_str()).expect("the scenario lets it begin");
    // What performance monitors tell is between two looks, and this is the first.
    probe.snapshot().expect("it answers");
    library.set_time(60.0);
    let start = i64::try_from(scenario.starts_at_unix_seconds).expect("small");
    let at = Timestamp::from_second(start + SECOND).expect("small");
    let file = tempfile::NamedTempFile::new().expect("there is room");
    let written = file.reopen().expect("it is there");
    let mut recorder = Recorder::new(InTheStory { probe, at }, written);
    recorder.inventory().expect("it answers");
    recorder.snapshot().expect("it answers");
    recorder.events().take();
    assert!(recorder.failure().is_none());
    fs::read_to_string(file.path()).expect("it is text")
}

fn scenario() -> Scenario {
    let mut scenario = Scenario::of([faulty(), training(), divided()]);
    scenario.faults = vec![Fault::always(
        "nvmlDeviceGetPowerUsage",
        Some(0),
        NvmlReturn::Unknown,
    )];
    scenario
}

fn faulty() -> Device {
    let idle = a10();
    Device {
        xids: vec![Xid {
            at: 45.0,
            code: 31,
            mig: None,
        }],
        figures: Figures {
            gpu_utilization_percent: Steps::of([(0.0, 0.0), (30.0, 100.0), (45.0, 0.0)]),
            temperature_celsius: Steps::of([(0.0, 33.0), (30.0, 71.0)]),
            ..idle.figures
        },
        ..idle
    }
}

fn training() -> Device {
    let mut device = h200();
    for (metric, value) in [
        (1, 80.0),
        (2, 75.0),
        (3, 40.0),
        (5, 50.0),
        (10, 25.0),
        (20, 1500.0),
        (21, 250.0),
    ] {
        device.figures.gpm.insert(metric, Steps::constant(value));
    }
    device.processes = vec![Process {
        pid: 4001,
        name: "python3".into(),
        begin: 5.0,
        memory_used_bytes: Steps::constant(39_000.0 * MIB),
        sm_utilization_percent: Steps::constant(87.0),
        ..Process::default()
    }];
    Device {
        figures: Figures {
            gpu_utilization_percent: Steps::constant(87.0),
            memory_utilization_percent: Steps::constant(41.0),
            encoder_utilization_percent: Steps::constant(5.0),
            decoder_utilization_percent: Steps::constant(7.0),
            power_milliwatts: Steps::constant(312_450.0),
            temperature_celsius: Steps::constant(58.0),
            memory_temperature_celsius: Steps::constant(61.0),
            sm_clock_mhz: Steps::constant(1755.0),
            memory_used_bytes: Steps::constant(40_000.0 * MIB),
            pcie_replay_counter: Steps::constant(3.0),
            remapped_rows_correctable: Steps::constant(2.0),
            remapped_rows_uncorrectable: Steps::constant(1.0),
            ..device.figures
        },
        ..device
    }
}

fn divided() -> Device {
    let mut device = h100_with_mig(7);
    let parts = device.mig.iter_mut().flat_map(|mig| &mut mig.instances);
    for (part, place) in parts.zip(1..) {
        let place = f64::from(place);
        part.memory_used_bytes = Steps::constant(1000.0 * place * MIB);
        part.gpm.insert(5, Steps::constant(10.0 * place));
    }
    device
}

/// A probe whose clock is the story's.
struct InTheStory {
    probe: NvmlProbe,
    at: Timestamp,
}

impl GpuProbe for InTheStory {
    fn inventory(&mut self) -> Result<GpuInventory, ProbeError> {
        self.probe.inventory()
    }

    fn snapshot(&mut self) -> Result<GpuSnapshot, ProbeError> {
        let mut first = self.probe.snapshot()?;
        // The monitors want their looks a tenth of a second of real time apart; the rest is told by the first.
        let mut last = first.clone();
        for _ in 0..100_000 {
            if knows_what_was_done(&last) {
                break;
            }
            last = self.probe.snapshot()?;
        }
        assert!(knows_what_was_done(&last), "a tenth of a second goes by");
        for (sample, last) in first.samples.iter_mut().zip(last.samples) {
            sample.readings.extend(last.readings);
        }
        Ok(GpuSnapshot {
            at: self.at,
            took: SignedDuration::from_millis(4),
            ..first
        })
    }

    fn events(&mut self) -> Arc<dyn GpuEvents> {
        let (events, told) = (self.probe.events(), EventQueue::default());
        events.wait(LONG);
        for device in events.listened_to() {
            told.listen(device);
        }
        for event in events.take() {
            told.push(DeviceEvent { at: self.at, ..event });
        }
        Arc::new(told)
    }
}

fn knows_what_was_done(snapshot: &GpuSnapshot) -> bool {
    let mut samples = snapshot.samples.iter();
    samples.any(|sample| sample.readings.value(Figure::TensorActive).is_some())
}
