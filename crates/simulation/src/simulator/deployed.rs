//! Jobs that have their quota: what becomes of their pods, and what the retry machine makes of that.
//!
//! The machine alone decides when a job is created again, given up, or moved away from a bad node. Here is what it decides
//! about.

use blueproof_queue::Eviction;
use jiff::SignedDuration;

use super::{Due, Place, Simulator, number};
use crate::retry::{DesiredState, Operation, Step};
use crate::{
    deployment::{Pods, Turn},
    history::{EventKind, EvictionCause, Reset},
};

impl Simulator<'_> {
    /// Creates what a job consists of, now that it has its quota.
    pub(super) fn deploy(&mut self, job: usize) {
        self.states[job].deployment.wanted = DesiredState::Running;
        self.look(job);
    }

    /// A job has to give its quota back. One that was not admitted yet is in the queue again already.
    pub(super) fn on_evicted(&mut self, eviction: &Eviction, cause: EvictionCause) {
        if eviction.was_admitted {
            self.evict(number(eviction.workload), cause);
        }
    }

    /// Tells a job that runs to give its quota back.
    pub(super) fn evict(&mut self, job: usize, cause: EvictionCause) {
        if self.states[job].place != Place::Running {
            return;
        }
        self.note_eviction(job, cause);
        self.states[job].place = Place::Leaving;
        if !self.is_past_stopping(job) {
            self.states[job].deployment.wanted = DesiredState::Suspended;
            self.look(job);
        }
    }

    /// Returns whether a job is so near its end that it comes to it, told to go or not.
    pub(super) fn is_past_stopping(&self, job: usize) -> bool {
        let state = &self.states[job];
        let execution = self.scenario.jobs[job].execution(state.interrupted);
        matches!(state.deployment.pods, Pods::Running { until } if until - self.now <= execution.closing)
    }

    pub(super) fn on_work_done(&mut self, job: usize) {
        self.states[job].deployment.pods = Pods::Succeeded;
        self.look(job);
    }

    pub(super) fn on_gone(&mut self, job: usize) {
        self.remove_pods(job);
        self.look(job);
    }

    /// A pod of a job fails, if any runs.
    pub(super) fn on_pod_failed(&mut self, job: usize, exit_code: i32) {
        if let Pods::Running { until } = self.states[job].deployment.pods {
            self.agenda.remove(&(until, Due::Done(job)));
            self.states[job].deployment.pods = Pods::Failed { exit_code };
            self.note(EventKind::PodFailed { job, exit_code });
            self.look(job);
        }
    }

    /// Whoever has a pod on the node looks at it.
    pub(super) fn on_node_failed(&mut self, node: &str) {
        let hit = self.nodes.fail(node);
        self.note(EventKind::NodeFailed { node: node.into() });
        self.follow_nodes();
        for job in hit {
            self.look(job);
        }
    }

    pub(super) fn on_node_recovered(&mut self, node: &str) {
        self.nodes.recover(node);
        self.note(EventKind::NodeRecovered { node: node.into() });
        self.follow_nodes();
        self.fill_nodes();
    }

    /// Lets a job's machine look at it and does what it says, until it has no more to say for now.
    pub(super) fn look(&mut self, job: usize) {
        if let Some(at) = self.states[job].deployment.look_at.take() {
            self.agenda.remove(&(at, Due::Look(job)));
        }
        while self.may_look() {
            let step = self.observe(job);
            let has_changed = step.todo.is_some_and(|todo| self.carry_out(job, todo));
            if self.states[job].deployment.is_released() {
                return self.let_go(job);
            }
            match step.look_again {
                Some(after) if after.is_zero() || has_changed => {}
                Some(after) => return self.look_later(job, after),
                None => return,
            }
        }
    }

    /// Counts a look. A job that is tried again and again without a pause could be looked at for ever.
    fn may_look(&mut self) -> bool {
        self.history.cut_short |= self.looks_left == 0;
        self.looks_left = self.looks_left.saturating_sub(1);
        !self.history.cut_short
    }

    fn observe(&mut self, job: usize) -> Step {
        let now = self.timestamp(self.now);
        let asked = &self.scenario.jobs[job];
        let (step, turn) = self.states[job].deployment.observe(now, job, asked, &self.nodes);
        let at = self.now;
        match turn {
            Some(Turn::Reset(reason)) => {
                let period = self.history.job_records[job]
                    .periods
                    .last_mut()
                    .expect("it has its quota");
                period.resets.push(Reset {
                    at,
                    reason,
                    again: None,
                });
                self.note(EventKind::Reset { job, reason });
            }
            Some(Turn::Failed(reason)) => {
                self.history.job_records[job].failed = Some((at, reason));
                self.note(EventKind::Failed { job, reason });
            }
            None => {}
        }
        step
    }

    /// All that changes where everything runs is told to the machine; only for the rest it has to look again.
    fn look_later(&mut self, job: usize, after: SignedDuration) {
        let deployment = &mut self.states[job].deployment;
        if !deployment.is_well() {
            let at = self.now + after;
            deployment.look_at = Some(at);
            self.agenda.insert((at, Due::Look(job)));
        }
    }

    /// Returns whether it changed anything.
    fn carry_out(&mut self, job: usize, todo: Operation) -> bool {
        match (todo, self.states[job].deployment.pods) {
            (Operation::Create, Pods::None) => self.create(job),
            (Operation::Delete, Pods::Leaving { .. }) | (Operation::Create, _) => return false,
            (Operation::Delete, _) => self.delete(job),
            (Operation::DeleteForcefully, _) => self.remove_pods(job),
        }
        true
    }

    fn create(&mut self, job: usize) {
        if !self.bind(job) {
            self.states[job].deployment.pods = Pods::Pending { since: self.now };
            self.pending.insert((self.now, job));
            self.note(EventKind::Pending { job });
        }
    }

    /// Puts all pods of a job on nodes, where its work begins anew, or none.
    fn bind(&mut self, job: usize) -> bool {
        let state = &mut self.states[job];
        let asked = &self.scenario.jobs[job];
        if !self.nodes.put(job, asked, &state.pod_sets) {
            return false;
        }
        let has_waited = matches!(state.deployment.pods, Pods::Pending { .. });
        let until = self.now + asked.execution(state.interrupted).runs_for;
        state.deployment.pods = Pods::Running { until };
        self.agenda.insert((until, Due::Done(job)));
        let period = self.history.job_records[job]
            .periods
            .last_mut()
            .expect("it has its quota");
        let reset = period.resets.last_mut().filter(|reset| reset.again.is_none());
        if has_waited || reset.is_some() {
            if let Some(reset) = reset {
                reset.again = Some(self.now);
            }
            self.note(EventKind::Running { job });
        }
        true
    }

    /// Begins to delete the pods of a job, which may take its grace.
    fn delete(&mut self, job: usize) {
        self.forget(job);
        let state = &mut self.states[job];
        let grace = self.scenario.jobs[job].execution(state.interrupted).grace;
        if grace.is_zero() || matches!(state.deployment.pods, Pods::Pending { .. }) {
            return self.remove_pods(job);
        }
        let until = self.now + grace;
        state.deployment.pods = Pods::Leaving { until };
        self.agenda.insert((until, Due::Gone(job)));
    }

    fn remove_pods(&mut self, job: usize) {
        self.forget(job);
        self.states[job].deployment.pods = Pods::None;
        self.nodes.clear(job);
        self.fill_nodes();
    }

    /// Takes what is due of a job's pods from the agenda.
    fn forget(&mut self, job: usize) {
        match self.states[job].deployment.pods {
            Pods::Pending { since } => drop(self.pending.remove(&(since, job))),
            Pods::Running { until } => drop(self.agenda.remove(&(until, Due::Done(job)))),
            Pods::Leaving { until } => drop(self.agenda.remove(&(until, Due::Gone(job)))),
            Pods::None | Pods::Failed { .. } | Pods::Succeeded => {}
        }
    }

    /// Puts pods on nodes that have room now, those first that wait longest.
    fn fill_nodes(&mut self) {
        for (since, job) in self.pending.clone() {
            if self.pending.contains(&(since, job)) && self.bind(job) {
                self.pending.remove(&(since, job));
                self.look(job);
            }
        }
    }

    /// Takes the quota back from a job that no longer needs it.
    fn let_go(&mut self, job: usize) {
        let was_told = self.states[job].deployment.wanted == DesiredState::Suspended;
        let has_succeeded = self.states[job].deployment.pods == Pods::Succeeded;
        self.leave(job);
        self.nodes.clear(job);
        if has_succeeded {
            self.on_done(job);
        } else if self.history.job_records[job].failed.is_some() {
            // It said so when it was given up.
        } else if self.history.job_records[job].deactivated.is_some() {
            self.note(EventKind::Deactivated { job });
        } else if was_told {
            self.come_back(job);
        }
        self.fill_nodes();
    }
}
