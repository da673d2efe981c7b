//! Jobs in throw-away machines, with a driver's library that answers from a scenario, in real time.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

use fake_nvml::{Clock, Figures, Installed, Scenario, Steps, a10};
use serde_json::Value;

/// A driver with two cards that are half busy, and draw 100 W each.
fn driver() -> Installed {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let mut card = a10();
    card.figures = Figures {
        gpu_utilization_percent: Steps::constant(50.0),
        power_milliwatts: Steps::constant(100_000.0),
        ..card.figures
    };
    let scenario = Scenario {
        clock: Clock::Real,
        starts_at_unix_seconds: now.as_secs(),
        ..Scenario::of([card.clone(), card])
    };
    Installed::new(&scenario).expect("the library was built beside this test")
}

/// A command of the program in a folder of its own, with nothing of a CI's variables.
fn job(folder: &Path, driver: &Installed, arguments: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_blueproof-exporter"));
    for variable in [
        "GITHUB_JOB",
        "GITHUB_STEP_SUMMARY",
        "RUNNER_TEMP",
        "CUDA_VISIBLE_DEVICES",
    ] {
        program.env_remove(variable);
    }
    program.env("LD_LIBRARY_PATH", driver.folder());
    program
        .current_dir(folder)
        .arg("job")
        .args(arguments)
        .stdin(Stdio::null());
    program
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it is text")
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

fn run(mut command: Command) -> Output {
    command.output().expect("it can be started")
}

#[test]
fn a_command_is_watched_from_its_beginning_to_its_end() {
    let (folder, driver) = (tempfile::tempdir().expect("a folder"), driver());
    let works = "import time; end = time.time() + 1.5\nwhile time.time() < end: pass\nprint('done')";
    let mut command = job(
        folder.path(),
        &driver,
        &["--json", "gpu.json", "--", "python3", "-c", works],
    );
    command.env("GITHUB_STEP_SUMMARY", "step.md");
    let output = run(command);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "done\n"));

    let summary = read(&folder.path().join("gpu.json"));
    let figure = |name: &str| {
        summary[name]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}: {summary}"))
    };
    assert_eq!(
        (&summary["schemaVersion"], &summary["holder"]),
        (&1.into(), &"python3".into())
    );
    assert_eq!(summary["devices"].as_array().map(Vec::len), Some(2));
    assert!(figure("allocatedGpuSeconds") >= 3.0, "{summary}");
    assert!(
        (figure("energyJoules") / figure("allocatedGpuSeconds") - 100.0).abs() < 20.0,
        "{summary}"
    );
    let of_figures = |name: &str| summary["figures"][name].as_f64().expect(name);
    assert!((of_figures("averageGpu") - 0.5).abs() < 0.01, "{summary}");
    assert!(
        of_figures("averageCpu") > 0.0 && of_figures("averageBuildSeconds") >= 1.5,
        "{summary}"
    );

    let step = fs::read_to_string(folder.path().join("step.md")).expect("a file");
    assert!(step.contains("### GPU use of <code>python3</code>"), "{step}");
    assert!(
        text(&output.stderr).contains("| device | allocated |"),
        "{output:?}"
    );
}

#[test]
fn a_command_s_end_is_passed_on() {
    let (folder, driver) = (tempfile::tempdir().expect("a folder"), driver());
    for (words, code, says) in [
        (&["sh", "-c", "exit 7"][..], 7, ""),
        (&["sh", "-c", "kill -TERM $$"], 143, ""),
        (&["there-is-no-such-command"], 127, "BP0914"),
    ] {
        let arguments = [&["--quiet", "--"], words].concat();
        let output = run(job(folder.path(), &driver, &arguments));
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        assert!(text(&output.stderr).contains(says), "{output:?}");
    }
    let nothing = run(job(folder.path(), &driver, &[]));
    assert_eq!(nothing.status.code(), Some(3));
    assert!(
        text(&nothing.stderr).contains("job -- python train.py"),
        "{nothing:?}"
    );
}

#[test]
fn what_it_is_told_the_command_is_told() {
    let (folder, driver) = (tempfile::tempdir().expect("a folder"), driver());
    let waits = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    let mut command = job(folder.path(), &driver, &["--quiet", "--", "sh", "-c", waits]);
    let mut wrapper = command.stdout(Stdio::piped()).spawn().expect("it can be started");
    let mut line = String::new();
    let said = wrapper.stdout.take().expect("it was asked for");
    BufReader::new(said).read_line(&mut line).expect("it says when");
    let told = Command::new("kill").arg(wrapper.id().to_string()).status();
    assert!(told.expect("there is a kill").success());
    assert_eq!(wrapper.wait().expect("it ends").code(), Some(9));
}

#[test]
fn a_machine_without_gpus_has_a_summary_that_says_so() {
    let (folder, driver) = (tempfile::tempdir().expect("a folder"), driver());
    let mut command = job(folder.path(), &driver, &["--json", "gpu.json", "--", "true"]);
    command.env_remove("LD_LIBRARY_PATH");
    let output = run(command);
    assert_eq!(output.status.code(), Some(0));
    let summary = read(&folder.path().join("gpu.json"));
    assert_eq!(summary["devices"], Value::Array(Vec::new()));
    assert!(summary["figures"].get("averageGpu").is_none(), "{summary}");
    assert!(text(&output.stderr).contains("It had no GPU."), "{output:?}");
}

#[test]
fn steps_are_watched_from_start_to_stop() {
    let (folder, driver) = (tempfile::tempdir().expect("a folder"), driver());
    let step = |arguments: &[&str]| {
        let mut command = job(folder.path(), &driver, arguments);
        command.env("RUNNER_TEMP", folder.path());
        command.env("GITHUB_JOB", "gpu-e2e");
        command.env("GITHUB_STEP_SUMMARY", folder.path().join("step.md"));
        run(command)
    };
    let early = step(&["stop"]);
    assert_eq!(early.status.code(), Some(3));
    assert!(text(&early.stderr).contains("BP0915"), "{early:?}");

    let started = step(&["start"]);
    assert!(started.status.success(), "{started:?}");
    assert!(text(&started.stderr).contains("watching 2 GPUs"), "{started:?}");
    let again = step(&["start"]);
    assert_eq!(again.status.code(), Some(3));
    assert!(
        text(&again.stderr).contains("is watched there already"),
        "{again:?}"
    );

    let meanwhile = step(&["report", "-o", "json"]);
    let meanwhile: Value = serde_json::from_slice(&meanwhile.stdout).expect("JSON");
    assert!(meanwhile.get("until").is_none(), "it goes on: {meanwhile}");

    let stopped = step(&["stop", "--json", "gpu.json"]);
    assert!(stopped.status.success(), "{stopped:?}");
    let summary = read(&folder.path().join("gpu.json"));
    assert_eq!(summary["holder"], "gpu-e2e");
    assert!(summary["until"].is_string(), "{summary}");
    assert!(summary["busyGpuSeconds"].is_number(), "{summary}");
    let shown = step(&["report"]);
    assert!(
        text(&shown.stdout).contains("### GPU use of <code>gpu-e2e</code>"),
        "{shown:?}"
    );
    let summaries = fs::read_to_string(folder.path().join("step.md")).expect("a file");
    assert_eq!(summaries.matches("### GPU use of").count(), 1, "{summaries}");
}

#[test]
fn a_watcher_that_is_killed_leaves_what_it_knew() {
    let (folder, driver) = (tempfile::tempdir().expect("a folder"), driver());
    let step = |arguments: &[&str]| {
        run(job(
            folder.path(),
            &driver,
            &[arguments, &["--state", "kept"]].concat(),
        ))
    };
    assert!(step(&["start"]).status.success());
    let pid = fs::read_to_string(folder.path().join("kept/pid")).expect("a file");
    let killed = Command::new("kill").args(["-KILL", pid.trim()]).status();
    assert!(killed.expect("there is a kill").success());
    let stopped = step(&["stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(text(&stopped.stderr).contains("### GPU use of"), "{stopped:?}");
}
