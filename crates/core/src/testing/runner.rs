//! Runners in memory.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use blueproof_diagnostic::{Code, Diagnostic};
use tokio::sync::mpsc;

use crate::{
    event::StopMode,
    ports::{CallError, NEWS_AT_MOST, Runner, RunnerName, RunnerNews, RunnerProvider, RunnerState},
};

/// Runners in memory, which end when the test says so.
#[derive(Debug, Default)]
pub struct FakeRunners {
    known: Mutex<Known>,
    listeners: Mutex<Vec<mpsc::Sender<RunnerNews>>>,
}

#[derive(Debug, Default)]
struct Known {
    /// How each runner stands that is not removed.
    states: BTreeMap<RunnerName, RunnerState>,
    /// How often each really began.
    starts: BTreeMap<RunnerName, u32>,
    /// How those end that do so as soon as they have begun.
    ends: BTreeMap<RunnerName, RunnerState>,
    failing: Option<CallError>,
}

impl FakeRunners {
    /// Has a runner end as soon as it has begun.
    pub fn ending(self, name: &RunnerName, end: RunnerState) -> Self {
        self.known().ends.insert(name.clone(), end);
        self
    }

    /// Ends a runner that runs.
    pub fn finish(&self, name: &RunnerName, end: RunnerState) {
        let mut known = self.known();
        if known.states.get(name) == Some(&RunnerState::Running) {
            known.states.insert(name.clone(), end.clone());
            drop(known);
            self.tell(name, end);
        }
    }

    /// Loses a runner: nothing of it is left, and nobody knows why.
    pub fn lose(&self, name: &RunnerName) {
        let message = "the test says so".into();
        self.finish(name, RunnerState::Lost { message });
    }

    /// Lets the next start fail.
    pub fn fail_next(&self, error: CallError) {
        self.known().failing = Some(error);
    }

    /// Returns how often a runner really began.
    pub fn starts(&self, name: &RunnerName) -> u32 {
        self.known().starts.get(name).copied().unwrap_or(0)
    }

    /// Returns the runners of which something is left.
    pub fn left(&self) -> Vec<RunnerName> {
        self.known().states.keys().cloned().collect()
    }

    /// Tells whatever a test wants told, true or not.
    pub fn tell(&self, name: &RunnerName, state: RunnerState) {
        let runner = name.clone();
        let news = RunnerNews { runner, state };
        // Tests tell of fewer things than may wait, and one that listens no more is told nothing.
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.try_send(news.clone()).is_ok());
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl RunnerProvider for FakeRunners {
    fn news(&self) -> mpsc::Receiver<RunnerNews> {
        let (sender, receiver) = mpsc::channel(NEWS_AT_MOST);
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.push(sender);
        receiver
    }

    async fn start(&self, runner: &Runner) -> Result<(), CallError> {
        let name = &runner.name;
        let mut known = self.known();
        if let Some(error) = known.failing.take() {
            return Err(error);
        }
        if let Some(state) = known.states.get(name).cloned() {
            drop(known);
            self.tell(name, state);
            return Ok(());
        }
        *known.starts.entry(name.clone()).or_default() += 1;
        let end = known.ends.get(name).cloned();
        let state = end.clone().unwrap_or(RunnerState::Running);
        known.states.insert(name.clone(), state);
        drop(known);
        self.tell(name, RunnerState::Running);
        if let Some(end) = end {
            self.tell(name, end);
        }
        Ok(())
    }

    async fn observe(&self, name: &RunnerName) -> Result<(), CallError> {
        let state = self.known().states.get(name).cloned();
        let Some(state) = state else {
            let unknown = Diagnostic::error(
                Code::RunnerUnknown,
                format!("nothing is known of the runner {name}"),
            );
            return Err(CallError::never(unknown));
        };
        self.tell(name, state);
        Ok(())
    }

    async fn stop(&self, name: &RunnerName, _how: StopMode) -> Result<(), CallError> {
        self.finish(name, RunnerState::Completed);
        Ok(())
    }

    async fn remove(&self, name: &RunnerName) -> Result<(), CallError> {
        self.known().states.remove(name);
        self.tell(name, RunnerState::Removed);
        Ok(())
    }
}
