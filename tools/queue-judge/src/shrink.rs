//! Makes a scenario smaller: whatever can be taken out is taken out, what is large first.

use std::{collections::BTreeMap, mem};

use crate::{
    format::{CycleCase, Entry, Group, Queue, Quota, Script, Setup},
    scenario::Scenario,
};

/// Returns a scenario of which nothing can be taken out any more so that `holds` still does. It holds for the given one.
pub(crate) fn shrink(scenario: &Scenario, mut holds: impl FnMut(&Scenario) -> bool) -> Scenario {
    let mut smallest = scenario.clone();
    loop {
        let mut cut_any = false;
        let mut number = 0;
        while let Some(smaller) = without(&smallest, number) {
            if holds(&smaller) {
                smallest = smaller;
                cut_any = true;
            } else {
                number += 1;
            }
        }
        if !cut_any {
            return smallest;
        }
    }
}

/// Returns the scenario with the numbered cut made, or `None` when there are not so many.
fn without(scenario: &Scenario, number: usize) -> Option<Scenario> {
    let mut scenario = scenario.clone();
    let mut knife = Knife { left: Some(number) };
    match &mut scenario {
        Scenario::Cycle(case) => knife.cycle(case),
        Scenario::Script(script) | Scenario::Linger(script) => knife.script(script),
    }
    knife.left.is_none().then_some(scenario)
}

/// Passes by so many possible cuts, then makes one.
struct Knife {
    left: Option<usize>,
}

impl Knife {
    /// Returns whether this is the cut to make.
    fn cuts(&mut self) -> bool {
        match &mut self.left {
            None => false,
            Some(0) => {
                self.left = None;
                true
            }
            Some(left) => {
                *left -= 1;
                false
            }
        }
    }

    fn elements<T>(&mut self, list: &mut Vec<T>) {
        for at in 0..list.len() {
            if self.cuts() {
                list.remove(at);
                return;
            }
        }
    }

    fn entries<K: Ord + Clone, V>(&mut self, map: &mut BTreeMap<K, V>) {
        for key in map.keys().cloned().collect::<Vec<_>>() {
            if self.cuts() {
                map.remove(&key);
                return;
            }
        }
    }

    /// Leaves something at what it is when nobody says.
    fn field<T: Default + PartialEq>(&mut self, field: &mut T) {
        if *field != T::default() && self.cuts() {
            mem::take(field);
        }
    }

    fn cycle(&mut self, case: &mut CycleCase) {
        let CycleCase { running, pending, .. } = case;
        for entries in pending.values_mut().chain(running.values_mut()) {
            self.elements(entries);
        }
        self.setup(&mut case.setup, |queue| {
            running.remove(queue);
            pending.remove(queue);
        });
        for entry in pending.values_mut().chain(running.values_mut()).flatten() {
            self.entry(entry);
        }
        self.field(&mut case.strategies);
        self.field(&mut case.fair);
    }

    fn script(&mut self, script: &mut Script) {
        self.elements(&mut script.steps);
        for step in &mut script.steps {
            self.elements(&mut step.submit);
            self.elements(&mut step.finish);
            self.elements(&mut step.gone);
            if let Some(queue) = step.set_queue.as_mut().and_then(|set| set.to.as_mut()) {
                self.queue(queue);
            }
        }
        let Script { setup, steps, .. } = script;
        self.setup(setup, |queue| {
            for step in steps.iter_mut() {
                step.submit.retain(|entry| entry.q.as_deref() != Some(queue));
            }
        });
        for entry in script.steps.iter_mut().flat_map(|step| &mut step.submit) {
            self.entry(entry);
        }
        self.field(&mut script.strategies);
        self.field(&mut script.fair);
    }

    /// Cuts at queues, with whom `drop_queue` takes out with one, and at cohorts.
    fn setup(&mut self, setup: &mut Setup, mut drop_queue: impl FnMut(&str)) {
        for name in setup.queues.keys().cloned().collect::<Vec<_>>() {
            if self.cuts() {
                setup.queues.remove(&name);
                drop_queue(&name);
                return;
            }
        }
        self.entries(&mut setup.cohorts);
        self.entries(&mut setup.flavors);
        for queue in setup.queues.values_mut() {
            self.queue(queue);
        }
        for cohort in setup.cohorts.values_mut() {
            self.field(&mut cohort.parent);
            self.field(&mut cohort.weight);
            self.groups(&mut cohort.groups);
        }
        for flavor in setup.flavors.values_mut() {
            self.entries(&mut flavor.labels);
            self.elements(&mut flavor.taints);
            self.elements(&mut flavor.tolerations);
        }
    }

    fn queue(&mut self, queue: &mut Queue) {
        self.field(&mut queue.cohort);
        self.field(&mut queue.weight);
        self.field(&mut queue.strategy);
        self.field(&mut queue.bwc);
        self.field(&mut queue.within);
        self.field(&mut queue.reclaim);
        if let Some(fungibility) = &mut queue.fungibility {
            self.field(&mut fungibility.when_can_borrow);
            self.field(&mut fungibility.when_can_preempt);
            self.field(&mut fungibility.preference);
        }
        self.field(&mut queue.fungibility);
        for weight in queue.users.values_mut() {
            self.weight(weight);
        }
        self.groups(&mut queue.groups);
    }

    fn weight(&mut self, weight: &mut f64) {
        if *weight != 1.0 && self.cuts() {
            *weight = 1.0;
        }
    }

    fn groups(&mut self, groups: &mut Vec<Group>) {
        if groups.len() > 1 {
            self.elements(groups);
        }
        for group in groups {
            self.elements(&mut group.0);
            for (_, resources) in &mut group.0 {
                self.entries(resources);
            }
            for quota in group
                .0
                .iter_mut()
                .flat_map(|(_, resources)| resources.values_mut())
            {
                self.limits(quota);
            }
        }
    }

    fn limits(&mut self, quota: &mut Quota) {
        let Quota::Limits(limits) = quota else { return };
        for limit in limits.iter_mut().skip(1) {
            self.field(limit);
        }
        if let [Some(nominal), rest @ ..] = limits.as_slice()
            && rest.iter().all(Option::is_none)
            && self.cuts()
        {
            *quota = Quota::Nominal(*nominal);
        }
    }

    fn entry(&mut self, entry: &mut Entry) {
        self.field(&mut entry.p);
        self.field(&mut entry.evicted);
        self.field(&mut entry.selector);
        self.field(&mut entry.tolerations);
        self.entries(&mut entry.amounts);
        self.elements(&mut entry.sets);
        for set in &mut entry.sets {
            self.field(&mut set.min);
            self.field(&mut set.selector);
            self.field(&mut set.tolerations);
            self.entries(&mut set.amounts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_taken_out_and_what_does_stays() {
        let line = r#"{"kind":"script","fair":true,
            "cohorts":{"c":{}},
            "queues":{"a":{"cohort":"c","groups":[{"f":{"cpu":[2,1,null]},"g":{"cpu":1}}]},"b":{"cohort":"c"}},
            "steps":[{"submit":[{"n":"v","q":"a","cpu":1},{"n":"w","q":"a","p":3,"cpu":2}]},{"finish":["v"]}]}"#;
        let scenario: Scenario = serde_json::from_str(line).expect("a scenario");

        let needs = |scenario: &Scenario| {
            let line = scenario.line();
            line.contains(r#""n":"w""#) && line.contains(r#""cpu":[2"#)
        };
        let smallest = shrink(&scenario, needs);

        let expected = r#"{"kind":"script","fair":false,"queues":{"a":{"groups":[{"f":{"cpu":[2,null,null]}}]}},"steps":[{"submit":[{"n":"w","q":"a"}]}]}"#;
        assert_eq!(smallest.line(), expected);
    }
}
