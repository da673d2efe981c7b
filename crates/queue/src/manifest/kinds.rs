//! The kinds, field by field, as `kueue.x-k8s.io/v1beta2` has them.
//!
//! Fields that a cluster fills in and that decide nothing are [`Ignored`]; those under `later` are refused when they are
//! set. What one field says about another is checked in `rules`.

use std::collections::BTreeMap;

use blueproof_diagnostic::yaml::{Located, choice, record};

use super::values::{Amount, Count, Ignored, Labels, List, Metadata, Name, Operator, Remark, Selector, Span};
use crate::objects::{
    AdmissionMode, FairRule, FlavorPreference, QueueingStrategy, ReclaimWithinCohort, RequeuingTimestamp,
    StopPolicy, TaintEffect, WhenCanBorrow, WhenCanPreempt, WithinClusterQueue,
};

record! {
    /// A queue with its quota.
    pub(super) struct ClusterQueue {
        /// The version.
        api_version: Ignored,
        /// The kind.
        kind: Ignored,
        /// Its name.
        metadata: Metadata,
        /// What is configured.
        spec: ClusterQueueSpec,
        /// What the cluster says of it.
        status: Ignored,
    }
}

record! {
    /// What is configured of a queue with quota.
    pub(super) struct ClusterQueueSpec {
        /// Its quota.
        resource_groups: List<Located<ResourceGroup>, 0, 16>,
        /// The cohort that it is part of.
        cohort_name: Option<Located<Name>>,
        /// Who goes next when the first in line does not fit.
        queueing_strategy: QueueingStrategy = QueueingStrategy::default(),
        /// Whose workloads it takes.
        namespace_selector: Option<Selector>,
        /// When the next flavor is tried.
        flavor_fungibility: FlavorFungibility,
        /// Whom its workloads may evict.
        preemption: Preemption,
        /// Whether it admits at all.
        stop_policy: StopPolicy = StopPolicy::default(),
        /// Its weight.
        fair_sharing: FairSharing,
        /// Whether those go first who had less lately.
        admission_scope: Option<Located<AdmissionScope>>,
    }
    later {
        "admissionChecks": "nothing here carries out admission checks; leave the field out",
        "admissionChecksStrategy": "nothing here carries out admission checks; leave the field out",
        "concurrentAdmissionPolicy": "a run is tried in one flavor at a time; leave the field out",
    }
}

record! {
    /// Whether those go first who had less lately.
    pub(super) struct AdmissionScope {
        /// Whether.
        admission_mode: AdmissionMode,
    }
}

record! {
    /// When the next flavor is tried.
    pub(super) struct FlavorFungibility {
        /// When a flavor fits by borrowing.
        when_can_borrow: WhenCanBorrow = WhenCanBorrow::default(),
        /// When a flavor fits by evicting.
        when_can_preempt: WhenCanPreempt = WhenCanPreempt::default(),
        /// Which of the two is better.
        preference: Option<Located<FlavorPreference>>,
    }
}

record! {
    /// Whom a queue's workloads may evict.
    pub(super) struct Preemption {
        /// Workloads of other queues that borrow.
        reclaim_within_cohort: ReclaimWithinCohort = ReclaimWithinCohort::default(),
        /// Whether to evict others even while borrowing.
        borrow_within_cohort: Option<Located<BorrowWithinCohort>>,
        /// Workloads of the same queue.
        within_cluster_queue: WithinClusterQueue = WithinClusterQueue::default(),
    }
}

record! {
    /// Whether to evict others even while borrowing.
    pub(super) struct BorrowWithinCohort {
        /// Whether at all.
        policy: BorrowPolicy = BorrowPolicy::Never,
        /// The highest priority that may be evicted so.
        max_priority_threshold: Option<i32>,
    }
}

choice! {
    /// Whom a workload may evict while its own queue borrows.
    pub(super) enum BorrowPolicy {
        /// Nobody.
        Never = "Never",
        /// Those of lower priority.
        LowerPriority = "LowerPriority",
    }
}

record! {
    /// The weight of a queue or cohort among those beside it.
    pub(super) struct FairSharing {
        /// The weight.
        weight: Option<Located<Amount>>,
    }
}

record! {
    /// Resources that come together, in one of several flavors.
    pub(super) struct ResourceGroup {
        /// The resources.
        covered_resources: List<Located<String>, 1, 64>,
        /// The flavors, the first to be tried first.
        flavors: List<FlavorQuotas, 1, 64>,
    }
}

record! {
    /// How much there is of a flavor.
    pub(super) struct FlavorQuotas {
        /// The flavor.
        name: Located<Name>,
        /// How much of each resource.
        resources: Located<List<ResourceQuota, 1, 64>>,
    }
}

record! {
    /// How much of one resource there is.
    pub(super) struct ResourceQuota {
        /// The resource.
        name: Located<String>,
        /// Its own.
        nominal_quota: Amount,
        /// How much more it may use.
        borrowing_limit: Option<Located<Amount>>,
        /// How much it lends.
        lending_limit: Option<Located<Amount>>,
    }
}

record! {
    /// A group of queues and cohorts.
    pub(super) struct Cohort {
        /// The version.
        api_version: Ignored,
        /// The kind.
        kind: Ignored,
        /// Its name.
        metadata: Metadata,
        /// What is configured.
        spec: CohortSpec,
        /// What the cluster says of it.
        status: Ignored,
    }
}

record! {
    /// What is configured of a cohort.
    pub(super) struct CohortSpec {
        /// The cohort that it is part of.
        parent_name: Option<Located<Name>>,
        /// Quota of its own.
        resource_groups: List<Located<ResourceGroup>, 0, 16>,
        /// Its weight.
        fair_sharing: FairSharing,
    }
}

record! {
    /// A queue that people name.
    pub(super) struct LocalQueue {
        /// The version.
        api_version: Ignored,
        /// The kind.
        kind: Ignored,
        /// Its name and namespace.
        metadata: Metadata,
        /// What is configured.
        spec: LocalQueueSpec,
        /// What the cluster says of it.
        status: Ignored,
    }
}

record! {
    /// What is configured of a queue that people name.
    pub(super) struct LocalQueueSpec {
        /// The ClusterQueue that it is in front of.
        cluster_queue: Option<Located<Name>>,
        /// Whether it lets anybody through.
        stop_policy: StopPolicy = StopPolicy::default(),
        /// Its weight among those in front of the same ClusterQueue.
        fair_sharing: FairSharing,
    }
}

record! {
    /// A kind of node.
    pub(super) struct ResourceFlavor {
        /// The version.
        api_version: Ignored,
        /// The kind.
        kind: Ignored,
        /// Its name.
        metadata: Metadata,
        /// What is configured.
        spec: ResourceFlavorSpec,
    }
}

record! {
    /// What is configured of a kind of node.
    pub(super) struct ResourceFlavorSpec {
        /// The labels that its nodes have.
        node_labels: Labels,
        /// The taints that its nodes have.
        node_taints: List<Located<Taint>, 0, 8>,
        /// What is tolerated of them for every workload.
        tolerations: List<Located<Toleration>, 0, 8>,
    }
    later {
        "topologyName": "one machine has no topology; leave the field out",
    }
}

record! {
    /// Keeps workloads off a node.
    pub(super) struct Taint {
        /// Its key.
        key: String,
        /// Its value.
        value: String = String::new(),
        /// What it does.
        effect: TaintEffect,
        /// When it was put there.
        time_added: Ignored,
    }
}

record! {
    /// What a workload puts up with.
    pub struct Toleration {
        /// The taint's key.
        key: Option<String>,
        /// Whether the value counts.
        operator: Operator = Operator::Equal,
        /// The taint's value.
        value: Option<String>,
        /// The taint's effect.
        effect: Option<TaintEffect>,
    }
    later {
        "tolerationSeconds": "nothing here is evicted some time after a taint came; leave the field out",
    }
}

record! {
    /// A priority that people name.
    pub(super) struct WorkloadPriorityClass {
        /// The version.
        api_version: Ignored,
        /// The kind.
        kind: Ignored,
        /// Its name.
        metadata: Metadata,
        /// The priority.
        value: i32,
        /// When it is to be used.
        description: Remark<2048>,
    }
}

record! {
    /// How Kueue itself is set up. Most of it is about its controllers, of which there are none here.
    pub(super) struct Configuration {
        /// The version.
        api_version: Ignored,
        /// The kind.
        kind: Ignored,
        /// Configurations are no objects, but may be given a name.
        metadata: Ignored,
        /// Who may take from whom inside a cohort.
        fair_sharing: Option<FairSharingRules>,
        /// How what users of one ClusterQueue had lately is counted.
        admission_fair_sharing: Option<Located<AdmissionFairSharing>>,
        /// Changes what a workload asks for.
        resources: Option<Located<Ignored>>,
        /// Changes the rules.
        feature_gates: Option<Located<Ignored>>,
        /// About controllers.
        namespace: Ignored,
        /// About controllers.
        manage_jobs_without_queue_name: Ignored,
        /// About controllers.
        managed_jobs_namespace_selector: Ignored,
        /// About controllers.
        internal_cert_management: Ignored,
        /// What becomes of workloads that do not start.
        wait_for_pods_ready: Option<WaitForPodsReady>,
        /// About controllers.
        client_connection: Ignored,
        /// About controllers.
        integrations: Ignored,
        /// About other clusters.
        multi_kueue: Ignored,
        /// About controllers.
        object_retention_policies: Ignored,
        /// About controllers.
        visibility_server: Ignored,
        /// About controllers.
        webhook: Ignored,
        /// About controllers.
        leader_election: Ignored,
        /// About controllers.
        metrics: Ignored,
        /// About controllers.
        health: Ignored,
        /// About controllers.
        pprof_bind_address: Ignored,
        /// About controllers.
        controller: Ignored,
        /// About controllers.
        tls: Ignored,
    }
}

record! {
    /// Who may take from whom inside a cohort.
    pub(super) struct FairSharingRules {
        /// The rules, in the order in which they are tried.
        preemption_strategies: Located<List<FairRule, 1, 2>>,
    }
    later {
        "enable": "from v1beta2 on, fair sharing is on where `fairSharing` stands; leave the field out",
    }
}

record! {
    /// How what users of one ClusterQueue had lately is counted.
    pub(super) struct AdmissionFairSharing {
        /// After this time what was had counts half.
        usage_half_life_time: Span = Span::default(),
        /// For this time whoever is admitted is charged at once.
        usage_sampling_interval: Span = Span::default(),
        /// How much a unit of a resource counts.
        resource_weights: BTreeMap<String, Located<f64>>,
    }
}

record! {
    /// What becomes of workloads that do not start, or whose machine fails.
    pub(super) struct WaitForPodsReady {
        /// How long a start may take: here a blueprint says that.
        timeout: Option<Located<Ignored>>,
        /// How long a pod that failed may take to come back: here nothing waits for it.
        recovery_timeout: Option<Located<Ignored>>,
        /// Whether others wait until one has started.
        block_admission: Located<bool> = Located::default(),
        /// How they are tried again.
        requeuing_strategy: RequeuingStrategy,
    }
}

record! {
    /// How workloads that did not start are tried again.
    pub(super) struct RequeuingStrategy {
        /// As how old they wait.
        timestamp: RequeuingTimestamp = RequeuingTimestamp::default(),
        /// How often at most.
        backoff_limit_count: Option<Count>,
        /// The first pause.
        backoff_base_seconds: Count = Count(60),
        /// The longest pause.
        backoff_max_seconds: Count = Count(3600),
    }
}
