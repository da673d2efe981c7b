//! Devices that fare badly, and machines on which nothing can be read.

use std::time::Instant;

use fake_kubelet::{Allocatable, FakeKubelet, Held};
use fake_nvml::{Clock, Delay, Fault, Installed, NvmlReturn, Scenario, a10};

use super::program::{LONG, Server, install, once, program, text};

fn eight(faults: Vec<Fault>) -> Installed {
    let mut scenario = Scenario::of(std::iter::repeat_with(a10).take(8));
    scenario.faults = faults;
    install(&scenario)
}

fn fault(function: &str, returns: NvmlReturn) -> Fault {
    Fault::always(function, Some(3), returns)
}

fn page(library: &Installed) -> String {
    let output = once(library, &[]);
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout)
}

/// Returns how many samples of a page begin so and hold this.
fn count(page: &str, start: &str, part: &str) -> usize {
    let lines = page.lines().filter(|line| line.starts_with(start));
    lines.filter(|line| line.contains(part)).count()
}

/// Returns the checks of the fourth device that have this state.
fn checks(page: &str, state: &str) -> Vec<String> {
    let infos = page
        .lines()
        .filter(|line| line.starts_with("blueproof_gpu_info{"));
    let mut uuids = infos.filter_map(|line| line.split('"').nth(1));
    let uuid = uuids.nth(3).expect("there are eight");
    let of_it = page
        .lines()
        .filter(|line| line.starts_with(&format!("blueproof_gpu_health{{uuid=\"{uuid}\"")));
    let found = of_it.filter(|line| line.contains(&format!("state=\"{state}\"")));
    let names = found.filter_map(|line| line.split('"').nth(3));
    names.map(str::to_owned).collect()
}

#[test]
fn devices_that_are_well_are_counted_as_such() {
    let page = page(&eight(Vec::new()));
    assert_eq!(checks(&page, "problem"), [""; 0]);
    assert_eq!(
        checks(&page, "ok"),
        [
            "presence",
            "remapped_rows",
            "slowdown",
            "ecc",
            "pcie_width",
            "xids"
        ]
    );
    assert_eq!(
        checks(&page, "unknown"),
        ["pcie_generation", "pcie_replays"],
        "it is idle, and was read once; pages are retired on older cards"
    );
    assert!(page.contains("blueproof_gpus{kind=\"healthy\"} 8\n"), "{page}");
    assert!(!page.contains("kind=\"advertised\""), "nobody told: {page}");
}

#[test]
fn an_error_on_one_of_eight_costs_that_figure_and_nothing_is_called_well_for_it() {
    let library = eight(vec![
        fault("nvmlDeviceGetPowerUsage", NvmlReturn::Unknown),
        fault("nvmlDeviceGetCurrPcieLinkWidth", NvmlReturn::Unknown),
    ]);
    let page = page(&library);
    assert_eq!(count(&page, "blueproof_gpu_power_watts{", ""), 7);
    assert_eq!(count(&page, "blueproof_gpu_temperature_celsius{", ""), 8);
    assert_eq!(
        count(&page, "blueproof_gpu_unreadable_figures{", "fault=\"UNKNOWN\"} 2"),
        1,
        "{page}"
    );
    assert!(
        checks(&page, "unknown").contains(&"pcie_width".to_owned()),
        "{page}"
    );
    assert_eq!(checks(&page, "problem"), [""; 0]);
    assert!(
        page.contains("blueproof_gpus{kind=\"physical\"} 8\n") && !page.contains("kind=\"healthy\""),
        "{page}"
    );
}

#[test]
fn a_device_that_never_said_who_it_is_is_counted_and_nothing_is_called_well_for_it() {
    let library = eight(vec![fault("*", NvmlReturn::GpuIsLost)]);
    let output = once(&library, &[]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let page = text(&output.stdout);
    for line in [
        "blueproof_gpus{kind=\"physical\"} 8\n",
        "blueproof_gpus{kind=\"unidentified\"} 1\n",
        "blueproof_gpu_probe_up 1\n",
    ] {
        assert!(page.contains(line), "{line} in {page}");
    }
    assert!(!page.contains("kind=\"healthy\""), "who knows: {page}");
    let mut looked = program();
    let looked = looked.args(["health", "--library"]).arg(library.path()).output();
    let looked = looked.expect("it can be started");
    assert_eq!(looked.status.code(), Some(3), "{looked:?}");
    assert!(
        text(&looked.stdout).contains("the driver counts 8, and 1 never said who they are"),
        "{looked:?}"
    );
}

#[test]
fn where_no_device_answers_nothing_could_be_read() {
    let mut scenario = Scenario::of([a10(), a10()]);
    scenario.clock = Clock::Real;
    scenario.delays = vec![Delay {
        function: "*".into(),
        device: None,
        from: 1.0,
        to: None,
        milliseconds: 3_600_000,
    }];
    let library = install(&scenario);
    let server = Server::start(&[], &library);
    let began = Instant::now();
    let mut pages = std::iter::repeat_with(|| server.get("/metrics", &[]).text());
    let page = pages.find(|page| {
        assert!(began.elapsed() < LONG, "{page}");
        page.contains("blueproof_gpu_probe_up 0\n")
    });
    let page = page.expect("it goes on");
    assert!(
        page.contains("blueproof_gpu_probe_blind{reason=\"not_answering\"} 1\n"),
        "{page}"
    );
    assert!(
        !page.contains("blueproof_gpu_collection_failures_total 0\n"),
        "{page}"
    );
}

#[test]
fn a_device_that_was_lost_is_not_ready() {
    let mut lost = fault("*", NvmlReturn::GpuIsLost);
    lost.from = 1.0;
    let mut scenario = Scenario::of(std::iter::repeat_with(a10).take(4));
    scenario.clock = Clock::Real;
    scenario.faults = vec![lost];
    let library = install(&scenario);
    let server = Server::start(&[], &library);
    let began = Instant::now();
    let mut answers = std::iter::repeat_with(|| server.get("/ready", &[]));
    let ready = answers.find(|ready| {
        assert!(began.elapsed() < LONG, "{}", ready.text());
        ready.status == 503
    });
    let text = ready.expect("it goes on").text();
    assert!(text.contains("the driver has lost it"), "{text}");
}

#[test]
fn devices_that_are_promised_twice_are_seen_to_be() {
    let library = install(&Scenario::of([a10()]));
    let kubelet = FakeKubelet::start().expect("a socket");
    let page = page(&library);
    let uuid = page.lines().find_map(|line| {
        let rest = line.strip_prefix("blueproof_gpu_info{uuid=\"")?;
        rest.split('"').next()
    });
    let shares = [0, 1].map(|share| format!("{}::{share}", uuid.expect("it has one")));
    let shares = shares.iter().map(String::as_str);
    kubelet.has(Allocatable::Devices(vec![Held::of("nvidia.com/gpu", shares)]));
    let socket = kubelet.socket();
    let arguments = ["--pod-resources", socket.to_str().expect("it is text")];
    let page = text(&once(&library, &arguments).stdout);
    for line in [
        "blueproof_gpus{kind=\"physical\"} 1\n",
        "blueproof_gpus{kind=\"advertised\"} 2\n",
        "blueproof_gpus{kind=\"healthy\"} 1\n",
    ] {
        assert!(page.contains(line), "{line} in {page}");
    }
}

#[test]
fn where_nothing_can_be_read_page_and_log_say_why() {
    let mut forbidden = Scenario::of([a10()]);
    forbidden.faults = vec![Fault {
        device: None,
        ..fault("nvmlInit_v2", NvmlReturn::NoPermission)
    }];
    let forbidden = install(&forbidden);
    for (library, reason, code) in [
        ("/nowhere/libnvidia-ml.so.1".into(), "library_missing", "BP0901"),
        (forbidden.path(), "no_permission", "BP0903"),
    ] {
        let mut program = program();
        let output = program.arg("--once").arg("--library").arg(library).output();
        let output = output.expect("it can be started");
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let page = text(&output.stdout);
        assert!(page.contains("blueproof_gpu_probe_up 0\n"), "{page}");
        let blind = format!("blueproof_gpu_probe_blind{{reason=\"{reason}\"}} 1\n");
        assert!(page.contains(&blind), "{page}");
        assert!(
            !page.contains("blueproof_gpus") && !page.contains("_health"),
            "{page}"
        );
        let log = text(&output.stderr);
        assert_eq!(log.matches(&format!("error[{code}]")).count(), 1, "{log}");
    }
}
