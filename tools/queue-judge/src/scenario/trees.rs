//! A scenario apart: what happens in each tree of cohorts, as if the others were not there.

use std::collections::{BTreeMap, BTreeSet};

use super::Scenario;
use crate::format::{CycleCase, Script, Setup, Step};

impl Scenario {
    /// Returns a scenario for each tree with queues.
    pub(crate) fn trees(&self) -> Vec<Scenario> {
        let setup = self.setup();
        let mut members: BTreeMap<String, BTreeSet<&String>> = BTreeMap::new();
        for (name, queue) in &setup.queues {
            let root = match &queue.cohort {
                Some(cohort) => format!("cohort {}", root(setup, cohort)),
                None => format!("queue {name}"),
            };
            members.entry(root).or_default().insert(name);
        }
        let trees = members.into_values();
        trees
            .map(|queues| self.only(|queue| queues.contains(&queue.to_owned())))
            .collect()
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
    script.setup.queues.retain(|name, _| keeps(name));
    let mut known = BTreeSet::new();
    for step in &mut script.steps {
        step.submit.retain(|entry| entry.q.as_deref().is_some_and(&keeps));
        known.extend(step.submit.iter().map(|entry| entry.n.clone()));
        step.finish.retain(|name| known.contains(name));
        step.gone.retain(|name| known.contains(name));
        step.set_lending = step.set_lending.take().filter(|set| keeps(&set.queue));
    }
    script.steps.retain(|step| !is_empty(step));
    script
}

fn is_empty(step: &Step) -> bool {
    step.submit.is_empty() && step.finish.is_empty() && step.gone.is_empty() && step.set_lending.is_none()
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
}
