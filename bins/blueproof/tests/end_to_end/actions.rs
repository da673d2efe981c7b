//! A run in a step of GitHub Actions.

use std::fs;

use crate::common::{Checkout, Home};

#[test]
fn in_github_actions_a_failure_is_noted_at_the_notebooks_line_and_summed_up() {
    let home = Home::new();
    let checkout = Checkout::new(
        &[
            "x = 1",
            "y = 2\nraise ValueError('100 %\\n::warning::no command')",
        ],
        "",
    );
    let summary = home.path().join("summary.md");
    let mut command = home.command(&["run", checkout.typed()]);
    command
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", &summary);
    command.env("GITHUB_WORKSPACE", checkout.path());
    let output = command.output().expect("it starts");
    let said = String::from_utf8(output.stderr).expect("text");

    let note = said
        .lines()
        .find(|line| line.starts_with("::error "))
        .expect(&said);
    let notebook = fs::read_to_string(checkout.path().join("nb.ipynb")).expect("it is there");
    let line = 1 + notebook
        .lines()
        .position(|line| line.contains("raise ValueError"))
        .expect("a line");
    let junit = home.blueproof(&["report", "r-1", "--format", "junit"]).stdout;
    let case = junit
        .lines()
        .find(|case| case.contains("line="))
        .expect("a case has a line");
    let file = checkout.path().join("nb.ipynb");
    assert!(
        case.contains(&format!("file=\"{}\" line=\"{line}\"", file.display())),
        "{case}"
    );
    assert_eq!(junit.matches("line=").count(), 1, "{junit}");
    let (place, message) = note.split_once("::ValueError").expect(note);
    assert!(
        place.contains(&format!("file=nb.ipynb,line={line},title=story r-1%3A BP0401")),
        "{note}"
    );
    assert!(message.contains("100 %25"), "{note}");
    let is_command = |line: &&str| line.starts_with("::") && !line.starts_with("::error ");
    let commands: Vec<_> = said.lines().filter(is_command).collect();
    assert_eq!(commands, ["::group::how the run goes on", "::endgroup::"]);
    let summary = fs::read_to_string(summary).expect("it is written");
    assert!(
        summary.starts_with("### story r-1\n\n```text\nFAIL story r-1"),
        "{summary}"
    );

    let outside = home.blueproof(&["run", checkout.typed()]);
    assert!(!outside.stderr.contains("::"), "{outside:?}");
}

#[test]
fn in_github_actions_a_failure_outside_of_cells_is_noted_at_the_notebook() {
    for (spec, code) in [
        ("  expect: {output: [done]}\n", 1),
        ("  driver: {cpu: 4000}\n", 6),
    ] {
        let (home, checkout) = (Home::new(), Checkout::new(&["x = 1"], spec));
        let mut command = home.command(&["run", checkout.typed()]);
        command.env("GITHUB_ACTIONS", "true");
        command.env("GITHUB_WORKSPACE", checkout.path());
        let output = command.output().expect("it starts");
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(code), "{said}");
        let is_note = |line: &&str| line.starts_with("::error file=nb.ipynb,title=story r-1");
        assert!(said.lines().any(|line| is_note(&line)), "{said}");
        let junit = home.blueproof(&["report", "r-1", "--format", "junit"]).stdout;
        let file = format!("file=\"{}\"", checkout.path().join("nb.ipynb").display());
        assert!(junit.contains(&file), "{junit}");
    }
}
