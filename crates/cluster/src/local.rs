//! Attempts as processes on this machine.
//!
//! For each attempt a process of its own is started, the agent, in a folder of its own. The agent writes down what
//! happens there and needs nobody to listen: a scheduler that comes later reads on from where the file is. The driver
//! keeps nothing in memory that a crash could lose; all it goes by is in the folder, and the lock there that an agent
//! holds as long as it lives.

mod agent;
mod devices;
mod files;
mod machine;
mod occupancy;
mod unfit;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use blueproof_core::{
    action::StartAction,
    attempt::{AttemptLayout, AttemptSpec, LogReader, Record, RecordKind},
    diagnostic::{Code, Diagnostic, Place},
    domain::{AttemptId, Gpus, Resources},
    event::StopMode,
    gpu::DeviceUuid,
    ports::{CallError, ClusterDriver, Inventory, Observation},
};

pub use agent::AgentCommand;
use agent::Liveness;
use devices::Claims;
pub use devices::{Devices, LookForDevices};
pub use occupancy::{Occupancy, Occupant};
use tokio::{process::Child, sync::OnceCell};
use unfit::unfit;

/// For how long it holds what was seen when accelerators were looked for.
const LOOK_HOLDS: Duration = Duration::from_secs(10);

/// How often an attempt's folder is looked at for news.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often it is looked for what is only milliseconds away: an agent's first word, and its end after its last.
const LOOK_CLOSELY: Duration = Duration::from_millis(2);

/// How long an agent has to end by itself before its attempt is released by force.
const RELEASE_GRACE: Duration = Duration::from_secs(20);

/// The driver that runs attempts as processes on this machine.
#[derive(Debug)]
pub struct LocalDriver {
    runs: PathBuf,
    environments: PathBuf,
    agent: AgentCommand,
    look: LookForDevices,
    devices: OnceCell<(Instant, Devices)>,
}

impl LocalDriver {
    /// Returns a driver that keeps attempts below the folder `runs` and Python environments in `environments`.
    /// Nothing is made before it is needed.
    pub fn new(runs: PathBuf, environments: PathBuf, agent: AgentCommand) -> Self {
        Self {
            runs,
            environments,
            agent,
            look: LookForDevices::default(),
            devices: OnceCell::new(),
        }
    }

    /// Has it look for accelerators when they are first asked for, give them to attempts, and look again before that
    /// whether they are fit.
    pub fn with_devices(mut self, look: LookForDevices) -> Self {
        self.look = look;
        self
    }

    /// Returns where an attempt's files are.
    pub fn layout(&self, attempt: AttemptId) -> AttemptLayout {
        AttemptLayout::of(attempt, &self.runs)
    }

    async fn first_look(&self) -> &(Instant, Devices) {
        let look = || async { (Instant::now(), self.look_now().await) };
        self.devices.get_or_init(look).await
    }

    async fn look_now(&self) -> Devices {
        let look = self.look.clone();
        let looked = tokio::task::spawn_blocking(move || (look.0)()).await;
        looked.expect("looking does not panic")
    }

    /// Returns the devices that attempts may be given.
    async fn units(&self) -> Option<&[DeviceUuid]> {
        self.first_look().await.1.units.as_deref()
    }

    /// Gives an attempt what it was promised, of what is fit now.
    async fn give(
        &self,
        attempt: AttemptId,
        units: &[DeviceUuid],
        promised: Gpus,
    ) -> Result<Vec<DeviceUuid>, CallError> {
        let (looked_at, first) = self.first_look().await;
        let seen = if looked_at.elapsed() < LOOK_HOLDS {
            first.clone()
        } else {
            self.look_now().await
        };
        let claims = Claims::below(&self.runs);
        claims.give(attempt, units, &unfit(units, &seen, &claims)?, promised)
    }

    /// Returns which devices an attempt may use, as they were given to it when its place was made.
    async fn devices_of(&self, attempt: AttemptId) -> Result<Option<Vec<DeviceUuid>>, CallError> {
        let units = self.units().await;
        units
            .map(|units| Claims::below(&self.runs).of(attempt, units))
            .transpose()
    }

    fn spec(&self, start: &StartAction, devices: Option<Vec<DeviceUuid>>) -> AttemptSpec {
        let (subject, job) = (&start.request.subject, start.job());
        AttemptSpec {
            attempt: start.attempt,
            project: subject.project.clone(),
            change: subject.change,
            blueprint: subject.blueprint.clone(),
            profile: subject.profile.clone(),
            checkout: job.checkout.clone(),
            head: start.head.head().clone(),
            environments: self.environments.clone(),
            granted: job.driver,
            devices,
            timeouts: job.timeouts.clone(),
            work: job.work.clone(),
        }
    }

    /// Has an agent begin in the folder, and returns once it has said so. An agent that finds the attempt already
    /// begun does not run it again; it only ends what is left of it.
    async fn begin(&self, layout: &AttemptLayout) -> Result<Child, CallError> {
        let mut child = self
            .agent
            .spawn(layout)
            .map_err(|error| self.agent.cannot_start(&error))?;
        let mut log = Log::new(layout);
        loop {
            // In this order: an agent that has ended has written everything that it will.
            let ended = child
                .try_wait()
                .map_err(|error| self.agent.cannot_start(&error))?;
            if !log.news().await?.is_empty() {
                return Ok(child);
            }
            if let Some(status) = ended {
                return Err(self.agent.said_nothing(layout, status));
            }
            tokio::time::sleep(LOOK_CLOSELY).await;
        }
    }
}

#[async_trait]
impl ClusterDriver for LocalDriver {
    async fn inventory(&self) -> Result<Inventory, CallError> {
        let (_, seen) = self.first_look().await;
        let units = seen.units.as_deref().unwrap_or_default();
        let unfit = unfit(units, seen, &Claims::below(&self.runs))?;
        machine::inventory(seen, unfit.into_values().collect())
    }

    async fn reserve(&self, attempt: AttemptId, resources: Resources) -> Result<String, CallError> {
        let layout = self.layout(attempt);
        files::tag(&self.runs).map_err(|error| cannot("make the folder of runs", &self.runs, &error))?;
        files::make(layout.root())
            .map_err(|error| cannot("make the attempt's folder", layout.root(), &error))?;
        let mut place = format!(
            "process on this machine · threads capped at {}",
            resources.cpu.threads()
        );
        if resources.gpu > Gpus(0)
            && let Some(units) = self.units().await
        {
            let given = self.give(attempt, units, resources.gpu).await?;
            given
                .iter()
                .for_each(|unit| place.push_str(&format!(" · {unit}")));
        }
        Ok(place)
    }

    async fn start(&self, start: &StartAction) -> Result<(), CallError> {
        let layout = self.layout(start.attempt);
        if !Log::new(&layout).news().await?.is_empty() {
            return Ok(());
        }
        let devices = self.devices_of(start.attempt).await?;
        let spec = serde_json::to_vec_pretty(&self.spec(start, devices)).expect("a spec is plain data");
        files::write_whole(&layout.spec(), &spec).map_err(|error| cannot("write", &layout.spec(), &error))?;
        self.begin(&layout).await.map(drop)
    }

    async fn observe(
        &self,
        attempt: AttemptId,
        known: Option<&Observation>,
    ) -> Result<Observation, CallError> {
        let layout = self.layout(attempt);
        let mut log = Log::new(&layout);
        let mut successor: Option<Child> = None;
        loop {
            // In this order: an agent that is gone has written everything that it will.
            let ended = match &mut successor {
                Some(child) => child
                    .try_wait()
                    .map_err(|error| self.agent.cannot_start(&error))?,
                None => None,
            };
            let liveness =
                agent::liveness(&layout).map_err(|error| cannot("look at", &layout.lock(), &error))?;
            let observed = log.news().await?.into_iter().filter_map(observation).next_back();
            match (observed, ended) {
                (Some(observed), _) if known != Some(&observed) => return Ok(observed),
                (_, Some(status)) => return Ok(Observation::Finished(agent::lost(&layout, status))),
                _ if liveness == Liveness::Gone && successor.is_none() => {
                    successor = Some(self.begin(&layout).await?);
                }
                _ => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }

    async fn stop(&self, attempt: AttemptId, how: StopMode) -> Result<(), CallError> {
        let layout = self.layout(attempt);
        let signal = match how {
            StopMode::Interrupt => rustix::process::Signal::INT,
            StopMode::End => rustix::process::Signal::TERM,
        };
        signal_agent(&layout, signal).await
    }

    async fn release(&self, attempt: AttemptId) -> Result<(), CallError> {
        let layout = self.layout(attempt);
        if !layout.root().exists() {
            return Ok(());
        }
        let records = Log::new(&layout).news().await?;
        if !records.is_empty() && !is_finished(&records) {
            signal_agent(&layout, rustix::process::Signal::TERM).await?;
        }
        if tokio::time::timeout(RELEASE_GRACE, until_gone(&layout))
            .await
            .is_err()
        {
            signal_agent(&layout, rustix::process::Signal::KILL).await?;
            until_gone(&layout).await?;
        }
        let records = Log::new(&layout).news().await?;
        if !records.is_empty() && !is_finished(&records) {
            let mut successor = self.begin(&layout).await?;
            successor
                .wait()
                .await
                .map_err(|error| self.agent.cannot_start(&error))?;
        }
        files::remove(&layout.work()).map_err(|error| cannot("remove", &layout.work(), &error))?;
        let Some(units) = self.units().await else {
            return Ok(());
        };
        let claims = Claims::below(&self.runs);
        if !claims.of(attempt, units)?.is_empty() {
            set_aside(&claims, attempt, &Log::new(&layout).news().await?)?;
        }
        claims.take_back(attempt, units)
    }
}

/// An attempt's log, read on from where it was read to.
struct Log {
    reader: LogReader,
    path: PathBuf,
    offset: u64,
}

impl Log {
    fn new(layout: &AttemptLayout) -> Self {
        let path = layout.log();
        Self {
            reader: LogReader::open(&path),
            path,
            offset: 0,
        }
    }

    async fn news(&mut self) -> Result<Vec<Record>, CallError> {
        let (reader, offset) = (self.reader.clone(), self.offset);
        let read = tokio::task::spawn_blocking(move || reader.read_from(offset)).await;
        let read = read.expect("reading a file does not panic");
        let (records, offset) = read.map_err(|error| cannot("read", &self.path, &error))?;
        self.offset = offset;
        Ok(records)
    }
}

fn observation(record: Record) -> Option<Observation> {
    match record.kind {
        RecordKind::KernelReady { .. } => Some(Observation::Running),
        RecordKind::Finished { outcome } => Some(Observation::Finished(outcome)),
        RecordKind::Begun { .. }
        | RecordKind::StageBegun { .. }
        | RecordKind::StageProgress { .. }
        | RecordKind::StageEnded { .. }
        | RecordKind::CellBegun { .. }
        | RecordKind::Text { .. }
        | RecordKind::Display { .. }
        | RecordKind::Truncated { .. }
        | RecordKind::Metric { .. }
        | RecordKind::CellEnded { .. }
        | RecordKind::CellUsed { .. }
        | RecordKind::DevicesUnfit { .. }
        | RecordKind::Noticed { .. } => None,
    }
}

/// Keeps from others what failed under an attempt.
fn set_aside(claims: &Claims<'_>, attempt: AttemptId, records: &[Record]) -> Result<(), CallError> {
    for record in records {
        if let RecordKind::DevicesUnfit { devices } = &record.kind {
            for (unit, why) in devices {
                claims.set_aside(attempt, unit, record.at, why)?;
            }
        }
    }
    Ok(())
}

/// Returns whether an agent has written down how its attempt ended.
fn is_finished(records: &[Record]) -> bool {
    records
        .iter()
        .any(|record| matches!(record.kind, RecordKind::Finished { .. }))
}

async fn until_gone(layout: &AttemptLayout) -> Result<(), CallError> {
    while agent::liveness(layout).map_err(|error| cannot("look at", &layout.lock(), &error))?
        == Liveness::Alive
    {
        tokio::time::sleep(LOOK_CLOSELY).await;
    }
    Ok(())
}

fn agent_pid(record: &Record) -> Option<u32> {
    if let RecordKind::Begun { pid, .. } = &record.kind {
        Some(*pid)
    } else {
        None
    }
}

/// Sends a signal to the folder's agent; one that is gone needs none.
async fn signal_agent(layout: &AttemptLayout, signal: rustix::process::Signal) -> Result<(), CallError> {
    let begun = Log::new(layout).news().await?.iter().rev().find_map(agent_pid);
    let Some(pid) = begun else { return Ok(()) };
    agent::signal(layout, pid, signal).map_err(|error| cannot("signal the agent of", layout.root(), &error))
}

fn cannot(doing: &str, path: &Path, error: &dyn std::error::Error) -> CallError {
    let diagnostic = Diagnostic::error(
        Code::AttemptFolder,
        format!("could not {doing} an attempt's files"),
    )
    .at(Place::file(path.display().to_string()))
    .caused_by(error)
    .hint("see that the disk is not full and that the folder is yours");
    CallError::later(diagnostic)
}
