//! Random jobs, faults, crashes and restarts.

use std::time::Duration;

use blueproof_scale_set::testing::Fault;
use proptest::prelude::*;

use crate::world::World;

#[derive(Debug, Clone)]
enum Step {
    Queue(u32),
    Inject(Fault, u32),
    /// The inbox fails after so many calls, which ends the listener; it is started again.
    CrashAfter(u32),
    /// The process is killed, and its session found to be stale.
    Kill,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let fault = prop::sample::select(vec![
        Fault::RefreshNotFound,
        Fault::QueueTokenExpired,
        Fault::EmptyBody,
        Fault::ZeroStatistics,
        Fault::ScaleSetNotFound,
        Fault::ServerError,
        Fault::TooManyRequests,
        Fault::DuplicateMessage,
        Fault::OutOfOrder,
        Fault::PartialAcquire,
        Fault::ByteOrderMark,
    ]);
    prop_oneof![
        3 => (1..4u32).prop_map(Step::Queue),
        3 => (fault, 1..3u32).prop_map(|(fault, times)| Step::Inject(fault, times)),
        1 => (0..12u32).prop_map(Step::CrashAfter),
        1 => Just(Step::Kill),
        2 => (0..100u64).prop_map(Step::Wait),
    ]
}

async fn play(steps: Vec<Step>) {
    let mut world = World::new().await;
    world.start();
    for step in steps {
        match step {
            Step::Queue(n_jobs) => world.queue(n_jobs),
            Step::Inject(fault, times) => world.service.with(|model, _| model.inject(fault, times)),
            Step::CrashAfter(n_calls) => {
                world.inbox.fail_after(Some(n_calls));
                world.until("it has ended", |world| !world.is_running()).await;
                world.inbox.fail_after(None);
                world.start();
            }
            Step::Kill => {
                world.kill().await;
                world.service.with(|model, _| model.end_session(world.set));
                world.start();
            }
            Step::Wait(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        }
    }
    world.done().await;
    world.check();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_job_runs_once_and_no_event_is_lost(steps in prop::collection::vec(step(), 1..25)) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(play(steps));
    }
}
