//! What dcgm-exporter shows by default, field by field, and where it is on our page.
//!
//! The fields are those that `etc/default-counters.csv` enables (NVIDIA/dcgm-exporter d5e5f51). The values are those of the
//! story's H200 in DCGM's units; what its driver says is in other ones, such as milliwatts, so that a unit that is wrong is seen.

use std::collections::BTreeSet;

use blueproof_gpu::pages::dcgm;

use crate::{page::Labels, parsed};

/// The labels of every series of a whole device, with the names of before May 2026, as our program has them by default.
const LABELS: [&str; 7] = [
    "gpu",
    "UUID",
    "pci_bus_id",
    "device",
    "modelName",
    "Hostname",
    "DCGM_FI_DRIVER_VERSION",
];

/// The labels that a part of a device has beside those.
const OF_PARTS: [&str; 2] = ["GPU_I_PROFILE", "GPU_I_ID"];

/// A field of DCGM's.
struct Field {
    name: &'static str,
    kind: &'static str,
    /// The unit, as both helps have it; empty is a count, a share or a flag.
    unit: &'static str,
    on_page: OnPage,
}

/// Where it is on our page.
enum OnPage {
    /// It is a metric, and this its value of the H200.
    Metric(f64),
    /// It is a metric with labels of its own.
    Labelled(f64, &'static [&'static str]),
    /// It is a label of all metrics.
    Label(&'static str),
    /// It is not there, and why.
    Absent(&'static str),
}

use OnPage::{Absent, Label, Labelled, Metric};

const fn field(name: &'static str, kind: &'static str, unit: &'static str, on_page: OnPage) -> Field {
    Field {
        name,
        kind,
        unit,
        on_page,
    }
}

const FIELDS: [Field; 26] = [
    field("DCGM_FI_DEV_SM_CLOCK", "gauge", "MHz", Metric(1755.0)),
    field("DCGM_FI_DEV_MEM_CLOCK", "gauge", "MHz", Metric(3201.0)),
    field("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "C", Metric(61.0)),
    field("DCGM_FI_DEV_GPU_TEMP", "gauge", "C", Metric(58.0)),
    field("DCGM_FI_DEV_POWER_USAGE", "gauge", "W", Metric(312.45)),
    field(
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "counter",
        "mJ",
        Metric(18_747_000.0),
    ),
    field("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "", Metric(3.0)),
    field("DCGM_FI_DEV_GPU_UTIL", "gauge", "%", Metric(87.0)),
    field("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "%", Metric(41.0)),
    field("DCGM_FI_DEV_ENC_UTIL", "gauge", "%", Metric(5.0)),
    field("DCGM_FI_DEV_DEC_UTIL", "gauge", "%", Metric(7.0)),
    field(
        "DCGM_FI_DEV_XID_ERRORS",
        "gauge",
        "",
        Labelled(0.0, &["err_code", "err_msg"]),
    ),
    field("DCGM_FI_DEV_FB_FREE", "gauge", "MiB", Metric(103_161.0)),
    field("DCGM_FI_DEV_FB_USED", "gauge", "MiB", Metric(40_000.0)),
    field("DCGM_FI_DEV_FB_RESERVED", "gauge", "MiB", Metric(610.0)),
    field(
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
        "counter",
        "",
        Absent("its unit differs from version to version of DCGM"),
    ),
    field(
        "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
        "gauge",
        "",
        Absent("licences of virtual GPUs are asked of DCGM's own module"),
    ),
    field(
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "counter",
        "",
        Metric(1.0),
    ),
    field(
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
        "counter",
        "",
        Metric(2.0),
    ),
    field("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "", Metric(0.0)),
    field("DCGM_FI_DRIVER_VERSION", "label", "", Label("580.159.03")),
    field("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "", Metric(0.8)),
    field("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "", Metric(0.5)),
    field("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "", Metric(0.25)),
    // The driver tells 1500 and 250 MiB per second.
    field(
        "DCGM_FI_PROF_PCIE_TX_BYTES",
        "gauge",
        "bytes per second",
        Metric(1_572_864_000.0),
    ),
    field(
        "DCGM_FI_PROF_PCIE_RX_BYTES",
        "gauge",
        "bytes per second",
        Metric(262_144_000.0),
    ),
];

fn names(labels: &Labels) -> BTreeSet<&str> {
    labels.keys().map(String::as_str).collect()
}

fn is_the_h200(labels: &Labels) -> bool {
    labels["gpu"] == "1" && !labels.contains_key("GPU_I_ID")
}

#[test]
fn every_default_field_of_dcgm_exporter_is_there_as_it_has_it_or_absent_for_a_reason() {
    let page = parsed("dcgm");
    for Field {
        name,
        kind,
        unit,
        on_page,
    } in FIELDS
    {
        let (value, own) = match on_page {
            Metric(value) => (value, [].as_slice()),
            Labelled(value, own) => (value, own),
            Absent(why) => {
                let mut known = dcgm::families();
                assert!(!known.any(|known| known.name == name), "{name} is there: {why}");
                continue;
            }
            Label(value) => {
                let of_dcgm = page.families.iter().filter(|(name, _)| name.starts_with("DCGM_"));
                let mut series = of_dcgm.flat_map(|(_, family)| family.series.keys());
                assert!(series.all(|labels| labels[name] == value), "{name}");
                continue;
            }
        };
        let family = page
            .families
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not there"));
        assert_eq!(family.kind, kind, "{name}");
        assert!(
            unit.is_empty() || family.help.ends_with(&format!("(in {unit})")),
            "{name} in {unit}: {}",
            family.help
        );
        let mut series = family.series.iter();
        let (labels, read) = series
            .find(|(labels, _)| is_the_h200(labels))
            .unwrap_or_else(|| panic!("{name} of the H200"));
        assert!(
            (read - value).abs() <= 1e-9 * value.abs(),
            "{name}: {read}, not {value}"
        );
        let expected: BTreeSet<_> = LABELS.iter().chain(own).copied().collect();
        assert_eq!(names(labels), expected, "{name}");
    }
}

#[test]
fn without_a_file_of_counters_there_is_no_field_that_dcgm_exporter_does_not_show_by_default() {
    let page = parsed("dcgm");
    let of_dcgm = page.families.keys().filter(|name| name.starts_with("DCGM_"));
    let extra: Vec<_> = of_dcgm
        .filter(|shown| FIELDS.iter().all(|field| field.name != shown.as_str()))
        .collect();
    assert!(extra.is_empty(), "{extra:?}");
}

#[test]
fn parts_have_the_labels_of_their_device_and_their_own() {
    let page = parsed("dcgm");
    let expected: BTreeSet<_> = LABELS.into_iter().chain(OF_PARTS).collect();
    for name in ["DCGM_FI_DEV_FB_USED", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"] {
        let parts = page.families[name].series.keys();
        let parts: Vec<_> = parts.filter(|labels| labels.contains_key("GPU_I_ID")).collect();
        assert_eq!(parts.len(), 7, "{name}");
        for labels in parts {
            assert_eq!(names(labels), expected, "{name}");
            assert_eq!(
                (labels["gpu"].as_str(), labels["GPU_I_PROFILE"].as_str()),
                ("2", "1g.10gb")
            );
        }
    }
}
