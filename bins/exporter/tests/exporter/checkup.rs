//! What somebody is told who asks how the devices fare, and the labels that a node gets.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Output, Stdio},
    sync::mpsc,
    thread,
};

use fake_nvml::{Clock, Delay, Installed, Scenario, Steps, a10};
use serde_json::Value;

use super::program::{LONG, install, program, text, without_driver};

fn health(library: &Installed, more: &[&str]) -> Output {
    let mut program = program();
    program.arg("health").arg("--library").arg(library.path());
    program.args(more).output().expect("it can be started")
}

/// A card with a row of memory that could not be replaced.
fn broken() -> Installed {
    let mut card = a10();
    card.figures.remapped_rows_failure = Steps::constant(1.0);
    install(&Scenario::of([card]))
}

#[test]
fn devices_that_are_well_are_ok_all_in_all() {
    let library = install(&Scenario::of([a10(), a10()]));
    for arguments in [&[][..], &["--expect", "2"]] {
        let output = health(&library, arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let told = text(&output.stdout);
        assert!(told.ends_with("all in all: ok\n"), "{told}");
        assert!(told.contains("  not done  "), "{told}");
        assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    }
    let output = health(&library, &["--expect", "3"]);
    assert_eq!(output.status.code(), Some(1), "one is missing: {output:?}");
}

#[test]
fn a_problem_is_told_with_what_was_seen() {
    let output = health(&broken(), &["--output", "json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(told["health"], "problem");
    let findings = told["findings"].as_array().expect("a list");
    let rows = findings.iter().find(|finding| finding["check"] == "remappedRows");
    let answer = &rows.expect("it was done")["answer"];
    assert_eq!(answer["state"], "problem");
    assert!(
        answer["evidence"]
            .as_str()
            .is_some_and(|text| text.contains("row")),
        "{answer}"
    );
}

#[test]
fn where_nothing_can_be_read_nothing_is_ok() {
    let output = health(&without_driver(), &[]);
    assert_ne!(output.status.code(), Some(0), "{output:?}");
    assert!(!text(&output.stdout).contains("all in all: ok"), "{output:?}");
    let told = text(&output.stderr);
    assert!(
        told.contains("error[BP0902]") && told.contains("= hint: "),
        "{told}"
    );
    assert!(!text(&output.stdout).contains("driver_not_loaded"), "{output:?}");
}

/// One that keeps labels, which ends with this.
struct Keeper(Child);

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts one that keeps labels in a file, and returns what it says.
fn keep(library: &Installed, file: &Path, more: &[&str]) -> (Keeper, impl Iterator<Item = String>) {
    let mut program = program();
    program.args(["health", "--every", "1", "--labels"]).arg(file);
    program.args(more);
    program.arg("--library").arg(library.path());
    let started = program.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut keeper = Keeper(started.expect("it can be started"));
    let told = BufReader::new(keeper.0.stdout.take().expect("it was asked for"));
    let (tell, hear) = mpsc::channel();
    thread::spawn(move || {
        told.lines()
            .map_while(Result::ok)
            .try_for_each(|line| tell.send(line))
    });
    (keeper, std::iter::from_fn(move || hear.recv_timeout(LONG).ok()))
}

#[test]
fn a_node_whose_driver_hangs_from_the_beginning_loses_the_pass_of_before() {
    let mut scenario = Scenario::of([a10(), a10()]);
    scenario.delays = vec![Delay::always("nvmlDeviceGetTemperature", Some(0), 3_600_000)];
    let (library, folder) = (install(&scenario), tempfile::tempdir().expect("a folder"));
    let file = folder.path().join("blueproof-gpu");
    fs::write(
        &file,
        "blueproof.dev/gpu-health=ok\nautopilot.ibm.com/gpuhealth=PASS\n",
    )
    .expect("it is ours");
    let (_keeper, mut told) = keep(&library, &file, &[]);
    let unknown = told.find(|line| line.starts_with("blueproof.dev/gpu-health=unknown: "));
    assert!(unknown.is_some());
    let written = fs::read_to_string(&file).expect("it is there");
    assert!(!written.contains("PASS") && !written.contains("=ok"), "{written}");
}

#[test]
fn a_node_that_passed_does_not_pass_any_more_once_a_device_or_all_of_its_driver_hangs() {
    for (function, device) in [
        ("nvmlDeviceGetTemperature", Some(0)),
        ("nvmlDeviceGetCount_v2", None),
    ] {
        let mut scenario = Scenario::of([a10(), a10()]);
        scenario.clock = Clock::File;
        scenario.delays = vec![Delay {
            function: function.into(),
            device,
            from: 4.0,
            to: None,
            milliseconds: 3_600_000,
        }];
        let (library, folder) = (install(&scenario), tempfile::tempdir().expect("a folder"));
        let file = folder.path().join("blueproof-gpu");
        let (_keeper, mut told) = keep(&library, &file, &["--expect", "2", "--pass-after", "0"]);
        let passed = told.find(|line| line.starts_with("autopilot.ibm.com/gpuhealth=PASS: "));
        assert!(passed.is_some(), "it is well at first");
        let written = || fs::read_to_string(&file).expect("it is there");
        assert!(written().contains("=PASS\n"), "{}", written());

        library.write_time(5.0).expect("the folder is there");
        let unknown = told.find(|line| line.starts_with("blueproof.dev/gpu-health=unknown: "));
        assert!(unknown.is_some(), "{function}");
        let written = written();
        assert!(
            !written.contains("PASS") && !written.contains("=ok"),
            "{function}: {written}"
        );
    }
}

#[test]
fn labels_are_kept_in_a_file_and_each_change_is_told() {
    let (library, folder) = (broken(), tempfile::tempdir().expect("a folder"));
    let file = folder.path().join("blueproof-gpu");
    fs::write(
        &file,
        "# ours\nblueproof.dev/gpu-health=ok\nautopilot.ibm.com/gpuhealth=PASS\n",
    )
    .expect("it is ours");
    let (_keeper, mut told) = keep(&library, &file, &[]);
    let evicted = told.find(|line| line.starts_with("autopilot.ibm.com/gpuhealth=EVICT: "));
    assert!(
        evicted.is_some_and(|line| line.contains("remapped rows")),
        "with why"
    );
    let written = fs::read_to_string(&file).expect("it is there");
    let (expires, written) = written.split_once('\n').expect("there are lines");
    let expires = expires.strip_prefix("# +expiry-time=").expect("they expire");
    assert!(expires.parse::<jiff::Timestamp>().expect("a time") > jiff::Timestamp::now());
    let expected = "autopilot.ibm.com/gpuhealth=EVICT\nblueproof.dev/gpu-health=problem\n";
    assert_eq!(written, expected, "it is written before it is told");
    let others = fs::read_dir(folder.path()).expect("it is ours").flatten();
    let others = others.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(
        others.count(),
        1,
        "whoever reads all files of the folder reads one"
    );
}

#[test]
fn labels_that_cannot_be_written_are_an_error_with_a_code() {
    let output = health(&broken(), &["--labels", "/nowhere/labels"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let told = text(&output.stderr);
    assert!(
        told.contains("error[BP") && told.contains("/nowhere/labels"),
        "{told}"
    );
}

#[test]
fn who_keeps_labels_is_told_why_nothing_can_be_read() {
    let output = health(&without_driver(), &["--labels", "/nowhere/labels"]);
    let told = text(&output.stderr);
    assert_eq!(told.matches("error[BP0902]").count(), 1, "{told}");
}

#[test]
fn labels_that_are_no_text_are_not_said_to_be_on_a_full_disk() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), b"\xff\xfe=\n").expect("it can be written");
    let output = health(
        &broken(),
        &["--labels", file.path().to_str().expect("it is text")],
    );
    let told = text(&output.stderr);
    assert!(
        told.contains("this one is no text") && !told.contains("full"),
        "{told}"
    );
}
