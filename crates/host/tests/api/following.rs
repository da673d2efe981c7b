//! Streams, and a server that goes and comes back.

use std::time::Duration;

use blueproof_core::{
    domain::RequestKey,
    ports::{Command, StoreClient, Version},
    testing::request,
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_host::{Target, api::Role};
use jiff::Timestamp;
use reqwest::StatusCode;

use super::support::{On, Served};

fn ask(key: &str) -> Command {
    Command::Run {
        request: Box::new(request(key, "nano-lm")),
    }
}

/// Reads server-sent events until there are `count`, and returns the id of each.
async fn ids(mut response: reqwest::Response, count: usize) -> Vec<u64> {
    let mut text = String::new();
    loop {
        let ids: Vec<u64> = text
            .split("\n\n")
            .filter(|event| event.contains("event: fact") && event.contains("data: {"))
            .filter_map(|event| event.lines().find_map(|line| line.strip_prefix("id: ")))
            .map(|id| id.parse().expect("a position"))
            .collect();
        if ids.len() >= count {
            return ids;
        }
        let part = response
            .chunk()
            .await
            .expect("it goes on")
            .expect("it does not end");
        text.push_str(std::str::from_utf8(&part).expect("UTF-8"));
    }
}

#[tokio::test]
async fn facts_are_sent_as_they_come_and_from_where_one_was() {
    let served = Served::on(On::Loopback).await;
    let token = served.token(Role::Admin);
    let client = served.client(Some(token.clone()));
    let service = served.service.clone();
    let running = tokio::spawn(async move { service.run().await });
    let get = |url: String| served.http().get(url).bearer_auth(&token);
    let early = get(served.url("/api/v1/facts/stream"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(early.headers()["content-type"], "text/event-stream");
    client
        .submit(Timestamp::UNIX_EPOCH, ask("one"))
        .await
        .expect("it may");
    let target = Target::Request(RequestKey("one".into()));
    target
        .until(&client, |view| view.settled)
        .await
        .expect("a store that works");
    let facts = client.facts(Default::default(), 1_000).await.expect("a read");
    let all: Vec<u64> = facts.iter().map(|fact| fact.seq.0).collect();
    assert_eq!(ids(early, all.len()).await, all);
    let later = get(served.url("/api/v1/facts/stream?after=1")).header("last-event-id", "3");
    let later = later.send().await.expect("an answer");
    assert_eq!(ids(later, all.len() - 3).await, all[3..]);
    served.service.stop();
    running.await.expect("it ends");
}

#[tokio::test]
async fn a_server_that_comes_back_is_gone_on_with_and_one_that_never_was_is_told_of_at_once() {
    let served = Served::on(On::Socket).await;
    let address = served.address.to_string();
    let (client, stranger) = (served.client(None), served.client(None));
    client.runs(1).await.expect("it is there");
    let socket = served.folder.path().join("scheduler.sock");
    let comes_back = served.end().await;
    assert!(!socket.exists(), "the socket is gone with the server");
    let refused = stranger.runs(1).await.expect_err("nobody is there");
    assert_eq!(refused.diagnostic.code, Code::ServerNotReached);
    assert!(refused.diagnostic.message.contains(&address), "{refused}");
    let (submitted, _served) = tokio::join!(client.submit(Timestamp::UNIX_EPOCH, ask("one")), comes_back);
    submitted.expect("it is back");
    assert_eq!(client.all_commands(10).await.expect("a read").len(), 1);
}

#[tokio::test]
async fn whoever_waits_for_a_change_is_told_of_it_soon() {
    let served = Served::on(On::Socket).await;
    let client = served.client(None);
    let known = client.changed(None).await;
    let waits = tokio::time::timeout(Duration::from_secs(20), client.changed(Some(known)));
    let (changed, submitted) = tokio::join!(waits, async {
        tokio::task::yield_now().await;
        client.submit(Timestamp::UNIX_EPOCH, ask("one")).await
    });
    submitted.expect("it may");
    assert_ne!(changed.expect("in time"), known);
    assert_ne!(
        client.changed(Some(Version(known.0 + 1_000_000))).await,
        Version(0)
    );
}

#[tokio::test]
async fn two_hundred_followers_are_told_the_same_while_runs_come_and_end() {
    let served = Served::on(On::Loopback).await;
    let token = served.token(Role::Admin);
    let client = served.client(Some(token.clone()));
    let (http, stream) = (served.http(), served.url("/api/v1/facts/stream"));
    let mut followers = Vec::new();
    for _ in 0..200 {
        let follows = http.get(&stream).bearer_auth(&token).send();
        followers.push(follows.await.expect("there is room"));
    }
    let service = served.service.clone();
    let running = tokio::spawn(async move { service.run().await });
    let keys: Vec<String> = (0..20).map(|number| format!("run-{number}")).collect();
    for key in &keys {
        let submitted = client.submit(Timestamp::UNIX_EPOCH, ask(key)).await;
        submitted.expect("it may");
    }
    for key in keys {
        let target = Target::Request(RequestKey(key));
        let settled = target.until(&client, |view| view.settled).await;
        settled.expect("a store that works");
    }
    let facts = client.facts(Default::default(), 1_000).await.expect("a read");
    let all: Vec<u64> = facts.iter().map(|fact| fact.seq.0).collect();
    for follower in followers {
        assert_eq!(ids(follower, all.len()).await, all);
    }
    served.service.stop();
    running.await.expect("it ends");
}

/// Whoever opens more than may be answered at a time is told so, and keeps nobody else out.
#[tokio::test]
async fn one_caller_has_only_so_many_requests_at_a_time() {
    let served = Served::on(On::Loopback).await;
    let (ada, grace) = (
        served.token_of("ada", Role::Read),
        served.token_of("grace", Role::Read),
    );
    let http = served.http();
    let follow = |token: &str| {
        let request = http.get(served.url("/api/v1/facts/stream")).bearer_auth(token);
        request.send()
    };
    let mut open = Vec::new();
    let refused = loop {
        let response = follow(&ada).await.expect("an answer");
        if response.status() != StatusCode::OK {
            break response;
        }
        open.push(response);
    };
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let told = refused.json::<Diagnostic>().await.expect("a diagnostic");
    assert_eq!(told.code, Code::TooManyRequests);
    assert_eq!(open.len(), 256);
    let other = follow(&grace).await.expect("an answer");
    assert_eq!(other.status(), StatusCode::OK, "another caller is let in");
    open.pop();
    loop {
        let again = follow(&ada).await.expect("an answer");
        if again.status() == StatusCode::OK {
            break;
        }
    }
}

#[tokio::test]
async fn whoever_follows_hears_no_more_once_the_token_is_removed() {
    let served = Served::on(On::Loopback).await;
    let token = served.token_of("ada", Role::Read);
    let request = served.http().get(served.url("/api/v1/facts/stream"));
    let mut following = request.bearer_auth(&token).send().await.expect("an answer");
    assert_eq!(following.status(), StatusCode::OK);
    served.remove_token("ada");
    let ended = loop {
        match following.chunk().await {
            Ok(Some(_)) => {}
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    assert!(ended.is_err(), "it is cut off, and no end that a server makes");
}
