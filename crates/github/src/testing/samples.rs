//! A run of a pull request to tell stories with.

use blueproof_core::{
    domain::{Head, Repository, RunId, RunRequest, RunState},
    ports::RunStatus,
    testing::request,
    view::{ReportView, RunView},
};
use jiff::Timestamp;

/// The head of [`run_status`].
const HEAD: &str = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d";

/// Returns the status of run 41, of the pull request 12 of the repository 7, without attempts.
pub(crate) fn run_status(state: RunState) -> RunStatus {
    let mut request = request("key", "nano-lm");
    request.subject.repository = Repository::GitHub(7);
    request.subject.pull_request = Some(12);
    request.subject.head = Head::Commit(HEAD.into());
    run_status_of(request, state)
}

/// Returns the status of run 41 of what is asked for, without attempts.
pub(crate) fn run_status_of(request: RunRequest, state: RunState) -> RunStatus {
    let view = RunView {
        id: RunId(41),
        state,
        subject: request.subject.clone(),
        revision: None,
        requested_by: request.requested_by.clone(),
        asked_from: None,
        request_key: request.key.clone(),
        queue: request.queue.clone(),
        priority: request.priority,
        resources: request.job.gang(),
        further_resources: request.job.further(),
        requested_at: Timestamp::UNIX_EPOCH,
        retried_at: None,
        ended_at: None,
        attempts: Vec::new(),
        failure: None,
        last_pass: None,
        failing_calls: Vec::new(),
        report: ReportView::NotDue,
        settled: false,
        outlook: None,
    };
    RunStatus {
        revision: 1,
        view,
        request,
        passed: None,
    }
}
