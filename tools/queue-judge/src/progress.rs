//! Says on the side how far something is that takes long.

use std::{
    fmt::Display,
    time::{Duration, Instant},
};

/// How often it is said.
const EVERY: Duration = Duration::from_secs(2);

/// When it was said last.
pub(crate) struct Progress(Instant);

impl Progress {
    /// Returns that of something that begins now.
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    /// Says how far it is, unless that was said just now.
    pub(crate) fn tell<T: Display>(&mut self, so_far: impl FnOnce() -> T) {
        if self.0.elapsed() >= EVERY {
            eprintln!("  … {}", so_far());
            self.0 = Instant::now();
        }
    }
}
