//! No token is shown: not by an error, whatever the service answers, and not by the `Debug` of anything.

use std::{error::Error, sync::Arc};

use blueproof_scale_set::{
    Client, Clock, ConfigUrl, Credentials, JitConfig, NewScaleSet, Request, Response, RetryPolicy,
    ScaleSetId, Secret, StatusCode, Transport, TransportError,
    header::HeaderMap,
    testing::{FakeService, Fault, Model, ModelOptions},
};

const TOKEN: &str = "ghp_0123456789abcdef";

/// Refuses everything, in one way.
struct Refusing(StatusCode);

#[async_trait::async_trait]
impl Transport for Refusing {
    async fn send(&self, request: Request) -> Result<Response, TransportError> {
        assert!(!format!("{request:?}").contains(TOKEN));
        Ok(Response {
            status: self.0,
            headers: HeaderMap::new(),
            body: b"no".to_vec(),
        })
    }
}

fn builder() -> blueproof_scale_set::ClientBuilder {
    let config = ConfigUrl::parse("https://github.com/owner").expect("a URL");
    let credentials = Credentials::Token(Secret::new(TOKEN));
    assert!(!format!("{credentials:?}").contains(TOKEN));
    Client::builder(config, credentials).retry(RetryPolicy::none())
}

fn chain(error: &dyn Error) -> String {
    let mut text = format!("{error:?}");
    let mut next = Some(error);
    while let Some(error) = next {
        text += &format!("\n{error}");
        next = error.source();
    }
    text
}

#[tokio::test]
async fn errors_have_no_token() {
    for status in [401, 403, 404, 429, 500, 200, 302] {
        let status = StatusCode::from_u16(status).expect("a status");
        let client = builder().build_with(Arc::new(Refusing(status)));
        assert!(!format!("{client:?}").contains(TOKEN));
        let error = client.scale_set(ScaleSetId(1)).await.expect_err("it is refused");
        assert!(!chain(&error).contains(TOKEN), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a16_neither_a_runners_configuration_nor_the_services_token_is_shown() {
    let clock = Clock::of_tokio("2026-11-25T10:00:00Z".parse().expect("a time"));
    let service = FakeService::new(Model::new(ModelOptions::default()), clock);
    let client = builder().clock(clock).build_with(Arc::new(service.clone()));
    let set = client
        .create_scale_set(&NewScaleSet::named("gpu"))
        .await
        .expect("it is made");
    let config: JitConfig = client
        .jit_config(set.id, "gpu-1", "_work")
        .await
        .expect("it is made");
    assert!(!format!("{config:?}").contains(config.encoded.expose()));

    service.with(|model, _| model.inject(Fault::ServerError, 1));
    let error = client.runners().await.expect_err("the service is away");
    // All tokens of the fake begin like this.
    assert!(!chain(&error).contains("eyJ"), "{}", chain(&error));
}
