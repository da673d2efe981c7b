//! Requests that are wrong: each is answered with what is wrong, and changes nothing.

use blueproof_core::ports::StoreClient;
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_host::api::Role;
use reqwest::{Method, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::support::{On, Served};

type Wrong = (Method, &'static str, &'static str, u16, Code);

const NO_KEY: &str =
    r#"{"kind": "cancel", "key": "", "run": "r-1", "by": {"local": "ada"}, "how": "interrupt"}"#;

const COMMANDS: &str = "/api/v1/commands";

/// Returns requests that are wrong, with what each is answered with.
fn wrong() -> [Wrong; 17] {
    [
        (Method::GET, "/api/v1/runs/r-1", "", 404, Code::NotFound),
        (Method::GET, "/api/v1/runs/1", "", 400, Code::RequestMalformed),
        (
            Method::GET,
            "/api/v1/runs?limit=0",
            "",
            400,
            Code::RequestMalformed,
        ),
        (
            Method::GET,
            "/api/v1/runs?limit=-1",
            "",
            400,
            Code::RequestMalformed,
        ),
        (
            Method::GET,
            "/api/v1/runs?limt=1",
            "",
            400,
            Code::RequestMalformed,
        ),
        (
            Method::GET,
            "/api/v1/facts?after=x",
            "",
            400,
            Code::RequestMalformed,
        ),
        (Method::GET, "/api/v1/commands/none", "", 404, Code::NotFound),
        (Method::GET, "/api/v1/requests/none/run", "", 404, Code::NotFound),
        (Method::GET, "/api/v2/runs", "", 404, Code::NotFound),
        (Method::DELETE, "/api/v1/runs", "", 405, Code::RequestMalformed),
        (Method::POST, COMMANDS, "", 400, Code::RequestMalformed),
        (Method::POST, COMMANDS, "{", 400, Code::RequestMalformed),
        (
            Method::POST,
            COMMANDS,
            "{\"kind\": \"explode\"}",
            422,
            Code::RequestMalformed,
        ),
        (Method::POST, COMMANDS, "\u{0}", 400, Code::RequestMalformed),
        (Method::POST, COMMANDS, NO_KEY, 400, Code::RequestMalformed),
        (Method::GET, "/metrics", "", 503, Code::NotServing),
        (Method::GET, "/readyz", "", 503, Code::NotServing),
    ]
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said() {
    let served = Served::on(On::Loopback).await;
    let token = served.token(Role::Admin);
    let http = served.http();
    for (method, path, body, status, code) in wrong() {
        let request = http.request(method.clone(), served.url(path)).bearer_auth(&token);
        let request = request.header("content-type", "application/json").body(body);
        let response = request.send().await.expect("an answer");
        let told = (
            response.status(),
            response.json::<Diagnostic>().await.expect("a diagnostic").code,
        );
        let expected = (StatusCode::from_u16(status).expect("a status"), code);
        assert_eq!(told, expected, "{method} {path} {body}");
    }
    let commands = served.client(Some(token)).all_commands(10).await.expect("a read");
    assert_eq!(commands, [], "nothing was left");
}

#[tokio::test]
async fn what_another_process_would_decide_by_its_own_policy_is_refused() {
    let served = Served::following(On::Loopback).await;
    let token = served.token(Role::Admin);
    let (http, cancel) = (
        served.http(),
        r#"{"kind": "cancel", "key": "k", "run": "r-1", "by": {"local": "ada"}, "how": "interrupt"}"#,
    );
    for request in [
        http.get(served.url("/readyz")),
        http.post(served.url("/api/v1/commands"))
            .header("content-type", "application/json")
            .body(cancel),
    ] {
        let response = request.bearer_auth(&token).send().await.expect("an answer");
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        let told = response.json::<Diagnostic>().await.expect("a diagnostic");
        assert_eq!(told.code, Code::NotServing);
    }
    let commands = served.client(Some(token)).all_commands(10).await.expect("a read");
    assert_eq!(commands, [], "nothing was left");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let served = Served::on(On::Loopback).await;
    let token = served.token(Role::Admin);
    let huge = vec![b' '; 9 << 20];
    let request = served.http().post(served.url("/api/v1/commands"));
    let request = request
        .bearer_auth(token)
        .header("content-type", "application/json")
        .body(huge);
    // Whoever goes on sending may not hear the answer.
    if let Ok(response) = request.send().await {
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
    let alive = served
        .http()
        .get(served.url("/healthz"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(alive.text().await.expect("a text"), "ok\n");
}

#[tokio::test]
async fn every_path_that_is_served_is_described() {
    let served = Served::on(On::Loopback).await;
    let described = served
        .http()
        .get(served.url("/openapi.json"))
        .send()
        .await
        .expect("an answer");
    let described: serde_json::Value = described.json().await.expect("JSON");
    let paths = described["paths"].as_object().expect("paths");
    assert!(paths.contains_key("/api/v1/runs/{run}"), "{:?}", paths.keys());
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().expect("methods") {
            assert!(operation["summary"].is_string(), "{method} {path} has a summary");
            assert!(
                operation["responses"]["default"].is_object(),
                "{method} {path} may fail"
            );
        }
    }
}

/// Whoever is not let in keeps nobody waiting for what they do not send.
#[tokio::test]
async fn no_body_is_waited_for_of_whoever_is_not_let_in() {
    let served = Served::on(On::Loopback).await;
    let url = served.url("/");
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
    let head = "POST /api/v1/commands HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 800\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("it takes it");
    let mut answer = vec![0; 12];
    stream
        .read_exact(&mut answer)
        .await
        .expect("it answers before the body is there");
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 401");
}

/// A word that is not known could have narrowed what is approved.
#[tokio::test]
async fn an_approval_with_a_word_that_is_not_known_is_refused() {
    let served = Served::on(On::Loopback).await;
    let token = served.token(Role::Admin);
    let approval = |scope: &str, more: &str| {
        format!(
            r#"{{"kind":"approve","key":"k","approval":{{"target":{{"repository":{{"local":"/x"}},"head":"{}","scope":{scope}}},"policy":"local","by":{{"local":"ada"}}{more}}}}}"#,
            "a".repeat(40)
        )
    };
    let all = r#"{"blueprints":"all","profiles":"all"}"#;
    for (body, status) in [
        (approval(all, ""), StatusCode::ACCEPTED),
        (
            approval(all, r#","expires_at":"2020-01-01T00:00:00Z""#),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            approval(r#"{"blueprints":"all","profiles":"all","job":{"named":[]}}"#, ""),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
    ] {
        let request = served.http().post(served.url("/api/v1/commands"));
        let request = request
            .bearer_auth(&token)
            .header("content-type", "application/json");
        let response = request.body(body.clone()).send().await.expect("an answer");
        assert_eq!(response.status(), status, "{body}");
    }
}
