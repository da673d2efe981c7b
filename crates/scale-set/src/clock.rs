//! What time it is.

use jiff::Timestamp;

/// Tells the time by which tokens expire. Waiting is tokio's.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Source);

#[derive(Debug, Clone, Copy)]
enum Source {
    System,
    #[cfg(any(test, feature = "testing"))]
    Tokio {
        began: Timestamp,
        at: tokio::time::Instant,
    },
}

impl Clock {
    /// Returns the machine's clock.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// Returns a clock that shows `began` now, and goes as tokio's does: it stands still where that is paused.
    #[cfg(any(test, feature = "testing"))]
    pub fn of_tokio(began: Timestamp) -> Self {
        let at = tokio::time::Instant::now();
        Self(Source::Tokio { began, at })
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        match self.0 {
            Source::System => Timestamp::now(),
            #[cfg(any(test, feature = "testing"))]
            Source::Tokio { began, at } => began + at.elapsed(),
        }
    }
}
