//! Attempts that the local driver gave devices to.

use fake_nvml::{Clock, Installed, Scenario, a10};

use super::{
    machine::Machine,
    program::{Server, install, lines, once, program, text},
};

struct Place {
    library: Installed,
    devices: Vec<String>,
    runs: tempfile::TempDir,
}

impl Place {
    /// A machine with two devices, on which time passes.
    fn new() -> Self {
        let mut scenario = Scenario::of([a10(), a10()]);
        scenario.clock = Clock::Real;
        let library = install(&scenario);
        let devices = scenario
            .devices
            .iter()
            .map(|device| device.uuid.clone())
            .collect();
        Self {
            library,
            devices,
            runs: tempfile::tempdir().expect("a folder"),
        }
    }

    fn machine(&self) -> Machine {
        let devices: Vec<_> = self.devices.iter().map(String::as_str).collect();
        Machine::new(self.runs.path(), &devices)
    }

    fn folder(&self) -> &str {
        self.runs.path().to_str().expect("it is text")
    }

    fn serve(&self) -> Server {
        Server::start(&["--wait", "60000", "--runs", self.folder()], &self.library)
    }
}

/// Returns the sum of the samples of a metric that have this in their labels.
fn sum(page: &str, metric: &str, has: &str) -> f64 {
    let samples = lines(page, &format!("{metric}{{"));
    let values = samples.iter().filter(|line| line.contains(has)).map(|line| {
        let (_, value) = line.rsplit_once(' ').expect("a sample");
        value.parse::<f64>().expect("a number")
    });
    values.sum()
}

#[test]
fn attempts_are_shown_with_their_devices_and_the_devices_time_is_divided_among_them() {
    let place = Place::new();
    let (mut machine, server) = (place.machine(), place.serve());
    let page = || server.get("/metrics", &[]).text();
    assert_eq!(
        lines(&page(), "blueproof_attempt"),
        ["blueproof_attempts_up 1"],
        "nobody has anything"
    );
    machine.give(1, 2);
    // What is given is taken in with the next reading that begins after it.
    let of_first = "attempt=\"r-1.1\"";
    let given = |page: &String| sum(page, "blueproof_attempt_gpus", of_first) > 1.0;
    let first = std::iter::repeat_with(page).find(given).expect("it goes on");
    for device in &place.devices {
        let labels = format!("{{{of_first},uuid=\"{device}\",partition=\"\"}}");
        let name = format!("blueproof_attempt_gpu_allocated_seconds_total{labels}");
        assert_eq!(lines(&first, &name).len(), 1, "{first}");
    }
    drop(machine);
    let mut machine = place.machine();
    machine.give(2, 1);
    let of_second = |page: &String| page.contains("blueproof_attempt_info{attempt=\"r-2.1\"");
    let second = std::iter::repeat_with(page).find(of_second).expect("it goes on");
    let later = page();

    let allocated = "blueproof_attempt_gpu_allocated_seconds_total";
    let ended = sum(&second, allocated, of_first);
    assert_eq!(sum(&later, allocated, of_first), ended, "it has nothing any more");
    for page in [first, second, later] {
        let charged = sum(&page, "blueproof_gpu_charged_seconds_total", "to=\"attempts\"");
        let difference = charged - sum(&page, allocated, "attempt=");
        assert!(difference.abs() < 1e-6, "{difference} in\n{page}");
    }
}

#[test]
fn runs_that_may_not_be_read_are_told_of_and_found_again() {
    let place = Place::new();
    let mut server = place.serve();
    // A folder in the place of a file cannot be read by anybody, root neither.
    let claim = place.runs.path().join(".devices").join(&place.devices[0]);
    std::fs::create_dir_all(&claim).expect("it is ours");
    for _ in 0..2 {
        let page = server.get("/metrics", &[]).text();
        assert_eq!(lines(&page, "blueproof_attempt"), ["blueproof_attempts_up 0"]);
        assert!(page.contains("blueproof_gpu_power_watts{"), "{page}");
    }
    std::fs::remove_dir(&claim).expect("it is ours");
    assert!(
        server
            .get("/metrics", &[])
            .text()
            .contains("blueproof_attempts_up 1")
    );
    let log = server.log_until("it is known again");
    assert_eq!(log.matches("error[BP").count(), 1, "{log}");
    assert!(log.contains("= hint: "), "{log}");
}

#[test]
fn one_page_has_those_that_have_devices_now() {
    let place = Place::new();
    let mut machine = place.machine();
    machine.give(7, 1);
    let output = once(&place.library, &["--runs", place.folder()]);
    let page = text(&output.stdout);
    let info = lines(&page, "blueproof_attempt_info");
    assert!(
        info[0].contains("attempt=\"r-7.1\",run=\"r-7\",repository=\"\""),
        "{page}"
    );
}

#[test]
fn a_folder_of_runs_that_is_not_there_is_no_machine_without_attempts() {
    let place = Place::new();
    let missing = place.runs.path().join("missing");
    let library = missing.join("libnvidia-ml.so.1");
    let runs = missing.to_str().expect("it is text");
    let with_devices = once(&place.library, &["--runs", runs]);
    let mut without_driver = program();
    let without_driver = without_driver
        .args(["--once", "--runs", runs, "--library"])
        .arg(library)
        .output()
        .expect("it can be started");
    for output in [with_devices, without_driver] {
        let page = text(&output.stdout);
        assert_eq!(lines(&page, "blueproof_attempt"), ["blueproof_attempts_up 0"]);
        let log = text(&output.stderr);
        assert!(log.contains("could not read the folder of runs"), "{log}");
    }
}
