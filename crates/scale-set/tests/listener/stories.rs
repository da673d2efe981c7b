//! One story for each thing that goes wrong at the service.

use std::time::Duration;

use blueproof_scale_set::{
    Inbox as _, Removal, SessionState,
    testing::{FakeJobState, Fault},
};

use crate::world::World;

/// Runs a job, lets something go wrong, and runs three more.
async fn story(fault: Fault, times: u32) -> World {
    let mut world = World::new().await;
    world.start();
    world.queue(1);
    world.done().await;
    world.service.with(|model, _| model.inject(fault, times));
    world.queue(3);
    world.done().await;
    world
}

#[tokio::test(start_paused = true)]
async fn no_fault_of_the_service_loses_or_doubles_a_job() {
    for (fault, times) in [
        (Fault::EmptyBody, 2),
        (Fault::ScaleSetNotFound, 2),
        (Fault::ServerError, 3),
        (Fault::ServerError, 12),
        (Fault::TooManyRequests, 3),
        (Fault::OutOfOrder, 1),
        (Fault::ByteOrderMark, 5),
        (Fault::PartialAcquire, 1),
        (Fault::QueueTokenExpired, 1),
        (Fault::AnswerLost, 1),
        (Fault::ZeroStatistics, 3),
        (Fault::WebhookLost, 1),
    ] {
        let mut world = story(fault, times).await;
        world.check();
        world.stop().await;
        assert!(
            !world.service.with(|model, _| model.has_session(world.set)),
            "{fault:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_twice_runs_no_job_twice() {
    let world = story(Fault::DuplicateMessage, 2).await;
    world.check();
}

#[tokio::test(start_paused = true)]
async fn a_refused_registration_token_is_tried_again() {
    for fault in [Fault::RegistrationUnauthorized, Fault::RegistrationForbidden] {
        let mut world = World::new().await;
        world.service.with(|model, _| {
            model.inject(fault, 3);
        });
        // The token expires, so that a new one has to be had.
        tokio::time::sleep(Duration::from_secs(3600)).await;
        world.start();
        world.queue(2);
        world.done().await;
        world.check_once();
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_lost_is_opened_anew_in_place() {
    let mut world = story(Fault::QueueTokenExpired, 0).await;
    world.service.with(|model, _| {
        model.inject(Fault::RefreshNotFound, 1);
        model.inject(Fault::QueueTokenExpired, 1);
    });
    world.queue(3);
    world.done().await;
    world.check_once();
    let report = *world.running().session.borrow();
    assert_eq!((report.n_opened, report.n_recreated), (2, 1));
    assert!(matches!(report.state, SessionState::Open(_)));
}

#[tokio::test(start_paused = true)]
async fn a_session_is_refreshed_before_its_token_expires() {
    let mut world = World::new().await;
    world.start();
    tokio::time::sleep(Duration::from_secs(4 * 3600)).await;
    world.queue(1);
    world.done().await;
    let report = *world.running().session.borrow();
    assert_eq!(report.n_opened, 1);
    assert!(report.n_refreshed >= 4, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_a_killed_process_left_is_waited_for_and_taken_over() {
    let mut world = World::new().await;
    world.start();
    world.queue(1);
    world.done().await;
    world.kill().await;
    world.queue(2);
    world.start();
    let is_held = |world: &World| {
        matches!(
            world.running().session.borrow().state,
            SessionState::HeldByAnother(_)
        )
    };
    world.until("the session is held", is_held).await;
    assert!(world.running().session.borrow().n_conflicts > 0);
    world.service.with(|model, _| model.end_session(world.set));
    world.done().await;
    world.check();
}

#[tokio::test(start_paused = true)]
async fn a_session_that_its_closing_left_is_waited_for_too() {
    let mut world = World::new().await;
    world
        .service
        .with(|model, _| model.inject(Fault::StaleSession, 1));
    world.start();
    world.queue(1);
    world.done().await;
    world.stop().await;
    world.start();
    world.queue(1);
    tokio::time::sleep(Duration::from_secs(300)).await;
    world.service.with(|model, _| model.end_session(world.set));
    world.done().await;
    world.check_once();
}

#[tokio::test(start_paused = true)]
async fn a_completion_while_the_job_runs_leaves_its_runner_alone() {
    let world = story(Fault::CompletedWhileRunning, 1).await;
    world.check();
}

#[tokio::test(start_paused = true)]
async fn a_scale_set_that_stays_away_ends_the_listener_after_a_while() {
    let mut world = World::new().await;
    world
        .service
        .with(|model, _| model.inject(Fault::ScaleSetNotFound, 100));
    world.start();
    world.until("it has ended", |world| !world.is_running()).await;
}

#[tokio::test(start_paused = true)]
async fn no_job_is_offered_before_the_capacity_is_known() {
    let mut world = World::new().await;
    world.capacity.send_replace(0);
    world.start();
    world.queue(2);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(world.lock().events.is_empty());
    world.capacity.send_replace(1);
    world.done().await;
    world.check_once();
}

#[tokio::test(start_paused = true)]
async fn a_capacity_that_shrinks_ends_the_poll_at_once() {
    let mut world = World::new().await;
    world.start();
    let is_open = |world: &World| matches!(world.running().session.borrow().state, SessionState::Open(_));
    world.until("it polls", is_open).await;
    world.capacity.send_replace(0);
    // The poll with the old capacity would take the job.
    tokio::task::yield_now().await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    world.queue(1);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(world.running().report.borrow().n_interrupted_polls, 1);
    let state = world
        .service
        .with(|model, _| model.job(world.jobs[0]).map(|job| job.state));
    assert_eq!(state, Some(FakeJobState::Queued));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_be_handled_is_quarantined_and_blocks_nobody() {
    let mut world = World::new().await;
    world.queue(1);
    world.memory.lock().expect("it is not poisoned").poison = Some(world.jobs[0]);
    world.start();
    world.done().await;
    world.queue(2);
    world.done().await;
    let bad = world.jobs.remove(0);
    world.check_once();
    assert_eq!(world.lock().runs.get(&bad), Some(&1), "its job runs all the same");
    let quarantined = world.inbox.quarantined(world.set).await.expect("it is listed");
    assert_eq!(
        quarantined.len() as u64,
        world.running().report.borrow().n_quarantined
    );
    assert!(!quarantined.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_acknowledged_that_could_not_be_kept() {
    let mut world = World::new().await;
    world.start();
    world.queue(1);
    world.done().await;
    world.inbox.fail_after(Some(0));
    world.queue(2);
    world.until("it has ended", |world| !world.is_running()).await;
    assert!(!world.is_done());
    world.inbox.fail_after(None);
    world.start();
    world.done().await;
    world.check();
}

#[tokio::test(start_paused = true)]
async fn runners_are_replaced_by_name_removed_once_and_kept_while_they_have_a_job() {
    let mut world = World::new().await;
    let set = world.set;
    let first = world
        .client
        .jit_config(set, "gpu-x", "_work")
        .await
        .expect("it is made");
    let second = world
        .client
        .replace_runner(set, "gpu-x", "_work")
        .await
        .expect("the first is replaced");
    assert_ne!(first.runner.id, second.runner.id);
    assert_eq!(
        world.client.runner(first.runner.id).await.expect("it is asked"),
        None
    );
    let gone = world
        .client
        .remove_runner(first.runner.id)
        .await
        .expect("one that is gone is a success");
    assert_eq!(gone, Removal::Gone);

    world.queue(1);
    let job = world.jobs[0];
    world.service.with(|model, now| {
        model.assign_job(now, job);
        model
            .connect_runner(now, second.encoded.expose())
            .expect("it connects");
        model
            .connect_runner(now, second.encoded.expose())
            .expect_err("it is for one use");
    });
    let busy = world
        .client
        .remove_runner(second.runner.id)
        .await
        .expect("it is asked");
    assert_eq!(busy, Removal::JobStillRunning);
    let other = world
        .client
        .create_scale_set(&blueproof_scale_set::NewScaleSet::named("b"))
        .await
        .expect("it is made");
    let error = world
        .client
        .replace_runner(other.id, "gpu-x", "_work")
        .await
        .expect_err("it is another set's");
    assert!(matches!(
        error.cause(),
        blueproof_scale_set::Cause::NameTaken { .. }
    ));
    assert!(error.to_string().contains("X-GitHub-Request-Id"), "{error}");
}
