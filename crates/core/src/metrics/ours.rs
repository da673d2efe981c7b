//! What the queue's own figures do not tell: runs, their stages, and blueprints.

use super::Kind::{Counter, Gauge, Histogram};

/// From a moment to two weeks: stages in which people and full queues are waited for, in seconds.
const STAGES: &[f64] = &[
    1.0,
    5.0,
    15.0,
    60.0,
    300.0,
    900.0,
    3600.0,
    14_400.0,
    43_200.0,
    86_400.0,
    259_200.0,
    604_800.0,
    1_209_600.0,
];

/// From a sample to a night of training, in seconds.
const RUNS: &[f64] = &[
    10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0,
];

super::table! {
    /// Every metric with a name of ours.
    OURS, constant &[];

    BUILD_INFO = Gauge, "blueproof_build_info" ["version"]
        "Always one; the label is the version that wrote this page";
    RUNS_TOTAL = Counter, "blueproof_runs_total" ["verdict"]
        "The total number of runs that ended, by verdict; a run that is retried counts again";
    STAGE_SECONDS = Histogram(STAGES), "blueproof_stage_seconds" ["stage"]
        "The time that a stage of a run took: gate (approval), queue (quota), quota (preempted workloads end), place, start";
    QUEUE_DEPTH = Gauge, "blueproof_queue_depth" ["stage"]
        "The number of runs that are in the stage now";
    QUEUE_OLDEST_TIMESTAMP = Gauge, "blueproof_queue_oldest_timestamp_seconds" ["stage"]
        "Since when the run has been in the stage that has been there longest, in seconds since 1970; \
        absent where none is";
    PREEMPTION_REVERSALS = Counter, "blueproof_preemption_reversals_total" ["preempting_cluster_queue"]
        "The total number of preempted workloads that the preempting one had been preempted for before, by its ClusterQueue";
    RUN_SECONDS = Histogram(RUNS), "blueproof_run_seconds" ["blueprint" "profile"]
        "The time from when an attempt started until it passed or failed";
    RUN_CPU_SECONDS = Counter, "blueproof_run_cpu_seconds_total" ["blueprint" "profile"]
        "The CPU time that attempts used, where it could be read";
    RUN_ALLOCATED_CPU_SECONDS = Counter, "blueproof_run_allocated_cpu_seconds_total" ["blueprint" "profile"]
        "The CPU time that the same attempts could have used: their request, and no less than what they used";
    RUN_GPU_ALLOCATED_SECONDS = Counter, "blueproof_run_gpu_allocated_seconds_total" ["blueprint" "profile"]
        "The GPU-seconds for which devices were allocated to attempts";
    RUN_GPU_SEEN_SECONDS = Counter, "blueproof_run_gpu_seen_seconds_total" ["blueprint" "profile"]
        "The allocated GPU-seconds for which the utilization is known";
    RUN_GPU_BUSY_SECONDS = Counter, "blueproof_run_gpu_busy_seconds_total" ["blueprint" "profile"]
        "The allocated GPU-seconds in which devices were busy, where that is known";
    RUN_GPU_ENERGY = Counter, "blueproof_run_gpu_energy_joules_total" ["blueprint" "profile"]
        "The energy that devices used while they were allocated to attempts, where it could be read";
    RUN_GPU_UTILIZATION_PEAK = Gauge, "blueproof_run_gpu_utilization_peak_ratio" ["blueprint" "profile"]
        "The peak utilization of a device in the last attempt for which it is known";
    RUN_GPU_MEMORY_PEAK = Gauge, "blueproof_run_gpu_memory_peak_bytes" ["blueprint" "profile"]
        "The peak memory use of a device in the last attempt for which it is known";
    BLUEPRINT_LAST_GREEN = Gauge, "blueproof_blueprint_last_green_timestamp_seconds" ["blueprint" "profile"]
        "When a run outside of any pull request last passed, in seconds since 1970";
}
