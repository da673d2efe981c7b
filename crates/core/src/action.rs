//! What the scheduler wants done.
//!
//! An action says everything needed to carry it out, and carrying it out twice does no harm.

use std::{collections::BTreeMap, sync::Arc};

use blueproof_queue::{Assignment, objects::ResourceFlavor};

use crate::{
    domain::{ApprovedHead, AttemptId, ClusterName, Job, PodSets, Priority, Resources, RunRequest},
    event::{Call, StopMode},
    view::RunView,
};

/// Something to be done through a port.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Ask for a place for an attempt; its quota is already promised.
    Reserve(Box<Reservation>),
    /// Start an attempt in its place.
    Start(Box<StartAction>),
    /// Have it told how a running attempt stands, from now on.
    Observe {
        /// The attempt.
        attempt: AttemptId,
        /// Where it is.
        cluster: ClusterName,
    },
    /// Ask an attempt to end.
    Stop {
        /// The attempt.
        attempt: AttemptId,
        /// Where it is.
        cluster: ClusterName,
        /// How.
        how: StopMode,
    },
    /// Remove what is left of an attempt.
    Release {
        /// The attempt.
        attempt: AttemptId,
        /// Where it is.
        cluster: ClusterName,
    },
    /// Write the report of a run that has ended.
    Report {
        /// The run as it stands.
        view: Box<RunView>,
        /// What was asked for.
        request: Arc<RunRequest>,
    },
}

/// All that is needed to make a place for an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Reservation {
    /// The attempt.
    pub attempt: AttemptId,
    /// The cluster that is asked.
    pub cluster: ClusterName,
    /// What it consists of, as it was asked for.
    pub pod_sets: PodSets,
    /// The flavors of which quota was assigned, as they are now: their labels say on which nodes its pods may be, and their
    /// tolerations are added to those of its pods.
    pub flavors: BTreeMap<String, ResourceFlavor>,
    /// The quota that it comes with, or is to get.
    pub quota: ReservedQuota,
}

/// Quota of an attempt for which a place is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum ReservedQuota {
    /// It is promised already: its queue, and the flavors of each pod set.
    Assigned(Assignment),
    /// The cluster decides when it gets any, and of which flavors.
    Requested(QuotaRequest),
}

/// What a cluster that admits workloads itself is told of one.
#[derive(Debug, Clone, PartialEq)]
pub struct QuotaRequest {
    /// The LocalQueue that it goes through, as it is known here; objects have its namespace.
    pub local_queue: String,
    /// The ClusterQueue behind it.
    pub cluster_queue: String,
    /// The higher, the earlier.
    pub priority: Priority,
}

impl Reservation {
    /// Returns what is reserved for all pods together of what every machine has.
    pub fn resources(&self) -> Resources {
        self.pod_sets.resources()
    }
}

/// All that is needed to start an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct StartAction {
    /// The attempt.
    pub attempt: AttemptId,
    /// The cluster on which it has its place.
    pub cluster: ClusterName,
    /// The head that somebody entitled approved.
    pub head: ApprovedHead,
    /// What was asked for.
    pub request: Arc<RunRequest>,
}

impl StartAction {
    /// Returns what is to be carried out.
    pub fn job(&self) -> &Job {
        &self.request.job
    }
}

impl Action {
    /// Returns the call that carries this out.
    pub fn call(&self) -> Call {
        match self {
            Action::Reserve(reservation) => Call::Reserve(reservation.attempt),
            Action::Start(start) => Call::Start(start.attempt),
            Action::Observe { attempt, .. } => Call::Observe(*attempt),
            Action::Stop { attempt, .. } => Call::Stop(*attempt),
            Action::Release { attempt, .. } => Call::Release(*attempt),
            Action::Report { view, .. } => Call::Report(view.id),
        }
    }
}
