//! One scheduling cycle of a tree: the head of each queue is looked at, and in order admitted, given victims, or left.
//!
//! Kueue's `scheduler.schedule`. What a cycle counts as used beside what is admitted lasts for the cycle only.

mod order;

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::{
    Quantity,
    assign::{self, Assignment, Mode},
    objects::ReclaimWithinCohort,
    quotas::{NodeId, Usage},
    scene::{Ask, Rules, Scene, Victim},
    tree::{Holder, Searches, Tree},
    workload::{Preempted, WorkloadId},
};

/// What a cycle decided.
#[derive(Debug, Default)]
pub(super) struct TreeCycle {
    pub(super) admitted: Vec<(usize, WorkloadId, Assignment)>,
    pub(super) preempted: Vec<Preempted>,
    pub(super) preemptors: Vec<WorkloadId>,
    /// How many were looked at.
    pub(super) tried: usize,
    /// Whether the next cycle could differ from this one.
    pub(super) changed: bool,
}

/// The head of a queue, with what it would get.
struct Nominee {
    queue: usize,
    id: WorkloadId,
    priority: i32,
    queued_at: Timestamp,
    assignment: Assignment,
    victims: Vec<Victim>,
}

/// What becomes of a nominee.
enum Fate {
    Admitted,
    /// It waits for its victims to be gone.
    Preempts,
    /// Somebody before it in this cycle took what it needed; it tries again.
    Overtaken,
    /// There is nothing for it.
    Fails,
}

/// What holds for the rest of a cycle only.
#[derive(Default)]
struct Passing {
    /// What counts as used though nobody has it yet.
    reserved: Vec<(NodeId, Usage)>,
    victims: Vec<Victim>,
    victim_ids: BTreeSet<WorkloadId>,
}

impl Tree {
    /// Runs one cycle.
    pub(super) fn cycle(&mut self, now: Timestamp, rules: Rules<'_>) -> TreeCycle {
        self.cycles += 1;
        for queue in &mut self.queues {
            queue.users.advance(now);
        }
        if self.searched.is_empty() {
            self.searched.push(self.searches());
        }
        let mut nominees = self.nominate(rules);
        if rules.fair.is_none() {
            order::classical(&mut nominees);
            nominees.reverse();
        }
        let mut result = TreeCycle {
            tried: nominees.len(),
            ..TreeCycle::default()
        };
        let mut passing = Passing::default();
        while !nominees.is_empty() {
            let nominee = match rules.fair {
                None => nominees.pop().expect("there are some"),
                Some(_) => nominees.remove(order::fairest(&mut self.scene(rules), &nominees)),
            };
            let fate = decide(&mut self.scene(rules), &nominee, &mut passing);
            self.carry_out(nominee, &fate, now, &mut result);
        }
        for (node, usage) in passing.reserved {
            self.quotas.unreserve(node, &usage);
        }
        if result.changed {
            self.searched = vec![self.searches()];
        } else {
            result.changed = self.searches_on();
        }
        result
    }

    /// Returns who waits with flavors left to try, and where their searches go on.
    fn searches(&self) -> Searches {
        let queues = self.queues.iter().enumerate();
        queues
            .flat_map(|(number, queue)| queue.line.searches().map(move |(id, next)| (number, id, next)))
            .collect()
    }

    /// Returns whether a cycle that decided nothing leaves searches for flavors where they have not been since something
    /// changed. Kueue would try the same flavors over and over; once round is enough.
    fn searches_on(&mut self) -> bool {
        let now = self.searches();
        if self.searched.contains(&now) {
            return false;
        }
        self.searched.push(now);
        true
    }

    /// Looks what the head of each queue would get.
    fn nominate(&mut self, rules: Rules<'_>) -> Vec<Nominee> {
        let number = self.cycles;
        let mut nominees = Vec::new();
        for queue in 0..self.queues.len() {
            let Some((id, entry)) = self.queues[queue].head() else {
                continue;
            };
            let shape = Arc::clone(&self.queues[queue].shapes[entry.class.shape]);
            let generation = self.queues[queue].generation;
            let mut scene = self.scene(rules);
            let ask = Ask {
                queue,
                evictions: entry.evictions,
                priority: entry.class.priority,
                queued_at: entry.queued_at,
                shape: &shape,
            };
            let progress = scene.queues[queue].line.progress(id);
            let progress = progress.filter(|last| number - last.cycle <= 1 || generation <= last.generation);
            let (mut assignment, victims) = assign::assign_with_victims(&mut scene, &ask, progress);
            assignment.progress.cycle = number;
            assignment.progress.generation = generation;
            nominees.push(Nominee {
                queue,
                id,
                priority: ask.priority,
                queued_at: ask.queued_at,
                assignment,
                victims,
            });
        }
        nominees
    }

    fn carry_out(&mut self, nominee: Nominee, fate: &Fate, now: Timestamp, result: &mut TreeCycle) {
        let queue = &mut self.queues[nominee.queue];
        match fate {
            Fate::Admitted => {
                let entry = queue.line.remove(nominee.id).expect("the head waits");
                let asked = queue.terms.asked(&queue.shapes[entry.class.shape]);
                let gets = nominee.assignment.usage.iter();
                let gets = gets.map(|(of, amount)| (self.places[of.0].1.as_str(), *amount));
                queue.users.admit(now, entry.user, asked, gets);
                let holder = Holder {
                    entry,
                    reserved_at: now,
                    usage: nominee.assignment.usage.clone(),
                    evicted: false,
                };
                queue.holders.insert(nominee.id, holder);
                queue.generation += 1;
                result.changed = true;
                result
                    .admitted
                    .push((nominee.queue, nominee.id, nominee.assignment));
            }
            Fate::Preempts => {
                let before = queue.line.preemptor();
                queue.line.set_preemptor(nominee.id);
                queue.line.forget_progress_of(nominee.id);
                let is_new = queue.line.preemptor() != before;
                let evicts = self.evict(&nominee, result);
                result
                    .preemptors
                    .extend((is_new && !evicts).then_some(nominee.id));
            }
            Fate::Overtaken => {
                queue.line.set_progress(nominee.id, nominee.assignment.progress);
            }
            Fate::Fails => {
                queue.line.set_progress(nominee.id, nominee.assignment.progress);
                result.changed |= queue.line.park(nominee.id);
            }
        }
    }

    /// Evicts a nominee's victims, and returns whether any of them was not evicted before.
    fn evict(&mut self, nominee: &Nominee, result: &mut TreeCycle) -> bool {
        let before = result.preempted.len();
        let entry = self.queues[nominee.queue].line.entry(nominee.id);
        let evicted_by = entry.and_then(|entry| entry.evicted_by);
        for victim in &nominee.victims {
            let queue = &mut self.queues[victim.queue];
            let holder = queue.holders.get_mut(&victim.id).expect("a victim holds quota");
            if holder.evicted {
                continue;
            }
            holder.evicted = true;
            holder.entry.evicted_by = Some(nominee.id);
            queue.generation += 1;
            result.changed = true;
            result.preempted.push(Preempted {
                workload: victim.id,
                reason: victim.reason,
                by: nominee.id,
                reversal: evicted_by == Some(victim.id),
            });
        }
        result.preempted.len() > before
    }
}

/// Decides on a nominee after those before it in the cycle; what it takes counts as used from now on.
fn decide(scene: &mut Scene<'_>, nominee: &Nominee, passing: &mut Passing) -> Fate {
    let node = scene.queues[nominee.queue].node;
    let mode = nominee.assignment.mode;
    if mode == Mode::NoFit {
        return Fate::Fails;
    }
    if mode == Mode::Preempt && nominee.victims.is_empty() {
        hold_back(scene, nominee, passing);
        return Fate::Fails;
    }
    if nominee
        .victims
        .iter()
        .any(|victim| passing.victim_ids.contains(&victim.id))
    {
        return Fate::Overtaken;
    }
    if !still_fits(scene, nominee, passing) {
        return Fate::Overtaken;
    }
    passing.victims.extend(&nominee.victims);
    passing
        .victim_ids
        .extend(nominee.victims.iter().map(|victim| victim.id));
    scene.quotas.add(node, &nominee.assignment.usage);
    if mode == Mode::Fit {
        return Fate::Admitted;
    }
    passing.reserved.push((node, nominee.assignment.usage.clone()));
    Fate::Preempts
}

/// Returns whether the nominee fits once all victims of this cycle, and its own, are gone.
fn still_fits(scene: &mut Scene<'_>, nominee: &Nominee, passing: &Passing) -> bool {
    let node = scene.queues[nominee.queue].node;
    scene.remove_all(&passing.victims);
    scene.remove_all(&nominee.victims);
    let fits = nominee
        .assignment
        .usage
        .iter()
        .all(|(of, amount)| *amount <= scene.quotas.available(node, *of));
    scene.add_all(&nominee.victims);
    scene.add_all(&passing.victims);
    fits
}

/// Counts what one asks for who may evict nobody as used, up to its queue's limits, so that others of the cohort do not
/// take it meanwhile. A queue that can take back from anybody need not fear that.
fn hold_back(scene: &mut Scene<'_>, nominee: &Nominee, passing: &mut Passing) {
    let queue = &scene.queues[nominee.queue];
    if queue.terms.preemption.reclaim_within_cohort == ReclaimWithinCohort::Any {
        return;
    }
    let node = queue.node;
    let reserved = nominee.assignment.usage.iter().map(|(of, amount)| {
        let quota = scene.quotas.quota(node, *of);
        let used = scene.quotas.usage(node, *of);
        let kept = match (nominee.assignment.borrowing, quota.borrowing_limit) {
            (0, _) => (*amount).min(quota.nominal.minus(used)).or_zero(),
            (_, None) => *amount,
            (_, Some(limit)) => (*amount).min(quota.nominal.plus(limit).minus(used)),
        };
        (*of, kept)
    });
    let reserved: Usage = reserved.filter(|(_, kept)| *kept != Quantity::ZERO).collect();
    scene.quotas.add(node, &reserved);
    passing.reserved.push((node, reserved));
}
