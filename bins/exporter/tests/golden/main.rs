//! The exporter's pages of a recording, metric by metric, beside pages that are checked in.
//!
//! What devices read is a [`story`]: a scenario of the fake driver, which our own probe reads at a second of virtual time. The
//! recording of that is checked in too, so that a page is of a file that anybody can look into. `INSTA_UPDATE=always` writes
//! all of them anew, as it does with other snapshots.

mod compare;
mod defaults;
mod page;
mod story;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use page::Page;

/// Metrics whose value is another one at each run, and so is not compared.
const VARYING: [&str; 1] = ["blueproof_gpu_collection_age_seconds"];

const RENEW: &str = "if that is meant: INSTA_UPDATE=always cargo test -p blueproof-exporter --test golden";

fn checked_in(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}; {RENEW}", path.display()))
}

fn is_renewed() -> bool {
    env::var("INSTA_UPDATE").is_ok_and(|how| how == "always" || how == "force")
}

/// Returns the recording's file, which is written first where all is renewed.
fn recording() -> PathBuf {
    let path = checked_in("recording.jsonl");
    if is_renewed() {
        fs::write(&path, story::recorded()).expect("it can be written");
    }
    path
}

/// Returns what the program prints of the recording.
fn printed(kind: &str) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_blueproof-exporter"));
    program.env_remove("NODE_NAME").stdin(Stdio::null());
    program.args(["--once", "--page", kind, "--host", "node-1", "--recorded"]);
    let output = program.arg(recording()).output().expect("it can be started");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

fn parsed(kind: &str) -> Page {
    Page::parse(&printed(kind)).expect("the page is well formed")
}

fn assert_as_checked_in(kind: &str) {
    let path = checked_in(&format!("{kind}.prom"));
    if is_renewed() {
        fs::write(&path, without_varying(&printed(kind))).expect("it can be written");
    }
    let expected = Page::parse(&read(&path)).expect("the checked-in page is well formed");
    let differences = compare::differences(&expected, &parsed(kind), &VARYING);
    assert!(differences.is_empty(), "\n{}\n{RENEW}", differences.join("\n"));
}

fn without_varying(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let name = VARYING
            .into_iter()
            .find(|name| line.starts_with(&format!("{name} ")));
        name.map_or_else(|| format!("{line}\n"), |name| format!("{name} 0\n"))
    });
    lines.collect()
}

#[test]
fn the_recording_is_what_the_probe_reads_in_the_story() {
    let (expected, recorded) = (read(&recording()), story::recorded());
    for (number, (expected, recorded)) in expected.lines().zip(recorded.lines()).enumerate() {
        assert_eq!(expected, recorded, "line {}; {RENEW}", number + 1);
    }
    assert_eq!(expected.lines().count(), recorded.lines().count(), "{RENEW}");
}

#[test]
fn our_own_page_is_as_it_is_checked_in() {
    assert_as_checked_in("native");
}

#[test]
fn the_page_in_the_words_of_dcgm_is_as_it_is_checked_in() {
    assert_as_checked_in("dcgm");
}
