//! A reporter that remembers.

use std::{collections::BTreeMap, sync::Mutex};

use async_trait::async_trait;

use crate::{
    domain::{RunId, RunState},
    ports::{CallError, Reporter, RunStatus},
    view::RunView,
};

/// A reporter that remembers the last report of each run.
#[derive(Debug, Default)]
pub struct FakeReporter {
    reports: Mutex<BTreeMap<RunId, RunView>>,
    next_failure: Mutex<Option<CallError>>,
}

impl FakeReporter {
    /// Returns what was last reported of a run.
    pub fn report_of(&self, run: RunId) -> Option<RunView> {
        self.reports.lock().expect("no report panics").get(&run).cloned()
    }

    /// Lets the next report of an end fail.
    pub fn fail_next(&self, error: CallError) {
        *self.next_failure.lock().expect("no report panics") = Some(error);
    }
}

#[async_trait]
impl Reporter for FakeReporter {
    fn name(&self) -> &str {
        "fake"
    }

    async fn report(&self, status: &RunStatus) -> Result<(), CallError> {
        let view = &status.view;
        let is_ended = matches!(view.state, RunState::Ended(_));
        // Only of what waits for the answer it is of interest that it fails.
        if is_ended && let Some(error) = self.next_failure.lock().expect("no report panics").take() {
            return Err(error);
        }
        self.reports
            .lock()
            .expect("no report panics")
            .insert(view.id, view.clone());
        Ok(())
    }
}
