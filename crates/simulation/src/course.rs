//! The course of a scenario: what is due next, and what the queues make of it. What becomes of those who have their
//! quota is in `deployed`.
//!
//! What stands around the queues is as in the scheduler: one who was admitted into room that others are still leaving
//! starts when they are gone, and one who never started leaves at once.

mod deployed;
mod time;
mod turns;
mod unadmitted;

use std::collections::{BTreeMap, BTreeSet};

use blueproof_queue::{
    Admission, ExecutionTime, Preempted, Quantity, Queues, StopPolicy, Workload, WorkloadId, objects::Objects,
};
use jiff::{SignedDuration, Timestamp};

use super::{
    Arrival, Change, Job, Scenario, Watch,
    deployment::Deployment,
    fragmentation::Shapes,
    history::{Fate, Fewer, History, Leave, Moment, Stay, What},
    nodes::Nodes,
};
use time::since_begin;
use turns::Turns;

/// How many cycles one instant may lead to. With fair sharing Kueue's rules can go round for ever.
const CYCLES_AT_MOST: usize = 1_000;

/// How many instants there may be for each job, for the same reason.
const INSTANTS_AT_MOST: usize = 1_000;

/// How often a machine may look for each job.
const LOOKS_AT_MOST: usize = 100_000;

/// Something that is due. At one instant the first here goes first: who leaves, before who comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The work of a job is done.
    Done(usize),
    /// The change of this number.
    Change(usize),
    /// A job has had quota for as long as it may.
    Expired(usize),
    /// The pods of a job are gone.
    Gone(usize),
    /// A job's machine looks again.
    Look(usize),
    /// A job arrives.
    Arrival(usize),
    /// A job goes away if it has no quota.
    GiveUp(usize),
    /// Somebody may be evicted again who was safe until now, or another goes first.
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
    /// It has its quota.
    Running,
    /// It has its quota, and was told to give it back.
    Leaving,
}

/// A job on its way.
#[derive(Debug)]
struct State {
    place: Place,
    workload: Workload,
    /// How often it was evicted from where it ran, by which its stints go. Of the workload's evictions those count, too, at which it
    /// held quota that others were still leaving.
    interrupted: u32,
    execution: ExecutionTime,
    admission: Option<Admission>,
    deployment: Deployment,
}

/// A scenario that is being played.
pub(super) struct Course<'a> {
    scenario: &'a Scenario,
    watch: &'a mut dyn Watch,
    queues: Queues,
    /// The queues before any lending limit was changed.
    objects: Objects,
    nodes: Nodes,
    shapes: Shapes,
    agenda: BTreeSet<(SignedDuration, Due)>,
    /// The jobs whose pods wait for room on the nodes, and since when.
    pending: BTreeSet<(SignedDuration, usize)>,
    followers: BTreeMap<usize, Vec<usize>>,
    now: SignedDuration,
    states: Vec<State>,
    held: BTreeSet<usize>,
    /// When everybody tries again.
    wakes_at: Option<SignedDuration>,
    /// The jobs that were evicted and are not over.
    returning: BTreeSet<usize>,
    looks_left: usize,
    /// Who evicted whom at this instant, and how often.
    turns: Turns,
    history: History,
}

impl<'a> Course<'a> {
    pub(super) fn new(scenario: &'a Scenario, watch: &'a mut dyn Watch) -> Self {
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
            watch,
            queues,
            objects: scenario.objects.clone(),
            nodes: Nodes::new(&scenario.nodes),
            shapes: Shapes::default(),
            agenda: BTreeSet::new(),
            pending: BTreeSet::new(),
            followers: BTreeMap::new(),
            now: SignedDuration::ZERO,
            states,
            held: BTreeSet::new(),
            wakes_at: None,
            returning: BTreeSet::new(),
            looks_left: LOOKS_AT_MOST.saturating_mul(1 + scenario.jobs.len()),
            turns: Turns::default(),
            history,
        };
        course.plan();
        course.look_at_queues();
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
        let mut left = INSTANTS_AT_MOST * (1 + self.scenario.jobs.len());
        while let Some(next) = self.next() {
            if left == 0 || self.history.cut_short {
                self.history.end = self.now;
                self.history.cut_short = true;
                self.note_unadmitted();
                return self.history;
            }
            // How often a machine looks is bounded by itself.
            let is_look = matches!(self.agenda.first(), Some((_, Due::Look(_))));
            left -= usize::from(!is_look);
            self.step(next);
        }
        self.history.end = self.scenario.until.unwrap_or(self.now);
        self.note_unadmitted();
        self.history
    }

    /// Returns the next instant at which anything is due.
    fn next(&self) -> Option<SignedDuration> {
        let next = self.agenda.first().map(|(at, _)| *at);
        next.filter(|at| self.scenario.until.is_none_or(|until| *at <= until))
    }

    /// Plays the instant.
    fn step(&mut self, at: SignedDuration) {
        if at != self.now {
            self.turns = Turns::default();
        }
        self.now = at;
        while let Some((at, due)) = self.agenda.first().copied()
            && at == self.now
        {
            self.agenda.remove(&(at, due));
            self.take_in(due);
        }
        self.decide();
        self.wait_to_try_again();
        self.note_shares();
        self.note_idle();
    }

    fn take_in(&mut self, due: Due) {
        match due {
            Due::Done(job) => self.on_work_done(job),
            Due::Change(number) => self.on_change(number),
            Due::Expired(job) => self.on_expired(job),
            Due::Gone(job) => self.on_gone(job),
            Due::Look(job) => self.look(job),
            Due::Arrival(job) => self.on_arrival(job),
            Due::GiveUp(job) => self.on_give_up(job),
            Due::Wake => self.queues.wake(),
        }
    }

    fn on_arrival(&mut self, job: usize) {
        self.history.fates[job].arrived = Some(self.now);
        self.note(What::Arrived { job });
        self.states[job].workload.queued_at = self.timestamp(self.now) - self.scenario.jobs[job].aged;
        if self.states[job].workload.evictions > 0 {
            self.returning.insert(job);
        }
        self.let_in(job);
    }

    /// Lets a job into the ClusterQueue behind its LocalQueue, as things are now.
    fn let_in(&mut self, job: usize) {
        let asks = &self.scenario.jobs[job];
        let (through, local) = self.queues.local_queue(&asks.queue).unzip();
        let through = through.unwrap_or(&asks.queue).to_owned();
        let user = local.and_then(|local| {
            let users = local.users;
            users.tell_apart(|| asks.user.clone(), || asks.repository.clone())
        });
        let behind = local.filter(|local| local.stop_policy == StopPolicy::None);
        let behind = behind.map(|local| local.cluster_queue.clone());
        let state = &mut self.states[job];
        let is_there = behind.as_ref() == Some(&state.workload.cluster_queue)
            && through == state.workload.local_queue
            && user == state.workload.user;
        if is_there && state.place == Place::Waiting {
            return;
        }
        self.queues.remove(state.workload.id);
        state.place = Place::Outside;
        state.workload.local_queue = through;
        let Some(behind) = behind else { return };
        state.workload.cluster_queue = behind;
        state.workload.user = user;
        if self.queues.submit(&state.workload).is_ok() {
            state.place = Place::Waiting;
        }
    }

    fn on_done(&mut self, job: usize) {
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
        let now = self.timestamp(self.now);
        let since = self.history.fates[job]
            .stays
            .last()
            .map(|stay| self.timestamp(stay.since));
        let state = &mut self.states[job];
        state.place = Place::Away;
        self.queues.remove(state.workload.id);
        self.returning.remove(&job);
        if let (Some(stay), Some(since)) = (self.history.fates[job].stays.last_mut(), since) {
            stay.until = Some(self.now);
            if let Some(end) = state.execution.ends_at(since) {
                self.agenda.remove(&(since_begin(end), Due::Expired(job)));
            }
            state.execution.spend(now.duration_since(since));
        }
    }

    /// One who had quota for as long as it may has to go, and does not come back.
    fn on_expired(&mut self, job: usize) {
        if self.is_past_stopping(job) {
            return;
        }
        self.history.fates[job].deactivated = Some(self.now);
        self.evict(self.states[job].workload.id, Leave::MaximumExecutionTimeExceeded);
    }

    /// One who was told to go waits again, as old as it was.
    fn come_back(&mut self, job: usize) {
        self.states[job].interrupted += 1;
        self.note(What::Requeued { job });
        self.count_eviction(job);
        self.let_in(job);
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
            Change::NodeRecovers(node) => self.on_node_recovered(node),
            Change::PodFails { job, exit_code } => self.on_pod_failed(*job, *exit_code),
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
        self.look_at_queues();
        for job in 0..self.states.len() {
            if matches!(self.states[job].place, Place::Outside | Place::Waiting) {
                self.let_in(job);
            }
        }
    }

    /// Decides who gets quota now, and who has to give theirs back.
    fn decide(&mut self) {
        loop {
            for _ in 0..CYCLES_AT_MOST {
                if !self.queues.is_restless() {
                    break;
                }
                self.cycle();
            }
            self.drain();
            if !self.give_out() || self.history.cut_short {
                return;
            }
        }
    }

    fn cycle(&mut self) {
        self.watch.cycle_begins();
        let cycle = self.queues.cycle(self.timestamp(self.now));
        self.watch.cycle_ended(cycle.admitted.len());
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
            reversal: preempted.reversal,
        };
        self.states[number(preempted.workload)].workload.evicted_by = Some(preempted.by);
        self.turns.note(number(preempted.workload), number(preempted.by));
        self.evict(preempted.workload, cause);
    }

    /// Evicts whoever holds quota through a queue that is to be drained.
    fn drain(&mut self) {
        for (id, _) in self.queues.to_drain() {
            self.queues.evict(id);
            self.evict(id, Leave::Drained);
        }
    }

    /// Starts those for whom there is room beside all who have not left yet, and returns whether there were any.
    fn give_out(&mut self) -> bool {
        let mut given = false;
        for job in self.held.clone() {
            let states = &self.states;
            let has_it = |id: WorkloadId| matches!(states[number(id)].place, Place::Running | Place::Leaving);
            if self.queues.has_room_beside(states[job].workload.id, has_it) {
                self.held.remove(&job);
                self.start(job);
                given = true;
            }
        }
        given
    }

    fn start(&mut self, job: usize) {
        let now = self.timestamp(self.now);
        let state = &mut self.states[job];
        let asked = &self.scenario.jobs[job];
        if let Some(end) = state.execution.ends_at(now) {
            self.agenda.insert((since_begin(end), Due::Expired(job)));
        }
        state.place = Place::Running;
        let admission = state.admission.as_ref().expect("it was just admitted");
        let stay = Stay {
            since: self.now,
            until: None,
            held: amounts(asked, admission),
            fewer: fewer(asked, admission),
            resets: Vec::new(),
            evicted: None,
        };
        self.history.fates[job].stays.push(stay);
        self.note(What::Admitted { job });
        self.deploy(job);
    }

    fn wait_to_try_again(&mut self) {
        if let Some(at) = self.wakes_at.take() {
            self.agenda.remove(&(at, Due::Wake));
        }
        let mut returning = self.returning.iter().map(|job| self.states[*job].place);
        let returning = returning.any(|place| place == Place::Waiting);
        let protected = returning.then(|| self.queues.protected_until()).flatten();
        let next = protected.into_iter().chain(self.queues.reordered_at()).min();
        if let Some(at) = next {
            let at = since_begin(at);
            self.agenda.insert((at, Due::Wake));
            self.wakes_at = Some(at);
        }
    }

    fn note(&mut self, what: What) {
        let at = self.now;
        self.history.moments.push(Moment { at, what });
    }

    /// Notes what follows from the queues that hold.
    fn look_at_queues(&mut self) {
        let objects = self.queues.objects();
        self.history.capacity.push((self.now, capacity(objects)));
        if !self.nodes.is_empty() {
            self.shapes = Shapes::of(&self.scenario.jobs, objects);
            self.nodes.forget_idle();
        }
    }

    fn note_idle(&mut self) {
        if self.nodes.is_empty() {
            return;
        }
        let idle = self.nodes.idle(&self.shapes);
        if self.history.idle.last().map(|(_, idle)| idle) != Some(&idle) {
            self.history.idle.push((self.now, idle));
        }
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
            local_queue: job.queue.clone(),
            user: None,
            priority: job.priority,
            queued_at: Timestamp::UNIX_EPOCH,
            evictions: job.evicted_before,
            evicted_by: None,
            pod_sets: job.pod_sets.clone(),
        };
        Self {
            place: Place::Away,
            workload,
            interrupted: job.evicted_before,
            execution: ExecutionTime::new(job.maximum_execution_time),
            admission: None,
            deployment: Deployment::default(),
        }
    }
}

fn number(id: WorkloadId) -> usize {
    usize::try_from(id.0).expect("it was made of one")
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

/// Returns of which pods an admission gives fewer than were asked for; Kueue allows it of one pod set.
fn fewer(job: &Job, admission: &Admission) -> Option<Fewer> {
    let mut sets = job.pod_sets.iter().zip(&admission.pod_sets);
    let (set, given) = sets.find(|(set, given)| given.count < set.count)?;
    Some(Fewer {
        pod_set: set.name.clone(),
        pods: given.count,
        of: set.count,
    })
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
