//! Whatever fails, in whichever order, and wherever the process dies.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_core::ports::{RunnerName, RunnerState};
use blueproof_runners::{
    CallOutcome, FleetAction, FleetInput, FleetSettings, RunnerCall, RunnerCallKind, RunnerStage,
};
use jiff::SignedDuration;
use proptest::prelude::*;

use crate::world::{World, job};

const MOST: u32 = 4;

/// Something that happens.
#[derive(Debug, Clone, Copy)]
enum Happening {
    /// A call is made, and goes well or not.
    Call { nth: usize, how: Luck },
    /// A runner does something.
    Runner { nth: usize, does: Deed },
    /// Jobs come or go.
    Demand(u32),
    /// Other work takes room, or gives it back.
    Room(Option<u32>),
    /// Time passes.
    Pass(i64),
    /// The process dies: what was asked of the world may have happened or not.
    Crash,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Luck {
    Well,
    Fails,
    /// It happens, and the process dies before it knows.
    HappensUnnoticed,
}

#[derive(Debug, Clone, Copy)]
enum Deed {
    TakesJob,
    Finishes,
    Fails,
    IsLost,
    /// GitHub says that its job is over, and it is not.
    IsSaidToBeDone,
}

/// What is outside: machines and registrations, by the runner's name.
#[derive(Debug, Default)]
struct Outside {
    machines: BTreeMap<RunnerName, Machine>,
    registered: BTreeSet<RunnerName>,
    started: BTreeMap<RunnerName, u32>,
    to_do: Vec<FleetAction>,
    busy_removed: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Machine {
    state: RunnerState,
    has_job: bool,
}

struct Story {
    world: World,
    outside: Outside,
    demand: u32,
}

impl Story {
    fn new() -> Self {
        let mut story = Self {
            world: World::new(FleetSettings::of("gpu", MOST)),
            outside: Outside::default(),
            demand: 0,
        };
        story.tell(FleetInput::Room(Some(MOST)));
        story
    }

    fn tell(&mut self, input: FleetInput) {
        let before: BTreeSet<_> = self.world.ledger.keys().cloned().collect();
        let actions = self.world.tell(input);
        self.outside.to_do.extend(actions);
        let is_new = self.world.ledger.keys().any(|name| !before.contains(name));
        let live = self
            .world
            .fleet
            .records()
            .filter(|record| record.is_live())
            .count();
        let desired = self.world.fleet.figures().desired as usize;
        assert!(
            !is_new || live <= desired,
            "{live} live where {desired} are to be"
        );
        assert!(!self.outside.busy_removed, "a runner with a job was removed");
    }

    fn news(&mut self, runner: &RunnerName, state: RunnerState) {
        let runner = runner.clone();
        self.tell(FleetInput::News { runner, state });
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Call { nth, how } if !self.outside.to_do.is_empty() => {
                let nth = nth % self.outside.to_do.len();
                let action = self.outside.to_do.remove(nth);
                self.call(&action, how);
            }
            Happening::Runner { nth, does } if !self.outside.machines.is_empty() => {
                let nth = nth % self.outside.machines.len();
                let name = self
                    .outside
                    .machines
                    .keys()
                    .nth(nth)
                    .expect("it is there")
                    .clone();
                self.act(&name, does);
            }
            Happening::Call { .. } | Happening::Runner { .. } => {}
            Happening::Demand(jobs) => {
                self.demand = jobs;
                self.tell(FleetInput::Demand { label: None, jobs });
            }
            Happening::Room(room) => self.tell(FleetInput::Room(room)),
            Happening::Pass(seconds) => self.pass(seconds),
            Happening::Crash => self.crash(),
        }
    }

    fn pass(&mut self, seconds: i64) {
        let until = self.world.now + SignedDuration::from_secs(seconds);
        while let Some(at) = self.world.fleet.next_wakeup().filter(|at| *at <= until) {
            self.world.now = at;
            self.tell(FleetInput::Tick);
        }
        self.world.now = until;
    }

    fn crash(&mut self) {
        self.outside.to_do.clear();
        self.world.restart();
        self.tell(FleetInput::Tick);
        self.tell(FleetInput::Room(Some(MOST)));
        let jobs = self.demand;
        self.tell(FleetInput::Demand { label: None, jobs });
    }

    fn call(&mut self, action: &FleetAction, how: Luck) {
        let runner = action.runner.clone();
        let failed = |call| CallOutcome::Failed { call };
        let outcome = match &action.call {
            RunnerCall::Launch { .. } if how == Luck::Fails => {
                // It may have been registered before it failed.
                self.outside.registered.insert(runner.clone());
                CallOutcome::NotLaunched {
                    registration: Some(1),
                    message: "by chance".into(),
                }
            }
            RunnerCall::Launch { .. } => self.launch(&runner),
            RunnerCall::Observe if how == Luck::Fails => failed(RunnerCallKind::Observe),
            RunnerCall::Observe => match self.outside.machines.get(&runner).cloned() {
                Some(machine) => {
                    self.news(&runner, machine.state);
                    CallOutcome::Observed
                }
                None => CallOutcome::Unknown,
            },
            RunnerCall::Deregister { .. } if how == Luck::Fails => failed(RunnerCallKind::Deregister),
            RunnerCall::Deregister { .. } => self.deregister(&runner),
            RunnerCall::Remove if how == Luck::Fails => failed(RunnerCallKind::Remove),
            RunnerCall::Remove => {
                let machine = self.outside.machines.remove(&runner);
                self.outside.busy_removed |=
                    machine.is_some_and(|machine| machine.state == RunnerState::Running && machine.has_job);
                if how == Luck::Well {
                    self.news(&runner, RunnerState::Removed);
                }
                CallOutcome::RemovalBegun
            }
            RunnerCall::Rerun { .. } if how == Luck::Fails => failed(RunnerCallKind::Rerun),
            RunnerCall::Rerun { .. } => CallOutcome::RerunRequested,
        };
        match how {
            Luck::Well | Luck::Fails => self.tell(FleetInput::Called { runner, outcome }),
            Luck::HappensUnnoticed => self.crash(),
        }
    }

    fn launch(&mut self, runner: &RunnerName) -> CallOutcome {
        self.outside.registered.insert(runner.clone());
        *self.outside.started.entry(runner.clone()).or_default() += 1;
        let machine = Machine {
            state: RunnerState::Running,
            has_job: false,
        };
        self.outside.machines.insert(runner.clone(), machine);
        self.news(runner, RunnerState::Running);
        CallOutcome::Launched { registration: 1 }
    }

    fn deregister(&mut self, runner: &RunnerName) -> CallOutcome {
        let machine = self.outside.machines.get(runner);
        let is_busy = machine.is_some_and(|machine| machine.state == RunnerState::Running && machine.has_job);
        if is_busy {
            return CallOutcome::JobStillRunning;
        }
        self.outside.registered.remove(runner);
        CallOutcome::Deregistered
    }

    fn act(&mut self, runner: &RunnerName, does: Deed) {
        let is_registered = self.outside.registered.contains(runner);
        let machine = self.outside.machines.get_mut(runner).expect("it is there");
        if machine.state != RunnerState::Running {
            return;
        }
        let message = || "by chance".to_owned();
        let state = match does {
            Deed::TakesJob if !machine.has_job && is_registered => {
                machine.has_job = true;
                let (runner, job) = (runner.clone(), job(7));
                return self.tell(FleetInput::JobStarted { runner, job });
            }
            Deed::IsSaidToBeDone if machine.has_job => {
                let (runner, result) = (runner.clone(), "success".into());
                return self.tell(FleetInput::JobCompleted { runner, result });
            }
            Deed::TakesJob | Deed::IsSaidToBeDone => return,
            Deed::Finishes => RunnerState::Completed,
            Deed::Fails => RunnerState::Failed { message: message() },
            Deed::IsLost => RunnerState::Lost { message: message() },
        };
        machine.state = state.clone();
        if std::mem::take(&mut machine.has_job) && state == RunnerState::Completed {
            self.outside.registered.remove(runner);
        }
        self.news(runner, state);
    }

    /// Lets everything go well from now on.
    fn settle(&mut self, jobs: u32) {
        self.happen(Happening::Demand(jobs));
        for _ in 0..400 {
            self.tell(FleetInput::Room(Some(MOST)));
            while !self.outside.to_do.is_empty() {
                self.happen(Happening::Call {
                    nth: 0,
                    how: Luck::Well,
                });
            }
            // Jobs that wait are taken.
            let names: Vec<RunnerName> = self.outside.machines.keys().cloned().collect();
            for name in names.iter().take(jobs as usize) {
                self.act(name, Deed::TakesJob);
            }
            self.pass(30);
        }
    }
}

fn happening() -> impl Strategy<Value = Happening> {
    let luck = prop_oneof![4 => Just(Luck::Well), 1 => Just(Luck::Fails), 1 => Just(Luck::HappensUnnoticed)];
    let deed = prop_oneof![
        Just(Deed::TakesJob),
        Just(Deed::Finishes),
        Just(Deed::Fails),
        Just(Deed::IsLost),
        Just(Deed::IsSaidToBeDone),
    ];
    prop_oneof![
        6 => (any::<usize>(), luck).prop_map(|(nth, how)| Happening::Call { nth, how }),
        4 => (any::<usize>(), deed).prop_map(|(nth, does)| Happening::Runner { nth, does }),
        2 => (0..=MOST + 2).prop_map(Happening::Demand),
        1 => prop::option::of(0..=MOST).prop_map(Happening::Room),
        3 => (1..400i64).prop_map(Happening::Pass),
        1 => Just(Happening::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No more are made than are to be, none is launched twice or removed from under its job, and once nothing fails any more there
    /// are as many as are to be, and nothing is left of others.
    #[test]
    fn after_any_failures_there_are_as_many_runners_as_there_are_to_be(
        happenings in prop::collection::vec(happening(), 1..80),
        jobs in 0..=MOST + 2,
    ) {
        let mut story = Story::new();
        for happening in happenings {
            story.happen(happening);
        }
        // Jobs that still run end, so that only the demand says how many there are to be.
        let names: Vec<RunnerName> = story.outside.machines.keys().cloned().collect();
        for name in names {
            if story.outside.machines.get(&name).is_some_and(|machine| machine.has_job) {
                story.act(&name, Deed::Finishes);
            }
        }
        story.settle(jobs);
        let running = |machine: &&Machine| machine.state == RunnerState::Running;
        let n_running = story.outside.machines.values().filter(running).count();
        prop_assert_eq!(n_running, jobs.min(MOST) as usize, "{:?}", story.world.ledger);
        prop_assert_eq!(story.outside.machines.len(), n_running, "a machine is left of one that is over");
        prop_assert_eq!(story.outside.registered.len(), n_running, "{:?}", story.outside.registered);
        prop_assert!(story.outside.started.values().all(|times| *times == 1), "{:?}", story.outside.started);
        let is_open = |stage: &RunnerStage| matches!(stage, RunnerStage::Ended { .. } | RunnerStage::Retiring);
        prop_assert!(!story.world.ledger.values().any(|record| is_open(&record.stage)));
    }
}
