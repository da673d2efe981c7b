//! The queue's objects as Kueue has them, one document each.
//!
//! Defaults are left out, but for those without which a queue does nothing in a cluster.

use std::collections::BTreeMap;

use blueproof_diagnostic::amount::{Binary, Millis};
use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::values::{ADMISSION, CLUSTER, USERS};
use crate::{
    Quantity,
    objects::{
        Admission, AdmissionFairSharing, AdmissionMode, ClusterQueue, Cohort, FlavorFungibility,
        FlavorPreference, FlavorQuotas, LocalQueue, LocalQueueUsers, Objects, Preemption, QueueingStrategy,
        Quota, Requeuing, ResourceFlavor, ResourceGroup, StopPolicy, Toleration, Weight, WhenCanBorrow,
        WhenCanPreempt,
    },
};

/// One object as Kueue has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its kind.
    pub kind: &'static str,
    /// What it is known by here; empty where there is only one of its kind.
    pub name: String,
    /// All of it.
    pub value: Value,
}

impl Document {
    /// Returns the object as YAML.
    pub fn to_yaml(&self) -> String {
        serde_saphyr::to_string(&self.value).expect("plain data has a form in YAML")
    }
}

/// Returns the objects, those that others refer to first.
pub fn documents(objects: &Objects) -> Vec<Document> {
    let flavors = objects
        .flavors
        .iter()
        .map(|(name, of)| object("ResourceFlavor", name, flavor(of)));
    let cohorts = objects
        .cohorts
        .iter()
        .map(|(name, of)| object("Cohort", name, cohort(of)));
    let cluster_queues = objects
        .cluster_queues
        .iter()
        .map(|(name, of)| annotated(object("ClusterQueue", name, cluster_queue(of)), of));
    let local_queues = objects
        .local_queues
        .iter()
        .map(|(name, of)| local_queue(name, of));
    let classes = objects
        .priority_classes
        .iter()
        .map(|(name, value)| priority_class(name, *value));
    let configuration = configuration(objects);
    flavors
        .chain(cohorts)
        .chain(cluster_queues)
        .chain(local_queues)
        .chain(classes)
        .chain(configuration)
        .collect()
}

/// Returns the objects as a file that [`super::read`] and Kueue read. A Configuration is what Kueue is started with; the
/// others are what a cluster is given.
pub fn write(objects: &Objects) -> String {
    let documents: Vec<String> = documents(objects).iter().map(Document::to_yaml).collect();
    documents.join("---\n")
}

fn object(kind: &'static str, name: &str, spec: Map<String, Value>) -> Document {
    let mut value = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": { "name": name },
    });
    if !spec.is_empty() {
        value["spec"] = Value::Object(spec);
    }
    Document {
        kind,
        name: name.to_owned(),
        value,
    }
}

fn local_queue(name: &str, queue: &LocalQueue) -> Document {
    let mut spec = Map::new();
    if !queue.cluster_queue.is_empty() {
        spec.insert("clusterQueue".into(), json!(queue.cluster_queue));
    }
    weight(&mut spec, queue.weight);
    stop_policy(&mut spec, queue.stop_policy);
    let mut document = object("LocalQueue", name, spec);
    let (namespace, own_name) = queue.in_cluster(name);
    document.value["metadata"]["name"] = json!(own_name);
    document.value["metadata"]["namespace"] = json!(namespace);
    if queue.users != LocalQueueUsers::default() {
        document.value["metadata"]["annotations"] = json!({ USERS: word(&queue.users) });
    }
    document
}

/// Adds to a ClusterQueue who admits its workloads and where they run, where that is not as usual.
fn annotated(mut document: Document, queue: &ClusterQueue) -> Document {
    if queue.admission != Admission::default() {
        document.value["metadata"]["annotations"][ADMISSION] = json!(word(&queue.admission));
    }
    if let Some(cluster) = &queue.cluster {
        document.value["metadata"]["annotations"][CLUSTER] = json!(cluster);
    }
    document
}

fn priority_class(name: &str, priority: i32) -> Document {
    let mut document = object("WorkloadPriorityClass", name, Map::new());
    document.value["value"] = json!(priority);
    document
}

/// Returns what is said of Kueue itself, if anything.
fn configuration(objects: &Objects) -> Option<Document> {
    let mut settings = BTreeMap::new();
    if let Some(sharing) = &objects.admission_fair_sharing {
        settings.insert("admissionFairSharing", admission_fair_sharing(sharing));
    }
    if let Some(sharing) = &objects.fair_sharing {
        let rules = [Some(sharing.first), sharing.then];
        let rules: Vec<_> = rules.iter().flatten().map(word).collect();
        settings.insert("fairSharing", json!({ "preemptionStrategies": rules }));
    }
    if let Some(requeuing) = objects.requeuing {
        settings.insert(
            "waitForPodsReady",
            json!({ "requeuingStrategy": strategy(requeuing) }),
        );
    }
    if settings.is_empty() {
        return None;
    }
    let mut value = json!({
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
    });
    for (key, setting) in settings {
        value[key] = setting;
    }
    Some(Document {
        kind: "Configuration",
        name: String::new(),
        value,
    })
}

fn admission_fair_sharing(sharing: &AdmissionFairSharing) -> Value {
    let mut value = json!({
        "usageHalfLifeTime": span(sharing.usage_half_life_time),
        "usageSamplingInterval": span(sharing.usage_sampling_interval),
    });
    if !sharing.resource_weights.is_empty() {
        value["resourceWeights"] = json!(sharing.resource_weights);
    }
    value
}

/// Returns a span of time as Go reads it: `168h`, `1h30m`, `0.5s`.
fn span(span: SignedDuration) -> String {
    let (seconds, nanos) = (span.as_secs(), span.subsec_nanos());
    let mut text = String::new();
    for (count, unit) in [(seconds / 3600, 'h'), (seconds / 60 % 60, 'm')] {
        if count != 0 {
            text += &format!("{count}{unit}");
        }
    }
    match (seconds % 60, nanos) {
        (0, 0) if !text.is_empty() => {}
        (seconds, 0) => text += &format!("{seconds}s"),
        (seconds, nanos) => text += &format!("{seconds}.{nanos:09}s"),
    }
    text
}

fn strategy(requeuing: Requeuing) -> Value {
    let mut value = json!({
        "backoffBaseSeconds": requeuing.backoff_base_seconds,
        "backoffMaxSeconds": requeuing.backoff_max_seconds,
        "timestamp": word(&requeuing.timestamp),
    });
    if let Some(count) = requeuing.backoff_limit_count {
        value["backoffLimitCount"] = json!(count);
    }
    value
}

/// Returns a word of the API: our variants are called as Kueue's.
fn word(word: &impl std::fmt::Debug) -> Value {
    json!(format!("{word:?}"))
}

fn flavor(flavor: &ResourceFlavor) -> Map<String, Value> {
    let mut spec = Map::new();
    if !flavor.node_labels.is_empty() {
        spec.insert("nodeLabels".into(), json!(flavor.node_labels));
    }
    if !flavor.node_taints.is_empty() {
        let taints = flavor.node_taints.iter().map(|taint| {
            let mut value = json!({ "effect": word(&taint.effect), "key": taint.key });
            if !taint.value.is_empty() {
                value["value"] = json!(taint.value);
            }
            value
        });
        spec.insert("nodeTaints".into(), taints.collect());
    }
    if !flavor.tolerations.is_empty() {
        spec.insert(
            "tolerations".into(),
            flavor.tolerations.iter().map(toleration).collect(),
        );
    }
    spec
}

fn toleration(toleration: &Toleration) -> Value {
    let mut value = match &toleration.value {
        Some(text) => json!({ "operator": "Equal", "value": text }),
        None => json!({ "operator": "Exists" }),
    };
    // Any key with a certain value is written with an empty key: Kueue asks for one beside `Equal`.
    if toleration.key.is_some() || toleration.value.is_some() {
        value["key"] = json!(toleration.key.as_deref().unwrap_or_default());
    }
    if let Some(effect) = &toleration.effect {
        value["effect"] = word(effect);
    }
    value
}

fn cohort(cohort: &Cohort) -> Map<String, Value> {
    let mut spec = Map::new();
    if let Some(parent) = &cohort.parent {
        spec.insert("parentName".into(), json!(parent));
    }
    shared(&mut spec, &cohort.resource_groups, cohort.weight);
    spec
}

fn cluster_queue(queue: &ClusterQueue) -> Map<String, Value> {
    let mut spec = Map::new();
    if queue.admission_mode != AdmissionMode::default() {
        let scope = json!({ "admissionMode": word(&queue.admission_mode) });
        spec.insert("admissionScope".into(), scope);
    }
    if let Some(cohort) = &queue.cohort {
        spec.insert("cohortName".into(), json!(cohort));
    }
    shared(&mut spec, &queue.resource_groups, queue.weight);
    if queue.flavor_fungibility != FlavorFungibility::default() {
        spec.insert("flavorFungibility".into(), fungibility(queue.flavor_fungibility));
    }
    spec.insert("namespaceSelector".into(), json!({}));
    if queue.preemption != Preemption::default() {
        spec.insert("preemption".into(), preemption(queue.preemption));
    }
    if queue.queueing_strategy != QueueingStrategy::default() {
        spec.insert("queueingStrategy".into(), word(&queue.queueing_strategy));
    }
    stop_policy(&mut spec, queue.stop_policy);
    spec
}

/// What queues and cohorts both have.
fn shared(spec: &mut Map<String, Value>, groups: &[ResourceGroup], weight: Weight) {
    self::weight(spec, weight);
    if !groups.is_empty() {
        spec.insert("resourceGroups".into(), groups.iter().map(group).collect());
    }
}

fn weight(spec: &mut Map<String, Value>, weight: Weight) {
    if weight != Weight::default() {
        spec.insert("fairSharing".into(), json!({ "weight": weight.0.to_string() }));
    }
}

fn stop_policy(spec: &mut Map<String, Value>, policy: StopPolicy) {
    if policy != StopPolicy::None {
        spec.insert("stopPolicy".into(), word(&policy));
    }
}

fn group(group: &ResourceGroup) -> Value {
    let covered = group.covered_resources();
    let flavors: Vec<Value> = group
        .flavors
        .iter()
        .map(|flavor| {
            let quotas: Vec<Value> = covered.iter().map(|resource| quota(flavor, resource)).collect();
            json!({ "name": flavor.name, "resources": quotas })
        })
        .collect();
    json!({ "coveredResources": covered, "flavors": flavors })
}

fn quota(flavor: &FlavorQuotas, resource: &str) -> Value {
    let quota: Quota = flavor.resources.get(resource).copied().unwrap_or_default();
    let mut value = json!({ "name": resource, "nominalQuota": amount(resource, quota.nominal) });
    if let Some(limit) = quota.borrowing_limit {
        value["borrowingLimit"] = json!(amount(resource, limit));
    }
    if let Some(limit) = quota.lending_limit {
        value["lendingLimit"] = json!(amount(resource, limit));
    }
    value
}

/// Returns an amount of a resource, as Kubernetes writes it.
pub fn amount(resource: &str, amount: Quantity) -> String {
    let Ok(count) = u64::try_from(amount.0) else {
        return amount.0.to_string();
    };
    match resource {
        "cpu" => Millis(count).to_string(),
        "memory" | "ephemeral-storage" => Binary(count).to_string(),
        _ => count.to_string(),
    }
}

fn fungibility(fungibility: FlavorFungibility) -> Value {
    let mut value = json!({});
    if fungibility.when_can_borrow != WhenCanBorrow::default() {
        value["whenCanBorrow"] = word(&fungibility.when_can_borrow);
    }
    // It is the default; but a preference is taken only where both are said.
    let prefers = fungibility.preference != FlavorPreference::default();
    if prefers || fungibility.when_can_preempt != WhenCanPreempt::default() {
        value["whenCanPreempt"] = word(&fungibility.when_can_preempt);
    }
    if prefers {
        value["preference"] = word(&fungibility.preference);
    }
    value
}

fn preemption(preemption: Preemption) -> Value {
    let mut value = json!({
        "reclaimWithinCohort": word(&preemption.reclaim_within_cohort),
        "withinClusterQueue": word(&preemption.within_cluster_queue),
    });
    if let Some(borrow) = preemption.borrow_within_cohort {
        value["borrowWithinCohort"] = json!({ "policy": "LowerPriority" });
        if let Some(threshold) = borrow.max_priority_threshold {
            value["borrowWithinCohort"]["maxPriorityThreshold"] = json!(threshold);
        }
    }
    value
}
