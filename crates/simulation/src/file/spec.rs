//! The keys of a simulation.

use std::collections::BTreeMap;

use blueproof_diagnostic::yaml::{Decode, Located, Problems, Schema, Spot, YamlNode, choice, record};
use blueproof_queue::manifest::{Amount, Span, TolerationSpec};
use jiff::SignedDuration;
use serde_json::json;

use crate::retry::FaultTolerance;

choice! {
    /// The version of the format.
    pub(super) enum ApiVersion {
        /// The only one so far.
        V1Alpha1 = "blueproof.dev/v1alpha1",
    }
}

choice! {
    /// What the document is.
    pub(super) enum Kind {
        /// A simulation.
        Simulation = "Simulation",
    }
}

record! {
    /// Jobs that ask for quota, and what happens meanwhile.
    pub(super) struct Simulation {
        /// The version of the format: `blueproof.dev/v1alpha1`.
        api_version: ApiVersion,
        /// What the document is: `Simulation`.
        kind: Kind,
        /// What it is called.
        metadata: Metadata,
        /// What is simulated.
        spec: Spec,
    }
}

record! {
    /// What a simulation is called.
    pub(super) struct Metadata {
        /// Its name.
        name: Option<String>,
    }
}

record! {
    /// What is simulated.
    pub(super) struct Spec {
        /// Files with queues, relative to this one.
        quota: Vec<Located<String>>,
        /// The ClusterQueue whose lending limit follows the nodes that failed.
        slack_queue: Option<Located<String>>,
        /// How long nobody is evicted by those who were evicted before.
        protected_run_time: Option<Span>,
        /// When it ends; without it, when nothing more happens.
        until: Option<Span>,
        /// Where pods are put.
        nodes: Vec<NodeSpec>,
        /// Who asks for quota.
        jobs: Vec<JobSpec>,
        /// What happens besides.
        events: Vec<EventSpec>,
    }
}

record! {
    /// A machine that pods are put on.
    pub(super) struct NodeSpec {
        /// Its name.
        name: String,
        /// Its flavor.
        flavor: String,
        /// What it has.
        capacity: Amounts,
    }
}

record! {
    /// Jobs that are alike.
    pub(super) struct JobSpec {
        /// Their name; where they are several, a number is put behind it.
        name: String,
        /// Whose they are.
        user: String = String::new(),
        /// The repository that they are for.
        repository: String = String::new(),
        /// Their kind, by which figures are told apart.
        class: String = String::new(),
        /// The LocalQueue that they ask in.
        queue: Located<String>,
        /// Their priority, by its name.
        priority_class: Option<Located<String>>,
        /// Their priority, as a number.
        priority: Option<i32>,
        /// How many they are.
        count: Located<u32> = Located { value: 1, spot: Spot::default() },
        /// When the first comes.
        at: Span = Span::default(),
        /// How long after it the next comes.
        every: Span = Span::default(),
        /// How long each runs.
        runs_for: Span,
        /// How long it still holds its quota when it is told to go.
        grace: Span = Span::default(),
        /// How long each may have quota, over all of its admissions.
        maximum_execution_time: Option<Span>,
        /// How long pods may wait for room on the nodes, before all are deleted and created again: 5m where it is not said.
        warmup_grace_period_duration: Option<Grace>,
        /// How long a failed pod is left alone, before all are deleted and created again: 1m where it is not said.
        failure_grace_period_duration: Option<Grace>,
        /// How long after a failure pods are created again: 90s where it is not said.
        retry_pause_period_duration: Option<Grace>,
        /// How often each is tried again: 3 where it is not said.
        retry_limit: Option<u32>,
        /// How long a deletion may take: 10m where it is not said.
        forceful_deletion_grace_period_duration: Option<Grace>,
        /// How long one that failed for good still holds its quota: not at all where it is not said.
        deletion_on_failure_grace_period_duration: Option<Grace>,
        /// Exit codes of pods after which it is not tried again.
        terminal_exit_codes: Vec<i32>,
        /// If there are any: the only exit codes after which it is tried again.
        retryable_exit_codes: Vec<i32>,
        /// What each asks for.
        pod_sets: Located<Vec<PodSetSpec>>,
    }
    later {
        "admissionGracePeriodDuration": "pods are created in no time here: leave it out",
        "successTTLDuration": "what has succeeded holds no quota: leave it out",
    }
}

record! {
    /// Pods of one kind.
    pub(super) struct PodSetSpec {
        /// Their name.
        name: String = "main".into(),
        /// How many they are.
        count: u32 = 1,
        /// The least that will do.
        min_count: Option<Located<u32>>,
        /// What one asks for.
        requests: Amounts,
        /// The labels that its nodes must have.
        node_selector: BTreeMap<String, String>,
        /// The taints that it puts up with.
        tolerations: Vec<TolerationSpec>,
    }
}

record! {
    /// Something that happens.
    pub(super) struct EventSpec {
        /// When.
        at: Located<Span>,
        /// Something to be told.
        say: Option<Located<String>>,
        /// The node that is found to be bad: whoever has pods on it is moved away.
        fail_node: Option<Located<String>>,
        /// The node that is well again.
        recover_node: Option<Located<String>>,
        /// The job of which a pod fails.
        fail_pod: Option<PodFailure>,
        /// The file with the queues that hold from then on.
        quota: Option<Located<String>>,
    }
}

record! {
    /// A pod that fails.
    pub(super) struct PodFailure {
        /// The job that it is of.
        job: Located<String>,
        /// Its exit code.
        exit_code: Located<u32> = Located { value: 1, spot: Spot::default() },
    }
}

/// A span of time that is no longer than AppWrapper lets a grace be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grace(pub(super) SignedDuration);

/// Amounts of resources, each with its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Amounts(pub(super) Vec<(String, Spot, Amount)>);

impl Decode for Grace {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let Span(span) = Span::decode(node, problems)?;
        if span > FaultTolerance::LONGEST_GRACE {
            let message = "this is longer than 24h, the longest that AppWrapper takes";
            problems.bad_value(node.spot, message, "a workload must not hold its quota for ever");
            return None;
        }
        Some(Self(span))
    }

    fn schema() -> Schema {
        Span::schema()
    }
}

impl Decode for Amounts {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let Some(entries) = node.entries() else {
            problems.wrong_type(node, "a mapping of resources to amounts");
            return None;
        };
        let amounts: Vec<_> = entries
            .iter()
            .map(|entry| {
                let amount = Amount::decode(&entry.node, problems)?;
                Some((entry.key.clone(), entry.spot, amount))
            })
            .collect();
        amounts.into_iter().collect::<Option<_>>().map(Self)
    }

    fn schema() -> Schema {
        json!({ "type": "object", "additionalProperties": Amount::schema() })
    }
}
