//! What reaches terminals, CI logs and programs: the answer, colour where it is wanted, and nothing that obeys a notebook.

use serde_json::json;

use crate::common::{Answer, Checkout, Home};

/// Prints, shows and raises what terminals and CI steps obey.
const HOSTILE: &str = r#"import sys
from IPython.display import display
class Shown:
    def __repr__(self):
        return EVIL
EVIL = (
    "\x1b]0;owned\x07 \x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\ \x1b[2J\x1b[1A\x1b[?1049h \x9b31m \x1bP1$q\x1b\\"
    "\r\u202eback\u2066\n::set-output name=x::y\n::error::evil\n##[command]x ##vso[task.setvariable variable=x]y\n"
)
print(EVIL + "\x1b[31mred\x1b[0m")
print(EVIL, file=sys.stderr)
display(Shown())
raise RuntimeError(EVIL) # ::stop-commands::x ##[group]"#;

fn hostile() -> (Home, Checkout, Answer) {
    let (home, checkout) = (Home::new(), Checkout::new(&[HOSTILE], ""));
    let mut command = home.command(&["run", checkout.typed(), "--color", "always"]);
    let answer: Answer = command.output().expect("it starts").into();
    assert_eq!(answer.code, Some(1), "{answer:?}");
    (home, checkout, answer)
}

/// Sees that a terminal or a CI step that shows the text does nothing but show it, in colours.
fn assert_harmless(what: &str, text: &str) {
    let plain = without_colours(text);
    let obeyed = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!plain.contains(obeyed), "{what}: {text:?}");
    for line in plain.lines() {
        assert!(!line.trim_start().starts_with("::"), "{what}: {line:?}");
        assert!(!line.contains("##["), "{what}: {line:?}");
        assert!(!line.contains("##vso["), "{what}: {line:?}");
    }
}

/// Removes `ESC [ numbers m` and nothing else.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|c: char| !c.is_ascii_digit() && c != ';')
            .unwrap_or(part.len());
        match part[end..].strip_prefix('m') {
            Some(rest) => plain.push_str(rest),
            None => plain.push_str(&format!("\u{1b}[{part}")),
        }
    }
    plain
}

#[test]
fn nothing_of_a_notebook_is_obeyed_by_a_terminal_or_a_ci_step() {
    let (home, _checkout, ran) = hostile();
    assert!(ran.stdout.contains("RuntimeError"), "it is told: {ran:?}");
    let shown = |arguments: &[&str]| home.blueproof(&[arguments, &["--color", "always"]].concat());
    let logs = shown(&["logs", "last"]);
    assert!(
        logs.stdout.contains("set-output") && logs.stdout.contains("red"),
        "it is shown: {logs:?}"
    );
    assert!(logs.stdout.contains("\u{1b}[31m"), "its colour is kept: {logs:?}");
    for (what, answer) in [
        ("run", ran),
        ("logs", logs),
        ("logs --failed", shown(&["logs", "last", "--failed"])),
        ("describe", shown(&["describe", "run", "last"])),
        ("why", shown(&["why", "last"])),
        ("get", shown(&["get", "runs"])),
        ("get -o wide", shown(&["get", "runs", "-o", "wide"])),
        ("wait", shown(&["wait", "last"])),
        ("retry", shown(&["retry", "last"])),
    ] {
        assert!(!answer.stdout.is_empty(), "{what}: {answer:?}");
        assert_harmless(what, &answer.stdout);
        assert_harmless(what, &answer.stderr);
    }
}

#[test]
fn a_document_of_hostile_words_has_the_words_and_is_as_harmless() {
    let (home, _checkout, _) = hostile();
    let document = home.blueproof(&["get", "run", "last", "-o", "json"]);
    let message = document.json()["failure"]["diagnostic"]["message"].clone();
    assert!(
        message
            .as_str()
            .is_some_and(|message| message == "RuntimeError: back"),
        "{message}"
    );
    for (what, arguments) in [
        ("json", &["get", "run", "last", "-o", "json"][..]),
        ("yaml", &["get", "run", "last", "-o", "yaml"]),
        ("list", &["get", "runs", "-o", "json"]),
        ("report", &["report", "last", "--format", "json"]),
    ] {
        assert_harmless(what, &home.blueproof(arguments).stdout);
    }
}

#[test]
fn colour_is_where_it_is_wanted_and_nowhere_else() {
    let (home, checkout) = (Home::new(), Checkout::new(&["print('\\x1b[31mred\\x1b[0m')"], ""));
    let run = |color: &[&str], variable: (&str, &str)| -> Answer {
        let mut command = home.command(&[&["run", checkout.typed()], color].concat());
        command
            .env(variable.0, variable.1)
            .output()
            .expect("it starts")
            .into()
    };
    let coloured = |answer: &Answer| answer.stdout.contains('\u{1b}');
    assert!(
        coloured(&run(&["--color", "always"], ("NO_COLOR", "1"))),
        "a flag goes first"
    );
    assert!(coloured(&run(&[], ("CLICOLOR_FORCE", "1"))));
    for plain in [
        run(&[], ("NO_COLOR", "1")),
        run(&[], ("TERM", "xterm-256color")),
        run(&["--color", "never"], ("CLICOLOR_FORCE", "1")),
    ] {
        assert!(!coloured(&plain) && !plain.stderr.contains('\u{1b}'), "{plain:?}");
        assert!(!plain.stderr.contains('\r'), "no spinner: {plain:?}");
    }
    let logs = |color: &str| home.blueproof(&["logs", "last", "--color", color]);
    assert!(coloured(&logs("always")));
    assert_eq!(logs("never").stdout, "── cell 1\nred\n");
}

#[test]
fn a_program_gets_one_document_on_stdout() {
    let (home, checkout) = (
        Home::new(),
        Checkout::new(&["print('{\"not\": \"the answer\"}')"], ""),
    );
    let ran = home.blueproof(&["run", checkout.typed(), "-o", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let document = ran.json();
    assert_eq!(document["kind"], "Run");
    assert_eq!(document["apiVersion"], "blueproof.dev/v1alpha1");
    assert_eq!(document["state"], json!({ "ended": "passed" }));
    assert_eq!(document, home.last(), "as `get run` prints it");
    assert!(
        ran.stderr.contains("report"),
        "the stages are no part of the answer"
    );

    let waited = home.blueproof(&["wait", "last", "-o", "json"]);
    assert_eq!((waited.code, waited.json()), (Some(0), document));
    let yaml = home.blueproof(&["wait", "last", "-o", "yaml"]);
    assert_eq!(
        yaml.stdout,
        home.blueproof(&["get", "run", "last", "-o", "yaml"]).stdout
    );
    let again = home.blueproof(&["retry", "last", "-o", "json"]).json();
    assert_eq!(again["attempts"][1]["id"], "r-1.2", "{again}");
    let detached = home
        .blueproof(&["run", checkout.typed(), "--detach", "-o", "json"])
        .json();
    assert_eq!(
        (&detached["kind"], &detached["id"]),
        (&json!("Run"), &json!("r-2"))
    );
    home.until_settled("r-2");
}
