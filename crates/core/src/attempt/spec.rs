//! What the agent is told.

use std::{collections::BTreeMap, path::PathBuf};

use blueproof_queue::Quantity;
use serde::{Deserialize, Serialize};

use crate::{
    domain::{
        AttemptId, BlueprintName, Head, ProfileName, Repository, RequestKey, Resources, Source, Timeouts,
    },
    gpu::DeviceUuid,
};

/// All that an agent needs to carry out one attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptSpec {
    /// The store that knows of it, by its [`StoreIdentity`](super::StoreIdentity).
    pub store: String,
    /// Which attempt this is.
    pub attempt: AttemptId,
    /// The request that it is made for.
    pub request: RequestKey,
    /// The repository or folder that the content belongs to.
    #[serde(alias = "project")]
    pub repository: Repository,
    /// The pull request, where there is one.
    #[serde(default, alias = "change", skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<u64>,
    /// The blueprint's name.
    pub blueprint: BlueprintName,
    /// The profile under which it is tested.
    pub profile: Option<ProfileName>,
    /// Where the blueprint's folder is. It is only read.
    #[serde(alias = "checkout")]
    pub source: Source,
    /// The content that was approved. What the folder holds is compared with it before anything runs.
    pub head: Head,
    /// Where environments are kept for reuse between attempts.
    pub environments: PathBuf,
    /// What was reserved for the notebook's own kernel (the blueprint's `driver`).
    pub granted: Resources,
    /// What was reserved for its run of further resources, by their Kubernetes names, in Kueue's units: its queue has counted
    /// it, and nothing of it is given to the attempt.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub further: BTreeMap<String, Quantity>,
    /// The devices that it may use, and no others; absent where nobody knows what devices there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<Vec<DeviceUuid>>,
    /// Whether its notebook runs in a sandbox.
    #[serde(default)]
    pub sandbox: SandboxMode,
    /// The limits of time; the agent keeps startup, cell and run.
    pub timeouts: Timeouts,
    /// What is to be done, in the notebook crate's own words: core passes it on unread.
    pub work: serde_json::Value,
}

/// Whether a notebook runs in a sandbox, as the driver tells its agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SandboxMode {
    /// It runs as the agent's user, with all that this user reaches.
    #[default]
    Off,
    /// It runs in a sandbox. What cannot be limited there is told with the verdict.
    Requested,
    /// It runs in a sandbox whose memory and processes are limited, or not at all.
    Required,
}

impl AttemptSpec {
    /// The most bytes that its file may have. A plan is a few KiB.
    pub const LONGEST: u64 = 16 << 20;

    /// Returns whether both are of one attempt to do one thing. What it was given to do it with may differ.
    pub fn is_same_attempt(&self, other: &Self) -> bool {
        let asked = |spec: &Self| Self {
            environments: PathBuf::new(),
            devices: None,
            sandbox: SandboxMode::Off,
            ..spec.clone()
        };
        asked(self) == asked(other)
    }

    /// Returns whether there are devices that it may use, as far as anybody knows.
    pub fn has_devices(&self) -> bool {
        self.devices.as_ref().is_some_and(|devices| !devices.is_empty())
    }
}
