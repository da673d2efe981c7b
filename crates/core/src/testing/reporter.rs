//! A reporter that remembers.

use std::{collections::BTreeMap, sync::Mutex};

use async_trait::async_trait;

use crate::{
    domain::{RunId, RunRequest},
    ports::{CallError, Reporter},
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

    /// Lets the next report fail.
    pub fn fail_next(&self, error: CallError) {
        *self.next_failure.lock().expect("no report panics") = Some(error);
    }
}

#[async_trait]
impl Reporter for FakeReporter {
    async fn report(
        &self,
        view: &RunView,
        _request: &RunRequest,
        _passed: Option<&RunView>,
    ) -> Result<(), CallError> {
        if let Some(error) = self.next_failure.lock().expect("no report panics").take() {
            return Err(error);
        }
        self.reports
            .lock()
            .expect("no report panics")
            .insert(view.id, view.clone());
        Ok(())
    }
}
