//! Environments that runs share: what one notebook puts into its own decides nothing about another.

use std::{fs, path::PathBuf};

use crate::common::{Answer, Checkout, Held, Home, Running};

/// Adds a module to the packages of the environment that it runs in.
const PLANT: &str =
    "import sysconfig\nopen(sysconfig.get_path('purelib') + '/planted.py', 'w').write('')\nimport planted";

/// A home with environments of its own, since these notebooks change them.
struct Alone(Home);

impl Alone {
    fn new() -> Self {
        Self(Home::with_own_environments())
    }

    fn environments(&self) -> PathBuf {
        self.0.path().join("environments")
    }

    fn start(&self, arguments: &[&str]) -> Running {
        self.0.start(arguments)
    }

    fn run(&self, checkout: &Checkout) -> Answer {
        self.start(&["run", checkout.typed()]).end()
    }
}

#[test]
fn what_a_notebook_installs_is_for_itself_alone() {
    let alone = Alone::new();
    let other = Held::before(&alone.0, "other", &["import planted"]);
    let waiting = alone.start(&["run", other.typed()]);
    alone.0.until_printed("r-1", "other waits");
    let installing = Checkout::new(&[&format!("# as `pip install` does\n{PLANT}")], "");

    let installed = alone.run(&installing);
    other.let_go();
    let without = waiting.end();

    assert_eq!(installed.code, Some(0), "{installed:?}");
    assert_eq!(without.code, Some(1), "{without:?}");
    assert!(
        without.stdout.contains("No module named 'planted'"),
        "{without:?}"
    );
    let made = fs::read_dir(alone.environments()).expect("it is there").flatten();
    let made = made.filter(|entry| entry.file_name().to_string_lossy().starts_with("py"));
    assert_eq!(made.count(), 1, "nobody changed the one that both were made from");
}

#[test]
fn a_run_whose_environment_was_changed_meanwhile_is_tried_again_on_a_copy() {
    let alone = Alone::new();
    let other = Held::before(&alone.0, "other", &["import planted"]);
    let waiting = alone.start(&["run", other.typed()]);
    alone.0.until_printed("r-1", "other waits");

    let changing = alone.run(&Checkout::new(&[PLANT], ""));
    other.let_go();
    let changed = waiting.end();

    assert_eq!(
        changing.code,
        Some(0),
        "on a copy it is its own affair: {changing:?}"
    );
    let why = "in attempt 2 of 2; attempt 1 failed: the packages of the environment were changed";
    assert!(changing.stdout.contains(why), "{changing:?}");
    assert_eq!(changed.code, Some(1), "{changed:?}");
    assert!(
        changed.stdout.contains("No module named 'planted'"),
        "{changed:?}"
    );
}
