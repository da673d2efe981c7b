//! Who approved, refused, revoked, held and cancelled what, when, why, and by which command: read from the log, which is
//! appended to and never rewritten. Nothing is kept for it beside the log.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    approval::{ApprovalTarget, HoldTarget, RevocationReason},
    domain::{Actor, AttemptId, Repository, RequestKey, RunId, Subject},
    event::Event,
    fact::{Decision, Fact, StopReason},
    ports::{LoggedFact, Seq},
};

/// One thing that somebody did, or that was decided about what somebody did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Its position in the log.
    pub seq: Seq,
    /// When.
    pub at: Timestamp,
    /// What was done, as the log calls it: `approvalAccepted`, `cancelRequested`.
    pub action: String,
    /// What with.
    pub target: AuditTarget,
    /// By whom; absent where nobody did it, as when an approval expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// Why, where there is more to it than that somebody wanted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The command that it came with, such as a webhook's delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<RequestKey>,
}

/// What something was done with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AuditTarget {
    /// Content.
    Content(ApprovalTarget),
    /// A pull request, or a run, as a whole.
    Held(HoldTarget),
    /// A run.
    Run(RunId),
    /// An attempt.
    Attempt(AttemptId),
    /// Who may approve, of a repository or of all.
    Entitlement {
        /// The repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<Repository>,
        /// Where it is written.
        source: String,
    },
}

/// Reads the log, fact by fact from its beginning.
#[derive(Debug, Default)]
pub struct Audit {
    /// When the last input came, and with which command.
    last: Option<(Timestamp, Option<RequestKey>)>,
}

impl Audit {
    /// Returns what a fact says about who did what; `None` for one that says nothing of it.
    pub fn entry(&mut self, logged: &LoggedFact) -> Option<AuditEntry> {
        let (target, by, reason, via) = match &logged.fact {
            Fact::Input(input) => {
                let via = input.via().cloned();
                self.last = Some((logged.at, via.clone()));
                let (target, by) = of_input(input)?;
                (target, by, None, via)
            }
            Fact::Decision(decision) => {
                let Told { target, by, reason } = of_decision(decision)?;
                (target, by, reason, self.via(logged.at, decision))
            }
        };
        Some(AuditEntry {
            seq: logged.seq,
            at: logged.at,
            action: logged.fact.kind().into(),
            target,
            by,
            reason,
            via,
        })
    }

    /// Returns the command that led to a decision. What was decided at another time than the last input fell due by itself.
    fn via(&self, at: Timestamp, decision: &Decision) -> Option<RequestKey> {
        let (came_at, via) = self.last.as_ref()?;
        via.clone().filter(|_| *came_at == at && is_answer(decision))
    }
}

impl AuditEntry {
    /// Returns whether it is about a run: the run itself, its pull request, or an approval that covers it.
    pub fn concerns_run(&self, run: RunId, subject: &Subject) -> bool {
        match &self.target {
            AuditTarget::Content(target) => target.has_head_of(subject),
            AuditTarget::Held(HoldTarget::PullRequest(held)) => {
                subject.of_pull_request().as_ref() == Some(held)
            }
            AuditTarget::Held(HoldTarget::Run(of)) | AuditTarget::Run(of) => *of == run,
            AuditTarget::Attempt(of) => of.run == run,
            AuditTarget::Entitlement { repository, .. } => repository
                .as_ref()
                .is_none_or(|repository| *repository == subject.repository),
        }
    }

    /// Returns whether it is about a pull request of this number; `subject_of` tells what runs are of.
    pub fn concerns_pull_request(&self, number: u64, subject_of: impl Fn(RunId) -> Option<Subject>) -> bool {
        let of_run = |run| subject_of(run).and_then(|subject| subject.pull_request);
        let of = match &self.target {
            AuditTarget::Content(target) => target.pull_request,
            AuditTarget::Held(HoldTarget::PullRequest(held)) => Some(held.number),
            AuditTarget::Held(HoldTarget::Run(run)) | AuditTarget::Run(run) => of_run(*run),
            AuditTarget::Attempt(attempt) => of_run(attempt.run),
            AuditTarget::Entitlement { .. } => None,
        };
        of == Some(number)
    }
}

/// What a decision says about who did what.
struct Told {
    target: AuditTarget,
    by: Option<Actor>,
    reason: Option<String>,
}

fn of_input(input: &Event) -> Option<(AuditTarget, Option<Actor>)> {
    match input {
        Event::CancelRequested { run, by, .. } | Event::RetryRequested { run, by, .. } => {
            Some((AuditTarget::Run(*run), Some(by.clone())))
        }
        Event::EntitlementChanged {
            repository, source, ..
        } => {
            let (repository, source) = (repository.clone(), source.clone());
            Some((AuditTarget::Entitlement { repository, source }, None))
        }
        // What is decided about the first of these says it, and the others ask nobody's leave.
        Event::Approved { .. }
        | Event::RevokeRequested { .. }
        | Event::HoldRequested { .. }
        | Event::ResumeRequested { .. }
        | Event::BaseChanged { .. }
        | Event::PullRequestClosed { .. }
        | Event::PullRequestReopened { .. }
        | Event::Synchronized { .. }
        | Event::Configured { .. }
        | Event::QuotaApplied { .. }
        | Event::InventoryChanged { .. }
        | Event::Requested { .. }
        | Event::Pending { .. }
        | Event::Reserved { .. }
        | Event::Started { .. }
        | Event::Finished { .. }
        | Event::Evicted { .. }
        | Event::Lost { .. }
        | Event::Released { .. }
        | Event::Reported { .. }
        | Event::CallFailed { .. }
        | Event::Tick => None,
    }
}

fn of_decision(decision: &Decision) -> Option<Told> {
    let told = |target, by: Option<&Actor>, reason: Option<&str>| {
        Some(Told {
            target,
            by: by.cloned(),
            reason: reason.map(str::to_owned),
        })
    };
    let content = |target: &ApprovalTarget| AuditTarget::Content(target.clone());
    let held = |target: &HoldTarget| AuditTarget::Held(target.clone());
    match decision {
        Decision::ApprovalAccepted { approval } => told(content(&approval.target), Some(&approval.by), None),
        Decision::ApprovalRefused { target, by, reason } => {
            told(content(target), Some(by), Some(reason.as_words()))
        }
        Decision::ApprovalRevoked { approval, reason, by } => told(
            content(&approval.target),
            by.as_ref(),
            Some(revoked_because(*reason)),
        ),
        Decision::ApprovalExpired { approval } => {
            told(content(&approval.target), None, Some("its time was over"))
        }
        Decision::Held { target, by } | Decision::Resumed { target, by } => {
            told(held(target), Some(by), None)
        }
        Decision::ResumeRefused { target, by, reason } => {
            told(held(target), Some(by), Some(reason.as_words()))
        }
        Decision::Admitted {
            attempt, approved_by, ..
        } => told(
            AuditTarget::Attempt(*attempt),
            Some(approved_by),
            Some("by whose approval it runs"),
        ),
        Decision::StopRequested { attempt, why, .. } => {
            let reason = stopped_because(*why)?;
            told(AuditTarget::Attempt(*attempt), None, Some(reason))
        }
        Decision::RetryRefused { run, by } => {
            told(AuditTarget::Run(*run), Some(by), Some("it is not remembered"))
        }
        Decision::ApprovalAwaited { .. }
        | Decision::Enqueued { .. }
        | Decision::CyclesRun { .. }
        | Decision::QuotaRequested { .. }
        | Decision::QuotaReserved { .. }
        | Decision::Evicted { .. }
        | Decision::PreemptionAwaited { .. }
        | Decision::AttemptEnded { .. }
        | Decision::Requeued { .. }
        | Decision::Ended { .. }
        | Decision::CallPostponed { .. }
        | Decision::CallRepeated { .. }
        | Decision::ReportGivenUp { .. }
        | Decision::Forgotten { .. }
        | Decision::ClockSetBack { .. } => None,
    }
}

/// Returns whether a decision is what came of the input in hand, and not of time that passed or quota that became free.
fn is_answer(decision: &Decision) -> bool {
    match decision {
        Decision::ApprovalAccepted { .. }
        | Decision::ApprovalRefused { .. }
        | Decision::ApprovalRevoked { .. }
        | Decision::Held { .. }
        | Decision::Resumed { .. }
        | Decision::ResumeRefused { .. }
        | Decision::RetryRefused { .. }
        | Decision::StopRequested { .. } => true,
        Decision::ApprovalExpired { .. }
        | Decision::Admitted { .. }
        | Decision::ApprovalAwaited { .. }
        | Decision::Enqueued { .. }
        | Decision::CyclesRun { .. }
        | Decision::QuotaRequested { .. }
        | Decision::QuotaReserved { .. }
        | Decision::Evicted { .. }
        | Decision::PreemptionAwaited { .. }
        | Decision::AttemptEnded { .. }
        | Decision::Requeued { .. }
        | Decision::Ended { .. }
        | Decision::CallPostponed { .. }
        | Decision::CallRepeated { .. }
        | Decision::ReportGivenUp { .. }
        | Decision::Forgotten { .. }
        | Decision::ClockSetBack { .. } => false,
    }
}

fn revoked_because(reason: RevocationReason) -> &'static str {
    match reason {
        RevocationReason::Requested => "it was asked for",
        RevocationReason::NotEntitled => "whoever gave it may approve no more",
        RevocationReason::BaseChanged => "the pull request has another base",
        RevocationReason::PullRequestClosed => "the pull request was closed",
        RevocationReason::Synchronized => "the pull request has another head",
    }
}

/// Returns why an attempt was told to end, where that has to do with who may run what.
fn stopped_because(why: StopReason) -> Option<&'static str> {
    match why {
        StopReason::Cancelled => Some("it was cancelled"),
        StopReason::Synchronized => Some("the pull request has another head"),
        StopReason::BaseChanged => Some("the pull request has another base"),
        StopReason::PullRequestClosed => Some("the pull request was closed"),
        StopReason::ApprovalRevoked => Some("the approval that it ran under was revoked"),
        StopReason::Overdue | StopReason::ExecutionTimeOver | StopReason::Evicted => None,
    }
}

#[cfg(test)]
mod tests;
