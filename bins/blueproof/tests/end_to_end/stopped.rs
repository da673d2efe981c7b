//! Processes that do nothing any more, stopped by a signal: an agent is ended by force, one that drives is named.

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Checkout, Held, Home, Running, Terminal};

const NAMES_ITS_AGENT: &str = "import os, time\nprint('agent', os.getppid(), flush=True)\ntime.sleep(600)";

/// Starts a run of this and waits until its agent, stopped by its own notebook, does nothing any more.
fn run_with_stopped_agent(home: &Home, checkout: &Checkout) -> Running {
    let run = home.start(&["run", checkout.typed()]);
    home.until_printed("r-1", "agent ");
    let said = home.blueproof(&["logs", "r-1"]).stdout;
    let agent = said.lines().find_map(|line| line.strip_prefix("agent "));
    let agent = agent.and_then(|pid| Pid::from_raw(pid.trim().parse().ok()?));
    kill_process(agent.expect("its number"), Signal::STOP).expect("it is there");
    run
}

#[test]
fn a_stopped_agent_is_ended_by_cancel_within_its_deadline() {
    let (home, checkout) = (Home::new(), Checkout::new(&[NAMES_ITS_AGENT], ""));
    let run = run_with_stopped_agent(&home, &checkout);

    let cancelled = home.blueproof(&["cancel", "r-1"]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    let answer = run.end();

    assert_eq!(answer.code, Some(130), "{answer:?}");
    assert_eq!(
        home.until_settled("r-1")["state"],
        serde_json::json!({ "ended": "cancelled" })
    );
    home.until_nothing_goes_on();
}

#[test]
fn a_stopped_agent_is_ended_where_its_client_is_told_to_end() {
    let (home, checkout) = (Home::new(), Checkout::new(&[NAMES_ITS_AGENT], ""));
    let run = run_with_stopped_agent(&home, &checkout);

    run.terminate();
    let answer = run.end();

    assert_eq!(answer.code, Some(130), "{answer:?}");
    assert!(answer.stdout.starts_with("CANCELLED story r-1"), "{answer:?}");
    home.until_nothing_goes_on();
}

#[test]
fn a_process_that_drives_and_was_stopped_is_named_to_whoever_waits_for_it() {
    let home = Home::local("it is about a command that leads at a store");
    let held = Held::new(&home, "held");
    let driving = home.start(&["run", held.typed()]);
    home.until_printed("r-1", "held waits");
    driving.stop();

    let listed = home.blueproof(&["get", "runs"]);
    let other = Checkout::new(&["x = 1"], "");
    let waiting = Terminal::start(home.command(&["run", other.typed()]), 80).expect("a terminal");
    let (code, written) = waiting.end_once_seen(&["is stopped"], || {
        driving.wake();
        held.let_go();
    });

    assert!(
        listed.stderr.contains("BP0108") && listed.stderr.contains("is stopped"),
        "{listed:?}"
    );
    assert_eq!(code, Some(0), "{written}");
    assert_eq!(driving.end().code, Some(0));
}

#[test]
fn who_waits_for_a_process_that_was_stopped_can_let_go() {
    let home = Home::local("it is about a command that leads at a store");
    let held = Held::new(&home, "held");
    let driving = home.start(&["run", held.typed()]);
    home.until_printed("r-1", "held waits");
    driving.stop();

    let other = Checkout::new(&["x = 1"], "");
    let waiting = home.start(&["run", other.typed()]);
    let let_go = waiting.press_ctrl_c_until_it_ends();
    driving.wake();
    held.let_go();

    assert_eq!(let_go.code, Some(130), "{let_go:?}");
    assert_eq!(driving.end().code, Some(0));
}
