//! Output that comes past the kernel, and output that comes after its cell.
//!
//! What the kernel publishes and what its processes write take two ways; both say when, and that puts them in order.

use std::time::{Duration, Instant};

use super::Executor;
use crate::kernel::{Incoming, Message, Written};

/// The longest that late output can hold up the next cell.
const AT_MOST: Duration = Duration::from_secs(1);

/// What can come after a cell's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Late {
    /// Messages that were sent before.
    Messages,
    /// What a copy of the kernel's process printed, such as a worker's: it is sent to the kernel, which publishes it.
    Copies,
    /// What the kernel had sent before its process ended: it lies in our sockets already.
    Sent,
}

impl Late {
    pub(super) fn quiet(self) -> Duration {
        match self {
            Late::Messages => Duration::from_millis(5),
            Late::Copies => Duration::from_millis(40),
            Late::Sent => Duration::from_millis(1),
        }
    }
}

impl Executor<'_> {
    /// Takes in what still comes, until nothing has come for a moment, and then all that processes wrote until now.
    pub(super) async fn drain(&mut self, late: Late) {
        let give_up = Instant::now() + AT_MOST;
        while Instant::now() < give_up {
            match tokio::time::timeout(late.quiet(), self.channels.next()).await {
                Ok(incoming) => self.take_late(incoming),
                Err(_) => break,
            }
        }
        let written = self.kernel.output.take_all();
        self.keep(&written);
    }

    /// Takes in what comes when no cell runs.
    pub(super) fn take_late(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::IoPub(message) => {
                self.keep_written_before(&message);
                self.take(&message);
            }
            Incoming::Unreadable(why) => self.unreadable = Some(why),
            Incoming::Shell(_) | Incoming::Control => {}
        }
    }

    /// Keeps what was written before the kernel made a message.
    pub(super) fn keep_written_before(&mut self, message: &Message) {
        let Some(at) = message.at else { return };
        let written = self.kernel.output.take_until(at);
        self.keep(&written);
    }

    /// Keeps what no message can come before any more.
    pub(super) fn keep_settled(&mut self) {
        let written = self.kernel.output.take_settled();
        self.keep(&written);
    }

    pub(super) fn keep(&mut self, written: &[Written]) {
        for written in written {
            self.recorder.take_written(written, self.belonging);
        }
    }
}
