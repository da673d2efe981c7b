//! Devices given to attempts by the driver that gives them, without any agent.

use std::{path::Path, sync::Arc};

use blueproof_cluster::local::{AgentCommand, Devices, LocalDriver, LookForDevices};
use blueproof_core::{
    attempt::{RunsFolder, StoreIdentity},
    domain::{AttemptId, Gpus, PodSets, Resources, RunId},
    gpu::DeviceUuid,
    ports::{ClusterDriver as _, News},
    testing::reservation,
};

/// A machine whose devices are taken back with it.
pub(crate) struct Machine {
    driver: LocalDriver,
    runtime: tokio::runtime::Runtime,
    given: Vec<AttemptId>,
}

impl Machine {
    pub(crate) fn new(runs: &Path, devices: &[&str]) -> Self {
        let agent = AgentCommand {
            program: "false".into(),
            arguments: Vec::new(),
        };
        let units: Vec<_> = devices
            .iter()
            .map(|uuid| DeviceUuid((*uuid).to_owned()))
            .collect();
        let look = LookForDevices(Arc::new(move || Devices {
            units: Some(units.clone()),
            unhealthy: Default::default(),
            description: "for a test".into(),
        }));
        let store = StoreIdentity {
            id: "test".into(),
            folder: String::new(),
            secret: [1; 32],
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        Self {
            driver: LocalDriver::new(RunsFolder::new(runs, store), runs.join("environments"), agent)
                .with_devices(look),
            runtime: runtime.expect("it starts"),
            given: Vec::new(),
        }
    }

    /// Gives so many devices to the first attempt of a run.
    pub(crate) fn give(&mut self, run: u64, gpus: u32) {
        let attempt = RunId(run).attempt(1);
        let resources = Resources {
            gpu: Gpus(gpus),
            ..Resources::default()
        };
        let reservation = reservation(attempt, &PodSets::of_amounts(resources, Resources::default()));
        let given = self.driver.reserve(&reservation);
        self.runtime.block_on(given).expect("they are free");
        self.given.push(attempt);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for attempt in &self.given {
            let mut news = self.driver.news();
            let released = async {
                self.driver.release(*attempt).await.expect("it is handed over");
                while let Some(News::Inventory(_)) = news.recv().await {}
            };
            self.runtime.block_on(released);
        }
    }
}
