//! What devices read as time goes by.

use crate::{init, install, install_device};
use fake_nvml::{Device, Figures, NvLink, Scenario, Steps, a10, h200};
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, PerformancePolicy, Sampling};
use nvml_wrapper::enum_wrappers::device::{PcieUtilCounter, PerformanceState, TemperatureSensor};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id::*;

const START_US: u64 = 1_767_225_600_000_000;

fn h200_with(figures: Figures) -> Device {
    Device { figures, ..h200() }
}

#[test]
fn utilisation_is_that_of_the_step_that_time_has_reached() {
    let installed = install_device(h200_with(Figures {
        gpu_utilization_percent: Steps::of([(0.0, 0.0), (10.0, 95.0), (20.0, 5.0)]),
        memory_utilization_percent: Steps::of([(0.0, 0.0), (10.0, 40.0)]),
        ..h200().figures
    }));
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    let rows = [
        (0.0, 0, 0),
        (9.9, 0, 0),
        (10.0, 95, 40),
        (19.9, 95, 40),
        (20.0, 5, 40),
        (1e6, 5, 40),
    ];
    for (second, gpu, memory) in rows {
        installed.set_time(second);
        let rates = device.utilization_rates().unwrap();
        assert_eq!((rates.gpu, rates.memory), (gpu, memory), "at second {second}");
    }
}

#[test]
fn energy_is_the_integral_of_power_since_the_driver_was_loaded() {
    let power = Steps::of([(0.0, 100_000.0), (10.0, 600_500.0), (12.5, 80_000.0)]);
    let device = h200_with(Figures {
        power_milliwatts: power,
        ..h200().figures
    });
    let installed = install(&Scenario {
        driver_reloads: vec![100.0],
        devices: vec![device],
        ..Scenario::default()
    });
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    let rows = [
        (0.0, 0, 100_000),
        (10.0, 1_000_000, 600_500),
        (12.5, 1_000_000 + 1_501_250, 80_000),
        (13.0, 2_501_250 + 40_000, 80_000),
        (100.0, 0, 80_000),
        (101.0, 80_000, 80_000),
    ];
    for (second, millijoules, milliwatts) in rows {
        installed.set_time(second);
        assert_eq!(
            device.total_energy_consumption().unwrap(),
            millijoules,
            "at second {second}"
        );
        assert_eq!(device.power_usage().unwrap(), milliwatts, "at second {second}");
    }
}

#[test]
fn advancing_by_small_steps_comes_to_the_same_time_as_setting_it() {
    let installed = install(&Scenario::of([a10()]));
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    for _ in 0..8 {
        installed.advance(0.25);
    }
    assert_eq!(device.total_energy_consumption().unwrap(), 2 * 16_000);
}

#[test]
fn each_field_fails_or_succeeds_by_itself() {
    let installed = install(&Scenario::of([a10()]));
    installed.set_time(2.0);
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    let ids = [
        NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
        NVML_FI_DEV_MEMORY_TEMP,
        NVML_FI_DEV_POWER_INSTANT,
        NVML_FI_DEV_RETIRED_PENDING,
        NVML_FI_DEV_POWER_MAX_LIMIT,
        NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
        9999,
    ];
    let samples = device.field_values_for(&ids.map(FieldId)).unwrap();
    let samples: Vec<_> = samples.into_iter().map(Result::unwrap).collect();
    assert!(
        samples
            .iter()
            .all(|sample| sample.timestamp == (START_US + 2_000_000) as i64)
    );
    assert!(samples.iter().all(|sample| sample.latency == 5));
    let values: Vec<_> = samples.into_iter().map(|sample| sample.value).collect();
    assert!(matches!(values[0], Ok(SampleValue::U64(32_000))), "{values:?}");
    assert!(
        matches!(values[1], Err(NvmlError::NotSupported)),
        "an A10 has no sensor at its memory"
    );
    assert!(matches!(values[2], Ok(SampleValue::U32(16_000))), "{values:?}");
    assert!(
        matches!(values[3], Err(NvmlError::NotSupported)),
        "Ampere remaps rows, it retires no pages"
    );
    assert!(matches!(values[4], Ok(SampleValue::U32(150_000))), "{values:?}");
    assert!(
        matches!(values[5], Err(NvmlError::NotSupported)),
        "an A10 has no links"
    );
    assert!(matches!(values[6], Err(NvmlError::InvalidArg)), "{values:?}");
}

#[test]
fn fields_say_what_the_functions_say() {
    let figures = Figures {
        memory_temperature_celsius: Steps::constant(61.0),
        pcie_replay_counter: Steps::constant(7.0),
        ecc_corrected_volatile: Steps::constant(1.0),
        ecc_uncorrected_volatile: Steps::constant(2.0),
        ecc_corrected_aggregate: Steps::constant(3.0),
        ecc_uncorrected_aggregate: Steps::constant(4.0),
        remapped_rows_pending: Steps::constant(1.0),
        pcie_tx_bytes_per_second: Steps::constant(5e6),
        ..h200().figures
    };
    let link = NvLink {
        active: true,
        replay_errors: 3,
        ..NvLink::default()
    };
    let installed = install_device(Device {
        nvlinks: vec![link; 2],
        ..h200_with(figures)
    });
    installed.set_time(2.0);
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    let rows = [
        (NVML_FI_DEV_MEMORY_TEMP, SampleValue::U32(61)),
        (NVML_FI_DEV_PCIE_REPLAY_COUNTER, SampleValue::U32(7)),
        (NVML_FI_DEV_ECC_SBE_VOL_TOTAL, SampleValue::U64(1)),
        (NVML_FI_DEV_ECC_DBE_VOL_TOTAL, SampleValue::U64(2)),
        (NVML_FI_DEV_ECC_SBE_AGG_TOTAL, SampleValue::U64(3)),
        (NVML_FI_DEV_ECC_DBE_AGG_TOTAL, SampleValue::U64(4)),
        (NVML_FI_DEV_REMAPPED_PENDING, SampleValue::U32(1)),
        (NVML_FI_DEV_PCIE_COUNT_TX_BYTES, SampleValue::U64(10_000_000)),
        (NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, SampleValue::U64(6)),
        (NVML_FI_DEV_NVLINK_LINK_COUNT, SampleValue::U32(2)),
    ];
    let samples = device
        .field_values_for(&rows.clone().map(|row| FieldId(row.0)))
        .unwrap();
    for (sample, (id, value)) in samples.into_iter().zip(rows) {
        assert_eq!(sample.unwrap().value.unwrap(), value, "field {id}");
    }
    assert_eq!(device.pcie_replay_counter().unwrap(), 7);
    assert_eq!(device.pcie_throughput(PcieUtilCounter::Send).unwrap(), 5000);
    assert_eq!(
        device
            .total_ecc_errors(MemoryError::Uncorrected, EccCounter::Aggregate)
            .unwrap(),
        4
    );
}

#[test]
fn the_ring_has_the_mean_of_each_sixth_of_a_second() {
    // Busy for 0.3 s of each second, as the square wave that drivers are measured with.
    let wave = (0..40).flat_map(|second| [(f64::from(second), 100.0), (f64::from(second) + 0.3, 0.0)]);
    let installed = install_device(h200_with(Figures {
        gpu_utilization_percent: Steps::of(wave),
        ..h200().figures
    }));
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    installed.set_time(1.0);
    let samples = device.samples(Sampling::GpuUtilization, None).unwrap();
    let values: Vec<_> = samples.iter().map(|sample| sample.value.clone()).collect();
    assert_eq!(values, [100, 80, 0, 0, 0, 0].map(SampleValue::U32));
    assert_eq!(samples[0].timestamp, START_US + 166_667);
    assert_eq!(samples[5].timestamp, START_US + 1_000_000);

    installed.set_time(1.5);
    let newer = device
        .samples(Sampling::GpuUtilization, samples[5].timestamp)
        .unwrap();
    assert_eq!(newer.len(), 3, "only what was sampled since is told");

    installed.set_time(40.0);
    assert_eq!(
        device.samples(Sampling::GpuUtilization, None).unwrap().len(),
        100,
        "the ring keeps the newest"
    );
    let power = device.samples(Sampling::Power, None).unwrap();
    assert_eq!(power[99].value, SampleValue::U32(75_000));
}

#[test]
fn a_ring_without_samples_is_not_found() {
    let installed = install(&Scenario::of([h200()]));
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    assert!(matches!(
        device.samples(Sampling::Power, None),
        Err(NvmlError::NotFound)
    ));
}

#[test]
fn a_violation_lasts_as_long_as_its_throttle_reason() {
    let reasons = Steps::of([(0.0, 1.0), (10.0, 4.0), (12.5, 4.0 + 32.0), (15.0, 0.0)]);
    let installed = install_device(h200_with(Figures {
        throttle_reasons: reasons,
        ..h200().figures
    }));
    installed.set_time(20.0);
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    let rows = [
        (PerformancePolicy::Power, 5_000_000_000),
        (PerformancePolicy::Thermal, 2_500_000_000),
        (PerformancePolicy::SyncBoost, 0),
    ];
    for (policy, nanoseconds) in rows {
        assert_eq!(
            device.violation_status(policy).unwrap().violation_time,
            nanoseconds,
            "{policy:?}"
        );
    }
    assert_eq!(device.current_throttle_reasons().unwrap(), ThrottleReasons::NONE);
}

#[test]
fn used_free_and_reserved_memory_add_up() {
    let used = Steps::of([(0.0, 0.0), (5.0, 20e9)]);
    let installed = install_device(h200_with(Figures {
        memory_used_bytes: used,
        ..h200().figures
    }));
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    for (second, used) in [(0.0, 0), (5.0, 20_000_000_000)] {
        installed.set_time(second);
        let memory = device.memory_info().unwrap();
        assert_eq!((memory.total, memory.used), (143_771 << 20, used));
        assert_eq!(memory.free + memory.reserved + memory.used, memory.total);
    }
}

#[test]
fn an_a10_has_clocks_and_a_link_but_nothing_of_hopper() {
    let installed = install(&Scenario::of([a10()]));
    let nvml = init(&installed);
    let device = nvml.device_by_index(0).unwrap();
    assert_eq!(device.clock_info(Clock::SM).unwrap(), 210);
    assert_eq!(device.performance_state().unwrap(), PerformanceState::Eight);
    assert_eq!(device.max_clock_info(Clock::Memory).unwrap(), 6251);
    assert_eq!(device.temperature(TemperatureSensor::Gpu).unwrap(), 33);
    assert_eq!(
        (
            device.current_pcie_link_gen().unwrap(),
            device.max_pcie_link_gen().unwrap()
        ),
        (1, 4)
    );
    assert_eq!(device.enforced_power_limit().unwrap(), 150_000);
    assert!(!device.gpm_support().unwrap());
    assert!(matches!(device.gpm_sample(), Err(NvmlError::NotSupported)));
    assert!(matches!(device.mig_mode(), Err(NvmlError::NotSupported)));
    assert_eq!(device.mig_device_count().unwrap(), 0);
}
