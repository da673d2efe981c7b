//! What people get wrong, and machines: a code, an exit code, a hint, and nothing half-written.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::common::{Answer, Checkout, Home};

/// How a mistake is answered.
struct Expected {
    code: i32,
    diagnostic: &'static str,
    /// Where, and what is to be done, among other things.
    says: &'static [&'static str],
}

fn refused(diagnostic: &'static str, says: &'static [&'static str]) -> Expected {
    Expected {
        code: 2,
        diagnostic,
        says,
    }
}

/// Sees that the answer is an error on stderr with a hint, and that no run was made of it.
fn assert_mistake(home: &Home, answer: &Answer, expected: &Expected) {
    assert_eq!(answer.code, Some(expected.code), "{answer:?}");
    assert_eq!(answer.stdout, "", "an error is no answer");
    let error = format!("error[{}]: ", expected.diagnostic);
    assert!(answer.stderr.contains(&error), "{error} {answer:?}");
    assert!(answer.stderr.contains("hint: "), "{answer:?}");
    for says in expected.says {
        assert!(answer.stderr.contains(says), "`{says}`: {answer:?}");
    }
    assert!(!home.run_folder("r-1").exists(), "no run was made");
    let runs = home.blueproof(&["get", "runs", "-o", "json"]);
    assert_eq!(runs.json()["items"], json!([]), "{runs:?}");
}

/// Runs a checkout that `spoil` has made bad, with more arguments, and sees how it is refused.
fn assert_refused(spoil: impl FnOnce(&Path), arguments: &[&str], expected: &Expected) {
    let (home, checkout) = (
        Home::new(),
        Checkout::new(
            &["print('x')"],
            "  parameters:\n    steps: {type: int, default: 3}\n",
        ),
    );
    spoil(checkout.path());
    let mut typed = vec!["run", checkout.typed()];
    typed.extend(arguments);
    assert_mistake(&home, &home.blueproof(&typed), expected);
}

fn spoil_blueprint(from: &'static str, to: &'static str) -> impl FnOnce(&Path) {
    move |checkout| {
        let path = checkout.join("blueprint.yaml");
        let text = fs::read_to_string(&path).expect("a file");
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).expect("a file");
    }
}

fn write(file: &'static str, text: &'static str) -> impl FnOnce(&Path) {
    move |checkout| fs::write(checkout.join(file), text).expect("a file")
}

#[test]
fn what_is_not_there_is_refused() {
    let home = Home::new();
    let answer = home.blueproof(&["run", "./nothing-here.ipynb"]);
    assert_mistake(&home, &answer, &refused("BP0201", &["nothing-here.ipynb"]));
    let answer = home.blueproof(&["run", "no-such-blueprint"]);
    assert_mistake(&home, &answer, &refused("BP0214", &["no-such-blueprint"]));
    assert_refused(
        |checkout| fs::remove_file(checkout.join("nb.ipynb")).expect("it is there"),
        &[],
        &refused("BP0201", &["nb.ipynb"]),
    );
}

#[test]
fn a_malformed_notebook_is_refused() {
    assert_refused(
        write("nb.ipynb", "{\"cells\": ["),
        &[],
        &refused("BP0220", &["nb.ipynb"]),
    );
    assert_refused(
        write(
            "nb.ipynb",
            r#"{"nbformat": 3, "nbformat_minor": 0, "worksheets": []}"#,
        ),
        &[],
        &refused("BP0221", &["nb.ipynb"]),
    );
    assert_refused(
        write(
            "nb.ipynb",
            r#"{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"source": 7}]}"#,
        ),
        &[],
        &refused("BP0222", &["nb.ipynb"]),
    );
}

#[test]
fn a_malformed_blueprint_is_refused_at_its_line() {
    for (from, to, expected) in [
        (
            "  notebook: nb.ipynb",
            "  notebook: 'nb.ipynb",
            refused("BP0202", &["blueprint.yaml:"]),
        ),
        (
            "  notebook:",
            "  notbook:",
            refused("BP0203", &["blueprint.yaml:5:3", "notebook"]),
        ),
        (
            "default: 3",
            "default: three",
            refused("BP0209", &["blueprint.yaml:7"]),
        ),
        (
            "  parameters:",
            "  timeouts: {cell: soon}\n  parameters:",
            refused("BP0205", &["blueprint.yaml:6"]),
        ),
        (
            "  parameters:",
            "  driver: 7\n  parameters:",
            refused("BP0204", &["blueprint.yaml:6"]),
        ),
        (
            "  notebook: nb.ipynb",
            "  notebook: ../nb.ipynb",
            refused("BP0211", &["blueprint.yaml:5"]),
        ),
        (
            "  notebook: nb.ipynb",
            "  notebook: /etc/hostname",
            refused("BP0211", &["blueprint.yaml:5"]),
        ),
        (
            "  parameters:",
            "  artifacts: ['../*.json']\n  parameters:",
            refused("BP0211", &["blueprint.yaml:6"]),
        ),
    ] {
        assert_refused(spoil_blueprint(from, to), &[], &expected);
    }
}

#[test]
fn a_link_that_leads_out_of_the_checkout_is_refused() {
    let outside = Checkout::new(&["print('not yours')"], "");
    let target = outside.path().join("nb.ipynb");
    let link = |checkout: &Path| {
        fs::remove_file(checkout.join("nb.ipynb")).expect("it is there");
        std::os::unix::fs::symlink(target, checkout.join("nb.ipynb")).expect("a link");
    };
    assert_refused(link, &[], &refused("BP0211", &["nb.ipynb"]));
}

#[test]
fn what_is_typed_wrongly_is_refused() {
    let as_it_is = |_: &Path| {};
    assert_refused(
        as_it_is,
        &["-p", "stepz=4"],
        &refused("BP0208", &["stepz", "steps"]),
    );
    assert_refused(as_it_is, &["-p", "steps=many"], &refused("BP0209", &["steps"]));
    assert_refused(as_it_is, &["-p", "steps"], &refused("BP0101", &["NAME=VALUE"]));
    assert_refused(as_it_is, &["--profile", "gpu9"], &refused("BP0210", &["gpu9"]));
}

#[test]
fn without_a_python_nothing_can_run_and_that_is_said() {
    let home = Home::local("what is found is what is on the PATH of the command");
    let checkout = Checkout::new(&["print('x')"], "");
    let empty = home.path().join("bin");
    fs::create_dir(&empty).expect("a folder");
    let mut command = home.command(&["run", checkout.typed()]);
    command.env("PATH", &empty).env_remove("PYENV_ROOT");
    let answer: Answer = command.output().expect("it starts").into();
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.stdout.starts_with("REFUSED story r-1"), "{answer:?}");
    assert!(answer.stdout.contains("error[BP0301]: "), "{answer:?}");
    assert!(answer.stdout.contains("hint: "), "{answer:?}");
}

#[test]
fn a_store_of_a_newer_version_is_not_touched() {
    let home = Home::local("it is about the file of the store");
    let checkout = Checkout::new(&["print('x')"], "");
    drop(blueproof_core::sqlite::SqliteStore::open(&home.store()).expect("a store"));
    // SQLite keeps `user_version` as four bytes, big end first, at 60 of the file; the WAL is gone with the last one who closed it.
    let mut bytes = fs::read(home.store()).expect("a file");
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(home.store(), &bytes).expect("a file");
    for arguments in [
        &["run", checkout.typed()][..],
        &["get", "runs"],
        &["wait", "last"],
    ] {
        let answer = home.blueproof(arguments);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.starts_with("error[BP0702]: "), "{answer:?}");
        assert!(answer.stderr.contains("hint: "), "{answer:?}");
    }
    assert_eq!(fs::read(home.store()).expect("a file"), bytes);
}

#[test]
fn a_file_that_is_no_store_is_not_touched() {
    let (home, checkout) = (Home::new(), Checkout::new(&["print('x')"], ""));
    let file = home.path().join("diary.txt");
    let words = "Dear diary, ".repeat(1000);
    fs::write(&file, &words).expect("a file");
    let file_name = file.to_str().expect("a plain name");
    let answer = home.blueproof(&["run", checkout.typed(), "--store", file_name]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.stderr.contains("error[BP0703]: "), "{answer:?}");
    assert_eq!(fs::read_to_string(file).expect("a file"), words);
}

#[test]
fn a_store_that_cannot_be_made_is_infrastructure() {
    let (home, checkout) = (Home::new(), Checkout::new(&["print('x')"], ""));
    fs::write(home.path().join("file"), "").expect("a file");
    let below = home.path().join("file/below/blueproof.db");
    let answer = home.blueproof(&[
        "run",
        checkout.typed(),
        "--store",
        below.to_str().expect("a plain name"),
    ]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert!(answer.stderr.starts_with("error[BP0701]: "), "{answer:?}");
    assert!(answer.stderr.contains("hint: "), "{answer:?}");
    assert_eq!(answer.stdout, "");
}

#[test]
fn a_run_that_asks_for_more_than_the_queue_has_is_refused_at_once_and_says_so() {
    let (home, checkout) = (
        Home::new(),
        Checkout::new(&["print('x')"], "  driver: {cpu: 4000}\n"),
    );
    let answer = home.blueproof(&["run", checkout.typed()]);
    assert_eq!(answer.code, Some(6), "{answer:?}");
    assert!(answer.stdout.starts_with("REFUSED "), "{answer:?}");
    assert!(
        answer.stdout.contains("error[BP0801]: asks for 4000 cpu"),
        "{answer:?}"
    );
    assert!(answer.stdout.contains("hint: let it ask for less"), "{answer:?}");
    let junit = home.blueproof(&["report", "last", "--format", "junit"]);
    assert!(
        junit
            .stdout
            .contains("tests=\"1\" skipped=\"0\" failures=\"0\" errors=\"1\"")
            && junit.stdout.contains("asks for 4000 cpu"),
        "{junit:?}"
    );
    let report = home.blueproof(&["report", "last", "--format", "json"]).json();
    assert_eq!(
        report["verdict"]["failed"]["diagnostic"]["code"], "BP0801",
        "{report}"
    );
    assert_eq!(
        (&report["run"], &report["attempt"]),
        (&"r-1".into(), &Value::Null)
    );
}
