//! A service, a client, a listener with a memory, and jobs that run as soon as there is a runner.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use blueproof_scale_set::{
    AppInstallation, AppKey, Client, Clock, ConfigUrl, Credentials, Demand, Event, Handler, HandlerError,
    Inbox, Listener, ListenerError, ListenerOptions, ListenerReport, NewScaleSet, RunnerRequestId,
    ScaleSetId, SessionReport,
    testing::{APP, APP_KEY, FakeJobState, FakeService, MemoryInbox, Model, ModelOptions},
};
use tokio::{sync::watch, task::JoinHandle};

/// What outlives a listener.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// How often each event was handled.
    pub(crate) events: BTreeMap<(RunnerRequestId, String), u32>,
    /// How often each job ran.
    pub(crate) runs: BTreeMap<RunnerRequestId, u32>,
    n_runners: u32,
    /// A job whose events cannot be handled.
    pub(crate) poison: Option<RunnerRequestId>,
}

pub(crate) type Shared<T> = Arc<Mutex<T>>;

pub(crate) struct World {
    pub(crate) service: FakeService,
    pub(crate) client: Client,
    pub(crate) set: ScaleSetId,
    pub(crate) inbox: Arc<MemoryInbox>,
    pub(crate) memory: Shared<Memory>,
    pub(crate) capacity: watch::Sender<u32>,
    pub(crate) options: ListenerOptions,
    pub(crate) jobs: Vec<RunnerRequestId>,
    running: Option<Running>,
}

pub(crate) struct Running {
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) report: watch::Receiver<ListenerReport>,
    pub(crate) session: watch::Receiver<SessionReport>,
    ended: JoinHandle<Result<Worker, ListenerError>>,
}

/// Starts a runner for each job that needs one, and lets it run its job to the end.
pub(crate) struct Worker {
    client: Client,
    service: FakeService,
    set: ScaleSetId,
    memory: Shared<Memory>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let clock = Clock::of_tokio("2026-11-25T10:00:00Z".parse().expect("a time"));
        let service = FakeService::new(Model::new(ModelOptions::default()), clock);
        let client = client(&service, clock);
        let set = client
            .create_scale_set(&NewScaleSet::named("gpu"))
            .await
            .expect("it is made")
            .id;
        Self {
            service,
            client,
            set,
            inbox: Arc::default(),
            memory: Arc::default(),
            capacity: watch::Sender::new(10),
            options: ListenerOptions::of("host"),
            jobs: Vec::new(),
            running: None,
        }
    }

    pub(crate) fn start(&mut self) {
        let worker = Worker {
            client: self.client.clone(),
            service: self.service.clone(),
            set: self.set,
            memory: Arc::clone(&self.memory),
        };
        let inbox = Arc::clone(&self.inbox) as Arc<dyn Inbox>;
        let capacity = self.capacity.subscribe();
        let listener = Listener::new(
            &self.client,
            self.set,
            inbox,
            worker,
            capacity,
            self.options.clone(),
        );
        let (stop, stopped) = watch::channel(false);
        let (report, session) = (listener.report(), listener.session_report());
        let ended = tokio::spawn(listener.run(stopped));
        self.running = Some(Running {
            stop,
            report,
            session,
            ended,
        });
    }

    pub(crate) fn running(&self) -> &Running {
        self.running.as_ref().expect("it was started")
    }

    pub(crate) fn is_running(&self) -> bool {
        !self.running().ended.is_finished()
    }

    /// Ends the listener as a signal does.
    pub(crate) async fn stop(&mut self) {
        let running = self.running.take().expect("it was started");
        running.stop.send_replace(true);
        running
            .ended
            .await
            .expect("it does not panic")
            .map(drop)
            .expect("it ends well");
    }

    /// Ends the listener as the kernel does.
    pub(crate) async fn kill(&mut self) {
        let running = self.running.take().expect("it was started");
        running.ended.abort();
        assert!(
            running.ended.await.is_err_and(|error| error.is_cancelled()),
            "it was running"
        );
    }

    pub(crate) fn queue(&mut self, n_jobs: u32) {
        for _ in 0..n_jobs {
            let set = self.set;
            self.jobs
                .push(self.service.with(|model, now| model.queue_job(now, set)));
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.service.with(|model, _| {
            let is_completed = |id| {
                model
                    .job(id)
                    .is_some_and(|job| job.state == FakeJobState::Completed)
            };
            self.jobs.iter().copied().all(is_completed) && model.n_left(self.set) == 0
        })
    }

    /// Waits until a state is reached, an hour of the service's time at most.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&World) -> bool) {
        for _ in 0..3600 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("not reached: {what}; {:?}", self.lock());
    }

    pub(crate) async fn done(&self) {
        self.until("all jobs are done", World::is_done).await;
    }

    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that each job ran once, and that each of its events was handled.
    pub(crate) fn check(&self) {
        let memory = self.lock();
        for job in &self.jobs {
            assert_eq!(memory.runs.get(job), Some(&1), "job {job} ran once: {memory:?}");
            for kind in ["JobAvailable", "JobAssigned", "JobStarted", "JobCompleted"] {
                let key = (*job, kind.to_owned());
                assert!(
                    memory.events.contains_key(&key),
                    "{kind} of job {job} is lost: {memory:?}"
                );
            }
        }
    }

    /// Checks that no event was handled twice, either.
    pub(crate) fn check_once(&self) {
        self.check();
        assert!(self.lock().events.values().all(|n| *n == 1), "{:?}", self.lock());
    }
}

pub(crate) fn client(service: &FakeService, clock: Clock) -> Client {
    let app = AppInstallation {
        issuer: APP.into(),
        installation: 7,
        key: AppKey::from_pem(APP_KEY).expect("a key"),
    };
    let config = ConfigUrl::parse("https://github.com/owner/repository").expect("a URL");
    let builder = Client::builder(config, Credentials::App(app)).clock(clock);
    builder.build_with(Arc::new(service.clone()))
}

#[async_trait]
impl Handler for Worker {
    async fn on_event(&mut self, event: &Event) -> Result<(), HandlerError> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.poison == Some(event.request()) {
            return Err("it cannot be handled".into());
        }
        let key = (event.request(), event.kind().as_str().to_owned());
        *memory.events.entry(key).or_default() += 1;
        Ok(())
    }

    async fn on_demand(&mut self, demand: Demand) {
        for _ in 0..demand.jobs {
            let name = {
                let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
                memory.n_runners += 1;
                format!("gpu-{}", memory.n_runners)
            };
            // A job whose runner could not be made is still in the demand of the next answer.
            let Ok(config) = self.client.replace_runner(self.set, &name, "_work").await else {
                return;
            };
            self.service.with(|model, now| {
                let started = model.connect_runner(now, config.encoded.expose());
                if let Ok(Some(job)) = started {
                    let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
                    *memory.runs.entry(job).or_default() += 1;
                    model.complete_job(now, job, "success");
                }
            });
        }
    }
}
