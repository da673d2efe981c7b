//! A scenario apart: what happens in each tree of cohorts, as if the others were not there.

use std::collections::{BTreeMap, BTreeSet};

use super::Scenario;
use crate::format::{CycleCase, Script, Setup, Step};

/// The queues of a tree.
struct Members {
    queues: BTreeSet<String>,
    roots: BTreeSet<String>,
}

impl Scenario {
    /// Returns a scenario for each tree with queues.
    pub(crate) fn trees(&self) -> Vec<Scenario> {
        let mut trees: Vec<Members> = Vec::new();
        for (name, roots) in self.roots() {
            let mut tree = Members {
                queues: BTreeSet::from([name]),
                roots,
            };
            // A queue that moves from one tree to another makes one of them.
            let same: Vec<_> = trees
                .extract_if(.., |other| !other.roots.is_disjoint(&tree.roots))
                .collect();
            for other in same {
                tree.queues.extend(other.queues);
                tree.roots.extend(other.roots);
            }
            trees.push(tree);
        }
        let trees = trees.into_iter();
        trees
            .map(|tree| self.only(|queue| tree.queues.contains(queue)))
            .collect()
    }

    /// Returns the roots of the trees that each queue is in, at any time.
    fn roots(&self) -> BTreeMap<String, BTreeSet<String>> {
        let setup = self.setup();
        let changed = self.steps().iter().filter_map(|step| {
            let set = step.set_queue.as_ref()?;
            Some((&set.queue, set.to.as_ref()?))
        });
        let mut roots: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, queue) in setup.queues.iter().chain(changed) {
            let root = match &queue.cohort {
                Some(cohort) => format!("cohort {}", root(setup, cohort)),
                None => format!("queue {name}"),
            };
            roots.entry(name.clone()).or_default().insert(root);
        }
        roots
    }

    fn steps(&self) -> &[Step] {
        match self {
            Self::Cycle(_) => &[],
            Self::Script(script) | Self::Linger(script) => &script.steps,
        }
    }

    /// Returns the scenario with some of its queues.
    fn only(&self, keeps: impl Fn(&str) -> bool) -> Scenario {
        match self {
            Self::Cycle(case) => Self::Cycle(cycle(case.clone(), keeps)),
            Self::Script(case) => Self::Script(script(case.clone(), keeps)),
            Self::Linger(case) => Self::Linger(script(case.clone(), keeps)),
        }
    }
}

fn root<'a>(setup: &'a Setup, cohort: &'a str) -> &'a str {
    let mut at = cohort;
    // Kueue refuses cohorts that are each other's parents.
    while let Some(parent) = setup.cohorts.get(at).and_then(|cohort| cohort.parent.as_deref()) {
        at = parent;
    }
    at
}

fn cycle(mut case: CycleCase, keeps: impl Fn(&str) -> bool) -> CycleCase {
    case.setup.queues.retain(|name, _| keeps(name));
    case.running.retain(|name, _| keeps(name));
    case.pending.retain(|name, _| keeps(name));
    case
}

fn script(mut script: Script, keeps: impl Fn(&str) -> bool) -> Script {
    let behind = cluster_queues(&script.setup);
    let keeps_local = |name: &str| keeps(behind.get(name).map_or(name, String::as_str));
    script.setup.queues.retain(|name, _| keeps(name));
    let mut known = BTreeSet::new();
    for step in &mut script.steps {
        step.submit.retain(|entry| entry.q.as_deref().is_some_and(&keeps));
        known.extend(step.submit.iter().map(|entry| entry.n.clone()));
        step.finish.retain(|name| known.contains(name));
        step.gone.retain(|name| known.contains(name));
        step.set_lending.take_if(|set| !keeps(&set.queue));
        step.set_quota.take_if(|set| !keeps(&set.queue));
        step.set_stop.take_if(|set| !keeps(&set.queue));
        step.set_local_stop.take_if(|set| !keeps_local(&set.queue));
        step.set_queue.take_if(|set| !keeps(&set.queue));
    }
    script.steps.retain(|step| !is_empty(step));
    script
}

/// Returns the queue behind each LocalQueue that is not called as its queue.
fn cluster_queues(setup: &Setup) -> BTreeMap<String, String> {
    let users = setup.queues.iter().flat_map(|(queue, of)| {
        let users = of.users.keys();
        users.map(move |user| (user.clone(), queue.clone()))
    });
    users.collect()
}

fn is_empty(step: &Step) -> bool {
    // Whoever adds something that happens has to say here whose it is.
    let Step {
        submit,
        finish,
        gone,
        set_lending,
        set_quota,
        set_stop,
        set_local_stop,
        set_queue,
        outcome: _,
    } = step;
    let changes = [
        set_lending.is_some(),
        set_quota.is_some(),
        set_stop.is_some(),
        set_local_stop.is_some(),
        set_queue.is_some(),
    ];
    submit.is_empty() && finish.is_empty() && gone.is_empty() && !changes.contains(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tree_keeps_its_own_queues_and_what_happens_in_them() {
        let line = r#"{"kind":"script","fair":false,"cohorts":{"a":{"parent":"root"},"root":{}},
            "queues":{"p":{"cohort":"a"},"q":{"cohort":"root"},"r":{}},
            "steps":[{"submit":[{"n":"v","q":"p","cpu":1},{"n":"w","q":"r","cpu":1}]},{"finish":["w"]}]}"#;
        let scenario: Scenario = serde_json::from_str(line).expect("a scenario");
        let trees: Vec<_> = scenario.trees().iter().map(Scenario::line).collect();
        let cohorts = r#""cohorts":{"a":{"parent":"root"},"root":{}}"#;
        let expected = [
            format!(
                r#"{{"kind":"script","fair":false,{cohorts},"queues":{{"p":{{"cohort":"a"}},"q":{{"cohort":"root"}}}},"steps":[{{"submit":[{{"n":"v","q":"p","cpu":1}}]}}]}}"#
            ),
            format!(
                r#"{{"kind":"script","fair":false,{cohorts},"queues":{{"r":{{}}}},"steps":[{{"submit":[{{"n":"w","q":"r","cpu":1}}]}},{{"finish":["w"]}}]}}"#
            ),
        ];
        assert_eq!(trees, expected);
    }

    /// Returns the steps of each tree of a scenario with these steps, in which `p` and `q` are trees of their own.
    fn steps_apart(queues: &str, steps: &str) -> Vec<String> {
        let line = format!(r#"{{"kind":"script","fair":false,"queues":{queues},"steps":{steps}}}"#);
        let scenario: Scenario = serde_json::from_str(&line).expect("a scenario");
        let trees = scenario.trees();
        trees
            .iter()
            .map(|tree| crate::scenario::line(&tree.steps()))
            .collect()
    }

    #[test]
    fn each_tree_keeps_the_changes_that_are_made_to_its_queues() {
        let queues = r#"{"p":{"users":{"u":1}},"q":{}}"#;
        for (of_p, of_q) in [
            (
                r#"{"set_quota":{"queue":"p","fr":"f/cpu","nominal":5}}"#,
                r#"{"set_quota":{"queue":"q","fr":"f/cpu","nominal":6}}"#,
            ),
            (
                r#"{"set_lending":{"queue":"p","fr":"f/cpu","limit":1}}"#,
                r#"{"set_lending":{"queue":"q","fr":"f/cpu","limit":null}}"#,
            ),
            (
                r#"{"set_stop":{"queue":"p","policy":"Hold"}}"#,
                r#"{"set_stop":{"queue":"q","policy":"None"}}"#,
            ),
            (
                r#"{"set_local_stop":{"queue":"u","policy":"Hold"}}"#,
                r#"{"set_local_stop":{"queue":"q","policy":"Hold"}}"#,
            ),
            (
                r#"{"set_queue":{"queue":"p","to":{"strategy":"StrictFIFO"}}}"#,
                r#"{"set_queue":{"queue":"q","to":null}}"#,
            ),
        ] {
            let steps = format!("[{of_p},{of_q}]");
            let apart = [format!("[{of_p}]"), format!("[{of_q}]")];
            assert_eq!(steps_apart(queues, &steps), apart);
        }
    }

    #[test]
    fn trees_between_which_a_queue_moves_are_one() {
        let queues = r#"{"p":{"cohort":"a"},"q":{"cohort":"b"},"r":{"cohort":"c"}}"#;
        let moved = r#"{"set_queue":{"queue":"p","to":{"cohort":"c"}}}"#;
        let steps = format!("[{moved}]");
        assert_eq!(steps_apart(queues, &steps), ["[]".to_owned(), steps]);
    }
}
