//! The program, started and asked.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use fake_nvml::{Fault, Installed, NvmlReturn, Scenario, a10};
use rustix::process::{Pid, Signal, kill_process};

/// Longer than any answer takes on a slow machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_blueproof-exporter"));
    program.env_remove("NODE_NAME").stdin(Stdio::null());
    program
}

pub(crate) fn install(scenario: &Scenario) -> Installed {
    Installed::new(scenario).expect("the library was built beside this test")
}

pub(crate) fn once(library: &Installed, more: &[&str]) -> Output {
    let mut program = program();
    program
        .arg("--once")
        .arg("--library")
        .arg(library.path())
        .args(more);
    program.output().expect("it can be started")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is text")
}

/// Returns the samples of a page that begin so.
pub(crate) fn lines(page: &str, start: &str) -> Vec<String> {
    let lines = page.lines().filter(|line| line.starts_with(start));
    lines.map(str::to_owned).collect()
}

/// A machine whose driver is not loaded.
pub(crate) fn without_driver() -> Installed {
    let mut scenario = Scenario::of([a10()]);
    scenario.faults = vec![Fault::always("nvmlInit_v2", None, NvmlReturn::DriverNotLoaded)];
    install(&scenario)
}

/// A server, which ends with this.
pub(crate) struct Server {
    child: Child,
    /// Where it listens.
    pub(crate) address: String,
    /// Its log: were it closed, nothing could be told any more.
    log: BufReader<ChildStderr>,
}

/// What was answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Server {
    pub(crate) fn start(arguments: &[&str], library: &Installed) -> Self {
        let mut program = program();
        program
            .args(["--listen", "127.0.0.1:0"])
            .arg("--library")
            .arg(library.path());
        program.args(arguments);
        Self::of(program)
    }

    /// Starts one that may have so many files open.
    pub(crate) fn with_files(files: u32, library: &Installed) -> Self {
        let mut shell = Command::new("sh");
        let limited = format!("ulimit -n {files}; exec \"$0\" --listen 127.0.0.1:0 --library \"$1\"");
        shell.args(["-c", &limited, env!("CARGO_BIN_EXE_blueproof-exporter")]);
        shell
            .arg(library.path())
            .env_remove("NODE_NAME")
            .stdin(Stdio::null());
        Self::of(shell)
    }

    fn of(mut program: Command) -> Self {
        let started = program.stderr(Stdio::piped()).spawn();
        let mut child = started.expect("it can be started");
        let mut log = BufReader::new(child.stderr.take().expect("it was asked for"));
        let mut line = String::new();
        log.read_line(&mut line).expect("it says where it listens");
        let address = line.trim().strip_prefix("listening on http");
        let address = address.map(|address| address.trim_start_matches('s').trim_start_matches("://"));
        let address = address.and_then(|address| address.strip_suffix("/metrics"));
        let address = address.unwrap_or_else(|| panic!("it listens: {line}")).to_owned();
        Self { child, address, log }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(LONG)).expect("it is a limit");
        stream
    }

    pub(crate) fn get(&self, path: &str, headers: &[&str]) -> Answer {
        ask(self.connect(), path, headers)
    }

    /// Returns the most memory that it has had, in bytes.
    pub(crate) fn memory_peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("it is there");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kibibytes.expect("the kernel says so") << 10
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("it has a number"), signal).expect("it is ours");
    }

    /// Returns how it ended, once it has.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                return status;
            }
            assert!(began.elapsed() < LONG, "it ends");
            thread::yield_now();
        }
    }

    /// Returns the lines of its log until one that has these words.
    pub(crate) fn log_until(&mut self, words: &str) -> String {
        let mut all = String::new();
        while !all.contains(words) {
            let read = self.log.read_line(&mut all).expect("it is open");
            assert_ne!(read, 0, "{words} in\n{all}");
        }
        all
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks for a page, and reads until the other side ends.
pub(crate) fn ask(mut stream: impl Read + Write, path: &str, headers: &[&str]) -> Answer {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    Answer::read(&answer)
}

impl Answer {
    fn read(bytes: &[u8]) -> Self {
        let end = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .expect("a head");
        let head = text(&bytes[..end]);
        let (first, rest) = head.split_once("\r\n").expect("a status line");
        let headers = rest.lines().filter_map(|line| line.split_once(": "));
        Self {
            status: first
                .split(' ')
                .nth(1)
                .and_then(|status| status.parse().ok())
                .expect("a status"),
            headers: headers
                .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                .collect(),
            body: bytes[end + 4..].to_vec(),
        }
    }

    pub(crate) fn text(&self) -> String {
        text(&self.body)
    }
}
