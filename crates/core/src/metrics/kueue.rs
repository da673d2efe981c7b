//! The queue's metrics, under Kueue 0.19.2's names: its kinds, labels and buckets, our words.

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
        "The number of admission cycles: success where at least one workload was admitted, inadmissible where \
        none was";

    PENDING_WORKLOADS = Gauge, "kueue_pending_workloads" ["cluster_queue" "status"]
        "The number of pending workloads: active ones are tried in the next cycles, inadmissible ones only after \
        something in the cohort changes";
    RESERVING_ACTIVE_WORKLOADS = Gauge, "kueue_reserving_active_workloads" ["cluster_queue"]
        "The number of workloads that reserve quota, admitted or not yet";
    ADMITTED_ACTIVE_WORKLOADS = Gauge, "kueue_admitted_active_workloads" ["cluster_queue"]
        "The number of admitted workloads that are active";
    CLUSTER_QUEUE_STATUS = Gauge, "kueue_cluster_queue_status" ["cluster_queue" "status"]
        "One for the status that the ClusterQueue has (pending, active or terminating), zero for the others";
    CLUSTER_QUEUE_INFO = Gauge, "kueue_cluster_queue_info" ["cluster_queue" "parent_cohort" "root_cohort"]
        "Always one; the labels say which cohorts the ClusterQueue is in";
    CLUSTER_QUEUE_WEIGHTED_SHARE = Gauge, "kueue_cluster_queue_weighted_share" ["cluster_queue" "cohort"]
        "The quota that is borrowed, in thousandths of what the cohort could lend, divided by the weight (NaN \
        where the weight is zero); with fair sharing only";

    QUOTA_RESERVED_WORKLOADS = Counter, "kueue_quota_reserved_workloads_total"
        ["cluster_queue" "priority_class"]
        "The total number of workloads for which quota was reserved";
    QUOTA_RESERVED_WAIT_TIME = Histogram(WAITS), "kueue_quota_reserved_wait_time_seconds"
        ["cluster_queue" "priority_class"]
        "The time from when a workload was queued or requeued until quota was reserved for it";
    ADMITTED_WORKLOADS = Counter, "kueue_admitted_workloads_total" ["cluster_queue" "priority_class"]
        "The total number of admitted workloads";
    ADMISSION_WAIT_TIME = Histogram(LONG_WAITS), "kueue_admission_wait_time_seconds"
        ["cluster_queue" "priority_class"]
        "The time from when a workload was queued or requeued until it was admitted";
    READY_WAIT_TIME = Histogram(WAITS), "kueue_ready_wait_time_seconds" ["cluster_queue" "priority_class"]
        "The time from when a workload was queued or requeued until its attempt ran";
    ADMITTED_UNTIL_READY_WAIT_TIME = Histogram(WAITS), "kueue_admitted_until_ready_wait_time_seconds"
        ["cluster_queue" "priority_class"]
        "The time from when a workload was admitted until its attempt ran";
    FINISHED_WORKLOADS = Counter, "kueue_finished_workloads_total" ["cluster_queue" "priority_class"]
        "The total number of admitted workloads that finished, without those that were evicted";
    EVICTED_WORKLOADS = Counter, "kueue_evicted_workloads_total"
        ["cluster_queue" "reason" "underlying_cause" "priority_class"]
        "The total number of evicted workloads, by reason: Preempted, LocalQueueStopped or ClusterQueueStopped";
    EVICTED_WORKLOADS_ONCE = Counter, "kueue_evicted_workloads_once_total"
        ["cluster_queue" "reason" "underlying_cause" "priority_class"]
        "The total number of evicted workloads, each run counted once for each reason";
    PREEMPTED_WORKLOADS = Counter, "kueue_preempted_workloads_total" ["preempting_cluster_queue" "reason"]
        "The total number of preempted workloads, by the ClusterQueue of the preempting workload and the reason";
    PODS_READY_TO_EVICTED_TIME = Histogram(WAITS), "kueue_pods_ready_to_evicted_time_seconds"
        ["cluster_queue" "reason" "underlying_cause"]
        "The time from when an attempt ran until its workload was evicted";
    WORKLOAD_EVICTION_LATENCY = Histogram(WAITS), "kueue_workload_eviction_latency_seconds"
        ["cluster_queue" "reason"]
        "The time from the eviction until the quota was released and the workload was requeued";

    CLUSTER_QUEUE_RESOURCE_RESERVATION = Gauge, "kueue_cluster_queue_resource_reservation"
        ["cohort" "cluster_queue" "flavor" "resource"]
        "The quota that workloads of the ClusterQueue reserve";
    CLUSTER_QUEUE_RESOURCE_USAGE = Gauge, "kueue_cluster_queue_resource_usage"
        ["cohort" "cluster_queue" "flavor" "resource"]
        "The quota that admitted workloads of the ClusterQueue use";
    CLUSTER_QUEUE_RESOURCE_PENDING = Gauge, "kueue_cluster_queue_resource_pending"
        ["cluster_queue" "resource"]
        "The quota that pending workloads of the ClusterQueue request";
    CLUSTER_QUEUE_NOMINAL_QUOTA = Gauge, "kueue_cluster_queue_nominal_quota"
        ["cohort" "cluster_queue" "flavor" "resource"]
        "The ClusterQueue's nominal quota";
    CLUSTER_QUEUE_BORROWING_LIMIT = Gauge, "kueue_cluster_queue_borrowing_limit"
        ["cohort" "cluster_queue" "flavor" "resource"]
        "How much more than its nominal quota the ClusterQueue may use; infinite without a limit";
    CLUSTER_QUEUE_LENDING_LIMIT = Gauge, "kueue_cluster_queue_lending_limit"
        ["cohort" "cluster_queue" "flavor" "resource"]
        "How much of its nominal quota the ClusterQueue lends; infinite without a limit";

    COHORT_INFO = Gauge, "kueue_cohort_info" ["cohort" "parent_cohort" "root_cohort"]
        "Always one; the labels say which cohorts the cohort is in";
    COHORT_WEIGHTED_SHARE = Gauge, "kueue_cohort_weighted_share" ["cohort"]
        "The quota that the cohort borrows, in thousandths of what its parent could lend, divided by the weight \
        (infinite where the weight is zero); with fair sharing only";
    COHORT_SUBTREE_QUOTA = Gauge, "kueue_cohort_subtree_quota" ["cohort" "flavor" "resource"]
        "The quota of the cohort and of all queues and cohorts below it, without what these do not lend";
    COHORT_SUBTREE_RESOURCE_RESERVATIONS = Gauge, "kueue_cohort_subtree_resource_reservations"
        ["cohort" "flavor" "resource"]
        "The quota that is reserved in the ClusterQueues below the cohort";
    COHORT_SUBTREE_ADMITTED_ACTIVE_WORKLOADS = Gauge, "kueue_cohort_subtree_admitted_active_workloads"
        ["cohort"]
        "The number of admitted workloads of the ClusterQueues below the cohort that are active";
    COHORT_SUBTREE_ADMITTED_WORKLOADS = Counter, "kueue_cohort_subtree_admitted_workloads_total"
        ["cohort" "priority_class"]
        "The total number of admitted workloads of the ClusterQueues below the cohort";

    LOCAL_QUEUE_PENDING_WORKLOADS = Gauge, "kueue_local_queue_pending_workloads" ["name" "namespace" "status"]
        "The number of pending workloads of the LocalQueue";
    LOCAL_QUEUE_RESERVING_ACTIVE_WORKLOADS = Gauge, "kueue_local_queue_reserving_active_workloads"
        ["name" "namespace"]
        "The number of workloads of the LocalQueue that reserve quota, admitted or not yet";
    LOCAL_QUEUE_ADMITTED_ACTIVE_WORKLOADS = Gauge, "kueue_local_queue_admitted_active_workloads"
        ["name" "namespace"]
        "The number of admitted workloads of the LocalQueue that are active";
    LOCAL_QUEUE_STATUS = Gauge, "kueue_local_queue_status" ["name" "namespace" "active"]
        "One for True where the LocalQueue and its ClusterQueue admit, one for False where they do not; zero \
        for the others";
    LOCAL_QUEUE_QUOTA_RESERVED_WORKLOADS = Counter, "kueue_local_queue_quota_reserved_workloads_total"
        ["name" "namespace" "priority_class"]
        "The total number of workloads of the LocalQueue for which quota was reserved";
    LOCAL_QUEUE_QUOTA_RESERVED_WAIT_TIME = Histogram(WAITS),
        "kueue_local_queue_quota_reserved_wait_time_seconds"
        ["name" "namespace" "priority_class"]
        "The time from when a workload was queued or requeued until quota was reserved for it";
    LOCAL_QUEUE_ADMITTED_WORKLOADS = Counter, "kueue_local_queue_admitted_workloads_total"
        ["name" "namespace" "priority_class"]
        "The total number of admitted workloads of the LocalQueue";
    LOCAL_QUEUE_ADMISSION_WAIT_TIME = Histogram(WAITS), "kueue_local_queue_admission_wait_time_seconds"
        ["name" "namespace" "priority_class"]
        "The time from when a workload was queued or requeued until it was admitted";
    LOCAL_QUEUE_READY_WAIT_TIME = Histogram(WAITS), "kueue_local_queue_ready_wait_time_seconds"
        ["name" "namespace" "priority_class"]
        "The time from when a workload was queued or requeued until its attempt ran";
    LOCAL_QUEUE_ADMITTED_UNTIL_READY_WAIT_TIME = Histogram(WAITS),
        "kueue_local_queue_admitted_until_ready_wait_time_seconds"
        ["name" "namespace" "priority_class"]
        "The time from when a workload was admitted until its attempt ran";
    LOCAL_QUEUE_FINISHED_WORKLOADS = Counter, "kueue_local_queue_finished_workloads_total"
        ["name" "namespace" "priority_class"]
        "The total number of admitted workloads of the LocalQueue that finished, without those that were \
        evicted";
    LOCAL_QUEUE_EVICTED_WORKLOADS = Counter, "kueue_local_queue_evicted_workloads_total"
        ["name" "namespace" "reason" "underlying_cause" "priority_class"]
        "The total number of evicted workloads of the LocalQueue";
    LOCAL_QUEUE_RESOURCE_RESERVATION = Gauge, "kueue_local_queue_resource_reservation"
        ["name" "namespace" "flavor" "resource"]
        "The quota that workloads of the LocalQueue reserve";
    LOCAL_QUEUE_RESOURCE_USAGE = Gauge, "kueue_local_queue_resource_usage"
        ["name" "namespace" "flavor" "resource"]
        "The quota that admitted workloads of the LocalQueue use";
    LOCAL_QUEUE_ADMISSION_FAIR_SHARING_USAGE = Gauge, "kueue_local_queue_admission_fair_sharing_usage"
        ["name" "namespace" "cluster_queue"]
        "The LocalQueue's recent usage by weight, where its ClusterQueue has admission fair sharing: the least \
        goes first (infinite where the weight is zero)";
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
