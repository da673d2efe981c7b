//! The course of a scenario: what is due next, and what the queues make of it. What becomes of those who have their
//! quota is in `deployed`.
//!
//! What decides is the scheduler's own [`AdmissionQueue`].

mod deployed;
mod time;
mod turns;
mod unadmitted;

use std::collections::{BTreeMap, BTreeSet};

use blueproof_queue::{
    AdmissionQueue, DecisionRound, DecisionStep, Eviction, ExecutionTime, Origin, PodSetAssignment, Quantity,
    Reservation, Workload, WorkloadId, objects::Objects,
};
use jiff::{SignedDuration, Timestamp};

use super::{
    Arrival, Change, Job, Scenario, Watch,
    deployment::Deployment,
    fragmentation::Shapes,
    history::{AdmittedPeriod, EventKind, EvictionCause, Fewer, History, HistoryEvent, JobRecord},
    nodes::Nodes,
};
use time::since_begin;
use turns::Turns;

/// How many instants there may be for each job. With fair sharing Kueue's rules can go round for ever.
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
    /// It is in the queue, which knows how far it is.
    Queued,
    /// It has its quota.
    Running,
    /// It has its quota, and was told to give it back.
    Leaving,
}

/// A job on its way.
#[derive(Debug)]
struct State {
    place: Place,
    /// Its workload, as it was when it was last submitted or removed.
    workload: Workload,
    /// How often it was evicted from where it ran, by which its stints go. Of the workload's evictions those count, too,
    /// before it was admitted.
    interrupted: u32,
    execution: ExecutionTime,
    /// What its pod sets have, while it has quota.
    pod_sets: Vec<PodSetAssignment>,
    deployment: Deployment,
}

/// A scenario that is being played.
pub(super) struct Simulator<'a> {
    scenario: &'a Scenario,
    watch: &'a mut dyn Watch,
    queue: AdmissionQueue,
    /// The objects before any lending limit was changed.
    objects: Objects,
    nodes: Nodes,
    shapes: Shapes,
    agenda: BTreeSet<(SignedDuration, Due)>,
    /// The jobs whose pods wait for room on the nodes, and since when.
    pending: BTreeSet<(SignedDuration, usize)>,
    followers: BTreeMap<usize, Vec<usize>>,
    now: SignedDuration,
    states: Vec<State>,
    /// When everybody tries again.
    wakes_at: Option<SignedDuration>,
    looks_left: usize,
    /// Who evicted whom at this instant, and how often.
    turns: Turns,
    history: History,
}

impl<'a> Simulator<'a> {
    pub(super) fn new(scenario: &'a Scenario, watch: &'a mut dyn Watch) -> Self {
        // Kueue's rules are these, so that they tell of its queues too.
        let objects = scenario.objects.clone().with_embedded_admission();
        let mut queue = AdmissionQueue::new(objects.clone());
        queue.protect_for(scenario.protected_for);
        let states = scenario.jobs.iter().enumerate();
        let states = states.map(|(number, job)| State::new(number, job)).collect();
        let history = History {
            job_records: vec![JobRecord::default(); scenario.jobs.len()],
            ..History::default()
        };
        let mut simulator = Self {
            scenario,
            watch,
            queue,
            objects,
            nodes: Nodes::new(&scenario.nodes),
            shapes: Shapes::default(),
            agenda: BTreeSet::new(),
            pending: BTreeSet::new(),
            followers: BTreeMap::new(),
            now: SignedDuration::ZERO,
            states,
            wakes_at: None,
            looks_left: LOOKS_AT_MOST.saturating_mul(1 + scenario.jobs.len()),
            turns: Turns::default(),
            history,
        };
        simulator.plan();
        simulator.look_at_queues();
        simulator
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
            Due::Wake => self.queue.wake(),
        }
    }

    fn on_arrival(&mut self, job: usize) {
        self.history.job_records[job].arrived = Some(self.now);
        self.note(EventKind::Arrived { job });
        self.states[job].workload.queued_at = self.timestamp(self.now) - self.scenario.jobs[job].aged;
        self.submit(job);
    }

    fn submit(&mut self, job: usize) {
        let asks = &self.scenario.jobs[job];
        let origin = Origin {
            local_queue: asks.queue.clone(),
            author: asks.user.clone(),
            repository: asks.repository.clone(),
        };
        let now = self.timestamp(self.now);
        let state = &mut self.states[job];
        state.place = Place::Queued;
        self.queue.submit(now, state.workload.clone(), origin);
    }

    fn on_done(&mut self, job: usize) {
        self.history.job_records[job].done = Some(self.now);
        self.note(EventKind::Done { job });
        for follower in self.followers.remove(&job).unwrap_or_default() {
            if let Arrival::After(_, by) = self.scenario.jobs[follower].arrives {
                self.agenda.insert((self.now + by, Due::Arrival(follower)));
            }
        }
    }

    /// Takes back what a job has.
    fn leave(&mut self, job: usize) {
        let now = self.timestamp(self.now);
        let since = self.history.job_records[job]
            .periods
            .last()
            .map(|period| self.timestamp(period.since));
        let state = &mut self.states[job];
        state.place = Place::Away;
        if let Some(workload) = self.queue.remove(state.workload.id) {
            state.workload = workload;
        }
        if let (Some(period), Some(since)) = (self.history.job_records[job].periods.last_mut(), since) {
            period.until = Some(self.now);
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
        self.history.job_records[job].deactivated = Some(self.now);
        self.evict(job, EvictionCause::MaximumExecutionTimeExceeded);
    }

    /// One who was told to go waits again, as old as it was.
    fn come_back(&mut self, job: usize) {
        self.states[job].interrupted += 1;
        self.states[job].workload.evictions += 1;
        self.note(EventKind::Requeued { job });
        self.submit(job);
    }

    fn on_change(&mut self, number: usize) {
        let scenario = self.scenario;
        match &scenario.changes[number].1 {
            Change::Quota(objects) => {
                self.objects = (**objects).clone().with_embedded_admission();
                self.note(EventKind::QuotaChanged);
                let objects = self.limited();
                self.set_objects(objects);
            }
            Change::Protection(span) => self.queue.protect_for(*span),
            Change::Remark(text) => self.note(EventKind::Remark { text: text.clone() }),
            Change::NodeFails(node) => self.on_node_failed(node),
            Change::NodeRecovers(node) => self.on_node_recovered(node),
            Change::PodFails { job, exit_code } => self.on_pod_failed(*job, *exit_code),
        }
    }

    /// Goes by the lending limit that the nodes leave to the slack queue.
    fn follow_nodes(&mut self) {
        let objects = self.limited();
        if objects != *self.queue.objects() {
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
        let before = lending_limits(self.queue.objects(), slack);
        let after = lending_limits(new, slack).into_iter();
        let changed = after.filter(|(of, limit)| before.get(of) != Some(limit));
        let told = changed.map(|((flavor, resource), limit)| EventKind::LendingLimit {
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
        self.queue.set_objects(objects);
        self.look_at_queues();
    }

    /// Has the queue decide, until nothing comes of it any more.
    fn decide(&mut self) {
        let now = self.timestamp(self.now);
        loop {
            let (mut round, mut any_admitted) = (DecisionRound::default(), false);
            self.watch.cycle_begins();
            while let Some(step) = self.queue.step(now, &mut round) {
                match step {
                    DecisionStep::Beginning { retried: _, drained } => {
                        for eviction in drained {
                            self.on_evicted(&eviction, EvictionCause::Drained);
                        }
                    }
                    DecisionStep::Cycle {
                        tried: _,
                        reserved,
                        evicted,
                        preemptors: _,
                    } => {
                        self.watch.cycle_ended(reserved.len());
                        self.on_cycle(reserved, &evicted);
                    }
                    DecisionStep::Admitted(id) => {
                        self.start(number(id));
                        any_admitted = true;
                    }
                }
                self.watch.cycle_begins();
            }
            if !any_admitted || self.history.cut_short {
                return;
            }
        }
    }

    fn on_cycle(&mut self, reserved: Vec<Reservation>, evicted: &[Eviction]) {
        for reservation in reserved {
            let pod_sets = reservation.assignment.pod_sets;
            self.states[number(reservation.workload)].pod_sets = pod_sets;
        }
        for eviction in evicted {
            let by = eviction.by.expect("a cycle evicts for a workload");
            let cause = EvictionCause::Preempted {
                by: number(by),
                reason: eviction.reason,
                reversal: eviction.reversal,
            };
            self.turns.note(number(eviction.workload), number(by));
            self.on_evicted(eviction, cause);
        }
    }

    fn start(&mut self, job: usize) {
        let now = self.timestamp(self.now);
        let state = &mut self.states[job];
        let asked = &self.scenario.jobs[job];
        if let Some(end) = state.execution.ends_at(now) {
            self.agenda.insert((since_begin(end), Due::Expired(job)));
        }
        state.place = Place::Running;
        let period = AdmittedPeriod {
            since: self.now,
            until: None,
            held: amounts(asked, &state.pod_sets),
            fewer: fewer(asked, &state.pod_sets),
            resets: Vec::new(),
            evicted: None,
        };
        self.history.job_records[job].periods.push(period);
        self.note(EventKind::Admitted { job });
        self.deploy(job);
    }

    fn wait_to_try_again(&mut self) {
        if let Some(at) = self.wakes_at.take() {
            self.agenda.remove(&(at, Due::Wake));
        }
        if let Some(at) = self.queue.try_again_at() {
            let at = since_begin(at);
            self.agenda.insert((at, Due::Wake));
            self.wakes_at = Some(at);
        }
    }

    fn note(&mut self, what: EventKind) {
        let at = self.now;
        self.history.events.push(HistoryEvent { at, what });
    }

    /// Notes what follows from the queues that hold.
    fn look_at_queues(&mut self) {
        let objects = self.queue.objects();
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
        let queues = self.queue.objects().cluster_queues.keys();
        let shares = queues.filter_map(|queue| self.queue.queues().weighted_share(queue).ok());
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
            priority: job.priority,
            evictions: job.evicted_before,
            ..Workload::new(
                WorkloadId(number as u64),
                Timestamp::UNIX_EPOCH,
                job.pod_sets.clone(),
            )
        };
        Self {
            place: Place::Away,
            workload,
            interrupted: job.evicted_before,
            execution: ExecutionTime::new(job.maximum_execution_time),
            pod_sets: Vec::new(),
            deployment: Deployment::default(),
        }
    }
}

fn number(id: WorkloadId) -> usize {
    usize::try_from(id.0).expect("it was made of one")
}

/// Returns what an assignment gives of each resource.
fn amounts(job: &Job, given: &[PodSetAssignment]) -> BTreeMap<String, Quantity> {
    let mut sums: BTreeMap<String, Quantity> = BTreeMap::new();
    for (set, given) in job.pod_sets.iter().zip(given) {
        for (resource, per_pod) in &set.requests {
            let sum = sums.entry(resource.clone()).or_default();
            *sum = sum.plus(per_pod.times(given.count));
        }
    }
    sums
}

/// Returns of which pods an assignment gives fewer than were asked for; Kueue allows it of one pod set.
fn fewer(job: &Job, given: &[PodSetAssignment]) -> Option<Fewer> {
    let mut sets = job.pod_sets.iter().zip(given);
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
