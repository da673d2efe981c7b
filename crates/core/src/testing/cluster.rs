//! A cluster in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use blueproof_diagnostic::{Code, Diagnostic};
use tokio::sync::watch;

use super::samples::outcome;
use crate::{
    action::StartAction,
    domain::{AttemptId, Outcome, Resources, Verdict},
    event::StopMode,
    ports::{CallError, ClusterDriver, Inventory, Observation},
};

/// A cluster in memory, on which attempts end when the test says so.
#[derive(Debug)]
pub struct FakeCluster {
    total: Resources,
    ends: Ends,
    state: watch::Sender<State>,
}

/// When attempts end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    AtOnce,
    WhenTold,
}

#[derive(Debug, Default)]
struct State {
    attempts: BTreeMap<AttemptId, Phase>,
    starts: BTreeMap<AttemptId, u32>,
    failing: Option<CallError>,
}

#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Reserved,
    Running,
    Finished(Box<Outcome>),
    Released,
}

impl FakeCluster {
    /// Returns a cluster on which every attempt passes at once.
    pub fn passing(total: Resources) -> Self {
        Self {
            total,
            ends: Ends::AtOnce,
            state: watch::Sender::default(),
        }
    }

    /// Returns a cluster on which attempts run until [`finish`](Self::finish) is called or they are stopped.
    pub fn waiting(total: Resources) -> Self {
        Self {
            total,
            ends: Ends::WhenTold,
            state: watch::Sender::default(),
        }
    }

    /// Ends a running attempt.
    pub fn finish(&self, attempt: AttemptId, outcome: Outcome) {
        self.state.send_modify(|state| {
            state.attempts.insert(attempt, Phase::Finished(Box::new(outcome)));
        });
    }

    /// Lets the next reserve or start fail.
    pub fn fail_next(&self, error: CallError) {
        self.state.send_modify(|state| state.failing = Some(error));
    }

    /// Returns the attempts that run.
    pub fn running(&self) -> Vec<AttemptId> {
        let state = self.state.borrow();
        state
            .attempts
            .iter()
            .filter(|(_, phase)| **phase == Phase::Running)
            .map(|(id, _)| *id)
            .collect()
    }

    /// Returns the attempts of which something is left.
    pub fn left(&self) -> Vec<AttemptId> {
        let state = self.state.borrow();
        state
            .attempts
            .iter()
            .filter(|(_, phase)| **phase != Phase::Released)
            .map(|(id, _)| *id)
            .collect()
    }

    /// Returns how often an attempt really began.
    pub fn starts(&self, attempt: AttemptId) -> u32 {
        self.state.borrow().starts.get(&attempt).copied().unwrap_or(0)
    }

    /// Waits until `holds` is true of the attempts that run.
    pub async fn until_running(&self, holds: impl Fn(&[AttemptId]) -> bool) {
        let mut state = self.state.subscribe();
        while !holds(&self.running()) {
            state
                .changed()
                .await
                .expect("the cluster lives as long as its borrower");
        }
    }

    fn try_change<T>(&self, change: impl FnOnce(&mut State) -> T) -> Result<T, CallError> {
        let mut result = None;
        self.state.send_modify(|state| {
            result = Some(match state.failing.take() {
                Some(error) => Err(error),
                None => Ok(change(state)),
            });
        });
        result.expect("send_modify calls its argument")
    }
}

#[async_trait]
impl ClusterDriver for FakeCluster {
    async fn inventory(&self) -> Result<Inventory, CallError> {
        Ok(Inventory {
            total: self.total,
            description: "a cluster in memory".into(),
            warnings: Vec::new(),
        })
    }

    async fn reserve(&self, attempt: AttemptId, _resources: Resources) -> Result<String, CallError> {
        self.try_change(|state| {
            state.attempts.entry(attempt).or_insert(Phase::Reserved);
            "in memory".into()
        })
    }

    async fn start(&self, start: &StartAction) -> Result<(), CallError> {
        self.try_change(|state| {
            let Some(phase) = state
                .attempts
                .get_mut(&start.attempt)
                .filter(|phase| **phase == Phase::Reserved)
            else {
                return;
            };
            *state.starts.entry(start.attempt).or_default() += 1;
            *phase = match self.ends {
                Ends::AtOnce => Phase::Finished(Box::new(outcome(Verdict::Passed))),
                Ends::WhenTold => Phase::Running,
            };
        })
    }

    async fn observe(
        &self,
        attempt: AttemptId,
        known: Option<&Observation>,
    ) -> Result<Observation, CallError> {
        let mut state = self.state.subscribe();
        loop {
            let observed = match state.borrow_and_update().attempts.get(&attempt) {
                Some(Phase::Running) => Some(Observation::Running),
                Some(Phase::Finished(outcome)) => Some(Observation::Finished {
                    outcome: outcome.clone(),
                    ended_at: None,
                }),
                Some(Phase::Reserved) => None,
                Some(Phase::Released) | None => return Err(CallError::never(no_such(attempt))),
            };
            if let Some(observed) = observed.filter(|observed| known != Some(observed)) {
                return Ok(observed);
            }
            state
                .changed()
                .await
                .expect("the cluster lives as long as its borrower");
        }
    }

    async fn stop(&self, attempt: AttemptId, _how: StopMode) -> Result<(), CallError> {
        self.state.send_modify(|state| {
            if let Some(phase) = state
                .attempts
                .get_mut(&attempt)
                .filter(|phase| **phase == Phase::Running)
            {
                *phase = Phase::Finished(Box::new(outcome(Verdict::Stopped)));
            }
        });
        Ok(())
    }

    async fn release(&self, attempt: AttemptId) -> Result<(), CallError> {
        self.state.send_modify(|state| {
            if let Some(phase) = state.attempts.get_mut(&attempt) {
                *phase = Phase::Released;
            }
        });
        Ok(())
    }
}

fn no_such(attempt: AttemptId) -> Diagnostic {
    Diagnostic::error(Code::AttemptLost, format!("nothing is known of {attempt}"))
}
