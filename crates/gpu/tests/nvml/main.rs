//! NVIDIA's devices through the unmodified wrapper and a library that answers from a scenario.

mod hanging;
mod left_out;

use std::{
    thread,
    time::{Duration, Instant},
};

use blueproof_core::{
    domain::Bytes,
    gpu::{DeviceEvent, FaultKind, Figure, GpuSnapshot, Reading, Sample},
    ports::{GpuProbe, ProbeErrorKind},
    testing::contract::probe_keeps_its_promises,
};
use blueproof_gpu::nvml::NvmlProbe;
use fake_nvml::{
    Delay, Device, Fault, Figures, Installed, NvmlReturn, Process, ProcessKind, Scenario, Steps, Xid, a10,
    h100_with_mig, h200,
};

const MIB: u64 = 1 << 20;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn install(devices: impl IntoIterator<Item = Device>) -> Installed {
    install_scenario(&Scenario::of(devices))
}

fn install_scenario(scenario: &Scenario) -> Installed {
    Installed::new(scenario).expect("the library was built beside this test")
}

fn open(installed: &Installed) -> NvmlProbe {
    NvmlProbe::open_library(installed.path().as_os_str()).expect("the scenario lets it begin")
}

/// Waits for what is reported next.
fn next(probe: &mut NvmlProbe) -> Vec<DeviceEvent> {
    let events = probe.events();
    events.wait(LONG);
    events.take()
}

fn value(sample: &Sample, figure: Figure) -> f64 {
    let reading = sample.readings.get(figure);
    reading
        .clone()
        .value()
        .unwrap_or_else(|| panic!("{figure:?} is {reading:?}"))
}

fn fault(function: &str, device: Option<usize>, returns: NvmlReturn) -> Fault {
    Fault::always(function, device, returns)
}

fn busy_a10() -> Device {
    let idle = a10();
    Device {
        figures: Figures {
            gpu_utilization_percent: Steps::constant(37.0),
            memory_utilization_percent: Steps::constant(12.0),
            power_milliwatts: Steps::constant(123_456.0),
            temperature_celsius: Steps::constant(61.0),
            sm_clock_mhz: Steps::constant(1695.0),
            memory_used_bytes: Steps::constant(5.0 * 1024.0 * 1_048_576.0),
            ..idle.figures
        },
        ..idle
    }
}

#[test]
fn it_keeps_the_promises_of_the_port() {
    let installed = install([a10(), h200(), h100_with_mig(2)]);
    probe_keeps_its_promises(&mut open(&installed));
}

#[test]
fn devices_are_told_with_who_they_are_and_their_parts() {
    let installed = install([a10(), h100_with_mig(2)]);
    let inventory = open(&installed).inventory().expect("they answer");
    let [whole, divided] = &inventory.devices[..] else {
        panic!("there are two: {inventory:?}");
    };
    assert_eq!((whole.index, whole.model.as_str()), (0, "NVIDIA A10"));
    assert_eq!(whole.memory, Reading::Value(Bytes(23_028 * MIB)));
    assert!(whole.uuid.0.starts_with("GPU-"), "{}", whole.uuid);
    assert!(whole.partitions.is_empty());
    assert_eq!(divided.is_partitioned, Reading::Value(true));
    let parts: Vec<_> = divided
        .partitions
        .iter()
        .map(|part| {
            (
                part.profile.clone(),
                part.gpu_instance.clone(),
                part.compute_instance.clone(),
            )
        })
        .collect();
    let part = |instance| {
        let profile = Reading::Value("1g.10gb".to_owned());
        (profile, Reading::Value(instance), Reading::Value(0))
    };
    assert_eq!(parts, [part(7), part(8)]);
    assert!(inventory.driver_version.is_some());
}

#[test]
fn a_device_says_whether_it_is_seen_from_a_virtual_machine() {
    for (mode, expected) in [
        (Some(0), Reading::Value(false)),
        (Some(1), Reading::Value(true)),
        (Some(2), Reading::Value(true)),
        (Some(3), Reading::Value(false)),
        (None, Reading::Unsupported),
    ] {
        let mut device = a10();
        device.virtualization = mode;
        let installed = install([device]);
        let inventory = open(&installed).inventory().expect("it answers");
        assert_eq!(inventory.devices[0].is_virtual, expected, "{mode:?}");
    }
}

#[test]
fn who_a_device_is_is_asked_once_and_how_it_is_divided_each_time() {
    let installed = install([a10(), h100_with_mig(2)]);
    let mut probe = open(&installed);
    let first = probe.inventory().expect("they answer");
    let asked = |function| installed.calls(function);
    let functions = [
        "nvmlDeviceGetName",
        "nvmlDeviceGetSerial",
        "nvmlDeviceGetComputeInstanceId",
    ];
    let before = functions.map(asked);
    assert_eq!(probe.inventory().expect("they answer"), first);
    assert_eq!(functions.map(asked), before);

    let divided_anew = Scenario::of([a10(), h100_with_mig(3)]);
    installed
        .replace_scenario(&divided_anew)
        .expect("it can be written");
    let second = probe.inventory().expect("they answer");
    assert_eq!(second.devices[1].partitions.len(), 3);
    assert_eq!(second.devices[1].partitions[..2], first.devices[1].partitions[..]);
    let [_, _, instances] = functions.map(asked);
    assert_eq!(
        instances,
        before[2] + 1,
        "only the part that is new is asked what it is"
    );

    let whole_again = Scenario::of([a10(), h100_with_mig(0)]);
    installed
        .replace_scenario(&whole_again)
        .expect("it can be written");
    assert_eq!(probe.inventory().expect("they answer").devices[1].partitions, []);
}

#[test]
fn a_device_in_the_place_of_another_is_asked_who_it_is() {
    let installed = install([a10()]);
    let mut probe = open(&installed);
    let mut scenario = Scenario::of([a10(), h200()]);
    scenario.devices.remove(0);
    installed.replace_scenario(&scenario).expect("it can be written");
    let inventory = probe.inventory().expect("it answers");
    assert_eq!(inventory.devices[0].model, "NVIDIA H200");
}

#[test]
fn what_could_not_be_read_of_a_device_is_asked_for_again() {
    let mut scenario = Scenario::of([a10()]);
    scenario.faults = vec![Fault {
        to: Some(5.0),
        ..fault("nvmlDeviceGetSerial", Some(0), NvmlReturn::Unknown)
    }];
    let installed = install_scenario(&scenario);
    let mut probe = open(&installed);
    let serial = |probe: &mut NvmlProbe| {
        let inventory = probe.inventory().expect("it answers");
        inventory.devices[0].serial.clone()
    };
    assert!(serial(&mut probe).fault().is_some());
    installed.set_time(6.0);
    assert!(serial(&mut probe).value().is_some());
}

#[test]
fn figures_are_in_base_units() {
    let installed = install([busy_a10()]);
    let mut probe = open(&installed);
    installed.set_time(10.0);
    let snapshot = probe.snapshot().expect("it answers");
    let [sample] = &snapshot.samples[..] else {
        panic!("there is one: {snapshot:?}");
    };
    for (figure, expected) in [
        (Figure::Utilization, 0.37),
        (Figure::MemoryUtilization, 0.12),
        (Figure::Power, 123.456),
        (Figure::Energy, 1234.56),
        (Figure::Temperature, 61.0),
        (Figure::SmClock, 1.695e9),
        (Figure::MemoryTotal, 23_028.0 * 1_048_576.0),
        (Figure::MemoryUsed, 5.0 * 1024.0 * 1_048_576.0),
        (Figure::RowRemapFailure, 0.0),
        (Figure::HardwareSlowdown, 0.0),
    ] {
        assert!(
            (value(sample, figure) - expected).abs() < 1e-9 * expected.max(1.0),
            "{figure:?}"
        );
    }
}

#[test]
fn what_a_card_does_not_have_is_unsupported_and_not_zero() {
    let installed = install([a10()]);
    let snapshot = open(&installed).snapshot().expect("it answers");
    let sample = &snapshot.samples[0];
    for figure in [
        Figure::MemoryTemperature,
        Figure::TensorActive,
        Figure::SmActive,
        Figure::PcieSent,
    ] {
        assert_eq!(sample.readings.get(figure), Reading::Unsupported, "{figure:?}");
    }
    assert_eq!(sample.readings.faults().count(), 0, "{:?}", sample.readings);
}

#[test]
fn a_device_that_is_lost_leaves_its_neighbour_as_it_was() {
    let mut scenario = Scenario::of([a10(), busy_a10().numbered(1)]);
    scenario.faults = vec![Fault {
        from: 5.0,
        ..fault("*", Some(0), NvmlReturn::GpuIsLost)
    }];
    let installed = install_scenario(&scenario);
    let mut probe = open(&installed);
    let before = probe.inventory().expect("both answer");
    installed.set_time(6.0);
    assert_eq!(
        probe.inventory().expect("one answers"),
        before,
        "it is known who is lost"
    );
    let snapshot = probe.snapshot().expect("one answers");
    let [lost, well] = &snapshot.samples[..] else {
        panic!("both are told of: {snapshot:?}");
    };
    assert_eq!(lost.device, before.devices[0].uuid);
    let reading = lost.readings.get(Figure::Power);
    assert_eq!(
        reading.fault().map(|fault| fault.kind),
        Some(FaultKind::Lost),
        "{reading:?}"
    );
    assert_eq!(
        reading.fault().map(|fault| fault.word.as_str()),
        Some("GPU_IS_LOST")
    );
    assert!(lost.readings.iter().all(|(_, reading)| reading.fault().is_some()));
    assert!((value(well, Figure::Utilization) - 0.37).abs() < 1e-9);
    assert_eq!(well.readings.faults().count(), 0);
}

#[test]
fn how_busy_a_device_was_is_told_once_and_in_full() {
    let mut device = a10();
    device.figures.gpu_utilization_percent = Steps::of([(0.0, 0.0), (2.0, 100.0), (4.0, 0.0)]);
    let installed = install([device]);
    let mut probe = open(&installed);
    let mut told = Vec::new();
    for second in 1..=6 {
        installed.set_time(f64::from(second));
        let snapshot = probe.snapshot().expect("it answers");
        told.extend(
            snapshot.samples[0]
                .busy
                .clone()
                .value()
                .expect("an A10 remembers"),
        );
    }
    assert!(
        told.is_sorted_by(|a, b| a.at < b.at),
        "each period is told once: {told:?}"
    );
    let busy: f64 = told
        .windows(2)
        .map(|pair| pair[1].at.duration_since(pair[0].at).as_secs_f64() * pair[1].utilization)
        .sum();
    assert!((busy - 2.0).abs() < 0.01, "it ran for two seconds, not {busy}");
    let again = probe.snapshot().expect("it answers");
    assert_eq!(again.samples[0].busy, Reading::Value(Vec::new()));
}

#[test]
fn whoever_uses_a_device_is_told_with_memory_and_share() {
    let mut device = a10();
    device.processes = vec![Process {
        pid: 4242,
        begin: 1.0,
        memory_used_bytes: Steps::constant(1_073_741_824.0),
        sm_utilization_percent: Steps::constant(40.0),
        ..Process::default()
    }];
    let installed = install([device]);
    let mut probe = open(&installed);
    let idle = probe.snapshot().expect("it answers");
    assert_eq!(
        idle.samples[0].processes,
        Reading::Value(Vec::new()),
        "nobody is there yet"
    );
    installed.set_time(3.0);
    let used = probe.snapshot().expect("it answers");
    let processes = used.samples[0].processes.clone().value().expect("it can tell");
    let [process] = &processes[..] else {
        panic!("there is one: {processes:?}");
    };
    assert_eq!(
        (process.pid, &process.memory),
        (4242, &Reading::Value(Bytes(1 << 30)))
    );
    assert!((process.utilization.clone().value().expect("it is known") - 0.4).abs() < 0.05);
    installed.set_time(3.01);
    let again = probe.snapshot().expect("it answers");
    assert_eq!(
        again.samples[0].processes, used.samples[0].processes,
        "the driver has no newer sample, which is no word of a process that rests"
    );
}

#[test]
fn parts_have_memory_of_their_own_and_no_utilization() {
    let installed = install([h100_with_mig(2)]);
    let mut probe = open(&installed);
    let inventory = probe.inventory().expect("it answers");
    let snapshot = probe.snapshot().expect("it answers");
    let parts: Vec<_> = snapshot
        .samples
        .iter()
        .filter(|sample| sample.partition.is_some())
        .collect();
    let uuids: Vec<_> = inventory.devices[0]
        .partitions
        .iter()
        .map(|part| Some(part.uuid.clone()))
        .collect();
    assert_eq!(
        parts
            .iter()
            .map(|sample| sample.partition.clone())
            .collect::<Vec<_>>(),
        uuids
    );
    for part in parts {
        assert!((value(part, Figure::MemoryTotal) - 9984.0 * 1_048_576.0).abs() < 1.0);
        assert_eq!(part.readings.get(Figure::Utilization), Reading::Unsupported);
    }
}

#[test]
fn performance_monitors_tell_what_was_done_between_two_looks() {
    let mut device = h200();
    device.figures.gpm.insert(5, Steps::constant(50.0));
    let installed = install([device]);
    let mut probe = open(&installed);
    let first = probe.snapshot().expect("it answers");
    assert_eq!(
        first.samples[0].readings.get(Figure::TensorActive),
        Reading::Unsupported,
        "one look is none"
    );
    let mut second = 0.0;
    let active = |snapshot: &GpuSnapshot| snapshot.samples[0].readings.value(Figure::TensorActive);
    // Looks that are too close together say nothing.
    let told = std::iter::repeat_with(|| {
        second += 1.0;
        installed.set_time(second);
        active(&probe.snapshot().expect("it answers"))
    });
    let told = told
        .take(100_000)
        .flatten()
        .next()
        .expect("a tenth of a second goes by");
    assert!((told - 0.5).abs() < 1e-6, "{told}");
    // Of two who look at nearly the same time the second is told the same.
    installed.set_time(second + 1.0);
    let again = active(&probe.snapshot().expect("it answers"));
    assert_eq!(again, Some(told));
}

#[test]
fn errors_are_told_once_and_of_their_device() {
    let mut devices = [a10(), a10().numbered(1)];
    devices[1].xids = vec![Xid {
        at: 5.0,
        code: 79,
        mig: None,
    }];
    let installed = install(devices);
    let mut probe = open(&installed);
    let inventory = probe.inventory().expect("they answer");
    assert_eq!(probe.events().take(), []);
    installed.set_time(6.0);
    let events = next(&mut probe);
    let told: Vec<_> = events
        .iter()
        .map(|event| (event.device.clone(), event.xid))
        .collect();
    assert_eq!(told, [(inventory.devices[1].uuid.clone(), 79)]);
    assert_eq!(probe.events().take(), []);
}

#[test]
fn a_device_that_cannot_be_listened_to_leaves_the_others_heard() {
    let mut devices = [a10(), a10().numbered(1)];
    devices[1].xids = vec![Xid {
        at: 5.0,
        code: 31,
        mig: None,
    }];
    let mut scenario = Scenario::of(devices);
    scenario.faults = vec![fault(
        "nvmlDeviceRegisterEvents",
        Some(0),
        NvmlReturn::NotSupported,
    )];
    let installed = install_scenario(&scenario);
    let mut probe = open(&installed);
    installed.set_time(6.0);
    assert_eq!(next(&mut probe).len(), 1);
}

#[test]
fn why_nothing_can_be_read_is_one_of_a_few_reasons() {
    for (returns, reason) in [
        (NvmlReturn::DriverNotLoaded, ProbeErrorKind::DriverNotLoaded),
        (NvmlReturn::NoPermission, ProbeErrorKind::NoPermission),
        (NvmlReturn::LibRmVersionMismatch, ProbeErrorKind::VersionMismatch),
        (NvmlReturn::Unknown, ProbeErrorKind::DriverError),
    ] {
        let mut scenario = Scenario::of([a10()]);
        scenario.faults = vec![fault("nvmlInit_v2", None, returns)];
        let installed = install_scenario(&scenario);
        let error = NvmlProbe::open_library(installed.path().as_os_str())
            .err()
            .expect("it cannot begin");
        assert_eq!(error.reason, reason, "{error:?}");
        assert!(!error.diagnostic.hints.is_empty(), "{error:?}");
    }
    let nowhere = NvmlProbe::open_library("no-such-library.so.1".as_ref())
        .err()
        .expect("it is not there");
    assert_eq!(nowhere.reason, ProbeErrorKind::LibraryMissing);
}

#[test]
fn a_probe_that_is_dropped_leaves_the_driver_closed() {
    let installed = install([a10(), h100_with_mig(2)]);
    for times in 1..=2 {
        let mut probe = open(&installed);
        probe.inventory().expect("they answer");
        probe.snapshot().expect("they answer");
        assert_eq!(installed.calls("nvmlShutdown"), times - 1, "it is in use");
        drop(probe);
        let dropped = Instant::now();
        // Whoever waits for events notices after half a second.
        while installed.calls("nvmlShutdown") < times {
            assert!(dropped.elapsed() < LONG, "a thread keeps the library open");
            thread::yield_now();
        }
    }
    assert_eq!(installed.calls("nvmlInit_v2"), installed.calls("nvmlShutdown"));
}

#[test]
fn a_machine_whose_driver_knows_no_device_has_none() {
    let installed = install([]);
    let mut probe = open(&installed);
    assert_eq!(probe.inventory().expect("the driver answers").devices, []);
    assert_eq!(probe.snapshot().expect("the driver answers").samples, []);
    assert_eq!(probe.events().take(), []);
}

#[test]
fn a_call_that_is_slow_is_waited_for_and_its_time_is_told() {
    let mut scenario = Scenario::of([a10()]);
    scenario.delays = vec![Delay::always("nvmlDeviceGetPowerUsage", None, 30)];
    let installed = install_scenario(&scenario);
    let snapshot = open(&installed).snapshot().expect("it answers");
    assert!(snapshot.took.as_millis() >= 30, "{:?}", snapshot.took);
}

#[test]
fn parts_are_called_as_their_driver_calls_them_and_else_by_nvidias_rule() {
    for (named, expected) in [
        (["1g.18gb+me", "2g.35gb"], ["1g.18gb+me", "2g.35gb"]),
        // A driver that does not say it.
        (["", ""], ["1g.18gb", "2g.35gb"]),
    ] {
        let mut card = h100_with_mig(2);
        card.memory_total_bytes = 143_771 * MIB;
        let parts = &mut card.mig.as_mut().expect("it is divided").instances;
        for ((part, profile), (slices, memory)) in parts.iter_mut().zip(named).zip([(1, 16_384), (2, 33_280)])
        {
            part.profile = profile.into();
            part.slice_count = slices;
            part.memory_total_bytes = memory * MIB;
        }
        let installed = install([card]);
        let inventory = open(&installed).inventory().expect("it answers");
        let parts = &inventory.devices[0].partitions;
        let profiles: Vec<_> = parts.iter().map(|part| part.profile.clone().value()).collect();
        assert_eq!(profiles, expected.map(|profile| Some(profile.to_owned())));
    }
}

#[test]
fn of_a_process_without_a_sample_it_is_not_known_how_busy_it_was() {
    let process = |pid, share: Steps| Process {
        pid,
        memory_used_bytes: Steps::constant(1e9),
        sm_utilization_percent: share,
        ..Process::default()
    };
    let mut device = a10();
    device.processes = vec![process(1, Steps::constant(90.0)), process(2, Steps::default())];
    let installed = install([device]);
    let mut probe = open(&installed);
    installed.set_time(3.0);
    let samples = probe.snapshot().expect("it answers").samples;
    let processes = samples[0].processes.clone().value().expect("it can tell");
    let shares: Vec<_> = processes
        .iter()
        .map(|process| (process.pid, process.utilization.clone().value().map(f64::round)))
        .collect();
    assert_eq!(shares, [(1, Some(1.0)), (2, None)]);
}

#[test]
fn who_shares_a_device_by_mps_uses_it() {
    let mut device = a10();
    device.processes = vec![Process {
        pid: 4242,
        kind: ProcessKind::MpsCompute,
        memory_used_bytes: Steps::constant(1e9),
        ..Process::default()
    }];
    let installed = install([device]);
    let samples = open(&installed).snapshot().expect("it answers").samples;
    let processes = samples[0].processes.clone().value().expect("it can tell");
    let told: Vec<_> = processes
        .iter()
        .map(|process| (process.pid, process.memory.clone()))
        .collect();
    assert_eq!(told, [(4242, Reading::Value(Bytes(1_000_000_000)))]);
}

#[test]
fn what_no_sensor_can_say_is_not_told() {
    let mut device = a10();
    device.figures.memory_temperature_celsius = Steps::constant(0.0);
    device.figures.temperature_celsius = Steps::constant(255.0);
    let installed = install([device]);
    let samples = open(&installed).snapshot().expect("it answers").samples;
    for figure in [Figure::MemoryTemperature, Figure::Temperature] {
        assert_eq!(
            samples[0].readings.get(figure),
            Reading::Unsupported,
            "{figure:?}"
        );
    }
    assert!(value(&samples[0], Figure::Power) > 0.0);
}
