//! The program as it is typed at: what it writes can be used, and what is done is told.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
};

use blueproof_core::{
    ports::{Deliveries as _, DeliveryClient as _},
    testing::{FakeClock, MemoryDeliveries},
};
use blueproof_github::{
    api::{AppHook as _, CheckAction, CheckOutput, CheckRunState, GitHub as _, RepositoryId},
    connection::Connection,
    payload::CommitSha,
    receiver::Receiver,
    rest::{AppTokens, RestGitHub},
    webhook::{WebhookSecret, WebhookSecrets},
};
use blueproof_scale_set::{AppInstallation, AppKey};
use tokio::net::TcpListener;

const REPOSITORY: RepositoryId = RepositoryId(7);

/// The program, which ends with the test.
struct Fake {
    process: Child,
    typed: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Fake {
    fn start(folder: &std::path::Path, webhook: &str) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_blueproof-fake-github"))
            .arg(folder)
            .args(["--webhook", webhook])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let typed = process.stdin.take().expect("it is piped");
        let said = BufReader::new(process.stdout.take().expect("it is piped"));
        Self { process, typed, said }
    }

    /// Reads until a line has a word, and returns what follows it.
    fn until(&mut self, word: &str) -> String {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            assert_ne!(
                self.said.read_line(&mut line).expect("text"),
                0,
                "it ended before it said `{word}`"
            );
        }
        line.split_once(word).expect("it is there").1.trim().to_owned()
    }

    fn type_line(&mut self, line: &str) {
        writeln!(self.typed, "{line}").expect("it reads");
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        // One that has ended is nobody's to kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Takes webhooks, as a scheduler does.
async fn receiver() -> (Arc<MemoryDeliveries>, String) {
    let deliveries = Arc::<MemoryDeliveries>::default();
    let secret = WebhookSecret::new("secret-of-the-fake-webhook").expect("long enough");
    let secrets = WebhookSecrets::one(secret);
    let receiver = Receiver::new(
        secrets,
        deliveries.clone(),
        Arc::<FakeClock>::default(),
        Arc::default(),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move { axum::serve(listener, receiver.router()).await });
    (deliveries, format!("http://{address}/webhooks/github"))
}

fn tokens(connection: &Connection, key: &str) -> Arc<AppTokens> {
    let app = connection.app.as_ref().expect("it is there");
    let installation = AppInstallation {
        issuer: app.id.to_string(),
        installation: i64::from(app.installation_id),
        key: AppKey::from_pem(key).expect("a key"),
    };
    let clock = Arc::new(blueproof_core::ports::SystemClock);
    Arc::new(AppTokens::new(&connection.api.0, installation, clock).expect("an address"))
}

fn check() -> CheckOutput {
    CheckOutput {
        name: "GPU · hello".into(),
        external_id: "r-1".into(),
        details_url: None,
        state: CheckRunState::Queued,
        started_at: None,
        title: "waits for an approval".into(),
        summary: "waits".into(),
        text: String::new(),
        annotations: Vec::new(),
        actions: vec![CheckAction::Approve],
    }
}

/// Sees that the key and the secret are readable by their owner alone.
fn assert_only_ours(folder: &Path) {
    for name in ["app.pem", "webhook-secret"] {
        let file = folder.join(name).metadata().expect("it is there");
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{name}");
    }
}

/// Sees that a head can be fetched.
fn assert_fetched(folder: &Path, head: &str) {
    let fetched = Command::new("git")
        .current_dir(folder.join("web/kubeflow/trainer.git"))
        .args(["cat-file", "-p", &format!("{head}:examples/hello/blueprint.yaml")])
        .output();
    assert!(fetched.expect("git is there").status.success(), "{head}");
}

/// Types what is no command, or about nothing that there is.
fn type_mistakes(fake: &mut Fake, number: &str) {
    for (line, said) in [
        ("shout", "`shout` is no command"),
        ("push 4711", "there is no pull request 4711"),
        (&format!("comment {number} eve x"), "nobody is called `eve`"),
        (&format!("press {number} ada retry"), "has the button `retry`"),
    ] {
        fake.type_line(line);
        fake.until(said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_is_told_and_what_a_scheduler_shows_is_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let (deliveries, webhook) = receiver().await;
    let mut fake = Fake::start(folder.path(), &webhook);
    fake.until("scale sets   http://127.0.0.1:");
    let connection = fake.until("connection ");
    let connection = fs::read_to_string(connection).expect("it is written");
    let connection = Connection::read("github.yaml", connection).expect("a scheduler reads it");
    assert_only_ours(folder.path());
    fake.type_line("open");
    let opened = fake.until("opened ");
    let (number, head) = opened.split_once(" at ").expect("a head");
    assert!(fake.until("webhook pull_request ").ends_with("answered with 202"));
    let key = fs::read_to_string(folder.path().join("app.pem")).expect("text");
    let tokens = tokens(&connection, &key);
    let rest = RestGitHub::new(&connection.api.0, Some(99), tokens.clone()).expect("an address");
    rest.repository_named("kubeflow/trainer")
        .await
        .expect("it is there");
    let info = rest
        .pull_request(REPOSITORY, number.parse().expect("a number"))
        .await
        .expect("it is there");
    assert_eq!(info.head.sha.as_str(), head);
    assert_fetched(folder.path(), head);

    let sha: CommitSha = head.parse().expect("a commit");
    rest.create_check_run(REPOSITORY, &sha, &check())
        .await
        .expect("it is made");
    fake.type_line(&format!("show {number}"));
    assert_eq!(
        fake.until("check run GPU · hello: "),
        "waits for an approval [Run on GPU]"
    );
    fake.type_line(&format!("press {number} ada approve"));
    assert!(fake.until("webhook check_run ").ends_with("answered with 202"));
    let stored = deliveries.deliveries(9).await.expect("a read");
    let events: Vec<_> = stored
        .iter()
        .map(|one| (one.event.as_str(), one.action.as_deref()))
        .collect();
    assert_eq!(
        events,
        [
            ("check_run", Some("requested_action")),
            ("pull_request", Some("opened"))
        ]
    );
    let listed = tokens.hook_deliveries(None).await.expect("an answer");
    assert!(
        listed.deliveries.iter().all(|one| one.status == 202),
        "{listed:?}"
    );

    type_mistakes(&mut fake, number);
    fake.type_line("quit");
    assert_eq!(fake.process.wait().expect("it ends").code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_took_is_lost_and_sent_once_more_when_it_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let (deliveries, webhook) = receiver().await;
    // Nobody listens at the first port.
    let mut fake = Fake::start(folder.path(), "http://127.0.0.1:1/webhooks/github");
    fake.until("connection ");
    fake.type_line("open");
    assert!(fake.until("webhook pull_request ").contains("it is lost"));
    drop(fake);
    let mut fake = Fake::start(folder.path(), &webhook);
    let connection = fake.until("connection ");
    let connection =
        Connection::read("github.yaml", fs::read_to_string(connection).expect("text")).expect("it is one");
    fake.type_line("open");
    fake.until("webhook pull_request ");
    let key = fs::read_to_string(folder.path().join("app.pem")).expect("text");
    let tokens = tokens(&connection, &key);
    let sent = tokens.hook_deliveries(None).await.expect("an answer");
    tokens.redeliver(sent.deliveries[0].id).await.expect("an answer");
    assert!(
        fake.until("webhook pull_request ").ends_with("answered with 200"),
        "it was known"
    );
    assert_eq!(deliveries.pending_deliveries(9).await.expect("a read").len(), 1);
}
