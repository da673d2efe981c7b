//! Whether a place's thread goes on, call by call: one that hangs in a call is told from one that takes long over many.

use std::{
    cell::OnceCell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// When a place's thread came back from a call last.
#[derive(Clone)]
pub(super) struct Progress {
    epoch: Instant,
    micros: Arc<AtomicU64>,
}

thread_local! {
    /// The progress of the place whose thread this is.
    static PROGRESS: OnceCell<Progress> = const { OnceCell::new() };
}

/// Notes that a call came back. One that did is no sign that the device hangs, however long it took.
pub(super) fn go_on() {
    PROGRESS.with(|progress| {
        if let Some(progress) = progress.get() {
            progress.note();
        }
    });
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            epoch: Instant::now(),
            micros: Arc::default(),
        }
    }

    /// Has it noted here from now on that calls of this thread come back.
    pub(super) fn follow(self) {
        // A thread is of one place only.
        let _ = PROGRESS.with(|progress| progress.set(self));
    }

    pub(super) fn note(&self) {
        let micros = u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.micros.store(micros, Ordering::Relaxed);
    }

    pub(super) fn last(&self) -> Instant {
        self.epoch + Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}
