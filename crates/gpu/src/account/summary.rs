//! What is kept of a job, and shown.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_core::{
    figures::{Figures, RunUsage},
    gpu::{DeviceUuid, GpuInventory},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Holder,
    usage_record::{DeviceUsage, MemoryOf, Source, UsageRecord},
};
use crate::health::{AttemptVerdict, Evidence, Judgement};

/// The version of [`JobSummary`] as JSON. It grows when a field changes its meaning or goes, not when one is added.
///
/// Since the second, `allocatedGpuSeconds` is absent where it is not known which devices there were.
pub const SCHEMA_VERSION: u32 = 2;

/// What a job used. In JSON what is not known is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSummary {
    /// [`SCHEMA_VERSION`] when it was written.
    pub schema_version: u32,
    /// Whose job it was.
    pub holder: Holder,
    /// When it got its devices.
    pub from: Timestamp,
    /// When it gave them back; absent while it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Until when it was watched, where that was not until its end: it goes on, or whoever watched was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_until: Option<Timestamp>,
    /// Whether whoever watched was killed. What came after `seen_until` is in no figure then.
    #[serde(default, skip_serializing_if = "is_false")]
    pub watch_ended_early: bool,
    /// Why it is not known which devices it had, or whether these are all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices_unknown: Option<String>,
    /// Over all devices; absent where it is not known which there were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_gpu_seconds: Option<f64>,
    /// Over all devices, of what was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_gpu_seconds: Option<f64>,
    /// Over all devices, of what was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_joules: Option<f64>,
    /// The five figures of this job.
    pub figures: Figures,
    /// Device by device.
    pub devices: Vec<DeviceSummary>,
    /// Who was at fault, as far as the devices tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<AttemptVerdict>,
    /// What says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// What is known of a job's devices beside what they were used for.
#[derive(Debug, Clone, Default)]
pub struct Witnessed {
    /// Until when it was watched; looked at where it goes on.
    pub seen_until: Option<Timestamp>,
    /// Why it is not known which devices it had, or whether these are all.
    pub devices_unknown: Option<String>,
    /// Those whose drivers' reports were listened to from beginning to end.
    pub listened_to: BTreeSet<DeviceUuid>,
    /// Those that did not answer at some time.
    pub silent: BTreeMap<DeviceUuid, Silence>,
    /// Who was at fault; `None` where nobody judged.
    pub judgement: Option<Judgement>,
}

/// How a device did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Silence {
    /// A call of its driver did not come back in time.
    Hung,
    /// It was gone.
    Lost,
}

/// What a job used of one device, or of one part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceSummary {
    /// The device, or the part.
    pub device: DeviceUuid,
    /// The device that it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<DeviceUuid>,
    /// Its number among the driver's devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// Its model, in its maker's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What a part has of its device, such as `1g.10gb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Whether others had it at the same time, at some time. Then the seconds and joules are a share.
    pub shared: bool,
    /// GPU-seconds for which it was there for the job.
    pub allocated_seconds: f64,
    /// GPU-seconds in which it worked for the job, of what was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_seconds: Option<f64>,
    /// From what that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_source: Option<Source>,
    /// What it drew for the job, of what was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_joules: Option<f64>,
    /// What it drew meanwhile that none of those who shared it is charged with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unclaimed_joules: Option<f64>,
    /// How busy it was at most in one of the driver's periods, between 0 and 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_utilization: Option<f64>,
    /// How much memory was used at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// Whose memory that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_of: Option<MemoryOf>,
    /// Errors by NVIDIA's number, and how often each was reported.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub xids: BTreeMap<u64, u32>,
    /// Whether its driver's reports were listened to from beginning to end. Where not, no `xids` does not mean that there were
    /// none.
    #[serde(default)]
    pub listened_to: bool,
    /// How it did not answer at some time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<Silence>,
    /// How often the driver was loaded anew.
    pub reloads: u32,
    /// How much of it was seen, and what was left out.
    pub coverage: CoverageSummary,
}

/// How much was seen. Shares are between 0 and 1; they are absent where there was no time to see.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CoverageSummary {
    /// Of the time: how busy it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
    /// Of the time: what it drew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<f64>,
    /// Of the time: how full its memory was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
    /// Snapshots that were older than what was known already.
    pub ignored_snapshots: u32,
    /// Ends of the window that were told too late, or by a clock that went back.
    pub late_edges: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_false(is_so: &bool) -> bool {
    !is_so
}

impl JobSummary {
    /// Notes that nobody watches any more, and that the job ended at a time, where it has.
    pub fn cut_short(&mut self, until: Option<Timestamp>) {
        self.watch_ended_early = true;
        self.verdict = match self.verdict {
            Some(AttemptVerdict::Clean) => Some(AttemptVerdict::Unclear),
            other => other,
        };
        let seen_until = *self.seen_until.get_or_insert(self.from);
        self.until = until.map(|until| until.max(seen_until));
        let unseen = self.until.unwrap_or(seen_until).duration_since(seen_until);
        for device in &mut self.devices {
            device.miss(unseen.as_secs_f64());
        }
        if let Some(allocated) = &mut self.allocated_gpu_seconds {
            *allocated += unseen.as_secs_f64() * self.devices.len() as f64;
        }
        if let Some(until) = self.until {
            self.figures.average_build_seconds = Some(until.duration_since(self.from).as_secs_f64());
        }
    }

    /// Sums a job up. The devices' names come from `inventory`; what a bill cannot know, such as the use of processors,
    /// from `used`, whose figures of GPUs are not looked at.
    pub fn new(
        usage_record: &UsageRecord,
        inventory: &GpuInventory,
        used: &RunUsage,
        witnessed: Witnessed,
    ) -> Self {
        let total = usage_record.total();
        let used = RunUsage {
            gpu: Some(usage_record.used()),
            ..*used
        };
        let devices = usage_record.devices.iter();
        Self {
            schema_version: SCHEMA_VERSION,
            holder: usage_record.holder.clone(),
            from: usage_record.from,
            until: usage_record.until,
            seen_until: witnessed.seen_until.filter(|_| usage_record.until.is_none()),
            watch_ended_early: false,
            allocated_gpu_seconds: (witnessed.devices_unknown.is_none() || !usage_record.devices.is_empty())
                .then(|| total.allocated_seconds()),
            devices_unknown: witnessed.devices_unknown.clone(),
            busy_gpu_seconds: total.busy_seconds(),
            energy_joules: total.joules(),
            figures: Figures::of(&[used]),
            devices: devices
                .map(|device| DeviceSummary::new(device, inventory, &witnessed))
                .collect(),
            verdict: witnessed.judgement.as_ref().map(|judgement| judgement.verdict),
            evidence: witnessed
                .judgement
                .map(|judgement| judgement.evidence)
                .unwrap_or_default(),
        }
    }
}

impl DeviceSummary {
    /// Notes that it was there for the job for so long more, and nobody saw it.
    fn miss(&mut self, seconds: f64) {
        self.listened_to = false;
        let seen = self.allocated_seconds;
        self.allocated_seconds += seconds;
        let share = seen / self.allocated_seconds;
        let shares = [
            &mut self.coverage.busy,
            &mut self.coverage.energy,
            &mut self.coverage.memory,
        ];
        if share.is_finite() {
            for of in shares {
                *of = Some(of.unwrap_or(0.0) * share);
            }
        }
    }

    fn new(usage_record: &DeviceUsage, inventory: &GpuInventory, witnessed: &Witnessed) -> Self {
        let of_part = inventory.devices.iter().find_map(|device| {
            let mut parts = device.partitions.iter();
            Some((device, parts.find(|part| part.uuid == usage_record.device)?))
        });
        let whole = of_part.map(|(whole, _)| whole);
        let device = inventory.device(&usage_record.device).or(whole);
        let coverage = usage_record.amounts.coverage();
        Self {
            device: usage_record.device.clone(),
            part_of: usage_record
                .part_of
                .clone()
                .or(whole.map(|whole| whole.uuid.clone())),
            index: device.map(|device| device.index),
            model: device.map(|device| device.model.clone()),
            profile: of_part.and_then(|(_, part)| part.profile.clone().value()),
            shared: usage_record.is_shared,
            allocated_seconds: usage_record.amounts.allocated_seconds(),
            busy_seconds: usage_record.amounts.busy_seconds(),
            busy_source: usage_record.source,
            energy_joules: usage_record.amounts.joules(),
            unclaimed_joules: usage_record.unclaimed_joules,
            peak_utilization: usage_record.peak_utilization,
            peak_memory_bytes: usage_record.peak_memory.map(|memory| memory.bytes.0),
            peak_memory_of: usage_record.peak_memory.map(|memory| memory.of),
            xids: usage_record.xids.clone(),
            listened_to: device.is_some_and(|device| witnessed.listened_to.contains(&device.uuid)),
            silence: device.and_then(|device| witnessed.silent.get(&device.uuid).copied()),
            reloads: usage_record.reloads,
            coverage: CoverageSummary {
                busy: coverage.map(|coverage| coverage.busy),
                energy: coverage.map(|coverage| coverage.energy),
                memory: coverage.map(|coverage| coverage.memory),
                ignored_snapshots: usage_record.ignored_snapshots,
                late_edges: usage_record.late_edges,
            },
        }
    }
}
