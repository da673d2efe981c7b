//! What is to be done next.
//!
//! The scheduler is told what came in and what time it is; it returns what it decided, and what is to be done. It has no
//! clock, no random numbers, no locks and nothing asynchronous. It is the only place that decides; the engine around it
//! writes the facts down and carries out the actions.
//!
//! To decide and to change are two things. [`Scheduler::handle`] decides; state changes by applying a fact (`apply`), and
//! [`Replay`] applies facts that were decided once.

mod admission;
mod apply;
mod approvals;
mod attempts;
mod calls;
mod check;
mod clusters;
mod estimate;
mod forget;
mod gate;
mod heads;
mod isolation;
mod outlook;
mod passes;
mod queue;
mod replay;
mod requests;
mod run;
mod snapshot;
mod tally;
mod timers;
mod why;

use std::collections::{BTreeMap, BTreeSet};

use blueproof_queue::{Queues, objects::Objects, timers::Timers};
use jiff::{SignedDuration, Timestamp};

pub use outlook::Effort;
pub use replay::Replay;
pub use snapshot::{SNAPSHOT_VERSION, Snapshot, SnapshotError};
pub use why::Lost;

use crate::{
    action::Action,
    approval::Approval,
    domain::{AttemptId, BackOff, ClusterName, Inventory, RequestKey, RunId, RunRequest},
    estimate::Durations,
    event::{Call, Event},
    fact::{Decision, Fact},
    pending::PendingReason,
    policy::{Policy, RetryPolicy},
    view::{FailingCall, RunView},
};
pub(crate) use estimate::RUNS_IN_ALL as ESTIMATE_EFFORT;
use forget::Settled;
use gate::{Gate, Origin};
use passes::Passes;
use queue::{LinePlace, Queue};
use run::{AttemptPhase, Phase, Run};
use tally::Tally;
use timers::Timer;

/// A clock that is so much behind the log was set back; less than that it is taken to stand still.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// The state of everything, and the rules by which it is decided what comes next.
///
/// ```
/// use blueproof_core::{domain::Resources, event::Event, policy::Policy, scheduler::{Scheduler, Step}};
///
/// let mut scheduler = Scheduler::new(Policy::local(Resources::default()));
/// assert_eq!(scheduler.handle(jiff::Timestamp::UNIX_EPOCH, Event::Tick), Step::default());
/// ```
#[derive(Debug)]
pub struct Scheduler {
    now: Timestamp,
    gate: Gate,
    queue: Queue,
    retry: RetryPolicy,
    /// The policy that an input set last.
    configured: Option<Policy>,
    /// What each cluster said last that it has.
    inventories: BTreeMap<ClusterName, Inventory>,
    timers: Timers<Timer>,
    runs: BTreeMap<RunId, Run>,
    /// The last run that was asked for.
    last_run: RunId,
    by_key: BTreeMap<RequestKey, RunId>,
    by_origin: BTreeMap<Origin, BTreeSet<RunId>>,
    awaiting: BTreeMap<Origin, BTreeSet<RunId>>,
    unsettled: BTreeSet<RunId>,
    settled: Settled,
    /// What failed, and how often in a row.
    failing_calls: BTreeMap<RunId, BTreeMap<Call, FailingCall>>,
    /// How long attempts took, by which it is estimated how long others will.
    durations: Durations,
    passes: Passes,
    due: Vec<Call>,
    tally: Tally,
    /// Whether it decides as it was decided before decisions were logged: an attempt that is told to end while it waits for a
    /// place does so only when it has one, and no run is forgotten.
    decides_as_first_log: bool,
    /// What came in and was decided in the step in hand.
    facts: Vec<Fact>,
    /// How many decisions this scheduler made itself.
    decided: u64,
    /// The runs that the fact in hand changes.
    touched: BTreeSet<RunId>,
    changed: Changed,
}

/// What changed since this was last asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changed {
    /// The runs that changed.
    pub runs: BTreeSet<RunId>,
    /// Those that changed and were forgotten since, as they stood.
    pub forgotten: Vec<RunView>,
}

/// What came of an input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// When: by the clock, unless that went back a little.
    pub at: Timestamp,
    /// The input and the decisions, in the order in which they were applied: what is to be logged before anything is done.
    /// A tick is no fact.
    pub facts: Vec<Fact>,
    /// What is to be done.
    pub actions: Vec<Action>,
}

/// How a run stands with its quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaStatus {
    /// It asks for none.
    Outside,
    /// It waits for it, and is as old as this.
    Waits {
        /// Its age.
        since: Timestamp,
    },
    /// An attempt has it that was as old as this.
    Holds {
        /// The attempt.
        attempt: AttemptId,
        /// The age that the run had.
        queued_at: Timestamp,
    },
}

impl Scheduler {
    /// Returns a scheduler that knows of no run.
    pub fn new(policy: Policy) -> Self {
        let mut queue = Queue::new(policy.quota);
        queue.protect_for(policy.retry.protected_run_time);
        Self {
            now: Timestamp::MIN,
            gate: Gate::new(policy.gate),
            queue,
            retry: policy.retry,
            configured: None,
            inventories: BTreeMap::new(),
            timers: Timers::default(),
            runs: BTreeMap::new(),
            last_run: RunId(0),
            by_key: BTreeMap::new(),
            by_origin: BTreeMap::new(),
            awaiting: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            settled: Settled::new(policy.remembered_runs),
            failing_calls: BTreeMap::new(),
            durations: Durations::default(),
            passes: Passes::default(),
            due: Vec::new(),
            tally: Tally::default(),
            decides_as_first_log: false,
            facts: Vec::new(),
            decided: 0,
            touched: BTreeSet::new(),
            changed: Changed::default(),
        }
    }

    /// Returns one that decides as it was decided when only inputs were logged, to migrate such a log.
    pub fn of_first_log() -> Self {
        Self {
            decides_as_first_log: true,
            ..Self::new(Policy::local(Default::default()))
        }
    }

    /// Takes in one input, and returns what was decided, which is applied already, and what is to be done.
    ///
    /// It takes every input: one that is repeated, late or unknown changes nothing. A clock that goes back by up to five
    /// minutes is taken to stand still; where it goes back further, each deadline moves with it.
    pub fn handle(&mut self, now: Timestamp, input: Event) -> Step {
        if self.now.duration_since(now) > CLOCK_TOLERANCE {
            self.decide(Decision::ClockSetBack {
                to: now,
                from: Some(self.now),
            });
        }
        self.now = self.now.max(now);
        while let Some(timer) = self.timers.pop_due(self.now) {
            self.on_timer(timer);
        }
        self.forget_oldest();
        self.take(input);
        self.start_what_fits();
        self.request_quota();
        self.set_timers();
        self.settle();
        Step {
            at: self.now,
            facts: std::mem::take(&mut self.facts),
            actions: self.take_due(),
        }
    }

    /// Applies an input, and decides what follows from it.
    fn take(&mut self, input: Event) {
        if input == Event::Tick {
            return;
        }
        let at = self.facts.len();
        let superseded = self.superseded_by(&input);
        if self.apply_input(&input) {
            self.react(&input, &superseded);
        } else if matches!(input, Event::Started { .. }) {
            // A driver says so of each attempt that it observes anew. The log, which is never shortened, has it once.
            return;
        }
        self.facts.insert(at, Fact::Input(input));
    }

    /// Returns the approvals that a push takes back: the news of it does so by itself.
    fn superseded_by(&self, input: &Event) -> Vec<Approval> {
        if let Event::Synchronized {
            pull_request, head, ..
        } = input
        {
            return self.gate.of_other_heads(pull_request, head);
        }
        Vec::new()
    }

    /// Decides what follows from an input that was just applied, and was no old news. `superseded` are the approvals that a
    /// push took back.
    fn react(&mut self, input: &Event, superseded: &[Approval]) {
        match input {
            Event::Configured { .. } => self.on_configured(),
            Event::Requested { request } => self.on_requested(&request.key),
            Event::Approved { .. }
            | Event::EntitlementChanged { .. }
            | Event::RevokeRequested { .. }
            | Event::HoldRequested { .. }
            | Event::ResumeRequested { .. }
            | Event::BaseChanged { .. }
            | Event::PullRequestClosed { .. }
            | Event::PullRequestReopened { .. }
            | Event::Synchronized { .. } => self.on_gate_input(input, superseded),
            Event::CancelRequested { run, how, .. } => self.on_cancel_requested(*run, *how),
            Event::RetryRequested { run, by, .. } => self.on_retry_requested(*run, by),
            Event::Reserved { attempt, .. } => self.on_reserved(*attempt),
            Event::Finished { attempt, .. } => self.conclude(*attempt),
            Event::Evicted {
                attempt,
                reason,
                message,
            } => self.on_evicted(*attempt, reason, message),
            Event::Lost { attempt, message } => self.on_lost(*attempt, message),
            Event::Released { attempt } => self.on_released(*attempt),
            Event::CallFailed { call, error } => self.on_call_failed(*call, error),
            Event::InventoryChanged { cluster, .. } => self.on_inventory_changed(cluster),
            Event::QuotaApplied { .. }
            | Event::Pending { .. }
            | Event::Started { .. }
            | Event::Reported { .. }
            | Event::Tick => {}
        }
    }

    /// Decides something: it holds from now on, and is logged with the input in hand.
    fn decide(&mut self, decision: Decision) {
        self.apply_decision(&decision);
        self.record(decision);
    }

    /// Notes a decision that was applied already.
    fn record(&mut self, decision: Decision) {
        self.decided += 1;
        self.facts.push(Fact::Decision(decision));
    }

    /// Returns when [`Event::Tick`] is to be sent at the latest, if nothing else happens before.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        self.timers.earliest()
    }

    /// Returns everything that is still to be carried out, whatever became of it before.
    ///
    /// After a replay these are the actions that a crash may have cut off. Carrying them out again does no harm.
    pub fn outstanding(&self) -> Vec<Action> {
        let calls = self
            .unsettled
            .iter()
            .flat_map(|run| self.wanted_by(&self.runs[run]));
        calls
            .filter(|call| self.timers.get(Timer::Call(*call)).is_none())
            .filter_map(|call| self.action(call))
            .collect()
    }

    /// Returns the run as it stands.
    pub fn view(&self, run: RunId) -> Option<RunView> {
        self.runs.get(&run).map(|run| self.view_of(run))
    }

    /// Returns what was asked for.
    pub fn request(&self, run: RunId) -> Option<&RunRequest> {
        self.runs.get(&run).map(|run| &*run.request)
    }

    /// Returns every run that is remembered, the first one first.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = RunView> {
        self.runs.values().map(|run| self.view_of(run))
    }

    fn view_of(&self, run: &Run) -> RunView {
        let failing_calls = self
            .failing_calls
            .get(&run.id)
            .into_iter()
            .flat_map(BTreeMap::values);
        // Of a call that is being made nobody knows yet.
        let waiting = failing_calls.filter(|trouble| self.waits_to_be_made(trouble.call));
        run.view(waiting.cloned().collect())
    }

    /// Returns the policy that an input set last, if one did.
    pub fn policy(&self) -> Option<&Policy> {
        self.configured.as_ref()
    }

    /// Returns the queues that hold now.
    pub fn objects(&self) -> &Objects {
        self.queue.objects()
    }

    /// Returns the queues, with who is in them.
    pub fn queues(&self) -> &Queues {
        self.queue.queues()
    }

    /// Returns the last run that was asked for: they are counted from one.
    pub fn last_run(&self) -> RunId {
        self.last_run
    }

    /// Returns the run that a request made.
    pub fn run_of(&self, key: &RequestKey) -> Option<RunId> {
        self.by_key.get(key).copied()
    }

    /// Returns what changed since this was last asked.
    pub fn take_changed(&mut self) -> Changed {
        std::mem::take(&mut self.changed)
    }

    /// Returns how a run stands with its quota.
    pub fn standing(&self, run: RunId) -> QuotaStatus {
        let Some(run) = self.runs.get(&run) else {
            return QuotaStatus::Outside;
        };
        let last = run.attempts.last();
        if let Some(last) = last.filter(|last| self.queue.promised(last.id).is_some()) {
            return QuotaStatus::Holds {
                attempt: last.id,
                queued_at: last.queued_at,
            };
        }
        match run.phase {
            Phase::Queued { since, .. } if self.back_off(run).is_none() => QuotaStatus::Waits { since },
            Phase::Queued { .. }
            | Phase::AwaitingApproval { .. }
            | Phase::ComingBack { .. }
            | Phase::Active
            | Phase::Ended(_) => QuotaStatus::Outside,
        }
    }

    /// Returns how many decisions this scheduler made itself, and did not take from a log.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// Returns what time it is, by the last input.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns whether nothing remains to be done for any run, until something new is asked.
    pub fn is_idle(&self) -> bool {
        self.unsettled
            .iter()
            .all(|run| matches!(self.runs[run].phase, Phase::AwaitingApproval { .. }))
    }

    /// Returns why the run waits, or `None` when it does not wait. It takes time in proportion to who else waits.
    pub fn why(&self, run: RunId) -> Option<PendingReason> {
        let places = self.queue.places(&[run].into(), usize::MAX);
        self.why_at(run, places.get(&run))
    }

    /// Returns why the run waits, where its place in its line may be known.
    fn why_at(&self, run: RunId, place: Option<&LinePlace>) -> Option<PendingReason> {
        let run = self.runs.get(&run)?;
        if let Some(back_off) = self.back_off(run) {
            return Some(PendingReason::BackingOff(back_off));
        }
        match run.phase {
            Phase::AwaitingApproval { .. } => Some(self.why_at_gate(run)),
            Phase::Queued { .. } => self.why_queued(run, place),
            Phase::ComingBack { .. } => Some(PendingReason::WaitingForRelease),
            Phase::Active => match run.active()?.phase {
                AttemptPhase::Reserving => Some(match run.active()?.pending.clone() {
                    Some(pending) => PendingReason::WaitingForPlace(pending),
                    None => PendingReason::BeingPlaced,
                }),
                AttemptPhase::Starting => Some(PendingReason::BeingStarted),
                AttemptPhase::Running | AttemptPhase::Releasing | AttemptPhase::Gone => None,
            },
            Phase::Ended(_) => None,
        }
    }

    fn why_at_gate(&self, run: &Run) -> PendingReason {
        let subject = &run.request.subject;
        if let Some(hold) = self.gate.hold_of(run.id, subject) {
            return PendingReason::Held(Box::new(hold.clone()));
        }
        if self.gate.approved_by(&run.request, self.now).is_some()
            && let Some(pending) = self.isolation_pending(&run.request)
        {
            return PendingReason::WaitingForIsolation(Box::new(pending));
        }
        let policy = self.gate.own_policy_of(&subject.repository);
        PendingReason::AwaitingApproval {
            lapsed: self.gate.lapsed(&run.request).map(Box::new),
            policy: policy.map(str::to_owned),
        }
    }

    /// Returns how a run backs off, or `None` when it does not or no longer does.
    fn back_off(&self, run: &Run) -> Option<BackOff> {
        let back_off = match run.phase {
            Phase::Queued { back_off, .. } | Phase::ComingBack { back_off, .. } => back_off,
            Phase::AwaitingApproval { .. } | Phase::Active | Phase::Ended(_) => None,
        };
        back_off.filter(|back_off| back_off.until > self.now)
    }

    fn on_configured(&mut self) {
        self.on_entitlement_changed();
        self.stop_what_no_approval_covers_any_more();
        let awaiting: Vec<RunId> = self.awaiting.values().flatten().copied().collect();
        for run in awaiting {
            self.pass_gate(run);
        }
    }

    fn set_timers(&mut self) {
        self.timers
            .set_or_cancel(Timer::TryAgain, self.queue.try_again_at());
        self.timers
            .set_or_cancel(Timer::BackOff, self.queue.next_back_off_ends());
        self.timers
            .set_or_cancel(Timer::ApprovalExpiry, self.gate.next_expiry());
    }

    fn on_timer(&mut self, timer: Timer) {
        match timer {
            Timer::QueueTimeout(run) => self.on_queue_timeout(run),
            Timer::Overdue(attempt) => self.on_overdue(attempt),
            Timer::ExecutionTime(attempt) => self.on_execution_time_over(attempt),
            Timer::Grace(attempt) => self.on_grace_over(attempt),
            Timer::TryAgain => self.queue.wake(),
            // The queue looks whose is over each time that it decides.
            Timer::BackOff => {}
            Timer::ApprovalExpiry => self.on_approval_expiry(),
            Timer::Call(call) => self.decide(Decision::CallRepeated { call }),
        }
    }

    /// Forgets of the runs that this step changed what is only needed while something remains to be done.
    ///
    /// Only of those: a replay asks for the changed ones once, at its end, and would else go over all of them each time.
    fn settle(&mut self) {
        for run in std::mem::take(&mut self.touched) {
            self.changed.runs.insert(run);
            let run = &self.runs[&run];
            match run.is_settled() {
                true => {
                    self.unsettled.remove(&run.id);
                    self.settled.insert(run);
                }
                false => self.settled.remove(run),
            }
        }
    }

    /// Returns the run to be changed, and notes that it changes.
    fn change(&mut self, run: RunId) -> Option<&mut Run> {
        let found = self.runs.get_mut(&run)?;
        self.touched.insert(run);
        Some(found)
    }
}
