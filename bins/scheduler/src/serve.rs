//! `blueproof-scheduler serve`: the scheduler and its API, until it is told to stop.

use std::{
    ffi::OsStr,
    fs::Metadata,
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use blueproof_core::{
    domain::{Bytes, Cpus},
    policy::LocalApproval,
    sqlite::SqliteStore,
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_host::{
    Pruned, RetentionError, Service, ServiceStatus,
    api::{Address, Api, Listening},
};
use blueproof_machine::{LocalPolicy, Machine, MachineConfig};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{Notify, watch},
    task::{JoinError, JoinSet},
};
use tracing_subscriber::{EnvFilter, filter::LevelFilter, fmt};

use crate::{
    cli::{self, Isolation, LogFormat, Serve},
    github::GitHub,
    places,
    runners::Runners,
};

pub(crate) fn serve(arguments: &Serve) -> Result<(), Diagnostic> {
    log(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Diagnostic::error(Code::NotServing, "no thread can be made").because(error.to_string())
    })?;
    let served = runtime.block_on(run(arguments));
    // A read of a disk that hangs keeps nobody here.
    runtime.shutdown_background();
    served
}

fn log(arguments: &Serve) -> Result<(), Diagnostic> {
    let filter = filter(&arguments.log)?;
    let lines = fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(false)
        // What cannot be logged, as on a full disk, is not logged: to say so would end whoever says it.
        .log_internal_errors(false);
    match arguments.log_format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    Ok(())
}

/// A word that is no level would be taken for a target of which everything is logged, and of all others nothing.
fn filter(text: &str) -> Result<EnvFilter, Diagnostic> {
    let refused = |why: String| {
        let message = format!("`{text}` is no filter of what is logged");
        let refused = Diagnostic::error(Code::Usage, message).because(why);
        refused.hint("name a level (error, warn, info, debug, trace, off), or levels of targets: `info,blueproof_core=debug`")
    };
    let mut words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    if let Some(word) = words.find(|word| !word.contains('=') && !word.contains('[') && !is_level(word)) {
        return Err(refused(format!("`{word}` is no level")));
    }
    EnvFilter::try_new(text).map_err(|error| refused(error.to_string()))
}

async fn run(arguments: &Serve) -> Result<(), Diagnostic> {
    let config = config(arguments)?;
    let github = arguments.github.as_deref().map(GitHub::read).transpose()?;
    let runners = Runners::read(&arguments.runners, arguments.runner_hook.clone())?;
    let stops = until_told_to_stop()?;
    if github.is_some() {
        warn_of_no_sandbox(arguments);
    }
    let additions = github.as_ref().map(GitHub::additions).unwrap_or_default();
    let note = |text: &str| tracing::info!("{text}");
    let machine = Machine::open_with(&config, note, additions).await?;
    for warning in &machine.warnings {
        tracing::warn!(code = %warning.code, "{}", warning.message);
    }
    tracing::info!(store = %config.store.display(), machine = machine.description, "opened");
    warn_of_no_approver(&config);
    // The engine logs inputs that are quarantined when it happens.
    let retention = arguments.limits.retention();
    let service = Service::new(machine.host).retaining(retention, machine.output.clone(), tell_pruned);
    let service = Arc::new(service);
    let tokens = arguments.tokens.tokens()?;
    let api = Api::new(
        machine.store.clone(),
        machine.store.clone(),
        machine.output,
        service.clone(),
        tokens,
        env!("CARGO_PKG_VERSION"),
    );
    let api = runners
        .iter()
        .fold(api, |api, runners| api.with_metrics(runners.metrics()));
    let listening = listen(&arguments.addresses(&config)).await?;
    let (webhooks, hook) = listen_to_github(github.as_ref(), runners.as_ref()).await?;
    tokio::spawn(tell_standing(service.standing()));
    let mut working = {
        let service = service.clone();
        tokio::spawn(async move { service.run().await })
    };
    until_known_who_leads(&service, &stops).await;
    let mut serving = answer(api, listening, &stops);
    let (leads, jobs) = (leading(&service), Arc::new(Notify::new()));
    if let Some(github) = github {
        let github = github.telling_of(Arc::clone(&jobs));
        follow(github, webhooks, &machine.store, &leads, &mut serving, &stops);
    }
    if let Some(runners) = runners {
        let of = (&service, config.store.as_path());
        runners.start(hook, of, jobs, leads, stops.clone(), &mut serving)?;
    }
    tokio::select! {
        () = told(stops) => {}
        ended = &mut working => return Err(ended_by_itself(ended)),
    }
    tracing::info!("told to stop: what runs goes on by itself");
    // Those who ask are answered first, with a store that is still led.
    while serving.join_next().await.is_some() {}
    service.stop();
    let _ = working.await;
    Ok(())
}

fn warn_of_no_sandbox(arguments: &Serve) {
    if matches!(arguments.machine.isolation, Isolation::Disposable) {
        tracing::warn!(
            "approved notebooks of pull requests run as this user, without a sandbox: --isolation disposable"
        );
    }
}

/// What is asked for before is known who leads could be decided by another process.
async fn until_known_who_leads(service: &Service, stops: &watch::Receiver<bool>) {
    let mut standing = service.standing();
    tokio::select! {
        _ = standing.wait_for(|standing| *standing != ServiceStatus::Starting) => {}
        () = told(stops.clone()) => {}
    }
}

/// Listens at each address. Nobody is answered yet.
async fn listen(addresses: &[Address]) -> Result<Vec<Listening>, Diagnostic> {
    let mut all = Vec::new();
    for address in addresses {
        let listening = address.listen().await?;
        tracing::info!(address = %listening.address(), "listening");
        all.push(listening);
    }
    Ok(all)
}

/// Listens where GitHub sends its webhooks, and where its runners ask. Nobody is answered yet.
async fn listen_to_github(
    github: Option<&GitHub>,
    runners: Option<&Runners>,
) -> Result<(Option<Listening>, Option<Listening>), Diagnostic> {
    let webhooks = match github {
        Some(github) => github.listen().await?,
        None => None,
    };
    let hook = match runners {
        Some(runners) => runners.listen().await?,
        None => None,
    };
    Ok((webhooks, hook))
}

/// Answers those who ask until it is told to stop.
fn answer(api: Api, listening: Vec<Listening>, stops: &watch::Receiver<bool>) -> JoinSet<()> {
    let (app, _) = api.router();
    let mut serving = JoinSet::new();
    for at in listening {
        serving.spawn(at.serve(app.clone(), told(stops.clone())));
    }
    serving
}

/// Follows GitHub while this process leads, and takes what it sends.
fn follow(
    github: GitHub,
    webhooks: Option<Listening>,
    store: &Arc<SqliteStore>,
    leads: &watch::Receiver<bool>,
    serving: &mut JoinSet<()>,
    stops: &watch::Receiver<bool>,
) {
    if let Some((listening, receiver)) = webhooks.zip(github.receiver(store)) {
        serving.spawn(listening.serve(receiver.router(), told(stops.clone())));
    }
    tokio::spawn(github.service(store).run(leads.clone()));
}

/// Returns whether this process leads, now and at each change.
fn leading(service: &Service) -> watch::Receiver<bool> {
    let (leads, leading) = watch::channel(false);
    let mut standing = service.standing();
    tokio::spawn(async move {
        loop {
            leads.send_replace(*standing.borrow_and_update() == ServiceStatus::Leading);
            if standing.changed().await.is_err() {
                return;
            }
        }
    });
    leading
}

impl Serve {
    fn addresses(&self, config: &MachineConfig) -> Vec<Address> {
        match self.listen.as_slice() {
            [] => vec![Address::Unix(places::socket(&config.store))],
            named => named.to_vec(),
        }
    }
}

fn config(arguments: &Serve) -> Result<MachineConfig, Diagnostic> {
    let machine = &arguments.machine;
    let takes_tokens = arguments
        .listen
        .iter()
        .any(|address| matches!(address, Address::Tcp(_)));
    // Where nobody says, a store that was led by another rule keeps it: nothing that waits is released by a restart.
    let self_approve = machine.self_approve.or(takes_tokens.then_some(false));
    let agent = machine.agent.clone().map_or_else(places::agent, Into::into);
    check_agent(&agent)?;
    check_promised(machine)?;
    let store = arguments.store.clone().map_or_else(places::store, Ok)?;
    let environments = machine.environments.clone();
    let environments = environments.map_or_else(places::environments, Ok)?;
    Ok(MachineConfig {
        store: absolute(&store)?,
        environments: absolute(&environments)?,
        agent,
        policy: LocalPolicy {
            cpu: machine.cpu,
            memory: machine.memory,
            self_approve: self_approve.map(|own| match own {
                true => LocalApproval::Own,
                false => LocalApproval::Required,
            }),
            approvers: Some(machine.approvers.clone()),
        },
        isolation: machine.isolation.into(),
    })
}

/// Returns a path that means the same in whichever folder a program is started: those of attempts have folders of their own.
fn absolute(path: &Path) -> Result<PathBuf, Diagnostic> {
    std::path::absolute(path).map_err(|error| {
        let message = format!("`{}` cannot be told in full", path.display());
        let refused = Diagnostic::error(Code::Usage, message).caused_by(&error);
        refused.hint("start it in a folder that is there, or write the whole path")
    })
}

/// Says why a scheduler ends that nobody told to: whoever starts services has to start it again.
fn ended_by_itself(ended: Result<(), JoinError>) -> Diagnostic {
    let message = "what decides has ended by itself: this is a mistake in blueproof";
    let diagnostic = Diagnostic::error(Code::DecidingFailed, message);
    let diagnostic = match ended {
        Ok(()) => diagnostic,
        Err(error) => diagnostic.because(error.to_string()),
    };
    diagnostic
        .hint("start it again: attempts that run go on, and are taken over")
        .hint("please report it, with `blueproof get events -o jsonl`")
}

/// Warns where each run needs an approval and nobody is named who may give one.
fn warn_of_no_approver(config: &MachineConfig) {
    let LocalPolicy {
        self_approve,
        approvers,
        ..
    } = &config.policy;
    let nobody = approvers.as_ref().is_none_or(Vec::is_empty);
    if *self_approve == Some(LocalApproval::Required) && nobody {
        tracing::warn!(
            "each run needs an approval, and no approver is named: name the users or tokens that may approve with --approver"
        );
    }
}

/// Refuses a path at which no program is: each run would fail.
fn check_agent(agent: &OsStr) -> Result<(), Diagnostic> {
    let path = Path::new(agent);
    // A name alone is looked up in PATH each time that it is started.
    let is_name = path.components().count() == 1;
    let is_program = |found: Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
    if is_name || path.metadata().is_ok_and(is_program) {
        return Ok(());
    }
    let message = format!(
        "there is no program `{}`, which is to carry out attempts",
        path.display()
    );
    let refused = Diagnostic::error(Code::Usage, message);
    Err(refused.hint("name the `blueproof` program with --agent, or put it beside this one"))
}

/// Refuses what no run fits into.
fn check_promised(machine: &cli::Machine) -> Result<(), Diagnostic> {
    let refused = |option: &str| {
        let message = format!("with {option} 0 no run could ever start");
        let refused = Diagnostic::error(Code::Usage, message);
        Err(refused.hint("leave it out to promise all that the machine has; `blueproof hold` and a stopped queue keep runs from starting"))
    };
    if machine.cpu == Some(Cpus::default()) {
        return refused("--cpu");
    }
    if machine.memory == Some(Bytes(0)) {
        return refused("--memory");
    }
    Ok(())
}

/// Logs what was removed.
fn tell_pruned(pruned: Result<Pruned, RetentionError>) {
    match pruned {
        Ok(pruned) => {
            if !pruned.outputs.is_empty() {
                let (runs, outputs) = (pruned.runs.len(), pruned.outputs.len());
                tracing::info!(runs, outputs, freed = %pruned.freed, "removed what is beyond the retention");
            }
            for problem in &pruned.problems {
                tracing::error!(code = %problem.code, causes = ?problem.causes, "{}", problem.message);
            }
        }
        Err(error) => tracing::error!("what is beyond the retention is not removed: {error}"),
    }
}

/// Logs how the scheduler stands, each time that this changes.
async fn tell_standing(mut standing: watch::Receiver<ServiceStatus>) {
    loop {
        match &*standing.borrow_and_update() {
            ServiceStatus::Starting => {}
            ServiceStatus::Leading => tracing::info!("leads"),
            ServiceStatus::Following => tracing::info!("follows: another process leads"),
            ServiceStatus::Failing(problem) => {
                tracing::error!(code = %problem.code, causes = ?problem.causes, "{}; tries again", problem.message);
            }
            ServiceStatus::Stopped => tracing::info!("stopped"),
        }
        if standing.changed().await.is_err() {
            return;
        }
    }
}

/// Returns what becomes true once the process is told to stop, by SIGTERM or Ctrl-C.
fn until_told_to_stop() -> Result<watch::Receiver<bool>, Diagnostic> {
    let listen = |kind| {
        signal(kind).map_err(|error| {
            Diagnostic::error(Code::NotServing, "signals cannot be listened to").because(error.to_string())
        })
    };
    let mut terminated = listen(SignalKind::terminate())?;
    let mut interrupted = listen(SignalKind::interrupt())?;
    let (stop, stops) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
        stop.send_replace(true);
        // Whoever waits for it later is told, too.
        stop.closed().await;
    });
    Ok(stops)
}

async fn told(mut stops: watch::Receiver<bool>) {
    // Whoever tells it is there for as long as somebody waits.
    let _ = stops.wait_for(|stops| *stops).await.is_ok();
}
