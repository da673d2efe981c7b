//! Signals by which an admin has the driver closed for a while, and opened again, where nothing is served.

use std::{io, time::Duration};

use blueproof_gpu::collect::Collector;
use tokio::{
    runtime::{self, Runtime},
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};

use crate::exporter::{release, reopen};

/// SIGUSR1, which closes the driver, and SIGHUP, which opens it again.
pub(crate) struct DriverSignals {
    runtime: Runtime,
    released: Signal,
    reopened: Signal,
}

impl DriverSignals {
    /// Begins to listen: from now on neither signal ends the process.
    pub(crate) fn listen() -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let _inside = runtime.enter();
        let released = signal(SignalKind::user_defined1())?;
        let reopened = signal(SignalKind::hangup())?;
        drop(_inside);
        Ok(Self {
            runtime,
            released,
            reopened,
        })
    }

    /// Waits for so long, or until a signal has been obeyed.
    pub(crate) fn wait(&mut self, lasts: Duration, collector: &Collector) {
        let Self {
            runtime,
            released,
            reopened,
        } = self;
        runtime.block_on(async {
            tokio::select! {
                () = sleep(lasts) => {}
                _ = released.recv() => release(collector),
                _ = reopened.recv() => reopen(collector),
            }
        });
    }
}
