//! What is kept of a job's devices to say afterwards who was at fault.

use std::collections::{BTreeSet, VecDeque};

use blueproof_core::gpu::{DeviceEvent, DeviceUuid, GpuInventory, GpuSnapshot};
use blueproof_diagnostic::{Code, Diagnostic};

use crate::health::{
    AttemptVerdict, Blame, CheckPolicy, Evidence, Facts, FlightRecord, Heard, Judgement, Reports, judge,
};

/// So many of the last snapshots are looked over: what held for a moment only is no problem.
const SNAPSHOTS: usize = 8;

/// A driver that reports more than that says nothing new.
const EVENTS: usize = 256;

/// What was read since the job began, and what was read last before it.
#[derive(Debug, Default)]
pub(super) struct FlightRecorder {
    before: Option<GpuSnapshot>,
    since: VecDeque<GpuSnapshot>,
    events: Vec<DeviceEvent>,
    has_begun: bool,
}

impl FlightRecorder {
    pub(super) fn read(&mut self, snapshot: &GpuSnapshot) {
        if !self.has_begun {
            self.before = Some(snapshot.clone());
            return;
        }
        if self.since.len() == SNAPSHOTS {
            self.since.pop_front();
        }
        self.since.push_back(snapshot.clone());
    }

    /// What was reported before the job began is not its own.
    pub(super) fn reported(&mut self, event: &DeviceEvent) {
        if self.has_begun && self.events.len() < EVENTS {
            self.events.push(event.clone());
        }
    }

    pub(super) fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Judges a job that was given `devices`, of which these were listened to from beginning to end.
    ///
    /// A driver that does not answer at the end leaves it open: it may only be slow, and the last inventory stands.
    pub(super) fn judge(
        &self,
        devices: &[DeviceUuid],
        inventory: &GpuInventory,
        listened_to: &BTreeSet<DeviceUuid>,
    ) -> Judgement {
        let promised: BTreeSet<_> = devices.iter().cloned().collect();
        let since: Vec<_> = self.since.iter().cloned().collect();
        let flight = FlightRecord {
            promised: &promised,
            before: self.before.as_ref(),
            since: Facts {
                inventory: Ok(inventory),
                snapshots: &since,
                reports: Reports {
                    events: &self.events,
                    heard: Heard::Only(listened_to),
                },
            },
        };
        judge(&CheckPolicy::default(), &flight)
    }
}

/// Returns why the machine was at fault, if it was.
pub(super) fn fault(judgement: &Judgement) -> Option<Diagnostic> {
    if judgement.verdict != AttemptVerdict::InfrastructureFault {
        return None;
    }
    let fault = Diagnostic::error(Code::DeviceFault, "a GPU failed under the attempt");
    let evidence = of(judgement, Blame::Infrastructure);
    let fault = evidence
        .fold(fault, |fault, evidence| fault.because(words(evidence)))
        .hint("see `dmesg`: what the driver says there tells whether it has to be reset, or replaced");
    if judgement.unhealthy.is_empty() {
        return Some(fault);
    }
    Some(fault.hint("no attempt is given it until the next boot, or a reset: `blueproof explain BP0649`"))
}

/// Returns what whoever reads of the attempt should know of its devices beside that.
pub(super) fn notices(judgement: &Judgement) -> Vec<Diagnostic> {
    let errors = of(judgement, Blame::Job).map(|evidence| {
        Diagnostic::warning(Code::DeviceError, "the program made an error on its GPU")
            .because(words(evidence))
            .hint("`compute-sanitizer python …` finds the line that does it")
    });
    let left = &judgement.leftovers;
    let processes = left
        .processes
        .iter()
        .map(|left| format!("{}: process {}", left.place, left.pid));
    let memory = left
        .memory
        .iter()
        .map(|left| format!("{}: {} of memory, {} before", left.place, left.after, left.before));
    let left: Vec<_> = processes.chain(memory).collect();
    let leftovers = (!left.is_empty()).then(|| {
        let notice = Diagnostic::warning(Code::DeviceLeftovers, "something was left on a GPU");
        left.into_iter()
            .fold(notice, Diagnostic::because)
            .hint("see `nvidia-smi`; a process that blueproof did not start may have begun meanwhile")
    });
    errors.chain(leftovers).collect()
}

fn of(judgement: &Judgement, blame: Blame) -> impl Iterator<Item = &Evidence> {
    judgement
        .evidence
        .iter()
        .filter(move |evidence| evidence.blame == blame)
}

fn words(evidence: &Evidence) -> String {
    match &evidence.device {
        Some(device) => format!("{device}: {}", evidence.words),
        None => evidence.words.clone(),
    }
}
