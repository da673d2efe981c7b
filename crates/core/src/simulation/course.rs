//! The course of a scenario: what is due next, and what the queues make of it.
//!
//! What stands around the queues is as in the scheduler: one who was admitted into room that others are still leaving
//! starts when they are gone, and one who never started leaves at once.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{
    Arrival, Change, Job, Scenario,
    history::{Fate, History, Leave, Moment, Stay, What},
    nodes::Nodes,
};
use crate::queue::{
    Admission, ExecutionTime, Preempted, Quantity, Queues, StopPolicy, Workload, WorkloadId, objects::Objects,
};

/// How many cycles one instant may lead to. With fair sharing Kueue's rules can go round for ever.
const CYCLES_AT_MOST: usize = 1_000;

/// How many instants there may be for each job, for the same reason.
const INSTANTS_AT_MOST: usize = 1_000;

/// Something that is due. At one instant the first here goes first: who leaves, before who comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A job is done.
    Done(usize),
    /// The change of this number.
    Change(usize),
    /// A job has had quota for as long as it may.
    Expired(usize),
    /// A job that was told to go is gone.
    Gone(usize),
    /// A job that was not to be tried before may be tried again.
    Back(usize),
    /// A job arrives.
    Arrival(usize),
    /// A job goes away if it has no quota.
    GiveUp(usize),
    /// Somebody may be evicted again who was safe until now.
    Wake,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is not there yet, stays away, or is done.
    Away,
    /// No queue takes it.
    Outside,
    /// It waits for quota.
    Waiting,
    /// It has quota that others are still leaving.
    Held,
    /// It runs, and will be done then.
    Running(SignedDuration),
    /// It was told to go.
    Leaving,
}

/// A job on its way.
#[derive(Debug)]
struct State {
    place: Place,
    workload: Workload,
    execution: ExecutionTime,
    /// Before when it is not tried, if it backs off.
    not_before: Option<SignedDuration>,
    admission: Option<Admission>,
}

/// A scenario that is being played.
#[derive(Debug)]
pub(super) struct Course<'a> {
    scenario: &'a Scenario,
    queues: Queues,
    /// The queues before any lending limit was changed.
    objects: Objects,
    nodes: Nodes,
    agenda: BTreeSet<(SignedDuration, Due)>,
    followers: BTreeMap<usize, Vec<usize>>,
    now: SignedDuration,
    states: Vec<State>,
    held: BTreeSet<usize>,
    history: History,
}

impl<'a> Course<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let mut queues = Queues::new(scenario.objects.clone());
        queues.protect_for(scenario.protected_for);
        let states = scenario.jobs.iter().enumerate();
        let states = states.map(|(number, job)| State::new(number, job)).collect();
        let history = History {
            fates: vec![Fate::default(); scenario.jobs.len()],
            ..History::default()
        };
        let mut course = Self {
            scenario,
            queues,
            objects: scenario.objects.clone(),
            nodes: Nodes::new(&scenario.nodes),
            agenda: BTreeSet::new(),
            followers: BTreeMap::new(),
            now: SignedDuration::ZERO,
            states,
            held: BTreeSet::new(),
            history,
        };
        course.plan();
        course.note_capacity();
        course
    }

    /// Puts on the agenda what is known beforehand.
    fn plan(&mut self) {
        for (number, job) in self.scenario.jobs.iter().enumerate() {
            match job.arrives {
                Arrival::At(at) => {
                    self.agenda.insert((at, Due::Arrival(number)));
                }
                Arrival::After(first, _) => self.followers.entry(first).or_default().push(number),
            }
            if let Some(at) = job.gives_up_at {
                self.agenda.insert((at, Due::GiveUp(number)));
            }
        }
        for (number, (at, _)) in self.scenario.changes.iter().enumerate() {
            self.agenda.insert((*at, Due::Change(number)));
        }
    }

    pub(super) fn play(mut self) -> History {
        let most = INSTANTS_AT_MOST * (1 + self.scenario.jobs.len());
        for _ in 0..most {
            if !self.step() {
                self.history.end = self.scenario.until.unwrap_or(self.now);
                return self.history;
            }
        }
        self.history.end = self.now;
        self.history.cut_short = true;
        self.history
    }

    /// Plays the next instant at which anything is due, and returns whether there was one.
    fn step(&mut self) -> bool {
        let next = self.agenda.first().map(|(at, _)| *at);
        let Some(next) = next.filter(|at| self.scenario.until.is_none_or(|until| *at <= until)) else {
            return false;
        };
        self.now = next;
        while let Some((at, due)) = self.agenda.first().copied()
            && at == self.now
        {
            self.agenda.remove(&(at, due));
            self.take_in(due);
        }
        self.decide();
        self.wait_for_protection();
        self.note_shares();
        true
    }

    fn take_in(&mut self, due: Due) {
        match due {
            Due::Done(job) => self.on_done(job),
            Due::Change(number) => self.on_change(number),
            Due::Expired(job) => self.on_expired(job),
            Due::Gone(job) => self.go(job),
            Due::Back(job) => self.on_back(job),
            Due::Arrival(job) => self.on_arrival(job),
            Due::GiveUp(job) => self.on_give_up(job),
            Due::Wake => self.queues.wake(),
        }
    }

    fn on_arrival(&mut self, job: usize) {
        self.history.fates[job].arrived = Some(self.now);
        self.note(What::Arrived { job });
        self.states[job].workload.queued_at = timestamp(self.now - self.scenario.jobs[job].aged);
        self.let_in(job);
    }

    /// Lets a job into the ClusterQueue behind its LocalQueue, as things are now.
    fn let_in(&mut self, job: usize) {
        let queue = &self.scenario.jobs[job].queue;
        let local = self.queues.objects().local_queues.get(queue);
        let behind = local.filter(|local| local.stop_policy == StopPolicy::None);
        let behind = behind.map(|local| local.cluster_queue.clone());
        let state = &mut self.states[job];
        if state.place == Place::Waiting && behind.as_ref() == Some(&state.workload.cluster_queue) {
            return;
        }
        self.queues.remove(state.workload.id);
        state.place = Place::Outside;
        let Some(behind) = behind else { return };
        state.workload.cluster_queue = behind;
        if self.queues.submit(&state.workload).is_ok() {
            state.place = Place::Waiting;
            if let Some(until) = state.not_before {
                self.queues.back_off(state.workload.id, timestamp(until));
            }
        }
    }

    fn on_give_up(&mut self, job: usize) {
        let state = &mut self.states[job];
        if matches!(state.place, Place::Outside | Place::Waiting) {
            state.place = Place::Away;
            state.not_before = None;
            self.queues.remove(state.workload.id);
            self.history.fates[job].gave_up = Some(self.now);
            self.note(What::GaveUp { job });
        }
    }

    fn on_done(&mut self, job: usize) {
        self.leave(job);
        self.history.fates[job].done = Some(self.now);
        self.note(What::Done { job });
        for follower in self.followers.remove(&job).unwrap_or_default() {
            if let Arrival::After(_, by) = self.scenario.jobs[follower].arrives {
                self.agenda.insert((self.now + by, Due::Arrival(follower)));
            }
        }
    }

    /// Takes back what a job has.
    fn leave(&mut self, job: usize) {
        let state = &mut self.states[job];
        if let Place::Running(until) = state.place {
            self.agenda.remove(&(until, Due::Done(job)));
        }
        state.place = Place::Away;
        self.queues.remove(state.workload.id);
        self.nodes.clear(job);
        if let Some(stay) = self.history.fates[job].stays.last_mut() {
            stay.until = Some(self.now);
            if let Some(end) = state.execution.ends_at(timestamp(stay.since)) {
                self.agenda.remove(&(since_begin(end), Due::Expired(job)));
            }
            state.execution.spend(self.now - stay.since);
        }
    }

    /// One who was told to go is gone, and waits again, as old as it was, unless it had its time.
    fn go(&mut self, job: usize) {
        self.leave(job);
        if self.history.fates[job].deactivated.is_some() {
            return self.note(What::Deactivated { job });
        }
        self.note(What::Requeued { job });
        self.wait_again(job);
    }

    /// One who had quota for as long as it may has to go, and does not come back.
    fn on_expired(&mut self, job: usize) {
        self.history.fates[job].deactivated = Some(self.now);
        self.evict(job, Leave::MaximumExecutionTimeExceeded);
    }

    /// One who was evicted waits again, as old as it was.
    fn wait_again(&mut self, job: usize) {
        self.states[job].workload.evictions += 1;
        self.let_in(job);
    }

    /// The back-off of one who was evicted is over.
    fn on_back(&mut self, job: usize) {
        if self.states[job].not_before.take().is_some() {
            self.note(What::Requeued { job });
        }
    }

    fn on_change(&mut self, number: usize) {
        let scenario = self.scenario;
        match &scenario.changes[number].1 {
            Change::Quota(objects) => {
                self.objects = (**objects).clone();
                self.note(What::QuotaChanged);
                let objects = self.limited();
                self.set_objects(objects);
            }
            Change::Protection(span) => self.queues.protect_for(*span),
            Change::Remark(text) => self.note(What::Remark { text: text.clone() }),
            Change::NodeFails(node) => self.on_node_failed(node),
            Change::NodeRecovers(node) => {
                self.nodes.recover(node);
                self.note(What::NodeRecovered { node: node.clone() });
                self.follow_nodes();
            }
        }
    }

    /// Whoever has a pod on the node is gone at once, and comes back after its pause.
    fn on_node_failed(&mut self, node: &str) {
        let hit = self.nodes.fail(node);
        self.note(What::NodeFailed { node: node.into() });
        self.follow_nodes();
        for job in hit {
            let cause = Leave::NodeFailed { node: node.into() };
            self.note_eviction(job, cause);
            self.agenda
                .retain(|(_, due)| *due != Due::Gone(job) && *due != Due::Done(job));
            self.leave(job);
            let until = self.now + self.scenario.jobs[job].retry_pause;
            self.states[job].not_before = Some(until);
            self.agenda.insert((until, Due::Back(job)));
            self.wait_again(job);
        }
    }

    /// Goes by the lending limit that the nodes leave to the slack queue.
    fn follow_nodes(&mut self) {
        let objects = self.limited();
        if objects != *self.queues.objects() {
            self.set_objects(objects);
        }
    }

    /// Returns the queues that hold, with the lending limit that the nodes leave to the slack queue.
    fn limited(&self) -> Objects {
        let mut objects = self.objects.clone();
        let Objects {
            cluster_queues,
            flavors,
            ..
        } = &mut objects;
        let slack = self.scenario.slack.as_ref();
        if let Some(slack) = slack.and_then(|name| cluster_queues.get_mut(name)) {
            self.nodes.limit_lending(slack, flavors);
        }
        objects
    }

    fn note_limits(&mut self, new: &Objects) {
        let Some(slack) = &self.scenario.slack else { return };
        let before = lending_limits(self.queues.objects(), slack);
        let after = lending_limits(new, slack).into_iter();
        let changed = after.filter(|(of, limit)| before.get(of) != Some(limit));
        let told = changed.map(|((flavor, resource), limit)| What::LendingLimit {
            flavor: flavor.into(),
            resource: resource.into(),
            limit,
        });
        for what in told.collect::<Vec<_>>() {
            self.note(what);
        }
    }

    fn set_objects(&mut self, objects: Objects) {
        self.note_limits(&objects);
        self.queues.set_objects(objects);
        self.note_capacity();
        for job in 0..self.states.len() {
            if matches!(self.states[job].place, Place::Outside | Place::Waiting) {
                self.let_in(job);
            }
        }
    }

    /// Decides who gets quota now, and who has to give theirs back.
    fn decide(&mut self) {
        self.queues.end_back_offs(timestamp(self.now));
        loop {
            for _ in 0..CYCLES_AT_MOST {
                if !self.queues.is_restless() {
                    break;
                }
                self.cycle();
            }
            self.drain();
            if !self.give_out() {
                return;
            }
        }
    }

    fn cycle(&mut self) {
        let cycle = self.queues.cycle(timestamp(self.now));
        for admission in cycle.admitted {
            let job = number(admission.workload);
            self.states[job].place = Place::Held;
            self.states[job].admission = Some(admission);
            self.held.insert(job);
        }
        for preempted in cycle.preempted {
            self.preempt(preempted);
        }
    }

    fn preempt(&mut self, preempted: Preempted) {
        let cause = Leave::Preempted {
            by: number(preempted.by),
            reason: preempted.reason,
        };
        self.evict(number(preempted.workload), cause);
    }

    fn evict(&mut self, job: usize, cause: Leave) {
        let id = self.states[job].workload.id;
        if self.held.remove(&job) {
            // Nothing of it runs yet, so it is gone at once.
            self.states[job].place = Place::Waiting;
            return self.queues.requeue(id);
        }
        let Place::Running(until) = self.states[job].place else {
            return;
        };
        self.note_eviction(job, cause);
        self.states[job].place = Place::Leaving;
        let stint = self.scenario.jobs[job].stint(self.states[job].workload.evictions);
        if until - self.now <= stint.closing {
            return;
        }
        self.agenda.remove(&(until, Due::Done(job)));
        if stint.grace.is_zero() {
            return self.go(job);
        }
        self.agenda.insert((self.now + stint.grace, Due::Gone(job)));
    }

    /// Evicts whoever holds quota of a queue that is to be drained.
    fn drain(&mut self) {
        for id in self.queues.to_drain() {
            self.queues.evict(id);
            self.evict(number(id), Leave::Drained);
        }
    }

    /// Starts those for whom there is room beside all who have not left yet, and returns whether there were any.
    fn give_out(&mut self) -> bool {
        let mut given = false;
        for job in self.held.clone() {
            let states = &self.states;
            let has_it =
                |id: WorkloadId| matches!(states[number(id)].place, Place::Running(_) | Place::Leaving);
            if self.queues.has_room_beside(states[job].workload.id, has_it) {
                self.held.remove(&job);
                self.start(job);
                given = true;
            }
        }
        given
    }

    fn start(&mut self, job: usize) {
        let state = &mut self.states[job];
        let asked = &self.scenario.jobs[job];
        let until = self.now + asked.stint(state.workload.evictions).runs_for;
        state.place = Place::Running(until);
        self.agenda.insert((until, Due::Done(job)));
        if let Some(end) = state.execution.ends_at(timestamp(self.now)) {
            self.agenda.insert((since_begin(end), Due::Expired(job)));
        }
        let admission = state.admission.take().expect("it was just admitted");
        self.nodes.put(job, asked, &admission);
        let stay = Stay {
            since: self.now,
            until: None,
            held: amounts(asked, &admission),
            evicted: None,
        };
        self.history.fates[job].stays.push(stay);
        self.note(What::Admitted { job });
    }

    fn wait_for_protection(&mut self) {
        let Some(until) = self.queues.protected_until() else {
            return;
        };
        let returning = self
            .states
            .iter()
            .any(|state| state.place == Place::Waiting && state.workload.evictions > 0);
        if returning {
            self.agenda.insert((since_begin(until), Due::Wake));
        }
    }

    fn note(&mut self, what: What) {
        let at = self.now;
        self.history.moments.push(Moment { at, what });
    }

    fn note_eviction(&mut self, job: usize, cause: Leave) {
        let at = self.now;
        if let Some(stay) = self.history.fates[job].stays.last_mut() {
            stay.evicted = stay.evicted.take().or(Some((at, cause.clone())));
        }
        self.note(What::Evicted { job, cause });
    }

    fn note_capacity(&mut self) {
        let capacity = capacity(self.queues.objects());
        self.history.capacity.push((self.now, capacity));
    }

    fn note_shares(&mut self) {
        let queues = self.queues.objects().cluster_queues.keys();
        let shares = queues.filter_map(|queue| self.queues.weighted_share(queue).ok());
        let finite = shares.filter(|share| share.is_finite());
        let (least, most) = finite.fold((f64::INFINITY, 0.0_f64), |(least, most), share| {
            (least.min(share), most.max(share))
        });
        let gap = (most - least).max(0.0);
        if self.history.share_gaps.last().map(|(_, gap)| *gap) != Some(gap) {
            self.history.share_gaps.push((self.now, gap));
        }
    }
}

impl State {
    fn new(number: usize, job: &Job) -> Self {
        let workload = Workload {
            id: WorkloadId(number as u64),
            cluster_queue: String::new(),
            priority: job.priority,
            queued_at: Timestamp::UNIX_EPOCH,
            evictions: job.evicted_before,
            pod_sets: job.pod_sets.clone(),
        };
        Self {
            place: Place::Away,
            workload,
            execution: ExecutionTime::new(job.maximum_execution_time),
            not_before: None,
            admission: None,
        }
    }
}

fn number(id: WorkloadId) -> usize {
    usize::try_from(id.0).expect("it was made of one")
}

fn timestamp(at: SignedDuration) -> Timestamp {
    Timestamp::UNIX_EPOCH
        .saturating_add(at)
        .expect("a span without calendar units")
}

fn since_begin(at: Timestamp) -> SignedDuration {
    at.duration_since(Timestamp::UNIX_EPOCH)
}

/// Returns what an admission gives of each resource.
fn amounts(job: &Job, admission: &Admission) -> BTreeMap<String, Quantity> {
    let mut sums: BTreeMap<String, Quantity> = BTreeMap::new();
    for (set, given) in job.pod_sets.iter().zip(&admission.pod_sets) {
        for (resource, per_pod) in &set.requests {
            let sum = sums.entry(resource.clone()).or_default();
            *sum = sum.plus(per_pod.times(given.count));
        }
    }
    sums
}

/// Returns how much there is of each resource, in queues and cohorts together.
fn capacity(objects: &Objects) -> BTreeMap<String, Quantity> {
    let queues = objects
        .cluster_queues
        .values()
        .flat_map(|queue| &queue.resource_groups);
    let cohorts = objects
        .cohorts
        .values()
        .flat_map(|cohort| &cohort.resource_groups);
    let flavors = queues.chain(cohorts).flat_map(|group| &group.flavors);
    let mut sums: BTreeMap<String, Quantity> = BTreeMap::new();
    for (resource, quota) in flavors.flat_map(|flavor| &flavor.resources) {
        let sum = sums.entry(resource.clone()).or_default();
        *sum = sum.plus(quota.nominal);
    }
    sums
}

/// Returns what a queue may lend, by flavor and resource.
fn lending_limits<'a>(objects: &'a Objects, queue: &str) -> BTreeMap<(&'a str, &'a str), Option<Quantity>> {
    let groups = objects
        .cluster_queues
        .get(queue)
        .into_iter()
        .flat_map(|queue| &queue.resource_groups);
    let flavors = groups.flat_map(|group| &group.flavors);
    let limits = flavors.flat_map(|flavor| {
        let quotas = flavor.resources.iter();
        quotas.map(|(resource, quota)| ((flavor.name.as_str(), resource.as_str()), quota.lending_limit))
    });
    limits.collect()
}
