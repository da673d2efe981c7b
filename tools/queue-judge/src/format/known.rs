//! What a case may say, by the heading that it stands under: a key that is not read would be an expectation that holds
//! whatever comes, and so would a case that expects nothing.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

/// The keys of a heading's cases.
struct Keys {
    headings: &'static [&'static str],
    /// What each has.
    must: &'static [&'static str],
    /// What it expects: at least one of these.
    expects: &'static [&'static str],
    /// What it may have beside.
    may: &'static [&'static str],
}

const CASES: [Keys; 6] = [
    Keys {
        headings: &["availability"],
        must: &["id", "queues"],
        expects: &["available", "potential"],
        may: &["note", "flavors", "cohorts", "usage"],
    },
    Keys {
        headings: &["shares"],
        must: &["id", "queues"],
        expects: &["share"],
        may: &["note", "flavors", "cohorts", "usage", "request", "dominant"],
    },
    Keys {
        headings: &["classical_targets", "hierarchical_targets", "fair_targets"],
        must: &["id", "incoming", "running"],
        expects: &["preempt"],
        may: &["note", "fixture", "flavors", "cohorts", "queues", "strategies"],
    },
    Keys {
        headings: &["cycles", "fair_cycles"],
        must: &["id", "pending"],
        expects: &["admit", "preempt", "wait", "counts", "set_flavors"],
        may: &[
            "note",
            "fixture",
            "flavors",
            "cohorts",
            "queues",
            "strategies",
            "running",
        ],
    },
    Keys {
        headings: &["partial_admission"],
        must: &["id", "queue", "pending"],
        expects: &["admit_counts", "then_counts", "preempt"],
        may: &["note", "running"],
    },
    Keys {
        headings: &["scripts", "linger_scripts"],
        must: &["id", "queues", "steps"],
        expects: &["steps"],
        may: &["note", "from", "fair", "strategies", "flavors", "cohorts"],
    },
];

/// What happens in a step: exactly one of these.
const VERBS: [&str; 8] = [
    "submit",
    "finish",
    "gone",
    "set_lending",
    "set_quota",
    "set_stop",
    "set_local_stop",
    "set_queue",
];

/// What a step expects.
const OUTCOMES: [&str; 10] = [
    "running",
    "waiting",
    "leaving",
    "preempted",
    "admitted",
    "shares",
    "available",
    "running_count",
    "counts",
    "set_flavors",
];

/// Refuses what would not be read, and cases that expect nothing.
pub(crate) fn check(file: &Value) -> Result<()> {
    let Some(headings) = file.as_object() else {
        bail!("a case file is a mapping of headings");
    };
    for keys in &CASES {
        for heading in keys.headings {
            let cases = headings.get(*heading).and_then(Value::as_array);
            for (number, case) in cases.into_iter().flatten().enumerate() {
                let id = case.get("id").and_then(Value::as_str).unwrap_or_default();
                keys.check(case)
                    .with_context(|| format!("case {} `{id}` under `{heading}`", number + 1))?;
            }
        }
    }
    Ok(())
}

impl Keys {
    fn check(&self, case: &Value) -> Result<()> {
        let case = case.as_object().context("a case is a mapping")?;
        known(case, [self.must, self.expects, self.may].concat().as_slice())?;
        for key in self.must {
            ensure!(case.get(*key).is_some_and(is_said), "it says no `{key}`");
        }
        let expects = self.expects.iter().any(|key| case.contains_key(*key));
        ensure!(
            expects,
            "it expects nothing: say one of {}",
            self.expects.join(", ")
        );
        let steps = case.get("steps").and_then(Value::as_array);
        for (number, step) in steps.into_iter().flatten().enumerate() {
            check_step(step).with_context(|| format!("step {}", number + 1))?;
        }
        Ok(())
    }
}

fn check_step(step: &Value) -> Result<()> {
    let step = step.as_object().context("a step is a mapping")?;
    known(step, [&VERBS[..], &OUTCOMES, &["note"]].concat().as_slice())?;
    let n_verbs = VERBS.iter().filter(|verb| step.contains_key(**verb)).count();
    ensure!(
        n_verbs == 1,
        "it says {n_verbs} of {}, and not one",
        VERBS.join(", ")
    );
    let expects = OUTCOMES.iter().any(|key| step.contains_key(*key));
    ensure!(expects, "it expects nothing: say one of {}", OUTCOMES.join(", "));
    Ok(())
}

fn known(case: &Map<String, Value>, known: &[&str]) -> Result<()> {
    match case.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => bail!(
            "the key `{key}` is not known here: known are {}",
            known.join(", ")
        ),
        None => Ok(()),
    }
}

/// Returns whether a value says anything.
fn is_said(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(all) => !all.is_empty(),
        // Nobody runs, or nothing is configured beside a fixture: that is said by an empty mapping.
        Value::Object(_) | Value::Bool(_) | Value::Number(_) => true,
    }
}
