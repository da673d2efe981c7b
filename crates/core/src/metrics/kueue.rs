//! What the queue tells of itself, under Kueue 0.19.2's names: its kinds, labels and buckets, our words.

use super::Kind::{Counter, Gauge, Histogram};

/// Kueue's bounds for most waits, in seconds.
const WAITS: &[f64] = &[
    1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0, 2560.0, 5120.0, 10240.0,
];

/// Kueue's bounds for the wait of a ClusterQueue's workloads until admission, in seconds.
const LONG_WAITS: &[f64] = &[
    1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0, 2560.0, 5120.0, 10240.0, 20480.0,
    40960.0,
];

super::table! {
    /// Every metric with a name of Kueue's.
    KUEUE, constant &[("replica_role", "standalone")];

    ADMISSION_ATTEMPTS = Counter, "kueue_admission_attempts_total" ["result"]
        "Cycles in which somebody was tried: success where at least one got quota, inadmissible where \
        nobody did";

    PENDING_WORKLOADS = Gauge, "kueue_pending_workloads" ["cluster_queue" "status"]
        "Workloads that wait: active are tried in the next cycles, inadmissible not before something changes";
    RESERVING_ACTIVE_WORKLOADS = Gauge, "kueue_reserving_active_workloads" ["cluster_queue"]
        "Workloads that have quota, or have it and wait for others to leave it";
    ADMITTED_ACTIVE_WORKLOADS = Gauge, "kueue_admitted_active_workloads" ["cluster_queue"]
        "Workloads that were told of their quota and have it still";
    CLUSTER_QUEUE_STATUS = Gauge, "kueue_cluster_queue_status" ["cluster_queue" "status"]
        "One at the status that the ClusterQueue has (pending, active or terminating), zero at the others";
    CLUSTER_QUEUE_INFO = Gauge, "kueue_cluster_queue_info" ["cluster_queue" "parent_cohort" "root_cohort"]
        "Always one: which cohorts the ClusterQueue is in";
    CLUSTER_QUEUE_WEIGHTED_SHARE = Gauge, "kueue_cluster_queue_weighted_share" ["cluster_queue" "cohort"]
        "What is borrowed, in thousandths of what the cohort could lend, divided by the weight (NaN where \
        that is zero); with fair sharing only";

    QUOTA_RESERVED_WORKLOADS = Counter, "kueue_quota_reserved_workloads_total"
        ["cluster_queue" "priority_class"]
        "Workloads for which quota was reserved";
    QUOTA_RESERVED_WAIT_TIME = Histogram(WAITS), "kueue_quota_reserved_wait_time_seconds"
        ["cluster_queue" "priority_class"]
        "From entering the queue, or entering it again, until quota was reserved";
    ADMITTED_WORKLOADS = Counter, "kueue_admitted_workloads_total" ["cluster_queue" "priority_class"]
        "Workloads that were told of their quota";
    ADMISSION_WAIT_TIME = Histogram(LONG_WAITS), "kueue_admission_wait_time_seconds"
        ["cluster_queue" "priority_class"]
        "From entering the queue, or entering it again, until the workload was told of its quota";
    READY_WAIT_TIME = Histogram(WAITS), "kueue_ready_wait_time_seconds" ["cluster_queue" "priority_class"]
        "From entering the queue, or entering it again, until the attempt ran";
    ADMITTED_UNTIL_READY_WAIT_TIME = Histogram(WAITS), "kueue_admitted_until_ready_wait_time_seconds"
        ["cluster_queue" "priority_class"]
        "From being told of its quota until the attempt ran";
    FINISHED_WORKLOADS = Counter, "kueue_finished_workloads_total" ["cluster_queue" "priority_class"]
        "Attempts that had quota and came to their end, other than by eviction";
    EVICTED_WORKLOADS = Counter, "kueue_evicted_workloads_total"
        ["cluster_queue" "reason" "underlying_cause" "priority_class"]
        "Workloads that had to give their quota back: Preempted, LocalQueueStopped or ClusterQueueStopped";
    EVICTED_WORKLOADS_ONCE = Counter, "kueue_evicted_workloads_once_total"
        ["cluster_queue" "reason" "underlying_cause" "priority_class"]
        "The same, each run counted once for each reason";
    PREEMPTED_WORKLOADS = Counter, "kueue_preempted_workloads_total" ["preempting_cluster_queue" "reason"]
        "Workloads that had to go for another, by the queue of that other and Kueue's reason";
    PODS_READY_TO_EVICTED_TIME = Histogram(WAITS), "kueue_pods_ready_to_evicted_time_seconds"
        ["cluster_queue" "reason" "underlying_cause"]
        "How long an attempt had run when it was evicted";
    WORKLOAD_EVICTION_LATENCY = Histogram(WAITS), "kueue_workload_eviction_latency_seconds"
        ["cluster_queue" "reason"]
        "From the eviction until quota was given back and the workload waited again";

    CLUSTER_QUEUE_RESOURCE_RESERVATION = Gauge, "kueue_cluster_queue_resource_reservation"
        ["cohort" "cluster_queue" "flavor" "resource"]
        "Quota that is reserved";
    CLUSTER_QUEUE_RESOURCE_USAGE = Gauge, "kueue_cluster_queue_resource_usage"
        ["cohort" "cluster_queue" "flavor" "resource"]
        "Quota of which workloads were told";
    CLUSTER_QUEUE_RESOURCE_PENDING = Gauge, "kueue_cluster_queue_resource_pending"
        ["cluster_queue" "resource"]
        "What those ask for who wait";
    CLUSTER_QUEUE_NOMINAL_QUOTA = Gauge, "kueue_cluster_queue_nominal_quota"
        ["cohort" "cluster_queue" "flavor" "resource"]
        "The queue's own quota";
    CLUSTER_QUEUE_BORROWING_LIMIT = Gauge, "kueue_cluster_queue_borrowing_limit"
        ["cohort" "cluster_queue" "flavor" "resource"]
        "How much more the queue may use of others'; infinite without a limit";
    CLUSTER_QUEUE_LENDING_LIMIT = Gauge, "kueue_cluster_queue_lending_limit"
        ["cohort" "cluster_queue" "flavor" "resource"]
        "How much of its own the queue lends; infinite without a limit";

    COHORT_INFO = Gauge, "kueue_cohort_info" ["cohort" "parent_cohort" "root_cohort"]
        "Always one: which cohorts the cohort is in";
    COHORT_WEIGHTED_SHARE = Gauge, "kueue_cohort_weighted_share" ["cohort"]
        "The same of the cohort (infinite where its weight is zero); with fair sharing only";
    COHORT_SUBTREE_QUOTA = Gauge, "kueue_cohort_subtree_quota" ["cohort" "flavor" "resource"]
        "The quota of the cohort and all below it, without what they do not lend";
    COHORT_SUBTREE_RESOURCE_RESERVATIONS = Gauge, "kueue_cohort_subtree_resource_reservations"
        ["cohort" "flavor" "resource"]
        "Quota that is reserved in the queues below the cohort";
    COHORT_SUBTREE_ADMITTED_ACTIVE_WORKLOADS = Gauge, "kueue_cohort_subtree_admitted_active_workloads"
        ["cohort"]
        "Workloads of the queues below the cohort that were told of their quota and have it still";
    COHORT_SUBTREE_ADMITTED_WORKLOADS = Counter, "kueue_cohort_subtree_admitted_workloads_total"
        ["cohort" "priority_class"]
        "Workloads of the queues below the cohort that were told of their quota";

    LOCAL_QUEUE_PENDING_WORKLOADS = Gauge, "kueue_local_queue_pending_workloads" ["name" "namespace" "status"]
        "Workloads of the LocalQueue that wait in its ClusterQueue";
    LOCAL_QUEUE_RESERVING_ACTIVE_WORKLOADS = Gauge, "kueue_local_queue_reserving_active_workloads"
        ["name" "namespace"]
        "Workloads of the LocalQueue that have quota, or have it and wait for others to leave it";
    LOCAL_QUEUE_ADMITTED_ACTIVE_WORKLOADS = Gauge, "kueue_local_queue_admitted_active_workloads"
        ["name" "namespace"]
        "Workloads of the LocalQueue that were told of their quota and have it still";
    LOCAL_QUEUE_STATUS = Gauge, "kueue_local_queue_status" ["name" "namespace" "active"]
        "One at True where the LocalQueue and its ClusterQueue admit, at False where they do not; zero at \
        the others";
    LOCAL_QUEUE_QUOTA_RESERVED_WORKLOADS = Counter, "kueue_local_queue_quota_reserved_workloads_total"
        ["name" "namespace" "priority_class"]
        "Workloads of the LocalQueue for which quota was reserved";
    LOCAL_QUEUE_QUOTA_RESERVED_WAIT_TIME = Histogram(WAITS),
        "kueue_local_queue_quota_reserved_wait_time_seconds"
        ["name" "namespace" "priority_class"]
        "From entering the queue, or entering it again, until quota was reserved";
    LOCAL_QUEUE_ADMITTED_WORKLOADS = Counter, "kueue_local_queue_admitted_workloads_total"
        ["name" "namespace" "priority_class"]
        "Workloads of the LocalQueue that were told of their quota";
    LOCAL_QUEUE_ADMISSION_WAIT_TIME = Histogram(WAITS), "kueue_local_queue_admission_wait_time_seconds"
        ["name" "namespace" "priority_class"]
        "From entering the queue, or entering it again, until the workload was told of its quota";
    LOCAL_QUEUE_READY_WAIT_TIME = Histogram(WAITS), "kueue_local_queue_ready_wait_time_seconds"
        ["name" "namespace" "priority_class"]
        "From entering the queue, or entering it again, until the attempt ran";
    LOCAL_QUEUE_ADMITTED_UNTIL_READY_WAIT_TIME = Histogram(WAITS),
        "kueue_local_queue_admitted_until_ready_wait_time_seconds"
        ["name" "namespace" "priority_class"]
        "From being told of its quota until the attempt ran";
    LOCAL_QUEUE_FINISHED_WORKLOADS = Counter, "kueue_local_queue_finished_workloads_total"
        ["name" "namespace" "priority_class"]
        "Attempts of the LocalQueue that had quota and came to their end, other than by eviction";
    LOCAL_QUEUE_EVICTED_WORKLOADS = Counter, "kueue_local_queue_evicted_workloads_total"
        ["name" "namespace" "reason" "underlying_cause" "priority_class"]
        "Workloads of the LocalQueue that had to give their quota back";
    LOCAL_QUEUE_RESOURCE_RESERVATION = Gauge, "kueue_local_queue_resource_reservation"
        ["name" "namespace" "flavor" "resource"]
        "Quota that is reserved for the LocalQueue's workloads";
    LOCAL_QUEUE_RESOURCE_USAGE = Gauge, "kueue_local_queue_resource_usage"
        ["name" "namespace" "flavor" "resource"]
        "Quota of which the LocalQueue's workloads were told";
    LOCAL_QUEUE_ADMISSION_FAIR_SHARING_USAGE = Gauge, "kueue_local_queue_admission_fair_sharing_usage"
        ["name" "namespace" "cluster_queue"]
        "What the LocalQueue had lately, by weights, where its ClusterQueue goes by that: who had least is \
        next (infinite where the weight is zero)";
}

/// What Kueue has and we do not, and why.
pub static LEFT_OUT: &[(&str, &str)] = &[
    (
        "kueue_admission_attempt_duration_seconds",
        "the queue has no clock; `cargo xtask bench queue` measures it",
    ),
    (
        "kueue_admission_checks_wait_time_seconds",
        "there are no admission checks",
    ),
    (
        "kueue_admission_cycle_preemption_skips",
        "not kept from one cycle to the next",
    ),
    (
        "kueue_build_info",
        "it is of Kueue's build; ours is `blueproof_build_info`",
    ),
    (
        "kueue_finished_workloads",
        "counts finished objects that are not deleted yet; here nothing is deleted, and it would be the \
        counter again",
    ),
    (
        "kueue_local_queue_admission_checks_wait_time_seconds",
        "there are no admission checks",
    ),
    (
        "kueue_local_queue_finished_workloads",
        "as `kueue_finished_workloads`",
    ),
    (
        "kueue_local_queue_unadmitted_workloads",
        "off by default there; `blueproof get runs -o wide` has the reasons",
    ),
    ("kueue_pod_scheduling_gate_removal_seconds", "there are no pods"),
    (
        "kueue_unadmitted_workloads",
        "off by default there; `blueproof get runs -o wide` has the reasons",
    ),
    (
        "kueue_workload_creation_latency_seconds",
        "a run is its own workload",
    ),
    ("multikueue_workloads_admitted_total", "there is one machine"),
    ("multikueue_workloads_dispatched_total", "there is one machine"),
];
