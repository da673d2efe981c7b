//! A whole host in a process of its own, to be killed: `host drive STORE [after:started]`, and the agent that it
//! starts, which is the real one. A host that is to die of a call that fails, or while it waits to make it again, fails
//! to write its first report. `agent-on-a-full-disk` is an agent that cannot write down how its attempt ended.

use std::{env, error::Error, path::Path, process::exit, sync::Arc};

use blueproof_cluster::local::{AgentCommand, IsolationPolicy, LocalDriver, TryIsolation};
use blueproof_core::{
    attempt::{AttemptLayout, LogWriter, Orders, ProcessName, Record, RecordKind, RunsFolder},
    engine::{Engine, Ports},
    policy::Policy,
    ports::{CallError, Clusters, Leadership, SystemClock},
    sqlite::SqliteStore,
    testing::FakeReporter,
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_notebook::{
    Launcher,
    agent::{self, Dependencies, NothingMeasured},
    launch,
};
use blueproof_tests::{checkout, crash::CrashingStore, pull_request};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let (verb, rest) = arguments
        .split_first()
        .ok_or("drive, agent, agent-on-a-full-disk or launch")?;
    match verb.to_str() {
        Some("agent") => {
            let layout = AttemptLayout::new(rest.first().ok_or("a folder")?);
            let launcher = Launcher::new(env::current_exe()?, ["launch"]);
            Ok(agent::run(
                &layout,
                Orders::read(std::io::stdin())?,
                Dependencies::standard(&layout, launcher, Box::new(NothingMeasured)),
            )?)
        }
        Some("agent-on-a-full-disk") => full_disk(Path::new(rest.first().ok_or("a folder")?)),
        Some("launch") => Err(launch(rest.iter().cloned()).into()),
        Some("drive") => {
            let store = rest.first().ok_or("a store")?;
            let at = rest.get(1).map(|at| at.to_string_lossy().parse()).transpose()?;
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(drive(Path::new(store), at))?;
            exit(0)
        }
        _ => Err("drive, agent, agent-on-a-full-disk or launch".into()),
    }
}

/// Says that it has begun, and then can write nothing more.
fn full_disk(folder: &Path) -> Result<(), Box<dyn Error>> {
    let orders = Orders::read(std::io::stdin())?;
    let (mut log, before) = LogWriter::open(&AttemptLayout::new(folder).log(), orders.key)?;
    if before.is_empty() {
        log.append(&Record {
            at: "2026-01-01T00:00:00Z".parse()?,
            kind: RecordKind::Begun {
                process: ProcessName::of(std::process::id()).ok_or("this process")?,
                version: "0".into(),
                marker: String::new(),
                sockets: folder.join("sockets"),
                cgroup: None,
            },
        })?;
    }
    Err("full".into())
}

/// Drives until nothing remains to be done.
async fn drive(path: &Path, at: Option<blueproof_tests::crash::CrashAt>) -> Result<(), Box<dyn Error>> {
    let inner = SqliteStore::open(path)?;
    let _leadership = inner.try_lead().await?.ok_or("somebody else drives")?;
    let agent = AgentCommand {
        program: env::current_exe()?.into(),
        arguments: vec!["agent".into()],
    };
    let runs = RunsFolder::new(path.with_file_name("runs"), inner.identity().clone());
    // Crashes are what is tested here, on whatever machine that is.
    let cluster = LocalDriver::new(runs, checkout::environments(), agent)
        .with_isolation(IsolationPolicy::Disposable, TryIsolation::default());
    let quota = cluster.inventory().await?.allocatable();
    let reporter = FakeReporter::default();
    if at
        .as_ref()
        .is_some_and(|at| ["callFailed", "callPostponed", "callRepeated"].contains(&at.kind.as_str()))
    {
        let trouble = Diagnostic::error(Code::AttemptLost, "not just now");
        reporter.fail_next(CallError::later(trouble));
    }
    let ports = Ports {
        store: Arc::new(CrashingStore { inner, at }),
        clusters: Clusters::one(Arc::new(cluster)),
        reporters: vec![Arc::new(reporter)],
        clock: Arc::new(SystemClock),
    };
    let mut policy = Policy::local(quota);
    policy.gate.approvers.insert(pull_request::maintainer());
    let mut engine = Engine::open(ports, policy).await?;
    Ok(engine
        .run_until(|scheduler| scheduler.runs().count() > 0 && scheduler.is_idle())
        .await?)
}
