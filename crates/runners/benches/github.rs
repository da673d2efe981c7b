//! How fast a job gets its runner, how soon a lost session is made good, and what scale sets cost, against the fake of the service.
//!
//! A line of JSON for each figure; `cargo xtask bench github` makes tables of them. With `memory N` it holds N scale sets and says how
//! much memory the process has, the fake with it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use blueproof_core::{
    event::StopMode,
    ports::{CallError, Runner, RunnerName, RunnerNews, RunnerProvider, RunnerState, SystemClock},
};
use blueproof_runners::{
    Controller, ControllerPorts, FleetHandler, FleetInput, FleetSettings, Ledger, ScaleSetRegistrar,
};
use blueproof_scale_set::{
    Client, Clock, ConfigUrl, Credentials, Demand, Event, Handler, HandlerError, Inbox, Listener,
    ListenerOptions, NewScaleSet, Request, Response, Secret, Transport, TransportError,
    testing::{FakeService, MemoryInbox, Model, ModelOptions},
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::JoinSet,
};

/// How long each answer of the service takes.
const API_TIME: Duration = Duration::from_millis(50);
/// How often each number of jobs is measured.
const ROUNDS: usize = 5;
const MOST_JOBS: u32 = 400;

/// Counts calls.
struct Counting(FakeService, AtomicU64);

#[async_trait]
impl Transport for Counting {
    async fn send(&self, request: Request) -> Result<Response, TransportError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.send(request).await
    }
}

/// When each further runner was known to be needed, and when each was handed over to be started.
#[derive(Default)]
struct Times {
    needed: Vec<Instant>,
    started: Vec<Instant>,
}

struct Machines {
    service: FakeService,
    times: Arc<Mutex<Times>>,
    listeners: Mutex<Vec<mpsc::Sender<RunnerNews>>>,
    running: Mutex<BTreeMap<RunnerName, String>>,
}

impl Machines {
    async fn tell(&self, runner: &RunnerName, state: RunnerState) {
        let listeners = lock(&self.listeners).clone();
        for listener in listeners {
            let (runner, state) = (runner.clone(), state.clone());
            // One that listens no more has ended.
            let _ = listener.send(RunnerNews { runner, state }).await;
        }
    }

    /// Lets every runner carry out its job to the end.
    async fn finish(&self) {
        let running = std::mem::take(&mut *lock(&self.running));
        for (name, config) in running {
            self.service.with(|model, now| {
                if let Ok(Some(job)) = model.connect_runner(now, &config) {
                    model.complete_job(now, job, "success");
                }
            });
            self.tell(&name, RunnerState::Completed).await;
        }
    }
}

#[async_trait]
impl RunnerProvider for Machines {
    fn news(&self) -> mpsc::Receiver<RunnerNews> {
        let (sender, receiver) = mpsc::channel(256);
        lock(&self.listeners).push(sender);
        receiver
    }

    async fn start(&self, runner: &Runner) -> Result<(), CallError> {
        lock(&self.times).started.push(Instant::now());
        let config = runner.config.expose().to_owned();
        lock(&self.running).insert(runner.name.clone(), config);
        self.tell(&runner.name, RunnerState::Running).await;
        Ok(())
    }

    async fn observe(&self, name: &RunnerName) -> Result<(), CallError> {
        self.tell(name, RunnerState::Running).await;
        Ok(())
    }

    async fn stop(&self, name: &RunnerName, _how: StopMode) -> Result<(), CallError> {
        self.tell(name, RunnerState::Completed).await;
        Ok(())
    }

    async fn remove(&self, name: &RunnerName) -> Result<(), CallError> {
        self.tell(name, RunnerState::Removed).await;
        Ok(())
    }
}

/// Notes when a message says that more runners are needed.
struct Noting(FleetHandler, Arc<Mutex<Times>>);

#[async_trait]
impl Handler for Noting {
    async fn on_event(&mut self, event: &Event) -> Result<(), HandlerError> {
        self.0.on_event(event).await
    }

    async fn on_demand(&mut self, demand: Demand) {
        {
            let (mut times, now) = (lock(&self.1), Instant::now());
            let known = times.needed.len().max(demand.jobs as usize);
            times.needed.resize(known, now);
        }
        self.0.on_demand(demand).await;
    }
}

struct World {
    _folder: TempDir,
    service: FakeService,
    calls: Arc<Counting>,
    machines: Arc<Machines>,
    times: Arc<Mutex<Times>>,
    sets: Vec<blueproof_scale_set::ScaleSetId>,
    running: JoinSet<()>,
}

impl World {
    /// Starts so many scale sets, and returns once each has its session.
    async fn start(n_sets: usize) -> Self {
        let model = Model::new(ModelOptions::default());
        let service = FakeService::new(model, Clock::system()).delayed(API_TIME);
        let calls = Arc::new(Counting(service.clone(), AtomicU64::new(0)));
        let config = ConfigUrl::parse("https://github.com/owner/repository").expect("a URL");
        let client = Client::builder(config, Credentials::Token(Secret::new("token")))
            .build_with(Arc::clone(&calls) as Arc<dyn Transport>);
        let times: Arc<Mutex<Times>> = Arc::default();
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = Self {
            machines: Arc::new(Machines {
                service: service.clone(),
                times: Arc::clone(&times),
                listeners: Mutex::default(),
                running: Mutex::default(),
            }),
            service,
            calls,
            times,
            sets: Vec::new(),
            running: JoinSet::new(),
            _folder: folder,
        };
        let ledger = Ledger::open(&world._folder.path().join("runners.db")).expect("it opens");
        let inbox: Arc<dyn Inbox> = Arc::new(MemoryInbox::default());
        let shared = Arc::new(Semaphore::new(100));
        for nth in 0..n_sets {
            let shared = (ledger.clone(), Arc::clone(&inbox), Arc::clone(&shared));
            world.add(&client, nth, shared).await;
        }
        world
            .until(|world| {
                let has_session = |set| world.service.with(|model, _| model.has_session(set));
                world.sets.iter().copied().all(has_session)
            })
            .await;
        // The first poll is on its way, with the capacity.
        tokio::time::sleep(3 * API_TIME).await;
        world
    }

    async fn add(
        &mut self,
        client: &Client,
        nth: usize,
        (ledger, inbox, calls): (Ledger, Arc<dyn Inbox>, Arc<Semaphore>),
    ) {
        let name = format!("gpu-{nth}");
        let new = NewScaleSet::named(&name);
        let set = self.service.with(|model, _| model.add_scale_set(new));
        self.sets.push(set);
        let ports = ControllerPorts {
            registrar: Arc::new(ScaleSetRegistrar::new(client.clone(), set)),
            provider: Arc::clone(&self.machines) as _,
            reruns: None,
            ledger,
            clock: Arc::new(SystemClock),
            calls,
        };
        let settings = FleetSettings::of(&name, MOST_JOBS);
        let opened = Controller::open(name, settings, ports).await;
        let (controller, handle) = opened.expect("it opens");
        let room = FleetInput::Room(Some(MOST_JOBS));
        handle.inputs.send(room).await.expect("it listens");
        let handler = Noting(FleetHandler::new(handle.inputs), Arc::clone(&self.times));
        let options = ListenerOptions::of("bench");
        let listener = Listener::new(client, set, inbox, handler, handle.capacity, options);
        let (stop, stopped) = watch::channel(false);
        self.running.spawn(controller.run(stopped.clone()));
        self.running.spawn(async move {
            // It lives as long as both do.
            let _stop = stop;
            listener.run(stopped).await.map(drop).expect("it goes on");
        });
    }

    async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "it does not come to it"
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn queue(&self, n_jobs: u32) {
        let set = self.sets[0];
        self.service.with(|model, now| {
            for _ in 0..n_jobs {
                model.queue_job(now, set);
            }
        });
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn percentile(sorted: &[f64], part: f64) -> f64 {
    let at = ((sorted.len() as f64 * part).ceil() as usize).clamp(1, sorted.len());
    sorted[at - 1]
}

/// Measures the time from the message that says that a runner is needed until it is handed over to be started.
async fn latency(n_jobs: u32) {
    let (mut took, mut calls) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let world = World::start(1).await;
        let before = world.calls.1.load(Ordering::Relaxed);
        world.queue(n_jobs);
        world
            .until(|world| lock(&world.times).started.len() >= n_jobs as usize)
            .await;
        {
            let times = lock(&world.times);
            let pairs = times.needed.iter().zip(&times.started);
            took.extend(pairs.map(|(needed, started)| started.duration_since(*needed).as_secs_f64()));
        }
        world.machines.finish().await;
        let is_empty = |world: &World| world.service.with(|model, _| model.n_left(world.sets[0]) == 0);
        world.until(is_empty).await;
        calls += world.calls.1.load(Ordering::Relaxed) - before;
    }
    took.sort_by(f64::total_cmp);
    let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|part| percentile(&took, part));
    let calls = calls as f64 / (f64::from(n_jobs) * ROUNDS as f64);
    println!(
        "{}",
        json!({ "name": "latency", "jobs": n_jobs, "p50": p50, "p95": p95, "p99": p99, "calls": calls })
    );
}

/// Measures the time from the loss of a session, with a job queued at once, until that job has its runner.
async fn recovery() {
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        let world = World::start(1).await;
        let lost_at = Instant::now();
        let set = world.sets[0];
        world.service.with(|model, _| model.end_session(set));
        world.queue(10);
        world.until(|world| lock(&world.times).started.len() >= 10).await;
        took.push(lost_at.elapsed().as_secs_f64());
    }
    took.sort_by(f64::total_cmp);
    let (p50, most) = (percentile(&took, 0.5), percentile(&took, 1.0));
    println!("{}", json!({ "name": "recovery", "p50": p50, "p99": most }));
}

async fn memory(n_sets: usize) {
    let world = World::start(n_sets).await;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let bytes = kibibytes.map(|kibibytes| kibibytes * 1024);
    println!(
        "{}",
        json!({ "name": "memory", "sets": world.sets.len(), "bytes": bytes })
    );
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let sets = words.iter().position(|word| word == "memory");
    let sets = sets.and_then(|at| words.get(at + 1)?.parse().ok());
    if let Some(n_sets) = sets {
        return memory(n_sets).await;
    }
    for n_jobs in [1, 30, 100, MOST_JOBS] {
        latency(n_jobs).await;
    }
    recovery().await;
}
