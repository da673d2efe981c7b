//! A device that hangs: it takes nothing along, and what happened is told all the same.

use super::*;

/// Two cards, of which the first hangs from a second on, with errors of both while it does.
fn hanging() -> Scenario {
    let mut devices = [a10(), a10()];
    let temperature = Steps::of([(0.0, 30.0), (5.0, 77.0)]);
    devices[1].figures.temperature_celsius = temperature;
    devices[0].xids = xids([(8.0, 119)]);
    devices[1].xids = xids([(8.5, 94), (8.6, 45)]);
    let mut scenario = Scenario::of(devices);
    scenario.delays = vec![Delay {
        function: "nvmlDeviceGetTemperature".into(),
        device: Some(0),
        from: 4.0,
        to: None,
        milliseconds: 3_600_000,
    }];
    scenario
}

fn xids<const N: usize>(xids: [(f64, u64); N]) -> Vec<Xid> {
    let xids = xids.map(|(at, code)| Xid { at, code, mig: None });
    xids.into()
}

#[test]
fn a_device_that_hangs_takes_no_other_along_and_none_of_its_figures_is_told() {
    let installed = install_scenario(&hanging());
    let mut probe = open(&installed).with_patience(Duration::from_secs(2));
    let before = probe.snapshot().expect("both answer");
    assert!(before.samples.iter().all(|sample| !sample.hangs()));
    installed.set_time(6.0);
    // The second time nobody waits for it.
    for _ in 0..2 {
        assert_eq!(
            probe.inventory().expect("it is known who they are").devices.len(),
            2
        );
        let snapshot = probe.snapshot().expect("one answers");
        let [hanging, well] = &snapshot.samples[..] else {
            panic!("there are two: {snapshot:?}");
        };
        assert!(hanging.hangs());
        for figure in Figure::ALL {
            assert_eq!(hanging.readings.value(*figure), None, "{figure:?}");
        }
        assert_eq!(
            hanging.processes.fault().map(|fault| fault.kind),
            Some(FaultKind::Hangs)
        );
        assert_eq!(value(well, Figure::Temperature), 77.0);
    }
}

#[test]
fn errors_are_told_while_a_device_hangs_and_each_before_the_next_one_hides_it() {
    let installed = install_scenario(&hanging());
    let mut probe = open(&installed).with_patience(Duration::from_secs(2));
    let uuids: Vec<_> = probe.inventory().expect("both answer").devices;
    installed.set_time(6.0);
    assert!(probe.snapshot().expect("one answers").samples[0].hangs());
    for (second, place, xid) in [(8.2, 0, 119), (8.55, 1, 94), (9.0, 1, 45)] {
        installed.set_time(second);
        let told: Vec<_> = next(&mut probe)
            .into_iter()
            .map(|event| (event.device, event.xid))
            .collect();
        assert_eq!(told, [(uuids[place].uuid.clone(), xid)]);
    }
}

#[test]
fn a_device_that_hangs_before_it_says_who_it_is_is_counted() {
    let mut scenario = Scenario::of([a10(), a10()]);
    scenario.delays = vec![Delay::always("nvmlDeviceGetUUID", Some(0), 3_600_000)];
    let installed = install_scenario(&scenario);
    let mut probe = open(&installed).with_patience(Duration::from_secs(2));
    let inventory = probe.inventory().expect("one answers");
    assert_eq!((inventory.devices.len(), inventory.unidentified), (1, 1));

    scenario.delays[0].device = None;
    let installed = install_scenario(&scenario);
    let mut probe = open(&installed).with_patience(Duration::from_millis(1));
    let nobody = probe.inventory().expect_err("none answers");
    assert_eq!(
        nobody.reason,
        ProbeErrorKind::NotAnswering,
        "that is not to have none"
    );
}

#[test]
fn a_device_whose_reports_could_not_be_waited_for_is_listened_to_since_then_only() {
    let mut scenario = Scenario::of([a10()]);
    scenario.faults = vec![Fault {
        function: "nvmlEventSetWait_v2".into(),
        device: None,
        from: 5.0,
        to: Some(10.0),
        returns: NvmlReturn::Unknown,
    }];
    let installed = install_scenario(&scenario);
    let mut probe = open(&installed);
    let device = probe.inventory().expect("it answers").devices.remove(0).uuid;
    let events = probe.events();
    let since = move || events.listened_since().get(&device).copied();
    let wait_until = |is_so: &dyn Fn() -> bool| {
        let began = std::time::Instant::now();
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(60), "it comes to that");
            std::thread::yield_now();
        }
    };
    let before = since().expect("it is listened to");
    installed.set_time(6.0);
    wait_until(&|| since().is_none());
    installed.set_time(11.0);
    wait_until(&|| since().is_some());
    assert!(since() > Some(before));
}

#[test]
fn a_device_that_is_slow_is_waited_for_as_long_as_somebody_waits_and_one_that_hangs_is_not() {
    let mut scenario = Scenario::of([a10(), a10()]);
    let mut delays = [
        Delay::always("*", Some(0), 30),
        Delay::always("nvmlDeviceGetTemperature", Some(1), 3_600_000),
    ];
    delays[1].from = 4.0;
    scenario.delays = delays.into();
    let installed = install_scenario(&scenario);
    let mut probe = open(&installed).with_patience(Duration::from_millis(400));
    installed.set_time(6.0);
    probe.wait_until(Instant::now() + LONG);
    assert_eq!(probe.inventory().expect("they answer").devices.len(), 2);
    let (asked_at, snapshot) = (Instant::now(), probe.snapshot().expect("one answers"));
    assert!(
        asked_at.elapsed() > Duration::from_millis(400),
        "it takes longer than one call may"
    );
    assert!(!snapshot.samples[0].hangs() && snapshot.samples[1].hangs());

    probe.wait_until(Instant::now());
    let in_a_hurry = probe.snapshot().expect("it ends");
    assert!(
        in_a_hurry.samples.iter().all(Sample::hangs),
        "nobody waits for it"
    );
}
