//! What the admin decides: who may approve, how much there is, how often things are tried again.

use std::{collections::BTreeSet, num::NonZeroU32};

use blueproof_queue::objects::Objects;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::domain::{Actor, Resources, default_objects};

/// Everything that the scheduler goes by. It is an event in the log, so that a replay decides as it was decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Who may approve what.
    pub gate: GatePolicy,
    /// How much the queue may promise at once.
    pub quota: Resources,
    /// How things are tried again.
    pub retry: RetryPolicy,
    /// How many settled runs are remembered, at least one. Those that ended first are forgotten first: they stay in the store,
    /// and can be asked for again, but not retried.
    #[serde(default = "default_remembered_runs")]
    pub remembered_runs: NonZeroU32,
}

impl Policy {
    /// Returns the policy of one person's own machine: their own runs need no other's word.
    pub fn local(quota: Resources) -> Self {
        let gate = GatePolicy {
            digest: "local".into(),
            local: LocalApproval::Own,
            approvers: BTreeSet::new(),
        };
        Self {
            gate,
            quota,
            retry: RetryPolicy::default(),
            remembered_runs: default_remembered_runs(),
        }
    }

    /// Returns the queues that hold while nobody has applied others: one, `local`, with the whole quota.
    pub fn default_objects(&self) -> Objects {
        default_objects(self.quota)
    }
}

/// Who may approve what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GatePolicy {
    /// Names this policy: an approval counts only under the policy that it was given under.
    pub digest: String,
    /// Whether users of this machine approve their own runs by asking for them.
    pub local: LocalApproval,
    /// Who may approve the runs of others.
    #[serde(default)]
    pub approvers: BTreeSet<Actor>,
}

/// Whether users of this machine approve their own runs by asking for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LocalApproval {
    /// They do: it is their own code on their own machine.
    Own,
    /// They do not.
    Required,
}

/// How things are tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicy {
    /// How long to wait before the first retry; doubled for each further one.
    pub first_after: SignedDuration,
    /// The longest wait.
    pub at_most: SignedDuration,
    /// How many failures in a row of one call (reserve, start, report) are borne. What others have is waited for.
    pub call_failures: u32,
    /// For how long whoever got quota is safe from those who were evicted before; none is Kueue's rules alone, by which
    /// two may take turns for ever.
    #[serde(default = "default_protected_run_time")]
    pub protected_run_time: SignedDuration,
    /// How long an attempt has to end by itself once it was interrupted, and then once it was told to end. After that it is
    /// ended by force.
    #[serde(default = "default_eviction_grace")]
    pub eviction_grace: SignedDuration,
    /// How often a run is tried again whose agent is killed: most likely its own notebook does it. None is as often as its
    /// blueprint asks for, as it was before there was such a limit, and as a log of then is replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub killed_agents: Option<u32>,
    /// How long after its own limits an attempt that does not end is told to end by the scheduler.
    pub overdue_after: SignedDuration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            first_after: SignedDuration::from_secs(1),
            at_most: SignedDuration::from_mins(5),
            call_failures: 5,
            protected_run_time: default_protected_run_time(),
            eviction_grace: default_eviction_grace(),
            killed_agents: Some(3),
            overdue_after: SignedDuration::from_mins(2),
        }
    }
}

/// A few MiB of memory.
fn default_remembered_runs() -> NonZeroU32 {
    NonZeroU32::new(1000).expect("more than none")
}

/// Long enough for an environment to be made and a notebook to get somewhere.
fn default_protected_run_time() -> SignedDuration {
    SignedDuration::from_mins(10)
}

/// What Kubernetes gives a pod to end.
fn default_eviction_grace() -> SignedDuration {
    SignedDuration::from_secs(30)
}

impl RetryPolicy {
    /// Returns how long to wait after `failures` failures in a row.
    pub fn wait_after(&self, failures: u32) -> SignedDuration {
        let doublings = failures.saturating_sub(1).min(30);
        self.first_after.saturating_mul(1 << doublings).min(self.at_most)
    }
}
