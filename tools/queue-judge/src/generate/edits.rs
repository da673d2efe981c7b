//! What an admin does to queues while workloads run and wait in them.

use std::collections::BTreeMap;

use super::{
    Dice,
    queues::{self, Catalogue},
    workloads::Maker,
};
use crate::format::{Queue, SetQueue, SetQuota, SetStop, Setup, Step};

const GOES_ON: &str = "None";
const DRAINS: &str = "HoldAndDrain";

/// Changes queues, and knows what they are by now.
pub(super) struct Admin {
    pub(super) setup: Setup,
    fair: bool,
    /// Whether one that is drained may hold its quota for some time.
    lingers: bool,
    /// The stop policies of queues, and of LocalQueues.
    stopped: BTreeMap<String, String>,
    locally_stopped: BTreeMap<String, String>,
    removed: Vec<String>,
    added: usize,
}

impl Admin {
    pub(super) fn new(setup: Setup, fair: bool, lingers: bool) -> Self {
        Self {
            setup,
            fair,
            lingers,
            stopped: BTreeMap::new(),
            locally_stopped: BTreeMap::new(),
            removed: Vec::new(),
            added: 0,
        }
    }

    pub(super) fn edit(&mut self, dice: &mut Dice, catalogue: &Catalogue, maker: &mut Maker) -> Vec<Step> {
        let names: Vec<String> = self.setup.queues.keys().cloned().collect();
        let queue = dice.one_of(&names).clone();
        match dice.0.u32(..100) {
            0..30 => self.quota(dice, queue),
            30..50 => vec![stop(dice, &mut self.stopped, queue)],
            50..65 => vec![self.stop_locally(dice, queue)],
            65..85 => vec![self.change(dice, catalogue, queue)],
            85..93 => vec![self.add(dice, catalogue, maker)],
            // One that is not empty is not removed at once.
            _ if names.len() > 1 && !self.lingers => self.remove(queue),
            _ => vec![stop(dice, &mut self.stopped, queue)],
        }
    }

    fn quota(&mut self, dice: &mut Dice, queue: String) -> Vec<Step> {
        let Some(set_quota) = quota(dice, &mut self.setup, &queue) else {
            return vec![stop(dice, &mut self.stopped, queue)];
        };
        vec![Step {
            set_quota: Some(set_quota),
            ..Step::default()
        }]
    }

    fn stop_locally(&mut self, dice: &mut Dice, queue: String) -> Step {
        let step = stop(dice, &mut self.locally_stopped, queue);
        Step {
            set_local_stop: step.set_stop,
            ..Step::default()
        }
    }

    /// Changes some of a queue's fields, or all.
    fn change(&mut self, dice: &mut Dice, catalogue: &Catalogue, name: String) -> Step {
        let other = catalogue.queue(dice, self.fair, &self.cohorts());
        let queue = self.setup.queues.get_mut(&name).expect("it is one of them");
        match dice.between(0, 6) {
            0 => queue.strategy = other.strategy,
            1 => queue.weight = other.weight,
            2 => queue.within = other.within,
            3 => (queue.reclaim, queue.bwc) = (other.reclaim, other.bwc),
            4 => queue.fungibility = other.fungibility,
            5 if queue.cohort.is_some() && other.cohort.is_some() => queue.cohort = other.cohort,
            5 => (queue.cohort, queue.groups) = (other.cohort, other.groups),
            _ => *queue = other,
        }
        set_queue(name, Some(queue.clone()))
    }

    /// Makes a queue, if one was removed at times the same one again.
    fn add(&mut self, dice: &mut Dice, catalogue: &Catalogue, maker: &mut Maker) -> Step {
        let queue = catalogue.queue(dice, self.fair, &self.cohorts());
        let name = match self.removed.pop().filter(|_| dice.chance(80)) {
            Some(name) => name,
            None => {
                self.added += 1;
                format!("new{}", self.added)
            }
        };
        self.setup.queues.insert(name.clone(), queue.clone());
        maker.add_queue(&name, &queue);
        set_queue(name, Some(queue))
    }

    fn remove(&mut self, name: String) -> Vec<Step> {
        self.setup.queues.remove(&name);
        self.stopped.remove(&name);
        self.removed.push(name.clone());
        let drain = SetStop {
            queue: name.clone(),
            policy: DRAINS.into(),
        };
        let drain = Step {
            set_stop: Some(drain),
            ..Step::default()
        };
        vec![drain, set_queue(name, None)]
    }

    /// Returns the cohorts that a queue may be in: those that are described or named.
    fn cohorts(&self) -> Vec<String> {
        let named = self
            .setup
            .queues
            .values()
            .filter_map(|queue| queue.cohort.clone());
        let mut names: Vec<_> = self.setup.cohorts.keys().cloned().chain(named).collect();
        names.sort();
        names.dedup();
        names
    }
}

fn set_queue(queue: String, to: Option<Queue>) -> Step {
    Step {
        set_queue: Some(SetQueue { queue, to }),
        ..Step::default()
    }
}

/// Sets another stop policy: of the same one Kueue is not told.
fn stop(dice: &mut Dice, stopped: &mut BTreeMap<String, String>, queue: String) -> Step {
    const POLICIES: [&str; 3] = [GOES_ON, "Hold", DRAINS];
    let policy = stopped.entry(queue.clone()).or_insert_with(|| GOES_ON.into());
    let others: Vec<&str> = POLICIES.into_iter().filter(|other| other != policy).collect();
    (*dice.one_of(&others)).clone_into(policy);
    let policy = policy.clone();
    Step {
        set_stop: Some(SetStop { queue, policy }),
        ..Step::default()
    }
}

/// Sets another nominal quota, which is not below what may be lent of it.
fn quota(dice: &mut Dice, setup: &mut Setup, name: &str) -> Option<SetQuota> {
    const MOST: f64 = 9.0;
    let queue = setup.queues.get_mut(name)?;
    let group = dice.0.choice(&mut queue.groups)?;
    let (flavor, resources) = dice.0.choice(&mut group.0)?;
    let resource = dice.0.choice(resources.keys().collect::<Vec<_>>())?.clone();
    let quota = resources.get_mut(&resource)?;
    let nominal = queues::up_to(dice, MOST);
    quota.set_nominal(nominal).then(|| SetQuota {
        queue: name.to_owned(),
        fr: format!("{flavor}/{resource}"),
        nominal,
    })
}
