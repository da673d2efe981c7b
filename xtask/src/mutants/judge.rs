//! Who looks at the mutants, and how they are put to the test.
//!
//! Which mutants a judge sees is written into a configuration of cargo-mutants, name by name: so only those that one
//! judge misses cost the next one anything.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use super::list::{Mutant, PACKAGE};
use crate::{
    kueue,
    process::{Ended, Invocation, print_line},
    workspace::Workspace,
};

/// The profile of the workspace's manifest that mutants are built with.
const PROFILE: &str = "mutants";

/// A mutant that has not ended after so many times what the tests take is one that never ends.
const PATIENCE: u32 = 5;

/// What tests that take no time at all are given.
const LEAST_PATIENCE: Duration = Duration::from_secs(20);

/// In which file of a judge's folder the mutants are named.
const CONFIGURATION: &str = "mutants.toml";

/// The lists that cargo-mutants writes: every mutant that it tried is in one of them.
const MISSED: &str = "missed.txt";
const LISTS: [&str; 4] = [MISSED, "caught.txt", "timeout.txt", "unviable.txt"];

/// Tests that may notice a mutant.
#[derive(Debug)]
pub(super) struct Judge {
    /// The folder for what comes of it.
    name: &'static str,
    /// What the tests are.
    pub(super) what: &'static str,
    package: &'static str,
    /// Which targets of the package.
    targets: &'static [&'static str],
    /// A part of the tests' names.
    filter: Option<&'static str>,
    /// Tests that it leaves out: they take longer than all others together.
    skips: &'static [&'static str],
}

/// Whose tests run the queue beneath a scheduler.
const CORE: &str = "blueproof-core";

/// Those who look, the cheapest first.
pub(super) const JUDGES: &[Judge] = &[
    Judge {
        name: "cases",
        what: "the recorded cases",
        package: kueue::JUDGE,
        targets: &["--bins"],
        filter: Some("our_queue_decides_every_case"),
        skips: &[],
    },
    Judge {
        name: "queue",
        what: "the queue's quick tests, for those that the cases let pass",
        package: PACKAGE,
        targets: &["--lib"],
        filter: None,
        skips: &["what_is_said_to_unblock_a_workload_gets_it_admitted"],
    },
    Judge {
        name: "core",
        what: "core's quick tests, for those that the queue's let pass",
        package: CORE,
        targets: &["--lib", "--test=preemption", "--test=scenario"],
        filter: None,
        skips: &["what_is_estimated_holds_as_often_as_it_says"],
    },
    Judge {
        name: "queue-all",
        what: "all of the queue's tests, for those that the quick ones let pass",
        package: PACKAGE,
        targets: &["--lib"],
        filter: None,
        skips: &[],
    },
    Judge {
        name: "core-all",
        what: "core's other tests",
        package: CORE,
        targets: &["--lib", "--test=back_off", "--test=metrics", "--test=properties"],
        filter: None,
        skips: &[],
    },
    Judge {
        name: "simulation",
        what: "what becomes of jobs in virtual time",
        package: "blueproof-simulation",
        targets: &["--lib", "--test=recording"],
        filter: None,
        skips: &[],
    },
];

/// Where mutants are tried.
pub(super) struct Lab<'a> {
    workspace: &'a Workspace,
    program: &'a Path,
    /// What is kept of the runs.
    folder: PathBuf,
}

impl<'a> Lab<'a> {
    pub(super) fn new(workspace: &'a Workspace, program: &'a Path) -> Self {
        Self {
            workspace,
            program,
            folder: workspace.target.join("mutants"),
        }
    }

    /// Removes what earlier runs built of our packages. Each had a copy of the tree in another place, and what it built last
    /// is a mutant: Cargo takes that for newer than the code as it is.
    fn clean(&self) -> Result<()> {
        let packages = JUDGES.iter().map(|judge| format!("--package={}", judge.package));
        let words = ["clean", "--quiet", "--locked", "--profile", PROFILE].map(str::to_owned);
        let clean = self.prepared(Invocation::cargo(words.into_iter().chain(packages)));
        ensure!(
            clean.show(&self.workspace.root)? == Ended::Well,
            "`{clean}` failed"
        );
        Ok(())
    }

    /// Returns the names of those mutants that a judge does not notice. One that never ends is noticed.
    pub(super) fn missed_by(&self, judge: &Judge, mutants: &[&Mutant]) -> Result<BTreeSet<String>> {
        let patience = self.patience(judge)?;
        let out = self.folder.join(judge.name);
        fs::create_dir_all(&out).with_context(|| format!("could not make `{}`", out.display()))?;
        let config = out.join(CONFIGURATION);
        fs::write(&config, configuration(mutants))
            .with_context(|| format!("could not write `{}`", config.display()))?;
        let files: BTreeSet<_> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
        let run = self.prepared(judge.run(self.program, &files, &out, patience));
        print_line(&format!("$ {run}"));
        // What it found is in its lists: it fails also when it finds something.
        run.watch(&self.workspace.root)?;
        let lists = out.join("mutants.out");
        let mut tried = BTreeSet::new();
        for list in LISTS {
            tried.extend(read_list(&lists.join(list))?);
        }
        if let Some(untried) = mutants.iter().find(|mutant| !tried.contains(&mutant.name)) {
            bail!(
                "it ended before `{}` was tried; see {}",
                untried.name,
                lists.display()
            );
        }
        read_list(&lists.join(MISSED))
    }

    /// Runs the tests on code that is as it should be, and returns how long a mutant may take.
    fn patience(&self, judge: &Judge) -> Result<Duration> {
        self.clean()?;
        let build = self.prepared(judge.test(&["--no-run"]));
        ensure!(
            build.show(&self.workspace.root)? == Ended::Well,
            "`{build}` failed"
        );
        let test = self.prepared(judge.test(&[]));
        print_line(&format!("$ {test}"));
        let begun = Instant::now();
        ensure!(
            test.run(&self.workspace.root, |_| {})? == Ended::Well,
            "the tests must pass before the code is changed: `{test}`"
        );
        Ok(LEAST_PATIENCE.max(begun.elapsed() * PATIENCE))
    }

    /// Returns a call with what all have in common: where to build, and property tests that are the same each time.
    fn prepared(&self, invocation: Invocation) -> Invocation {
        let build = self.folder.join("build").display().to_string();
        invocation
            .env("CARGO_TARGET_DIR", &build)
            .env("PROPTEST_RNG_SEED", "1")
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
    }
}

impl Judge {
    /// Returns the call that runs the tests as they are.
    fn test(&self, more: &[&str]) -> Invocation {
        let words = [
            "test",
            "--quiet",
            "--locked",
            "--profile",
            PROFILE,
            "--package",
            self.package,
        ];
        let words = words.iter().chain(self.targets).chain(&self.filter);
        let words = words.chain(more).map(|word| (*word).to_owned());
        Invocation::cargo(words.chain(self.skipping()))
    }

    /// Returns what a test program is told, so that it leaves some out.
    fn skipping(&self) -> Vec<String> {
        let skips = self.skips.iter().map(|name| format!("--skip={name}"));
        let separator = (!self.skips.is_empty()).then(|| "--".to_owned());
        separator.into_iter().chain(skips).collect()
    }

    fn run(&self, program: &Path, files: &BTreeSet<&str>, out: &Path, patience: Duration) -> Invocation {
        let words = [
            "mutants".to_owned(),
            format!("--config={}", out.join(CONFIGURATION).display()),
            format!("--output={}", out.display()),
            format!("--package={PACKAGE}"),
            format!("--test-package={}", self.package),
            format!("--profile={PROFILE}"),
            "--baseline=skip".to_owned(),
            format!("--timeout={}", patience.as_secs()),
        ];
        // Fields that are left out of a struct are tried whatever the configuration names: in these files only, then.
        let files = files.iter().map(|file| format!("--file={file}"));
        let targets = self.targets.iter().map(|target| format!("--cargo-arg={target}"));
        let tests = self.filter.map(str::to_owned).into_iter().chain(self.skipping());
        let tests = tests.map(|word| format!("--cargo-test-arg={word}"));
        Invocation::of(
            program,
            words.into_iter().chain(files).chain(targets).chain(tests),
        )
    }
}

/// Returns a configuration that names the mutants to try, each as a whole.
fn configuration(mutants: &[&Mutant]) -> String {
    let names = mutants
        .iter()
        .map(|mutant| format!("^{}$", regex::escape(&mutant.name)));
    // An array of strings is the same in JSON and in TOML.
    format!("examine_re = {}\n", serde_json::Value::from_iter(names))
}

fn read_list(path: &Path) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(path).with_context(|| format!("could not read `{}`", path.display()))?;
    Ok(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_are_named_so_that_no_other_is_meant() {
        let mutant = Mutant {
            name: r"a/b.rs:1:2: replace <X as Y<'_>>::f -> (u8, [u8; 2]) with (0 + 1, *b) in f".into(),
            file: String::new(),
            id: String::new(),
        };
        let configuration = configuration(&[&mutant]);
        let table: toml::Table = toml::from_str(&configuration).expect("it is TOML");
        let expression = table["examine_re"][0].as_str().expect("a text");
        let expression = regex::Regex::new(expression).expect("a regular expression");
        assert!(expression.is_match(&mutant.name));
        assert!(!expression.is_match(&mutant.name.replace("1:2", "11:2")));
        assert!(!expression.is_match(&format!("{} in g", mutant.name)));
    }

    #[test]
    fn the_tests_of_a_judge_are_those_that_its_mutants_meet() {
        let judge = &JUDGES[0];
        let test = judge.test(&["--no-run"]).to_string();
        let files = BTreeSet::from(["a/b.rs"]);
        let run = judge.run("m".as_ref(), &files, "/t/o".as_ref(), LEAST_PATIENCE);
        assert_eq!(
            test,
            "cargo test --quiet --locked --profile mutants --package blueproof-queue-judge --bins \
             our_queue_decides_every_case --no-run"
        );
        assert_eq!(
            run.to_string(),
            "m mutants --config=/t/o/mutants.toml --output=/t/o --package=blueproof-queue \
             --test-package=blueproof-queue-judge --profile=mutants --baseline=skip --timeout=20 --file=a/b.rs \
             --cargo-arg=--bins \
             --cargo-test-arg=our_queue_decides_every_case"
        );
        let skipping = JUDGES[1].run("m".as_ref(), &files, "/t/o".as_ref(), LEAST_PATIENCE);
        let skipping = skipping.to_string();
        assert!(
            skipping.contains("--cargo-test-arg=-- --cargo-test-arg=--skip=what_is"),
            "{skipping}"
        );
    }
}
