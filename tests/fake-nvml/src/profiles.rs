//! Devices that are ready to use: idle cards with the figures of real ones.
//!
//! What a card cannot tell is missing here too. The H200's name, memory, SM and memory clocks were read on one; for
//! the other cards they are what is commonly published, and were not checked. Everything else (idle power, reserved
//! memory, VBIOS versions, subsystem ids, …) is plausible and no more, so nothing should depend on it.

use crate::scenario::{Clocks, Device, Figures, Mig, MigInstance, NvLink, Pci, PowerLimits};
use crate::steps::Steps;
use nvml_wrapper_sys::bindings::{
    NVML_DEVICE_ARCH_AMPERE, NVML_DEVICE_ARCH_HOPPER, nvmlBrandType_enum_NVML_BRAND_NVIDIA,
    nvmlEventTypeClock, nvmlEventTypeDoubleBitEccError, nvmlEventTypePState, nvmlEventTypeSingleBitEccError,
    nvmlEventTypeXidCriticalError,
};
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;

/// The metrics of GPM that there are data for: utilisation, occupancy, tensor cores, memory, FP64 to FP16, and PCIe.
const GPM_METRICS: [u32; 10] = [1, 2, 3, 5, 10, 11, 12, 13, 20, 21];
/// Received and sent over NVLink, in the whole device's metrics only.
const GPM_NVLINK_METRICS: [u32; 2] = [60, 61];

/// The A10, as GitHub runners of the CNCF have it: Ampere, so without GPM, and without a sensor at its GDDR6 memory.
pub fn a10() -> Device {
    Device {
        name: "NVIDIA A10".to_owned(),
        pci: Pci {
            pci_device_id: 0x2236_10de,
            pci_sub_system_id: 0x1482_10de,
            ..Pci::default()
        },
        vbios_version: "94.02.5C.00.03".to_owned(),
        architecture: NVML_DEVICE_ARCH_AMPERE,
        cuda_compute_capability: (8, 6),
        memory_total_bytes: 23_028 * MIB,
        memory_reserved_bytes: 512 * MIB,
        power_limits: Some(power_limits(100_000, 150_000)),
        max_clocks_mhz: Clocks {
            sm: 1695,
            memory: 6251,
            video: 1545,
        },
        max_pcie_link: Some((4, 16)),
        figures: Figures {
            power_milliwatts: Steps::constant(16_000.0),
            temperature_celsius: Steps::constant(33.0),
            performance_state: Steps::constant(8.0),
            sm_clock_mhz: Steps::constant(210.0),
            memory_clock_mhz: Steps::constant(405.0),
            pcie_link_generation: Steps::constant(1.0),
            ..idle()
        },
        ..card()
    }
    .numbered(0)
}

/// The H200: Hopper, with GPM, HBM3e, eighteen links, and MIG that is off.
pub fn h200() -> Device {
    Device {
        name: "NVIDIA H200".to_owned(),
        pci: Pci {
            pci_device_id: 0x2335_10de,
            pci_sub_system_id: 0x18be_10de,
            ..Pci::default()
        },
        vbios_version: "96.00.C1.00.01".to_owned(),
        memory_total_bytes: 143_771 * MIB,
        max_clocks_mhz: Clocks {
            sm: 1980,
            memory: 3201,
            video: 1545,
        },
        figures: Figures {
            memory_clock_mhz: Steps::constant(3201.0),
            ..idle_hopper()
        },
        ..hopper()
    }
    .numbered(0)
}

/// An H100 with 80 GB, divided into `n` instances `1g.10gb`; there is room for seven.
///
/// # Panics
///
/// Panics if there is no room for so many.
pub fn h100_with_mig(n: u32) -> Device {
    assert!(n <= 7, "an H100 has seven slices, not {n}");
    Device {
        name: "NVIDIA H100 80GB HBM3".to_owned(),
        pci: Pci {
            pci_device_id: 0x2330_10de,
            pci_sub_system_id: 0x16c1_10de,
            ..Pci::default()
        },
        vbios_version: "96.00.74.00.01".to_owned(),
        memory_total_bytes: 81_559 * MIB,
        max_clocks_mhz: Clocks {
            sm: 1980,
            memory: 2619,
            video: 1545,
        },
        figures: Figures {
            memory_clock_mhz: Steps::constant(2619.0),
            ..idle_hopper()
        },
        mig: Some(Mig {
            enabled: true,
            max_devices: 7,
            instances: (0..n).map(instance).collect(),
        }),
        ..hopper()
    }
    .numbered(0)
}

fn instance(place: u32) -> MigInstance {
    MigInstance {
        profile: "1g.10gb".to_owned(),
        // GPU instances of one slice have the numbers from 7 on.
        gpu_instance_id: 7 + place,
        memory_total_bytes: 9984 * MIB,
        memory_used_bytes: Steps::constant((12 * MIB) as f64),
        multiprocessor_count: 16,
        slice_count: 1,
        gpm: still(&GPM_METRICS),
        ..MigInstance::default()
    }
}

/// What all these cards have in common.
fn card() -> Device {
    let event_types = nvmlEventTypeSingleBitEccError
        | nvmlEventTypeDoubleBitEccError
        | nvmlEventTypePState
        | nvmlEventTypeXidCriticalError
        | nvmlEventTypeClock;
    Device {
        serial: Some(String::new()), // Its number comes with the device's.
        brand: nvmlBrandType_enum_NVML_BRAND_NVIDIA,
        ecc_enabled: Some(true),
        persistence_mode: true,
        virtualization: Some(0),
        accounting: Some(false),
        samples: true,
        supported_event_types: u64::from(event_types),
        field_latency_us: 5,
        ..Device::default()
    }
}

fn hopper() -> Device {
    Device {
        architecture: NVML_DEVICE_ARCH_HOPPER,
        cuda_compute_capability: (9, 0),
        memory_reserved_bytes: 610 * MIB,
        power_limits: Some(power_limits(200_000, 700_000)),
        max_pcie_link: Some((5, 16)),
        nvlinks: vec![
            NvLink {
                active: true,
                ..NvLink::default()
            };
            18
        ],
        mig: Some(Mig {
            enabled: false,
            max_devices: 7,
            instances: Vec::new(),
        }),
        ..card()
    }
}

fn power_limits(min: u32, max: u32) -> PowerLimits {
    PowerLimits {
        min_milliwatts: min,
        max_milliwatts: max,
        default_milliwatts: max,
        current_milliwatts: max,
    }
}

/// What these cards read while nothing runs; retired pages they do not have, being Ampere or newer.
fn idle() -> Figures {
    let none = || Steps::constant(0.0);
    Figures {
        gpu_utilization_percent: none(),
        memory_utilization_percent: none(),
        encoder_utilization_percent: none(),
        decoder_utilization_percent: none(),
        video_clock_mhz: Steps::constant(795.0),
        memory_used_bytes: none(),
        throttle_reasons: Steps::constant(1.0), // Idle.
        pcie_link_width: Steps::constant(16.0),
        pcie_replay_counter: none(),
        pcie_tx_bytes_per_second: none(),
        pcie_rx_bytes_per_second: none(),
        ecc_corrected_volatile: none(),
        ecc_corrected_aggregate: none(),
        ecc_uncorrected_volatile: none(),
        ecc_uncorrected_aggregate: none(),
        remapped_rows_correctable: none(),
        remapped_rows_uncorrectable: none(),
        remapped_rows_pending: none(),
        remapped_rows_failure: none(),
        ..Figures::default()
    }
}

fn idle_hopper() -> Figures {
    let mut gpm = still(&GPM_METRICS);
    gpm.extend(still(&GPM_NVLINK_METRICS));
    Figures {
        power_milliwatts: Steps::constant(75_000.0),
        temperature_celsius: Steps::constant(30.0),
        memory_temperature_celsius: Steps::constant(35.0),
        performance_state: Steps::constant(0.0),
        sm_clock_mhz: Steps::constant(345.0),
        pcie_link_generation: Steps::constant(5.0),
        nvlink_tx_bytes_per_second: Steps::constant(0.0),
        nvlink_rx_bytes_per_second: Steps::constant(0.0),
        gpm,
        ..idle()
    }
}

/// Metrics that read 0 all the time.
fn still(metrics: &[u32]) -> BTreeMap<u32, Steps> {
    metrics
        .iter()
        .map(|metric| (*metric, Steps::constant(0.0)))
        .collect()
}
