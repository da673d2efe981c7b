//! Jobs in throw-away machines, with a driver's library that answers from a scenario, in real time.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::{Command, Output, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

use fake_nvml::{Clock, Delay, Fault, Figures, Installed, NvmlReturn, Scenario, Steps, a10};
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};
use serde_json::Value;

/// Kills a process, whoever started it, and returns once it is gone.
fn kill(pid: i32) {
    let pid = Pid::from_raw(pid).expect("a number of a process");
    let process = pidfd_open(pid, PidfdFlags::empty()).expect("it is there");
    kill_process(pid, Signal::KILL).expect("it is ours");
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    poll(&mut ended, None).expect("it ends");
}

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
        "OTEL_EXPORTER_OTLP_ENDPOINT",
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
        (&2.into(), &"python3".into())
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
        (&["/"], 126, "BP0914"),
    ] {
        let arguments = [&["--quiet", "--"], words].concat();
        let output = run(job(folder.path(), &driver, &arguments));
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        assert!(text(&output.stderr).contains(says), "{output:?}");
    }
    let nothing = run(job(folder.path(), &driver, &[]));
    assert_eq!(nothing.status.code(), Some(2));
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

/// Takes one request, and returns its first line, its headers and its body.
fn take_one(listener: &TcpListener) -> (String, Vec<String>, Value) {
    let (stream, _) = listener.accept().expect("somebody pushes");
    let mut reader = BufReader::new(&stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a request");
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let length = |line: &String| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok();
    let length: usize = lines.iter().find_map(length).expect("it tells how much comes");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("all of it");
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    (&stream).write_all(answer.as_bytes()).expect("it waits");
    (
        lines.remove(0),
        lines,
        serde_json::from_slice(&body).expect("JSON"),
    )
}

#[test]
fn a_summary_is_pushed_once_and_a_collector_that_is_gone_changes_nothing() {
    let (folder, driver) = (tempfile::tempdir().expect("a folder"), driver());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let endpoint = format!("http://{}/", listener.local_addr().expect("it has one"));
    let collector = std::thread::spawn(move || take_one(&listener));
    let pushes = || {
        let mut command = job(
            folder.path(),
            &driver,
            &["--quiet", "--otlp", &endpoint, "--", "sleep", "0.3"],
        );
        command.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret");
        command.env("GITHUB_REPOSITORY", "kubeflow/trainer");
        run(command)
    };
    let pushed = pushes();
    assert_eq!((pushed.status.code(), text(&pushed.stderr)), (Some(0), ""));
    let (first, headers, body) = collector.join().expect("it was asked");
    assert_eq!(first, "POST /v1/metrics HTTP/1.1");
    assert!(
        headers.iter().any(|header| header == "api-key: secret"),
        "{headers:?}"
    );

    let told = &body["resourceMetrics"][0];
    let attributes = told["resource"]["attributes"].as_array().expect("a list");
    let repository =
        serde_json::json!({"key": "vcs.repository.name", "value": {"stringValue": "kubeflow/trainer"}});
    assert!(attributes.contains(&repository), "{told}");
    let metrics = told["scopeMetrics"][0]["metrics"].as_array().expect("a list");
    let energy = metrics
        .iter()
        .find(|metric| metric["name"] == "blueproof.job.gpu.energy");
    let points = energy.expect("it was read")["sum"]["dataPoints"]
        .as_array()
        .expect("a list");
    assert_eq!(points.len(), 2, "one for each device");
    let nanoseconds = points[0]["timeUnixNano"].as_str().expect("a text");
    assert!(nanoseconds.parse::<u64>().is_ok(), "{nanoseconds}");

    let gone = pushes();
    assert_eq!(gone.status.code(), Some(0));
    assert!(text(&gone.stderr).contains("BP0917"), "{gone:?}");
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
    kill(pid.trim().parse().expect("a number"));
    let shown = step(&["report"]);
    assert!(text(&shown.stdout).contains("The watch ended early"), "{shown:?}");
    let stopped = step(&["stop", "--json", "gpu.json"]);
    assert!(stopped.status.success(), "{stopped:?}");
    let told = text(&stopped.stderr);
    assert!(told.contains("### GPU use of"), "{told}");
    assert!(
        told.contains("The watch ended early") && !told.contains("| none |"),
        "{told}"
    );
    let json = read(&folder.path().join("gpu.json"));
    assert_eq!(json["watchEndedEarly"], true, "{json}");
    assert!(
        json["seenUntil"].is_string() && json["until"].is_string(),
        "{json}"
    );
    assert_eq!(json["devices"][0]["listenedTo"], false, "{json}");

    step(&["stop", "--json", "again.json"]);
    assert_eq!(read(&folder.path().join("again.json")), json, "it ended once");
}

/// Returns a job's table and its JSON, of a machine with a scenario.
fn watched(scenario: &Scenario, command: &[&str]) -> (String, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let driver = Installed::new(scenario).expect("the library was built beside this test");
    let arguments = [&["--json", "gpu.json", "--"], command].concat();
    let output = run(job(folder.path(), &driver, &arguments));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    (
        text(&output.stderr).to_owned(),
        read(&folder.path().join("gpu.json")),
    )
}

fn fault(function: &str, device: Option<usize>, from: f64, returns: NvmlReturn) -> Fault {
    Fault {
        function: function.into(),
        device,
        from,
        to: None,
        returns,
    }
}

fn assert_unknown(scenario: &Scenario) {
    let (told, json) = watched(scenario, &["true"]);
    assert!(told.contains("It is not known which GPUs it had"), "{told}");
    assert!(told.contains("error[BP09"), "and why: {told}");
    assert!(json["devicesUnknown"].is_string(), "{json}");
    assert!(json.get("allocatedGpuSeconds").is_none(), "{json}");
}

#[test]
fn a_job_on_a_machine_whose_driver_does_not_say_what_there_is_has_unknown_devices_and_not_none() {
    for returns in [NvmlReturn::NoPermission, NvmlReturn::LibRmVersionMismatch] {
        let mut scenario = Scenario::of([a10()]);
        scenario.faults = vec![fault("nvmlInit_v2", None, 0.0, returns)];
        assert_unknown(&scenario);
    }
    let mut scenario = Scenario::of([a10()]);
    scenario.delays = vec![Delay::always("nvmlDeviceGetCount_v2", None, 3_600_000)];
    assert_unknown(&scenario);
}

#[test]
fn a_job_on_a_machine_whose_library_is_broken_has_unknown_devices_and_not_none() {
    let (folder, driver) = (tempfile::tempdir().expect("a folder"), driver());
    for content in ["", "no library"] {
        fs::write(folder.path().join("libnvidia-ml.so.1"), content).expect("it can be written");
        let mut command = job(folder.path(), &driver, &["--", "true"]);
        command.env("LD_LIBRARY_PATH", folder.path());
        let output = run(command);
        let told = text(&output.stderr);
        assert!(
            told.contains("It is not known which GPUs it had") && told.contains("install the driver anew"),
            "{told}"
        );
    }
}

#[test]
fn between_steps_a_driver_that_does_not_say_what_there_is_has_unknown_devices_and_not_none() {
    let mut scenario = Scenario::of([a10()]);
    scenario.faults = vec![fault("nvmlInit_v2", None, 0.0, NvmlReturn::NoPermission)];
    let driver = Installed::new(&scenario).expect("the library was built beside this test");
    let folder = tempfile::tempdir().expect("a folder");
    let step = |arguments: &[&str]| {
        let mut command = job(folder.path(), &driver, arguments);
        command.env("RUNNER_TEMP", folder.path());
        run(command)
    };
    let started = step(&["start"]);
    assert!(started.status.success(), "{started:?}");
    assert!(
        text(&started.stderr).starts_with("watching GPUs, though it is not known which there are ("),
        "{started:?}"
    );
    let stopped = step(&["stop", "--json", "gpu.json"]);
    assert!(
        text(&stopped.stderr).contains("It is not known which GPUs it had"),
        "{stopped:?}"
    );
    let json = read(&folder.path().join("gpu.json"));
    assert!(json["devicesUnknown"].is_string(), "{json}");
}

#[test]
fn a_job_names_the_device_that_was_lost_and_those_nobody_listened_to() {
    let mut deaf = Scenario::of([a10(), a10()]);
    deaf.devices[1].supported_event_types = 0;
    let (told, json) = watched(&deaf, &["true"]);
    let rows: Vec<_> = told.lines().filter(|line| line.contains("A10</code>")).collect();
    assert!(
        rows[0].contains("| none |") && rows[1].contains("| – |"),
        "{told}"
    );
    assert_eq!(json["devices"][0]["listenedTo"], true);
    assert_eq!(json["devices"][1]["listenedTo"], false);
    assert_eq!(
        json["verdict"], "unclear",
        "nobody knows what it reported: {json}"
    );

    let mut losing = Scenario::of([a10(), a10()]);
    losing.clock = Clock::Real;
    losing.faults = vec![fault("*", Some(1), 2.0, NvmlReturn::GpuIsLost)];
    let (told, json) = watched(&losing, &["sleep", "4"]);
    assert!(told.contains("it was lost"), "{told}");
    assert_eq!(json["devices"][1]["silence"], "lost", "{json}");
    assert_eq!(json["devices"][0].get("silence"), None, "{json}");
    assert_eq!(json["verdict"], "infrastructureFault", "{json}");
}

#[test]
fn a_device_that_hangs_costs_its_neighbour_no_time_of_a_job() {
    let mut hanging = Scenario::of([a10(), a10()]);
    hanging.clock = Clock::Real;
    hanging.delays = vec![Delay {
        function: "nvmlDeviceGetTemperature".into(),
        device: Some(0),
        from: 2.0,
        to: None,
        milliseconds: 3_600_000,
    }];
    let (told, json) = watched(&hanging, &["sleep", "8"]);
    let coverage = [0, 1].map(|device: usize| {
        let seen = &json["devices"][device]["coverage"]["energy"];
        seen.as_f64().unwrap_or_else(|| panic!("{json}"))
    });
    assert!(coverage[0] < 0.7 && coverage[1] > 0.9, "{coverage:?} in {json}");
    assert_eq!(json["verdict"], "unclear", "{told}");
}
