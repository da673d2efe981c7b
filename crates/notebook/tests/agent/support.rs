//! Attempts for tests: a folder, an agent's process, and what it wrote.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use blueproof_core::{
    attempt::{
        AttemptLayout, AttemptSpec, CellEnd, Cgroup, Errand, LogKey, LogReader, Orders, Record, RecordKind,
        SandboxMode, Stream,
    },
    domain::{
        AttemptId, Bytes, Cpus, Failure, Head, Outcome, Repository, RequestKey, Resources, RunId, Source,
        Timeouts, Verdict,
    },
    gpu::DeviceUuid,
};
use blueproof_diagnostic::Diagnostic;
use blueproof_notebook::plan::{Network, Plan, Secret, ShellInstall};
use blueproof_queue::Quantity;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The bound of every wait. It is only ever reached by a test that fails.
const BOUND: Duration = Duration::from_secs(120);
const REQUIREMENTS: [&str; 2] = ["ipykernel", "nbformat"];

/// An attempt that has not begun.
pub(crate) struct Attempt {
    folder: TempDir,
    cells: Vec<Value>,
    variables: Vec<(String, String)>,
    source: Option<Source>,
    head: Option<Head>,
    further: BTreeMap<String, Quantity>,
    devices: Option<Vec<DeviceUuid>>,
    metadata: Value,
    memory: Bytes,
    environments: Option<PathBuf>,
    pub(crate) sandbox: SandboxMode,
    pub(crate) timeouts: Timeouts,
    pub(crate) plan: Plan,
}

/// An attempt whose agent runs.
pub(crate) struct Running {
    folder: TempDir,
    pub(crate) agent: Child,
}

/// An attempt whose agent has ended.
pub(crate) struct Done {
    folder: TempDir,
    pub(crate) records: Vec<Record>,
}

impl Attempt {
    /// Describes an attempt with cells of code.
    pub(crate) fn of(sources: &[&str]) -> Self {
        let mut attempt = Self {
            folder: tempfile::tempdir().unwrap(),
            cells: Vec::new(),
            variables: Vec::new(),
            source: None,
            head: None,
            further: BTreeMap::new(),
            devices: None,
            metadata: json!({}),
            memory: Bytes(0),
            environments: None,
            sandbox: SandboxMode::Off,
            // A notebook that hangs must not keep its agent for ever when the test that started it has given up.
            timeouts: Timeouts {
                run: Some(SignedDuration::from_secs(50)),
                ..Timeouts::default()
            },
            plan: Plan {
                notebook: "examples/n.ipynb".into(),
                environment: Default::default(),
                parameters: Default::default(),
                shell_install: ShellInstall::Skip,
                network: Network::Any,
                secrets: Vec::new(),
                metrics: Vec::new(),
                expectations: Vec::new(),
                artifacts: Vec::new(),
                allow_empty: false,
                left_out: Default::default(),
            },
        };
        for source in sources {
            attempt = attempt.cell(source, &[]);
        }
        attempt
    }

    /// Adds a cell of code with tags.
    pub(crate) fn cell(mut self, source: &str, tags: &[&str]) -> Self {
        self.cells.push(json!({
            "cell_type": "code", "id": format!("c{}", self.cells.len()), "metadata": {"tags": tags},
            "execution_count": null, "outputs": [], "source": source,
        }));
        self
    }

    /// Adds a cell of text.
    pub(crate) fn text(mut self, source: &str) -> Self {
        let id = format!("c{}", self.cells.len());
        self.cells
            .push(json!({"cell_type": "markdown", "id": id, "metadata": {}, "source": source}));
        self
    }

    /// Sets a variable of the agent's environment.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Gives the notebook a secret.
    pub(crate) fn secret(mut self, name: &str, env: &str, value: &str) -> Self {
        self.plan.secrets.push(Secret {
            name: name.into(),
            env: env.into(),
        });
        self.variable("TEST_SECRETS", &json!({name: value}).to_string())
    }

    /// Says which devices it may use.
    pub(crate) fn devices(mut self, uuids: &[&str]) -> Self {
        self.devices = Some(uuids.iter().map(|uuid| DeviceUuid((*uuid).into())).collect());
        self
    }

    /// Says where its content comes from, and which was approved.
    pub(crate) fn source(mut self, source: Source, head: Head) -> Self {
        (self.source, self.head) = (Some(source), Some(head));
        self
    }

    /// Says that so much of a further resource was reserved for it.
    pub(crate) fn further(mut self, resource: &str, amount: i64) -> Self {
        self.further.insert(resource.into(), Quantity(amount));
        self
    }

    /// Sets the notebook's metadata.
    pub(crate) fn metadata(mut self, json: &str) -> Self {
        self.metadata = serde_json::from_str(json).unwrap();
        self
    }

    /// Puts a file into the checkout.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        let path = self.folder.path().join("checkout").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Says how much memory was asked for.
    pub(crate) fn memory(mut self, memory: Bytes) -> Self {
        self.memory = memory;
        self
    }

    /// Says where its environment is, which others may use, too.
    pub(crate) fn environments(mut self, folder: &Path) -> Self {
        self.environments = Some(folder.into());
        self
    }

    /// Has the notebook run in a sandbox.
    pub(crate) fn sandboxed(mut self) -> Self {
        self.sandbox = SandboxMode::Requested;
        self
    }

    /// Has the notebook run in a sandbox whose memory and processes are limited, or not at all.
    pub(crate) fn sandboxed_with_limits(mut self) -> Self {
        self.sandbox = SandboxMode::Required;
        self
    }

    /// Returns the folder that all of it lies in.
    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Limits a cell.
    pub(crate) fn cell_within(mut self, limit: Duration) -> Self {
        self.timeouts.cell = Some(SignedDuration::try_from(limit).unwrap());
        self
    }

    /// Starts the agent.
    pub(crate) fn start(self) -> Running {
        let root = self.folder.path();
        fs::create_dir_all(root.join("checkout/examples")).unwrap();
        fs::create_dir_all(root.join("attempt")).unwrap();
        let notebook =
            json!({"nbformat": 4, "nbformat_minor": 5, "metadata": self.metadata, "cells": self.cells});
        fs::write(root.join("checkout/examples/n.ipynb"), notebook.to_string()).unwrap();
        let spec = AttemptSpec {
            store: "test".into(),
            attempt: id(),
            request: RequestKey("test".into()),
            repository: Repository::Local(root.join("checkout")),
            pull_request: None,
            blueprint: "test".parse().unwrap(),
            profile: None,
            source: self
                .source
                .unwrap_or_else(|| Source::Folder(root.join("checkout"))),
            head: self.head.unwrap_or_else(|| {
                blueproof_notebook::snapshot::digest(&root.join("checkout"), &self.plan.left_out).unwrap()
            }),
            environments: self.environments.unwrap_or_else(|| root.join("environments")),
            granted: Resources {
                cpu: Cpus::cores(2),
                memory: self.memory,
                ..Resources::default()
            },
            further: self.further,
            devices: self.devices,
            sandbox: self.sandbox,
            timeouts: self.timeouts,
            work: serde_json::to_value(&self.plan).unwrap(),
        };
        fs::write(root.join("attempt/spec.json"), serde_json::to_vec(&spec).unwrap()).unwrap();
        let agent = agent(root, Errand::CarryOut, &self.variables);
        Running {
            folder: self.folder,
            agent,
        }
    }

    /// Runs the agent to its end.
    pub(crate) fn run(self) -> Done {
        self.start().wait()
    }

    /// Runs the agent to its end and returns why the attempt failed.
    pub(crate) fn fails(self) -> Failure {
        self.run().failure()
    }
}

impl Running {
    /// Returns the attempt's folder.
    pub(crate) fn layout(&self) -> AttemptLayout {
        AttemptLayout::new(self.folder.path().join("attempt"))
    }

    /// Returns the records so far.
    pub(crate) fn records(&self) -> Vec<Record> {
        LogReader::verified(self.layout().log(), key()).read_to_foreign()
    }

    /// Returns the folder with the kernel's sockets.
    pub(crate) fn sockets(&self) -> PathBuf {
        let sockets = self.records().into_iter().find_map(|record| {
            let RecordKind::Begun { sockets, .. } = record.kind else {
                return None;
            };
            Some(sockets)
        });
        sockets.expect("an agent has begun")
    }

    /// Returns the attempt's cgroup, or says that a test needs one where there can be none.
    pub(crate) fn cgroup(&self, what: &str) -> Option<Cgroup> {
        let cgroup = self.records().into_iter().find_map(|record| {
            let RecordKind::Begun { cgroup, .. } = record.kind else {
                return None;
            };
            cgroup
        });
        if cgroup.is_none() {
            eprintln!("NOT TESTED: {what}, because no cgroup of version 2 is delegated to this user");
        }
        cgroup
    }

    /// Waits until a cell has printed `text` and returns all that was printed.
    pub(crate) fn until_printed(&self, text: &str) -> String {
        eventually(|| {
            let printed = printed(&self.records());
            printed.contains(text).then_some(printed)
        })
    }

    /// Sends a signal to the agent.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.agent.id().to_string()])
            .status();
        assert!(status.unwrap().success());
    }

    /// Starts another agent for the same attempt.
    pub(crate) fn another_agent(&self) -> Child {
        agent(self.folder.path(), Errand::CarryOut, &[])
    }

    /// Waits for the agent's end.
    pub(crate) fn wait(mut self) -> Done {
        let status = eventually(|| self.agent.try_wait().unwrap());
        assert!(status.success(), "the agent ended with {status}");
        let records = self.records();
        Done {
            folder: self.folder,
            records,
        }
    }

    /// Has the agent killed without warning, and another one finish the attempt.
    pub(crate) fn kill_and_recover(mut self) -> Done {
        self.agent.kill().unwrap();
        self.recover()
    }

    /// Waits until the agent is gone, killed by its own notebook, and has another one finish the attempt.
    pub(crate) fn recover(mut self) -> Done {
        eventually(|| self.agent.try_wait().unwrap());
        self.agent = agent(self.folder.path(), Errand::Finish, &[]);
        self.wait()
    }
}

impl Done {
    /// Carries the attempt out once more, as if nothing had been written down.
    pub(crate) fn again(self) -> Self {
        let agent = agent(self.folder.path(), Errand::CarryOut, &[]);
        let folder = self.folder;
        Running { folder, agent }.wait()
    }

    pub(crate) fn layout(&self) -> AttemptLayout {
        AttemptLayout::new(self.folder.path().join("attempt"))
    }

    /// Returns the folder in which the notebook worked.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn checkout(&self) -> PathBuf {
        self.folder.path().join("checkout")
    }

    pub(crate) fn outcome(&self) -> Outcome {
        let Some(RecordKind::Finished { outcome }) = self.records.last().map(|record| record.kind.clone())
        else {
            panic!(
                "the last record does not say that it is finished: {:#?}",
                self.records
            );
        };
        *outcome
    }

    pub(crate) fn failure(&self) -> Failure {
        match self.outcome().verdict {
            Verdict::Failed(failure) => *failure,
            other @ (Verdict::Passed | Verdict::Stopped) => panic!("it did not fail: {other:?}"),
        }
    }

    pub(crate) fn passed(&self) {
        assert_eq!(self.outcome().verdict, Verdict::Passed);
    }

    pub(crate) fn printed(&self) -> String {
        printed(&self.records)
    }

    pub(crate) fn printed_by(&self, wanted: u32) -> String {
        texts(&self.records)
            .filter(|(cell, _, _)| *cell == wanted)
            .map(|(_, _, text)| text)
            .collect()
    }

    pub(crate) fn printed_to(&self, wanted: Stream) -> String {
        texts(&self.records)
            .filter(|(_, stream, _)| *stream == wanted)
            .map(|(_, _, text)| text)
            .collect()
    }

    /// Returns how each cell ended.
    pub(crate) fn ends(&self) -> Vec<CellEnd> {
        let mut ends = Vec::new();
        for record in &self.records {
            if let RecordKind::CellEnded { end, .. } = record.kind {
                ends.push(end);
            }
        }
        ends
    }

    pub(crate) fn noticed(&self) -> Vec<Diagnostic> {
        let mut noticed = Vec::new();
        for record in &self.records {
            if let RecordKind::Noticed { diagnostic } = &record.kind {
                noticed.push(diagnostic.clone());
            }
        }
        noticed
    }

    /// Returns the executed notebook, checked by Python's own reader.
    pub(crate) fn notebook(&self) -> Value {
        let path = self.layout().executed_notebook();
        let check = "import nbformat,sys; nbformat.validate(nbformat.read(sys.argv[1], 4))";
        let status = Command::new(python())
            .args(["-W", "error", "-c", check])
            .arg(&path)
            .status();
        assert!(status.unwrap().success(), "the executed notebook is not valid");
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }
}

fn printed(records: &[Record]) -> String {
    texts(records).map(|(_, _, text)| text).collect()
}

/// Returns cell, stream and text of everything that was printed.
fn texts(records: &[Record]) -> impl Iterator<Item = (u32, Stream, &str)> {
    records.iter().filter_map(|record| {
        let RecordKind::Text { cell, stream, text } = &record.kind else {
            return None;
        };
        Some((*cell, *stream, text.as_str()))
    })
}

fn id() -> AttemptId {
    RunId(1).attempt(1)
}

fn key() -> LogKey {
    LogKey::of(&[7; 32], id())
}

fn agent(root: &Path, errand: Errand, variables: &[(String, String)]) -> Child {
    let mut agent = Command::new(env!("CARGO_BIN_EXE_blueproof-test-agent"))
        .arg(root.join("attempt"))
        .env("TEST_PYTHON", python())
        .envs(variables.iter().cloned())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let orders = Orders {
        key: key(),
        errand,
        work: root.join("work"),
    };
    let mut input = agent.stdin.take().unwrap();
    input.write_all(orders.to_line().as_bytes()).unwrap();
    agent
}

/// Waits until `state` is there.
pub(crate) fn eventually<T>(mut state: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = state() {
            return found;
        }
        assert!(begun.elapsed() < BOUND, "it did not come to that");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether a process of this id is there and has not ended.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Returns a Python with what the tests need, made once and kept in the target folder.
pub(crate) fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = kept.join(format!("venv-{}", REQUIREMENTS.join("-")));
        let lock = File::create(folder.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        let python = folder.join("bin/python");
        let complete = folder.join("complete");
        if !complete.exists() {
            let _ = fs::remove_dir_all(&folder);
            run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
            let mut install = Command::new(&python);
            run(install
                .args(["-m", "pip", "install", "--quiet"])
                .args(REQUIREMENTS));
            fs::write(complete, "").unwrap();
        }
        python
    })
}

fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?} ended with {status}");
}
