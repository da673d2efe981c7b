//! The program as a machine runs it, with a driver's library that answers from a scenario.

mod attempts;
mod checkup;
mod clients;
mod health;
#[path = "../common/machine.rs"]
mod machine;
mod owners;
mod program;
mod scenarios;
mod silent;
mod web;

use std::{
    io::Read as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use fake_kubelet::{FakeKubelet, Held, Pod};
use fake_nvml::{Clock, Delay, Process, Scenario, Steps, a10, h100_with_mig};
use flate2::read::GzDecoder;

use program::{LONG, Server, install, lines, once, program, text, without_driver};

#[test]
fn one_page_is_printed_in_the_words_of_dcgm() {
    let library = install(&Scenario::of([a10(), h100_with_mig(1)]));
    let output = once(&library, &["--page", "dcgm", "--host", "node-1"]);
    assert!(output.status.success(), "{output:?}");
    let page = text(&output.stdout);
    for expected in [
        "device=\"nvidia0\",modelName=\"NVIDIA A10\",Hostname=\"node-1\"",
        "GPU_I_PROFILE=\"1g.10gb\",GPU_I_ID=\"7\"",
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge",
    ] {
        assert!(page.contains(expected), "{expected} in\n{page}");
    }
}

#[test]
fn where_there_is_no_driver_the_page_says_so_and_so_does_the_log() {
    let output = once(&without_driver(), &[]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let page = text(&output.stdout);
    assert!(page.contains("blueproof_gpu_probe_up 0\n"), "{page}");
    assert!(
        page.contains("blueproof_gpu_probe_blind{reason=\"driver_not_loaded\"} 1"),
        "{page}"
    );
    let log = text(&output.stderr);
    assert_eq!(log.matches("error[").count(), 1, "{log}");
    assert!(log.contains("error[BP0902]") && log.contains("= hint: "), "{log}");
}

#[test]
fn a_driver_that_knows_no_device_is_no_healthy_idle_one() {
    let output = once(&install(&Scenario::of([])), &[]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(
        text(&output.stdout).contains("blueproof_gpus{kind=\"physical\"} 0"),
        "{output:?}"
    );
    assert!(text(&output.stderr).contains("error[BP0905]"), "{output:?}");
}

#[test]
fn the_page_comes_in_the_format_and_the_coding_that_are_asked_for() {
    let library = install(&Scenario::of([a10()]));
    let server = Server::start(&["--wait", "60000"], &library);
    let plain = server.get("/metrics", &[]);
    assert_eq!(plain.status, 200);
    assert!(
        plain.headers["content-type"].starts_with("text/plain; version=0.0.4"),
        "{:?}",
        plain.headers
    );
    let open = server.get(
        "/metrics",
        &["Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3"],
    );
    assert!(
        open.headers["content-type"].starts_with("application/openmetrics-text"),
        "{:?}",
        open.headers
    );
    assert!(open.text().ends_with("# EOF\n"));
    let dcgm = server.get("/metrics/dcgm", &["Accept: application/openmetrics-text"]);
    assert!(
        dcgm.headers["content-type"].starts_with("text/plain"),
        "{:?}",
        dcgm.headers
    );
    let packed = server.get("/metrics/native", &["Accept-Encoding: gzip"]);
    assert_eq!(packed.headers["content-encoding"], "gzip");
    let mut page = String::new();
    GzDecoder::new(packed.body.as_slice())
        .read_to_string(&mut page)
        .expect("it is gzip");
    assert!(page.contains("blueproof_gpu_probe_up 1\n"), "{page}");
    let refused = server.get("/metrics/native", &["Accept-Encoding: gzip;q=0, identity"]);
    assert!(!refused.headers.contains_key("content-encoding"));
}

#[test]
fn what_costs_more_is_collected_where_somebody_wants_it() {
    let mut card = a10();
    card.figures.pcie_tx_bytes_per_second = Steps::constant(5e6);
    card.figures.pcie_rx_bytes_per_second = Steps::constant(7e6);
    card.processes = vec![Process {
        pid: 4001,
        memory_used_bytes: Steps::constant(1e6),
        ..Process::default()
    }];
    let library = install(&Scenario::of([card]));
    let page = |arguments: &[&str]| text(&once(&library, arguments).stdout);
    let usual = page(&[]);
    assert!(
        !usual.contains("blueproof_gpu_pcie_sent") && !usual.contains("blueproof_gpu_process"),
        "{usual}"
    );
    let all = page(&["--collect", "pcie,processes"]);
    for metric in [
        "pcie_sent_bytes_per_second",
        "pcie_received_bytes_per_second",
        "process_memory_bytes",
    ] {
        assert!(
            all.contains(&format!("\nblueproof_gpu_{metric}{{")),
            "{metric} in\n{all}"
        );
    }
    let sent = all
        .lines()
        .find(|line| line.starts_with("blueproof_gpu_pcie_sent"));
    assert!(sent.is_some_and(|line| line.ends_with(" 5000000")), "{sent:?}");
    let refused = once(&library, &["--collect", "everything"]);
    assert!(
        text(&refused.stderr).contains("[possible values: pcie, processes]"),
        "{refused:?}"
    );
}

/// Two cards, of which the first does not answer from the third second on.
fn hanging() -> Scenario {
    let mut scenario = Scenario::of([a10(), a10()]);
    scenario.clock = Clock::Real;
    scenario.devices[1].figures.power_milliwatts = Steps::of([(0.0, 102_000.0), (3.5, 135_000.0)]);
    scenario.delays = vec![Delay {
        function: "nvmlDeviceGetTemperature".into(),
        device: Some(0),
        from: 3.0,
        to: None,
        milliseconds: 3_600_000,
    }];
    scenario
}

#[test]
fn a_device_that_hangs_is_unknown_on_both_pages_in_health_and_readiness_and_the_others_are_as_they_are_now() {
    let (scenario, began) = (hanging(), Instant::now());
    let library = install(&scenario);
    let server = Server::start(&[], &library);
    assert_eq!(server.get("/ready", &[]).status, 200);
    let mut pages = std::iter::repeat_with(|| server.get("/metrics", &[]).text());
    let page = pages.find(|page| {
        assert!(began.elapsed() < LONG, "{page}");
        page.contains("fault=\"NOT_ANSWERING\"") && page.contains("} 135\n")
    });
    let page = page.expect("it goes on");
    let (hanging, well) = (&scenario.devices[0].uuid, &scenario.devices[1].uuid);
    let of = |uuid: &str, metric: &str| lines(&page, &format!("{metric}{{uuid=\"{uuid}\""));
    assert_eq!(of(hanging, "blueproof_gpu_power_watts"), [""; 0]);
    assert_eq!(of(well, "blueproof_gpu_power_watts").len(), 1);
    let states = of(hanging, "blueproof_gpu_health");
    assert!(!states.is_empty());
    assert!(
        states.iter().all(|line| line.contains("state=\"unknown\"")),
        "{states:?}"
    );
    assert!(!page.contains("kind=\"healthy\""), "who knows: {page}");

    let dcgm = server.get("/metrics/dcgm", &[]).text();
    assert_eq!(lines(&dcgm, "DCGM_FI_DEV_GPU_UTIL{").len(), 1, "{dcgm}");
    assert!(
        dcgm.contains(&format!("UUID=\"{well}\"")) && !dcgm.contains(hanging.as_str()),
        "{dcgm}"
    );
    let ready = server.get("/ready", &[]);
    assert_eq!(ready.status, 503);
    assert!(
        ready.text().contains("BP0918") && ready.text().contains(hanging.as_str()),
        "{}",
        ready.text()
    );
    assert_eq!(
        server.get("/health", &[]).status,
        200,
        "nobody asks the driver whether the process lives"
    );
}

#[test]
fn who_may_not_wait_gets_what_was_read_before_and_is_told_so() {
    let mut scenario = Scenario::of([a10()]);
    scenario.delays = vec![Delay::always("nvmlDeviceGetPowerUsage", None, 50)];
    let library = install(&scenario);
    let server = Server::start(&["--wait", "0"], &library);
    let began = Instant::now();
    let mut pages = std::iter::repeat_with(|| server.get("/metrics", &[]).text());
    let old = pages.find(|page| {
        assert!(began.elapsed() < LONG, "{page}");
        page.contains("blueproof_gpu_power_watts{")
    });
    let old = old.expect("it goes on");
    assert!(old.contains("blueproof_gpu_collection_cached 1\n"), "{old}");
    let unknown = |line: &String| line.contains("state=\"unknown\"");
    assert!(lines(&old, "blueproof_gpu_health{").iter().all(unknown), "{old}");
}

#[test]
fn a_slow_driver_is_waited_for_as_long_as_the_scraper_waits_and_pods_are_named() {
    let mut scenario = Scenario::of(std::iter::repeat_with(a10).take(8));
    scenario.delays = vec![Delay::always("nvmlDeviceGetPowerUsage", None, 70)];
    let library = install(&scenario);
    let kubelet = FakeKubelet::start().expect("a socket");
    let held = Held::of("nvidia.com/gpu", [scenario.devices[0].uuid.as_str()]);
    kubelet.lists(vec![Pod::with("ci", "r-1", [held])]);
    let socket = kubelet.socket();
    let server = Server::start(
        &["--pod-resources", socket.to_str().expect("it is text")],
        &library,
    );
    for _ in 0..3 {
        let page = server
            .get("/metrics", &["X-Prometheus-Scrape-Timeout-Seconds: 60"])
            .text();
        assert!(page.contains("blueproof_gpu_collection_cached 0\n"), "{page}");
        assert_eq!(lines(&page, "blueproof_gpu_owner{").len(), 1, "{page}");
        let dcgm = server.get("/metrics/dcgm", &["X-Prometheus-Scrape-Timeout-Seconds: 60"]);
        assert!(dcgm.text().contains("pod=\"r-1\""), "{}", dcgm.text());
    }
}

#[test]
fn a_slow_kubelet_is_waited_for_as_long_as_the_scraper_waits() {
    let scenario = Scenario::of([a10()]);
    let library = install(&scenario);
    let kubelet = FakeKubelet::start().expect("a socket");
    let held = Held::of("nvidia.com/gpu", [scenario.devices[0].uuid.as_str()]);
    kubelet.lists(vec![Pod::with("ci", "r-1", [held])]);
    let socket = kubelet.socket();
    let socket = socket.to_str().expect("it is text");
    for milliseconds in [60, 1500] {
        kubelet.needs(Duration::from_millis(milliseconds));
        let server = Server::start(&["--pod-resources", socket], &library);
        for scrape in 0..5 {
            let page = server
                .get("/metrics", &["X-Prometheus-Scrape-Timeout-Seconds: 60"])
                .text();
            assert!(
                page.contains("blueproof_pod_resources_up 1\n"),
                "{scrape}: {page}"
            );
            assert_eq!(
                lines(&page, "blueproof_gpu_owner{").len(),
                1,
                "{milliseconds} ms, {scrape}: {page}"
            );
        }
    }
}

#[test]
fn it_is_ready_when_devices_are_read() {
    let library = install(&Scenario::of([a10()]));
    let server = Server::start(&["--wait", "60000"], &library);
    let ready = server.get("/ready", &[]);
    assert_eq!(ready.status, 200, "{}", ready.text());
    let empty = install(&Scenario::of([]));
    let none = Server::start(&["--wait", "60000"], &empty);
    let answer = none.get("/ready", &[]);
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains("BP0905"), "{}", answer.text());
    assert_eq!(none.get("/health", &[]).status, 200);
}

#[test]
fn what_is_recorded_can_be_shown_without_devices() {
    let folder = tempfile::tempdir().expect("a folder");
    let file: PathBuf = folder.path().join("gpus.jsonl");
    let name = file.to_str().expect("it is text");
    let library = install(&Scenario::of([a10()]));
    let live = once(&library, &["--page", "dcgm", "--record", name]);
    assert!(live.status.success(), "{live:?}");
    let mut program = program();
    let shown = program
        .args(["--once", "--page", "dcgm", "--recorded", name])
        .output();
    let shown = shown.expect("it can be started");
    // How long reading took is of now.
    let figures = |page: String| lines(&page, "DCGM_");
    let live_figures = figures(text(&live.stdout));
    assert!(!live_figures.is_empty());
    assert_eq!(figures(text(&shown.stdout)), live_figures);

    let again = once(&library, &["--record", name]);
    assert_eq!(
        again.status.code(),
        Some(3),
        "a file that is there is not written over: {again:?}"
    );
    assert!(text(&again.stderr).contains("not there yet"), "{again:?}");
}

#[test]
fn an_address_that_is_taken_is_said_to_be() {
    let library = install(&Scenario::of([a10()]));
    let server = Server::start(&[], &library);
    let mut program = program();
    program
        .args(["--listen", &server.address])
        .arg("--library")
        .arg(library.path());
    let output = program.output().expect("it can be started");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let log = text(&output.stderr);
    assert!(
        log.contains("error[BP0908]") && log.contains(&server.address),
        "{log}"
    );
}

#[test]
fn a_variable_of_another_program_does_not_turn_gpus_into_tpus() {
    let library = install(&Scenario::of([a10()]));
    let mut program = program();
    program.env("TPU_DEVICE_PLUGIN_ADDR", "10.0.0.7:2112");
    program.arg("--once").arg("--library").arg(library.path());
    let output = program.output().expect("it can be started");
    assert!(output.status.success(), "{output:?}");
    assert!(
        text(&output.stdout).contains("blueproof_gpus{kind=\"physical\"} 1\n"),
        "{output:?}"
    );
}

#[test]
fn what_nobody_understands_is_a_mistake_of_usage_with_what_there_is() {
    for arguments in [&["nosuch"][..], &["--lisen", ":1"], &["job", "start"]] {
        let mut program = program();
        let output = program.env_remove("RUNNER_TEMP").args(arguments).output();
        let output = output.expect("it can be started");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let log = text(&output.stderr);
        assert!(
            log.starts_with("error[BP0101]: ") && log.contains("hint: "),
            "{log}"
        );
    }
}

#[test]
fn in_the_place_of_dcgm_exporter_it_has_its_page_and_shows_what_its_file_says() {
    let library = install(&Scenario::of([a10()]));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counters.csv");
    let fields = "# some\nDCGM_FI_DEV_POWER_USAGE, gauge, Power draw (in W).\n\
                  DCGM_FI_DEV_VGPU_LICENSE_STATUS, gauge, vGPU License status\n";
    std::fs::write(&file, fields).expect("it is ours");
    let file = file.to_str().expect("it is text");
    let output = once(&library, &["-f", file, "-k", "-n", "-c", "1000", "--debug"]);
    assert!(output.status.success(), "{output:?}");
    let page = text(&output.stdout);
    assert_eq!(lines(&page, "DCGM_").len(), 1, "{page}");
    assert!(
        page.contains("# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\n"),
        "{page}"
    );
    assert!(
        !page.contains("Hostname=") && !page.contains("blueproof_gpu_info"),
        "{page}"
    );
    let log = text(&output.stderr);
    assert!(
        log.contains("DCGM_FI_DEV_VGPU_LICENSE_STATUS is left out"),
        "{log}"
    );

    assert_eq!(
        lines(&page, "blueproof_pod_resources_up ").len(),
        1,
        "it was asked for, whether the kubelet is there or not: {page}"
    );

    let refused = once(&library, &["--kubernetes-enable-pod-labels"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused.stderr).contains("error[BP0921]"), "{refused:?}");
    let unread = once(&library, &["-f", "/nowhere.csv"]);
    assert_eq!(unread.status.code(), Some(2), "{unread:?}");
    assert!(text(&unread.stderr).contains("error[BP0920]"), "{unread:?}");
}

#[test]
fn a_variable_that_is_set_to_nothing_is_not_set() {
    let help = program().arg("--help").output().expect("it can be started");
    let help = text(&help.stdout);
    let known = help.split("[env: ").skip(1);
    let mut variables: Vec<&str> = known.filter_map(|rest| rest.split('=').next()).collect();
    assert!(variables.contains(&"DCGM_EXPORTER_KUBERNETES"), "{help}");
    variables.extend([
        "DCGM_EXPORTER_CONFIG_FILE",
        "DCGM_EXPORTER_DEBUG",
        "DCGM_EXPORTER_OF_TOMORROW",
    ]);
    let library = install(&Scenario::of([a10()]));
    for variable in variables {
        let mut program = program();
        program.args(["--once", "--library"]).arg(library.path());
        let output = program.env(variable, "").output().expect("it can be started");
        assert!(output.status.success(), "{variable}: {output:?}");
        assert!(output.stderr.is_empty(), "{variable}: {output:?}");
        assert!(
            text(&output.stdout).contains("blueproof_gpu_probe_up 1"),
            "{variable}"
        );
    }
}

#[test]
fn what_is_configured_wrong_ends_as_what_is_typed_wrong_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = folder.path().join("broken");
    std::fs::write(&broken, "{not, what: [is wanted").expect("a file");
    let broken = broken.to_str().expect("it is text");
    let library = install(&Scenario::of([a10()]));
    for wrong in [
        &["-f", broken][..],
        &["-f", "/nowhere/counters.csv"],
        &["-d", "g"],
        &["--fake-gpus"],
        &["--unknown"],
    ] {
        let output = once(&library, wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {output:?}");
    }
    for wrong in [["--recorded", broken], ["--web-config", broken]] {
        let mut program = program();
        let output = program.args(wrong).args(["--listen", "127.0.0.1:0"]).output();
        let output = output.expect("it can be started");
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {output:?}");
    }
}

#[test]
fn a_variable_that_nobody_understands_is_named_and_not_only_its_option() {
    let library = install(&Scenario::of([a10()]));
    let mut program = program();
    program.args(["--once", "--library"]).arg(library.path());
    let output = program.env("DCGM_EXPORTER_INTERVAL", "abc").output();
    let told = text(&output.expect("it can be started").stderr);
    assert!(
        told.contains("the variable DCGM_EXPORTER_INTERVAL says so"),
        "{told}"
    );

    let typed = text(&once(&library, &["--collect-interval", "abc"]).stderr);
    assert!(typed.contains("abc") && !typed.contains("says so"), "{typed}");
}

#[test]
fn a_file_that_names_no_field_and_one_that_is_not_shown_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counters.csv");
    let library = install(&Scenario::of([a10()]));
    let log = |content: &str| {
        std::fs::write(&file, content).expect("a file");
        text(&once(&library, &["-f", file.to_str().expect("it is text")]).stderr)
    };
    for content in ["", "# nothing\n"] {
        let told = log(content);
        assert!(
            told.contains("warning[BP0920]") && told.contains("names no field"),
            "{told}"
        );
    }
    let told = log("DCGM_FI_DEV_PSTATE, gauge, its state\nDCGM_FI_DEV_GPU_TEMP, gauge, how warm\n");
    assert!(
        told.contains("this exporter does not show it") && !told.contains("names no field"),
        "{told}"
    );
}
