//! Time, so that tests can set it.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

/// What time it is.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Returns the time.
    fn now(&self) -> Timestamp;

    /// Returns once `now` is `until` or later. Safe to drop and to call again.
    async fn sleep_until(&self, until: Timestamp);
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    async fn sleep_until(&self, until: Timestamp) {
        // In short steps, because a machine that was asleep does not count that time.
        const STEP: Duration = Duration::from_secs(30);
        while let Ok(left) = Duration::try_from(until.duration_since(self.now())) {
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(STEP)).await;
        }
    }
}
