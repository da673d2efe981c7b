//! Runs that wait for somebody's approval, as people give it, take it back and hold it.

use std::{fs, process::Command};

use crate::common::{Answer, Checkout, Home, eventually};

/// Leaves a command as a newer version would.
const LEAVE: &str = "
import sqlite3, sys
store = sqlite3.connect(sys.argv[1])
row = ('newer', '2026-01-02T03:04:05Z', 'dream', '{\"kind\":\"dream\"}')
store.execute('INSERT INTO command (key, at, kind, body) VALUES (?, ?, ?, ?)', row)
store.commit()
";

/// Asks for what `r-1` does once more, for a pull request, by everybody who is named.
const ASK_FOR_PULL_REQUEST: &str = "
import json, sqlite3, sys
store = sqlite3.connect(sys.argv[1])
[(body,)] = store.execute(\"SELECT body FROM fact WHERE kind = 'requested'\").fetchall()
for who in sys.argv[2:]:
    request = json.loads(body)['input']['request']
    request.update(key='of ' + who, requestedBy={'local': who})
    request['subject']['pullRequest'] = 12
    row = (request['key'], '2026-01-02T03:04:05Z', 'run', json.dumps({'kind': 'run', 'request': request}))
    store.execute('INSERT INTO command (key, at, kind, body) VALUES (?, ?, ?, ?)', row)
store.commit()
";

/// Returns a home where users do not approve their own runs and `ada` may approve.
fn entitled() -> Home {
    entitled_where("BLUEPROOF_LOCAL_ISOLATION", "strangers")
}

/// Returns such a home where a variable is set, too.
fn entitled_where(variable: &'static str, value: &str) -> Home {
    Home::with(vec![
        ("BLUEPROOF_LOCAL_SELF_APPROVE", "false".into()),
        ("BLUEPROOF_LOCAL_APPROVERS", "ada".into()),
        (variable, value.into()),
    ])
}

/// Asks for a run of a pull request as each of these, and waits until the last is known.
fn asked_for_pull_request(home: &Home, by: &[&str], last: &str) {
    let left = Command::new("python3")
        .args(["-c", ASK_FOR_PULL_REQUEST])
        .arg(home.store())
        .args(by)
        .status();
    assert!(left.expect("there is a Python").success());
    eventually("all are known", || {
        // Whoever waits leads where nobody does.
        let waits = blueproof(home, "bob", &["wait", "r-1", "--timeout", "100ms"]);
        assert_eq!(waits.code, Some(8), "{waits:?}");
        let known = blueproof(home, "bob", &["get", "run", last]);
        (known.code == Some(0)).then_some(())
    });
}

/// Returns a command of somebody.
fn typed(home: &Home, who: &str, arguments: &[&str]) -> Command {
    let mut command = home.command(arguments);
    command.env("USER", who);
    command
}

fn blueproof(home: &Home, who: &str, arguments: &[&str]) -> Answer {
    typed(home, who, arguments).output().expect("it starts").into()
}

fn state(home: &Home) -> String {
    let run = blueproof(home, "bob", &["get", "run", "r-1", "-o", "json"]).json();
    let state = &run["state"];
    let named = state.as_str().or_else(|| state["ended"].as_str());
    named.expect("a state").to_owned()
}

/// Asks for a run, and returns its head.
fn asked(home: &Home, checkout: &Checkout) -> String {
    let asked = blueproof(home, "bob", &["run", "--detach", checkout.typed(), "-o", "json"]);
    let head = asked.json()["subject"]["head"]
        .as_str()
        .expect("a head")
        .to_owned();
    assert_eq!(state(home), "awaitingApproval");
    head
}

#[test]
fn a_run_starts_when_somebody_entitled_approves_its_head_and_the_audit_tells_who_did() {
    let (home, checkout) = (entitled(), Checkout::new(&["print('it ran')"], ""));
    let head = asked(&home, &checkout);

    let short = blueproof(&home, "ada", &["approve", &head[..16]]);
    assert_eq!(short.code, Some(2), "{short:?}");
    let refused = blueproof(&home, "bob", &["approve", &head]);
    assert_eq!(refused.code, Some(6), "{refused:?}");
    assert!(
        refused.stderr.contains("whoever gave it may not approve"),
        "{refused:?}"
    );
    assert_eq!(state(&home), "awaitingApproval");

    let held = blueproof(&home, "bob", &["hold", "r-1"]);
    assert_eq!((held.code, &*held.stdout), (Some(0), "held r-1\n"), "{held:?}");
    let approved = blueproof(&home, "ada", &["approve", &head, "--for", "1h"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let why = blueproof(&home, "bob", &["why", "r-1"]).stdout;
    assert!(why.contains("bob holds r-1"), "{why}");
    let resumed = blueproof(&home, "ada", &["resume", "r-1"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    eventually("the run passes", || (state(&home) == "passed").then_some(()));

    let audit = blueproof(&home, "bob", &["audit", "--run", "r-1", "-o", "json"]).json();
    let told: Vec<(&str, &str)> = audit["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| {
            let by = entry["by"]["local"].as_str().expect("somebody did it");
            (entry["action"].as_str().expect("an action"), by)
        })
        .collect();
    let expected = [
        ("approvalRefused", "bob"),
        ("held", "bob"),
        ("approvalAccepted", "ada"),
        ("resumed", "ada"),
        ("admitted", "ada"),
    ];
    assert_eq!(told, expected);
    let of_bob = blueproof(&home, "bob", &["audit", "--by", "bob"]).stdout;
    assert!(
        of_bob.contains("approvalRefused") && !of_bob.contains("approvalAccepted"),
        "{of_bob}"
    );
}

#[test]
fn a_command_that_changes_nothing_says_so() {
    let (home, checkout) = (entitled(), Checkout::new(&["print('it ran')"], ""));
    let head = asked(&home, &checkout);
    let says = |arguments: &[&str]| {
        let answer = blueproof(&home, "ada", arguments);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        (answer.stdout, answer.stderr)
    };
    let (revoked, why) = says(&["revoke", &head]);
    assert!(
        revoked.is_empty() && why.contains("there is nothing to revoke"),
        "{revoked}{why}"
    );
    let (resumed, why) = says(&["resume", "r-1"]);
    assert_eq!((&*resumed, &*why), ("", "there is no hold on r-1\n"));

    assert_eq!(says(&["hold", "r-1"]).0, "held r-1\n");
    let (held, why) = says(&["hold", "r-1"]);
    assert_eq!((&*held, &*why), ("", "r-1 is held already, by ada\n"));
    assert!(says(&["why", "r-1"]).0.starts_with("r-1 is held: ada holds r-1"));
    assert!(says(&["get", "runs"]).0.contains(" held "));
    assert_eq!(says(&["resume", "r-1"]).0, "resumed r-1\n");

    let why = says(&["why", "r-1"]).0;
    assert!(
        why.contains(&format!("  approve blueproof approve {head}\n")),
        "{why}"
    );
    let described = says(&["describe", "r-1"]).0;
    assert!(
        described.contains(&format!("  by     blueproof approve {head}\n")),
        "{described}"
    );
    says(&["approve", &head]);
    eventually("the run passes", || (state(&home) == "passed").then_some(()));
    let (held, why) = says(&["hold", "r-1"]);
    assert_eq!(
        (&*held, &*why),
        ("", "r-1 is already over, and is not held: passed\n")
    );
    assert!(
        says(&["revoke", &head])
            .0
            .starts_with("revoked the approvals of ")
    );
    assert!(says(&["revoke", &head]).1.contains("there is nothing to revoke"));
}

#[test]
fn an_approval_is_of_what_the_runs_of_a_head_ask_for_and_of_nothing_else() {
    let home = entitled();
    let cells = ["#| tags: [parameters]\nsteps = 1", "print('took', steps)"];
    let checkout = Checkout::new(&cells, "  parameters: {steps: {type: int, default: 1}}\n");
    let head = asked(&home, &checkout);
    let approved = blueproof(&home, "ada", &["approve", &head]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    assert!(approved.stdout.contains("\n  r-1: "), "{approved:?}");
    eventually("the run passes", || (state(&home) == "passed").then_some(()));
    let nothing_waits = blueproof(&home, "ada", &["approve", &head]);
    assert_eq!(nothing_waits.code, Some(2), "{nothing_waits:?}");

    let run = |more: &[&str]| {
        let typed = [&["run", checkout.typed(), "--detach"], more].concat();
        assert_eq!(blueproof(&home, "bob", &typed).code, Some(0));
    };
    run(&[]);
    let same = blueproof(&home, "bob", &["wait", "r-2"]);
    assert_eq!(
        same.code,
        Some(0),
        "the same job needs no other approval: {same:?}"
    );
    run(&["-p", "steps=1000000"]);
    let why = blueproof(&home, "bob", &["why", "r-3"]).stdout;
    assert!(
        why.contains("ada approved this head, but not what this run does with it"),
        "{why}"
    );
    let shown = blueproof(&home, "ada", &["approve", "--dry-run", "r-3"]);
    assert!(shown.stdout.contains("r-3: "), "{shown:?}");
    let waits = blueproof(&home, "bob", &["wait", "r-3", "--timeout", "10ms"]);
    assert_eq!(waits.code, Some(8), "{waits:?}");
    let approved = blueproof(&home, "ada", &["approve", "r-3"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    assert!(
        approved.stdout.contains("work.parameters.steps: 1000000\n"),
        "{approved:?}"
    );
    assert_eq!(blueproof(&home, "bob", &["wait", "r-3"]).code, Some(0));
}

#[test]
fn an_approval_that_does_not_count_for_the_run_that_was_named_says_so() {
    let home = entitled_where("BLUEPROOF_LOCAL_ISOLATION", "disposable");
    let checkout = Checkout::new(&["print('it ran')"], "");
    asked(&home, &checkout);
    asked_for_pull_request(&home, &["ada", "bob"], "r-3");
    let approved = blueproof(&home, "ada", &["approve", "r-2"]);
    assert_eq!(approved.code, Some(6), "{approved:?}");
    assert!(
        approved.stderr.contains("r-2 still awaits an approval"),
        "{approved:?}"
    );
    assert!(!approved.stderr.contains("r-3 still"), "{approved:?}");
    let others = blueproof(&home, "ada", &["wait", "r-3"]);
    assert_eq!(others.code, Some(0), "bob's is approved: {others:?}");
    let both = blueproof(&home, "ada", &["approve", "r-2", "--dry-run"]);
    assert_eq!(both.code, Some(0), "{both:?}");
    assert_eq!(blueproof(&home, "bob", &["cancel", "r-2"]).code, Some(0));
}

#[test]
fn an_approved_pull_request_waits_with_the_reason_on_a_machine_without_bubblewrap() {
    let home = entitled_where("PATH", "/nowhere");
    let checkout = Checkout::new(&["print('it ran')"], "");
    asked(&home, &checkout);
    asked_for_pull_request(&home, &["bob"], "r-2");
    blueproof(&home, "ada", &["approve", "r-2"]);
    let waits = blueproof(&home, "bob", &["wait", "r-2", "--timeout", "1s"]);
    assert_eq!(waits.code, Some(8), "{waits:?}");
    let why = blueproof(&home, "bob", &["why", "r-2"]).stdout;
    for told in [
        "WaitingForIsolation",
        "no program `bwrap`",
        "install bubblewrap",
        "local.isolation: disposable",
    ] {
        assert!(why.contains(told), "{told}: {why}");
    }
    assert_eq!(blueproof(&home, "bob", &["cancel", "r-2"]).code, Some(0));
}

#[test]
fn what_runs_under_an_approval_that_is_taken_back_is_stopped_and_waits_for_another() {
    let checkout = Checkout::new(
        &["import time\nprint('begins', flush=True)\ntime.sleep(3600)"],
        "",
    );
    let home = entitled();
    let head = asked(&home, &checkout);
    assert_eq!(blueproof(&home, "ada", &["approve", &head]).code, Some(0));
    home.until_printed("r-1", "begins");
    let revoked = blueproof(&home, "ada", &["revoke", &head]);
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    eventually("the run waits again", || {
        (state(&home) == "awaitingApproval").then_some(())
    });
    let why = blueproof(&home, "bob", &["why", "r-1"]).stdout;
    assert!(why.contains("ada revoked the approval of ada"), "{why}");
    assert_eq!(blueproof(&home, "bob", &["cancel", "r-1"]).code, Some(0));
}

#[test]
fn a_command_that_cannot_be_read_is_listed_with_its_reason() {
    let (home, checkout) = (Home::new(), Checkout::new(&["x = 1"], ""));
    assert_eq!(home.blueproof(&["run", checkout.typed()]).code, Some(0));
    let left = Command::new("python3")
        .args(["-c", LEAVE])
        .arg(home.store())
        .status();
    assert!(left.expect("there is a Python").success());
    assert_eq!(
        home.blueproof(&["retry", "last"]).code,
        Some(0),
        "it stops no other"
    );
    let listed = home.blueproof(&["get", "commands"]).stdout;
    let row = listed.lines().find(|line| line.contains("newer")).expect(&listed);
    assert!(row.contains("dream") && row.contains("quarantined"), "{row}");
    assert!(row.contains("unknown variant `dream`"), "{row}");
}

#[test]
fn what_a_named_configuration_says_of_approvals_holds_for_a_detached_run_and_until_another_is_said() {
    let home = Home::local("by which policy a command leads");
    let checkout = Checkout::new(&["print('it ran')"], "");
    let config = home.path().join("strict.yaml");
    let text =
        "apiVersion: blueproof.dev/v1alpha1\nkind: Config\nlocal: {selfApprove: false, approvers: [ada]}\n";
    fs::write(&config, text).expect("a file");
    let named = config.to_str().expect("a path in UTF-8");
    let asked = blueproof(
        &home,
        "bob",
        &["--config", named, "run", "--detach", checkout.typed()],
    );
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert_eq!(state(&home), "awaitingApproval");

    let waits = ["wait", "r-1", "--timeout", "1s"];
    let by_default = blueproof(&home, "bob", &waits);
    assert_eq!(by_default.code, Some(8), "{by_default:?}");
    assert_eq!(state(&home), "awaitingApproval", "nobody said that it needs none");
    let mut otherwise = typed(&home, "bob", &["wait", "r-1"]);
    let otherwise: Answer = otherwise
        .env("BLUEPROOF_LOCAL_SELF_APPROVE", "true")
        .output()
        .expect("it starts")
        .into();
    assert_eq!(otherwise.code, Some(0), "{otherwise:?}");
}
