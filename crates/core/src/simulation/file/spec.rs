//! The keys of a simulation.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::json;

use crate::{
    queue::manifest::{Amount, TolerationSpec},
    yaml::{Decode, Located, Node, Problems, Schema, Spot, Value, record},
};

record! {
    /// A simulation.
    pub(super) struct Simulation {
        /// The version.
        api_version: String,
        /// The kind.
        kind: String,
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
        /// How long it stays away when a node that it is on fails.
        retry_pause: Span = Span::default(),
        /// How long each may have quota, over all of its admissions.
        maximum_execution_time: Option<Span>,
        /// What each asks for.
        pod_sets: Located<Vec<PodSetSpec>>,
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
        min_count: Option<u32>,
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
        /// The node that fails.
        fail_node: Option<Located<String>>,
        /// The node that is well again.
        recover_node: Option<Located<String>>,
        /// The file with the queues that hold from then on.
        quota: Option<Located<String>>,
    }
}

/// A span of time: `30s`, `1h30m`, `200ms`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span(pub(super) SignedDuration);

/// Amounts of resources, each with its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Amounts(pub(super) Vec<(String, Spot, Amount)>);

impl Decode for Span {
    fn decode(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        const HINT: &str = "spans of time are written as 30s, 1h30m or 200ms";
        let Value::Text(text) = &node.value else {
            problems.wrong_type(node, "a span of time such as 30s");
            return None;
        };
        match text.parse::<SignedDuration>() {
            Ok(span) if !span.is_negative() && span < LONGEST => return Some(Self(span)),
            Ok(_) => problems.bad_value(
                node.spot,
                format!("`{text}` is not between 0 and 1000 years"),
                HINT,
            ),
            Err(_) => problems.bad_value(node.spot, format!("`{text}` is not a span of time"), HINT),
        }
        None
    }

    fn schema() -> Schema {
        json!({ "type": "string" })
    }
}

/// Beyond this, calendars end.
const LONGEST: SignedDuration = SignedDuration::from_hours(1000 * 365 * 24);

impl Decode for Amounts {
    fn decode(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
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
        json!({ "type": "object" })
    }
}
