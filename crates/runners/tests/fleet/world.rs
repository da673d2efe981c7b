//! A fleet with what it wrote down, and the time.

use std::collections::BTreeMap;

use blueproof_core::ports::{RunnerName, RunnerState};
use blueproof_runners::{
    CallOutcome, Fleet, FleetAction, FleetInput, FleetSettings, Rerun, RunnerCall, RunnerJob, RunnerRecord,
};
use jiff::{SignedDuration, Timestamp};

pub(crate) struct World {
    settings: FleetSettings,
    pub(crate) fleet: Fleet,
    /// What is on disk.
    pub(crate) ledger: BTreeMap<RunnerName, RunnerRecord>,
    pub(crate) now: Timestamp,
}

pub(crate) fn name(number: u64) -> RunnerName {
    format!("gpu-{number}").parse().expect("a name")
}

pub(crate) fn job(workflow_run: i64) -> RunnerJob {
    RunnerJob {
        repository: "kubeflow/trainer".into(),
        workflow_run,
        name: "gpu".into(),
        result: None,
        rerun: Rerun::None,
    }
}

impl World {
    pub(crate) fn new(settings: FleetSettings) -> Self {
        Self {
            fleet: Fleet::new(settings.clone(), []),
            settings,
            ledger: BTreeMap::new(),
            now: Timestamp::UNIX_EPOCH,
        }
    }

    pub(crate) fn with_room(settings: FleetSettings) -> Self {
        let mut world = Self::new(settings);
        world.tell(FleetInput::Room(Some(100)));
        world
    }

    /// Loses everything that is not on disk.
    pub(crate) fn restart(&mut self) {
        self.fleet = Fleet::new(self.settings.clone(), self.ledger.values().cloned());
    }

    pub(crate) fn tell(&mut self, input: FleetInput) -> Vec<FleetAction> {
        let step = self.fleet.handle(self.now, input);
        for record in step.changed {
            self.ledger.insert(record.name.clone(), record);
        }
        step.actions
    }

    pub(crate) fn demand(&mut self, jobs: u32) -> Vec<FleetAction> {
        self.tell(FleetInput::Demand { label: None, jobs })
    }

    pub(crate) fn news(&mut self, number: u64, state: RunnerState) -> Vec<FleetAction> {
        let runner = name(number);
        self.tell(FleetInput::News { runner, state })
    }

    pub(crate) fn called(&mut self, number: u64, outcome: CallOutcome) -> Vec<FleetAction> {
        let runner = name(number);
        self.tell(FleetInput::Called { runner, outcome })
    }

    pub(crate) fn launched(&mut self, number: u64) {
        let registration = registration(number);
        self.called(number, CallOutcome::Launched { registration });
    }

    /// Has a runner run and take a job.
    pub(crate) fn run_job(&mut self, number: u64, job: RunnerJob) {
        assert!(self.made(number), "{:?}", self.ledger);
        self.launched(number);
        self.news(number, RunnerState::Running);
        let runner = name(number);
        self.tell(FleetInput::JobStarted { runner, job });
    }

    /// Lets time pass, and the fleet be woken whenever it asks to.
    pub(crate) fn pass(&mut self, by: SignedDuration) -> Vec<FleetAction> {
        let until = self.now + by;
        let mut actions = Vec::new();
        while let Some(at) = self.fleet.next_wakeup().filter(|at| *at <= until) {
            self.now = at;
            actions.extend(self.tell(FleetInput::Tick));
        }
        self.now = until;
        actions
    }

    /// Lets time pass until the fleet asks to be woken.
    pub(crate) fn wake(&mut self) {
        self.now = self.fleet.next_wakeup().expect("it waits for something");
        self.tell(FleetInput::Tick);
    }

    pub(crate) fn made(&self, number: u64) -> bool {
        self.ledger.contains_key(&name(number))
    }

    pub(crate) fn record(&self, number: u64) -> &RunnerRecord {
        &self.ledger[&name(number)]
    }

    pub(crate) fn launch(&self, number: u64) -> FleetAction {
        let call = RunnerCall::Launch { label: None };
        let runner = name(number);
        FleetAction { runner, call }
    }

    pub(crate) fn deregister(&self, number: u64) -> FleetAction {
        let registration = Some(registration(number));
        let call = RunnerCall::Deregister { registration };
        let runner = name(number);
        FleetAction { runner, call }
    }
}

pub(crate) fn registration(number: u64) -> i64 {
    1000 + i64::try_from(number).expect("small")
}
