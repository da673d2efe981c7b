//! The program as a machine runs it, with a driver's library that answers from a scenario.

mod attempts;
mod checkup;
mod health;
#[path = "../common/machine.rs"]
mod machine;
mod owners;
mod program;
mod web;

use std::{io::Read as _, path::PathBuf, time::Instant};

use fake_nvml::{Clock, Delay, Process, Scenario, Steps, a10, h100_with_mig};
use flate2::read::GzDecoder;

use program::{LONG, Server, install, once, program, text, without_driver};

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

#[test]
fn while_a_call_hangs_the_last_page_is_answered_at_once_and_says_that_it_is_old() {
    let mut scenario = Scenario::of([a10()]);
    scenario.clock = Clock::Real;
    scenario.delays = vec![Delay {
        function: "nvmlDeviceGetPowerUsage".into(),
        device: None,
        from: 3.0,
        to: None,
        milliseconds: 3_600_000,
    }];
    let library = install(&scenario);
    let server = Server::start(&["--wait", "1000"], &library);
    let began = Instant::now();
    let mut pages = std::iter::repeat_with(|| server.get("/metrics", &[]).text());
    let mut until = |line: &str| {
        let page = pages
            .find(|page| page.contains(line) || began.elapsed() > LONG)
            .expect("it goes on");
        assert!(page.contains(line), "{page}");
        page
    };
    until("blueproof_gpu_collection_cached 0\n");
    let old = until("blueproof_gpu_collection_cached 1\n");
    assert!(
        old.contains("blueproof_gpu_power_watts"),
        "what was read before is still told: {old}"
    );
    assert_eq!(
        server.get("/health", &[]).status,
        200,
        "nobody asks the driver whether the process lives"
    );
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
    assert_eq!(text(&shown.stdout), text(&live.stdout));

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
