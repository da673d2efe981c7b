//! The fake of the service, held to GitHub's own client: `tools/scale-set-conformance` works with it, unchanged.
//!
//! `cargo xtask ci scale-set` builds that program, which needs Go, and names it in `SCALE_SET_CONFORMANCE`.

use std::{env, time::Duration};

use blueproof_scale_set::{
    Clock, NewScaleSet,
    testing::{FakeJobState, FakeServer, FakeService, Model, ModelOptions},
};
use jiff::Timestamp;
use tokio::process::Command;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn githubs_own_client_works_with_the_fake() {
    let Some(program) = env::var_os("SCALE_SET_CONFORMANCE") else {
        println!("NOT TESTED: SCALE_SET_CONFORMANCE names no program; see `cargo xtask ci scale-set`");
        return;
    };
    let options = ModelOptions {
        hold: Duration::from_millis(100),
        ..ModelOptions::default()
    };
    let service = FakeService::new(Model::new(options), Clock::of_tokio(Timestamp::now()));
    let server = FakeServer::start(service.clone())
        .await
        .expect("loopback has a port");
    let set = service.with(|model, _| model.add_scale_set(NewScaleSet::named("gpu")));
    let job = service.with(|model, now| model.queue_job(now, set));

    let output = Command::new(program)
        .arg(server.base())
        .kill_on_drop(true)
        .output()
        .await
        .expect("it starts");

    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    service.with(|model, _| {
        assert_eq!(model.job(job).map(|job| job.state), Some(FakeJobState::Assigned));
        assert!(!model.has_session(set) && model.runners().is_empty());
        assert_eq!(model.n_left(set), 0);
    });
}
