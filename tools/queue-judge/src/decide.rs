//! What our queue makes of a case, in the case format's own words.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use blueproof_queue::{
    Admission, PreemptionReason, Queues, StopPolicy, Workload, WorkloadId, WorkloadStatus,
    objects::{ClusterQueue, FairSharing, Objects, Quota},
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    format::{ByQueue, CycleCase, CycleOutcome, Entry, Script, SetsOutcome, Setup, Share, Step, StepOutcome},
    world::{self, Names},
};

/// After so many cycles in one step it is taken that there is no end.
const CYCLES_AT_MOST: usize = 200;

/// When the cycle of a cycle case is: after whatever happened before.
const CYCLE_TIME: i32 = 1_000_000;

/// Returns what one cycle decides.
pub(crate) fn cycle(case: &CycleCase, setup: &Setup, fair: Fair) -> Result<CycleOutcome> {
    let everybody = case.running.values().chain(case.pending.values()).flatten();
    let names = Names::new(everybody.map(|entry| entry.n.clone()));
    let mut queues = Queues::new(world::objects(setup, fair.rules(&case.strategies)?)?);
    for (queue, entries) in &case.running {
        for entry in entries {
            world::restore(&mut queues, &names, queue, entry)?;
        }
    }
    let mut waiting = Vec::new();
    for (queue, entries) in &case.pending {
        for entry in entries {
            queues.submit(&world::workload(&names, queue, entry, world::at(entry.c))?)?;
            waiting.push(names.id(&entry.n)?);
        }
    }
    let cycle = queues.cycle(world::at(CYCLE_TIME));
    let mut outcome = CycleOutcome::default();
    let pending = case.pending.values().flatten();
    let in_sets: BTreeSet<_> = pending
        .filter(|entry| !entry.sets.is_empty())
        .map(|entry| entry.n.as_str())
        .collect();
    for admission in &cycle.admitted {
        let name = names.name(admission.workload);
        outcome.admit.insert(name.to_owned(), flavors(admission));
        if in_sets.contains(name) {
            outcome.sets.note(name, admission);
        }
    }
    for victim in &cycle.preempted {
        outcome.preempt.insert(
            names.name(victim.workload).to_owned(),
            letter(victim.reason).to_owned(),
        );
    }
    for id in waiting {
        let word = match queues.standing(id).context("it was submitted")? {
            WorkloadStatus::Queued => "queue",
            WorkloadStatus::Inadmissible => "parked",
            WorkloadStatus::BackingOff | WorkloadStatus::Admitted | WorkloadStatus::Evicted => continue,
        };
        outcome.wait.insert(names.name(id).to_owned(), word.to_owned());
    }
    Ok(outcome)
}

/// Whether shares count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fair {
    Yes,
    No,
}

impl Fair {
    pub(crate) fn rules(self, strategies: &[String]) -> Result<Option<FairSharing>> {
        match self {
            Fair::Yes => world::fair_sharing(strategies).map(Some),
            Fair::No => Ok(None),
        }
    }
}

/// What becomes of victims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Victims {
    /// They are back in their queues before the next cycle.
    Leave,
    /// They hold their quota until a step says that they are gone.
    Linger,
}

/// Returns what holds after each step, or `None` when a step has no end.
pub(crate) fn script(script: &Script, victims: Victims) -> Result<Option<Vec<StepOutcome>>> {
    let fair = if script.fair { Fair::Yes } else { Fair::No };
    let submitted = script.steps.iter().flat_map(|step| &step.submit);
    let mut play = Play {
        names: Names::new(submitted.map(|entry| entry.n.clone())),
        setup: script.setup.clone(),
        queues: Queues::new(world::objects(&script.setup, fair.rules(&script.strategies)?)?),
        victims,
        second: 1000,
        known: BTreeMap::new(),
        in_sets: BTreeSet::new(),
    };
    let mut outcomes = Vec::new();
    for step in &script.steps {
        play.happen(step)?;
        let Some(outcome) = play.settle()? else {
            return Ok(None);
        };
        outcomes.push(outcome);
    }
    Ok(Some(outcomes))
}

/// A script while it is played.
struct Play {
    names: Names,
    setup: Setup,
    queues: Queues,
    victims: Victims,
    second: i32,
    /// Who was submitted and has not finished, whether a queue takes it or not.
    known: BTreeMap<WorkloadId, Workload>,
    in_sets: BTreeSet<WorkloadId>,
}

impl Play {
    fn happen(&mut self, step: &Step) -> Result<()> {
        for entry in &step.submit {
            self.submit(entry)?;
        }
        for name in &step.finish {
            let id = self.names.id(name)?;
            self.known.remove(&id);
            self.queues.remove(id);
        }
        for name in &step.gone {
            let id = self.names.id(name)?;
            if self.queues.standing(id) == Some(WorkloadStatus::Evicted) {
                self.requeue(id);
            }
        }
        self.change(step)?;
        self.drain();
        Ok(())
    }

    /// Goes by other objects, if a step says so.
    fn change(&mut self, step: &Step) -> Result<()> {
        if let Some(set) = &step.set_lending {
            self.edit_quota(&set.queue, &set.fr, |resource, quota| {
                quota.lending_limit = set.limit.map(|limit| world::quantity(resource, limit));
            })?;
        }
        if let Some(set) = &step.set_quota {
            self.edit_quota(&set.queue, &set.fr, |resource, quota| {
                quota.nominal = world::quantity(resource, set.nominal);
            })?;
        }
        if let Some(set) = &step.set_stop {
            let policy = world::stop_policy(&set.policy)?;
            self.edit_queue(&set.queue, |queue| {
                queue.stop_policy = policy;
                Ok(())
            })?;
        }
        if let Some(set) = &step.set_local_stop {
            let policy = world::stop_policy(&set.policy)?;
            self.edit(|objects| {
                let local = objects.local_queues.get_mut(&set.queue);
                local.context("a step names a LocalQueue")?.stop_policy = policy;
                Ok(())
            })?;
        }
        if let Some(set) = &step.set_queue {
            self.edit(|objects| match &set.to {
                Some(queue) => world::set_queue(objects, &set.queue, queue),
                None => {
                    let removed = objects.cluster_queues.remove(&set.queue);
                    removed.context("a step names a queue").map(drop)
                }
            })?;
        }
        Ok(())
    }

    /// Evicts whoever holds quota through a queue that is to be drained.
    fn drain(&mut self) {
        for (id, _) in self.queues.to_drain() {
            self.queues.evict(id);
            if self.victims == Victims::Leave {
                self.requeue(id);
            }
        }
    }

    fn requeue(&mut self, id: WorkloadId) {
        self.queues.requeue(id);
        self.follow(id);
    }

    /// Lets a workload that waits into its queue, or out of it, as its LocalQueue has it.
    fn follow(&mut self, id: WorkloadId) {
        let workload = &self.known[&id];
        let local = self.queues.objects().local_queues.get(&workload.local_queue);
        let is_let_in = local.is_some_and(|local| local.stop_policy == StopPolicy::None);
        match self.queues.standing(id) {
            Some(WorkloadStatus::Queued | WorkloadStatus::Inadmissible | WorkloadStatus::BackingOff)
                if !is_let_in =>
            {
                self.queues.remove(id);
            }
            // Where its queue is not there, it waits outside.
            None if is_let_in => drop(self.queues.submit(workload)),
            Some(_) | None => {}
        }
    }

    /// Changes one quota of a queue.
    fn edit_quota(&mut self, queue: &str, of: &str, change: impl FnOnce(&str, &mut Quota)) -> Result<()> {
        let (flavor, resource) = world::flavor_resource(of)?;
        self.edit_queue(queue, |queue| {
            let groups = queue.resource_groups.iter_mut();
            let mut flavors = groups.flat_map(|group| &mut group.flavors);
            let quotas = flavors.find(|quotas| quotas.name == flavor);
            let quota = quotas.and_then(|quotas| quotas.resources.get_mut(resource));
            change(resource, quota.context("a step names a quota that is there")?);
            Ok(())
        })
    }

    fn edit_queue(
        &mut self,
        queue: &str,
        change: impl FnOnce(&mut ClusterQueue) -> Result<()>,
    ) -> Result<()> {
        self.edit(|objects| {
            let queue = objects.cluster_queues.get_mut(queue);
            change(queue.context("a step names a queue")?)
        })
    }

    fn edit(&mut self, change: impl FnOnce(&mut Objects) -> Result<()>) -> Result<()> {
        let mut objects = self.queues.objects().clone();
        change(&mut objects)?;
        self.queues.set_objects(objects);
        for id in self.known.keys().copied().collect::<Vec<_>>() {
            self.follow(id);
        }
        Ok(())
    }

    /// Returns the time: seconds, but as in the oracle nanoseconds where usage counts.
    fn now(&self) -> Timestamp {
        if self.setup.queues.values().all(|queue| queue.users.is_empty()) {
            return world::at(self.second);
        }
        Timestamp::UNIX_EPOCH + SignedDuration::from_nanos(self.second.into())
    }

    fn submit(&mut self, entry: &Entry) -> Result<()> {
        let queue = entry.q.as_deref().context("who is submitted names a queue")?;
        self.second += 1;
        let workload = world::workload(&self.names, queue, entry, self.now())?;
        if !entry.sets.is_empty() {
            self.in_sets.insert(workload.id);
        }
        let local_queues = &self.queues.objects().local_queues;
        let local = local_queues.get(&workload.local_queue);
        local.with_context(|| format!("there is no queue `{}`", workload.local_queue))?;
        let id = workload.id;
        self.known.insert(id, workload);
        self.follow(id);
        Ok(())
    }

    /// Runs cycles until nothing changes.
    fn settle(&mut self) -> Result<Option<StepOutcome>> {
        let mut preempted = BTreeMap::new();
        let mut admitted = BTreeMap::new();
        let mut cycles = 0;
        while self.queues.has_work() {
            cycles += 1;
            if cycles > CYCLES_AT_MOST {
                return Ok(None);
            }
            self.second += 1;
            let cycle = self.queues.cycle(self.now());
            admitted.extend(
                cycle
                    .admitted
                    .into_iter()
                    .map(|admission| (admission.workload, admission)),
            );
            for victim in &cycle.preempted {
                preempted.insert(
                    self.names.name(victim.workload).to_owned(),
                    letter(victim.reason).to_owned(),
                );
                if self.victims == Victims::Leave {
                    self.requeue(victim.workload);
                }
            }
        }
        self.outcome(preempted, &admitted).map(Some)
    }

    fn outcome(
        &self,
        preempted: BTreeMap<String, String>,
        admitted: &BTreeMap<WorkloadId, Admission>,
    ) -> Result<StepOutcome> {
        let (mut running, mut waiting, mut leaving) = (Vec::new(), Vec::new(), Vec::new());
        let (mut still_admitted, mut sets) = (BTreeMap::new(), SetsOutcome::default());
        let mut running_count: BTreeMap<String, usize> =
            self.setup.queues.keys().map(|queue| (queue.clone(), 0)).collect();
        for name in self.names.iter() {
            let id = self.names.id(name)?;
            match self.queues.standing(id) {
                Some(WorkloadStatus::Admitted) => {
                    running.push(name.to_owned());
                    let queue = self.known[&id].cluster_queue.clone();
                    *running_count.entry(queue).or_default() += 1;
                    if let Some(admission) = admitted.get(&id) {
                        still_admitted.insert(name.to_owned(), flavors(admission));
                        if self.in_sets.contains(&id) {
                            sets.note(name, admission);
                        }
                    }
                }
                Some(WorkloadStatus::Evicted) => leaving.push(name.to_owned()),
                Some(WorkloadStatus::Queued | WorkloadStatus::Inadmissible | WorkloadStatus::BackingOff) => {
                    waiting.push(name.to_owned());
                }
                None if self.known.contains_key(&id) => waiting.push(name.to_owned()),
                None => {}
            }
        }
        Ok(StepOutcome {
            running: Some(running),
            waiting: Some(waiting),
            leaving: Some(leaving),
            preempted: Some(preempted),
            admitted: Some(still_admitted),
            shares: Some(self.shares()?),
            available: Some(self.available()),
            running_count: Some(running_count),
            sets,
        })
    }

    /// Returns what each queue could have of each resource in each flavor.
    fn available(&self) -> ByQueue<f64> {
        let mut available = ByQueue::new();
        for (name, queue) in &self.queues.objects().cluster_queues {
            let flavors = queue.resource_groups.iter().flat_map(|group| &group.flavors);
            let places = flavors.flat_map(|flavor| {
                let resources = flavor.resources.keys();
                resources.map(move |resource| (&flavor.name, resource))
            });
            let of_queue = places.filter_map(|(flavor, resource)| {
                let amount = self.queues.available(name, flavor, resource).ok()?;
                Some((format!("{flavor}/{resource}"), world::amount(resource, amount)))
            });
            available.insert(name.clone(), of_queue.collect());
        }
        available
    }

    fn shares(&self) -> Result<BTreeMap<String, Share>> {
        let queues = self.queues.objects().cluster_queues.keys();
        queues
            .map(|queue| Ok((queue.clone(), share(self.queues.weighted_share(queue)?))))
            .collect()
    }
}

/// Returns a share as Kueue shows it: rounded up.
pub(crate) fn share(weighted: f64) -> Share {
    if weighted.is_infinite() {
        return Share::Word("max".into());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "shares are small and not below zero"
    )]
    Share::Number(weighted.ceil() as u64)
}

impl SetsOutcome {
    fn note(&mut self, name: &str, admission: &Admission) {
        let sets = &admission.pod_sets;
        let (counts, flavors) = sets.iter().map(|set| (set.count, set.flavors.clone())).unzip();
        self.counts.insert(name.to_owned(), counts);
        self.set_flavors.insert(name.to_owned(), flavors);
    }
}

/// Returns the flavor of each resource, in the first set that uses it.
fn flavors(admission: &Admission) -> BTreeMap<String, String> {
    let sets = admission.pod_sets.iter().rev();
    sets.flat_map(|set| set.flavors.clone()).collect()
}

/// Returns the letter of a reason.
pub(crate) fn letter(reason: PreemptionReason) -> &'static str {
    match reason {
        PreemptionReason::InClusterQueue => "Q",
        PreemptionReason::InCohortReclamation => "R",
        PreemptionReason::InCohortFairSharing => "F",
        PreemptionReason::InCohortReclaimWhileBorrowing => "W",
    }
}
