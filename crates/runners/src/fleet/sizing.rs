//! How many runners there are to be, and which of them go when there are too many.
//!
//! What is over counts as nothing: a runner that failed keeps no other from being made. Nothing goes on one signal: there have to be too
//! many for a while, the ledger has to have no job for it, and GitHub has to agree, which it does for none that has a job.

use std::collections::BTreeSet;

use blueproof_core::ports::RunnerName;
use jiff::Timestamp;

use super::{Fleet, calls::pause};
use crate::{
    label::UniqueLabel,
    record::{RunnerRecord, RunnerStage},
};

impl Fleet {
    /// Makes as many runners as are needed and can be placed, and retires what is too many.
    pub(super) fn size(&mut self, now: Timestamp) {
        self.next_wakeup = None;
        self.retire_doubtful(now);
        let mut labels: BTreeSet<Option<UniqueLabel>> = self.demand.keys().cloned().collect();
        labels.extend(self.records.values().map(|record| record.label.clone()));
        for label in labels {
            // Before the demand is known, what an earlier process has made stays.
            let Some(desired) = self.desired(label.as_ref()) else {
                continue;
            };
            let live = self.n_live_of(label.as_ref());
            if desired < live {
                self.shrink(now, label, live - desired);
            } else {
                self.surplus_since.remove(&label);
                self.grow(now, label.as_ref(), desired - live);
            }
        }
    }

    /// Returns how many live runners a label is to have; `None` before that is known.
    fn desired(&self, label: Option<&UniqueLabel>) -> Option<u32> {
        let jobs = *self.demand.get(&label.cloned())?;
        let idle = if label.is_none() {
            self.settings.min_runners
        } else {
            0
        };
        Some(jobs.saturating_add(idle).min(self.settings.max_runners))
    }

    pub(super) fn desired_in_all(&self) -> u32 {
        let each = self
            .demand
            .keys()
            .filter_map(|label| self.desired(label.as_ref()));
        each.sum::<u32>().min(self.settings.max_runners)
    }

    fn n_live_of(&self, label: Option<&UniqueLabel>) -> u32 {
        let live = self
            .records
            .values()
            .filter(|record| record.is_live() && record.label.as_ref() == label);
        u32::try_from(live.count()).unwrap_or(u32::MAX)
    }

    fn grow(&mut self, now: Timestamp, label: Option<&UniqueLabel>, by: u32) {
        if by == 0 {
            return;
        }
        if let Some(at) = self.launch_again_at.filter(|at| *at > now) {
            return self.wake_at(at);
        }
        let allowed = self.settings.max_runners.saturating_sub(self.n_live());
        // After a failure one is tried first.
        let tried = if self.n_launch_failures > 0 { 1 } else { u32::MAX };
        let by = by.min(allowed).min(self.room.unwrap_or(0)).min(tried);
        for _ in 0..by {
            let name = self.new_name();
            let record = RunnerRecord {
                name: name.clone(),
                label: label.cloned(),
                registration: None,
                stage: RunnerStage::Requested,
                job: None,
                requested_at: now,
                since: now,
            };
            self.records.insert(name.clone(), record);
            self.changed.insert(name);
        }
        self.room = self.room.map(|room| room - by);
        if tried == 1 && by == 1 {
            // The next one goes by how this one fares.
            self.launch_again_at = Some(now + pause(self.n_launch_failures));
        }
    }

    fn shrink(&mut self, now: Timestamp, label: Option<UniqueLabel>, by: u32) {
        let since = *self.surplus_since.entry(label.clone()).or_insert(now);
        let at = since + self.settings.surplus_grace;
        if at > now {
            return self.wake_at(at);
        }
        let of_label = || self.records.values().filter(|record| record.label == label);
        let retiring = of_label().filter(|record| record.stage == RunnerStage::Retiring && record.is_live());
        let by = (by as usize).saturating_sub(retiring.count());
        let mut idle: Vec<_> = of_label()
            .filter(|record| record.stage == RunnerStage::Running && record.job.is_none())
            .map(|record| (record.since, record.name.clone()))
            .collect();
        idle.sort();
        for (_, name) in idle.into_iter().take(by) {
            self.change_stage(now, &name, RunnerStage::Retiring);
        }
        // Those of which GitHub says that they have a job are too many for another while before it is asked again.
        self.surplus_since.insert(label, now);
        self.wake_at(now + self.settings.surplus_grace);
    }

    /// Has GitHub asked about runners that do nothing while jobs wait, and about those whose job is said to be over and that go on.
    fn retire_doubtful(&mut self, now: Timestamp) {
        let mut doubtful: Vec<RunnerName> = Vec::new();
        let mut wakeups = Vec::new();
        for record in self.records.values() {
            if record.stage != RunnerStage::Running {
                continue;
            }
            let within = match &record.job {
                Some(job) if job.result.is_some() => self.settings.linger_at_most,
                None if self.has_waiting_jobs(record.label.as_ref()) => self.settings.idle_at_most,
                Some(_) | None => continue,
            };
            match record.since + within {
                at if at > now => wakeups.push(at),
                _ => doubtful.push(record.name.clone()),
            }
        }
        for at in wakeups {
            self.wake_at(at);
        }
        for name in doubtful {
            self.change_stage(now, &name, RunnerStage::Retiring);
        }
    }

    /// Returns whether there are jobs of a label that no runner has.
    fn has_waiting_jobs(&self, label: Option<&UniqueLabel>) -> bool {
        let of_label = self
            .records
            .values()
            .filter(|record| record.label.as_ref() == label);
        let busy = of_label
            .filter(|record| record.is_busy() && !record.is_over())
            .count();
        let jobs = self.demand.get(&label.cloned()).copied().unwrap_or(0);
        (jobs as usize) > busy
    }

    fn wake_at(&mut self, at: Timestamp) {
        self.next_wakeup = Some(self.next_wakeup.map_or(at, |next| next.min(at)));
    }

    pub(super) fn launch_failed(&mut self, now: Timestamp) {
        self.launch_again_at = Some(now + pause(self.n_launch_failures));
        self.n_launch_failures = self.n_launch_failures.saturating_add(1);
    }

    pub(super) fn launch_failures_end(&mut self) {
        self.n_launch_failures = 0;
        self.launch_again_at = None;
    }
}
