//! Carries out what a fleet comes to.
//!
//! All that has come is taken in at once, what changed is written down with one write to the disk, and then each call is made in a
//! task of its own, so many at a time. That is what makes four hundred jobs a matter of a few rounds of calls, and not of four
//! hundred. Nothing is decided here.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use blueproof_core::ports::{Clock, Runner, RunnerName, RunnerNews, RunnerProvider};
use blueproof_diagnostic::Code;
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::JoinSet,
};

use crate::{
    fleet::{
        CallOutcome, Fleet, FleetAction, FleetFigures, FleetInput, FleetSettings, RunnerCall, RunnerCallKind,
    },
    label::UniqueLabel,
    ledger::{Ledger, LedgerError},
    record::RunnerJob,
    registrar::{Deregistration, Registrar, RerunAnswer, Reruns},
};

/// How many inputs may wait to be taken in; who has more waits.
const INPUTS_AT_MOST: usize = 1024;
/// How many are taken in before what follows is written down.
const BATCH: usize = 512;
/// The pause before a ledger that does not work is tried again.
const LEDGER_PAUSE: Duration = Duration::from_secs(1);

/// What a controller works with.
#[derive(Clone)]
pub struct ControllerPorts {
    /// Where runners are registered.
    pub registrar: Arc<dyn Registrar>,
    /// Where they are started.
    pub provider: Arc<dyn RunnerProvider>,
    /// What has jobs run once more; without it that is left to people.
    pub reruns: Option<Arc<dyn Reruns>>,
    /// Where they are written down.
    pub ledger: Ledger,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// How many calls are made at a time, by all controllers that share it.
    pub calls: Arc<Semaphore>,
}

/// Makes the world equal to what one fleet comes to.
pub struct Controller {
    name: String,
    fleet: Fleet,
    ports: Ports,
    inputs: mpsc::Receiver<FleetInput>,
    to_itself: mpsc::UnboundedSender<FleetInput>,
    outcomes: mpsc::UnboundedReceiver<FleetInput>,
    capacity: watch::Sender<u32>,
    figures: watch::Sender<FleetFigures>,
    runners: watch::Sender<BTreeSet<RunnerName>>,
}

type Ports = Arc<ControllerPorts>;

/// What others see of a controller.
#[derive(Debug, Clone)]
pub struct ControllerHandle {
    /// Where it is told what happens.
    pub inputs: mpsc::Sender<FleetInput>,
    /// How many jobs GitHub may assign, now and at each change. It is zero until that is known.
    pub capacity: watch::Receiver<u32>,
    /// How its fleet stands, now and at each change.
    pub figures: watch::Receiver<FleetFigures>,
    /// The runners that have a machine, or may have one.
    pub runners: watch::Receiver<BTreeSet<RunnerName>>,
}

impl Controller {
    /// Returns a controller with what the ledger has of its fleet.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub async fn open(
        name: impl Into<String>,
        settings: FleetSettings,
        ports: ControllerPorts,
    ) -> Result<(Self, ControllerHandle), LedgerError> {
        let name = name.into();
        let records = ports.ledger.load(&name, ports.clock.now()).await?;
        let (sender, inputs) = mpsc::channel(INPUTS_AT_MOST);
        let (to_itself, outcomes) = mpsc::unbounded_channel();
        let (capacity, offered) = watch::channel(0);
        let (figures, told) = watch::channel(FleetFigures::default());
        let (runners, there) = watch::channel(BTreeSet::new());
        let handle = ControllerHandle {
            inputs: sender,
            capacity: offered,
            figures: told,
            runners: there,
        };
        let controller = Self {
            fleet: Fleet::new(settings, records),
            name,
            ports: Arc::new(ports),
            inputs,
            to_itself,
            outcomes,
            capacity,
            figures,
            runners,
        };
        Ok((controller, handle))
    }

    /// Works until `stop` is true or dropped. Runners go on by themselves; whoever comes next takes them up.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut news = self.ports.provider.news();
        let mut calls = JoinSet::new();
        // What an earlier process has left is looked at before anything is told.
        let mut batch = vec![FleetInput::Tick];
        loop {
            let actions = self.take_in(std::mem::take(&mut batch)).await;
            for action in actions {
                calls.spawn(carry_out(Arc::clone(&self.ports), action, self.to_itself.clone()));
            }
            while calls.try_join_next().is_some() {}
            let wakeup = self.fleet.next_wakeup();
            let clock = Arc::clone(&self.ports.clock);
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                Some(outcome) = self.outcomes.recv() => batch.push(outcome),
                Some(told) = news.recv() => batch.push(input_of(told)),
                Some(input) = self.inputs.recv() => batch.push(input),
                () = until(&*clock, wakeup) => batch.push(FleetInput::Tick),
            }
            while batch.len() < BATCH {
                let outcome = self.outcomes.try_recv().ok();
                let told = || news.try_recv().ok().map(input_of);
                let Some(input) = outcome.or_else(told).or_else(|| self.inputs.try_recv().ok()) else {
                    break;
                };
                batch.push(input);
            }
        }
    }

    /// Takes inputs in, writes down what changed, and returns what is to be done.
    async fn take_in(&mut self, batch: Vec<FleetInput>) -> Vec<FleetAction> {
        let now = self.ports.clock.now();
        let (mut changed, mut actions) = (Vec::new(), Vec::new());
        for input in batch {
            let step = self.fleet.handle(now, input);
            changed.extend(step.changed);
            actions.extend(step.actions);
        }
        // Before that nothing may be done: a runner that nobody wrote down is nobody's to remove.
        while let Err(error) = self.ports.ledger.write(&self.name, changed.clone()).await {
            tracing::error!(
                fleet = self.name,
                error = &error as &dyn std::error::Error,
                "no runner is started until this works"
            );
            tokio::time::sleep(LEDGER_PAUSE).await;
        }
        let capacity = self.fleet.capacity();
        self.capacity
            .send_if_modified(|known| std::mem::replace(known, capacity) != capacity);
        let figures = self.fleet.figures();
        self.figures
            .send_if_modified(|known| std::mem::replace(known, figures) != figures);
        let there = self.fleet.with_machine().cloned().collect();
        self.runners.send_if_modified(|known| {
            *known != there && {
                *known = there;
                true
            }
        });
        actions
    }
}

fn input_of(news: RunnerNews) -> FleetInput {
    FleetInput::News {
        runner: news.runner,
        state: news.state,
    }
}

async fn until(clock: &dyn Clock, at: Option<jiff::Timestamp>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn carry_out(ports: Ports, action: FleetAction, to: mpsc::UnboundedSender<FleetInput>) {
    let FleetAction { runner, call } = action;
    let outcome = {
        let _permit = ports.calls.acquire().await.expect("it is never closed");
        outcome(&ports, &runner, call).await
    };
    // Nobody to tell is nobody who works on it; whoever comes next asks again.
    let _ = to.send(FleetInput::Called { runner, outcome });
}

async fn outcome(ports: &ControllerPorts, runner: &RunnerName, call: RunnerCall) -> CallOutcome {
    match call {
        RunnerCall::Launch { label } => launch(ports, runner, label.as_ref()).await,
        RunnerCall::Observe => match ports.provider.observe(runner).await {
            Ok(()) => CallOutcome::Observed,
            Err(error) if error.diagnostic.code == Code::RunnerUnknown => CallOutcome::Unknown,
            Err(error) => failed(runner, RunnerCallKind::Observe, &error),
        },
        RunnerCall::Deregister { registration } => {
            match ports.registrar.deregister(runner, registration).await {
                Ok(Deregistration::Gone) => CallOutcome::Deregistered,
                Ok(Deregistration::JobStillRunning) => CallOutcome::JobStillRunning,
                Err(error) => failed(runner, RunnerCallKind::Deregister, &error),
            }
        }
        RunnerCall::Remove => match ports.provider.remove(runner).await {
            Ok(()) => CallOutcome::RemovalBegun,
            Err(error) => failed(runner, RunnerCallKind::Remove, &error),
        },
        RunnerCall::Rerun { job } => rerun(ports, runner, &job).await,
    }
}

/// Registers a runner and hands it over. What it is registered with is used here, once, and kept nowhere.
async fn launch(ports: &ControllerPorts, name: &RunnerName, label: Option<&UniqueLabel>) -> CallOutcome {
    let registered = match ports.registrar.register(name, label).await {
        Ok(registered) => registered,
        Err(error) => return not_launched(name, None, &error),
    };
    let registration = registered.registration;
    let runner = Runner {
        name: name.clone(),
        config: registered.config,
    };
    match ports.provider.start(&runner).await {
        Ok(()) => CallOutcome::Launched { registration },
        Err(error) => not_launched(name, Some(registration), &error),
    }
}

fn not_launched(
    runner: &RunnerName,
    registration: Option<i64>,
    error: &(dyn std::error::Error + 'static),
) -> CallOutcome {
    tracing::warn!(%runner, error, "a runner was not started; another takes its place");
    CallOutcome::NotLaunched {
        registration,
        message: chain(error),
    }
}

async fn rerun(ports: &ControllerPorts, runner: &RunnerName, job: &RunnerJob) -> CallOutcome {
    let Some(reruns) = &ports.reruns else {
        return CallOutcome::RerunDeclined;
    };
    match reruns.rerun(runner, job).await {
        Ok(RerunAnswer::Requested) => {
            tracing::warn!(%runner, repository = job.repository, workflow_run = job.workflow_run, job = job.name,
                "infrastructure: the runner of a job was lost, and the job is run once more");
            CallOutcome::RerunRequested
        }
        Ok(RerunAnswer::TooEarly) => CallOutcome::RerunTooEarly,
        Ok(RerunAnswer::Declined) => CallOutcome::RerunDeclined,
        Err(error) => failed(runner, RunnerCallKind::Rerun, &error),
    }
}

fn failed(
    runner: &RunnerName,
    call: RunnerCallKind,
    error: &(dyn std::error::Error + 'static),
) -> CallOutcome {
    tracing::warn!(%runner, ?call, error, "a call about a runner failed, and is made again");
    CallOutcome::Failed { call }
}

/// Returns an error with its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
