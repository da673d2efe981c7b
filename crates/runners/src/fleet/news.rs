//! What follows for one runner from what is told of it.

use blueproof_core::ports::{RunnerName, RunnerState};
use jiff::{SignedDuration, Timestamp};

use super::{CallKind, CallOutcome, Fleet};
use crate::record::{Remains, Remnant, Rerun, RunnerEnd, RunnerJob, RunnerRecord, RunnerStage};

/// How long after its runner was lost a job is looked at: until then the news may come that it was done before.
const RERUN_AFTER: SignedDuration = SignedDuration::from_mins(2);
/// How long GitHub takes to notice that a runner is gone which had a job.
const BUSY_PAUSE: SignedDuration = SignedDuration::from_secs(30);
/// How long the end of a removal is waited for before it is asked for again.
const REMOVAL_WITHIN: SignedDuration = SignedDuration::from_mins(1);
/// GitHub's word for a job that is done and well.
const SUCCESS: &str = "success";

impl Fleet {
    pub(super) fn on_job_started(&mut self, now: Timestamp, name: &RunnerName, job: RunnerJob) {
        let Some(record) = self.records.get(name) else {
            return;
        };
        if record.job.is_some() {
            // A runner takes one job. The same news comes twice.
            return;
        }
        let stage = record.stage.clone();
        self.launch_failures_end();
        if let Some(record) = self.change(name) {
            record.job = Some(job);
        }
        match stage {
            RunnerStage::Requested | RunnerStage::Launched | RunnerStage::Running | RunnerStage::Retiring => {
                self.change_stage(now, name, RunnerStage::Running);
            }
            RunnerStage::Ended { end, left: _ } | RunnerStage::Gone { end } => {
                if end.is_failure() {
                    self.want_rerun(now, name);
                }
            }
        }
    }

    pub(super) fn on_job_completed(&mut self, now: Timestamp, name: &RunnerName, result: String) {
        let Some(record) = self.change(name) else {
            return;
        };
        let is_running = record.stage == RunnerStage::Running;
        let Some(job) = &mut record.job else {
            return;
        };
        if job.rerun == Rerun::Wanted && result == SUCCESS {
            job.rerun = Rerun::Declined;
        }
        if job.result.is_none() {
            job.result = Some(result);
            if is_running {
                record.since = now;
            }
        }
    }

    pub(super) fn on_news(&mut self, now: Timestamp, name: &RunnerName, state: RunnerState) {
        self.recovering.remove(name);
        match state {
            RunnerState::Running => self.on_running(now, name),
            RunnerState::Completed => self.end(now, name, RunnerEnd::Completed),
            RunnerState::Failed { message } => self.end(now, name, RunnerEnd::Failed { message }),
            RunnerState::Lost { message } => self.end(now, name, RunnerEnd::Lost { message }),
            RunnerState::Removed => self.on_removed(now, name),
            RunnerState::NotRemoved { error: _ } => self.on_failed(now, name, CallKind::Remove),
        }
    }

    pub(super) fn on_called(&mut self, now: Timestamp, name: &RunnerName, outcome: CallOutcome) {
        match outcome {
            CallOutcome::Launched { registration } => self.on_launched(now, name, registration),
            CallOutcome::NotLaunched {
                registration,
                message,
            } => {
                self.finish_call(name, CallKind::Launch);
                if let Some(record) = self.change(name) {
                    record.registration = registration;
                }
                self.end(now, name, RunnerEnd::NotStarted { message });
            }
            CallOutcome::Observed => {
                self.finish_call(name, CallKind::Observe);
                self.recovering.remove(name);
            }
            CallOutcome::Unknown => self.on_unknown(now, name),
            CallOutcome::Deregistered => self.on_deregistered(now, name),
            CallOutcome::JobStillRunning => self.on_still_running(now, name),
            CallOutcome::RemovalBegun => {
                self.under_way.remove(&(name.clone(), CallKind::Remove));
                self.pauses.until(name, CallKind::Remove, now + REMOVAL_WITHIN);
            }
            CallOutcome::RerunRequested => self.on_rerun(name, Rerun::Requested),
            CallOutcome::RerunDeclined => self.on_rerun(name, Rerun::Declined),
            CallOutcome::RerunTooEarly => self.on_failed(now, name, CallKind::Rerun),
            CallOutcome::Failed { call } => self.on_failed(now, name, call.into()),
        }
    }

    fn on_launched(&mut self, now: Timestamp, name: &RunnerName, registration: i64) {
        self.finish_call(name, CallKind::Launch);
        let Some(record) = self.change(name) else {
            return;
        };
        record.registration = Some(registration);
        // That it runs, or is over, may be known already.
        if record.stage == RunnerStage::Requested {
            self.change_stage(now, name, RunnerStage::Launched);
        }
    }

    fn on_running(&mut self, now: Timestamp, name: &RunnerName) {
        let stage = self.records.get(name).map(|record| &record.stage);
        if matches!(stage, Some(RunnerStage::Requested | RunnerStage::Launched)) {
            self.change_stage(now, name, RunnerStage::Running);
        }
    }

    /// Its provider was never asked for it: what it was registered with died with the process that had it.
    fn on_unknown(&mut self, now: Timestamp, name: &RunnerName) {
        self.finish_call(name, CallKind::Observe);
        self.recovering.remove(name);
        let was_running = self
            .records
            .get(name)
            .is_some_and(|record| record.stage == RunnerStage::Running);
        if was_running {
            let message = "nothing is left of it on its machine".into();
            return self.end(now, name, RunnerEnd::Lost { message });
        }
        let message = "the scheduler ended before it was started".into();
        self.end(now, name, RunnerEnd::NotStarted { message });
        // That is nothing to be careful about.
        self.launch_failures_end();
    }

    fn on_removed(&mut self, now: Timestamp, name: &RunnerName) {
        self.finish_call(name, CallKind::Remove);
        let is_over = self.records.get(name).is_some_and(RunnerRecord::is_over);
        if !is_over {
            let message = "its machine was removed by somebody else".into();
            self.end(now, name, RunnerEnd::Lost { message });
        }
        self.note_removed(now, name, |left| left.machine = Remnant::Removed);
    }

    fn on_deregistered(&mut self, now: Timestamp, name: &RunnerName) {
        self.finish_call(name, CallKind::Deregister);
        let stage = self.records.get(name).map(|record| record.stage.clone());
        if stage == Some(RunnerStage::Retiring) {
            let end = RunnerEnd::Retired;
            let left = Remains {
                registration: Remnant::Removed,
                machine: Remnant::Left,
            };
            return self.change_stage(now, name, RunnerStage::Ended { end, left });
        }
        self.note_removed(now, name, |left| left.registration = Remnant::Removed);
    }

    fn on_still_running(&mut self, now: Timestamp, name: &RunnerName) {
        self.under_way.remove(&(name.clone(), CallKind::Deregister));
        let stage = self.records.get(name).map(|record| record.stage.clone());
        if stage == Some(RunnerStage::Retiring) {
            self.pauses.clear(name, CallKind::Deregister);
            if let Some(job) = self.change(name).and_then(|record| record.job.as_mut()) {
                // That it was over was not so.
                job.result = None;
            }
            return self.change_stage(now, name, RunnerStage::Running);
        }
        self.pauses.until(name, CallKind::Deregister, now + BUSY_PAUSE);
    }

    fn on_rerun(&mut self, name: &RunnerName, rerun: Rerun) {
        self.finish_call(name, CallKind::Rerun);
        if let Some(job) = self.change(name).and_then(|record| record.job.as_mut()) {
            job.rerun = rerun;
        }
    }

    fn on_failed(&mut self, now: Timestamp, name: &RunnerName, kind: CallKind) {
        self.under_way.remove(&(name.clone(), kind));
        self.pauses.failed(now, name, kind);
    }

    pub(super) fn finish_call(&mut self, name: &RunnerName, kind: CallKind) {
        self.under_way.remove(&(name.clone(), kind));
        self.pauses.clear(name, kind);
    }

    /// Ends a runner that is not over.
    fn end(&mut self, now: Timestamp, name: &RunnerName, end: RunnerEnd) {
        let Some(record) = self.records.get(name).filter(|record| !record.is_over()) else {
            return;
        };
        let (has_job, is_busy) = (record.job.is_some(), record.is_busy());
        match (has_job, &end) {
            // One that had a job has registered itself, and it is no matter of ours how that went.
            (true, _) | (false, RunnerEnd::Retired) => self.launch_failures_end(),
            // One that ends well without a job would be followed by another at once, and that by another. Where the news of its
            // job is only late, they end the pause.
            (
                false,
                RunnerEnd::Completed
                | RunnerEnd::Failed { .. }
                | RunnerEnd::Lost { .. }
                | RunnerEnd::NotStarted { .. },
            ) => self.launch_failed(now),
        }
        let mut left = Remains::ALL;
        if has_job && end == RunnerEnd::Completed {
            // GitHub forgets by itself who has done the one job.
            left.registration = Remnant::Removed;
        }
        let is_loss = is_busy && end.is_failure();
        self.change_stage(now, name, RunnerStage::Ended { end, left });
        if is_loss {
            self.want_rerun(now, name);
        }
    }

    /// Has the job of a lost runner run once more, unless that was so before.
    fn want_rerun(&mut self, now: Timestamp, name: &RunnerName) {
        let Some(job) = self.records.get(name).and_then(|record| record.job.clone()) else {
            return;
        };
        let is_second = self.records.values().any(|other| {
            let other = other.job.as_ref().filter(|_| other.name != *name);
            other.is_some_and(|other| other.has_rerun() && other.is_of_same(&job))
        });
        let rerun = if is_second { Rerun::Declined } else { Rerun::Wanted };
        if let Some(job) = self.change(name).and_then(|record| record.job.as_mut()) {
            job.rerun = rerun;
        }
        self.pauses.until(name, CallKind::Rerun, now + RERUN_AFTER);
    }

    fn note_removed(&mut self, now: Timestamp, name: &RunnerName, note: impl FnOnce(&mut Remains)) {
        let Some(RunnerStage::Ended { end, left }) = self.records.get(name).map(|record| &record.stage)
        else {
            return;
        };
        let (end, mut left) = (end.clone(), *left);
        note(&mut left);
        let stage = match left.is_nothing() {
            true => RunnerStage::Gone { end },
            false => RunnerStage::Ended { end, left },
        };
        self.change_stage(now, name, stage);
    }
}

impl RunnerEnd {
    /// Returns whether its machine or program is at fault.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Failed { .. } | Self::Lost { .. } => true,
            Self::Completed | Self::NotStarted { .. } | Self::Retired => false,
        }
    }
}

impl RunnerJob {
    pub(crate) fn has_rerun(&self) -> bool {
        match self.rerun {
            Rerun::Wanted | Rerun::Requested | Rerun::Declined => true,
            Rerun::None => false,
        }
    }

    /// Returns whether another is the same job, in whichever attempt of its workflow run.
    fn is_of_same(&self, other: &Self) -> bool {
        (&self.repository, self.workflow_run, &self.name)
            == (&other.repository, other.workflow_run, &other.name)
    }
}
