//! A GitHub App is registered from a manifest, as a browser does it, and as others would like to.

use std::{net::SocketAddr, sync::Arc};

use blueproof_core::testing::FakeClock;
use blueproof_github::{
    registration::{AppManifest, AppOwner, Listener},
    rest::{AppTokens, registered_app},
    testing::{FakeGitHub, HttpFake},
};
use blueproof_scale_set::{AppInstallation, AppKey};
use jiff::SignedDuration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// An answer, as far as it is looked at.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        let line = self
            .head
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_default()
    }
}

/// Asks as a browser does; `host` is the name under which it found the address.
async fn ask(method: &str, url: &str, host: Option<&str>, form: &str) -> Answer {
    let rest = url.strip_prefix("http://").expect("an address on loopback");
    let (address, path) = rest.split_once('/').expect("it has a path");
    let host = host.unwrap_or(address);
    let request = format!(
        "{method} /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
        form.len()
    );
    let address: SocketAddr = address.parse().expect("an address");
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Answer {
        status: status.expect("a status"),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

async fn get(url: &str) -> Answer {
    ask("GET", url, None, "").await
}

/// Returns what stands between quotes behind a word, as a browser reads it.
fn attribute(html: &str, before: &str) -> String {
    let value = html
        .split_once(before)
        .expect("it is there")
        .1
        .split_once('"')
        .expect("it ends")
        .0;
    let plain = [
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ];
    plain.iter().fold(value.to_owned(), |text, (written, meant)| {
        text.replace(written, meant)
    })
}

fn form(manifest: &str) -> String {
    let bytes = manifest.bytes().map(|byte| format!("%{byte:02x}"));
    format!("manifest={}", bytes.collect::<String>())
}

fn manifest() -> AppManifest {
    AppManifest {
        name: "blue\"><script>proof".into(),
        homepage: "https://github.com/kubeflow/trainer".into(),
        webhook: Some("https://gpu.example.org/webhooks/github".into()),
        has_merge_queue: true,
    }
}

async fn listen(http: &HttpFake) -> Listener {
    let owner = AppOwner::Organization("kubeflow".into());
    let listener = Listener::bind(&manifest(), &owner, &http.address()).await;
    listener.expect("a free port")
}

#[tokio::test]
async fn an_app_is_registered_by_a_form_and_its_key_comes_back_once() {
    let github = Arc::new(FakeGitHub::new(99));
    let http = HttpFake::start(github.clone()).await;
    let listener = listen(&http).await;
    let page = listener.address();
    let code = tokio::spawn(listener.code());

    let shown = get(&page).await;
    assert!(!shown.body.contains("<script>"), "{}", shown.body);
    assert!(
        shown
            .header("content-security-policy")
            .contains("default-src 'none'"),
        "{}",
        shown.head
    );
    let action = attribute(&shown.body, "action=\"");
    assert!(
        action.contains("/organizations/kubeflow/settings/apps/new?state="),
        "{action}"
    );
    let sent = form(&attribute(&shown.body, "value=\""));
    let agreed = ask("POST", &action, None, &sent).await;
    assert_eq!(agreed.status, 302, "{}", agreed.body);
    let back = get(agreed.header("location")).await;
    assert_eq!(back.status, 200, "{}", back.body);

    let code = code.await.expect("it ends").expect("a code");
    assert!(!format!("{code:?}").contains("code-"));
    let app = registered_app(&http.address(), &code).await.expect("it is known");
    assert_eq!((app.id, app.webhook_secret.is_some()), (99, true));
    assert!(!format!("{app:?}").contains("PRIVATE"));
    assert_eq!(github.manifests()[0]["default_permissions"]["checks"], "write");
    let again = registered_app(&http.address(), &code)
        .await
        .expect_err("it was used");
    assert!(again.is_not_found(), "{again}");
    let requests = http.requests().await;
    let converted = requests
        .iter()
        .find(|request| request.url.path().ends_with("/conversions"));
    assert!(
        converted
            .expect("one was made")
            .headers
            .get("authorization")
            .is_none()
    );
}

#[tokio::test]
async fn who_was_not_told_the_page_or_the_state_brings_no_code() {
    let github = Arc::new(FakeGitHub::new(99));
    let http = HttpFake::start(github).await;
    let listener = listen(&http).await;
    let page = listener.address();
    let code = tokio::spawn(listener.code());
    let root = page.rsplit_once('/').expect("it has a path").0.to_owned();
    let shown = get(&page).await;
    let action = attribute(&shown.body, "action=\"");
    let state = action.rsplit_once('=').expect("it has a state").1;

    for (url, status) in [
        (format!("{root}/"), 404),
        (format!("{root}/registered?code=x&state={state}"), 404),
        (format!("{page}/registered?code=x"), 403),
        (format!("{page}/registered?code=x&state="), 403),
        (format!("{page}/registered?code=x&state={}", "0".repeat(32)), 403),
        (format!("{page}/registered?code=&state={state}"), 400),
        (format!("{page}/registered?code=a/../b&state={state}"), 400),
        (
            format!("{page}/registered?code={}&state={state}", "a".repeat(129)),
            400,
        ),
    ] {
        assert_eq!(get(&url).await.status, status, "{url}");
    }
    let rebound = ask("GET", &page, Some("evil.example"), "").await;
    assert_eq!((rebound.status, rebound.body.as_str()), (421, ""));
    assert!(!code.is_finished());
    let good = get(&format!("{page}/registered?code=good&state={state}")).await;
    assert_eq!(good.status, 200);
    code.await.expect("it ends").expect("a code");
}

#[tokio::test]
async fn an_app_that_was_installed_says_where() {
    let github = Arc::new(FakeGitHub::new(99));
    let http = HttpFake::start(github.clone()).await;
    let clock = Arc::new(FakeClock::default());
    clock.advance(SignedDuration::from_secs(1_800_000_000));
    let app = AppInstallation {
        issuer: "99".into(),
        installation: 0,
        key: AppKey::from_pem(include_str!("../../scale-set/src/testing/app-key.pem")).expect("a key"),
    };
    let tokens = AppTokens::new(&http.address(), app, clock).expect("an address");
    assert_eq!(tokens.installations().await.expect("an answer"), []);
    github.install_app();
    let installed = tokens.installations().await.expect("an answer");
    assert_eq!(u64::from(installed[0].id), FakeGitHub::INSTALLATION);
}
