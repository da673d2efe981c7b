//! What is kept of a run: for its owner alone, without secrets, and with all that a notebook's children said.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::{Checkout, Home, Running, Terminal};

const COLUMNS: u16 = 80;

/// Returns the command as a shell starts it that takes no right from anybody.
fn without_mask(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 000; exec \"$@\"", "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    shell.current_dir(command.get_current_dir().unwrap_or(Path::new("/")));
    for (variable, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(variable, value),
            None => shell.env_remove(variable),
        };
    }
    shell
}

/// Returns folders, reports and stores below a folder that others than its owner have rights to.
fn open_to_others(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, metadata) = (entry.path(), entry.metadata().expect("it is there"));
        let name = entry.file_name().to_string_lossy().into_owned();
        // Whatever else there is lies in folders that nobody else may enter.
        let is_kept = name.starts_with("report.") || name.starts_with("blueproof.db") || name == "junit.xml";
        let has_others = metadata.permissions().mode() & 0o077 != 0;
        if has_others && (is_kept || metadata.is_dir()) {
            found.push(path);
        } else if metadata.is_dir() {
            open_to_others(&path, found);
        }
    }
}

#[test]
fn runs_reports_and_store_are_their_owners_alone_whatever_the_first_run_was() {
    for (spec, code) in [("  driver: {cpu: 4000}\n", 6), ("", 0)] {
        let (home, checkout) = (Home::new(), Checkout::new(&["1"], spec));
        let command = without_mask(&home.command(&["run", checkout.typed()]));
        let ran = Running::start(command).end();
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(home.run_folder("r-1").join("report.html").exists());
        let mut found = Vec::new();
        open_to_others(&home.path().join("data"), &mut found);
        assert_eq!(found, Vec::<PathBuf>::new());
    }
}

#[test]
fn a_secret_in_an_artifact_is_told_and_in_its_name_it_is_taken_out() {
    let cell = "import os\nfrom pathlib import Path\nos.mkdir('out')\n\
                Path('out/a.txt').write_text('ghp_' + 'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6')\n\
                Path('out/plain.txt').write_text('nothing')\n\
                Path('out/ghp_' + 'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6.txt').write_text('x')";
    let (home, checkout) = (Home::new(), Checkout::new(&[cell], "  artifacts: [out/*]\n"));
    let ran = home.blueproof(&["run", checkout.typed(), "-o", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let notices = ran.json()["notices"].to_string();
    assert!(
        notices.contains("the artifact `out/a.txt` holds what looks like a GitHub token"),
        "{notices}"
    );
    assert!(!notices.contains("plain.txt"), "{notices}");
    assert!(!ran.stdout.contains("ghp_aB3"), "{ran:?}");
}

#[test]
fn what_a_child_prints_last_in_the_last_cell_is_measured() {
    let spec =
        "  metrics: [{name: loss, from: {regex: 'loss: (\\S+)'}}]\n  expect: {loss: {last: {max: 1}}}\n";
    let cell = "import subprocess, sys\n\
                subprocess.Popen([sys.executable, '-c', 'print(\"loss: 5\"); print(\"loss: 0.5\")']).wait()";
    let (home, checkout) = (Home::new(), Checkout::new(&["x = 1", cell], spec));
    let ran = home.blueproof(&["run", checkout.typed()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("loss 0.5"), "{ran:?}");
}

#[test]
fn a_table_and_what_is_said_of_stages_fit_the_terminal_and_elsewhere_nothing_is_cut() {
    let (home, checkout) = (Home::new(), Checkout::new(&["print('on')"], ""));
    let widest = |arguments: &[&str]| {
        let terminal = Terminal::start(home.command(arguments), COLUMNS).expect("a terminal");
        let (code, written) = terminal.end_once_seen(&[], || ());
        assert_eq!(code, Some(0), "{written}");
        let plain = anstream::adapter::strip_str(&written).to_string();
        let lines = plain.split(['\r', '\n']).map(str::to_owned);
        lines.max_by_key(|line| line.chars().count()).unwrap_or_default()
    };
    for arguments in [
        &["run", checkout.typed()][..],
        &["get", "runs", "-o", "wide"],
        &["get", "runs"],
    ] {
        let line = widest(arguments);
        // What the run's report is called is one word, whatever its length.
        let is_path = arguments[0] == "run" && line.split_whitespace().any(|word| word.len() > 60);
        assert!(
            is_path || line.chars().count() <= COLUMNS.into(),
            "{arguments:?}: {line}"
        );
    }
    let piped = home.blueproof(&["get", "runs", "-o", "wide"]).stdout;
    assert_eq!(piped.lines().count(), 2, "{piped}");
}

#[test]
fn a_hostile_name_is_one_line_and_stands_as_it_is_in_a_document() {
    let cell = "import os\nos.mkdir('out')\nopen('out/a\\nb\\u202e.txt', 'w').write('x')";
    let (home, checkout) = (Home::new(), Checkout::new(&[cell], "  artifacts: [out/*]\n"));
    let ran = home.blueproof(&["run", checkout.typed()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed = home.blueproof(&["artifacts", "r-1"]).stdout;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    assert!(listed.trim_end().ends_with(r"out/a\nb\u{202e}.txt"), "{listed}");
    let document = home.blueproof(&["artifacts", "r-1", "-o", "json"]).json();
    let path = document["items"][0]["path"].as_str().expect("a path");
    match home.is_local() {
        true => assert!(Path::new(path).is_file(), "{path:?}"),
        false => assert!(path.ends_with("out/a\nb\u{202e}.txt"), "{path:?}"),
    }
}

#[test]
fn a_destination_that_cannot_be_written_to_is_what_is_named() {
    let cell = "import os\nos.mkdir('out')\nopen('out/a.txt', 'w').write('x')";
    let (home, checkout) = (Home::new(), Checkout::new(&[cell], "  artifacts: [out/*]\n"));
    let ran = home.blueproof(&["run", checkout.typed()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    fs::write(home.path().join("README.md"), "").expect("a file");
    let copied = home.blueproof(&["artifacts", "r-1", "--to", "README.md"]);
    assert_eq!(copied.code, Some(2), "{copied:?}");
    assert!(
        copied
            .stderr
            .contains("could not write a copy to the destination"),
        "{copied:?}"
    );
    assert!(copied.stderr.contains("README.md"), "{copied:?}");
}

#[test]
fn that_what_was_kept_is_gone_is_said_by_all_who_would_show_it() {
    let (home, checkout) = (Home::new(), Checkout::new(&["print('on')"], ""));
    let ran = home.blueproof(&["run", checkout.typed()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    fs::remove_dir_all(home.run_folder("r-1")).expect("it is there");
    for command in ["logs", "artifacts", "report"] {
        let said = home.blueproof(&[command, "r-1"]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains("is gone"), "{said:?}");
    }
    let described = home.blueproof(&["describe", "run", "r-1"]);
    assert_eq!(described.code, Some(0), "{described:?}");
    assert!(described.stdout.contains("gone, with all of"), "{described:?}");
}
