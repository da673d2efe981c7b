//! Who is let in, how far, and as whom.

use blueproof_core::{
    domain::{Actor, RequestKey, RunId},
    event::StopMode,
    fact::Fact,
    ports::{Command, StoreClient},
    testing::request,
};
use blueproof_diagnostic::Code;
use blueproof_host::{Target, api::Role};
use blueproof_queue::objects::Objects;
use jiff::Timestamp;

use super::support::{On, Served};

fn ask(key: &str) -> Command {
    Command::Run {
        request: Box::new(request(key, "nano-lm")),
    }
}

fn cancel(key: &str) -> Command {
    Command::Cancel {
        key: RequestKey(key.into()),
        run: RunId(1),
        by: Actor::Local("somebody else".into()),
        how: StopMode::Terminate,
    }
}

fn apply_quota(key: &str) -> Command {
    Command::ApplyQuota {
        key: RequestKey(key.into()),
        objects: Box::new(Objects::default()),
        by: Actor::Local("somebody else".into()),
    }
}

async fn code_of(served: &Served, token: Option<String>, command: Command) -> Option<Code> {
    let submitted = served.client(token).submit(Timestamp::UNIX_EPOCH, command).await;
    submitted.err().map(|error| error.diagnostic.code)
}

#[tokio::test]
async fn an_address_is_open_to_tokens_alone_and_each_goes_as_far_as_its_role() {
    let served = Served::on(On::Loopback).await;
    for token in [None, Some("bps_wrong".to_owned()), Some(String::new())] {
        let refused = served.client(token).runs(1).await.expect_err("nobody is let in");
        assert_eq!(refused.diagnostic.code, Code::NotAuthenticated);
    }
    for role in Role::ALL {
        let token = Some(served.token(role));
        served
            .client(token.clone())
            .runs(1)
            .await
            .expect("every role reads");
        let refused_unless = |may: bool| (!may).then_some(Code::RoleTooLow);
        let key = |what: &str| format!("{what} by {}", role.as_str());
        let told = code_of(&served, token.clone(), ask(&key("run"))).await;
        assert_eq!(told, refused_unless(role >= Role::Run), "{role:?}");
        let told = code_of(&served, token.clone(), cancel(&key("cancel"))).await;
        assert_eq!(told, refused_unless(role >= Role::Run), "{role:?}");
        let told = code_of(&served, token, apply_quota(&key("quota"))).await;
        assert_eq!(told, refused_unless(role >= Role::Admin), "{role:?}");
    }
}

#[tokio::test]
async fn who_asks_by_a_token_acts_as_the_token_is_called_whatever_is_claimed() {
    let served = Served::on(On::Loopback).await;
    let client = served.client(Some(served.token(Role::Admin)));
    client
        .submit(Timestamp::UNIX_EPOCH, ask("one"))
        .await
        .expect("it may");
    client
        .submit(Timestamp::UNIX_EPOCH, cancel("two"))
        .await
        .expect("it may");
    let service = served.service.clone();
    let running = tokio::spawn(async move { service.run().await });
    let target = Target::Request(RequestKey("one".into()));
    let run = target
        .until(&client, |view| view.settled)
        .await
        .expect("a store that works");
    assert_eq!(run.requested_by, Actor::Local("admin".into()));
    let facts = client.facts(Default::default(), 1_000).await.expect("a read");
    let by: Vec<_> = facts
        .iter()
        .filter_map(|logged| match &logged.fact {
            Fact::Input(blueproof_core::event::Event::CancelRequested { by, .. }) => Some(by.clone()),
            Fact::Input(_) | Fact::Decision(_) => None,
        })
        .collect();
    assert_eq!(by, [Actor::Local("admin".into())]);
    served.service.stop();
    running.await.expect("it ends");
}

#[tokio::test]
async fn on_its_socket_the_same_user_needs_no_token_and_says_who_acts() {
    let served = Served::on(On::Socket).await;
    let client = served.client(None);
    client
        .submit(Timestamp::UNIX_EPOCH, apply_quota("one"))
        .await
        .expect("it may");
    let command = client.command(&RequestKey("one".into())).await.expect("a read");
    assert_eq!(command.expect("it was left").kind, "applyQuota");
    // A token counts here, too: whoever sends one is whom it names, and no more.
    let reader = Some(served.token(Role::Read));
    assert_eq!(code_of(&served, reader, ask("two")).await, Some(Code::RoleTooLow));
}

#[tokio::test]
async fn a_key_is_of_one_command_by_one_user() {
    let served = Served::on(On::Loopback).await;
    let ada = Some(served.token_of("ada", Role::Run));
    let grace = Some(served.token_of("grace", Role::Run));
    assert_eq!(code_of(&served, ada.clone(), cancel("one")).await, None);
    assert_eq!(
        code_of(&served, ada.clone(), cancel("one")).await,
        None,
        "the same once more"
    );
    assert_eq!(code_of(&served, ada, ask("one")).await, Some(Code::KeyReused));
    assert_eq!(
        code_of(&served, grace, cancel("one")).await,
        Some(Code::KeyReused)
    );
}
