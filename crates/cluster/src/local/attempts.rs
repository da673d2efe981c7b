//! What is done with attempts on this machine, one call at a time: each waits for what it does.

use std::{
    path::PathBuf,
    process::ExitStatus,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use blueproof_core::{
    action::StartAction,
    attempt::{
        AttemptLayout, AttemptSpec, Errand, Orders, Presence, ProcessName, Record, RecordKind, RunsFolder,
        SandboxMode, read_regular,
    },
    domain::{AttemptId, Gpus, Inventory, Isolation, LOCAL_CLUSTER, Outcome, Placement, Resources},
    event::StopMode,
    gpu::DeviceUuid,
    ports::CallError,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};

use jiff::Timestamp;
use rustix::process::Signal;
use tokio::{
    process::Child,
    sync::{OnceCell, oneshot},
};

use super::{
    AgentCommand, Devices, Holder, LookForDevices,
    agent::{self, Agent, is_locked},
    devices::Claims,
    files::{self, cannot},
    isolation::{IsolationPolicy, IsolationRules, TryIsolation},
    log::{Log, is_finished},
    machine,
    output::LocalOutput,
    unhealthy::unhealthy,
};

/// For how long it holds what was seen when accelerators were looked for.
const LOOK_HOLDS: Duration = Duration::from_secs(10);

/// How often it is looked whether an attempt's agent is still there where nothing was written to its log.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often it is looked for what is only milliseconds away: an agent's first word, and its end after its last.
pub(super) const LOOK_CLOSELY: Duration = Duration::from_millis(2);

/// How often it is looked for news where something else than the agent has written: all is read again each time.
const LOOK_AT_DISTURBED: Duration = Duration::from_secs(1);

/// How long an agent has to end by itself before its attempt is released by force.
const RELEASE_GRACE: Duration = Duration::from_secs(20);

/// The attempts in a folder of this machine.
#[derive(Debug)]
pub(super) struct Attempts {
    runs: RunsFolder,
    output: Arc<LocalOutput>,
    environments: PathBuf,
    pub(super) agent: AgentCommand,
    release_grace: Duration,
    look: LookForDevices,
    devices: OnceCell<(Instant, Devices)>,
    isolation: IsolationRules,
    isolates: OnceCell<Isolation>,
    /// What was seen when it was looked last, if it was looked again.
    seen: Mutex<Option<Devices>>,
}

impl Attempts {
    pub(super) fn new(runs: RunsFolder, environments: PathBuf, agent: AgentCommand) -> Self {
        Self {
            output: Arc::new(LocalOutput::new(runs.clone())),
            runs,
            environments,
            agent,
            release_grace: RELEASE_GRACE,
            look: LookForDevices::default(),
            devices: OnceCell::new(),
            isolation: IsolationRules::default(),
            isolates: OnceCell::new(),
            seen: Mutex::default(),
        }
    }

    pub(super) fn set_devices(&mut self, look: LookForDevices) {
        self.look = look;
    }

    pub(super) fn set_isolation(&mut self, policy: IsolationPolicy, attempt: TryIsolation) {
        self.isolation = IsolationRules { policy, attempt };
    }

    pub(super) fn set_release_grace(&mut self, grace: Duration) {
        self.release_grace = grace;
    }

    /// Returns what the attempts leave.
    pub(super) fn output(&self) -> Arc<LocalOutput> {
        Arc::clone(&self.output)
    }

    /// Returns where an attempt's files are.
    pub(super) fn layout(&self, attempt: AttemptId) -> AttemptLayout {
        self.runs.attempt(attempt)
    }

    async fn first_look(&self) -> &(Instant, Devices) {
        let look = || async { (Instant::now(), self.look_now().await) };
        self.devices.get_or_init(look).await
    }

    /// Returns whether this machine isolates, as it was when that was first asked.
    async fn isolates(&self) -> &Isolation {
        let look = || async {
            let rules = self.isolation.clone();
            let (say, looked) = oneshot::channel();
            let thread = thread::Builder::new().spawn(move || say.send(rules.look()));
            match thread {
                Ok(_) => looked.await.expect("looking does not panic"),
                Err(_) => self.isolation.look(),
            }
        };
        self.isolates.get_or_init(look).await
    }

    /// Refuses what must run in a sandbox where none can be made, whatever the gate was told.
    async fn check_isolation(&self, spec: &AttemptSpec) -> Result<(), CallError> {
        match spec.sandbox {
            SandboxMode::Off | SandboxMode::Requested => Ok(()),
            SandboxMode::Required => match self.isolates().await {
                Isolation::Sandboxed | Isolation::Disposable => Ok(()),
                Isolation::Missing { diagnostic } => Err(CallError::never((**diagnostic).clone())),
                Isolation::Unknown => unreachable!("this driver says whether it isolates"),
            },
        }
    }

    async fn look_now(&self) -> Devices {
        let look = self.look.clone();
        let (say, looked) = oneshot::channel();
        let thread = thread::Builder::new().spawn(move || say.send((look.0)()));
        match thread {
            Ok(_) => looked.await.expect("looking does not panic"),
            // To wait where others wait, too, is better than not to look.
            Err(_) => (self.look.0)(),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Option<Devices>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
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
        *self.seen() = Some(seen.clone());
        let claims = self.claims();
        claims.give(
            &self.holder(attempt),
            units,
            &unhealthy(units, &seen, &claims)?,
            promised,
        )
    }

    /// Returns which devices an attempt may use, as they were given to it when its place was made.
    async fn devices_of(&self, attempt: AttemptId) -> Result<Option<Vec<DeviceUuid>>, CallError> {
        let units = self.units().await;
        units
            .map(|units| self.claims().of(&self.holder(attempt), units))
            .transpose()
    }

    fn spec(&self, start: &StartAction, devices: Option<Vec<DeviceUuid>>) -> AttemptSpec {
        let (subject, job) = (&start.request.subject, start.job());
        AttemptSpec {
            store: self.runs.store().id.clone(),
            attempt: start.attempt,
            request: start.request.key.clone(),
            repository: subject.repository.clone(),
            pull_request: subject.pull_request,
            blueprint: subject.blueprint.clone(),
            profile: subject.profile.clone(),
            source: job.source.clone(),
            head: start.head.head().clone(),
            environments: self.environments.clone(),
            granted: job.driver(),
            further: job.further(),
            devices,
            sandbox: self.isolation.sandbox_for(subject),
            timeouts: job.timeouts.clone(),
            work: job.work.clone(),
        }
    }

    fn claims(&self) -> Claims<'_> {
        Claims::below(self.runs.root())
    }

    fn holder(&self, attempt: AttemptId) -> Holder {
        Holder {
            folder: self.runs.store().folder.clone(),
            attempt,
        }
    }

    pub(super) fn log(&self, attempt: AttemptId) -> Log {
        Log::of(attempt, self.output.clone())
    }

    pub(super) async fn agent_for(&self, attempt: AttemptId, errand: Errand) -> Result<Child, CallError> {
        let orders = Orders {
            key: self.runs.log_key(attempt),
            errand,
            work: self.runs.work(attempt),
        };
        let spawned = self.agent.spawn(&self.layout(attempt), &orders).await;
        spawned.map_err(|error| self.agent.cannot_start(&error))
    }

    /// Has an agent begin in the folder, and returns once it has said so.
    async fn begin(&self, attempt: AttemptId) -> Result<(), CallError> {
        let mut child = self.agent_for(attempt, Errand::CarryOut).await?;
        let mut log = self.log(attempt);
        loop {
            // In this order: an agent that has ended has written everything that it will.
            let ended = self.has_ended(&mut child)?;
            if !log.news().await?.records.is_empty() {
                return Ok(());
            }
            if let Some(status) = ended {
                return Err(self.agent.said_nothing(&self.layout(attempt), status));
            }
            tokio::time::sleep(LOOK_CLOSELY).await;
        }
    }

    pub(super) fn has_ended(&self, child: &mut Child) -> Result<Option<ExitStatus>, CallError> {
        child.try_wait().map_err(|error| self.agent.cannot_start(&error))
    }

    /// Returns whether the attempt's folder holds this very attempt.
    fn is_in_place(&self, spec: &AttemptSpec) -> bool {
        let kept = read_regular(&self.layout(spec.attempt).spec(), AttemptSpec::LONGEST);
        let kept = kept
            .ok()
            .and_then(|kept| serde_json::from_slice::<AttemptSpec>(&kept).ok());
        kept.is_some_and(|kept| kept.is_same_attempt(spec))
    }

    /// Makes room where something else lies in the attempt's place: a store that was put back as it was before counts on from
    /// a number that was used already. Nothing of it is taken over or removed.
    fn move_others_aside(&self, attempt: AttemptId) -> Result<(), CallError> {
        let layout = self.layout(attempt);
        let is_locked = is_locked(&layout).map_err(|error| cannot("look at", &layout.lock(), &error))?;
        if is_locked || self.find_agent(&layout, None)? != Agent::Gone {
            return Err(CallError::never(taken(&layout)));
        }
        let aside = files::move_aside(layout.root());
        aside
            .and_then(|()| files::make(layout.root()))
            .map_err(|error| cannot("move aside", layout.root(), &error))
    }
}

impl Attempts {
    /// Returns what this machine has.
    pub(super) async fn inventory(&self) -> Result<Inventory, CallError> {
        let (_, first) = self.first_look().await;
        let seen = self.seen().clone().unwrap_or_else(|| first.clone());
        let units = first.units.as_deref().unwrap_or_default();
        let unhealthy = unhealthy(units, &seen, &self.claims())?;
        machine::inventory(first, unhealthy, self.isolates().await.clone())
    }

    /// Makes a place for an attempt: its folder, and the devices that it gets.
    pub(super) async fn reserve(
        &self,
        attempt: AttemptId,
        resources: Resources,
    ) -> Result<Placement, CallError> {
        let layout = self.layout(attempt);
        let root = self.runs.root();
        files::tag(root).map_err(|error| cannot("make the folder of runs", root, &error))?;
        files::make(layout.root())
            .map_err(|error| cannot("make the attempt's folder", layout.root(), &error))?;
        // Its owner's alone, whoever makes the folders in it.
        let work = self.runs.work(attempt);
        let works = work.parent().unwrap_or(root);
        files::make(works).map_err(|error| cannot("make the folder of working copies", works, &error))?;
        let mut place = Placement::on(LOCAL_CLUSTER);
        if resources.gpu > Gpus(0)
            && let Some(units) = self.units().await
        {
            place.devices = self.give(attempt, units, resources.gpu).await?;
        }
        Ok(place)
    }

    /// Starts an attempt in its place, and returns once its agent has said that it has begun.
    pub(super) async fn start(&self, start: &StartAction) -> Result<(), CallError> {
        let layout = self.layout(start.attempt);
        let spec = self.spec(start, self.devices_of(start.attempt).await?);
        self.check_isolation(&spec).await?;
        if self.is_in_place(&spec) {
            if !self.log(start.attempt).news().await?.records.is_empty() {
                return Ok(());
            }
        } else if !files::is_empty(layout.root()) {
            self.move_others_aside(start.attempt)?;
            // What an attempt worked in is no part of what is kept of it.
            files::remove_work(&layout, &self.runs.work(start.attempt));
        }
        let spec = serde_json::to_vec_pretty(&spec).expect("a spec is plain data");
        files::write_whole(&layout.spec(), &spec).map_err(|error| cannot("write", &layout.spec(), &error))?;
        self.begin(start.attempt).await
    }

    /// Waits until there is something else to tell of a started attempt than what is known.
    pub(super) async fn observe(
        &self,
        attempt: AttemptId,
        known: Option<&Observation>,
    ) -> Result<Observation, CallError> {
        let layout = self.layout(attempt);
        let mut log = self.log(attempt);
        let mut successor: Option<Child> = None;
        let mut is_gone = false;
        loop {
            // In this order: an agent that is gone has written everything that it will. It is looked for only where its log says
            // nothing new, as one that has ended is looked for among all processes.
            let ended = match &mut successor {
                Some(child) => self.has_ended(child)?,
                None => None,
            };
            let news = log.news().await?;
            let observed = news.records.into_iter().filter_map(observation).next_back();
            match (observed, ended) {
                (Some(observed), _) if known != Some(&observed) => return Ok(observed),
                (_, Some(status)) => {
                    let (outcome, ended_at) = (agent::lost(&layout, status), None);
                    return Ok(Observation::Finished { outcome, ended_at });
                }
                _ if is_gone && successor.is_none() => {
                    successor = Some(self.agent_for(attempt, Errand::Finish).await?);
                }
                _ => {
                    is_gone = successor.is_none() && self.find_agent(&layout, log.begun())? == Agent::Gone;
                    match (is_gone, news.is_disturbed) {
                        (true, _) => {}
                        (false, true) => tokio::time::sleep(LOOK_AT_DISTURBED).await,
                        (false, false) => log.changed(LOOK_EVERY).await,
                    }
                }
            }
        }
    }

    /// Asks an attempt to end.
    pub(super) async fn stop(&self, attempt: AttemptId, how: StopMode) -> Result<(), CallError> {
        let signal = match how {
            StopMode::Interrupt => Signal::INT,
            StopMode::Terminate => Signal::TERM,
        };
        let mut log = self.log(attempt);
        log.news().await?;
        self.signal_agent(&self.layout(attempt), log.begun(), signal)
    }

    /// Removes whatever is left of an attempt, and returns when it is gone.
    pub(super) async fn release(&self, attempt: AttemptId) -> Result<(), CallError> {
        let layout = self.layout(attempt);
        if !layout.root().exists() {
            return Ok(());
        }
        let mut log = self.log(attempt);
        let is_finished_already = log.news().await?.is_finished();
        let begun = log.begun().cloned();
        if !is_finished_already {
            self.signal_agent(&layout, begun.as_ref(), Signal::TERM)?;
        }
        // One that has written down how the attempt ended, and is gone, has no successor.
        let is_gone = |begun: &ProcessName| begun.presence() == Presence::Gone;
        if !is_finished_already || !begun.as_ref().is_some_and(is_gone) {
            self.end_agent(&layout, begun.as_ref(), self.release_grace)
                .await?;
        }
        // An agent that was killed has ended nothing of what it started.
        self.end_cgroup(log.cgroup().cloned()).await?;
        let mut records = self.log(attempt).news().await?.records;
        if begun.is_some() && !is_finished(&records) {
            self.finish(attempt).await?;
            records = self.log(attempt).news().await?.records;
        }
        // Nothing of it runs any more.
        files::remove_work(&layout, &self.runs.work(attempt));
        let Some(units) = self.units().await else {
            return Ok(());
        };
        let (claims, holder) = (self.claims(), self.holder(attempt));
        if !claims.of(&holder, units)?.is_empty() {
            quarantine(&claims, attempt, &records)?;
        }
        claims.take_back(&holder, units)
    }
}

/// How a started attempt stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Observation {
    /// It runs.
    Running,
    /// It is over, and everything that it started is gone.
    Finished {
        outcome: Box<Outcome>,
        /// When, if it says so itself.
        ended_at: Option<Timestamp>,
    },
}

fn observation(record: Record) -> Option<Observation> {
    match record.kind {
        RecordKind::KernelReady { .. } => Some(Observation::Running),
        RecordKind::Finished { outcome } => Some(Observation::Finished {
            outcome,
            ended_at: Some(record.at),
        }),
        RecordKind::Begun { .. }
        | RecordKind::StageBegun { .. }
        | RecordKind::StageProgress { .. }
        | RecordKind::StageEnded { .. }
        | RecordKind::EnvironmentReady { .. }
        | RecordKind::CellBegun { .. }
        | RecordKind::Text { .. }
        | RecordKind::Display { .. }
        | RecordKind::Truncated { .. }
        | RecordKind::LeftOut { .. }
        | RecordKind::Metric { .. }
        | RecordKind::CellEnded { .. }
        | RecordKind::CellUsed { .. }
        | RecordKind::DevicesUnhealthy { .. }
        | RecordKind::MachineSeen { .. }
        | RecordKind::Noticed { .. }
        | RecordKind::ExpectationsChecked { .. }
        | RecordKind::FilesKept { .. } => None,
    }
}

/// Keeps from others what failed under an attempt.
fn quarantine(claims: &Claims<'_>, attempt: AttemptId, records: &[Record]) -> Result<(), CallError> {
    for record in records {
        if let RecordKind::DevicesUnhealthy { devices } = &record.kind {
            for (unit, why) in devices {
                claims.quarantine(attempt, unit, record.at, why)?;
            }
        }
    }
    Ok(())
}

fn taken(layout: &AttemptLayout) -> Diagnostic {
    let message = "the attempt's folder belongs to another attempt, of which something still runs";
    Diagnostic::error(Code::AttemptFolderTaken, message)
        .at(SourceLocation::file(layout.root().display().to_string()))
        .hint("end what runs there, and retry the run: the folder is then moved aside")
}
