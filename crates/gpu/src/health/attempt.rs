//! Who was at fault in an attempt, as far as the devices tell: the machine, the job, or nobody.
//!
//! Whether to try again is the scheduler's decision, and whether the job passed is not asked here.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_core::gpu::{DeviceEvent, DeviceUuid, Figure, FigureKind, GpuInventory, GpuSnapshot, Sample};
use serde::{Deserialize, Serialize};

use super::{
    Answer, CheckId, CheckPolicy, Facts, Finding, Findings, Leftovers, Scope, Severity, Why,
    answer::words_of,
    check_devices,
    facts::value_of,
    leftovers, unhealthy_devices,
    xid::{XidClass, xid_class, xid_words},
};

/// What is known of an attempt's devices.
#[derive(Debug, Clone, Copy)]
pub struct FlightRecord<'a> {
    /// The devices, or parts of them, that it was promised. Others are not looked at: they are somebody else's.
    pub promised: &'a BTreeSet<DeviceUuid>,
    /// What was read last before it began. `None` where nothing was.
    pub before: Option<&'a GpuSnapshot>,
    /// What was read since it began: snapshots in flight, the last of them after it ended, and all events meanwhile.
    pub since: Facts<'a>,
}

/// Who was at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AttemptVerdict {
    /// The machine was, whatever the job did.
    InfrastructureFault,
    /// The job was, and nothing speaks against the machine.
    JobFault,
    /// Nobody was: every check that counts was done and is ok, and nothing was left behind.
    Clean,
    /// No fault was found, and not all is known or well: the judgement says what is not.
    Unclear,
}

/// On whom a piece of evidence lays the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Blame {
    /// On the machine.
    Infrastructure,
    /// On the job.
    Job,
    /// On nobody: it is a blemish that broke nothing.
    Nobody,
}

/// Something that was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// On whom it lays the fault.
    pub blame: Blame,
    /// Where it was seen, if not on the machine as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceUuid>,
    /// What was seen, with figures.
    pub words: String,
}

/// Who was at fault, and what says so. Its text is for a terminal of 80 columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    /// Who was at fault.
    pub verdict: AttemptVerdict,
    /// What says so: the machine's faults first.
    pub evidence: Vec<Evidence>,
    /// What could not be told and would have counted.
    pub unknown: Vec<Finding>,
    /// What the attempt left behind.
    pub leftovers: Leftovers,
    /// Which of the devices, and parts of them, nobody should be given after it, each with what says so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unhealthy: BTreeMap<DeviceUuid, String>,
}

impl Judgement {
    /// Returns whether the machine was at fault and the job erred too, which may well follow from it.
    pub fn job_erred_too(&self) -> bool {
        self.verdict == AttemptVerdict::InfrastructureFault
            && self.evidence.iter().any(|evidence| evidence.blame == Blame::Job)
    }
}

/// Judges an attempt by its devices.
pub fn judge(policy: &CheckPolicy, flight: &FlightRecord<'_>) -> Judgement {
    let devices = flight.devices();
    let promised = CheckPolicy {
        expected_devices: u32::try_from(devices.len()).ok(),
        ..policy.clone()
    };
    let findings = check_devices(&promised, &flight.since, &devices);
    let mut evidence = of_events(flight, &devices);
    evidence.extend(of_findings(&findings));
    let mut unknown = open(&findings, policy);
    for device in &devices {
        let grown = growth(flight, device);
        evidence.extend(grown.evidence);
        unknown.extend(grown.unknown);
    }
    evidence.sort_by_key(|one| one.blame);
    let last = flight.since.snapshots.last();
    let leftovers = leftovers(
        flight.promised,
        flight.before,
        last,
        policy.leftover_memory_at_most,
    );
    let none = GpuInventory::default();
    let unhealthy = unhealthy_devices(&findings, flight.since.inventory.unwrap_or(&none));
    let is_known = !devices.is_empty() && !policy.counting.is_empty() && unknown.is_empty();
    Judgement {
        verdict: match evidence.first().map(|evidence| evidence.blame) {
            Some(Blame::Infrastructure) => AttemptVerdict::InfrastructureFault,
            Some(Blame::Job) => AttemptVerdict::JobFault,
            None if is_known && leftovers.is_clean() => AttemptVerdict::Clean,
            Some(Blame::Nobody) | None => AttemptVerdict::Unclear,
        },
        evidence,
        unknown,
        leftovers,
        unhealthy,
    }
}

impl FlightRecord<'_> {
    /// Returns the devices that were promised, as wholes or in parts.
    fn devices(&self) -> BTreeSet<DeviceUuid> {
        let listed = self
            .since
            .inventory
            .iter()
            .flat_map(|inventory| &inventory.devices);
        let parts_listed = listed.flat_map(|device| {
            let parts = device.partitions.iter();
            parts.map(|part| (&part.uuid, &device.uuid))
        });
        let snapshots = self.before.into_iter().chain(self.since.snapshots);
        let samples = snapshots.flat_map(|snapshot| &snapshot.samples);
        let parts_read = samples.filter_map(|sample| Some((sample.partition.as_ref()?, &sample.device)));
        let parents: BTreeMap<_, _> = parts_listed.chain(parts_read).collect();
        let whole = |place| parents.get(place).copied().unwrap_or(place);
        self.promised.iter().map(whole).cloned().collect()
    }
}

/// Returns what drivers reported of some devices, each number once.
fn of_events(flight: &FlightRecord<'_>, devices: &BTreeSet<DeviceUuid>) -> Vec<Evidence> {
    let events = flight.since.reports.events.iter();
    let ours = events.filter(|event| devices.contains(&event.device));
    let each: BTreeSet<_> = ours
        .map(|event: &DeviceEvent| (&event.device, event.xid))
        .collect();
    let told = each.into_iter().filter_map(|(device, xid)| {
        let blame = match xid_class(xid) {
            XidClass::Reset | XidClass::Contained => Blame::Infrastructure,
            XidClass::Application => Blame::Job,
            XidClass::Unknown => Blame::Nobody,
            XidClass::Informational => return None,
        };
        Some(Evidence {
            blame,
            device: Some(device.clone()),
            words: format!("XID {xid}: {}", xid_words(xid)),
        })
    });
    told.collect()
}

/// Returns the problems that checks found, but for what drivers reported.
fn of_findings(findings: &Findings) -> Vec<Evidence> {
    let problems = findings
        .problems()
        .filter(|(finding, _)| finding.check != CheckId::Xids);
    let each = problems.map(|(finding, severity)| Evidence {
        blame: match (severity, finding.check.scope()) {
            // No job takes a device or the driver away.
            (Severity::Evict, _) | (Severity::Warn, Scope::Machine) => Blame::Infrastructure,
            // A narrow link or a warm device slows a job down, and fails none.
            (Severity::Warn, Scope::Device) => Blame::Nobody,
        },
        device: finding.device.clone(),
        words: format!("{}: {}", finding.check, finding.answer),
    });
    each.collect()
}

/// Returns the checks that count and did not answer.
fn open(findings: &Findings, policy: &CheckPolicy) -> Vec<Finding> {
    let open = findings.open(&policy.counting).into_iter();
    let each = open.map(|(check, device)| Finding {
        check,
        device: device.cloned(),
        answer: match findings.of(check, device) {
            Some(answer) => answer.clone(),
            None => Answer::undecided("it was not done"),
        },
    });
    each.collect()
}

/// What a job cannot do to a device. Where one of these grows meanwhile, the device broke under it.
const BROKEN: [(Figure, CheckId); 6] = [
    (Figure::RowRemapPending, CheckId::RemappedRows),
    (Figure::RowRemapFailure, CheckId::RemappedRows),
    (Figure::UncorrectableRemappedRows, CheckId::RemappedRows),
    (Figure::RetiredPagesPending, CheckId::RetiredPages),
    (Figure::RetiredPagesUncorrectable, CheckId::RetiredPages),
    (Figure::UncorrectedErrors, CheckId::Ecc),
];

#[derive(Default)]
struct Growth {
    evidence: Vec<Evidence>,
    unknown: Vec<Finding>,
}

/// Returns what broke on a device during the attempt.
fn growth(flight: &FlightRecord<'_>, device: &DeviceUuid) -> Growth {
    let mut growth = Growth::default();
    let before = flight.before.and_then(|before| before.of(device));
    let after = flight.since.snapshots.last().and_then(|after| after.of(device));
    let (Some(before), Some(after)) = (before, after) else {
        growth.unknown.push(Finding {
            check: CheckId::Presence,
            device: Some(device.clone()),
            answer: Answer::undecided(
                "it was not read both before and after: what broke meanwhile is not known",
            ),
        });
        return growth;
    };
    for (figure, check) in BROKEN {
        match grown(figure, before, after) {
            Ok(None) => {}
            Ok(Some(words)) => growth.evidence.push(Evidence {
                blame: Blame::Infrastructure,
                device: Some(device.clone()),
                words,
            }),
            Err(why) => growth.unknown.push(Finding {
                check,
                device: Some(device.clone()),
                answer: why.into(),
            }),
        }
    }
    growth
}

/// Returns by how much a figure grew, in words, if it did.
fn grown(figure: Figure, before: &Sample, after: &Sample) -> Result<Option<String>, Why> {
    let (before, after) = match (value_of(before, figure), value_of(after, figure)) {
        // A card does not learn it meanwhile: whether that matters is for its check to say.
        (Err(Why::NotTold { .. }), Err(Why::NotTold { .. })) => return Ok(None),
        (Err(why), _) | (_, Err(why)) => return Err(why),
        (Ok(before), Ok(after)) => (before, after),
    };
    let has_fallen = after < before && figure.kind() == FigureKind::Counter;
    if has_fallen {
        let words = format!(
            "{} fell from {before} to {after}: the driver was loaded anew",
            words_of(figure)
        );
        return Err(Why::Undecided { words });
    }
    Ok((after > before).then(|| format!("{} grew from {before} to {after} meanwhile", words_of(figure))))
}
