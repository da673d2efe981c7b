//! Where our queue decides otherwise than Kueue on purpose, each with its reason.
//!
//! Only whether a difference is one of these is found out here; it is counted, and not hidden.

use anyhow::Result;

use crate::{
    format::{Entry, Setup},
    scenario::Scenario,
};

/// Returns whether both sides decide a scenario alike.
type Alike<'a> = dyn FnMut(&Scenario) -> Result<bool> + 'a;

/// A difference that is meant.
pub(crate) struct OnPurpose {
    /// What it is called where it is counted.
    pub(crate) name: &'static str,
    /// Whether it accounts for how the two sides differ about a scenario; both can be asked about simpler ones.
    accounts: fn(&Scenario, &mut Alike<'_>) -> Result<bool>,
}

const ALL: &[OnPurpose] = &[
    // Kueue tries the heads of all trees in every cycle. One that waits for quota while it has flavors left to try tries
    // the next each time, so that what happens in another tree decides where it is when its own quota is given back.
    // Ours runs a cycle only in the trees in which something happened, or each event would cost as much as all queues.
    OnPurpose {
        name: "other trees' cycles",
        accounts: |scenario, alike| {
            let trees = scenario.trees();
            let mut all = trees.len() > 1;
            for tree in &trees {
                all = all && alike(tree)?;
            }
            Ok(all)
        },
    },
    // Kueue looks for those who wait for quota that is given back by the LocalQueue of whoever had it, and finds nobody where
    // that is stopped; and when a queue leaves a cohort it looks in the one that the queue enters. They wait until something
    // else happens. Ours lets them try at once. It is nothing else if both decide alike where Kueue is told to wake them.
    OnPurpose {
        name: "whom Kueue forgets to wake",
        accounts: |scenario, alike| match scenario.waking() {
            Some(mended) => alike(&mended),
            None => Ok(false),
        },
    },
    // Kueue leaves a workload's further pod sets without quota, and admits it, when one of its sets asks for resources
    // that the queue does not have, and for zero of each: the others run for nothing. Ours counts them. It is nothing else
    // if both decide alike where the further sets are not there, and where the set does not name those resources.
    OnPurpose {
        name: "zero of what is not there",
        accounts: |scenario, alike| {
            let setup = scenario.setup();
            let is_hit = |(queue, entry): (&str, &Entry)| empty_set(setup, queue, entry).is_some();
            if !scenario.entries().any(is_hit) {
                return Ok(false);
            }
            let without_the_further = scenario.changed(|queue, entry| {
                if let Some(at) = empty_set(setup, queue, entry) {
                    entry.sets.truncate(at + 1);
                }
            });
            let without_zeros = scenario.changed(|queue, entry| {
                while let Some(at) = empty_set(setup, queue, entry) {
                    entry.sets[at].amounts.clear();
                }
            });
            Ok(alike(&without_the_further)? && alike(&without_zeros)?)
        },
    },
];

/// Returns which difference on purpose accounts for how the two sides differ about a scenario, if any does. Several may
/// meet in one: what is left without the first may be another.
pub(crate) fn explain(scenario: &Scenario, alike: &mut Alike<'_>) -> Result<Option<&'static OnPurpose>> {
    let mut alike_or_meant = |simpler: &Scenario| Ok(alike(simpler)? || explain(simpler, alike)?.is_some());
    for known in ALL {
        if (known.accounts)(scenario, &mut alike_or_meant)? {
            return Ok(Some(known));
        }
    }
    Ok(None)
}

/// Returns the first pod set, other than the last, that asks for nothing but zero of what its queue does not have. Where
/// the queue counts pods, each set asks for some.
fn empty_set(setup: &Setup, queue: &str, entry: &Entry) -> Option<usize> {
    let (_, all_but_last) = entry.sets.split_last()?;
    let groups = setup
        .queues
        .get(queue)
        .map(|queue| queue.groups.as_slice())
        .unwrap_or_default();
    let covers = |resource: &str| {
        let mut flavors = groups.iter().flat_map(|group| &group.0);
        flavors.any(|(_, resources)| resources.contains_key(resource))
    };
    if covers("pods") {
        return None;
    }
    all_but_last.iter().position(|set| {
        let mut amounts = set.amounts.iter();
        !set.amounts.is_empty() && amounts.all(|(resource, amount)| *amount == 0.0 && !covers(resource))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(line: &str, alike: bool) -> Option<&'static str> {
        let scenario: Scenario = serde_json::from_str(line).expect("a scenario");
        let known = explain(&scenario, &mut |_| Ok(alike)).expect("nobody is asked in vain");
        known.map(|known| known.name)
    }

    #[test]
    fn a_difference_that_no_tree_has_by_itself_comes_of_the_others_cycles() {
        let two = r#"{"kind":"script","fair":false,"queues":{"p":{},"q":{}},"steps":[]}"#;
        assert_eq!(explained(two, true), Some("other trees' cycles"));
        assert_eq!(explained(two, false), None);
        let one =
            r#"{"kind":"script","fair":false,"queues":{"p":{"cohort":"c"},"q":{"cohort":"c"}},"steps":[]}"#;
        assert_eq!(explained(one, true), None);
    }

    #[test]
    fn whoever_was_not_woken_is_the_reason_if_it_makes_no_difference_where_kueue_wakes_them() {
        let line = |step: &str| format!(r#"{{"kind":"script","queues":{{"q":{{}}}},"steps":[{step}]}}"#);
        for step in [
            r#"{"set_local_stop":{"queue":"q","policy":"Hold"}}"#,
            r#"{"set_queue":{"queue":"q","to":null}}"#,
        ] {
            assert_eq!(explained(&line(step), true), Some("whom Kueue forgets to wake"));
            assert_eq!(explained(&line(step), false), None);
        }
        let other = line(r#"{"set_stop":{"queue":"q","policy":"Hold"}}"#);
        assert_eq!(explained(&other, true), None);
    }

    #[test]
    fn zero_of_what_the_queue_has_explains_nothing() {
        let asks = |resource: &str, amount: u32, alike: bool| {
            let sets = format!(r#"[{{"count":1,"{resource}":{amount}}},{{"count":1,"cpu":1}}]"#);
            let line = format!(
                r#"{{"kind":"cycle","queues":{{"q":{{"groups":[{{"f":{{"cpu":4}}}}]}}}},"pending":{{"q":[{{"n":"w","sets":{sets}}}]}}}}"#
            );
            explained(&line, alike)
        };
        assert_eq!(asks("gpu", 0, true), Some("zero of what is not there"));
        assert_eq!(asks("gpu", 0, false), None, "they differ without it too");
        assert_eq!(asks("gpu", 1, true), None);
        assert_eq!(asks("cpu", 0, true), None);
    }

    #[test]
    fn zero_of_what_is_not_there_is_all_that_may_be_the_reason() {
        let line = |sets: &str| {
            format!(
                r#"{{"kind":"cycle","queues":{{"q":{{"groups":[{{"f":{{"cpu":4}}}}]}}}},"pending":{{"q":[{{"n":"w","sets":{sets}}}]}}}}"#
            )
        };
        let scenario = |sets: &str| serde_json::from_str::<Scenario>(&line(sets)).expect("a scenario");
        let of = scenario(r#"[{"count":1,"gpu":0},{"count":1,"cpu":1}]"#);
        let mut asked = Vec::new();
        explain(&of, &mut |other: &Scenario| {
            asked.push(other.line());
            Ok(true)
        })
        .expect("nobody is asked in vain");
        let others = [r#"[{"count":1,"gpu":0}]"#, r#"[{"count":1},{"count":1,"cpu":1}]"#];
        assert_eq!(asked, others.map(|sets| scenario(sets).line()));
    }
}
