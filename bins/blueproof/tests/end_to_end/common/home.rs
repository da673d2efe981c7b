//! A home of somebody who types commands, and what the program answers.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;

/// A home with a store, and with nothing of whoever runs the tests but how packages are found.
#[derive(Debug)]
pub(crate) struct Home {
    folder: tempfile::TempDir,
    /// Where its scheduler's socket is, out of sight of whoever looks around at home.
    sockets: tempfile::TempDir,
    /// What its commands, and its scheduler where there is one, find in their environment besides.
    variables: Vec<(&'static str, OsString)>,
    /// The scheduler that is asked, where one is.
    server: Option<Server>,
}

/// A scheduler's process. It is told to stop, and waited for, at the end.
#[derive(Debug)]
struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Starts one that decides about the store of a home, and returns it as soon as it does.
    fn start(home: &Home) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_blueproof")).with_file_name("blueproof-scheduler");
        let address = format!("unix:{}", home.sockets.path().join("scheduler.sock").display());
        let mut command = Command::new(&program);
        command.args(["serve", "--listen", &address]);
        home.surround(&mut command);
        let process = command.stderr(Stdio::piped()).spawn();
        let mut process = process.unwrap_or_else(|error| {
            panic!(
                "{} (`cargo build -p blueproof-scheduler`): {error}",
                program.display()
            )
        });
        let mut said = BufReader::new(process.stderr.take().expect("it is piped"));
        let mut line = String::new();
        while !line.trim_end().ends_with(" leads") {
            line.clear();
            let read = said.read_line(&mut line).expect("it is text");
            assert_ne!(read, 0, "the scheduler has ended before it led");
        }
        // So that it never waits for somebody to read.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { process, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is ours");
        self.process.wait().expect("it ends");
    }
}

/// What a process answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// `None` is the end by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    /// Returns a home whose commands work on a store; where `BLUEPROOF_TEST_SERVER` is set, they ask a scheduler.
    pub(crate) fn new() -> Self {
        Self::with(Vec::new())
    }

    /// As [`Home::new`], where this stands in the environment of its commands, and of the scheduler where there is one.
    pub(crate) fn with(variables: Vec<(&'static str, OsString)>) -> Self {
        Self::with_store(variables).served_where_asked()
    }

    /// As [`Home::new`], with Python environments of its own.
    pub(crate) fn with_own_environments() -> Self {
        let mut home = Self::with_store(Vec::new());
        let own = home.path().join("environments");
        home.variables.push(("BLUEPROOF_ENVIRONMENTS", own.into()));
        home.served_where_asked()
    }

    /// Returns a home whose commands work on a store, whatever is set: a scheduler has no part in what the test is about, and
    /// `why` says so.
    pub(crate) fn local(why: &str) -> Self {
        assert!(!why.is_empty(), "say why");
        Self::with_store(Vec::new())
    }

    fn with_store(variables: Vec<(&'static str, OsString)>) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            sockets: tempfile::tempdir().expect("a folder"),
            variables,
            server: None,
        }
    }

    fn served_where_asked(mut self) -> Self {
        if std::env::var_os("BLUEPROOF_TEST_SERVER").is_some() {
            self.server = Some(Server::start(&self));
        }
        self
    }

    /// Returns a home whose commands ask a scheduler, which runs for as long as the home is there.
    pub(crate) fn served() -> Self {
        let mut home = Self::with_store(Vec::new());
        home.server = Some(Server::start(&home));
        home
    }

    /// Returns whether commands work on the store themselves, so that they know its folder, and the machine.
    pub(crate) fn is_local(&self) -> bool {
        self.server.is_none()
    }

    /// Returns the process of the scheduler, where there is one.
    pub(crate) fn server_pid(&self) -> Option<u32> {
        self.server.as_ref().map(|server| server.process.id())
    }

    /// Sees that no command has made a store. A scheduler has one from its beginning.
    pub(crate) fn assert_nothing_is_made(&self) {
        assert!(!self.is_local() || !self.store().exists(), "nothing is made");
    }

    /// Ends the scheduler as systemd and Kubernetes do, and starts another.
    pub(crate) fn restart_server(&mut self) {
        drop(self.server.take());
        self.server = Some(Server::start(self));
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path().join("data/blueproof.db")
    }

    /// Returns the folder with what is kept of a run, whether it is there or not.
    pub(crate) fn run_folder(&self, run: &str) -> PathBuf {
        let runs = self.path().join("data/runs");
        let mut folders = fs::read_dir(&runs)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        let store = folders.find(|folder| folder.join(run).exists());
        store.unwrap_or(runs).join(run)
    }

    /// Returns a command of the program, typed in this home.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_blueproof"));
        command.args(arguments);
        self.surround(&mut command);
        if let Some(server) = &self.server {
            command.env("BLUEPROOF_SERVER", &server.address);
        }
        command
    }

    /// Has a command find this home around it, and nothing else.
    fn surround(&self, command: &mut Command) {
        command.current_dir(self.path());
        for variable in [
            "BLUEPROOF_SERVER",
            "BLUEPROOF_TOKEN",
            "BLUEPROOF_TOKEN_FILE",
            "BLUEPROOF_CONFIG",
            "BLUEPROOF_PYTHON",
            "BLUEPROOF_LOCAL_CPU",
            "BLUEPROOF_LOCAL_MEMORY",
            "BLUEPROOF_LOCAL_SELF_APPROVE",
            "BLUEPROOF_LOCAL_APPROVERS",
            "CUDA_VISIBLE_DEVICES",
            "GITHUB_ACTIONS",
            "NO_COLOR",
            "CLICOLOR_FORCE",
        ] {
            command.env_remove(variable);
        }
        command.env("HOME", self.path());
        for (variable, folder) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "share"),
            ("XDG_CACHE_HOME", "cache"),
        ] {
            command.env(variable, self.path().join(folder));
        }
        command.env("BLUEPROOF_STORE", self.store());
        command.env("BLUEPROOF_ENVIRONMENTS", environments());
        let variables = self.variables.iter();
        command.envs(variables.map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
    }

    /// Has the program do something, and waits for its end.
    pub(crate) fn blueproof(&self, arguments: &[&str]) -> Answer {
        self.start(arguments).end()
    }

    /// Returns the newest run as a program reads it.
    pub(crate) fn last(&self) -> Value {
        self.blueproof(&["get", "run", "last", "-o", "json"]).json()
    }
}

impl Answer {
    /// Returns the answer as the one document that it is.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("answers are text");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// Returns a folder for Python environments that all tests share: they take long to make.
fn environments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-environments")
}
