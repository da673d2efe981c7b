//! Ctrl-C and other signals: the cell is interrupted, the run ended or let go, and nothing stays behind.

use std::fs;

use serde_json::json;

use crate::common::{Checkout, Held, Home};

#[test]
fn ctrl_c_interrupts_the_cell_and_keeps_what_it_printed() {
    let long = "import subprocess, time\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\n\
                print('in the long cell', flush=True)\ntime.sleep(600)";
    let (home, checkout) = (Home::new(), Checkout::new(&[long, "print('never reached')"], ""));
    let run = home.start(&["run", checkout.typed()]);
    home.until_printed("last", "in the long cell");

    run.press_ctrl_c();
    let answer = run.end();

    assert_eq!(answer.code, Some(130), "{answer:?}");
    assert!(answer.stdout.starts_with("CANCELLED story r-1"), "{answer:?}");
    assert!(answer.stderr.contains("interrupting the cell"), "{answer:?}");
    let executed = home.run_folder("r-1").join("attempts/1/executed.ipynb");
    let executed: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(executed).expect("it is kept")).expect("a notebook");
    let cells = executed["cells"].as_array().expect("cells");
    assert!(
        cells[0]["outputs"].to_string().contains("in the long cell"),
        "{executed}"
    );
    assert_eq!(cells[1]["outputs"], json!([]), "no cell is begun after it");
    let run = home.last();
    assert_eq!(run["state"], json!({ "ended": "cancelled" }));
    assert_eq!(run["settled"], true);
    home.assert_nothing_goes_on();
}

#[test]
fn a_second_ctrl_c_ends_a_cell_that_does_not_listen() {
    let deaf = "import time\nprint('deaf', flush=True)\nwhile True:\n    try:\n        time.sleep(600)\n    \
                except KeyboardInterrupt:\n        print('heard', flush=True)";
    let (home, checkout) = (Home::new(), Checkout::new(&[deaf], ""));
    let run = home.start(&["run", checkout.typed()]);
    home.until_printed("last", "deaf");
    run.press_ctrl_c();
    home.until_printed("last", "heard");

    run.press_ctrl_c();
    let answer = run.end();

    assert_eq!(answer.code, Some(130), "{answer:?}");
    assert!(answer.stdout.starts_with("CANCELLED story r-1"), "{answer:?}");
    assert_eq!(home.last()["state"], json!({ "ended": "cancelled" }));
    home.assert_nothing_goes_on();
}

#[test]
fn a_third_ctrl_c_lets_go_of_a_run_that_is_being_ended() {
    let deaf = "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: print('told to end', flush=True))\n\
                print('deaf', flush=True)\nwhile True:\n    try:\n        time.sleep(600)\n    \
                except KeyboardInterrupt:\n        print('heard', flush=True)";
    let (home, checkout) = (Home::new(), Checkout::new(&[deaf], ""));
    let run = home.start(&["run", checkout.typed()]);
    home.until_printed("last", "deaf");
    run.press_ctrl_c();
    home.until_printed("last", "heard");
    run.press_ctrl_c();
    home.until_printed("last", "told to end");

    run.press_ctrl_c();
    let answer = run.end();

    assert_eq!(
        (answer.code, answer.stdout.as_str()),
        (Some(130), ""),
        "{answer:?}"
    );
    assert!(answer.stderr.contains("letting go"), "{answer:?}");
    let waited = home.blueproof(&["wait", "last"]);
    assert_eq!(waited.code, Some(130), "{waited:?}");
    assert!(waited.stdout.starts_with("CANCELLED story r-1"), "{waited:?}");
    home.assert_nothing_goes_on();
}

#[test]
fn sigterm_ends_the_run_in_order() {
    let home = Home::new();
    let held = Held::new(&home, "held");
    let run = home.start(&["run", held.typed()]);
    home.until_printed("last", "held waits");

    run.terminate();
    let answer = run.end();

    assert_eq!(answer.code, Some(130), "{answer:?}");
    assert!(answer.stdout.starts_with("CANCELLED story r-1"), "{answer:?}");
    assert!(answer.stderr.contains("ending the run"), "{answer:?}");
    home.assert_nothing_goes_on();
}

#[test]
fn a_run_goes_on_by_itself_when_its_terminal_goes() {
    let home = Home::new();
    let held = Held::new(&home, "held");
    let run = home.start(&["run", held.typed()]);
    home.until_printed("last", "held waits");

    run.hang_up();
    let answer = run.end();
    held.let_go();

    assert_eq!(
        (answer.code, answer.stdout.as_str()),
        (Some(130), ""),
        "{answer:?}"
    );
    let run = home.until_settled("r-1");
    assert_eq!(run["state"], json!({ "ended": "passed" }));
    assert_eq!(run["attempts"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_command_that_only_waits_ends_alone() {
    let home = Home::new();
    let held = Held::new(&home, "held");
    home.blueproof(&["run", "--detach", held.typed()]);
    home.until_printed("last", "held waits");

    let answer = home.start(&["wait", "last"]).press_ctrl_c_until_it_ends();

    assert_eq!(
        (answer.code, answer.stdout.as_str()),
        (Some(130), ""),
        "{answer:?}"
    );
    assert!(answer.stderr.contains("waits for r-1 no longer"), "{answer:?}");
    held.let_go();
    let run = home.until_settled("r-1");
    assert_eq!(run["state"], json!({ "ended": "passed" }));
}
