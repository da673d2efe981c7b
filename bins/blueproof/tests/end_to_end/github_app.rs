//! A GitHub App is registered, installed, and leaves what a scheduler needs.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    process::{Child, ChildStderr, Stdio},
    sync::Arc,
};

use blueproof_github::{
    connection::Connection,
    testing::{FakeGitHub, HttpFake},
};
use tokio::runtime::Runtime;

use crate::common::Home;

/// GitHub, in a runtime of its own.
struct Fake {
    github: Arc<FakeGitHub>,
    http: HttpFake,
    _runtime: Runtime,
}

impl Fake {
    fn start() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let github = Arc::new(FakeGitHub::new(99));
        let http = runtime.block_on(HttpFake::start(github.clone()));
        Self {
            github,
            http,
            _runtime: runtime,
        }
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let usual = [
            "github",
            "app",
            "create",
            "--organization",
            "kubeflow",
            "--repository",
            "kubeflow/trainer",
        ];
        let address = self.http.address();
        let to = ["--api", &address, "--web", &address];
        let all = usual.iter().chain(&to).chain(more);
        all.map(ToString::to_string).collect()
    }
}

/// The command, while somebody goes through it with a browser.
struct Creating {
    process: Child,
    said: BufReader<ChildStderr>,
}

impl Creating {
    fn start(home: &Home, fake: &Fake, more: &[&str]) -> Self {
        let arguments = fake.arguments(more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = home.command(&arguments);
        let mut process = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let said = BufReader::new(process.stderr.take().expect("it is piped"));
        Self { process, said }
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

    /// Goes through the pages as a browser does.
    fn agree(&mut self) {
        let page = format!("http://127.0.0.1:{}", self.until("http://127.0.0.1:"));
        let shown = ask("GET", &page, "");
        let of = |before: &str| {
            let value = shown.split_once(before).expect("it is there").1;
            value
                .split_once('"')
                .expect("it ends")
                .0
                .replace("&quot;", "\"")
                .replace("&amp;", "&")
        };
        let form: String = of("value=\"")
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect();
        let agreed = ask("POST", &of("action=\""), &format!("manifest={form}"));
        let back = agreed
            .lines()
            .find_map(|line| line.strip_prefix("location: "))
            .expect("a redirection");
        assert!(ask("GET", back, "").contains("is registered"));
    }

    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).expect("text");
        (self.process.wait().expect("it ends").code(), rest)
    }
}

impl Drop for Creating {
    fn drop(&mut self) {
        // One that has ended is nobody's to kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn ask(method: &str, url: &str, form: &str) -> String {
    let (address, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .expect("an address");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = form.len();
    write!(
        stream,
        "{method} /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{form}"
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn an_app_is_registered_and_installed_and_leaves_what_a_scheduler_needs() {
    let (home, fake) = (Home::local("no store is asked"), Fake::start());
    let webhook = [
        "--webhook-url",
        "https://gpu.example.org/webhooks/github",
        "--folder",
        "connection",
    ];
    let mut creating = Creating::start(&home, &fake, &webhook);
    creating.agree();
    creating
        .until("install it in kubeflow/trainer: https://github.com/apps/blueproof-fake/installations/new");
    fake.github.install_app();
    creating.until("next: `blueproof-scheduler serve --github");
    let (code, said) = creating.end();
    assert_eq!(code, Some(0), "{said}");
    let folder = home.path().join("connection");
    for name in ["app.pem", "webhook-secret"] {
        let mode = folder
            .join(name)
            .metadata()
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let text = fs::read_to_string(folder.join("github.yaml")).expect("it is there");
    assert!(!text.contains("secret-of") && !text.contains("PRIVATE"), "{text}");
    let read = Connection::read("github.yaml", text).expect("a scheduler reads it");
    let app = read.app.expect("it is there");
    assert_eq!(
        (app.id, u64::from(app.installation_id)),
        (99, FakeGitHub::INSTALLATION)
    );
    assert!(read.webhook.is_some());

    let again = home.blueproof(
        &fake
            .arguments(&webhook)
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
    );
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("BP1113"), "{again:?}");
    assert_eq!(fake.github.manifests().len(), 1, "nothing was registered again");
}

#[test]
fn an_app_that_is_not_installed_in_time_leaves_its_key_and_says_what_is_to_be_done() {
    let (home, fake) = (Home::local("no store is asked"), Fake::start());
    let mut creating = Creating::start(&home, &fake, &["--wait", "5s"]);
    creating.agree();
    let (code, said) = creating.end();
    assert_eq!(code, Some(5), "{said}");
    for part in ["BP1114", "installationId: NUMBER", "/installations/new"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(home.path().join("app.pem").exists() && !home.path().join("github.yaml").exists());
}
