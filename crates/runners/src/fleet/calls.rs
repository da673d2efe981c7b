//! Which calls are to be made now, and when those again that failed.

use std::collections::BTreeMap;

use blueproof_core::ports::RunnerName;
use jiff::{SignedDuration, Timestamp};

use super::{CallKind, Fleet, FleetAction, RunnerCall, RunnerCallKind};
use crate::record::{Remnant, Rerun, RunnerRecord, RunnerStage};

/// The longest pause before a call is made again.
const LONGEST: SignedDuration = SignedDuration::from_mins(1);

/// When calls are made again, and how often they failed in a row.
#[derive(Debug, Default)]
pub(super) struct Pauses(BTreeMap<(RunnerName, CallKind), (u32, Timestamp)>);

impl Pauses {
    /// Notes that a call failed.
    pub(super) fn failed(&mut self, now: Timestamp, name: &RunnerName, kind: CallKind) {
        let known = self.0.get(&(name.clone(), kind)).map_or(0, |(times, _)| *times);
        let at = now + pause(known);
        self.0.insert((name.clone(), kind), (known.saturating_add(1), at));
    }

    /// Has a call made no earlier than after a while.
    pub(super) fn until(&mut self, name: &RunnerName, kind: CallKind, at: Timestamp) {
        self.0.insert((name.clone(), kind), (0, at));
    }

    pub(super) fn clear(&mut self, name: &RunnerName, kind: CallKind) {
        self.0.remove(&(name.clone(), kind));
    }

    /// Forgets what is about a runner.
    pub(super) fn forget(&mut self, of: impl Fn(&RunnerName) -> bool) {
        self.0.retain(|(name, _), _| !of(name));
    }

    fn due_at(&self, name: &RunnerName, kind: CallKind) -> Option<Timestamp> {
        self.0.get(&(name.clone(), kind)).map(|(_, at)| *at)
    }
}

/// Returns the pause after so many failures in a row before.
pub(super) fn pause(times: u32) -> SignedDuration {
    SignedDuration::from_secs(1 << times.min(6)).min(LONGEST)
}

impl Fleet {
    /// Returns the calls that are due and not under way, which are so from now on.
    pub(super) fn wanted(&mut self, now: Timestamp) -> Vec<FleetAction> {
        let mut actions = Vec::new();
        for record in self.records.values() {
            let is_recovering = self.recovering.contains(&record.name);
            for call in calls_of(record, is_recovering) {
                let key = (record.name.clone(), call.kind());
                if self.under_way.contains(&key) {
                    continue;
                }
                match self
                    .pauses
                    .due_at(&record.name, call.kind())
                    .filter(|at| *at > now)
                {
                    Some(at) => self.next_wakeup = Some(self.next_wakeup.map_or(at, |next| next.min(at))),
                    None => {
                        self.under_way.insert(key);
                        let runner = record.name.clone();
                        actions.push(FleetAction { runner, call });
                    }
                }
            }
        }
        actions
    }
}

fn calls_of(record: &RunnerRecord, is_recovering: bool) -> Vec<RunnerCall> {
    let mut calls = Vec::new();
    let deregister = || RunnerCall::Deregister {
        registration: record.registration,
    };
    match &record.stage {
        RunnerStage::Requested if !is_recovering => calls.push(RunnerCall::Launch {
            label: record.label.clone(),
        }),
        RunnerStage::Requested | RunnerStage::Launched | RunnerStage::Running => {
            calls.extend(is_recovering.then_some(RunnerCall::Observe));
        }
        RunnerStage::Retiring => calls.push(deregister()),
        RunnerStage::Ended { end: _, left } => {
            calls.extend((left.machine == Remnant::Left).then_some(RunnerCall::Remove));
            calls.extend((left.registration == Remnant::Left).then(deregister));
        }
        RunnerStage::Gone { .. } => {}
    }
    let job = record.job.as_ref().filter(|job| job.rerun == Rerun::Wanted);
    calls.extend(job.map(|job| RunnerCall::Rerun { job: job.clone() }));
    calls
}

impl RunnerCall {
    pub(crate) fn kind(&self) -> CallKind {
        match self {
            Self::Launch { .. } => CallKind::Launch,
            Self::Observe => CallKind::Observe,
            Self::Deregister { .. } => CallKind::Deregister,
            Self::Remove => CallKind::Remove,
            Self::Rerun { .. } => CallKind::Rerun,
        }
    }
}

impl From<RunnerCallKind> for CallKind {
    fn from(kind: RunnerCallKind) -> Self {
        match kind {
            RunnerCallKind::Observe => Self::Observe,
            RunnerCallKind::Deregister => Self::Deregister,
            RunnerCallKind::Remove => Self::Remove,
            RunnerCallKind::Rerun => Self::Rerun,
        }
    }
}
