//! What the log holds, as rows of a table.

use blueproof_core::{
    approval::{ApprovalTarget, HoldTarget, Selection},
    domain::{Repository, RunId},
    event::{Call, Event},
    fact::{Decision, Fact},
    ports::LoggedFact,
};

use crate::output::{self, Cell, Table};

/// Rows of facts that come one part after the other.
#[derive(Default)]
pub(crate) struct Rows {
    /// How wide the columns are, once there is a header.
    widths: Option<Vec<usize>>,
}

impl Rows {
    /// Returns the next rows, under a header if they are the first.
    pub(crate) fn render(&mut self, facts: &[LoggedFact]) -> String {
        let mut table = Table::new(["EVENT", "AT", "KIND", "OF"]);
        for logged in facts {
            table.row(row(logged));
        }
        let limit = output::width();
        if let Some(widths) = &self.widths {
            return table.render_rows(widths, limit);
        }
        self.widths = Some(table.widths());
        table.render(limit)
    }
}

fn row(logged: &LoggedFact) -> [Cell; 4] {
    [
        logged.seq.0.to_string().into(),
        output::absolute(logged.at).into(),
        logged.fact.kind().into(),
        match &logged.fact {
            Fact::Input(input) => of_input(input),
            Fact::Decision(decision) => of_decision(decision),
        }
        .into(),
    ]
}

/// Returns whom or what an input is about.
fn of_input(input: &Event) -> String {
    match input {
        Event::Configured { .. } | Event::Tick => String::new(),
        Event::QuotaApplied { by, .. } => by.to_string(),
        Event::InventoryChanged { cluster, .. } => cluster.to_string(),
        Event::Requested { request } => request.subject.blueprint.to_string(),
        Event::Approved { approval } => of_target(&approval.target),
        Event::RevokeRequested { target, .. } => of_origin(&target.repository, target.pull_request),
        Event::HoldRequested { target, .. } | Event::ResumeRequested { target, .. } => held(target),
        Event::EntitlementChanged { source, .. } => source.clone(),
        Event::Synchronized { pull_request, .. }
        | Event::BaseChanged { pull_request, .. }
        | Event::PullRequestClosed { pull_request, .. }
        | Event::PullRequestReopened { pull_request, .. } => format!("#{}", pull_request.number),
        Event::CancelRequested { run, .. }
        | Event::RetryRequested { run, .. }
        | Event::Reported { run, .. } => run.to_string(),
        Event::Pending { attempt, .. }
        | Event::Reserved { attempt, .. }
        | Event::Started { attempt }
        | Event::Finished { attempt, .. }
        | Event::Evicted { attempt, .. }
        | Event::Lost { attempt, .. }
        | Event::Released { attempt } => attempt.to_string(),
        Event::CallFailed { call, .. } => called(*call),
    }
}

/// Returns what a decision is about.
fn of_decision(decision: &Decision) -> String {
    match decision {
        Decision::ApprovalAccepted { approval }
        | Decision::ApprovalRevoked { approval, .. }
        | Decision::ApprovalExpired { approval } => of_target(&approval.target),
        Decision::ApprovalRefused { target, .. } => of_target(target),
        Decision::Held { target, .. }
        | Decision::Resumed { target, .. }
        | Decision::ResumeRefused { target, .. } => held(target),
        Decision::ApprovalAwaited { run }
        | Decision::Enqueued { run, .. }
        | Decision::PreemptionAwaited { run }
        | Decision::Requeued { run, .. }
        | Decision::Ended { run, .. }
        | Decision::RetryRefused { run, .. }
        | Decision::ReportGivenUp { run } => run.to_string(),
        Decision::Forgotten { runs } => first_of(runs),
        Decision::QuotaRequested { attempt, .. }
        | Decision::QuotaReserved { attempt, .. }
        | Decision::Admitted { attempt, .. }
        | Decision::Evicted { attempt, .. }
        | Decision::StopRequested { attempt, .. }
        | Decision::AttemptEnded { attempt, .. } => attempt.to_string(),
        Decision::CallPostponed { call, .. } | Decision::CallRepeated { call } => called(*call),
        Decision::CyclesRun { .. } | Decision::ClockSetBack { .. } => String::new(),
    }
}

/// Names the first of several runs, and how many more there are.
fn first_of(runs: &[RunId]) -> String {
    match runs {
        [] => String::new(),
        [run] => run.to_string(),
        [first, others @ ..] => format!("{first} and {} more", others.len()),
    }
}

/// Names what an approval is of, as briefly as can be.
fn of_target(target: &ApprovalTarget) -> String {
    match (&target.scope.blueprints, target.pull_request) {
        (Selection::Named(blueprints), _) => {
            let names = blueprints.iter().map(ToString::to_string);
            names.collect::<Vec<_>>().join(", ")
        }
        (Selection::All, Some(number)) => format!("#{number}"),
        (Selection::All, None) => target.head.short().to_owned(),
    }
}

fn of_origin(repository: &Repository, pull_request: Option<u64>) -> String {
    pull_request.map_or_else(|| repository.to_string(), |number| format!("#{number}"))
}

fn held(target: &HoldTarget) -> String {
    match target {
        HoldTarget::PullRequest(pull_request) => format!("#{}", pull_request.number),
        HoldTarget::Run(run) => run.to_string(),
    }
}

fn called(call: Call) -> String {
    let attempt = call.attempt();
    attempt.map_or_else(|| call.run().to_string(), |attempt| attempt.to_string())
}
