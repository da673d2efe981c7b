//! The samples pass, and a broken copy of each says what is broken.

use serde_json::{Value, json};

use crate::common::{Checkout, Home};

/// The samples, and the profile under which each is quick enough for a test.
const SAMPLES: [(&str, &[&str]); 3] = [
    ("nano-lm", &[]),
    ("small-gpt", &["--profile", "smoke"]),
    ("sharded-gpt", &["--profile", "smoke"]),
];

/// How a broken copy has to end.
struct Expected {
    code: i32,
    word: &'static str,
    state: &'static str,
    class: Value,
    diagnostic: &'static str,
    /// What the causal line says, among other things.
    cause: &'static str,
}

/// Breaks a copy of each sample, runs it, and looks at everything that tells how it ended.
fn broken(break_it: impl Fn(&Checkout), expected: &Expected) {
    for (sample, profile) in SAMPLES {
        let (home, checkout) = (Home::new(), Checkout::of_sample(sample));
        break_it(&checkout);
        let mut arguments = vec!["run", checkout.typed()];
        arguments.extend(profile);
        let answer = home.blueproof(&arguments);
        assert_eq!(answer.code, Some(expected.code), "{sample}: {answer:?}");
        let verdict = format!("{} {sample} r-1", expected.word);
        assert!(answer.stdout.starts_with(&verdict), "{sample}: {answer:?}");
        let error = format!("error[{}]: ", expected.diagnostic);
        let causal = answer.stdout.lines().find(|line| line.starts_with(&error));
        assert!(
            causal.is_some_and(|line| line.contains(expected.cause)),
            "{sample}: {answer:?}"
        );
        assert!(home.run_folder("r-1").join("report.html").exists(), "{sample}");

        let run = home.last();
        assert_eq!(run["state"], json!({ "ended": expected.state }), "{sample}");
        assert_eq!(run["failure"]["class"], expected.class, "{sample}");
        assert_eq!(
            run["failure"]["diagnostic"]["code"], expected.diagnostic,
            "{sample}: {run}"
        );
        assert_eq!(
            run["attempts"].as_array().map(Vec::len),
            Some(1),
            "{sample}: not retried"
        );
    }
}

#[test]
fn every_sample_passes() {
    for (sample, profile) in SAMPLES {
        let (home, checkout) = (Home::new(), Checkout::of_sample(sample));
        let mut arguments = vec!["run", checkout.typed()];
        arguments.extend(profile);
        let answer = home.blueproof(&arguments);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert!(
            answer.stdout.starts_with(&format!("PASS {sample} r-1")),
            "{answer:?}"
        );
        let report = home.run_folder("r-1").join("report.html");
        assert!(
            // Where a scheduler keeps it is nothing to who asks it, perhaps from another machine.
            !home.is_local() || answer.stdout.contains(&format!("file://{}", report.display())),
            "{answer:?}"
        );
        assert!(report.exists());
        let run = home.last();
        assert_eq!(run["state"], json!({ "ended": "passed" }));
        let loss = &run["attempts"][0]["outcome"]["metrics"]["final_loss"]["last"];
        assert!(loss.as_f64().is_some_and(|loss| loss > 0.1), "{run}");
    }
}

#[test]
fn an_exception_in_a_cell_is_the_notebooks_failure() {
    let expected = Expected {
        code: 1,
        word: "FAIL",
        state: "failed",
        class: json!("notebook"),
        diagnostic: "BP0401",
        cause: "RuntimeError: the floor gave way",
    };
    broken(
        |checkout| checkout.insert_cell("raise RuntimeError('the floor gave way')"),
        &expected,
    );
}

#[test]
fn a_wrong_loss_is_an_expectation_that_does_not_hold() {
    let expected = Expected {
        code: 1,
        word: "FAIL",
        state: "failed",
        class: json!("expectation"),
        diagnostic: "BP0442",
        cause: "final_loss",
    };
    let steps_and_bound = |checkout: &Checkout| {
        let blueprint = std::fs::read_to_string(checkout.path().join("blueprint.yaml")).expect("a file");
        let bounds = [
            "{max: 1.0}",
            "{max: 1.2}",
            "{max: 1.5}",
            "{min: 0.10, max: 0.498}",
            "{min: 0.10, max: 0.398}",
        ];
        for bound in bounds.into_iter().filter(|bound| blueprint.contains(bound)) {
            checkout.edit_blueprint(bound, "{max: 0.05}");
        }
        for steps in ["steps: 120", "steps: 200"]
            .into_iter()
            .filter(|steps| blueprint.contains(steps))
        {
            checkout.edit_blueprint(steps, "steps: 20");
        }
    };
    broken(steps_and_bound, &expected);
}

#[test]
fn an_endless_cell_reaches_the_limit_of_a_cell() {
    let expected = Expected {
        code: 5,
        word: "TIMEOUT",
        state: "timedOut",
        class: json!({ "timeout": "cell" }),
        diagnostic: "BP0502",
        cause: "2s",
    };
    let endless = |checkout: &Checkout| {
        checkout.insert_cell("while True:\n    pass");
        for limit in ["cell: 1m", "cell: 5m"] {
            let blueprint = std::fs::read_to_string(checkout.path().join("blueprint.yaml")).expect("a file");
            if blueprint.contains(limit) {
                checkout.edit_blueprint(limit, "cell: 2s");
            }
        }
    };
    broken(endless, &expected);
}

#[test]
fn a_killed_kernel_is_the_notebooks_failure_and_its_signal_is_named() {
    let expected = Expected {
        code: 1,
        word: "FAIL",
        state: "failed",
        class: json!("notebook"),
        diagnostic: "BP0402",
        cause: "SIGKILL",
    };
    broken(
        |checkout| checkout.insert_cell("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
        &expected,
    );
}

#[test]
fn a_package_that_does_not_exist_is_refused_by_name() {
    let expected = Expected {
        code: 2,
        word: "REFUSED",
        state: "refused",
        class: json!("config"),
        diagnostic: "BP0303",
        cause: "blueproof-has-no-such-package",
    };
    broken(
        |checkout| {
            checkout.edit_blueprint(
                "requirements: [",
                "requirements: [blueproof-has-no-such-package, ",
            );
        },
        &expected,
    );
}

#[test]
fn a_module_that_is_not_installed_is_named() {
    let expected = Expected {
        code: 1,
        word: "FAIL",
        state: "failed",
        class: json!("notebook"),
        diagnostic: "BP0406",
        cause: "a_module_of_nobody",
    };
    broken(
        |checkout| checkout.insert_cell("import a_module_of_nobody"),
        &expected,
    );
}
