//! The server: started with a configuration, asked, and ended.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

/// What a server reads, and which rules it goes by. It reads and reckons each second.
#[derive(Debug, Default)]
pub struct Setup {
    /// The pages.
    pub jobs: Vec<Job>,
    /// Files of rules.
    pub rules: Vec<PathBuf>,
}

/// A page that is read.
#[derive(Debug)]
pub struct Job {
    /// What the label `job` says.
    pub name: String,
    /// The address and port.
    pub address: String,
    /// The path on it.
    pub path: String,
}

impl Job {
    /// Names a page.
    pub fn new(name: &str, address: &str, path: &str) -> Self {
        let [name, address, path] = [name, address, path].map(ToOwned::to_owned);
        Self { name, address, path }
    }
}

/// A running Prometheus, which ends with this.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts one, with its files in a folder. It may take a moment until it can be asked: wait until a page was read.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be started.
    pub fn start(mut command: Command, folder: &Path, setup: &Setup) -> Self {
        let file = folder.join("prometheus.yml");
        fs::write(&file, config(setup)).expect("it can be written");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let flag = |name: &str, value: &OsStr| {
            let mut flag = OsString::from(format!("--{name}="));
            flag.push(value);
            flag
        };
        command.arg(flag("config.file", file.as_os_str()));
        command.arg(flag("storage.tsdb.path", folder.join("data").as_os_str()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().expect("it starts");
        Self { child, port }
    }

    /// Asks a query of this moment, and returns the series: each with its labels in `metric`, and a time and a text in `value`.
    ///
    /// # Panics
    ///
    /// Panics if it does not answer, or finds a mistake in the query.
    pub fn ask(&self, query: &str) -> Vec<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        let escaped = escaped(query);
        write!(stream, "GET /api/v1/query?query={escaped} HTTP/1.0\r\n\r\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let (_, body) = text.split_once("\r\n\r\n").expect("an answer");
        let mut answer: Value = serde_json::from_str(body).expect("JSON");
        let Value::Array(series) = answer["data"]["result"].take() else {
            panic!("no vector came of `{query}`: {body}");
        };
        series
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What cannot be ended has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn config(setup: &Setup) -> String {
    let mut text = "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files:\n".to_owned();
    for rules in &setup.rules {
        let _ = writeln!(text, "- '{}'", rules.display());
    }
    text.push_str("scrape_configs:\n");
    for Job { name, address, path } in &setup.jobs {
        let target = format!("static_configs: [{{targets: ['{address}']}}]");
        let _ = writeln!(text, "- job_name: {name}\n  metrics_path: {path}\n  {target}");
    }
    text
}

/// Returns text as it may stand in an address.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}
