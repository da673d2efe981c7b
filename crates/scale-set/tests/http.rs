//! The same client by HTTP, against the fake on loopback.

use std::time::Duration;

use blueproof_scale_set::{
    Client, Clock, ConfigUrl, Connected, Credentials, NewScaleSet, Poll, Secret, Session, SessionOptions,
    testing::{FakeJobState, FakeServer, FakeService, Model, ModelOptions},
};
use jiff::Timestamp;

#[tokio::test]
async fn a_job_is_offered_and_acquired_by_http() {
    let options = ModelOptions {
        hold: Duration::ZERO,
        ..ModelOptions::default()
    };
    let service = FakeService::new(Model::new(options), Clock::of_tokio(Timestamp::now()));
    let server = FakeServer::start(service.clone())
        .await
        .expect("loopback has a port");
    let config = ConfigUrl::parse(&format!("{}/owner", server.base())).expect("a URL");
    let client = Client::builder(config, Credentials::Token(Secret::new("token")))
        .build()
        .expect("a client");
    let set = client
        .create_scale_set(&NewScaleSet::named("gpu"))
        .await
        .expect("it is made")
        .id;
    let mut session = Session::new(&client, set, SessionOptions::of("host"));
    let connected = session.connect(std::future::pending()).await.expect("it opens");
    assert_eq!(connected, Connected::Open);
    let nothing = session
        .poll(None, 1, std::future::pending())
        .await
        .expect("it is answered");
    assert_eq!(nothing, Poll::Nothing);

    let job = service.with(|model, now| model.queue_job(now, set));
    let Poll::Message(message) = session
        .poll(None, 1, std::future::pending())
        .await
        .expect("it is answered")
    else {
        panic!("a job is offered");
    };
    assert_eq!(session.acquire(&[job]).await.expect("it is answered"), [job]);
    session.acknowledge(message.id).await.expect("it is answered");
    session.close().await.expect("it is answered");
    let state = service.with(|model, _| model.job(job).map(|job| job.state));
    assert_eq!(state, Some(FakeJobState::Assigned));
}
