//! What is decided about approvals and holds, and what follows from it for runs.
//!
//! Whatever lets something run is judged here: an approval, and that a hold is lifted. What keeps something from running is
//! not: anybody may cancel, revoke and hold who may leave a command at all.

use blueproof_diagnostic::{Code, Diagnostic};

use super::{
    Scheduler, Step,
    gate::{self, Origin},
    run::Phase,
};
use crate::{
    approval::{Approval, ApprovalRefusal, Hold, HoldTarget, RevocationReason, RevocationTarget},
    domain::{Actor, BaseRef, Head, PullRequest, RunId, Subject},
    event::{Event, StopMode},
    fact::{Decision, Fact, StopReason},
};

impl Scheduler {
    /// Decides what follows from an input about approvals, holds or pull requests. `superseded` are the approvals that counted
    /// until the push that the input tells of.
    pub(super) fn on_gate_input(&mut self, input: &Event, superseded: &[Approval]) {
        match input {
            Event::Approved { approval } => self.on_approved(approval),
            Event::EntitlementChanged { .. } => self.on_entitlement_changed(),
            Event::RevokeRequested { target, by, via: _ } => self.on_revoke_requested(target, by),
            Event::HoldRequested { target, by, via: _ } => self.on_hold_requested(target, by),
            Event::ResumeRequested { target, by, via: _ } => self.on_resume_requested(target, by),
            Event::BaseChanged {
                pull_request,
                base,
                via: _,
            } => self.on_base_changed(pull_request, base),
            Event::PullRequestClosed { pull_request, via: _ } => self.on_pull_request_closed(pull_request),
            Event::PullRequestReopened { pull_request, via: _ } => self.pass_gate_of(pull_request),
            Event::Synchronized {
                pull_request,
                head,
                via: _,
            } => self.on_synchronized(pull_request, head, superseded),
            Event::Configured { .. }
            | Event::QuotaApplied { .. }
            | Event::InventoryChanged { .. }
            | Event::Requested { .. }
            | Event::CancelRequested { .. }
            | Event::RetryRequested { .. }
            | Event::Pending { .. }
            | Event::Reserved { .. }
            | Event::Started { .. }
            | Event::Finished { .. }
            | Event::Evicted { .. }
            | Event::Lost { .. }
            | Event::Released { .. }
            | Event::Reported { .. }
            | Event::CallFailed { .. }
            | Event::Tick => {}
        }
    }

    /// Returns how many approvals count that a revocation of this target would take back.
    pub fn n_approvals(&self, target: &RevocationTarget) -> usize {
        self.gate.named(target).len()
    }

    /// Returns the hold on exactly this run or pull request.
    pub fn hold_on(&self, target: &HoldTarget) -> Option<&Hold> {
        self.gate.hold_on(target)
    }

    fn on_approved(&mut self, approval: &Approval) {
        if let Err(reason) = self.judge_approval(approval) {
            return self.decide(Decision::ApprovalRefused {
                target: approval.target.clone(),
                by: approval.by.clone(),
                reason,
            });
        }
        self.decide(Decision::ApprovalAccepted {
            approval: approval.clone(),
        });
        let origin = gate::origin_of(approval);
        let waiting = self.awaiting.get(&origin).into_iter().flatten();
        let covered = waiting.filter(|run| approval.target.covers(&self.runs[run].request));
        for run in covered.copied().collect::<Vec<_>>() {
            self.pass_gate(run);
        }
    }

    fn judge_approval(&self, approval: &Approval) -> Result<(), ApprovalRefusal> {
        self.gate.judge(approval, self.now)?;
        let origin = gate::origin_of(approval);
        let requests = self.runs_of(&origin).map(|run| &self.runs[&run].request);
        let mut named = requests
            .filter(|request| approval.target.has_head_of(&request.subject))
            .peekable();
        if named.peek().is_none() {
            return Ok(());
        }
        let mut of_base = named
            .filter(|request| approval.target.has_base_of(&request.subject))
            .peekable();
        if of_base.peek().is_none() {
            return Err(ApprovalRefusal::BaseChanged);
        }
        match of_base.all(|request| gate::is_own(request, &approval.by)) {
            true => Err(ApprovalRefusal::OwnPullRequest),
            false => Ok(()),
        }
    }

    /// Revokes the approvals of those who may approve no more.
    pub(super) fn on_entitlement_changed(&mut self) {
        let lost = self.gate.of_unentitled();
        self.revoke(&lost, RevocationReason::NotEntitled, None);
    }

    fn on_revoke_requested(&mut self, target: &RevocationTarget, by: &Actor) {
        let named = self.gate.named(target);
        self.revoke(&named, RevocationReason::Requested, Some(by));
    }

    fn on_base_changed(&mut self, pull_request: &PullRequest, base: &BaseRef) {
        for run in self.runs_of_pull_request(pull_request) {
            let of_run = self.subject(run).base.as_ref();
            if of_run.is_some_and(|of_run| of_run != base) {
                self.stop(run, StopMode::Terminate, StopReason::BaseChanged);
            }
        }
        let of_others = self.gate.of_other_bases(pull_request, base);
        self.revoke(&of_others, RevocationReason::BaseChanged, None);
    }

    fn on_pull_request_closed(&mut self, pull_request: &PullRequest) {
        for run in self.runs_of_pull_request(pull_request) {
            self.stop(run, StopMode::Terminate, StopReason::PullRequestClosed);
        }
        let all = self.gate.of_pull_request(pull_request);
        self.revoke(&all, RevocationReason::PullRequestClosed, None);
    }

    fn on_synchronized(&mut self, pull_request: &PullRequest, head: &Head, superseded: &[Approval]) {
        for run in self.runs_of_pull_request(pull_request) {
            if self.subject(run).head != *head {
                self.stop(run, StopMode::Terminate, StopReason::Synchronized);
            }
        }
        self.revoke(superseded, RevocationReason::Synchronized, None);
    }

    /// Revokes approvals that count. What runs under one of them, and under no other, is told to end; what waits for quota
    /// waits for an approval again.
    fn revoke(&mut self, approvals: &[Approval], reason: RevocationReason, by: Option<&Actor>) {
        for approval in approvals {
            self.decide(Decision::ApprovalRevoked {
                approval: approval.clone(),
                reason,
                by: by.cloned(),
            });
        }
        for run in self.covered_by(approvals) {
            let request = &self.runs[&run].request;
            let unapproved = self.gate.approved_by(request, self.now).is_none();
            match self.runs[&run].phase {
                Phase::Active if unapproved => {
                    self.stop(run, StopMode::Terminate, StopReason::ApprovalRevoked);
                }
                Phase::Queued { .. } if unapproved => self.await_approval(run),
                Phase::AwaitingApproval { .. }
                | Phase::Queued { .. }
                | Phase::ComingBack { .. }
                | Phase::Active
                | Phase::Ended(_) => {}
            }
        }
    }

    /// Stops attempts under an approval that was revoked and that went on because their requesters approved them, too, under a
    /// policy that has ceased to let them.
    pub(super) fn stop_what_no_approval_covers_any_more(&mut self) {
        let uncovered = self.unsettled.iter().filter(|run| {
            let run = &self.runs[run];
            let subject = &run.request.subject;
            run.active().is_some_and(|attempt| {
                self.gate.approved_by(&run.request, self.now).is_none()
                    && self.gate.is_revoked(subject, attempt.head.by())
            })
        });
        for run in uncovered.copied().collect::<Vec<_>>() {
            self.stop(run, StopMode::Terminate, StopReason::ApprovalRevoked);
        }
    }

    /// Decides that the time of approvals is over. What runs under them goes on.
    pub(super) fn on_approval_expiry(&mut self) {
        let expired = self.gate.expired(self.now);
        for approval in &expired {
            self.decide(Decision::ApprovalExpired {
                approval: approval.clone(),
            });
        }
        for run in self.covered_by(&expired) {
            self.send_back_if_queued(run);
        }
    }

    fn on_hold_requested(&mut self, target: &HoldTarget, by: &Actor) {
        let known = match target {
            HoldTarget::PullRequest(_) => true,
            HoldTarget::Run(run) => self.runs.contains_key(run),
        };
        if !known || self.gate.hold_on(target).is_some() {
            return;
        }
        self.decide(Decision::Held {
            target: target.clone(),
            by: by.clone(),
        });
        for run in self.runs_in(target) {
            self.send_back_if_queued(run);
        }
    }

    fn on_resume_requested(&mut self, target: &HoldTarget, by: &Actor) {
        let Some(hold) = self.gate.hold_on(target) else {
            return;
        };
        let repository = match target {
            HoldTarget::PullRequest(pull_request) => &pull_request.repository,
            HoldTarget::Run(run) => &self.subject(*run).repository,
        };
        let may = hold.by == *by || self.gate.may_approve(by, repository);
        let (target, by) = (target.clone(), by.clone());
        if !may {
            let reason = ApprovalRefusal::NotEntitled;
            return self.decide(Decision::ResumeRefused { target, by, reason });
        }
        let runs = self.runs_in(&target);
        self.decide(Decision::Resumed { target, by });
        for run in runs {
            self.pass_gate_again(run);
        }
    }

    /// Sends the runs of a pull request through the gate that wait there.
    fn pass_gate_of(&mut self, pull_request: &PullRequest) {
        for run in self.runs_of_pull_request(pull_request) {
            self.pass_gate_again(run);
        }
    }

    fn pass_gate_again(&mut self, run: RunId) {
        if matches!(self.runs[&run].phase, Phase::AwaitingApproval { .. }) {
            self.pass_gate(run);
        }
    }

    fn send_back_if_queued(&mut self, run: RunId) {
        let queued = matches!(self.runs[&run].phase, Phase::Queued { .. });
        if queued && self.approved_head(run, &self.runs[&run].request).is_none() {
            self.await_approval(run);
        }
    }

    fn subject(&self, run: RunId) -> &Subject {
        &self.runs[&run].request.subject
    }

    /// Returns the runs that have not ended and that one of some approvals covers, whatever their base.
    fn covered_by(&self, approvals: &[Approval]) -> Vec<RunId> {
        let of_origin = |approval: &Approval| {
            let origin = gate::origin_of(approval);
            let covered = self
                .runs_of(&origin)
                .filter(|run| approval.target.has_head_of(self.subject(*run)));
            covered.collect::<Vec<_>>()
        };
        let mut runs: Vec<RunId> = approvals.iter().flat_map(of_origin).collect();
        runs.sort_unstable();
        runs.dedup();
        runs
    }

    fn runs_in(&self, target: &HoldTarget) -> Vec<RunId> {
        match target {
            HoldTarget::PullRequest(pull_request) => self.runs_of_pull_request(pull_request),
            HoldTarget::Run(run) => vec![*run],
        }
    }

    /// Notes that these runs wait for something else than before.
    pub(super) fn touch_runs_in(&mut self, target: &HoldTarget) {
        let known = self.runs_in(target).into_iter();
        let known: Vec<RunId> = known.filter(|run| self.runs.contains_key(run)).collect();
        self.touched.extend(known);
    }

    fn runs_of_pull_request(&self, pull_request: &PullRequest) -> Vec<RunId> {
        let origin = (pull_request.repository.clone(), Some(pull_request.number));
        self.runs_of(&origin).collect()
    }

    /// Returns the runs of an origin that have not ended, the first one first.
    fn runs_of(&self, origin: &Origin) -> impl Iterator<Item = RunId> {
        let of_origin = self.by_origin.get(origin).into_iter().flatten().copied();
        of_origin.filter(|run| !matches!(self.runs[run].phase, Phase::Ended(_)))
    }
}

impl Step {
    /// Returns why what was asked for was not done, where the gate refused it.
    pub fn refusal(&self) -> Option<Diagnostic> {
        self.facts.iter().find_map(|fact| match fact {
            Fact::Decision(decision) => refusal(decision),
            Fact::Input(_) => None,
        })
    }
}

fn refusal(decision: &Decision) -> Option<Diagnostic> {
    match decision {
        Decision::ApprovalRefused { target, by, reason } => {
            let message = format!("the approval of {} by {by} does not count", target.head.short());
            let diagnostic = Diagnostic::error(Code::ApprovalRefused, message).because(reason.as_words());
            Some(diagnostic.hint(remedy(*reason)))
        }
        Decision::ResumeRefused { target, by, reason } => {
            let message = format!("{target} stays held, though {by} asks for it to go on");
            let diagnostic = Diagnostic::error(Code::ApprovalRefused, message).because(reason.as_words());
            Some(diagnostic.hint(remedy(*reason)))
        }
        Decision::RetryRefused { run, by: _ } => Some(super::forget::not_remembered(*run)),
        Decision::ApprovalAccepted { .. }
        | Decision::ApprovalRevoked { .. }
        | Decision::ApprovalExpired { .. }
        | Decision::Held { .. }
        | Decision::Resumed { .. }
        | Decision::ApprovalAwaited { .. }
        | Decision::Enqueued { .. }
        | Decision::CyclesRun { .. }
        | Decision::QuotaRequested { .. }
        | Decision::QuotaReserved { .. }
        | Decision::Admitted { .. }
        | Decision::Evicted { .. }
        | Decision::PreemptionAwaited { .. }
        | Decision::StopRequested { .. }
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

fn remedy(reason: ApprovalRefusal) -> &'static str {
    match reason {
        ApprovalRefusal::NotEntitled => {
            "let somebody do it who may approve: `local.approvers` or `--approver` of the leader names them, `blueproof audit` shows who did before"
        }
        ApprovalRefusal::OtherPolicy => "read the policy that is in force, and approve again",
        ApprovalRefusal::Expired => "look at the content again, and approve it for longer",
        ApprovalRefusal::OwnPullRequest => "let another maintainer look at it",
        ApprovalRefusal::PullRequestClosed => "open the pull request again first",
        ApprovalRefusal::Held => "lift the hold first: `blueproof resume`",
        ApprovalRefusal::HeadChanged => {
            "look at what was pushed, and approve the head that the pull request has"
        }
        ApprovalRefusal::BaseChanged => {
            "look at it against the base that it has, and approve it for that one"
        }
    }
}
