//! What each call of the driver costs, and each of ours that is made of them.

use std::time::Instant;

use anyhow::{Context as _, Result};
use blueproof_core::{
    metrics::Format,
    ports::{GpuProbe as _, ProbeError},
};
use blueproof_gpu::{
    nvml::NvmlProbe,
    pages::{PageInput, native},
};
use nvml_wrapper::{
    Device, Nvml,
    enum_wrappers::device::{Clock, EccCounter, MemoryError, PcieUtilCounter, Sampling, TemperatureSensor},
    error::NvmlError,
};

use super::{
    Arguments, Finding,
    table::{Table, spread},
};

/// How often each is made; the slow ones less often.
const TIMES: usize = 1000;
const TIMES_OF_SLOW: usize = 50;

type Call = (&'static str, usize, fn(&Device<'_>) -> Result<(), NvmlError>);

const CALLS: &[Call] = &[
    ("nvmlDeviceGetUUID", TIMES, |gpu| gpu.uuid().map(drop)),
    ("nvmlDeviceGetTemperature", TIMES, |gpu| {
        gpu.temperature(TemperatureSensor::Gpu).map(drop)
    }),
    ("nvmlDeviceGetPowerUsage", TIMES, |gpu| {
        gpu.power_usage().map(drop)
    }),
    ("nvmlDeviceGetTotalEnergyConsumption", TIMES, |gpu| {
        gpu.total_energy_consumption().map(drop)
    }),
    ("nvmlDeviceGetUtilizationRates", TIMES, |gpu| {
        gpu.utilization_rates().map(drop)
    }),
    ("nvmlDeviceGetEncoderUtilization", TIMES, |gpu| {
        gpu.encoder_utilization().map(drop)
    }),
    ("nvmlDeviceGetMemoryInfo_v2", TIMES, |gpu| {
        gpu.memory_info().map(drop)
    }),
    ("nvmlDeviceGetClockInfo", TIMES, |gpu| {
        gpu.clock_info(Clock::SM).map(drop)
    }),
    ("nvmlDeviceGetPcieReplayCounter", TIMES, |gpu| {
        gpu.pcie_replay_counter().map(drop)
    }),
    ("nvmlDeviceGetCurrPcieLinkGeneration", TIMES, |gpu| {
        gpu.current_pcie_link_gen().map(drop)
    }),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", TIMES, |gpu| {
        gpu.current_throttle_reasons().map(drop)
    }),
    ("nvmlDeviceGetTotalEccErrors", TIMES, |gpu| {
        gpu.total_ecc_errors(MemoryError::Corrected, EccCounter::Volatile)
            .map(drop)
    }),
    ("nvmlDeviceGetComputeRunningProcesses_v3", TIMES, |gpu| {
        gpu.running_compute_processes().map(drop)
    }),
    ("nvmlDeviceGetSamples", TIMES, |gpu| {
        gpu.samples(Sampling::GpuUtilization, None).map(drop)
    }),
    ("nvmlDeviceGetProcessUtilization", TIMES, |gpu| {
        gpu.process_utilization_stats(None).map(drop)
    }),
    ("nvmlDeviceGetPcieThroughput", TIMES_OF_SLOW, |gpu| {
        gpu.pcie_throughput(PcieUtilCounter::Send).map(drop)
    }),
];

/// Times of one call, in microseconds, and what it answered at last.
struct Timed {
    micros: Vec<f64>,
    answered: String,
}

pub(super) fn run(arguments: &Arguments) -> Result<Finding> {
    let mut table = Table::new(&["call", "times", "p50_us", "p99_us", "max_us", "answered"]);
    let library = arguments.library().as_os_str();
    let nvml = Nvml::builder().lib_path(library).init()?;
    let device = nvml.device_by_index(0).context("the first device")?;
    for (name, times, call) in CALLS {
        add(&mut table, name, &timed(*times, || call(&device)));
    }
    let ours = ours(arguments)?;
    let words = ours.iter().map(|(name, timed)| {
        let [p50, p99, _] = spread(&timed.micros).expect("it was called");
        format!("{name}: p50 {p50:.0} µs, p99 {p99:.0} µs")
    });
    let words = words.collect();
    for (name, timed) in &ours {
        add(&mut table, name, timed);
    }
    Ok(Finding::Measured(table, words))
}

fn ours(arguments: &Arguments) -> Result<Vec<(&'static str, Timed)>, ProbeError> {
    let mut probe = arguments.probe()?;
    let seen = PageInput {
        devices: Some((probe.inventory()?, probe.snapshot()?)),
        ..PageInput::default()
    };
    Ok(vec![
        ("our inventory", timed(TIMES, || probe.inventory().map(drop))),
        ("our snapshot", timed(TIMES, || probe.snapshot().map(drop))),
        ("our events", timed(TIMES, || take(&mut probe))),
        (
            "our page",
            timed(TIMES, || {
                native::render(&seen, Format::Prometheus);
                Ok::<(), NvmlError>(())
            }),
        ),
    ])
}

fn take(probe: &mut NvmlProbe) -> Result<(), ProbeError> {
    probe.events().take();
    Ok(())
}

fn timed<E: std::fmt::Display>(times: usize, mut call: impl FnMut() -> Result<(), E>) -> Timed {
    let mut answered = Ok(());
    let micros = (0..times).map(|_| {
        let began = Instant::now();
        answered = call();
        began.elapsed().as_secs_f64() * 1e6
    });
    Timed {
        micros: micros.collect(),
        answered: answered.map_or_else(|error| error.to_string(), |()| "ok".into()),
    }
}

fn add(table: &mut Table, name: &str, timed: &Timed) {
    let figures = spread(&timed.micros).expect("it was called");
    let figures = figures.map(|micros| format!("{micros:.2}"));
    let named = [name.to_owned(), timed.micros.len().to_string()];
    table.push(named.into_iter().chain(figures).chain([timed.answered.clone()]));
}
