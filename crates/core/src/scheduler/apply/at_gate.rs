//! How facts change what waits at the gate, and what is held.

use std::collections::BTreeSet;

use crate::{
    approval::{Hold, HoldTarget},
    domain::{Actor, Head, PullRequest, RunId},
    scheduler::{Scheduler, gate, run::Phase, timers::Timer},
};

impl Scheduler {
    /// Takes note of a push. The heads of the runs that there are were the pull request's before it.
    pub(super) fn synchronize(&mut self, pull_request: &PullRequest, head: &Head) {
        let origin = (pull_request.repository.clone(), Some(pull_request.number));
        let runs = self.by_origin.get(&origin).into_iter().flatten();
        let heads = runs
            .map(|run| self.runs[run].request.subject.head.clone())
            .collect();
        self.gate.synchronize(pull_request, head, heads);
    }

    pub(super) fn hold(&mut self, target: &HoldTarget, by: &Actor) {
        self.gate.hold(Hold {
            target: target.clone(),
            by: by.clone(),
            since: self.now,
        });
        let runs = match target {
            HoldTarget::PullRequest(pull_request) => {
                let origin = (pull_request.repository.clone(), Some(pull_request.number));
                self.by_origin.get(&origin).cloned().unwrap_or_default()
            }
            HoldTarget::Run(run) => BTreeSet::from([*run]),
        };
        for run in runs {
            self.note_hold(run);
        }
        self.touch_runs_in(target);
    }

    /// Notes that what is held goes on.
    pub(super) fn resume(&mut self, target: &HoldTarget) {
        self.gate.resume(target);
        self.touch_runs_in(target);
    }

    /// Notes how many attempts a run has that is held: it gets no other until it is resumed.
    pub(super) fn note_hold(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let held = self.gate.hold_of(id, &run.request.subject).is_some();
        run.attempts_when_held = held.then_some(run.attempts.len());
    }

    pub(super) fn send_to_gate(&mut self, id: RunId) {
        let since = self.now;
        let Some(run) = self.runs.get(&id) else { return };
        let held = self.gate.hold_of(id, &run.request.subject).is_some();
        let run = self.change(id).expect("just found");
        run.age_when_held = match run.phase {
            Phase::Queued { since, back_off } | Phase::ComingBack { since, back_off } if held => {
                Some((since, back_off))
            }
            Phase::AwaitingApproval { .. }
            | Phase::Queued { .. }
            | Phase::ComingBack { .. }
            | Phase::Active
            | Phase::Ended(_) => None,
        };
        run.phase = Phase::AwaitingApproval { since };
        let (origin, next) = (gate::origin(&run.request.subject), run.next_attempt());
        self.queue.drop_attempt(next);
        self.withdraw_request(id);
        self.timers.cancel(Timer::QueueTimeout(id));
        self.awaiting.entry(origin).or_default().insert(id);
    }

    pub(super) fn leave_gate(&mut self, id: RunId) {
        let origin = gate::origin(&self.runs[&id].request.subject);
        let Some(others) = self.awaiting.get_mut(&origin) else {
            return;
        };
        others.remove(&id);
        if others.is_empty() {
            self.awaiting.remove(&origin);
        }
    }
}
