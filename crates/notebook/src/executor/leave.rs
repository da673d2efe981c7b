//! The kernel's end, after its cells: what a notebook has registered for it, and what its threads still do.

use std::time::{Duration, Instant};

use super::{Executor, late::Late, limits::until};
use crate::{kernel::Incoming, process::End};

/// How a kernel ended that was asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// By itself.
    Ended(End),
    /// It had not ended when its time was up.
    Late(Duration),
}

impl Executor<'_> {
    /// Asks the kernel to end, and keeps what it still publishes and writes. `None` where it was gone before.
    pub(super) async fn leave(&mut self, grace: Duration) -> Option<Leaving> {
        if self.kernel.child.try_wait().ok().flatten().is_some() {
            self.drain(Late::Messages).await;
            return None;
        }
        let give_up = Instant::now() + grace;
        let _ = tokio::time::timeout(grace, self.channels.shut_down()).await;
        let end = loop {
            tokio::select! {
                end = self.kernel.child.wait() => break end.ok(),
                incoming = self.channels.next() => self.take_parting(incoming),
                () = self.kernel.output.settled() => self.keep_settled(),
                () = until(Some(give_up)) => break None,
            }
        };
        if end.is_some() {
            let late = if self.kernelspec.is_none() {
                Late::Sent
            } else {
                Late::Messages
            };
            while let Ok(incoming) = tokio::time::timeout(late.quiet(), self.channels.next()).await {
                self.take_parting(incoming);
            }
        }
        let written = self.kernel.output.take_all();
        self.keep(&written);
        Some(end.map_or(Leaving::Late(grace), Leaving::Ended))
    }

    /// Takes in a message. Text that comes from no cell, as at the interpreter's end none runs, is the last cell's.
    fn take_parting(&mut self, incoming: Incoming) {
        let last = self.requests.values().max().copied();
        match (incoming, last) {
            (Incoming::IoPub(message), Some(last)) if message.kind == "stream" => {
                self.keep_written_before(&message);
                let parent = message.parent.as_ref();
                let slot = parent.and_then(|parent| self.requests.get(parent));
                self.recorder.take(slot.copied().unwrap_or(last), &message);
            }
            (incoming, _) => self.take_late(incoming),
        }
    }
}
