//! Random scenarios: each is the same for the same seed and number, on every machine.
//!
//! Times of creation are all different, or Go's order of maps would decide between heads of different queues.

mod edits;
mod queues;
mod workloads;

use std::collections::BTreeMap;

use clap::ValueEnum;
use fastrand::Rng;

use crate::{
    format::{CycleCase, Entry, Script, SetLending, SetQueue, Setup, Step},
    scenario::Scenario,
};
use edits::Admin;
use queues::Catalogue;
use workloads::Maker;

/// A kind of scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Kind {
    /// One cycle.
    Cycle,
    /// One cycle with fair sharing.
    FairCycle,
    /// Steps.
    Script,
    /// Steps with fair sharing.
    FairScript,
    /// Steps, with or without fair sharing, whose victims stay until they are said to be gone.
    Linger,
    /// Steps, with or without fair sharing, in queues in which usage decides who goes first.
    Usage,
    /// Steps, with or without fair sharing, in which queues change, come and go, are stopped and go on.
    Edits,
}

/// Returns the numbered scenario of a seed.
pub(crate) fn scenario(kind: Kind, seed: u64, number: u64) -> Scenario {
    // The numbers of a seed, and the seeds, lie far apart in the state that they start from.
    let rng = Rng::with_seed(Rng::with_seed(seed).u64(..) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut dice = Dice(rng);
    match kind {
        Kind::Cycle => Scenario::Cycle(cycle(&mut dice, false)),
        Kind::FairCycle => Scenario::Cycle(cycle(&mut dice, true)),
        Kind::Script => Scenario::Script(script(&mut dice, false)),
        Kind::FairScript => Scenario::Script(script(&mut dice, true)),
        Kind::Linger => {
            let fair = dice.chance(40);
            Scenario::Linger(linger(&mut dice, fair))
        }
        Kind::Usage => {
            let fair = dice.chance(30);
            let mut script = steps(&mut dice, fair, Chances { gone: 0, edit: 20 });
            by_usage(&mut dice, &mut script);
            Scenario::Script(script)
        }
        Kind::Edits => {
            let (fair, lingers) = (dice.chance(30), dice.chance(40));
            let gone = if lingers { 30 } else { 0 };
            let script = steps(&mut dice, fair, Chances { gone, edit: 40 });
            if lingers {
                Scenario::Linger(script)
            } else {
                Scenario::Script(script)
            }
        }
    }
}

/// What is left to chance.
struct Dice(Rng);

impl Dice {
    /// Returns whether something happens that happens so many times in a hundred.
    fn chance(&mut self, percent: u32) -> bool {
        self.0.u32(..100) < percent
    }

    /// Returns a number between two, or one of them.
    fn between(&mut self, least: usize, most: usize) -> usize {
        self.0.usize(least..=most)
    }

    /// Returns one of several.
    fn one_of<'a, T>(&mut self, some: &'a [T]) -> &'a T {
        &some[self.0.usize(..some.len())]
    }

    /// Returns one of several words, or nothing.
    fn word(&mut self, percent: u32, words: &[&str]) -> Option<String> {
        self.chance(percent).then(|| (*self.one_of(words)).to_owned())
    }

    /// Returns numbers from 1, in any order.
    fn permutation(&mut self, length: i32) -> Vec<i32> {
        let mut numbers: Vec<i32> = (1..=length).collect();
        self.0.shuffle(&mut numbers);
        numbers
    }

    /// Returns some of several, at least one, in any order.
    fn some_of<T: Clone>(&mut self, all: &[T]) -> Vec<T> {
        let mut some = all.to_vec();
        self.0.shuffle(&mut some);
        some.truncate(self.between(1, all.len()));
        some
    }
}

/// Returns which rules of fair sharing there are; none is the default.
fn strategies(dice: &mut Dice, fair: bool) -> Vec<String> {
    const RULES: [&str; 2] = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"];
    if !fair || dice.chance(60) {
        return Vec::new();
    }
    dice.some_of(&RULES).into_iter().map(str::to_owned).collect()
}

fn cycle(dice: &mut Dice, fair: bool) -> CycleCase {
    let catalogue = Catalogue::new(dice);
    let setup = catalogue.setup(dice, fair);
    let mut maker = Maker::new(dice, &catalogue, &setup);
    let (n_running, n_pending) = (dice.between(2, 16), dice.between(1, 8));
    let running: Vec<_> = (0..n_running).filter_map(|_| maker.running(dice)).collect();
    let pending: Vec<_> = (0..n_pending).map(|_| maker.pending(dice)).collect();
    let everybody = i32::try_from(running.len() + pending.len()).expect("they are few");
    let mut created = dice.permutation(everybody).into_iter();
    let mut by_queue = |entries: Vec<Entry>| {
        let mut queues: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        for mut entry in entries {
            entry.c = created.next().expect("one for each");
            queues
                .entry(entry.q.take().expect("it is in one"))
                .or_default()
                .push(entry);
        }
        queues
    };
    CycleCase {
        fair,
        strategies: strategies(dice, fair),
        running: by_queue(running),
        pending: by_queue(pending),
        setup,
        ..CycleCase::default()
    }
}

fn script(dice: &mut Dice, fair: bool) -> Script {
    steps(dice, fair, Chances { gone: 0, edit: 0 })
}

/// Puts users in front of queues. Nobody takes from other queues: among the victims of several, Kueue's order by usage goes
/// round.
fn by_usage(dice: &mut Dice, script: &mut Script) {
    const WEIGHTS: [f64; 7] = [0.0, 0.5, 1.0, 1.0, 1.0, 2.0, 3.0];
    for (name, queue) in &mut script.setup.queues {
        (queue.reclaim, queue.bwc) = (None, None);
        if dice.chance(80) {
            let users = (1..=dice.between(2, 4)).map(|number| format!("{name}-u{number}"));
            queue.users = users.map(|user| (user, *dice.one_of(&WEIGHTS))).collect();
        }
    }
    let nobody = BTreeMap::new();
    let users = |queue: &str| {
        let queue = script.setup.queues.get(queue);
        queue.map_or(&nobody, |queue| &queue.users)
    };
    let mut one_of = |queue: &str| dice.0.choice(users(queue).keys()).cloned();
    for step in &mut script.steps {
        for entry in &mut step.submit {
            entry.u = one_of(entry.q.as_deref().expect("it is in one"));
        }
        if let Some(set) = &mut step.set_local_stop {
            set.queue = one_of(&set.queue).unwrap_or_else(|| set.queue.clone());
        }
        if let Some(SetQueue { queue, to: Some(to) }) = &mut step.set_queue {
            (to.reclaim, to.bwc) = (None, None);
            to.users.clone_from(users(queue));
        }
    }
}

fn linger(dice: &mut Dice, fair: bool) -> Script {
    steps(dice, fair, Chances { gone: 35, edit: 0 })
}

/// How many of a hundred steps do something.
#[derive(Clone, Copy)]
struct Chances {
    /// They say that some are gone.
    gone: u32,
    /// They change a queue.
    edit: u32,
}

fn steps(dice: &mut Dice, fair: bool, chances: Chances) -> Script {
    let catalogue = Catalogue::new(dice);
    let setup = catalogue.setup(dice, fair);
    let mut maker = Maker::new(dice, &catalogue, &setup);
    let mut known = Vec::new();
    let mut admin = Admin::new(setup.clone(), fair, chances.gone > 0);
    let mut steps = Vec::new();
    for number in 0..dice.between(3, 10) {
        if number > 0 && chances.edit > 0 && dice.chance(chances.edit) {
            steps.extend(admin.edit(dice, &catalogue, &mut maker));
            continue;
        }
        let submits = number == 0 || dice.chance(45) || known.is_empty();
        steps.push(if submits {
            submit(dice, &mut maker, &mut known)
        } else if dice.chance(chances.gone) {
            Step {
                gone: dice.some_of(&known),
                ..Step::default()
            }
        } else if let Some(set_lending) = lending(dice, &mut admin.setup) {
            Step {
                set_lending: Some(set_lending),
                ..Step::default()
            }
        } else {
            finish(dice, &mut known)
        });
    }
    Script {
        fair,
        strategies: strategies(dice, fair),
        setup,
        steps,
        ..Script::default()
    }
}

fn submit(dice: &mut Dice, maker: &mut Maker, known: &mut Vec<String>) -> Step {
    let submit: Vec<_> = (0..dice.between(1, 5)).map(|_| maker.pending(dice)).collect();
    known.extend(submit.iter().map(|entry| entry.n.clone()));
    Step {
        submit,
        ..Step::default()
    }
}

fn finish(dice: &mut Dice, known: &mut Vec<String>) -> Step {
    let mut finish = dice.some_of(known);
    finish.truncate(2);
    known.retain(|name| !finish.contains(name));
    Step {
        finish,
        ..Step::default()
    }
}

/// Sets another lending limit for a queue in a cohort, sometimes.
fn lending(dice: &mut Dice, setup: &mut Setup) -> Option<SetLending> {
    if !dice.chance(15) {
        return None;
    }
    let queues = setup
        .queues
        .iter_mut()
        .filter(|(_, queue)| queue.cohort.is_some());
    let mut queues: Vec<_> = queues.collect();
    let (name, queue) = dice.0.choice(&mut queues)?;
    let group = dice.0.choice(&mut queue.groups)?;
    let (flavor, resources) = dice.0.choice(&mut group.0)?;
    let resource = dice.0.choice(resources.keys().collect::<Vec<_>>())?.clone();
    let quota = resources.get_mut(&resource)?;
    let limit = dice.chance(80).then(|| queues::up_to(dice, quota.nominal()));
    // Nothing would happen, and Kueue is not told of it.
    quota.set_lending(limit).then(|| SetLending {
        queue: (*name).clone(),
        fr: format!("{flavor}/{resource}"),
        limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_number_give_the_same_scenario_and_others_give_others() {
        for &kind in Kind::value_variants() {
            let line = |seed, number| scenario(kind, seed, number).line();
            assert_eq!(line(7, 3), line(7, 3));
            assert_ne!(line(7, 3), line(7, 4));
            assert_ne!(line(7, 3), line(8, 3));
        }
    }

    #[test]
    fn every_scenario_can_be_read_again_and_decided() {
        for number in 0..300 {
            let kinds = Kind::value_variants();
            let made = scenario(
                kinds[usize::try_from(number).expect("small") % kinds.len()],
                1,
                number,
            );
            let read: Scenario = serde_json::from_str(&made.line()).expect("a scenario");
            assert_eq!(read.line(), made.line());
            let first = read.decide().expect("it is sound");
            assert_eq!(made.decide().expect("it is sound"), first);
        }
    }
}
