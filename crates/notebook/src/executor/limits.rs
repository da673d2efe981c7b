//! What can end a cell before it ends by itself: limits of time and requests to stop; and how it is then ended.

use std::time::{Duration, Instant};

use blueproof_core::domain::TimeLimit;
use jiff::SignedDuration;
use tokio::sync::mpsc::UnboundedReceiver;

/// A request to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Interrupt the cell that runs, and start no other.
    AfterCell,
    /// End everything now.
    Now,
}

/// Requests to stop, as they come in.
#[derive(Debug)]
pub(crate) struct Stops {
    requests: UnboundedReceiver<Stop>,
}

/// How long each step of ending a cell is given before the next, harder one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Graces {
    /// After an interrupt, which the notebook may handle.
    pub interrupt: Duration,
    /// After SIGTERM.
    pub terminate: Duration,
    /// After all cells, for what the notebook has registered for its interpreter's end, and for threads that still run.
    pub leave: Duration,
}

impl Default for Graces {
    fn default() -> Self {
        Self {
            interrupt: Duration::from_secs(5),
            terminate: Duration::from_secs(2),
            leave: Duration::from_secs(5),
        }
    }
}

/// Why a cell is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// A limit of time was reached.
    Limit(TimeLimit),
    /// Somebody asked for it.
    Stop,
}

/// The next thing to do about a cell that is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send SIGINT.
    Interrupt,
    /// Ask on the control channel too: a kernel may look there and not at signals.
    Ask,
    /// Send SIGTERM.
    Terminate,
    /// Send SIGKILL.
    Kill,
}

/// A cell's way to its end, once it has been decided that it must.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    /// Why.
    pub(crate) why: Why,
    next: Step,
    due: Instant,
}

impl Stops {
    pub(crate) fn new(requests: UnboundedReceiver<Stop>) -> Self {
        Self { requests }
    }

    /// Returns the next request; waits for ever when none can come.
    pub(crate) async fn next(&mut self) -> Stop {
        match self.requests.recv().await {
            Some(stop) => stop,
            None => std::future::pending().await,
        }
    }

    /// Returns whether there has been a request that was not taken yet.
    pub(crate) fn is_requested(&self) -> bool {
        !self.requests.is_empty()
    }
}

impl Ending {
    /// Begins with an interrupt.
    pub(crate) fn gently(why: Why) -> Self {
        Self {
            why,
            next: Step::Interrupt,
            due: Instant::now(),
        }
    }

    /// Begins with SIGTERM.
    pub(crate) fn firmly(why: Why) -> Self {
        Self {
            why,
            next: Step::Terminate,
            due: Instant::now(),
        }
    }

    /// Returns when the next step is due.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Returns the step that is due now, and goes on to the one after it.
    pub(crate) fn take(&mut self, graces: Graces) -> Step {
        let step = self.next;
        let (next, wait) = match step {
            Step::Interrupt => (Step::Ask, graces.interrupt / 4),
            Step::Ask => (Step::Terminate, graces.interrupt - graces.interrupt / 4),
            Step::Terminate => (Step::Kill, graces.terminate),
            Step::Kill => (Step::Kill, graces.terminate),
        };
        self.next = next;
        self.due = Instant::now() + wait;
        step
    }
}

/// Returns when a limit that began to run at `begun` is over; `None` where there is no limit.
pub(crate) fn deadline(begun: Instant, limit: Option<SignedDuration>) -> Option<Instant> {
    begun.checked_add(Duration::try_from(limit?).unwrap_or_default())
}

/// Waits until a deadline; for ever where there is none.
pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_harder_than_the_one_before() {
        let mut ending = Ending::gently(Why::Limit(TimeLimit::Cell));
        let steps: Vec<_> = (0..5).map(|_| ending.take(Graces::default())).collect();
        assert_eq!(
            steps,
            [
                Step::Interrupt,
                Step::Ask,
                Step::Terminate,
                Step::Kill,
                Step::Kill
            ]
        );
        assert_eq!(Ending::firmly(Why::Stop).take(Graces::default()), Step::Terminate);
    }
}
