//! Whether the fake driver has all that our probe asks a driver, and was itself tested with it.

use std::{collections::BTreeSet, sync::Arc};

use blueproof_core::{
    gpu::{Figure, Reading, Sample},
    ports::GpuProbe,
};
use blueproof_gpu::nvml::NvmlProbe;
use fake_nvml::{DRIVEN, Device, Figures, Installed, Process, Scenario, Steps, a10, h100_with_mig, h200};

/// Cards that have every figure between them: pages are retired on those that are older than Ampere.
fn scenario() -> Scenario {
    let old = a10();
    let old = Device {
        figures: Figures {
            retired_pages_single_bit: Steps::constant(0.0),
            retired_pages_double_bit: Steps::constant(0.0),
            retired_pages_pending: Steps::constant(0.0),
            ..old.figures
        },
        processes: vec![Process::default()],
        ..old
    };
    Scenario::of([old, h200(), h100_with_mig(1)])
}

/// Reads all that there is, until performance monitors tell something, too.
fn read_all(installed: &Installed) -> Vec<Sample> {
    let path = installed.path();
    let probe = NvmlProbe::open_library(path.as_os_str()).expect("the scenario lets it begin");
    let mut probe = probe.counting_pcie().counting_policies(Arc::new(true.into()));
    probe.snapshot().expect("they answer");
    installed.set_time(1.0);
    probe.inventory().expect("they answer");
    probe.events().take();
    let snapshots = std::iter::repeat_with(|| probe.snapshot().expect("they answer").samples);
    let is_whole = |samples: &Vec<Sample>| {
        samples
            .iter()
            .any(|sample| sample.readings.value(Figure::TensorActive).is_some())
    };
    let mut snapshots = snapshots.take(100_000);
    snapshots.find(is_whole).expect("a tenth of a second goes by")
}

#[test]
fn the_fake_driver_was_tested_with_every_function_that_the_probe_calls() {
    let installed = Installed::new(&scenario()).expect("the library was built beside this test");
    read_all(&installed);
    let driven: BTreeSet<_> = DRIVEN.iter().map(ToString::to_string).collect();
    let unknown: Vec<_> = installed.called().difference(&driven).cloned().collect();
    assert_eq!(
        unknown, [""; 0],
        "drive these through nvml-wrapper in tests/fake-nvml/tests/nvml/driven.rs, and add them to DRIVEN"
    );
}

#[test]
fn the_fake_driver_lacks_no_function_that_the_probe_calls() {
    let installed = Installed::new(&scenario()).expect("the library was built beside this test");
    let samples = read_all(&installed);
    // A function that a library lacks reads as a figure that no card has.
    for figure in Figure::ALL {
        let values = samples.iter().map(|sample| sample.readings.value(*figure));
        assert_ne!(values.flatten().count(), 0, "{figure:?}");
    }
    for sample in &samples {
        assert!(
            matches!(sample.processes, Reading::Value(_)),
            "processes of {sample:?}"
        );
    }
    let [old, ..] = &samples[..] else {
        panic!("there are three");
    };
    assert!(matches!(old.busy, Reading::Value(_)), "{old:?}");
}
