//! Why a run is where it is, and what would take it further, as it is told and stored.
//!
//! What is worked out stands in the scheduler; here are the words and figures that come of it. Lists are bounded, so that a
//! run's row stays small however many others wait.

mod inactive;
mod isolation;

use std::{collections::BTreeMap, fmt};

use blueproof_queue::{
    Obstacle, ObstacleReason, Quantity, QuotaIncrease, Remedy, UserUsage, WaitReason, WorkloadId,
    amount_in_words,
    words::{cancelled_in_words, ends_in_words, raises_in_words, then_in_words},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    approval::{Hold, LapsedApproval},
    domain::{Amounts, BackOff, Resources, RunId},
};

/// How many are named of those who are before a run.
pub const NAMED: usize = 8;

/// The one reason why a run waits. Those of a run that waits for quota are Kueue's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
pub enum PendingReason {
    /// Nobody entitled has approved this head, or what was approved counts no more.
    AwaitingApproval {
        /// The approval that was the last to stop counting.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lapsed: Option<Box<LapsedApproval>>,
        /// The digest of the repository's own policy, under which it has to be approved; the admin's where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<String>,
    },
    /// It is held, or its pull request is.
    Held(Box<Hold>),
    /// It is approved, and its cluster does not keep content of strangers apart.
    WaitingForIsolation(Box<IsolationPending>),
    /// It would fit; others go first.
    PendingEvaluation(Box<Queued>),
    /// Those who make room for it have not left yet.
    WaitingForPreemptedWorkloads(Box<Queued>),
    /// There is not enough quota left.
    WaitingForQuota(Box<Queued>),
    /// It asks for more than its queue could ever have.
    ExceedsMaxQuota(Box<Queued>),
    /// No flavor of its queue is for it.
    NoMatchingFlavor(Box<Queued>),
    /// Its queue is stopped.
    Suspended(Box<Queued>),
    /// Its queue is not there, or cannot admit anybody as it is configured.
    Misconfigured(Box<Queued>),
    /// Its cluster decides about quota in its queue, and has not given it any yet.
    WaitingForAdmission(AdmissionPending),
    /// It was tried, and is tried again later.
    BackingOff(BackOff),
    /// It may be tried again once nothing is left of its last attempt.
    WaitingForRelease,
    /// Quota is promised and a place is being made.
    BeingPlaced,
    /// Quota is promised, and its cluster says why it has no place yet.
    WaitingForPlace(PlacePending),
    /// It has a place; environment and kernel are being started.
    BeingStarted,
}

pub use inactive::InactiveQueue;
pub use isolation::IsolationPending;

/// How a run stands in its queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Queued {
    /// What it asks for.
    pub asked: Resources,
    /// What it asks for of further resources, by their Kubernetes names, in Kueue's units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub further_asked: BTreeMap<String, Quantity>,
    /// What its queue has of each of its flavors, of what is asked for, the flavors as they are tried.
    pub flavors: Vec<FlavorRoom>,
    /// The first few of those who wait before it, the first one first.
    pub ahead: Vec<RunId>,
    /// How many wait before it in all; absent where that was not counted yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_ahead: Option<usize>,
    /// Who waits right before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ahead: Option<RunId>,
    /// What is missing, flavor by flavor.
    pub obstacles: Vec<Obstacle>,
    /// Whether it could be admitted were nobody else there.
    pub can_ever_fit: bool,
    /// Why its queue admits nobody, if so: each name that is missing, and who is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inactive: Option<InactiveQueue>,
    /// The run at the head of its queue, where that is a StrictFIFO queue and the head is another: nobody is admitted
    /// before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict_head: Option<RunId>,
    /// That this head can never fit as its queue is: whoever is behind it waits until it is cancelled, or there is more
    /// quota.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub head_never_fits: bool,
    /// What its user and those before it had lately, where its ClusterQueue goes by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageOrder>,
}

/// What a queue has of a resource in a flavor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FlavorRoom {
    /// The resource group, by its place in the ClusterQueue. A pod set has one flavor of a group.
    pub group: usize,
    /// The flavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// How much the queue could have now, in Kueue's units.
    pub free: Quantity,
    /// How much it could have were nobody else there.
    pub most: Quantity,
}

/// Whom a run comes after because they had less lately: Kueue's UsageBasedAdmissionFairSharing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UsageOrder {
    /// The run's own user: its LocalQueue, or whom that tells apart.
    pub own: UserUsage,
    /// The first few of the others that had less and have runs waiting, the least first.
    pub less: Vec<LessUsage>,
    /// How many of them there are in all.
    #[serde(default)]
    pub n_less: usize,
}

/// A user that had less lately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LessUsage {
    /// What it had.
    #[serde(flatten)]
    pub of: UserUsage,
    /// The first few of its runs that wait, the first one first.
    pub runs: Vec<RunId>,
}

/// Why an attempt waits for a place, as its cluster says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlacePending {
    /// In the cluster's own word.
    pub cluster_reason: String,
    /// In words.
    pub message: String,
}

/// How a run waits for quota about which its cluster decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AdmissionPending {
    /// The ClusterQueue.
    pub cluster_queue: String,
    /// Why it waits, as the cluster says; absent until it says anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<PlacePending>,
}

/// A change that gets a run admitted, and was tried on a copy of the queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunRemedy {
    /// Those who were told to go have left.
    Time,
    /// These end. None can be left out.
    Ends {
        /// Which of those that hold quota, the longest running first.
        runs: Vec<RunId>,
        /// Which of those that wait: they are admitted first, and end too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pending: Vec<RunId>,
    },
    /// Enough of those that hold quota, and of those that go first, end; it takes too long to find out which.
    InTurn,
    /// Its queue has so much more quota of its own, of all of these.
    MoreQuota {
        /// Of what; none can be left out, and none be less.
        #[serde(alias = "raises")]
        increases: Vec<QuotaIncrease>,
    },
    /// These, which are before it and can never fit, are cancelled, and then one of the others comes to pass, if there are
    /// any.
    Cancelled {
        /// Which; none can be left out.
        runs: Vec<RunId>,
        /// What has to come after it; any one of these. Where nothing does, that they are cancelled is enough.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        then: Vec<RunRemedy>,
    },
    /// Its queues, which are stopped, admit again, and then one of the others comes to pass, if there are any.
    Resumed {
        /// Which are stopped; none can be left out.
        stopped: Vec<InactiveQueue>,
        /// What has to come after it; any one of these. Where nothing does, that they admit again is enough.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        then: Vec<RunRemedy>,
    },
}

impl From<blueproof_queue::UsageOrder> for UsageOrder {
    fn from(order: blueproof_queue::UsageOrder) -> Self {
        let n_less = order.less.len();
        let few = |workloads: Vec<WorkloadId>| runs(workloads.into_iter().take(NAMED).collect());
        let less = order
            .less
            .into_iter()
            .take(NAMED)
            .map(|(of, workloads)| LessUsage {
                of,
                runs: few(workloads),
            });
        Self {
            n_less,
            own: order.own,
            less: less.collect(),
        }
    }
}

pub(crate) fn runs(workloads: Vec<WorkloadId>) -> Vec<RunId> {
    workloads.into_iter().map(|id| RunId(id.0)).collect()
}

impl From<Remedy> for RunRemedy {
    fn from(unblock: Remedy) -> Self {
        match unblock {
            Remedy::Time => Self::Time,
            Remedy::Ends { workloads, pending } => Self::Ends {
                runs: runs(workloads),
                pending: runs(pending),
            },
            Remedy::InTurn => Self::InTurn,
            Remedy::MoreQuota { increases } => Self::MoreQuota { increases },
            Remedy::Cancelled { workloads, then } => Self::Cancelled {
                runs: runs(workloads),
                then: then.into_iter().map(Self::from).collect(),
            },
        }
    }
}

impl Queued {
    /// Returns all that it asks for, to be told in words.
    pub(crate) fn all_asked(&self) -> Amounts<'_> {
        Amounts {
            resources: self.asked,
            further: &self.further_asked,
        }
    }

    /// Says how many wait before it, if that was counted.
    fn before(&self) -> Option<String> {
        Some(format!("{} before it in the queue", self.n_ahead?))
    }

    /// Says who goes first where it would fit.
    fn turn_in_words(&self) -> String {
        let Some(head) = self.strict_head else {
            return self.before().unwrap_or_else(|| "it is to be tried".into());
        };
        let before = self
            .before()
            .map_or_else(|| "it is in a queue, ".into(), |before| format!("{before}, "));
        let never = if self.head_never_fits {
            ", which can never fit"
        } else {
            ""
        };
        format!("{before}which is StrictFIFO: nobody is admitted before {head}, its head{never}")
    }

    /// Returns what it takes until it is the run's turn, in general and without a full stop.
    fn turn(&self) -> String {
        let asked = self.all_asked();
        let head = self.strict_head.filter(|_| self.head_never_fits);
        match (head, self.last_ahead) {
            (Some(head), _) => format!("{head}, which can never fit, is cancelled, and {asked} are free"),
            (None, Some(run)) => {
                format!("{run}, which is before it, has been admitted, and {asked} are free")
            }
            (None, None) if self.n_ahead.is_none() => {
                format!("whoever is before it has been admitted, and {asked} are free")
            }
            (None, None) => format!("a running attempt ends, so that {asked} are free"),
        }
    }
}

impl PendingReason {
    /// Returns the digest of the repository's own policy, where it waits for an approval under one.
    pub fn own_policy(&self) -> Option<&str> {
        let Self::AwaitingApproval { policy, .. } = self else {
            return None;
        };
        policy.as_deref()
    }

    /// Returns the reason of one that waits in a queue.
    pub(crate) fn in_queue(reason: WaitReason, queued: Queued) -> Self {
        let queued = Box::new(queued);
        match reason {
            WaitReason::PendingEvaluation => Self::PendingEvaluation(queued),
            WaitReason::WaitingForPreemptedWorkloads => Self::WaitingForPreemptedWorkloads(queued),
            WaitReason::WaitingForQuota => Self::WaitingForQuota(queued),
            WaitReason::ExceedsMaxQuota => Self::ExceedsMaxQuota(queued),
            WaitReason::NoMatchingFlavor => Self::NoMatchingFlavor(queued),
            WaitReason::Suspended => Self::Suspended(queued),
            WaitReason::Misconfigured => Self::Misconfigured(queued),
        }
    }

    /// Returns Kueue's word for the reason and how the run stands in its queue, if it waits there.
    pub fn queued(&self) -> Option<(WaitReason, &Queued)> {
        match self {
            Self::PendingEvaluation(queued) => Some((WaitReason::PendingEvaluation, queued)),
            Self::WaitingForPreemptedWorkloads(queued) => {
                Some((WaitReason::WaitingForPreemptedWorkloads, queued))
            }
            Self::WaitingForQuota(queued) => Some((WaitReason::WaitingForQuota, queued)),
            Self::ExceedsMaxQuota(queued) => Some((WaitReason::ExceedsMaxQuota, queued)),
            Self::NoMatchingFlavor(queued) => Some((WaitReason::NoMatchingFlavor, queued)),
            Self::Suspended(queued) => Some((WaitReason::Suspended, queued)),
            Self::Misconfigured(queued) => Some((WaitReason::Misconfigured, queued)),
            Self::AwaitingApproval { .. }
            | Self::Held(_)
            | Self::WaitingForIsolation(_)
            | Self::WaitingForAdmission(_)
            | Self::BackingOff(_)
            | Self::WaitingForRelease
            | Self::BeingPlaced
            | Self::WaitingForPlace(_)
            | Self::BeingStarted => None,
        }
    }

    /// Returns the reason in a word: Kueue's where the run waits in a queue, and its cluster's where that decides.
    pub fn as_str(&self) -> &str {
        match self {
            Self::AwaitingApproval { .. } => "AwaitingApproval",
            Self::Held(_) => "Held",
            Self::WaitingForIsolation(_) => "WaitingForIsolation",
            Self::PendingEvaluation(_) => "PendingEvaluation",
            Self::WaitingForPreemptedWorkloads(_) => "WaitingForPreemptedWorkloads",
            Self::WaitingForQuota(_) => "WaitingForQuota",
            Self::ExceedsMaxQuota(_) => "ExceedsMaxQuota",
            Self::NoMatchingFlavor(_) => "NoMatchingFlavor",
            Self::Suspended(_) => "Suspended",
            Self::Misconfigured(_) => "Misconfigured",
            Self::WaitingForAdmission(AdmissionPending { pending, .. }) => pending
                .as_ref()
                .map_or("WaitingForAdmission", |pending| &pending.cluster_reason),
            Self::BackingOff(_) => "BackingOff",
            Self::WaitingForRelease => "WaitingForRelease",
            Self::BeingPlaced => "BeingPlaced",
            Self::WaitingForPlace(_) => "WaitingForPlace",
            Self::BeingStarted => "BeingStarted",
        }
    }

    /// Returns what is missing in the flavor that is tried first, as briefly as can be: `1 cpu, 4Gi memory`; empty where
    /// nothing is.
    pub fn shortfall(&self) -> String {
        let obstacles = self.queued().map_or(&[][..], |(_, queued)| &queued.obstacles);
        let of_first = obstacles.iter().filter(|one| one.flavor == obstacles[0].flavor);
        let missing = of_first.filter_map(|obstacle| match &obstacle.why {
            ObstacleReason::Uncovered { resource } => Some(resource.clone()),
            ObstacleReason::Mismatch { .. } => None,
            ObstacleReason::Short {
                resource,
                asked,
                available,
                ..
            } => Some(format!(
                "{} {resource}",
                amount_in_words(resource, asked.minus(*available))
            )),
        });
        missing.collect::<Vec<_>>().join(", ")
    }

    /// Returns what would end the wait, in general and without a full stop; [`Scheduler::unblocked_by`](crate::scheduler::Scheduler::unblocked_by) is exact.
    pub fn unblocked_by(&self) -> String {
        match self {
            Self::AwaitingApproval { .. } => "a maintainer approves this head".into(),
            Self::Held(hold) => format!("{}, or a maintainer, resumes it", hold.by),
            Self::WaitingForIsolation(pending) => {
                format!("{} can run the code of pull requests apart", pending.cluster)
            }
            Self::PendingEvaluation(queued) | Self::WaitingForQuota(queued) => queued.turn(),
            Self::WaitingForPreemptedWorkloads(_) => "those who make room for it have left".into(),
            Self::ExceedsMaxQuota(queued) => format!(
                "its queue could have {}, and there is room for it then",
                queued.all_asked()
            ),
            Self::NoMatchingFlavor(_) => "its queue has a flavor that is for it".into(),
            // Nobody knows what there is room for then.
            Self::Suspended(queued) | Self::Misconfigured(queued) => match &queued.inactive {
                Some(inactive) => format!("{}, and there is room for it then", inactive.remedy()),
                None => "its queue admits again, and there is room for it then".into(),
            },
            Self::WaitingForAdmission(_) => "its cluster admits it".into(),
            Self::BackingOff(back_off) => format!("it is tried again at {}", to_the_second(back_off.until)),
            Self::WaitingForRelease => "the last attempt's place is given back".into(),
            Self::BeingPlaced | Self::WaitingForPlace(_) => "the driver has made a place".into(),
            Self::BeingStarted => "environment and kernel are ready".into(),
        }
    }
}

impl BackOff {
    /// Says how it is tried again, with the time as it was put into words for whoever reads it.
    pub fn told(&self, until: &str) -> String {
        let Self {
            requeues, at_most, ..
        } = self;
        format!("waits until {until} before its next attempt, retry {requeues} of at most {at_most}")
    }
}

fn to_the_second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl fmt::Display for PendingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AwaitingApproval { lapsed: None, .. } => {
                f.write_str("no maintainer has approved this head yet")
            }
            Self::AwaitingApproval {
                lapsed: Some(lapsed), ..
            } => lapsed.fmt(f),
            Self::Held(hold) => write!(f, "{} holds {}", hold.by, hold.target),
            Self::WaitingForIsolation(pending) => pending.fmt(f),
            Self::PendingEvaluation(queued) => f.write_str(&queued.turn_in_words()),
            Self::WaitingForQuota(queued) => write!(
                f,
                "asks for {}; {}{}",
                queued.all_asked(),
                free_in_words(&queued.flavors),
                queued
                    .before()
                    .map_or_else(String::new, |before| format!("; {before}"))
            ),
            Self::WaitingForPreemptedWorkloads(_) => {
                f.write_str("those who make room for it have not left yet")
            }
            Self::ExceedsMaxQuota(queued) => write!(
                f,
                "asks for {}, more than its queue could ever have: {}",
                queued.all_asked(),
                rooms_in_words(&queued.flavors, |room| room.most)
            ),
            Self::NoMatchingFlavor(_) => f.write_str("no flavor of its queue is for it"),
            Self::Suspended(queued) | Self::Misconfigured(queued) => match &queued.inactive {
                Some(inactive) => inactive.fmt(f),
                None => f.write_str("its queue admits nobody"),
            },
            Self::WaitingForAdmission(pending) => pending.fmt(f),
            Self::BackingOff(back_off) => f.write_str(&back_off.told(&to_the_second(back_off.until))),
            Self::WaitingForRelease => f.write_str("its last attempt is being cleared away"),
            Self::BeingPlaced => f.write_str("quota is promised; a place is being made"),
            Self::WaitingForPlace(PlacePending {
                cluster_reason,
                message,
            }) => {
                write!(
                    f,
                    "quota is promised; its cluster has no place yet: {message} ({cluster_reason})"
                )
            }
            Self::BeingStarted => f.write_str("environment and kernel are being started"),
        }
    }
}

impl fmt::Display for AdmissionPending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "its cluster decides about the ClusterQueue {}",
            self.cluster_queue
        )?;
        match &self.pending {
            Some(pending) => write!(f, ": {} ({})", pending.message, pending.cluster_reason),
            None => f.write_str(", and has not answered yet"),
        }
    }
}

impl fmt::Display for RunRemedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time => f.write_str("those who were told to go have left"),
            Self::Ends { runs, pending } => f.write_str(&ends_in_words(runs, pending)),
            Self::InTurn => f.write_str("enough of the runs with quota, and of those before it, have ended"),
            Self::MoreQuota { increases } => write!(f, "its queue has {}", raises_in_words(increases)),
            Self::Resumed { stopped, then } => {
                let stopped: Vec<String> = stopped.iter().map(InactiveQueue::remedy).collect();
                write!(f, "{}{}", stopped.join(" and "), then_in_words(then))
            }
            Self::Cancelled { runs, then } => {
                write!(f, "{}{}", cancelled_in_words(runs), then_in_words(then))
            }
        }
    }
}

/// Says what is free of each flavor, without a full stop.
pub(crate) fn free_in_words(rooms: &[FlavorRoom]) -> String {
    if rooms.is_empty() {
        return "its queue has none of that".into();
    }
    format!("free are {}", rooms_in_words(rooms, |room| room.free))
}

/// Says how much there is of each flavor; flavors of a group are alternatives, and the only one of its group is not named.
fn rooms_in_words(rooms: &[FlavorRoom], amount_of: impl Fn(&FlavorRoom) -> Quantity) -> String {
    let groups = rooms.chunk_by(|one, next| one.group == next.group);
    let groups = groups.map(|group| {
        let flavors: Vec<_> = group.chunk_by(|one, next| one.flavor == next.flavor).collect();
        let in_words = flavors.iter().map(|rooms| {
            let amounts = rooms.iter().map(|room| {
                format!(
                    "{} {}",
                    amount_in_words(&room.resource, amount_of(room)),
                    noun(&room.resource)
                )
            });
            let amounts = amounts.collect::<Vec<_>>().join(", ");
            match flavors.len() {
                1 => amounts,
                _ => format!("{amounts} of flavor {}", rooms[0].flavor),
            }
        });
        in_words.collect::<Vec<_>>().join(", or ")
    });
    groups.collect::<Vec<_>>().join(", and ")
}

/// Returns what a resource is called beside what a run asks for.
fn noun(resource: &str) -> &str {
    match resource {
        "nvidia.com/gpu" => "gpu",
        _ => resource,
    }
}
