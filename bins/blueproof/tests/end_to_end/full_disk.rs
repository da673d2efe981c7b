//! A disk that is full, from the beginning or all of a sudden: a verdict or an error with a code, and once there is
//! space again everything goes on.

use std::{
    fs,
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStderr, Command, Stdio},
};

use serde_json::json;

use crate::common::{Answer, Checkout, Held, Home, Running, SmallDisk, eventually};

/// A home whose store and runs are on a small disk.
struct Tight {
    disk: SmallDisk,
    home: Home,
}

impl Tight {
    fn new() -> Option<Self> {
        let home = Home::local("the disk is there for nobody but the commands that are started on it");
        let data = home.path().join("data");
        fs::create_dir(&data).expect("a folder");
        let disk = SmallDisk::mount(&data, 8 << 10)?;
        Some(Self { disk, home })
    }

    fn start(&self, arguments: &[&str]) -> Running {
        Running::start(self.disk.seen_by(&self.home.command(arguments)))
    }

    /// Starts a run, and returns when everything is written down that is before its end.
    fn start_held(&self, held: &Held) -> Running {
        let run = self.start(&["run", held.typed()]);
        eventually("it runs", || {
            let listed = self.blueproof(&["get", "runs", "--status", "running", "-o", "name"]);
            (listed.stdout == "r-1\n").then_some(())
        });
        run
    }

    fn blueproof(&self, arguments: &[&str]) -> Answer {
        self.start(arguments).end()
    }

    /// Sees that an ordinary run passes, and that every run before it is brought to its end.
    fn assert_everything_goes_on(&self) {
        let checkout = Checkout::new(&["print('there is space')"], "");
        let next = self.blueproof(&["run", checkout.typed()]);
        assert_eq!(next.code, Some(0), "{next:?}");
        for run in self.blueproof(&["get", "runs", "-o", "name"]).stdout.lines() {
            let waited = self.blueproof(&["wait", run, "-o", "json"]);
            assert_eq!(waited.json()["settled"], true, "{waited:?}");
        }
    }
}

/// Drives for nobody, and says on stderr what is wrong.
struct Host {
    process: Child,
    said: Lines<BufReader<ChildStderr>>,
}

impl Host {
    fn start(mut command: Command) -> Self {
        let mut process = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let said = BufReader::new(process.stderr.take().expect("it is piped")).lines();
        Self { process, said }
    }

    fn until_said(&mut self, text: &str) {
        let mut lines = self.said.by_ref().map(|line| line.expect("text"));
        assert!(lines.any(|line| line.contains(text)), "it ended without `{text}`");
    }

    fn until_ended(mut self) {
        assert!(self.process.wait().expect("it was started").success());
    }
}

#[test]
fn a_disk_that_is_full_from_the_beginning_is_an_error_and_breaks_nothing() {
    // How far it comes depends on how much is left: into the store's file, its schema, the request, the attempt.
    for free_kib in [0, 16, 64, 96, 128, 192] {
        let Some(tight) = Tight::new() else { return };
        tight.disk.fill_up_to(free_kib);
        let checkout = Checkout::new(&["print('no space')"], "");

        let answer = tight.blueproof(&["run", checkout.typed()]);

        assert!(matches!(answer.code, Some(0 | 3)), "{free_kib} KiB: {answer:?}");
        let is_told = answer.stderr.contains("error[BP0") || answer.stdout.contains("error[BP0");
        assert_eq!(is_told, answer.code == Some(3), "{free_kib} KiB: {answer:?}");
        assert!(free_kib > 0 || is_told, "{answer:?}");
        tight.disk.empty();
        tight.assert_everything_goes_on();
    }
}

const FILL: &str =
    "with open('big', 'wb', buffering=0) as file:\n    while file.write(b'x' * 512):\n        pass";

#[test]
fn a_notebook_that_fills_the_disk_is_judged_by_its_own_exception() {
    let Some(tight) = Tight::new() else { return };
    let held = Held::before(
        &tight.home,
        "held",
        &["print('before')", FILL, "print('never reached')"],
    );
    let run = tight.start_held(&held);

    held.let_go();
    let answer = run.end();

    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(
        answer
            .stdout
            .contains("OSError: [Errno 28] No space left on device"),
        "{answer:?}"
    );
    let run = tight.blueproof(&["get", "run", "r-1", "-o", "json"]).json();
    assert_eq!(run["state"], json!({ "ended": "failed" }));
    assert_eq!(run["failure"]["cell"]["cell"], 3, "{run}");
    assert_eq!(
        run["attempts"].as_array().map(Vec::len),
        Some(1),
        "it is not tried again"
    );
    tight.assert_everything_goes_on();
}

#[test]
fn nothing_that_is_printed_while_the_disk_is_full_is_lost_when_space_comes_back() {
    let Some(tight) = Tight::new() else { return };
    let fill = format!(
        "try:\n    {}\nexcept OSError as error:\n    print(error)",
        FILL.replace('\n', "\n    ")
    );
    let held = Held::before(&tight.home, "held", &[&fill, "print('Z' * 20_000)"]);
    let run = tight.start_held(&held);

    held.let_go();
    let answer = run.end();

    assert_eq!(answer.code, Some(0), "{answer:?}");
    // IPython has something to say about the disk, too.
    let logs = tight.blueproof(&["logs", "r-1", "--cell", "3"]);
    assert_eq!(logs.stdout.matches('Z').count(), 20_000, "{}", logs.stderr);
    tight.assert_everything_goes_on();
}

#[test]
fn a_disk_that_others_fill_while_a_notebook_runs_is_infrastructure() {
    let Some(tight) = Tight::new() else { return };
    let held = Held::before(&tight.home, "held", &["print('Z' * 20_000)"]);
    let run = tight.start_held(&held);

    tight.disk.fill_up_to(0);
    held.let_go();
    let answer = run.end();

    assert_eq!(answer.code, Some(3), "{answer:?}");
    let is_told = answer.stderr.contains("error[BP0") || answer.stdout.contains("error[BP0");
    assert!(is_told, "{answer:?}");
    tight.disk.empty();
    tight.assert_everything_goes_on();
}

#[test]
fn whoever_drives_for_nobody_waits_for_a_store_that_cannot_be_opened_yet() {
    let home = Home::local("it is about the process that a command leaves behind at a store");
    let data = home.path().join("data");
    fs::write(&data, "no folder").expect("a file");
    let mut host = Host::start(home.command(&["host"]));
    host.until_said("the store cannot be used");

    fs::remove_file(&data).expect("it is there");

    host.until_ended();
}

#[test]
fn whoever_drives_for_nobody_goes_on_when_there_is_space_again() {
    let Some(tight) = Tight::new() else { return };
    let held = Held::before(&tight.home, "held", &["print('Z' * 20_000)"]);
    tight.start_held(&held).kill_nine();
    let mut host = Host::start(tight.disk.seen_by(&tight.home.command(&["host"])));
    eventually("it drives", || {
        let alone = tight.blueproof(&["get", "runs"]).stderr;
        (!alone.contains("BP0108")).then_some(())
    });

    tight.disk.fill_up_to(0);
    held.let_go();
    host.until_said("tries again");
    tight.disk.empty();

    host.until_ended();
    let run = tight.blueproof(&["get", "run", "r-1", "-o", "json"]).json();
    assert_eq!(run["settled"], true, "{run}");
}

#[test]
fn what_is_stored_is_read_on_a_full_disk() {
    let Some(tight) = Tight::new() else { return };
    let checkout = Checkout::new(&["print('before')"], "");
    assert_eq!(tight.blueproof(&["run", checkout.typed()]).code, Some(0));
    for free_kib in [0, 4, 16, 32] {
        tight.disk.fill_up_to(free_kib);
        // Whoever writes fails, and leaves what it made.
        tight.blueproof(&["run", checkout.typed()]);
        for command in [
            &["get", "runs"][..],
            &["get", "events"],
            &["get", "run", "r-1", "-o", "json"],
            &["describe", "run", "r-1"],
            &["why", "r-1"],
            &["quota", "get"],
            &["metrics"],
            &["logs", "r-1"],
        ] {
            let answer = tight.blueproof(command);
            assert_eq!(answer.code, Some(0), "{free_kib} KiB, {command:?}: {answer:?}");
            assert!(!answer.stdout.is_empty(), "{command:?}: {answer:?}");
        }
        tight.disk.empty();
    }
    tight.assert_everything_goes_on();
}
