//! A clock that stands still until it is told.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use crate::ports::Clock;

/// A clock that stands still until it is told.
#[derive(Debug)]
pub struct FakeClock {
    now: watch::Sender<Timestamp>,
}

impl Default for FakeClock {
    fn default() -> Self {
        Self {
            now: watch::Sender::new(Timestamp::UNIX_EPOCH),
        }
    }
}

impl FakeClock {
    /// Lets time pass; whoever sleeps until then wakes up.
    pub fn advance(&self, by: SignedDuration) {
        self.now.send_modify(|now| *now += by);
    }
}

#[async_trait]
impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        *self.now.borrow()
    }

    async fn sleep_until(&self, until: Timestamp) {
        let mut now = self.now.subscribe();
        now.wait_for(|now| *now >= until)
            .await
            .expect("the clock lives as long as its borrower");
    }
}
