//! What a shell is offered when it asks to complete a command.

use std::fs;

use crate::common::{Checkout, Home};

/// Returns what is offered for the last of these words, as the script for bash asks for it.
fn offered(home: &Home, words: &[&str]) -> Vec<String> {
    let mut command = home.command(&["--", "blueproof"]);
    command.args(words);
    command
        .env("BLUEPROOF_COMPLETE", "bash")
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn runs_blueprints_and_codes_are_offered_where_a_command_takes_them() {
    let home = Home::new();
    let checkout = Checkout::new(&["x = 1"], "");
    for _ in 0..2 {
        assert_eq!(home.blueproof(&["run", checkout.typed()]).code, Some(0));
    }
    for command in [
        "logs",
        "report",
        "artifacts",
        "why",
        "wait",
        "cancel",
        "retry",
        "ls",
    ] {
        assert_eq!(offered(&home, &[command, "r-"]), ["r-2", "r-1"], "{command}");
    }
    assert_eq!(offered(&home, &["get", "run", "r-2"]), ["r-2"]);
    assert_eq!(offered(&home, &["describe", "run", "la"]), ["last"]);
    assert_eq!(offered(&home, &["logs", "st"]), ["story"]);
    assert_eq!(offered(&home, &["get", "runs", "-b", "st"]), ["story"]);
    assert_eq!(offered(&home, &["explain", "BP020"])[0], "BP0201");

    let project = home.path().join("project");
    fs::create_dir_all(project.join("blueprints")).expect("a folder");
    for file in ["blueprint.yaml", "nb.ipynb"] {
        fs::copy(checkout.path().join(file), home.path().join(file)).expect("a copy");
    }
    assert_eq!(offered(&home, &["run", "s"]), ["story"]);
    assert!(offered(&home, &["run", "pro"])[0].starts_with("project"));
}

#[test]
fn a_shell_that_asks_makes_no_store_and_is_told_of_no_error() {
    let home = Home::local("it is about the file of the store, which a scheduler would have made");
    assert!(offered(&home, &["logs", "r-"]).is_empty());
    assert!(!home.store().exists());
    assert!(!home.store().parent().expect("a folder").exists());

    fs::create_dir_all(home.store().parent().expect("a folder")).expect("a folder");
    fs::write(home.store(), "no store at all").expect("a file");
    assert!(offered(&home, &["logs", "r-"]).is_empty());
    assert_eq!(fs::read(home.store()).expect("it is there"), b"no store at all");

    let elsewhere = home.path().join("elsewhere.db");
    let elsewhere = elsewhere.to_str().expect("a plain name");
    assert!(offered(&home, &["--store", elsewhere, "logs", "r-"]).is_empty());
    let mut unknown = home.command(&["--", "blueproof", "logs", ""]);
    let unknown = unknown.env("BLUEPROOF_COMPLETE", "nosuchshell").output();
    let unknown = unknown.expect("it starts");
    assert!(
        unknown.status.success() && unknown.stderr.is_empty(),
        "{unknown:?}"
    );
}

#[test]
fn the_script_of_each_shell_has_it_ask_the_program() {
    let home = Home::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = home.blueproof(&["completion", shell]);
        assert_eq!(script.code, Some(0), "{script:?}");
        assert!(
            script.stdout.contains("BLUEPROOF_COMPLETE"),
            "{shell}: {}",
            script.stdout
        );
    }
}
