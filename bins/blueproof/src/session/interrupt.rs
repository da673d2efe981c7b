//! Ctrl-C: the first one interrupts the cell, the second one ends the run in order, the third one lets go of it.
//!
//! SIGTERM is for those who will not ask twice: it ends the run at once. SIGHUP is no wish of anybody's, the terminal is
//! gone: the run is left to a process of its own. A command that only waits ends with the first one, and the run goes on.

use std::time::Duration;

use blueproof_core::{domain::RunState, event::StopMode, ports::Command};
use blueproof_host::Target;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Session, local_user, new_key};
use crate::{exit::Problem, show::progress::Say};

/// How often it is looked whether a request has become a run.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

const LET_GO: &str = "letting go; the run is ended by its agent. `blueproof wait last` shows how";

const LEFT_BEHIND: &str = "letting go of a request that no process has taken up yet: whoever drives next carries it out, and \
                           `blueproof cancel` ends it then";

/// Returns what is said of what a signal does to a run that is in this state; `None` is that nobody has taken it up yet.
fn said(how: StopMode, state: Option<RunState>) -> &'static str {
    match (how, state) {
        (StopMode::Terminate, _) => "ending the run; press Ctrl-C again to let go of it",
        (StopMode::Interrupt, Some(RunState::Running)) => {
            "interrupting the cell; press Ctrl-C again to end the run"
        }
        (StopMode::Interrupt, Some(RunState::Reserved | RunState::Starting)) => {
            "no cell runs yet: ending the run; press Ctrl-C again to end it at once"
        }
        (StopMode::Interrupt, Some(RunState::AwaitingApproval | RunState::Queued) | None) => {
            "cancelling the run, which has not started"
        }
        (StopMode::Interrupt, Some(RunState::Ended(_))) => "the run is over",
    }
}

/// What Ctrl-C and SIGTERM do to a run that is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    /// They cancel it: this command asked for it.
    CancelRun,
    /// They end the command alone.
    StopWaiting,
}

/// The signals by which a process is asked to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> Self {
        let listen = |kind| {
            let listening: std::io::Result<Signal> = signal(kind);
            listening.unwrap_or_else(|error| panic!("signals can be listened to: {error}"))
        };
        Self {
            interrupt: listen(SignalKind::interrupt()),
            terminate: listen(SignalKind::terminate()),
            hang_up: listen(SignalKind::hangup()),
        }
    }
}

impl Session {
    /// Turns signals into commands, and returns when the run is followed no longer. Safe to drop.
    pub(crate) async fn heed_signals(
        &self,
        target: &Target,
        on_interrupt: OnInterrupt,
        say: &Say,
    ) -> Result<(), Problem> {
        match on_interrupt {
            OnInterrupt::CancelRun => self.cancel_on_signals(target, say).await,
            OnInterrupt::StopWaiting => self.stop_on_signals(target, say).await,
        }
    }

    /// Returns at the first signal. What this process leads goes on in one of its own.
    async fn stop_on_signals(&self, target: &Target, say: &Say) -> Result<(), Problem> {
        let mut signals = Signals::listen();
        tokio::select! {
            _ = signals.interrupt.recv() => {}
            _ = signals.terminate.recv() => {}
            _ = signals.hang_up.recv() => {}
        }
        if let Some(view) = target.read(&*self.store).await? {
            say.line(&format!(
                "waits for {0} no longer; `blueproof wait {0}` does so again, `blueproof cancel {0}` ends it",
                view.id
            ));
        }
        self.spawn_host()
    }

    async fn cancel_on_signals(&self, target: &Target, say: &Say) -> Result<(), Problem> {
        let mut signals = Signals::listen();
        let mut asked = None;
        // What was asked for and is not left for whoever drives: that takes until the request has become a run.
        let mut unsaid = None;
        loop {
            let how = tokio::select! {
                _ = signals.interrupt.recv() => if asked.is_none() { StopMode::Interrupt } else { StopMode::Terminate },
                _ = signals.terminate.recv() => StopMode::Terminate,
                _ = signals.hang_up.recv() => return self.spawn_host(),
                left = self.cancel(target, unsaid.unwrap_or(StopMode::Terminate)), if unsaid.is_some() => {
                    left?;
                    unsaid = None;
                    continue;
                }
            };
            if asked == Some(StopMode::Terminate) {
                say.line(if unsaid.is_some() { LEFT_BEHIND } else { LET_GO });
                return Ok(());
            }
            (asked, unsaid) = (Some(how), Some(how));
            let view = target.read(&*self.store).await?;
            say.line(said(how, view.map(|view| view.state)));
        }
    }

    async fn cancel(&self, target: &Target, how: StopMode) -> Result<(), Problem> {
        // A request that nobody has taken up yet becomes a run first: wishes are taken up in their order.
        let run = loop {
            if let Some(view) = target.read(&*self.store).await? {
                break view.id;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        };
        self.submit(Command::Cancel {
            key: new_key(),
            run,
            by: local_user(),
            how,
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_a_cell_is_interrupted_is_said_only_where_one_may_run() {
        let state = |state| said(StopMode::Interrupt, state);
        assert!(state(Some(RunState::Running)).starts_with("interrupting the cell"));
        for before in [RunState::AwaitingApproval, RunState::Queued] {
            assert_eq!(state(Some(before)), "cancelling the run, which has not started");
        }
        assert_eq!(state(None), "cancelling the run, which has not started");
        for beginning in [RunState::Reserved, RunState::Starting] {
            assert!(state(Some(beginning)).starts_with("no cell runs yet"));
        }
    }
}
