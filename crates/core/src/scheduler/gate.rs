//! Which content may run at all.
//!
//! Approvals are compared at three moments: when they arrive, at dispatch, and at start. Nothing else in the repository
//! decides this.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{
    domain::{Actor, ApprovedHead, Head, Repository, RunRequest, Subject},
    event::Approval,
    fact::ApprovalRefusal,
    policy::{GatePolicy, LocalApproval},
};

/// Remembers who approved what, and judges by the policy.
#[derive(Debug)]
pub(super) struct Gate {
    policy: GatePolicy,
    /// By pull request, so that a push to one leaves the others alone.
    approvals: BTreeMap<(Repository, Option<u64>), BTreeMap<Subject, Approval>>,
    heads: BTreeMap<(Repository, u64), Head>,
}

impl Gate {
    pub(super) fn new(policy: GatePolicy) -> Self {
        Self {
            policy,
            approvals: BTreeMap::new(),
            heads: BTreeMap::new(),
        }
    }

    pub(super) fn set_policy(&mut self, policy: GatePolicy) {
        self.policy = policy;
    }

    /// Returns whether an approval counts, under the policy that holds. One of a head that the pull request does not have is
    /// kept: news of the push may be on its way.
    pub(super) fn judge(&self, approval: &Approval, now: Timestamp) -> Result<(), ApprovalRefusal> {
        if !self.policy.approvers.contains(&approval.by) {
            return Err(ApprovalRefusal::NotEntitled);
        }
        if approval.policy != self.policy.digest {
            return Err(ApprovalRefusal::OtherPolicy);
        }
        if approval.expires_at.is_some_and(|expires_at| expires_at <= now) {
            return Err(ApprovalRefusal::Expired);
        }
        Ok(())
    }

    /// Keeps an approval that counts.
    pub(super) fn approve(&mut self, approval: Approval) {
        self.approvals
            .entry((approval.subject.repository.clone(), approval.subject.pull_request))
            .or_default()
            .insert(approval.subject.clone(), approval);
    }

    /// Takes note of a pull request's new head. What was approved of its earlier ones counts no more, not even
    /// when the pull request goes back to one of them.
    pub(super) fn synchronized(&mut self, repository: &Repository, pull_request: u64, head: &Head) {
        self.heads
            .insert((repository.clone(), pull_request), head.clone());
        if let Some(approvals) = self.approvals.get_mut(&(repository.clone(), Some(pull_request))) {
            approvals.retain(|subject, _| subject.head == *head);
        }
    }

    /// Returns whether the pull request has moved on from the subject's head.
    pub(super) fn is_stale(&self, subject: &Subject) -> bool {
        let current = subject
            .pull_request
            .and_then(|pull_request| self.heads.get(&(subject.repository.clone(), pull_request)));
        current.is_some_and(|current| *current != subject.head)
    }

    /// Returns the approved head, if the request may run at `now`.
    pub(super) fn check(&self, request: &RunRequest, now: Timestamp) -> Option<ApprovedHead> {
        if self.is_stale(&request.subject) {
            return None;
        }
        let by = self.own(request).or_else(|| self.given(&request.subject, now))?;
        Some(ApprovedHead::new(request.subject.head.clone(), by.clone()))
    }

    /// Returns the user of this machine who asks for a run of a folder of this machine, where that is enough.
    fn own<'a>(&self, request: &'a RunRequest) -> Option<&'a Actor> {
        match (
            &self.policy.local,
            &request.requested_by,
            &request.subject.repository,
        ) {
            (LocalApproval::Own, by @ Actor::Local(_), Repository::Local(_)) => Some(by),
            (LocalApproval::Own | LocalApproval::Required, _, _) => None,
        }
    }

    fn given(&self, subject: &Subject, now: Timestamp) -> Option<&Actor> {
        let approvals = self
            .approvals
            .get(&(subject.repository.clone(), subject.pull_request))?;
        let approval = approvals.get(subject)?;
        let counts = approval.policy == self.policy.digest
            && self.policy.approvers.contains(&approval.by)
            && approval.expires_at.is_none_or(|expires_at| now < expires_at);
        counts.then_some(&approval.by)
    }
}
