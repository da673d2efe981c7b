//! A scale set from its jobs to their runners: the service's model, and core's fake of a provider.

mod world;

use std::time::Duration;

use blueproof_core::ports::CallError;
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_scale_set::testing::FakeJobState;
use world::{World, lock};

#[tokio::test(start_paused = true)]
async fn each_job_gets_a_runner_of_its_own_and_nothing_is_left() {
    let mut world = World::new().await;
    world.start(10).await;
    world.queue(25);
    world.until_done().await;
    let jobs = lock(&world.machines.jobs);
    let ran: Vec<_> = jobs.values().flatten().collect();
    assert_eq!(ran.len(), 25, "each job ran once: {jobs:?}");
    assert_eq!(*lock(&world.machines.n_conflicts), 0);
}

#[tokio::test(start_paused = true)]
async fn no_more_jobs_are_with_the_scale_set_than_can_be_placed() {
    let mut world = World::new().await;
    world.start(3).await;
    world.queue(8);
    let running = |world: &World| {
        world.service.with(|model, _| {
            let is_running = |job: &&_| {
                let state = model.job(**job).map(|job| job.state);
                matches!(state, Some(FakeJobState::Running(_) | FakeJobState::Assigned))
            };
            world.jobs.iter().filter(is_running).count()
        })
    };
    world.until("three run", |world| running(world) == 3).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(running(&world), 3);
    let handle = world.handle.as_ref().expect("it was started");
    assert_eq!(*handle.capacity.borrow(), 3);
}

#[tokio::test(start_paused = true)]
async fn a16_wherever_the_process_dies_no_job_is_lost_and_no_configuration_is_used_twice() {
    for died_at in (0..1000).step_by(17) {
        let mut world = World::delayed(Duration::from_millis(50)).await;
        world.start(10).await;
        world.queue(4);
        tokio::time::sleep(Duration::from_millis(died_at)).await;
        world.kill().await;
        world.start(10).await;
        world.until_done().await;
        assert_eq!(*lock(&world.machines.n_conflicts), 0, "died at {died_at} ms");
        let jobs = lock(&world.machines.jobs);
        assert_eq!(
            jobs.values().flatten().count(),
            4,
            "died at {died_at} ms: {jobs:?}"
        );
        let twice = jobs.keys().find(|name| world.machines.inner.starts(name) > 1);
        assert_eq!(twice, None, "died at {died_at} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_costs_a_registration_and_not_the_job() {
    let mut world = World::new().await;
    let full = Diagnostic::error(Code::RunnerNotStarted, "the disk is full");
    world.machines.inner.fail_next(CallError::later(full));
    world.start(10).await;
    world.queue(1);
    world.until_done().await;
    assert_eq!(lock(&world.machines.jobs).values().flatten().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_is_lost_with_its_job_has_it_run_once_more() {
    let mut world = World::new().await;
    world.start(10).await;
    world.queue(1);
    world
        .until("it runs", |world| !lock(&world.machines.jobs).is_empty())
        .await;
    // The news that it took the job comes with the next message.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let name = lock(&world.machines.jobs)
        .keys()
        .next()
        .expect("it is there")
        .clone();
    world.machines.inner.lose(&name);
    world
        .until("it was asked for", |world| !lock(&world.asked.0).is_empty())
        .await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(*lock(&world.asked.0), [name]);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_fails_before_its_job_is_replaced_by_another() {
    let mut world = World::new().await;
    *lock(&world.machines.n_stillborn) = 3;
    world.start(1).await;
    world.queue(1);
    // The only place is free again each time, although those before failed.
    world.until_done().await;
    assert_eq!(lock(&world.machines.jobs).values().flatten().count(), 1);
}
