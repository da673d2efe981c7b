//! What there is of a job that has its quota, as its retry machine sees it.
//!
//! A job is one component with pods. It is created in no time; all of its pods are put on nodes, or none, as a gang
//! scheduler does. Of pods that are alike the machine is shown one: one for each node, and one for those on no node.

use std::collections::BTreeSet;

use blueproof_queue::Quantity;
use jiff::{SignedDuration, Timestamp};

use super::{Job, nodes::Nodes};
use crate::retry::{
    Component, DesiredState, Machine, ObservedState, Phase, Pod, PodPhase, PodsReady, Quota, Reason, Step,
};

/// What there is of a job, and its machine.
#[derive(Debug, Default)]
pub(super) struct Deployment {
    pub(super) machine: Machine,
    pub(super) wanted: DesiredState,
    pub(super) pods: Pods,
    /// When the machine looks again.
    pub(super) look_at: Option<SignedDuration>,
}

/// How far the pods are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Pods {
    /// There are none.
    #[default]
    None,
    /// They wait for room on the nodes since then.
    Pending { since: SignedDuration },
    /// They run, and the work will be done then.
    Running { until: SignedDuration },
    /// One of them has failed.
    Failed { exit_code: i32 },
    /// They have done their work.
    Succeeded,
    /// They are being deleted, and will be gone then.
    Leaving { until: SignedDuration },
}

/// Where a look leads to that is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is deleted and created again.
    Reset(Reason),
    /// It is given up.
    Failed(Reason),
}

impl Deployment {
    /// Lets the machine look. Returns what it says, and where it went if that is told.
    pub(super) fn observe(
        &mut self,
        now: Timestamp,
        number: usize,
        job: &Job,
        nodes: &Nodes,
    ) -> (Step, Option<Turn>) {
        let before = self.machine.phase();
        let seen = self.seen(number, job, nodes);
        let step = self.machine.observe(now, &job.retry, &seen);
        let turn = match (self.machine.phase(), self.machine.reason()) {
            (phase, _) if phase == before => None,
            (Phase::Resetting, Some(reason)) => Some(Turn::Reset(reason)),
            (Phase::Failed, Some(reason)) => Some(Turn::Failed(reason)),
            _ => None,
        };
        (step, turn)
    }

    /// Returns whether it no longer needs its quota.
    pub(super) fn is_released(&self) -> bool {
        self.machine.quota() == Quota::Released
    }

    /// Returns whether all of its pods run.
    pub(super) fn is_well(&self) -> bool {
        self.machine.pods_ready() == PodsReady::Ready && self.machine.reason().is_none()
    }

    fn seen(&self, number: usize, job: &Job, nodes: &Nodes) -> ObservedState {
        let resources = resources(job);
        let on = |phase| {
            let places = nodes.of(number).map(Some).chain([None]);
            let pods = places.map(|node| pod(phase, node, &resources));
            pods.collect::<Vec<_>>()
        };
        let (component, pods) = match self.pods {
            Pods::None => (Component::Missing, Vec::new()),
            Pods::Pending { .. } => (Component::Deployed, on(PodPhase::Pending)),
            Pods::Running { .. } => (Component::Deployed, on(PodPhase::Running)),
            Pods::Failed { exit_code } => {
                let mut pods = on(PodPhase::Running);
                pods.push(Pod {
                    exit_codes: vec![exit_code],
                    ..pod(PodPhase::Failed, None, &resources)
                });
                (Component::Deployed, pods)
            }
            Pods::Succeeded => (Component::Deployed, on(PodPhase::Succeeded)),
            Pods::Leaving { .. } => (Component::Deleting, on(PodPhase::Leaving)),
        };
        let bad = nodes.failed().map(|node| (node.to_owned(), resources.clone()));
        ObservedState {
            wanted: self.wanted,
            components: vec![component],
            expected_pods: pods.len(),
            pods,
            no_execute: bad.collect(),
        }
    }
}

fn pod(phase: PodPhase, node: Option<&str>, resources: &BTreeSet<String>) -> Pod {
    Pod {
        phase,
        node: node.map(str::to_owned),
        resources: resources.clone(),
        exit_codes: Vec::new(),
    }
}

/// Returns the resources that any of its pods asks for.
fn resources(job: &Job) -> BTreeSet<String> {
    let requests = job.pod_sets.iter().flat_map(|set| &set.requests);
    let asked = requests.filter(|(_, amount)| **amount > Quantity::ZERO);
    asked.map(|(resource, _)| resource.clone()).collect()
}
