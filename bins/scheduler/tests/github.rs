//! The program beside a GitHub: a pull request is opened, its webhook comes, and the word of an owner lets it run.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use blueproof_core::{
    domain::{RunId, RunState},
    ports::{Deliveries as _, DeliveryState, StoreClient as _},
    sqlite::SqliteStore,
    view::RunView,
};
use blueproof_github::{
    api::{CheckAction, CheckConclusion, CheckRunState, RepositoryId},
    payload::{Account, AccountKind, CommitSha},
    testing::{FakeDelivery, FakeGitHub, HttpFake},
    webhook::WebhookSecret,
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

const REPOSITORY: RepositoryId = RepositoryId(7);
/// A key that was made for tests, and opens nothing.
const APP_KEY: &str = include_str!("../../../crates/scale-set/src/testing/app-key.pem");
const SECRET: &str = "a secret of the webhook";
/// So long it is waited for what must come.
const BOUND: Duration = Duration::from_secs(60);

const BLUEPRINT: &str = "\
apiVersion: blueproof.dev/v1alpha1
kind: Blueprint
metadata: {name: nano-lm}
spec:
  notebook: nano-lm.ipynb
  driver: {cpu: 100m, memory: 64Mi}
";

const NOTEBOOK: &str = r#"{"cells":[{"cell_type":"code","id":"a","metadata":{},"execution_count":null,"outputs":[],
"source":["print(1)"]}],"metadata":{"kernelspec":{"name":"python3","display_name":"Python 3","language":"python"}},
"nbformat":4,"nbformat_minor":5}"#;

/// A folder with everything, and the program in it.
struct Place {
    folder: tempfile::TempDir,
    github: Arc<FakeGitHub>,
    http: HttpFake,
    ada: Account,
    mallory: Account,
}

impl Place {
    async fn new() -> Self {
        let github = Arc::new(FakeGitHub::new(99));
        let ada = github.add_account(1, "ada", AccountKind::User);
        let mallory = github.add_account(4, "mallory", AccountKind::User);
        github.add_repository(
            REPOSITORY,
            "kubeflow/trainer",
            &[("OWNERS", "approvers: [ada]\n")],
        );
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            http: HttpFake::start(github.clone()).await,
            github,
            ada,
            mallory,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    /// Makes the repository that commits are fetched from, and returns the head of its only branch.
    fn repository(&self) -> CommitSha {
        let root = self.path("web/kubeflow/trainer.git");
        fs::create_dir_all(&root).expect("a folder");
        git(&root, &["init", "--quiet", "--initial-branch=main"]);
        self.write(
            "web/kubeflow/trainer.git/examples/nano-lm/blueprint.yaml",
            BLUEPRINT,
        );
        self.write(
            "web/kubeflow/trainer.git/examples/nano-lm/nano-lm.ipynb",
            NOTEBOOK,
        );
        git(&root, &["add", "--all"]);
        git(&root, &["commit", "--quiet", "-m", "one"]);
        git(&root, &["rev-parse", "HEAD"]).parse().expect("a commit")
    }

    /// Starts the program, and returns it with where it takes webhooks, once it follows the repository.
    fn serve(&self) -> (Served, String) {
        for (name, text) in [("app.pem", APP_KEY), ("secret", SECRET)] {
            let file = self.write(name, &format!("{text}\n"));
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            fs::set_permissions(file, mode).expect("it is ours");
        }
        let connection = format!(
            "apiVersion: blueproof.dev/v1alpha1\nkind: GitHubConnection\nspec:\n  api: {}\n  web: file://{}\n  \
             app: {{id: 99, installationId: 1, privateKeyFile: app.pem}}\n  repositories: [kubeflow/trainer]\n  pollEvery: 24h\n  \
             webhook: {{listen: \"127.0.0.1:0\", secretFiles: [secret]}}\n",
            self.http.address(),
            self.path("web").display()
        );
        let connection = self.write("github.yaml", &connection);
        let mut command = Command::new(env!("CARGO_BIN_EXE_blueproof-scheduler"));
        command
            .args(["serve", "--store"])
            .arg(self.path("store.db"))
            .arg("--github")
            .arg(connection);
        command.args(["--agent", "/bin/false", "--isolation", "disposable"]);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let mut process = command
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut said = BufReader::new(process.stderr.take().expect("it is piped"));
        let (mut line, mut address) = (String::new(), String::new());
        while !line.contains(" follows ") {
            line.clear();
            assert_ne!(said.read_line(&mut line).expect("text"), 0, "it has ended");
            if let Some((_, at)) = line.split_once("takes webhooks address=http://") {
                address = at.trim().to_owned();
            }
        }
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        (Served(process), address)
    }

    fn store(&self) -> SqliteStore {
        let store = SqliteStore::open_existing(&self.path("store.db")).expect("it can be read");
        store.expect("it is there")
    }

    /// Returns what came of the two newest deliveries, once they are worked on.
    async fn outcomes(&self, store: &SqliteStore) -> Vec<DeliveryState> {
        let begun = Instant::now();
        let mut seen = None;
        loop {
            let deliveries = store.deliveries(2).await.expect("a read");
            let states: Vec<_> = deliveries.into_iter().map(|delivery| delivery.state).collect();
            if !states
                .iter()
                .any(|state| matches!(state, DeliveryState::Pending { .. }))
            {
                return states;
            }
            assert!(begun.elapsed() < BOUND, "{states:?}");
            seen = Some(store.changed(seen).await);
        }
    }

    /// Waits until the check run of a commit stands as it is expected.
    async fn until_shown(&self, head: &CommitSha, expected: impl Fn(CheckRunState) -> bool) {
        let is_so = |github: &FakeGitHub| {
            let shown = github.checks(REPOSITORY, head);
            shown.first().is_some_and(|check| expected(check.state))
        };
        let shown = timeout(BOUND, self.github.until(is_so)).await;
        let checks = self.github.checks(REPOSITORY, head);
        assert!(shown.is_ok(), "{checks:?}");
    }

    /// Sends everything that GitHub has to tell.
    fn deliver(&self, address: &str) {
        for (nth, FakeDelivery { event, body }) in self.github.take_deliveries().into_iter().enumerate() {
            let signature = WebhookSecret::new(SECRET).expect("long enough").sign(&body);
            let head = format!(
                "POST /webhooks/github HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-github-event: {event}\r\n\
                 x-github-delivery: {nth}-{}\r\nx-hub-signature-256: {signature}\r\ncontent-length: {}\r\n\r\n",
                body.len(),
                body.len()
            );
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream
                .write_all(head.as_bytes())
                .and_then(|()| stream.write_all(&body))
                .expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers");
            assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
        }
    }
}

/// The program, which ends with the test.
struct Served(Child);

impl Served {
    fn terminate(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.0), Signal::TERM).expect("it is there");
        self.0.wait().expect("it ends").code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended is nobody's to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .args(["-c", "user.name=ada", "-c", "user.email=ada@example.org"]);
    let output = command
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output();
    let output = output.expect("git is there");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Waits until a run is as it is expected.
async fn until(store: &SqliteStore, run: RunId, holds: impl Fn(&RunView) -> bool) {
    let begun = Instant::now();
    let mut seen = None;
    loop {
        let view = store.run(run).await.expect("a read");
        if view.as_ref().is_some_and(&holds) {
            return;
        }
        assert!(begun.elapsed() < BOUND, "{view:?}");
        seen = Some(store.changed(seen).await);
    }
}

#[tokio::test]
async fn a_pull_request_waits_for_an_owner_whose_word_lets_it_run() {
    let place = Place::new().await;
    let head = place.repository();
    let (process, address) = place.serve();
    let store = place.store();
    let number = place
        .github
        .open(REPOSITORY, &place.mallory, &["examples/nano-lm/nano-lm.ipynb"]);
    place.github.push_back(REPOSITORY, number, &place.mallory, &head);
    place.deliver(&address);
    until(&store, RunId(1), |view| view.state == RunState::AwaitingApproval).await;
    let checks = || place.github.checks(REPOSITORY, &head);
    let waits = |state| {
        let conclusion = CheckConclusion::ActionRequired;
        matches!(state, CheckRunState::Completed { conclusion: now, .. } if now == conclusion)
    };
    place.until_shown(&head, waits).await;
    assert_eq!(checks()[0].actions[0], CheckAction::Approve);
    place
        .github
        .comment(REPOSITORY, number, &place.mallory, &format!("/gpu-test {head}"));
    place
        .github
        .comment(REPOSITORY, number, &place.ada, &format!("/gpu-test {head}"));
    place.deliver(&address);
    until(&store, RunId(1), |view| !view.attempts.is_empty()).await;
    let view = store.run(RunId(1)).await.expect("a read").expect("it is there");
    assert_eq!(view.attempts[0].approved_by, place.ada.to_actor());
    let told = place.outcomes(&store).await;
    let outcome = |outcome: &str| DeliveryState::Done {
        outcome: outcome.into(),
    };
    let refused = "not done: nobody approves their own pull request";
    assert_eq!(told, [outcome("done"), outcome(refused)]);
    place
        .until_shown(&head, |state| state == CheckRunState::InProgress)
        .await;
    assert_eq!(checks().len(), 1);
    assert_eq!(process.terminate(), Some(0));
}

#[test]
fn a_connection_with_mistakes_is_refused_with_all_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("github.yaml");
    fs::write(&file, "apiVersion: blueproof.dev/v1alpha1\nkind: GitHubConnection\nspec:\n  tokenFile: t\n  repos: [a]\n  pollEvery: 1s\n")
        .expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_blueproof-scheduler"))
        .args(["serve", "--github"])
        .arg(&file)
        .env_clear()
        .env("HOME", folder.path())
        .output();
    let output = output.expect("it starts");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in [
        "unknown key `repos`",
        "github.yaml:6:",
        "`1s` is not allowed here",
    ] {
        assert!(said.contains(part), "{said}");
    }
}
