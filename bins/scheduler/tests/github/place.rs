//! A GitHub, a repository, and the program beside them.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use blueproof_core::{
    domain::RunId,
    ports::{DeliveryClient as _, DeliveryState, StoreClient as _},
    sqlite::SqliteStore,
    view::RunView,
};
use blueproof_github::{
    api::{CheckRunState, RepositoryId},
    payload::{Account, AccountKind, CommitSha},
    testing::{FakeDelivery, FakeGitHub, HttpFake},
    webhook::WebhookSecret,
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

pub(crate) const REPOSITORY: RepositoryId = RepositoryId(7);
/// A key that was made for tests, and opens nothing.
const APP_KEY: &str = include_str!("../../../../crates/scale-set/src/testing/app-key.pem");
const SECRET: &str = "a secret of the webhook";
/// So long it is waited for what must come.
pub(crate) const BOUND: Duration = Duration::from_secs(180);

const BLUEPRINT: &str = "\
apiVersion: blueproof.dev/v1alpha1
kind: Blueprint
metadata: {name: nano-lm}
spec:
  notebook: nano-lm.ipynb
  driver: {cpu: 100m, memory: 64Mi}
";

const NOTEBOOK_END: &str = r#""metadata":{"kernelspec":{"name":"python3","display_name":"Python 3","language":"python"}},
"nbformat":4,"nbformat_minor":5}"#;

/// How many deliveries were sent: each has a name of its own.
static DELIVERED: AtomicU64 = AtomicU64::new(0);

/// Where the repository lies below everything.
const ROOT: &str = "web/kubeflow/trainer.git";

/// What carries attempts out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Agent {
    /// Nothing does: each ends at once.
    None,
    /// The program that does.
    Real,
}

/// How what happens on GitHub comes to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// By webhooks.
    Webhooks,
    /// By a look at the start.
    Polls,
}

/// A folder with everything, and the program in it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    pub(crate) github: Arc<FakeGitHub>,
    pub(crate) http: HttpFake,
    pub(crate) ada: Account,
    pub(crate) mallory: Account,
}

impl Place {
    pub(crate) async fn new() -> Self {
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

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    /// Makes the repository that commits are fetched from, and returns the head of its only branch.
    pub(crate) fn repository(&self) -> CommitSha {
        let root = self.path(ROOT);
        fs::create_dir_all(&root).expect("a folder");
        git(&root, &["init", "--quiet", "--initial-branch=main"]);
        self.write(&format!("{ROOT}/examples/nano-lm/blueprint.yaml"), BLUEPRINT);
        self.commit(&["print(1)"])
    }

    /// Commits a notebook of these cells, and returns the commit.
    pub(crate) fn commit(&self, cells: &[&str]) -> CommitSha {
        let cells: Vec<String> = cells
            .iter()
            .enumerate()
            .map(|(nth, source)| {
                format!(
                    "{{\"cell_type\":\"code\",\"id\":\"c{nth}\",\"metadata\":{{}},\"execution_count\":null,\"outputs\":[],\n\
                     \"source\":[{}]}}",
                    serde_json::json!(source)
                )
            })
            .collect();
        let notebook = format!("{{\"cells\":[{}],\n{NOTEBOOK_END}", cells.join(",\n"));
        self.write(&format!("{ROOT}/examples/nano-lm/nano-lm.ipynb"), &notebook);
        let root = self.path(ROOT);
        git(&root, &["add", "--all"]);
        git(&root, &["commit", "--quiet", "-m", "another"]);
        git(&root, &["rev-parse", "HEAD"]).parse().expect("a commit")
    }

    /// Starts the program, and returns it with where it takes webhooks, once it follows the repository.
    pub(crate) fn serve(&self, agent: Agent, news: News) -> (Served, String) {
        for (name, text) in [("app.pem", APP_KEY), ("secret", SECRET)] {
            let file = self.write(name, &format!("{text}\n"));
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            fs::set_permissions(file, mode).expect("it is ours");
        }
        let connection = format!(
            "apiVersion: blueproof.dev/v1alpha1\nkind: GitHubConnection\nspec:\n  api: {}\n  web: file://{}\n  \
             app: {{id: 99, installationId: 12, privateKeyFile: app.pem}}\n  repositories: [kubeflow/trainer]\n  pollEvery: 24h\n{}",
            self.http.address(),
            self.path("web").display(),
            match news {
                News::Webhooks => "  webhook: {listen: \"127.0.0.1:0\", secretFiles: [secret]}\n",
                News::Polls => "",
            }
        );
        let connection = self.write("github.yaml", &connection);
        let mut command = Command::new(env!("CARGO_BIN_EXE_blueproof-scheduler"));
        command
            .current_dir(self.folder.path())
            .args(["serve", "--store", "store.db"])
            .arg("--github")
            .arg(connection);
        let scheduler = Path::new(env!("CARGO_BIN_EXE_blueproof-scheduler"));
        let agent = match agent {
            Agent::None => PathBuf::from("/bin/false"),
            Agent::Real => scheduler.with_file_name("blueproof"),
        };
        command
            .arg("--agent")
            .arg(agent)
            .args(["--isolation", "disposable"]);
        // What installs packages finds its settings as whoever runs the tests has them.
        let kept = std::env::vars_os().filter(|(name, _)| {
            let name = name.to_string_lossy();
            name == "PATH" || name.starts_with("PIP_") || name.starts_with("UV_") || name.starts_with("SSL_")
        });
        let environments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-environments");
        command
            .env_clear()
            .envs(kept)
            .env("HOME", self.folder.path())
            .env("BLUEPROOF_ENVIRONMENTS", environments);
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

    pub(crate) fn store(&self) -> SqliteStore {
        let store = SqliteStore::open_existing(&self.path("store.db")).expect("it can be read");
        store.expect("it is there")
    }

    /// Returns what came of the two newest deliveries, once they are worked on.
    pub(crate) async fn outcomes(&self, store: &SqliteStore) -> Vec<DeliveryState> {
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
    pub(crate) async fn until_shown(&self, head: &CommitSha, expected: impl Fn(CheckRunState) -> bool) {
        let is_so = |github: &FakeGitHub| {
            let shown = github.checks(REPOSITORY, head);
            shown.first().is_some_and(|check| expected(check.state))
        };
        let shown = timeout(BOUND, self.github.until(is_so)).await;
        let checks = self.github.checks(REPOSITORY, head);
        assert!(shown.is_ok(), "{checks:?}");
    }

    /// Sends everything that GitHub has to tell.
    pub(crate) fn deliver(&self, address: &str) {
        for delivery in self.github.take_deliveries() {
            let nth = DELIVERED.fetch_add(1, Ordering::Relaxed);
            send(address, &format!("delivery-{nth}"), &delivery);
        }
    }
}

/// Sends a delivery as GitHub does.
pub(crate) fn send(address: &str, id: &str, FakeDelivery { event, body }: &FakeDelivery) {
    let signature = WebhookSecret::new(SECRET).expect("long enough").sign(body);
    let head = format!(
        "POST /webhooks/github HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-github-event: {event}\r\n\
         x-github-delivery: {id}\r\nx-hub-signature-256: {signature}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body))
        .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
}

/// The program, which ends with the test.
pub(crate) struct Served(Child);

impl Served {
    pub(crate) fn terminate(mut self) -> Option<i32> {
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
pub(crate) async fn until(store: &SqliteStore, run: RunId, holds: impl Fn(&RunView) -> bool) {
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
