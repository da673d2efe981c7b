//! Runners' side of the scheduler: files put together, and every scale set kept up while this process leads.

mod github;
mod labels;
mod problems;
mod rooms;
mod set;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use blueproof_core::{
    approval::HeadStatus,
    domain::{Head, Repository},
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_github::rest::RestGitHub;
use blueproof_host::{
    Service,
    api::{Address, Listening, MetricsWriter},
};
use blueproof_runners::{ControllerHandle, Ledger, hook, metrics::RunnerMetrics, settings::RunnerScaleSet};
use blueproof_scale_set::SqliteInbox;
use jiff::Timestamp;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

use crate::github::{all_in_one, secrets};
use github::{Judge, SetCredentials};
use rooms::Rooms;

/// What an admin says about runners, with the secrets that it names.
pub(crate) struct Runners {
    sets: Vec<Arc<RunnerSet>>,
    hook: Option<Address>,
    metrics: Arc<RunnerMetrics>,
}

/// One scale set.
struct RunnerSet {
    settings: RunnerScaleSet,
    /// The folder that paths in its file are relative to.
    beside: PathBuf,
    credentials: SetCredentials,
    rest: Arc<RestGitHub>,
}

/// What all scale sets of a process have in common.
struct Shared {
    service: Arc<Service>,
    ledger: Ledger,
    inbox: SqliteInbox,
    /// The folder that the store is in.
    folder: PathBuf,
    rooms: Rooms,
    handles: Mutex<BTreeMap<String, (Arc<RunnerSet>, ControllerHandle)>>,
    /// Told when a job of a repository has changed.
    jobs: Arc<Notify>,
    metrics: Arc<RunnerMetrics>,
}

impl Runners {
    /// Reads files of the kind `RunnerScaleSet`, and the files that they name. Call it in a tokio runtime.
    pub(crate) fn read(files: &[PathBuf], hook: Option<Address>) -> Result<Option<Self>, Diagnostic> {
        let mut sets: Vec<Arc<RunnerSet>> = Vec::new();
        for file in files {
            let set = RunnerSet::read(file)?;
            let name = &set.settings.name;
            if sets.iter().any(|other| other.settings.name == *name) {
                let message = format!("two files have the scale set `{}`", name.0);
                let twice = Diagnostic::error(Code::Usage, message);
                return Err(twice.hint("name each once: two would race for its jobs"));
            }
            sets.push(Arc::new(set));
        }
        if !sets.is_empty() && hook.is_none() {
            tracing::warn!(
                "without --runner-hook no job can ask whether it may start: docs/runners.md says what that means"
            );
        }
        Ok((!sets.is_empty()).then_some(Self {
            sets,
            hook,
            metrics: Arc::default(),
        }))
    }

    /// Returns what writes the figures of runners for Prometheus.
    pub(crate) fn metrics(&self) -> MetricsWriter {
        let metrics = Arc::clone(&self.metrics);
        Box::new(move |exposition| metrics.write(exposition))
    }

    /// Listens where runners ask whether a job may start. Nobody is answered yet.
    pub(crate) async fn listen(&self) -> Result<Option<Listening>, Diagnostic> {
        let Some(address) = &self.hook else {
            return Ok(None);
        };
        let listening = address.listen().await?;
        tracing::info!(address = %listening.address(), "answers runners");
        Ok(Some(listening))
    }

    /// Keeps the scale sets up while `leads` is true, and answers runners, until `stop` is.
    pub(crate) fn start(
        self,
        listening: Option<Listening>,
        (service, store): (&Arc<Service>, &Path),
        jobs: Arc<Notify>,
        mut leads: watch::Receiver<bool>,
        stop: watch::Receiver<bool>,
        serving: &mut JoinSet<()>,
    ) -> Result<(), Diagnostic> {
        let shared = Arc::new(Shared::open(service, store, jobs, Arc::clone(&self.metrics))?);
        if let Some(listening) = listening {
            let judge = Arc::new(Judge(Arc::clone(&shared)));
            let mut stop = stop.clone();
            serving.spawn(listening.serve(hook::router(judge), async move {
                // Whoever tells it is there for as long as somebody waits.
                let _ = stop.wait_for(|stop| *stop).await.is_ok();
            }));
        }
        serving.spawn(async move {
            let mut stop = stop;
            loop {
                tokio::select! {
                    _ = stop.wait_for(|stop| *stop) => return,
                    leads = leads.wait_for(|leads| *leads) => if leads.is_err() { return },
                }
                self.keep_up(&shared, &mut leads, &mut stop).await;
            }
        });
        Ok(())
    }

    /// Keeps the scale sets up until this process leads no more, or is told to stop.
    async fn keep_up(
        &self,
        shared: &Arc<Shared>,
        leads: &mut watch::Receiver<bool>,
        stop: &mut watch::Receiver<bool>,
    ) {
        let (end, ends) = watch::channel(false);
        let mut keeping = JoinSet::new();
        for set in &self.sets {
            keeping.spawn(set::keep_up(Arc::clone(set), Arc::clone(shared), ends.clone()));
        }
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => {}
            _ = leads.wait_for(|leads| !*leads) => {}
        }
        end.send_replace(true);
        while keeping.join_next().await.is_some() {}
        shared.handles().clear();
    }
}

impl RunnerSet {
    fn read(file: &Path) -> Result<Self, Diagnostic> {
        let text = secrets::text(file)?;
        let settings = RunnerScaleSet::read(&file.display().to_string(), text).map_err(all_in_one)?;
        let beside = file.parent().unwrap_or(Path::new("")).to_owned();
        let credentials = SetCredentials::read(&settings, &beside)?;
        let api = github::api_of(&settings);
        let rest = RestGitHub::new(&api, None, credentials.tokens(&api)?);
        Ok(Self {
            rest: Arc::new(rest.map_err(|error| error.diagnostic())?),
            settings,
            beside,
            credentials,
        })
    }

    fn name(&self) -> &str {
        &self.settings.name.0
    }
}

impl Shared {
    fn open(
        service: &Arc<Service>,
        store: &Path,
        jobs: Arc<Notify>,
        metrics: Arc<RunnerMetrics>,
    ) -> Result<Self, Diagnostic> {
        let unusable = |file: &Path, error: &(dyn std::error::Error + 'static)| {
            let message = format!("the ledger of runners `{}` cannot be used", file.display());
            let diagnostic = Diagnostic::error(Code::RunnerLedger, message).caused_by(error);
            diagnostic.hint("see that the folder of the store can be written, and has room")
        };
        let (ledger, inbox) = (
            store.with_file_name("runners.db"),
            store.with_file_name("runner-messages.db"),
        );
        Ok(Self {
            service: Arc::clone(service),
            ledger: Ledger::open(&ledger).map_err(|error| unusable(&ledger, &error))?,
            inbox: SqliteInbox::open(&inbox).map_err(|error| unusable(&inbox, &error))?,
            folder: store.parent().unwrap_or(Path::new("")).to_owned(),
            rooms: Rooms::default(),
            handles: Mutex::default(),
            jobs,
            metrics,
        })
    }

    /// Asks the gate about a head. Where this process does not lead, nobody can be asked, and nothing starts.
    async fn head_status(&self, repository: u64, head: &str) -> Option<HeadStatus> {
        let (repository, head) = (Repository::GitHub(repository), Head::Commit(head.to_owned()));
        let now = Timestamp::now();
        self.service
            .ask(move |scheduler| scheduler.head_status(&repository, &head, now))
            .await
    }

    fn handles(&self) -> MutexGuard<'_, BTreeMap<String, (Arc<RunnerSet>, ControllerHandle)>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
