//! A scale set's jobs on runners that are processes of this machine.
//!
//! The stand-in for GitHub's runner is a program of three lines: it shows the configuration that it was given, and waits.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use blueproof_cluster::runner::{ProcessRunners, RunnerCommand};
use blueproof_core::ports::SystemClock;
use blueproof_runners::{
    Controller, ControllerPorts, FleetFigures, FleetHandler, FleetInput, FleetSettings, Ledger,
    ScaleSetRegistrar,
};
use blueproof_scale_set::{
    Client, Clock, ConfigUrl, Credentials, Listener, ListenerOptions, NewScaleSet, ScaleSetId, Secret,
    testing::{FakeService, MemoryInbox, Model, ModelOptions},
};
use tempfile::TempDir;
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};

/// Longer than anything here takes on a slow machine.
const BOUND: Duration = Duration::from_secs(60);

const PROGRAM: &str = r#"#!/bin/sh
of="$1/$(basename "$BLUEPROOF_RUNNER")"
printf '%s' "$ACTIONS_RUNNER_INPUT_JITCONFIG" > "$of.new" && mv "$of.new" "$of.config"
while [ ! -e "$1/end" ]; do sleep 0.05; done
"#;

struct World {
    home: TempDir,
    service: FakeService,
    client: Client,
    set: ScaleSetId,
    running: JoinSet<()>,
    figures: watch::Receiver<FleetFigures>,
}

impl World {
    async fn new() -> Self {
        let service = FakeService::new(Model::new(ModelOptions::default()), Clock::system());
        let config = ConfigUrl::parse("https://github.com/owner/repository").expect("a URL");
        let client = Client::builder(config, Credentials::Token(Secret::new("token".to_owned())));
        let client = client.build_with(Arc::new(service.clone()));
        let made = client.create_scale_set(&NewScaleSet::named("gpu")).await;
        let home = tempfile::tempdir().expect("a folder");
        fs::create_dir(home.path().join("seen")).expect("a folder");
        let program = home.path().join("run.sh");
        fs::write(&program, PROGRAM).expect("a file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a file of ours");
        Self {
            home,
            service,
            set: made.expect("it is made").id,
            client,
            running: JoinSet::new(),
            figures: watch::channel(FleetFigures::default()).1,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    async fn start(&mut self) {
        let command = RunnerCommand {
            program: self.path("run.sh").into(),
            arguments: vec![self.path("seen").into()],
        };
        let ports = ControllerPorts {
            registrar: Arc::new(ScaleSetRegistrar::new(self.client.clone(), self.set)),
            provider: Arc::new(ProcessRunners::new(self.path("runners"), command)),
            reruns: None,
            ledger: Ledger::open(&self.path("runners.db")).expect("it opens"),
            clock: Arc::new(SystemClock),
            calls: Arc::new(Semaphore::new(10)),
        };
        let settings = FleetSettings::of("gpu", 10);
        let opened = Controller::open("gpu", settings, ports).await;
        let (controller, handle) = opened.expect("it opens");
        let room = FleetInput::Room(Some(10));
        handle.inputs.send(room).await.expect("it listens");
        self.figures = handle.figures;
        let listener = Listener::new(
            &self.client,
            self.set,
            Arc::new(MemoryInbox::default()),
            FleetHandler::new(handle.inputs),
            handle.capacity,
            ListenerOptions::of("host"),
        );
        let (stop, stopped) = watch::channel(false);
        self.running.spawn(controller.run(stopped.clone()));
        self.running.spawn(async move {
            // It lives as long as both do.
            let _stop = stop;
            listener.run(stopped).await.map(drop).expect("it goes on");
        });
    }

    /// Returns what each runner was given.
    fn configs(&self) -> Vec<String> {
        let files = fs::read_dir(self.path("seen")).expect("it is there").flatten();
        let is_whole = |path: &PathBuf| path.extension().is_some_and(|end| end == "config");
        let whole = files.map(|file| file.path()).filter(is_whole);
        whole
            .map(|path| fs::read_to_string(path).expect("text"))
            .collect()
    }
}

fn n_entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Waits until something holds.
async fn until(holds: impl Fn() -> bool) {
    let came = tokio::time::timeout(BOUND, async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    });
    came.await.expect("it holds in time");
}

#[tokio::test]
async fn processes_of_this_machine_run_the_jobs_of_a_scale_set() {
    let mut world = World::new().await;
    world.start().await;
    for _ in 0..3 {
        world.service.with(|model, now| model.queue_job(now, world.set));
    }
    until(|| world.configs().len() == 3).await;
    for config in world.configs() {
        world.service.with(|model, now| {
            let job = model
                .connect_runner(now, &config)
                .expect("it was not used before");
            model.complete_job(now, job.expect("a job waits"), "success");
        });
    }
    // A program that ended before would be one that jobs still need.
    until(|| world.figures.borrow().demand == 0).await;
    fs::write(world.path("seen/end"), "").expect("a file");
    // What is left of a runner goes when its program has ended.
    until(|| n_entries(&world.path("runners")) == 0).await;
    assert_eq!(world.configs().len(), 3, "no other was started");
    assert_eq!(world.service.with(|model, _| model.runners()), []);
}
