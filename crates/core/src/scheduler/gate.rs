//! Which content may run at all.
//!
//! Approvals are compared at three moments: when they arrive, at dispatch, and at start. Nothing else in the project
//! decides this.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    domain::{Actor, ApprovedHead, Head, Project, RunRequest, Subject},
    event::Approval,
    fact::ApprovalRefusal,
    policy::{GatePolicy, LocalApproval},
};

/// Remembers who approved what, and judges by the policy.
#[derive(Debug)]
pub(super) struct Gate {
    policy: GatePolicy,
    /// By pull request, so that a push to one leaves the others alone.
    approvals: BTreeMap<(Project, Option<u64>), BTreeMap<Subject, Approval>>,
    heads: BTreeMap<(Project, u64), Head>,
}

/// The gate as it is written down.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GateSnapshot {
    policy: GatePolicy,
    approvals: Vec<Approval>,
    heads: Vec<(Project, u64, Head)>,
}

impl From<GateSnapshot> for Gate {
    fn from(saved: GateSnapshot) -> Self {
        let mut gate = Self::new(saved.policy);
        for approval in saved.approvals {
            gate.approve(approval);
        }
        let heads = saved.heads.into_iter();
        gate.heads = heads
            .map(|(project, change, head)| ((project, change), head))
            .collect();
        gate
    }
}

impl Gate {
    pub(super) fn snapshot(&self) -> GateSnapshot {
        let heads = self.heads.iter();
        GateSnapshot {
            policy: self.policy.clone(),
            approvals: self
                .approvals
                .values()
                .flat_map(BTreeMap::values)
                .cloned()
                .collect(),
            heads: heads
                .map(|((project, change), head)| (project.clone(), *change, head.clone()))
                .collect(),
        }
    }

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
            .entry((approval.subject.project.clone(), approval.subject.change))
            .or_default()
            .insert(approval.subject.clone(), approval);
    }

    /// Takes note of a pull request's new head. What was approved of its earlier ones counts no more, not even
    /// when the pull request goes back to one of them.
    pub(super) fn head_moved(&mut self, project: &Project, change: u64, head: &Head) {
        self.heads.insert((project.clone(), change), head.clone());
        if let Some(approvals) = self.approvals.get_mut(&(project.clone(), Some(change))) {
            approvals.retain(|subject, _| subject.head == *head);
        }
    }

    /// Returns whether the pull request has moved on from the subject's head.
    pub(super) fn is_stale(&self, subject: &Subject) -> bool {
        let current = subject
            .change
            .and_then(|change| self.heads.get(&(subject.project.clone(), change)));
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
            &request.subject.project,
        ) {
            (LocalApproval::Own, by @ Actor::Local(_), Project::Local(_)) => Some(by),
            (LocalApproval::Own | LocalApproval::Required, _, _) => None,
        }
    }

    fn given(&self, subject: &Subject, now: Timestamp) -> Option<&Actor> {
        let approvals = self.approvals.get(&(subject.project.clone(), subject.change))?;
        let approval = approvals.get(subject)?;
        let counts = approval.policy == self.policy.digest
            && self.policy.approvers.contains(&approval.by)
            && approval.expires_at.is_none_or(|expires_at| now < expires_at);
        counts.then_some(&approval.by)
    }
}
