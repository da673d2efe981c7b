//! The whole pipeline inside another program, with every backend swapped for one of its own and no network.
//!
//! `cargo run -p blueproof-core --example embed --features testing`

use std::{error::Error, sync::Arc};

use blueproof_core::{
    domain::{Bytes, Cpus, Gpus, Resources},
    engine::{Engine, Ports},
    policy::Policy,
    ports::{Clock, Clusters, Command, StoreClient, SystemClock},
    testing::{FakeCluster, FakeReporter, MemoryStore, ask_for_cpu, request},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A cluster of your own implements `ClusterDriver`; this one is in memory and passes everything.
    let (cpu, memory) = (Cpus::cores(2), Bytes(4 << 30));
    let machine = Resources {
        cpu,
        memory,
        gpu: Gpus(0),
    };
    let (store, reporter) = (
        Arc::new(MemoryStore::default()),
        Arc::new(FakeReporter::default()),
    );
    let ports = Ports {
        store: store.clone(),
        clusters: Clusters::one(Arc::new(FakeCluster::passing(machine))),
        reporters: vec![reporter.clone()],
        clock: Arc::new(SystemClock),
    };

    // Three wishes. The last one asks for more than there is, and is told so.
    for (key, cores) in [("small", 1), ("large", 2), ("too-large", 3)] {
        let mut wish = request(key, "nano-lm");
        ask_for_cpu(&mut wish, Cpus::cores(cores));
        let wish = Command::Run {
            request: Box::new(wish),
        };
        store.submit(SystemClock.now(), wish).await?;
    }

    // The engine carries out what the scheduler decides, until nothing is left to be done.
    let mut engine = Engine::open(ports, Policy::local(machine)).await?;
    engine
        .run_until(|scheduler| scheduler.runs().count() == 3 && scheduler.is_idle())
        .await?;

    for run in engine.scheduler().runs() {
        let reported = reporter
            .report_of(run.id)
            .ok_or("every run that ended is reported")?;
        let why = reported.failure.map(|failure| failure.diagnostic.message);
        println!("{} {} {}", run.id, reported.state, why.unwrap_or_default());
    }
    Ok(())
}
