//! Which content may run at all.
//!
//! Approvals are compared at three moments: when they arrive, at dispatch, and at start. Nothing else in the project
//! decides this.

mod expiry;
mod pull_requests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    approval::{
        Approval, ApprovalRefusal, Hold, HoldTarget, Lapse, LapsedApproval, RevocationReason,
        RevocationTarget,
    },
    domain::{Actor, ApprovedHead, BaseRef, Head, PullRequest, Repository, RunId, RunRequest, Subject},
    policy::{GatePolicy, LocalApproval},
};
use expiry::Expiry;
use pull_requests::{Openness, PullRequests};

/// Where content comes from: a folder or repository, and the pull request of it, where there is one.
pub(super) type Origin = (Repository, Option<u64>);

/// Returns where a subject's content comes from.
pub(super) fn origin(subject: &Subject) -> Origin {
    (subject.repository.clone(), subject.pull_request)
}

/// So many approvals of one origin are remembered that count no more, to be able to say why.
const LAPSED_REMEMBERED: usize = 32;

/// Remembers who approved what, and judges by the policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Gate {
    policy: GatePolicy,
    /// Who may approve beside those that the policy names, of one repository or of all.
    #[serde(with = "crate::pairs")]
    entitled: BTreeMap<Option<Repository>, BTreeSet<Actor>>,
    /// The digests of policies that repositories have themselves, each in place of the admin's.
    #[serde(with = "crate::pairs")]
    policies: BTreeMap<Repository, String>,
    /// By origin, so that a push to one leaves the others alone. Of each the one that changed last stands last.
    #[serde(with = "crate::pairs")]
    approvals: BTreeMap<Origin, Vec<Remembered>>,
    expiry: Expiry,
    pull_requests: PullRequests,
    #[serde(with = "crate::pairs")]
    held_runs: BTreeMap<RunId, Hold>,
}

/// An approval, and how it stopped counting, if it did.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Remembered {
    approval: Approval,
    lapse: Option<Lapse>,
}

impl Gate {
    pub(super) fn new(policy: GatePolicy) -> Self {
        Self {
            policy,
            entitled: BTreeMap::new(),
            policies: BTreeMap::new(),
            approvals: BTreeMap::new(),
            expiry: Expiry::default(),
            pull_requests: PullRequests::default(),
            held_runs: BTreeMap::new(),
        }
    }

    pub(super) fn set_policy(&mut self, policy: GatePolicy) {
        self.policy = policy;
    }

    /// Has these people, and no others beside those that the policy names, approve what a repository has, and under its own
    /// policy where it has one.
    pub(super) fn entitle(
        &mut self,
        repository: &Option<Repository>,
        approvers: &BTreeSet<Actor>,
        policy: &Option<String>,
    ) {
        self.entitled.insert(repository.clone(), approvers.clone());
        let Some(repository) = repository else {
            return;
        };
        match policy {
            Some(digest) => self.policies.insert(repository.clone(), digest.clone()),
            None => self.policies.remove(repository),
        };
    }

    /// Returns the digest of the repository's own policy.
    pub(super) fn own_policy_of(&self, repository: &Repository) -> Option<&str> {
        self.policies.get(repository).map(String::as_str)
    }

    /// Returns whether an approval was given under the policy that holds for its content.
    fn is_of_policy(&self, approval: &Approval) -> bool {
        let own = self.own_policy_of(&approval.target.repository);
        approval.policy == own.unwrap_or(&self.policy.digest)
    }

    /// Returns whether somebody may approve what a repository has.
    pub(super) fn is_entitled(&self, who: &Actor, repository: &Repository) -> bool {
        let named = |of: Option<&Repository>| {
            self.entitled
                .get(&of.cloned())
                .is_some_and(|approvers| approvers.contains(who))
        };
        self.policy.approvers.contains(who) || named(None) || named(Some(repository))
    }

    /// Returns whether an approval counts, under the policy that holds. One of a head that the pull request never had is
    /// kept: news of the push may be on its way.
    pub(super) fn judge(&self, approval: &Approval, now: Timestamp) -> Result<(), ApprovalRefusal> {
        let target = &approval.target;
        if !self.is_entitled(&approval.by, &target.repository) {
            return Err(ApprovalRefusal::NotEntitled);
        }
        if !self.is_of_policy(approval) {
            return Err(ApprovalRefusal::OtherPolicy);
        }
        if is_over(approval, now) {
            return Err(ApprovalRefusal::Expired);
        }
        let Some(number) = target.pull_request else {
            return Ok(());
        };
        let pull_request = PullRequest {
            repository: target.repository.clone(),
            number,
        };
        let Some(known) = self.pull_requests.get(&pull_request) else {
            return Ok(());
        };
        if known.openness == Openness::Closed {
            return Err(ApprovalRefusal::PullRequestClosed);
        }
        if known.hold.is_some() {
            return Err(ApprovalRefusal::Held);
        }
        if known.earlier_heads.contains(&target.head) {
            return Err(ApprovalRefusal::HeadChanged);
        }
        match known.base.as_ref() {
            Some(base) if target.base.as_ref() != Some(base) => Err(ApprovalRefusal::BaseChanged),
            Some(_) | None => Ok(()),
        }
    }

    /// Keeps an approval that counts, in place of the last of the same content by the same person.
    pub(super) fn approve(&mut self, approval: Approval) {
        let origin = origin_of(&approval);
        let of_origin = self.approvals.entry(origin.clone()).or_default();
        of_origin
            .retain(|known| known.approval.target != approval.target || known.approval.by != approval.by);
        of_origin.push(Remembered {
            approval,
            lapse: None,
        });
        self.forget_lapsed(&origin);
    }

    /// Takes note that an approval counts no more.
    pub(super) fn lapse(&mut self, approval: &Approval, lapse: Lapse) {
        let origin = origin_of(approval);
        let Some(of_origin) = self.approvals.get_mut(&origin) else {
            return;
        };
        let counts = |known: &Remembered| known.lapse.is_none() && known.approval == *approval;
        if let Some(at) = of_origin.iter().position(counts) {
            let mut lapsed = of_origin.remove(at);
            lapsed.lapse = Some(lapse);
            of_origin.push(lapsed);
        }
        self.forget_lapsed(&origin);
    }

    fn forget_lapsed(&mut self, origin: &Origin) {
        let Some(of_origin) = self.approvals.get_mut(origin) else {
            return;
        };
        let lapsed = of_origin.iter().filter(|known| known.lapse.is_some()).count();
        let mut forgotten = 0;
        of_origin.retain(|known| {
            let forgets = known.lapse.is_some() && lapsed - forgotten > LAPSED_REMEMBERED;
            forgotten += usize::from(forgets);
            !forgets
        });
        let counting = of_origin.iter().filter(|known| known.lapse.is_none());
        let expires_at = counting.filter_map(|known| known.approval.expires_at).min();
        self.expiry.set(origin, expires_at);
        if of_origin.is_empty() {
            self.approvals.remove(origin);
        }
    }

    /// Takes note of a pull request's new head. What was approved of its earlier ones counts no more, not even
    /// when the pull request goes back to one of them.
    pub(super) fn synchronize(&mut self, pull_request: &PullRequest, head: &Head, earlier: BTreeSet<Head>) {
        self.pull_requests.synchronize(pull_request, head, earlier);
        let origin = (pull_request.repository.clone(), Some(pull_request.number));
        if let Some(of_origin) = self.approvals.get_mut(&origin) {
            of_origin.retain(|known| known.approval.target.head == *head);
            self.forget_lapsed(&origin);
        }
    }

    /// Forgets a run, and not which head its pull request had: no later approval of that one counts.
    pub(super) fn forget(&mut self, run: RunId, subject: &Subject) {
        self.held_runs.remove(&run);
        self.pull_requests.keep_head(subject);
    }

    pub(super) fn change_base(&mut self, pull_request: &PullRequest, base: &BaseRef) {
        self.pull_requests.entry(pull_request).base = Some(base.clone());
    }

    pub(super) fn close(&mut self, pull_request: &PullRequest) {
        self.pull_requests.entry(pull_request).openness = Openness::Closed;
    }

    pub(super) fn reopen(&mut self, pull_request: &PullRequest) {
        self.pull_requests.entry(pull_request).openness = Openness::Open;
    }

    pub(super) fn hold(&mut self, hold: Hold) {
        match hold.target.clone() {
            HoldTarget::PullRequest(pull_request) => {
                self.pull_requests.entry(&pull_request).hold = Some(hold);
            }
            HoldTarget::Run(run) => {
                self.held_runs.insert(run, hold);
            }
        }
    }

    pub(super) fn resume(&mut self, target: &HoldTarget) {
        match target {
            HoldTarget::PullRequest(pull_request) => self.pull_requests.entry(pull_request).hold = None,
            HoldTarget::Run(run) => {
                self.held_runs.remove(run);
            }
        }
    }

    /// Returns the hold on exactly this.
    pub(super) fn hold_on(&self, target: &HoldTarget) -> Option<&Hold> {
        match target {
            HoldTarget::PullRequest(pull_request) => self.pull_requests.get(pull_request)?.hold.as_ref(),
            HoldTarget::Run(run) => self.held_runs.get(run),
        }
    }

    /// Returns the hold that keeps a run from starting: its pull request's, or its own.
    pub(super) fn hold_of(&self, run: RunId, subject: &Subject) -> Option<&Hold> {
        let of_pull_request = self
            .pull_requests
            .of(subject)
            .and_then(|known| known.hold.as_ref());
        of_pull_request.or_else(|| self.held_runs.get(&run))
    }

    /// Returns whether the pull request has moved on from the subject's head or base.
    pub(super) fn is_stale(&self, subject: &Subject) -> bool {
        let Some(known) = self.pull_requests.of(subject) else {
            return false;
        };
        let other_head = known.head.as_ref().is_some_and(|head| *head != subject.head);
        let bases = known.base.as_ref().zip(subject.base.as_ref());
        other_head || bases.is_some_and(|(base, of_subject)| base != of_subject)
    }

    /// Returns the approved head, if the run may start at `now`.
    pub(super) fn check(&self, run: RunId, request: &RunRequest, now: Timestamp) -> Option<ApprovedHead> {
        let subject = &request.subject;
        let is_closed = self
            .pull_requests
            .of(subject)
            .is_some_and(|known| known.openness == Openness::Closed);
        if is_closed || self.is_stale(subject) || self.hold_of(run, subject).is_some() {
            return None;
        }
        let by = self.approved_by(request, now)?;
        Some(ApprovedHead::new(subject.head.clone(), by.clone()))
    }

    /// Returns the approvals of a head in pull requests of a repository that were not revoked and have not expired.
    pub(super) fn approvals_of_head<'a>(
        &'a self,
        repository: &'a Repository,
        head: &'a Head,
    ) -> impl Iterator<Item = &'a Approval> {
        let origins = (repository.clone(), Some(0))..=(repository.clone(), Some(u64::MAX));
        let of_pull_requests = self.approvals.range(origins).flat_map(|(_, known)| known);
        let counting = of_pull_requests.filter(|known| known.lapse.is_none());
        counting
            .map(|known| &known.approval)
            .filter(|approval| approval.target.head == *head)
    }

    /// Returns whether a pull request is not known to have another head.
    pub(super) fn may_have_head(&self, pull_request: &PullRequest, head: &Head) -> bool {
        let known = self.pull_requests.get(pull_request);
        known.is_none_or(|known| known.head.as_ref().is_none_or(|now| now == head))
    }

    /// Returns who approved what is asked for, whether or not it may start now.
    pub(super) fn approved_by<'a>(&'a self, request: &'a RunRequest, now: Timestamp) -> Option<&'a Actor> {
        self.own(request).or_else(|| self.given(request, now))
    }

    /// Returns the user of this machine who asks for a run of a folder of this machine, where that is enough.
    fn own<'a>(&self, request: &'a RunRequest) -> Option<&'a Actor> {
        let by = &request.requested_by;
        self.owns(by, &request.subject.repository).then_some(by)
    }

    /// Returns whether somebody may let run what a repository has: it is theirs, or they are entitled.
    pub(super) fn may_approve(&self, who: &Actor, repository: &Repository) -> bool {
        self.is_entitled(who, repository) || self.owns(who, repository)
    }

    /// Returns whether somebody needs nobody else's approval of what a folder of this machine has.
    pub(super) fn owns(&self, who: &Actor, repository: &Repository) -> bool {
        match (&self.policy.local, who, repository) {
            (LocalApproval::Own, Actor::Local(_), Repository::Local(_)) => true,
            (LocalApproval::Own | LocalApproval::Required, _, _) => false,
        }
    }

    fn given(&self, request: &RunRequest, now: Timestamp) -> Option<&Actor> {
        let subject = &request.subject;
        let of_origin = self.approvals.get(&origin(subject))?;
        let base = self
            .pull_requests
            .of(subject)
            .and_then(|known| known.base.as_ref());
        let counts = |known: &&Remembered| {
            let approval = &known.approval;
            known.lapse.is_none()
                && approval.target.has_head_of(subject)
                && approval.target.has_base_of(subject)
                && base.is_none_or(|base| approval.target.base.as_ref() == Some(base))
                && self.is_of_policy(approval)
                && !is_own(request, &approval.by)
                && self.is_entitled(&approval.by, &subject.repository)
                && !is_over(approval, now)
                // The last, because it reads the whole job.
                && approval.target.scope.has_job(request)
        };
        of_origin
            .iter()
            .rev()
            .find(counts)
            .map(|known| &known.approval.by)
    }

    /// Returns the approval of what is asked for that was the last to stop counting, where none counts.
    pub(super) fn lapsed(&self, request: &RunRequest) -> Option<LapsedApproval> {
        let subject = &request.subject;
        let of_origin = self.approvals.get(&origin(subject))?;
        let mut covering = of_origin
            .iter()
            .filter(|known| known.approval.target.has_head_of(subject));
        let last = covering.next_back()?;
        let lapse = match &last.lapse {
            Some(lapse) => lapse.clone(),
            None if !self.is_of_policy(&last.approval) => Lapse::OtherPolicy,
            None if !last.approval.target.scope.has_job(request) => Lapse::OtherJob,
            None => return None,
        };
        Some(LapsedApproval {
            approved_by: last.approval.by.clone(),
            lapse,
        })
    }

    /// Returns whether each approval of a subject has stopped counting, of which `by` had given one, and the last that did was
    /// revoked.
    pub(super) fn is_revoked(&self, subject: &Subject, by: &Actor) -> bool {
        let of_origin = self.approvals.get(&origin(subject)).into_iter().flatten();
        let covering = of_origin.filter(|known| known.approval.target.has_head_of(subject));
        if !covering.clone().any(|known| known.approval.by == *by) {
            return false;
        }
        let lapses: Option<Vec<_>> = covering.map(|known| known.lapse.as_ref()).collect();
        match lapses.as_deref() {
            Some([.., Lapse::Revoked { .. }]) => true,
            Some([] | [.., Lapse::Expired { .. } | Lapse::OtherPolicy | Lapse::OtherJob]) | None => false,
        }
    }

    /// Returns when the next approval expires.
    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.expiry.next()
    }

    /// Returns the approvals that count, and whose time is over.
    pub(super) fn expired(&self, now: Timestamp) -> Vec<Approval> {
        let due = self
            .expiry
            .due(now)
            .filter_map(|origin| self.approvals.get(origin));
        let counting = due.flatten().filter(|known| known.lapse.is_none());
        let approvals = counting.map(|known| &known.approval);
        approvals
            .filter(|approval| is_over(approval, now))
            .cloned()
            .collect()
    }

    /// Returns the approvals of heads that a pull request does not have any more once it has this one.
    pub(super) fn of_other_heads(&self, pull_request: &PullRequest, head: &Head) -> Vec<Approval> {
        let of_others = |approval: &Approval| approval.target.head != *head;
        self.counting_of(
            &(pull_request.repository.clone(), Some(pull_request.number)),
            of_others,
        )
    }

    /// Returns the approvals of a pull request for another base than it has.
    pub(super) fn of_other_bases(&self, pull_request: &PullRequest, base: &BaseRef) -> Vec<Approval> {
        let of_others = |approval: &Approval| approval.target.base.as_ref() != Some(base);
        self.counting_of(
            &(pull_request.repository.clone(), Some(pull_request.number)),
            of_others,
        )
    }

    /// Returns the approvals of a pull request.
    pub(super) fn of_pull_request(&self, pull_request: &PullRequest) -> Vec<Approval> {
        self.counting_of(
            &(pull_request.repository.clone(), Some(pull_request.number)),
            |_| true,
        )
    }

    /// Returns the approvals that somebody names.
    pub(super) fn named(&self, target: &RevocationTarget) -> Vec<Approval> {
        let of_head = |approval: &Approval| {
            target
                .head
                .as_ref()
                .is_none_or(|head| *head == approval.target.head)
        };
        self.counting_of(&(target.repository.clone(), target.pull_request), of_head)
    }

    /// Returns the approvals by those who may approve no more.
    pub(super) fn of_unentitled(&self) -> Vec<Approval> {
        let counting = self
            .approvals
            .values()
            .flatten()
            .filter(|known| known.lapse.is_none());
        let approvals = counting.map(|known| &known.approval);
        let unentitled = |approval: &&Approval| !self.is_entitled(&approval.by, &approval.target.repository);
        approvals.filter(unentitled).cloned().collect()
    }

    fn counting_of(&self, origin: &Origin, wanted: impl Fn(&Approval) -> bool) -> Vec<Approval> {
        let of_origin = self.approvals.get(origin).into_iter().flatten();
        let counting = of_origin.filter(|known| known.lapse.is_none());
        let approvals = counting.map(|known| &known.approval);
        approvals.filter(|approval| wanted(approval)).cloned().collect()
    }
}

/// Returns how an approval lapses that is revoked.
pub(super) fn revoked(reason: RevocationReason, by: Option<&Actor>, at: Timestamp) -> Lapse {
    Lapse::Revoked {
        reason,
        by: by.cloned(),
        at,
    }
}

/// Returns whether somebody's approval of what is asked for would be of their own content. Where a request for a pull request
/// names no author, it is taken for whoever makes it.
pub(super) fn is_own(request: &RunRequest, who: &Actor) -> bool {
    let author = match (&request.author, request.subject.pull_request) {
        (Some(author), _) => Some(author),
        (None, Some(_)) => Some(&request.requested_by),
        (None, None) => None,
    };
    author == Some(who)
}

/// Returns where the content of an approval comes from.
pub(super) fn origin_of(approval: &Approval) -> Origin {
    (approval.target.repository.clone(), approval.target.pull_request)
}

fn is_over(approval: &Approval, now: Timestamp) -> bool {
    approval.expires_at.is_some_and(|expires_at| expires_at <= now)
}
