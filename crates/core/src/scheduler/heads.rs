//! What is told to those who carry out content beside the queue: whether a head is approved, and what the queue leaves them.
//!
//! It is the gate's own judgement, by which runs start as well. Nothing is decided or noted here.

use jiff::Timestamp;

use super::{Scheduler, gate};
use crate::{
    approval::{Approval, ApprovalRefusal, HeadRefusal, HeadStatus},
    domain::{Head, PullRequest, QueueName, Repository, Resources, Zeros, requests},
};

impl Scheduler {
    /// Returns whether a head of a pull request may be carried out now. A head that no pull request is known to have may not.
    pub fn head_status(&self, repository: &Repository, head: &Head, now: Timestamp) -> HeadStatus {
        let mut refusal = HeadRefusal::NotApproved;
        for approval in self.gate.approvals_of_head(repository, head) {
            match self.judge_head(approval, now) {
                Ok(pull_request) => {
                    return HeadStatus::Approved {
                        pull_request,
                        by: approval.by.clone(),
                        expires_at: approval.expires_at,
                    };
                }
                Err(other) => refusal = other,
            }
        }
        HeadStatus::Refused(refusal)
    }

    fn judge_head(&self, approval: &Approval, now: Timestamp) -> Result<u64, HeadRefusal> {
        let target = &approval.target;
        let number = target.pull_request.ok_or(HeadRefusal::NotApproved)?;
        self.gate.judge(approval, now).map_err(HeadRefusal::from)?;
        let pull_request = PullRequest {
            repository: target.repository.clone(),
            number,
        };
        if !self.gate.may_have_head(&pull_request, &target.head) {
            return Err(HeadRefusal::NoLongerHead);
        }
        let origin = gate::origin_of(approval);
        let of_origin = self.by_origin.get(&origin).into_iter().flatten();
        let mut of_head = of_origin
            .map(|run| &self.runs[run].request)
            .filter(|request| target.has_head_of(&request.subject));
        match of_head.any(|request| gate::is_own(request, &approval.by)) {
            true => Err(HeadRefusal::NotApproved),
            false => Ok(number),
        }
    }

    /// Returns how many more workloads of this size a LocalQueue could admit now without evicting anybody, with so much taken of each
    /// flavor `beside` what the queue knows of; `None` where it is not there, or admits nobody.
    pub fn room_for(&self, queue: &QueueName, asked: Resources, beside: Resources) -> Option<u32> {
        let queues = self.queue.queues();
        let (_, local) = queues.local_queue(queue.as_str())?;
        let name = &local.cluster_queue;
        if queues.inactive(name).ok()?.is_some() {
            return None;
        }
        let objects = queues.objects();
        let cluster_queue = objects.cluster_queues.get(name)?;
        let (asked, beside) = (requests(asked, Zeros::LeftOut), requests(beside, Zeros::Kept));
        let mut room = u32::MAX;
        let mut n_covered = 0;
        for group in &cluster_queue.resource_groups {
            let covered = group.covered_resources();
            let of_group: Vec<_> = asked
                .iter()
                .filter(|(resource, _)| covered.contains(resource.as_str()))
                .collect();
            if of_group.is_empty() {
                continue;
            }
            n_covered += of_group.len();
            let fits = |flavor: &str| {
                let times = of_group.iter().map(|(resource, amount)| {
                    let taken = beside.get(*resource).map_or(0, |taken| taken.0);
                    let free = queues.available(name, flavor, resource).map_or(0, |free| free.0);
                    let free = free.saturating_sub(taken);
                    u32::try_from(free.max(0) / amount.0.max(1)).unwrap_or(u32::MAX)
                });
                times.min().unwrap_or(0)
            };
            // A workload takes all that it needs of a group from one flavor. Runners tolerate no taints.
            let flavors = group.flavors.iter().filter(|flavor| {
                let known = objects.flavors.get(&flavor.name);
                known.is_some_and(|known| known.node_taints.is_empty())
            });
            let in_all = flavors.fold(0u32, |sum, flavor| sum.saturating_add(fits(&flavor.name)));
            room = room.min(in_all);
        }
        // What no group covers the queue never gives out.
        Some(if n_covered == asked.len() { room } else { 0 })
    }
}

impl From<ApprovalRefusal> for HeadRefusal {
    fn from(refusal: ApprovalRefusal) -> Self {
        match refusal {
            ApprovalRefusal::Held => Self::Held,
            ApprovalRefusal::PullRequestClosed
            | ApprovalRefusal::HeadChanged
            | ApprovalRefusal::BaseChanged => Self::NoLongerHead,
            ApprovalRefusal::NotEntitled
            | ApprovalRefusal::OtherPolicy
            | ApprovalRefusal::Expired
            | ApprovalRefusal::OwnPullRequest => Self::NotApproved,
        }
    }
}
