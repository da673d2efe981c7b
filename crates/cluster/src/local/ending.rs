//! Bringing an attempt to its end: asked first, then by force, and never for ever.

use std::{future::Future, io, path::Path, time::Duration};

use blueproof_core::{
    attempt::{AttemptLayout, Cgroup, Errand, ProcessName},
    domain::AttemptId,
    ports::CallError,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use rustix::process::Signal;

use crate::signal::signal as send;

use super::{
    agent::Agent,
    attempts::{Attempts, LOOK_CLOSELY},
    files::cannot,
};

/// How long the kernel may take to end an agent that was killed.
const KILL_GRACE: Duration = Duration::from_secs(10);

/// How long an agent may take to end what another one left, and to write down how the attempt ended.
const FINISH_GRACE: Duration = Duration::from_mins(2);

impl Attempts {
    /// Returns whether the attempt has an agent, which is `begun` as far as its log is known.
    pub(super) fn find_agent(
        &self,
        layout: &AttemptLayout,
        begun: Option<&ProcessName>,
    ) -> Result<Agent, CallError> {
        let found = self.agent.find(layout, begun);
        found.map_err(|error| cannot("look for the agent of", layout.root(), &error))
    }

    async fn until_gone(&self, layout: &AttemptLayout, begun: Option<&ProcessName>) -> Result<(), CallError> {
        while self.find_agent(layout, begun)? != Agent::Gone {
            tokio::time::sleep(LOOK_CLOSELY).await;
        }
        Ok(())
    }

    /// Sends a signal to the attempt's agent; one that is gone needs none.
    pub(super) fn signal_agent(
        &self,
        layout: &AttemptLayout,
        begun: Option<&ProcessName>,
        signal: Signal,
    ) -> Result<(), CallError> {
        match self.find_agent(layout, begun)? {
            Agent::Gone => Ok(()),
            Agent::Elsewhere => Err(CallError::later(elsewhere(layout))),
            Agent::Alive(processes) => processes
                .iter()
                .try_for_each(|process| send(process, signal))
                .map_err(|error| cannot("signal the agent of", layout.root(), &error)),
        }
    }

    /// Waits until the attempt's agent is gone, and kills one that does not go.
    pub(super) async fn end_agent(
        &self,
        layout: &AttemptLayout,
        begun: Option<&ProcessName>,
        patience: Duration,
    ) -> Result<(), CallError> {
        if let Some(gone) = within(patience, self.until_gone(layout, begun)).await {
            return gone;
        }
        self.signal_agent(layout, begun, Signal::KILL)?;
        let gone = within(KILL_GRACE, self.until_gone(layout, begun)).await;
        gone.unwrap_or_else(|| Err(CallError::later(stuck(layout))))
    }

    /// Ends what is left in the cgroup of an attempt whose agent is gone.
    pub(super) async fn end_cgroup(&self, cgroup: Option<Cgroup>) -> Result<(), CallError> {
        let Some(cgroup) = cgroup else {
            return Ok(());
        };
        let folder = cgroup.folder().to_owned();
        let ended = tokio::task::spawn_blocking(move || cgroup.end()).await;
        let ended = ended.expect("ending a cgroup does not panic");
        ended.map_err(|error| CallError::later(populated(&folder, &error)))
    }

    /// Has another agent write down how the attempt ended.
    pub(super) async fn finish(&self, attempt: AttemptId) -> Result<(), CallError> {
        let mut successor = self.agent_for(attempt, Errand::Finish).await?;
        if let Some(ended) = within(FINISH_GRACE, successor.wait()).await {
            return ended.map(drop).map_err(|error| self.agent.cannot_start(&error));
        }
        self.end_agent(&self.layout(attempt), None, Duration::ZERO).await
    }
}

/// Waits for something, for so long at most.
async fn within<T>(patience: Duration, what: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(patience, what).await.ok()
}

fn elsewhere(layout: &AttemptLayout) -> Diagnostic {
    let message = "the attempt's agent runs on another machine, or in another container";
    Diagnostic::error(Code::AttemptFolder, message)
        .at(SourceLocation::file(layout.root().display().to_string()))
        .hint("do the same where the run was started")
}

fn populated(folder: &Path, error: &io::Error) -> Diagnostic {
    let message = "what an attempt left in its cgroup could not be ended";
    Diagnostic::error(Code::AttemptFolder, message)
        .at(SourceLocation::file(folder.display().to_string()))
        .caused_by(error)
        .hint("see with `systemd-cgls` or in the file cgroup.procs what is left: a process that waits for a disk or a device cannot be killed")
}

fn stuck(layout: &AttemptLayout) -> Diagnostic {
    Diagnostic::error(
        Code::AttemptFolder,
        "the attempt's agent was killed and is still there",
    )
    .at(SourceLocation::file(layout.root().display().to_string()))
    .hint("see with `ps` what it waits for: a process that waits for a disk or a device cannot be killed")
}
