//! The retry machine: when a workload is started again, given up, or moved away from a bad node.
//!
//! The rules are those of AppWrapper 1.2.1, as a function of what is seen and of the time: no clock, no I/O. Creating
//! and deleting, reading pods and nodes, and getting quota for what is [`Phase::Suspended`] are the caller's matter.
//!
//! Where AppWrapper has a sharp edge, this is what was decided:
//!
//! - A list of exit codes may have blanks (`"1, 2"`), and what is no number is refused; AppWrapper skips both. So it is
//!   with every other term: a value that cannot be read is refused, and not replaced by the default.
//! - The exit codes of init containers count, and what they request binds a pod to its node. A pod on a bad node counts
//!   before it runs, too.
//! - A missing component fails the workload for good, so whoever observes says [`Component::Missing`] only of what they
//!   know to be gone. What a cache does not have yet is [`Component::Unknown`], and decides nothing.
//! - The retry pause counts from the failure that led to it. AppWrapper counts from the first failure since it last saw
//!   the pods healthy, so that the second of two failed creations is retried without a pause.
//! - The graces for pods count anew once all pods were ready and no longer are, and then the failure grace is the one
//!   for pods that are missing. AppWrapper counts from the creation, so that a pod that is replaced after an hour
//!   resets the workload at once.
//! - The deletion delay counts from the failure, not from a deletion before it.
//! - A bad node fails a workload that has no retry left, as in AppWrapper: moving away costs no retry, so the limit is
//!   all that keeps a node's health that goes up and down from resetting a workload for ever.
//! - Which kinds of components can fail for good is not known here. A RayCluster may say `failed` while it starts, so
//!   AppWrapper goes by its pods alone; a Job's condition Failed is final.

mod seen;
mod terms;
#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use seen::{Component, DesiredState, ObservedState, Pod, PodPhase};
pub use terms::{ExitCodes, FaultTolerance};

use seen::Finding;
use terms::Verdict;

/// How soon to look again for what changes without a word: pods that start, components that go.
const SOON: SignedDuration = SignedDuration::from_secs(5);

/// How soon to try again to create components.
const CREATE_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// How soon to look again while all is well.
const LATER: SignedDuration = SignedDuration::from_secs(60);

/// A workload under the retry machine. It can be kept, and goes on where it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    state: State,
    remains: Remains,
    retries: u32,
}

/// Where a workload is, in AppWrapper's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// It has no quota, and nothing of it exists.
    Suspended,
    /// It has quota, and its components are created.
    Resuming,
    /// Its components are there, and are watched.
    Running,
    /// It has failed, and is deleted to be created again.
    Resetting,
    /// It is deleted to give its quota back.
    Suspending,
    /// All of its pods have succeeded.
    Succeeded,
    /// It has failed, and is not tried again.
    Failed,
    /// It is deleted with all that is known of it.
    Terminating,
}

/// Why a workload is not healthy, in AppWrapper's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// A component could not be created.
    CreateFailed,
    /// A component is gone, or is being deleted, and not by us.
    MissingComponent,
    /// A component says of itself that it has failed.
    FailedComponent,
    /// A pod has failed, and no component has.
    FoundFailedPods,
    /// A pod has a resource that its node lists as NoExecute.
    AutopilotNoExecute,
    /// Too few pods run.
    InsufficientPodsReady,
}

/// Whether a workload has its quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Quota {
    /// It has.
    Held,
    /// It has none.
    Released,
}

/// Whether all pods of a workload run, or have succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PodsReady {
    /// They do.
    Ready,
    /// They do not, or nobody has looked yet.
    NotReady,
}

/// What is to be done, and when to look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What is to be done; doing it twice must do no harm.
    pub todo: Option<Operation>,
    /// After how long to look again when nothing is reported before; `None` is not at all.
    pub look_again: Option<SignedDuration>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Create the components that are not there.
    Create,
    /// Delete the components, and with them their pods.
    Delete,
    /// Delete without grace what is still there: pods first, components once there are none.
    DeleteForcefully,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Suspended,
    Resuming {
        since: Timestamp,
    },
    Running {
        readiness: Readiness,
        unhealthy: Option<Unhealthy>,
    },
    Resetting {
        unhealthy: Unhealthy,
    },
    Suspending,
    Succeeded {
        since: Timestamp,
    },
    Failed {
        reason: Reason,
        since: Timestamp,
    },
    Terminating {
        quota: Quota,
    },
}

/// How far the pods have come since the components were created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Readiness {
    Awaited { since: Timestamp },
    Ready,
    Lost { since: Timestamp },
}

/// A failure, and when it was noted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Unhealthy {
    reason: Reason,
    since: Timestamp,
}

/// What there may be of components and pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Remains {
    Nothing,
    Deployed,
    Leaving { since: Timestamp },
}

/// Whether a reset counts against the retry limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cost {
    OneRetry,
    Nothing,
}

/// One look at a workload.
#[derive(Debug, Clone, Copy)]
struct Look<'a> {
    now: Timestamp,
    terms: &'a FaultTolerance,
    seen: &'a ObservedState,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            state: State::Suspended,
            remains: Remains::Nothing,
            retries: 0,
        }
    }
}

impl Machine {
    /// Returns where the workload is.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Suspended => Phase::Suspended,
            State::Resuming { .. } => Phase::Resuming,
            State::Running { .. } => Phase::Running,
            State::Resetting { .. } => Phase::Resetting,
            State::Suspending => Phase::Suspending,
            State::Succeeded { .. } => Phase::Succeeded,
            State::Failed { .. } => Phase::Failed,
            State::Terminating { .. } => Phase::Terminating,
        }
    }

    /// Returns what is or was the matter, or `None` for a workload that is healthy as far as is known.
    pub fn reason(&self) -> Option<Reason> {
        match self.state {
            State::Running { unhealthy, .. } => unhealthy.map(|unhealthy| unhealthy.reason),
            State::Resetting { unhealthy } => Some(unhealthy.reason),
            State::Failed { reason, .. } => Some(reason),
            State::Suspended
            | State::Resuming { .. }
            | State::Suspending
            | State::Succeeded { .. }
            | State::Terminating { .. } => None,
        }
    }

    /// Returns how often the workload was tried again on its own account; moving away from a bad node is not counted.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Returns whether the workload has its quota. It gives it back when nothing of it can use it any more.
    pub fn quota(&self) -> Quota {
        match (self.state, self.remains) {
            (State::Suspended | State::Succeeded { .. }, _)
            | (State::Failed { .. } | State::Terminating { .. }, Remains::Nothing) => Quota::Released,
            (State::Terminating { quota }, Remains::Deployed | Remains::Leaving { .. }) => quota,
            (
                State::Resuming { .. }
                | State::Running { .. }
                | State::Resetting { .. }
                | State::Suspending
                | State::Failed { .. },
                _,
            ) => Quota::Held,
        }
    }

    /// Returns whether all pods ran or had succeeded at the last look.
    pub fn pods_ready(&self) -> PodsReady {
        match self.state {
            State::Running {
                readiness: Readiness::Ready,
                ..
            } => PodsReady::Ready,
            State::Suspended
            | State::Resuming { .. }
            | State::Running { .. }
            | State::Resetting { .. }
            | State::Suspending
            | State::Succeeded { .. }
            | State::Failed { .. }
            | State::Terminating { .. } => PodsReady::NotReady,
        }
    }

    /// Takes in what is seen, and returns what is to be done. It goes on by at most one phase; from a new one it wants
    /// to be told at once what is seen.
    pub fn observe(&mut self, now: Timestamp, terms: &FaultTolerance, seen: &ObservedState) -> Step {
        if let Some(state) = self.called_off(seen.wanted) {
            return self.enter(state);
        }
        let look = Look { now, terms, seen };
        match self.state {
            State::Suspended => self.start(look),
            State::Resuming { since } => self.create(look, since),
            State::Running { readiness, unhealthy } => self.watch(look, readiness, unhealthy),
            State::Resetting { unhealthy } => self.reset(look, unhealthy),
            State::Suspending => self.suspend(look),
            State::Succeeded { since } => self.keep_until(look, since, look.terms.success_ttl),
            State::Failed { since, .. } => self.fail(look, since),
            State::Terminating { .. } => self.delete(look).unwrap_or(Step::REST),
        }
    }

    /// Returns where the workload goes because it is no longer wanted, whatever else is the matter.
    fn called_off(&self, wanted: DesiredState) -> Option<State> {
        match (wanted, self.phase()) {
            (DesiredState::Suspended, Phase::Resuming | Phase::Running | Phase::Resetting) => {
                Some(State::Suspending)
            }
            (
                DesiredState::Suspended,
                Phase::Suspended | Phase::Suspending | Phase::Succeeded | Phase::Failed | Phase::Terminating,
            )
            | (DesiredState::Deleted, Phase::Terminating)
            | (DesiredState::Running, _) => None,
            (DesiredState::Deleted, _) => Some(State::Terminating { quota: self.quota() }),
        }
    }

    fn enter(&mut self, state: State) -> Step {
        self.state = state;
        Step::again_in(SignedDuration::ZERO)
    }

    fn start(&mut self, look: Look<'_>) -> Step {
        match look.seen.wanted {
            DesiredState::Running => self.resume(look),
            DesiredState::Suspended | DesiredState::Deleted => Step::REST,
        }
    }

    fn resume(&mut self, look: Look<'_>) -> Step {
        self.remains = Remains::Deployed;
        self.enter(State::Resuming { since: look.now })
    }

    fn create(&mut self, look: Look<'_>, since: Timestamp) -> Step {
        let failure = Unhealthy {
            reason: Reason::CreateFailed,
            since: look.now,
        };
        if look.seen.is_refused() {
            return self.give_up(look, failure.reason);
        }
        if look.seen.is_created() {
            let readiness = Readiness::Awaited { since };
            return self.enter(State::Running {
                readiness,
                unhealthy: None,
            });
        }
        if look.left_of(look.terms.admission_grace, since).is_none() {
            return self.try_again(look, failure, Cost::OneRetry);
        }
        Step {
            todo: Some(Operation::Create),
            look_again: Some(CREATE_AGAIN),
        }
    }

    fn watch(&mut self, look: Look<'_>, readiness: Readiness, unhealthy: Option<Unhealthy>) -> Step {
        let failure = |reason| Unhealthy {
            reason,
            since: unhealthy.map_or(look.now, |noted| noted.since),
        };
        match look.seen.finding() {
            Finding::Unclear => Step::again_in(SOON),
            Finding::MissingComponent => self.give_up(look, Reason::MissingComponent),
            Finding::FailedComponent => self.unless_terminal(look, failure(Reason::FailedComponent)),
            Finding::Succeeded => self.enter(State::Succeeded { since: look.now }),
            Finding::FailedPods => self.bear(look, readiness, failure(Reason::FoundFailedPods)),
            Finding::BadNode => self.try_again(look, failure(Reason::AutopilotNoExecute), Cost::Nothing),
            Finding::Ready => {
                self.state = State::Running {
                    readiness: Readiness::Ready,
                    unhealthy: None,
                };
                Step::again_in(LATER)
            }
            Finding::TooFewPods => {
                let readiness = readiness.lost_by(look.now);
                self.await_pods(look, readiness, readiness.grace_for_missing(look.terms))
            }
            Finding::PodsNotRunning => {
                self.await_pods(look, readiness.lost_by(look.now), look.terms.warmup_grace)
            }
        }
    }

    /// Leaves failed pods to their controller, which may replace them, while the failure grace lasts.
    fn bear(&mut self, look: Look<'_>, readiness: Readiness, failure: Unhealthy) -> Step {
        let Some(left) = look.left_of(look.terms.failure_grace, failure.since) else {
            return self.unless_terminal(look, failure);
        };
        self.state = State::Running {
            readiness,
            unhealthy: Some(failure),
        };
        Step::again_in(left)
    }

    fn await_pods(&mut self, look: Look<'_>, readiness: Readiness, grace: SignedDuration) -> Step {
        let since = readiness.not_ready_since(look.now);
        if look.left_of(grace, since).is_none() {
            let failure = Unhealthy {
                reason: Reason::InsufficientPodsReady,
                since: look.now,
            };
            return self.try_again(look, failure, Cost::OneRetry);
        }
        self.state = State::Running {
            readiness,
            unhealthy: None,
        };
        Step::again_in(SOON)
    }

    fn unless_terminal(&mut self, look: Look<'_>, failure: Unhealthy) -> Step {
        match look.terms.verdict_on(&look.seen.pods) {
            Verdict::Retryable => self.try_again(look, failure, Cost::OneRetry),
            Verdict::Terminal => self.give_up(look, failure.reason),
        }
    }

    fn try_again(&mut self, look: Look<'_>, failure: Unhealthy, cost: Cost) -> Step {
        if self.retries >= look.terms.retry_limit {
            return self.give_up(look, failure.reason);
        }
        self.retries += match cost {
            Cost::OneRetry => 1,
            Cost::Nothing => 0,
        };
        self.enter(State::Resetting { unhealthy: failure })
    }

    fn give_up(&mut self, look: Look<'_>, reason: Reason) -> Step {
        self.enter(State::Failed {
            reason,
            since: look.now,
        })
    }

    fn reset(&mut self, look: Look<'_>, failure: Unhealthy) -> Step {
        if let Some(step) = self.delete(look) {
            return step;
        }
        match look.left_of(look.terms.retry_pause, failure.since) {
            Some(left) => Step::again_in(left),
            None => self.resume(look),
        }
    }

    fn suspend(&mut self, look: Look<'_>) -> Step {
        match self.delete(look) {
            Some(step) => step,
            None => self.enter(State::Suspended),
        }
    }

    fn fail(&mut self, look: Look<'_>, since: Timestamp) -> Step {
        let delay = match look.seen.wanted {
            DesiredState::Running => look.terms.deletion_delay,
            DesiredState::Suspended | DesiredState::Deleted => SignedDuration::ZERO,
        };
        self.keep_until(look, since, delay)
    }

    /// Keeps what has ended for so long, then deletes it.
    fn keep_until(&mut self, look: Look<'_>, since: Timestamp, delay: SignedDuration) -> Step {
        match (self.remains, look.left_of(delay, since)) {
            (Remains::Deployed, Some(left)) => Step::again_in(left),
            (Remains::Nothing | Remains::Deployed | Remains::Leaving { .. }, _) => {
                self.delete(look).unwrap_or(Step::REST)
            }
        }
    }

    /// Goes on with the deletion of all that there is; `None` once there is nothing.
    fn delete(&mut self, look: Look<'_>) -> Option<Step> {
        let since = match self.remains {
            Remains::Nothing => return None,
            Remains::Deployed => look.now,
            Remains::Leaving { since } => since,
        };
        if look.seen.is_gone() {
            self.remains = Remains::Nothing;
            return None;
        }
        self.remains = Remains::Leaving { since };
        let todo = match look.left_of(look.terms.forceful_deletion_grace, since) {
            Some(_) => Operation::Delete,
            None => Operation::DeleteForcefully,
        };
        Some(Step {
            todo: Some(todo),
            look_again: Some(SOON),
        })
    }
}

impl Step {
    /// Nothing is to be done before something changes.
    const REST: Self = Self {
        todo: None,
        look_again: None,
    };

    fn again_in(after: SignedDuration) -> Self {
        Self {
            todo: None,
            look_again: Some(after),
        }
    }
}

impl Readiness {
    /// Returns how far pods have come that are not all ready now.
    fn lost_by(self, now: Timestamp) -> Self {
        match self {
            Self::Ready => Self::Lost { since: now },
            Self::Awaited { .. } | Self::Lost { .. } => self,
        }
    }

    fn not_ready_since(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Ready => now,
            Self::Awaited { since } | Self::Lost { since } => since,
        }
    }

    fn grace_for_missing(self, terms: &FaultTolerance) -> SignedDuration {
        match self {
            Self::Awaited { .. } => terms.admission_grace,
            Self::Ready | Self::Lost { .. } => terms.failure_grace,
        }
    }
}

impl Look<'_> {
    /// Returns what is left of a grace that began at a time, or `None` when it is over.
    fn left_of(&self, grace: SignedDuration, since: Timestamp) -> Option<SignedDuration> {
        let left = grace.saturating_sub(self.now.duration_since(since));
        left.is_positive().then_some(left)
    }
}
