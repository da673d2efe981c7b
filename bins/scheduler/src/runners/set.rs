//! One scale set, from its name at GitHub to its controller and what tells that of jobs.

use std::{sync::Arc, time::Duration};

use blueproof_cluster::runner::{ProcessRunners, RunnerCommand};
use blueproof_core::ports::SystemClock;
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_runners::{
    Controller, ControllerHandle, ControllerPorts, FleetHandler, FleetSettings, Registrar, ScaleSetRegistrar,
    metrics::MeasuredSet, settings::Binding,
};
use blueproof_scale_set::{
    Client, DEFAULT_GROUP, Inbox, Label, Listener, ListenerOptions, NewScaleSet, RunnerGroupId, ScaleSet,
    SystemInfo,
};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};

use super::{
    RunnerSet, Shared,
    github::{RestRegistrar, RestReruns},
    labels,
    problems::{no_group, unusable},
    rooms,
};

/// The first pause after a scale set could not be kept up, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// How long the closing of a session is waited for.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// Keeps a scale set up until `stop` is true. What fails is logged, and tried again later.
pub(super) async fn keep_up(set: Arc<RunnerSet>, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let mut pause = PAUSES.0;
    while let Err(error) = serve(&set, &shared, &mut stop, &mut pause).await {
        tracing::error!(scale_set = set.name(), code = %error.code, causes = ?error.causes, again_in = ?pause,
            "{}; tries again", error.message);
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(PAUSES.1);
    }
}

async fn serve(
    set: &Arc<RunnerSet>,
    shared: &Arc<Shared>,
    stop: &mut watch::Receiver<bool>,
    pause: &mut Duration,
) -> Result<(), Diagnostic> {
    let mut working = JoinSet::new();
    match set.settings.binding {
        Binding::ScaleSet => {
            let client = client(set)?;
            let made = find_or_make(set, &client).await?;
            let registrar = Arc::new(ScaleSetRegistrar::new(client.clone(), made.id));
            let handle = start(set, shared, registrar, &mut working, stop).await?;
            let listener = Listener::new(
                &client.of_scale_set(made.id),
                made.id,
                Arc::new(shared.inbox.clone()) as Arc<dyn Inbox>,
                FleetHandler::new(handle.inputs.clone()).observed_by(shared.metrics.observer()),
                handle.capacity,
                ListenerOptions::of(owner()),
            );
            let listening = listener.run(stop.clone());
            working.spawn(async move {
                let ended = listening.await.map(drop);
                ended.map_err(|error| unusable("its messages cannot be read", &error))
            });
        }
        Binding::UniqueLabel => {
            let registrar = Arc::new(RestRegistrar::of(set).await?);
            let handle = start(set, shared, registrar, &mut working, stop).await?;
            let watching = labels::watch(Arc::clone(set), Arc::clone(shared), handle, stop.clone());
            working.spawn(async move {
                watching.await;
                Ok(())
            });
        }
    }
    *pause = PAUSES.0;
    tracing::info!(scale_set = set.name(), "runners are made for its jobs");
    tokio::select! {
        _ = stop.wait_for(|stop| *stop) => {}
        Some(ended) = working.join_next() => ended.unwrap_or(Ok(()))?,
    }
    let closing = async { while working.join_next().await.is_some() {} };
    // A session that stays open costs whoever comes next a while, and nothing else.
    let _ = tokio::time::timeout(CLOSE_WITHIN, closing).await;
    Ok(())
}

/// Starts the controller of a scale set, and what tells it how many runners can be placed.
async fn start(
    set: &Arc<RunnerSet>,
    shared: &Arc<Shared>,
    registrar: Arc<dyn Registrar>,
    working: &mut JoinSet<Result<(), Diagnostic>>,
    stop: &watch::Receiver<bool>,
) -> Result<ControllerHandle, Diagnostic> {
    let settings = &set.settings;
    let folder = match settings.folder() {
        Some(folder) => set.beside.join(folder),
        None => shared.folder.join("runners").join(set.name()),
    };
    let command = RunnerCommand {
        program: set.beside.join(&settings.process.program.0).into(),
        arguments: settings.process.arguments.iter().map(Into::into).collect(),
    };
    let ports = ControllerPorts {
        registrar,
        provider: Arc::new(ProcessRunners::new(folder, command)),
        reruns: Some(Arc::new(RestReruns(Arc::clone(&set.rest)))),
        ledger: shared.ledger.clone(),
        clock: Arc::new(SystemClock),
        calls: Arc::new(Semaphore::new(settings.simultaneous_calls as usize)),
    };
    // Another scheduler's runners of the same scale set have other names.
    let prefix = format!("{}-{}", set.name(), shared.ledger.id());
    let fleet = FleetSettings {
        min_runners: settings.min_runners,
        ..FleetSettings::of(prefix, settings.max_runners.value)
    };
    let opened = Controller::open(set.name(), fleet, ports).await;
    let (controller, handle) = opened.map_err(|error| {
        let message = format!("the runners of `{}` are not known", set.name());
        Diagnostic::error(Code::RunnerLedger, message).caused_by(&error)
    })?;
    let measured = MeasuredSet {
        scope: settings.config_url().scope().clone(),
        min_runners: settings.min_runners,
        max_runners: settings.max_runners.value,
        figures: handle.figures.clone(),
    };
    shared.metrics.add(set.name(), measured);
    let known = (Arc::clone(set), handle.clone());
    shared.handles().insert(set.name().to_owned(), known);
    let controlling = controller.run(stop.clone());
    let telling = rooms::tell(Arc::clone(set), Arc::clone(shared), handle.clone(), stop.clone());
    working.spawn(async move {
        controlling.await;
        Ok(())
    });
    working.spawn(async move {
        telling.await;
        Ok(())
    });
    Ok(handle)
}

fn client(set: &RunnerSet) -> Result<Client, Diagnostic> {
    let system = SystemInfo {
        system: "blueproof".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        subsystem: "scheduler".into(),
        ..SystemInfo::default()
    };
    let credentials = set.credentials.of_scale_set()?;
    Client::builder(set.settings.config_url().clone(), credentials)
        .system(system)
        .build()
        .map_err(|error| unusable("no connection can be made", &error))
}

/// Returns the scale set of that name in its group, and makes it where there is none.
async fn find_or_make(set: &RunnerSet, client: &Client) -> Result<ScaleSet, Diagnostic> {
    let settings = &set.settings;
    let failed = |error| unusable("GitHub does not give it", &error);
    let group = group(set, client).await?;
    let labels: Vec<Label> = settings.labels().into_iter().map(Label::new).collect();
    if let Some(found) = client.find_scale_set(group, set.name()).await.map_err(failed)? {
        warn_of_other_labels(&found, &labels);
        return Ok(found);
    }
    let new = NewScaleSet {
        runner_group_id: group,
        labels: labels.clone(),
        ..NewScaleSet::named(set.name())
    };
    let made = client.create_scale_set(&new).await.map_err(failed)?;
    warn_of_other_labels(&made, &labels);
    Ok(made)
}

async fn group(set: &RunnerSet, client: &Client) -> Result<RunnerGroupId, Diagnostic> {
    let name = &set.settings.runner_group;
    if name.eq_ignore_ascii_case("default") {
        return Ok(DEFAULT_GROUP);
    }
    let found = client.runner_group(name).await;
    let found = found.map_err(|error| unusable("its runner group cannot be read", &error))?;
    found.map(|group| group.id).ok_or_else(|| no_group(name))
}

/// A server that is old keeps the first label only, and none changes those of a scale set that is there.
fn warn_of_other_labels(set: &ScaleSet, wanted: &[Label]) {
    let names = |labels: &[Label]| {
        let mut names: Vec<String> = labels.iter().map(|label| label.name.to_lowercase()).collect();
        names.sort();
        names
    };
    let (has, wanted) = (names(&set.labels), names(wanted));
    if has != wanted {
        tracing::warn!(
            scale_set = set.name,
            ?has,
            ?wanted,
            "the scale set has other labels: to have these, delete it at GitHub and let it be made again"
        );
    }
}

/// Returns what GitHub shows as the owner of a session: the same after a restart, which takes the session over.
fn owner() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "blueproof".into(),
        name => name.to_owned(),
    }
}
