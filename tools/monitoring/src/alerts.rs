//! The alerts: what is wrong, when that is told, and what to do first.
//!
//! Prometheus does not see the increase with which a counter begins. Where one error is enough, the time of the last is
//! compared, and not a counter.

use blueproof_core::{gpu::Figure, metrics as m};
use blueproof_gpu::pages::native;

use crate::{
    expr::{Expr, expr},
    recorded,
};

/// An alert.
#[derive(Debug)]
pub(crate) struct Alert {
    pub(crate) name: &'static str,
    pub(crate) severity: Severity,
    /// For how long it must be so.
    pub(crate) lasts: &'static str,
    pub(crate) expr: Expr,
    /// One line.
    pub(crate) summary: &'static str,
    /// What is so, with whom and how much.
    pub(crate) description: &'static str,
    /// What to do first.
    pub(crate) hint: &'static str,
}

/// How urgent it is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Severity {
    /// Work is lost, or will be.
    Critical,
    /// Somebody should look at it in the next days.
    Warning,
}

impl Severity {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}

/// What nobody can be told of, and why.
pub(crate) static LEFT_OUT: &[(&str, &str)] = &[
    (
        "a device wants to be reset, drained or replaced",
        "NVML's recovery action is not read yet",
    ),
    (
        "less than 15 % of a disk is free",
        "node_exporter's `node_filesystem_avail_bytes` has it",
    ),
    (
        "less than 10 % of GitHub's rate limit is left",
        "GitHub is not spoken to yet",
    ),
    (
        "a playground's session is past its time",
        "there is no playground yet",
    ),
];

/// Returns the alerts on runs and queues.
pub(crate) fn of_runs() -> Vec<Alert> {
    vec![
        Alert {
            name: "BlueproofMetricsAbsent",
            severity: Severity::Warning,
            lasts: "15m",
            expr: expr("absent(#)", &[&m::BUILD_INFO]),
            summary: "Nothing is known of runs and queues.",
            description: "No page of `blueproof metrics` reached Prometheus for 15 minutes, so no other alert on runs can be \
                          told.",
            hint: "See whether the timer that runs `blueproof metrics` still does, and what it says.",
        },
        Alert {
            name: "BlueproofOldestRunWaitsLong",
            severity: Severity::Warning,
            lasts: "10m",
            expr: expr(
                "time() - #{stage=~\"queue|quota|place|start\"} > on (job, instance, stage) 2 * #",
                &[&m::QUEUE_OLDEST_TIMESTAMP, &recorded::STAGE_P95],
            ),
            summary: "A run waits in stage {{ $labels.stage }} for more than twice as long as nearly all others did.",
            description: "The run that has been in stage {{ $labels.stage }} longest has been there for \
                          {{ $value | humanizeDuration }}; 95 of 100 took less than half of that in the last week.",
            hint: "`blueproof get runs` shows the oldest, and `blueproof why RUN` what it waits for and what would end that.",
        },
        Alert {
            name: "BlueproofBlueprintNotGreen",
            severity: Severity::Warning,
            lasts: "5m",
            expr: expr("time() - # > 36 * 3600", &[&m::BLUEPRINT_LAST_GREEN]),
            summary: "{{ $labels.blueprint }} has not passed for 36 hours.",
            description: "No run of {{ $labels.blueprint }}{{ with $labels.profile }} ({{ . }}){{ end }} that is of no pull request has passed for \
                          {{ $value | humanizeDuration }}.",
            hint: "`blueproof get runs` shows whether its runs fail or none was asked for, and the report of the last says why.",
        },
        Alert {
            name: "BlueproofPreemptionGoesBackAndForth",
            severity: Severity::Warning,
            lasts: "0m",
            expr: expr("increase(#[1h]) > 2", &[&m::PREEMPTION_REVERSALS]),
            summary: "Workloads of {{ $labels.preempting_cluster_queue }} and of others evict each other by turns.",
            description: "{{ $value | printf \"%.0f\" }} times in an hour a workload had to go for one that had been evicted for it; \
                          the one that came back is of {{ $labels.preempting_cluster_queue }}.",
            hint: "Compare `preemption` of the ClusterQueues of the cohort: two that may each take back from the other never \
                   settle.",
        },
    ]
}

/// Returns the alerts on devices and on who reads them.
pub(crate) fn of_devices() -> Vec<Alert> {
    let mut alerts = of_exporters();
    alerts.extend(of_readings());
    alerts.extend(of_use());
    alerts.extend(of_errors());
    alerts.extend(of_clocks());
    alerts
}

fn of_exporters() -> Vec<Alert> {
    vec![
        Alert {
            name: "BlueproofGpuExporterAbsent",
            severity: Severity::Warning,
            lasts: "10m",
            expr: expr("absent(#)", &[&native::UP]),
            summary: "Nothing is known of any GPU.",
            description: "No blueproof-exporter was read by Prometheus for ten minutes.",
            hint: "See Prometheus' page of targets: either none is found, or none answers.",
        },
        Alert {
            name: "BlueproofGpuExporterDown",
            severity: Severity::Warning,
            lasts: "10m",
            expr: expr("up{job=~\".*blueproof-exporter.*\"} == 0", &[]),
            summary: "The exporter on {{ $labels.instance }} does not answer.",
            description: "Prometheus could not read {{ $labels.instance }} for ten minutes, so nothing is known of its GPUs.",
            hint: "See whether the machine is up, and the log of blueproof-exporter on it.",
        },
        Alert {
            name: "BlueproofGpuExporterBlind",
            severity: Severity::Critical,
            lasts: "5m",
            expr: expr(
                "# == 1 or on (job, instance) # == 0",
                &[&native::BLIND, &native::UP],
            ),
            summary: "The GPUs of {{ $labels.instance }} cannot be read.",
            description: "The exporter on {{ $labels.instance }} answers, and cannot read any device\
                          {{ with $labels.reason }} ({{ . }}){{ end }}.",
            hint: "`blueproof-exporter --once` on that machine says why, with an error code and what to do.",
        },
    ]
}

fn of_readings() -> Vec<Alert> {
    vec![
        Alert {
            name: "BlueproofGpuNone",
            severity: Severity::Critical,
            lasts: "5m",
            expr: expr("#{kind=\"physical\"} == 0", &[&native::DEVICES]),
            summary: "The driver of {{ $labels.instance }} knows no GPU.",
            description: "The NVIDIA driver of {{ $labels.instance }} is loaded, and lists no device.",
            hint: "Compare `lspci -d 10de:` with `nvidia-smi -L`, and look for Xid 79 in `dmesg`.",
        },
        Alert {
            name: "BlueproofGpuUnidentified",
            severity: Severity::Critical,
            lasts: "5m",
            expr: expr("#{kind=\"unidentified\"} > 0", &[&native::DEVICES]),
            summary: "A GPU of {{ $labels.instance }} does not say who it is.",
            description: "The NVIDIA driver of {{ $labels.instance }} counts devices ({{ $value }}) that did not answer since it was \
                          opened: nothing is known of them.",
            hint: "See `dmesg | grep -i -e nvrm -e xid`; drain the machine, and reset the device or the machine.",
        },
        Alert {
            name: "BlueproofGpuReadingsOld",
            severity: Severity::Warning,
            lasts: "5m",
            expr: expr("# > 120", &[&native::AGE]),
            summary: "What is told of the GPUs of {{ $labels.instance }} is old.",
            description: "The last reading of the devices of {{ $labels.instance }} that came to an end began \
                          {{ $value | humanizeDuration }} ago.",
            hint: "A call into the driver hangs: see `dmesg` for Xid errors, and which process holds the device.",
        },
        Alert {
            name: "BlueproofGpuUnreadable",
            severity: Severity::Warning,
            lasts: "10m",
            expr: expr("# > 0", &[&native::FAULTS]),
            summary: "GPU {{ $labels.uuid }} on {{ $labels.instance }} answers with errors.",
            description: "{{ $value }} figures that the device has could not be read for ten minutes: {{ $labels.fault }}.",
            hint: "Where it is lost, drain the machine and reset the device or the machine.",
        },
    ]
}

fn of_use() -> Vec<Alert> {
    vec![
        Alert {
            name: "BlueproofGpuHeldIdle",
            severity: Severity::Warning,
            lasts: "10m",
            expr: expr(
                "# * on (job, instance, uuid, partition) group_left # < 0.05",
                &[&native::OWNER, &recorded::DEVICE_BUSY],
            ),
            summary: "{{ $labels.namespace }}/{{ $labels.pod }} holds a GPU and does not use it.",
            description: "GPU {{ $labels.uuid }}{{ with $labels.partition }} ({{ . }}){{ end }} was busy for \
                      {{ $value | humanizePercentage }} of the last ten minutes, and {{ $labels.namespace }}/{{ $labels.pod }} \
                      has had it all the while.",
            hint: "Ask whoever has it, or end the run: others may wait for it.",
        },
        Alert {
            name: "BlueproofGpuMoreAdvertised",
            severity: Severity::Warning,
            lasts: "15m",
            expr: expr(
                "#{kind=\"advertised\"} > on (job, instance) #{kind=\"physical\"}",
                &[&native::DEVICES, &native::DEVICES],
            ),
            summary: "{{ $labels.instance }} promises more GPUs than it has.",
            description: "The kubelet of {{ $labels.instance }} has {{ $value }} GPUs to give away for 15 minutes, and the driver \
                          lists fewer: a device is gone, or is given to several at once.",
            hint: "Where sharing is meant, silence it; else drain the node and see `nvidia-smi -L` and `dmesg`.",
        },
        Alert {
            name: "BlueproofGpuOwnersUnknown",
            severity: Severity::Warning,
            lasts: "15m",
            expr: expr(
                "# == 1 or on (job, instance) # == 0",
                &[&native::SILENT, &native::KUBELET],
            ),
            summary: "The kubelet of {{ $labels.instance }} does not tell who has which GPU.",
            description: "The exporter on {{ $labels.instance }} has not learned from the kubelet for 15 minutes who has which \
                          device{{ with $labels.reason }} ({{ . }}){{ end }}.",
            hint: "See that the kubelet's pod-resources socket is mounted into the exporter's pod, and the exporter's log.",
        },
    ]
}

fn of_errors() -> Vec<Alert> {
    vec![
        xid(
            "BlueproofGpuXidCritical",
            Severity::Critical,
            "time() - #{xid=~\"46|48|61|62|64|74|79|95|109|110|119|120|136|140|143|157|158|161|167|169|171|172\"} < 600",
            "Drain the machine, and reset the device or the machine before it gets work again.",
        ),
        xid(
            "BlueproofGpuXidContained",
            Severity::Warning,
            "time() - #{xid=~\"94|168\"} < 600",
            "Only the process that met it is lost; reset the device when nobody uses it.",
        ),
        Alert {
            name: "BlueproofGpuUncorrectedErrors",
            severity: Severity::Critical,
            lasts: "0m",
            expr: expr(
                "increase(#[1h]) > 0",
                &[native::family(Figure::UncorrectedErrors)],
            ),
            summary: "Memory of GPU {{ $labels.uuid }} on {{ $labels.instance }} lost data.",
            description: "{{ $value | printf \"%.0f\" }} errors of its memory could not be corrected in the last hour.",
            hint: "Do not trust what ran there since; drain the machine, and reset the device.",
        },
        Alert {
            name: "BlueproofGpuRowRemapFailed",
            severity: Severity::Critical,
            lasts: "0m",
            expr: expr("# == 1", &[native::family(Figure::RowRemapFailure)]),
            summary: "Memory of GPU {{ $labels.uuid }} on {{ $labels.instance }} cannot be repaired.",
            description: "A row of its memory is broken, and none is left to replace it with.",
            hint: "Take the device out of service, and have it replaced.",
        },
        Alert {
            name: "BlueproofGpuResetWanted",
            severity: Severity::Warning,
            lasts: "0m",
            expr: expr(
                "# == 1 or # == 1",
                &[
                    native::family(Figure::RowRemapPending),
                    native::family(Figure::RetiredPagesPending),
                ],
            ),
            summary: "GPU {{ $labels.uuid }} on {{ $labels.instance }} waits for a reset.",
            description: "Broken memory is replaced or given up at the next reset of the device, and not before.",
            hint: "Drain the machine when it suits, and reset the device.",
        },
    ]
}

fn xid(name: &'static str, severity: Severity, template: &str, hint: &'static str) -> Alert {
    Alert {
        name,
        severity,
        lasts: "0m",
        expr: expr(template, &[&native::XID_LAST]),
        summary: "The driver reported Xid {{ $labels.xid }} of GPU {{ $labels.uuid }} on {{ $labels.instance }}.",
        description: "The last one was {{ $value | humanizeDuration }} ago.",
        hint,
    }
}

fn of_clocks() -> Vec<Alert> {
    vec![
        Alert {
            name: "BlueproofGpuTooHot",
            severity: Severity::Warning,
            lasts: "5m",
            expr: expr(
                "# == 1 or # == 1",
                &[
                    native::family(Figure::HardwareThermalSlowdown),
                    native::family(Figure::SoftwareThermalSlowdown),
                ],
            ),
            summary: "GPU {{ $labels.uuid }} on {{ $labels.instance }} is slowed down by its heat.",
            description: "For five minutes its hardware or driver has kept its clocks low so that it cools down.",
            hint: "See the fans, the air and the other devices of that machine; times measured there mean little.",
        },
        Alert {
            name: "BlueproofGpuPowerBrake",
            severity: Severity::Warning,
            lasts: "5m",
            expr: expr("# == 1", &[native::family(Figure::HardwarePowerBrake)]),
            summary: "GPU {{ $labels.uuid }} on {{ $labels.instance }} is slowed down by the power supply.",
            description: "For five minutes the machine's power supply has told the device to draw less.",
            hint: "See the power supplies of that machine and its rack.",
        },
    ]
}
