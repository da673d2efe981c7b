//! What a fleet comes to, told as stories and thrown at it by chance.

mod random;
mod world;

use blueproof_core::ports::RunnerState;
use blueproof_runners::{
    CallOutcome, FleetAction, FleetInput, FleetSettings, RunnerCall, RunnerCallKind, RunnerEnd, RunnerStage,
};
use jiff::SignedDuration;
use world::{World, job, name};

#[test]
fn no_runner_is_made_before_it_is_known_what_can_be_placed() {
    let mut world = World::new(FleetSettings::of("gpu", 8));
    assert_eq!(world.tell(FleetInput::Demand { label: None, jobs: 3 }), []);
    assert_eq!(world.fleet.capacity(), 0);
    let launched = world.tell(FleetInput::Room(Some(2)));
    assert_eq!(launched.len(), 2, "{launched:?}");
    assert_eq!(world.fleet.capacity(), 2);
    world.tell(FleetInput::Room(None));
    assert_eq!(world.fleet.capacity(), 0);
    assert_eq!(world.tell(FleetInput::Room(Some(6))).len(), 1);
    assert_eq!(world.fleet.capacity(), 8);
}

#[test]
fn a_runner_that_failed_takes_nobodys_place() {
    let mut world = World::with_room(FleetSettings::of("gpu", 1));
    assert_eq!(world.demand(1), [world.launch(1)]);
    world.launched(1);
    world.news(1, RunnerState::Running);
    let message = "it ended with exit code 7".to_owned();
    let actions = world.news(1, RunnerState::Failed { message });
    assert!(
        actions.iter().all(|action| action.runner == name(1)),
        "only what is left of it: {actions:?}"
    );
    // Its machine and its registration are still there, and another is made all the same.
    assert_eq!(world.pass(SignedDuration::from_secs(1)), [world.launch(2)]);
    assert_eq!(world.fleet.figures().failed, 1);
}

#[test]
fn runners_that_fail_one_after_the_other_are_made_with_growing_pauses() {
    let mut world = World::with_room(FleetSettings::of("gpu", 1));
    world.demand(1);
    let mut waited = Vec::new();
    for number in 1..=8 {
        let at = world.now;
        let outcome = CallOutcome::NotLaunched {
            registration: None,
            message: "the service is not reached".into(),
        };
        world.tell(FleetInput::Called {
            runner: name(number),
            outcome,
        });
        while !world.made(number + 1) {
            world.wake();
        }
        waited.push(world.now.duration_since(at).as_secs());
    }
    assert_eq!(waited, [1, 2, 4, 8, 16, 32, 60, 60]);
}

#[test]
fn what_is_too_many_goes_after_a_while_and_only_if_github_agrees() {
    let mut world = World::with_room(FleetSettings::of("gpu", 4));
    world.demand(2);
    for number in 1..=2 {
        world.launched(number);
        world.news(number, RunnerState::Running);
    }
    assert_eq!(world.demand(0), [], "one signal is none");
    assert_eq!(world.pass(SignedDuration::from_secs(59)), []);
    let asked = world.pass(SignedDuration::from_secs(1));
    assert_eq!(asked, [world.deregister(1), world.deregister(2)]);
    let busy = world.called(1, CallOutcome::JobStillRunning);
    assert_eq!(busy, [], "it got a job meanwhile, and stays");
    assert_eq!(world.record(1).stage, RunnerStage::Running);
    assert_eq!(
        world.called(2, CallOutcome::Deregistered),
        [FleetAction {
            runner: name(2),
            call: RunnerCall::Remove
        }]
    );
}

#[test]
fn a_demand_that_comes_back_within_the_grace_keeps_its_runners() {
    let mut world = World::with_room(FleetSettings::of("gpu", 4));
    world.demand(1);
    world.launched(1);
    world.news(1, RunnerState::Running);
    world.demand(0);
    world.pass(SignedDuration::from_secs(50));
    assert_eq!(world.demand(1), []);
    assert_eq!(world.demand(0), []);
    assert_eq!(world.pass(SignedDuration::from_secs(50)), []);
    assert_eq!(world.record(1).stage, RunnerStage::Running);
}

#[test]
fn a_job_whose_runner_is_lost_is_run_once_more_and_not_twice() {
    let mut world = World::with_room(FleetSettings::of("gpu", 2));
    world.demand(1);
    world.run_job(1, job(7));
    let lost = || RunnerState::Lost {
        message: "its machine is gone".into(),
    };
    world.news(1, lost());
    let actions = world.pass(SignedDuration::from_mins(2));
    let rerun = |number| FleetAction {
        runner: name(number),
        call: RunnerCall::Rerun {
            job: world_job_wanted(),
        },
    };
    assert!(actions.contains(&rerun(1)), "{actions:?}");
    // Its workflow run is not over: GitHub is asked again.
    world.called(1, CallOutcome::RerunTooEarly);
    assert!(world.pass(SignedDuration::from_secs(1)).contains(&rerun(1)));
    world.called(1, CallOutcome::RerunRequested);
    world.run_job(2, job(7));
    world.news(2, lost());
    let actions = world.pass(SignedDuration::from_hours(1));
    assert!(!actions.contains(&rerun(2)), "{actions:?}");
}

fn world_job_wanted() -> blueproof_runners::RunnerJob {
    blueproof_runners::RunnerJob {
        rerun: blueproof_runners::Rerun::Wanted,
        ..job(7)
    }
}

#[test]
fn a_job_that_passed_before_its_runner_was_lost_is_not_run_again() {
    let mut world = World::with_room(FleetSettings::of("gpu", 1));
    world.demand(1);
    world.run_job(1, job(7));
    let message = "it ended while nobody watched".into();
    world.news(1, RunnerState::Lost { message });
    world.tell(FleetInput::JobCompleted {
        runner: name(1),
        result: "success".into(),
    });
    let actions = world.pass(SignedDuration::from_mins(10));
    let is_rerun = |action: &FleetAction| matches!(action.call, RunnerCall::Rerun { .. });
    assert!(!actions.iter().any(is_rerun), "{actions:?}");
}

#[test]
fn a_job_that_is_said_to_be_over_and_is_not_keeps_its_runner() {
    let mut world = World::with_room(FleetSettings::of("gpu", 1));
    world.demand(1);
    world.run_job(1, job(7));
    world.tell(FleetInput::JobCompleted {
        runner: name(1),
        result: "canceled".into(),
    });
    world.demand(0);
    assert_eq!(world.pass(SignedDuration::from_mins(4)), []);
    assert_eq!(world.pass(SignedDuration::from_mins(1)), [world.deregister(1)]);
    assert_eq!(world.called(1, CallOutcome::JobStillRunning), []);
    assert!(world.record(1).is_busy());
}

#[test]
fn a_runner_that_never_gets_a_job_while_jobs_wait_is_replaced() {
    let mut world = World::with_room(FleetSettings::of("gpu", 1));
    world.demand(1);
    world.launched(1);
    world.news(1, RunnerState::Running);
    assert_eq!(world.pass(SignedDuration::from_mins(10)), [world.deregister(1)]);
    // Until GitHub agrees it may turn out to have a job.
    let remove = FleetAction {
        runner: name(1),
        call: RunnerCall::Remove,
    };
    assert_eq!(
        world.called(1, CallOutcome::Deregistered),
        [remove, world.launch(2)]
    );
}

#[test]
fn after_a_crash_nothing_is_launched_again_and_what_was_not_started_is_removed() {
    let mut world = World::with_room(FleetSettings::of("gpu", 4));
    world.demand(2);
    world.launched(1);
    world.news(1, RunnerState::Running);
    world.restart();
    let observe = |number| FleetAction {
        runner: name(number),
        call: RunnerCall::Observe,
    };
    assert_eq!(world.tell(FleetInput::Tick), [observe(1), observe(2)]);
    assert_eq!(world.called(1, CallOutcome::Observed), []);
    let left = world.called(2, CallOutcome::Unknown);
    let remove = FleetAction {
        runner: name(2),
        call: RunnerCall::Remove,
    };
    // Whether it was registered nobody knows: it is looked for by its name.
    let deregister = FleetAction {
        runner: name(2),
        call: RunnerCall::Deregister { registration: None },
    };
    assert_eq!(left, [remove, deregister]);
    world.tell(FleetInput::Room(Some(4)));
    assert_eq!(world.demand(2), [world.launch(3)]);
}

#[test]
fn a_call_that_fails_is_made_again_with_growing_pauses() {
    let mut world = World::with_room(FleetSettings::of("gpu", 1));
    world.demand(1);
    world.launched(1);
    world.news(1, RunnerState::Running);
    world.demand(0);
    assert_eq!(world.pass(SignedDuration::from_mins(1)), [world.deregister(1)]);
    for seconds in [1, 2, 4] {
        let call = RunnerCallKind::Deregister;
        assert_eq!(world.called(1, CallOutcome::Failed { call }), []);
        let again = world.pass(SignedDuration::from_secs(seconds));
        assert_eq!(again, [world.deregister(1)]);
    }
}

#[test]
fn a_runner_that_ends_well_with_its_job_costs_no_further_call_to_github() {
    let mut world = World::with_room(FleetSettings::of("gpu", 1));
    world.demand(1);
    world.run_job(1, job(7));
    world.tell(FleetInput::JobCompleted {
        runner: name(1),
        result: "success".into(),
    });
    world.demand(0);
    let remove = FleetAction {
        runner: name(1),
        call: RunnerCall::Remove,
    };
    assert_eq!(world.news(1, RunnerState::Completed), [remove]);
    world.called(1, CallOutcome::RemovalBegun);
    assert_eq!(world.news(1, RunnerState::Removed), []);
    let gone = RunnerStage::Gone {
        end: RunnerEnd::Completed,
    };
    assert_eq!(world.record(1).stage, gone);
}
