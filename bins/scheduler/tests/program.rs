//! The program as an admin meets it: tokens, where it listens, how it ends.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

/// A home with nothing of whoever runs the tests.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_blueproof-scheduler"));
        command.args(arguments).env_clear().env("HOME", self.path());
        command.stdin(Stdio::null());
        command
    }

    fn scheduler(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(arguments).output().expect("it starts");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (status.code(), text(stdout), text(stderr))
    }

    /// Starts one that serves, and returns it once it leads or follows.
    fn serve(&self, listen: &str) -> Child {
        let mut command = self.command(&["serve", "--listen", listen]);
        let mut process = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut said = BufReader::new(process.stderr.take().expect("it is piped"));
        let mut line = String::new();
        while !line.contains(" leads") && !line.contains(" follows") {
            line.clear();
            assert_ne!(said.read_line(&mut line).expect("text"), 0, "it has ended");
        }
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        process
    }
}

fn terminate(mut process: Child) -> Option<i32> {
    kill_process(Pid::from_child(&process), Signal::TERM).expect("it is there");
    process.wait().expect("it ends").code()
}

#[test]
fn tokens_are_made_once_told_once_and_removed() {
    let home = Home::new();
    let (code, token, _) = home.scheduler(&["token", "create", "ci", "--role", "run", "--expires", "90d"]);
    assert_eq!(code, Some(0));
    assert!(
        token.starts_with("bps_") && token.trim_end().len() > 40,
        "{token}"
    );
    let (_, list, _) = home.scheduler(&["token", "list"]);
    assert!(
        list.contains("ci") && list.contains("run") && !list.contains(token.trim_end()),
        "{list}"
    );
    let (code, _, said) = home.scheduler(&["token", "create", "ci", "--role", "read"]);
    assert_eq!(code, Some(2), "the name is taken: {said}");
    let (code, _, said) = home.scheduler(&["token", "create", "x", "--role", "root"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("read, run, approve and admin"), "{said}");
    assert_eq!(home.scheduler(&["token", "remove", "ci"]).0, Some(0));
    let (code, _, said) = home.scheduler(&["token", "remove", "ci"]);
    assert_eq!(code, Some(2), "it is gone: {said}");
}

#[test]
fn an_address_that_others_reach_is_refused() {
    let home = Home::new();
    let (code, _, said) = home.scheduler(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("BP1008"), "{said}");
}

#[test]
fn it_ends_in_order_and_leaves_no_socket_and_two_never_listen_on_one() {
    let home = Home::new();
    let socket = home.path().join("s.sock");
    let listen = format!("unix:{}", socket.display());
    let first = home.serve(&listen);
    UnixStream::connect(&socket).expect("it listens");
    let (code, _, said) = home.scheduler(&["serve", "--listen", &listen]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("another process listens there"), "{said}");
    let other = home.serve(&format!("unix:{}", home.path().join("t.sock").display()));
    assert_eq!(terminate(first), Some(0));
    assert!(!socket.exists(), "its socket is gone");
    assert_eq!(terminate(other), Some(0));
}

#[test]
fn one_that_was_killed_is_in_nobodys_way() {
    let home = Home::new();
    let socket = home.path().join("s.sock");
    let listen = format!("unix:{}", socket.display());
    let mut killed = home.serve(&listen);
    killed.kill().expect("it is ours");
    killed.wait().expect("it ends");
    assert!(socket.exists(), "nobody removed it");
    assert_eq!(terminate(home.serve(&listen)), Some(0));
}

#[test]
fn what_happens_to_a_run_is_a_line_in_its_span_and_no_request_shows_a_token() {
    let home = Home::new();
    let socket = home.path().join("s.sock");
    let listen = format!("unix:{}", socket.display());
    let arguments = [
        "serve",
        "--listen",
        &listen,
        "--log-format",
        "json",
        "--log-level",
        "debug",
    ];
    let mut process = home
        .command(&arguments)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(process.stderr.take().expect("it is piped")).lines();
    let mut until = |is_meant: &dyn Fn(&serde_json::Value) -> bool| loop {
        let line = lines.next().expect("it goes on").expect("text");
        assert!(!line.contains("bps_"), "{line}");
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        if is_meant(&line) {
            break line;
        }
    };
    until(&|line| line["message"] == "leads");
    let cancel =
        r#"{"kind": "cancel", "key": "k", "run": "r-7", "by": {"local": "ada"}, "how": "terminate"}"#;
    let mut stream = UnixStream::connect(&socket).expect("it listens");
    let head = "POST /api/v1/commands?x=bps_1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{cancel}", cancel.len()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");

    // Which of the two comes first is nobody's business.
    let (mut asked, mut told) = (None, None);
    while asked.is_none() || told.is_none() {
        let line = until(&|line| line["message"] == "answered" || line["message"] == "cancelRequested");
        match line["message"] == "answered" {
            true => asked = Some(line),
            false => told = Some(line),
        }
    }
    let (asked, told) = (asked.expect("seen"), told.expect("seen"));
    assert_eq!(
        (&asked["method"], &asked["path"], &asked["status"]),
        (&"POST".into(), &"/api/v1/commands".into(), &202.into())
    );
    assert_eq!(told["span"]["run"], "r-7", "{told}");
    std::thread::spawn(move || lines.for_each(drop));
    assert_eq!(terminate(process), Some(0));
}

#[test]
fn its_description_is_an_openapi_document() {
    let (code, text, _) = Home::new().scheduler(&["openapi"]);
    assert_eq!(code, Some(0));
    let description: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        description["openapi"]
            .as_str()
            .and_then(|version| version.split('.').next()),
        Some("3")
    );
    assert!(description["paths"]["/api/v1/runs"]["get"].is_object());
}

/// A log that cannot be written is no reason to decide nothing.
#[test]
fn it_leads_and_answers_where_its_log_cannot_be_written() {
    let home = Home::new();
    let socket = home.path().join("s");
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    let listen = format!("unix:{}", socket.display());
    let mut command = home.command(&["serve", "--listen", &listen, "--log-level", "debug"]);
    let process = command.stderr(full).spawn().expect("it starts");
    let ready = || {
        let mut stream = UnixStream::connect(&socket).ok()?;
        stream
            .write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(())
    };
    while ready().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(terminate(process), Some(0));
}

#[test]
fn what_no_run_could_start_by_is_refused() {
    let home = Home::new();
    for (arguments, about) in [
        (
            ["serve", "--agent", "/nonexistent/blueproof"],
            "no program `/nonexistent/blueproof`",
        ),
        (["serve", "--agent", "/etc"], "no program `/etc`"),
        (["serve", "--cpu", "0"], "--cpu 0"),
        (["serve", "--memory", "0"], "--memory 0"),
    ] {
        let (code, _, said) = home.scheduler(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.contains(about), "{arguments:?}: {said}");
    }
}
