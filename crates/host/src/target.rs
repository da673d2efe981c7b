//! Waiting for a run, or for what comes of a command.

use blueproof_core::{
    domain::{RequestKey, RunId},
    ports::{Answer, StoreClient, StoreError},
    scheduler::Scheduler,
    view::RunView,
};
use blueproof_diagnostic::Diagnostic;

/// The run that somebody waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The one that this request makes or made.
    Request(RequestKey),
    /// One that is known.
    Run(RunId),
}

/// Why what somebody waits for will not come.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// The store cannot be read, or not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The command was refused.
    #[error("{}", .0.message)]
    Refused(Box<Diagnostic>),
    /// The command is quarantined: it cannot be read, or deciding about it failed.
    #[error("{}", .0.message)]
    Quarantined(Box<Diagnostic>),
}

/// Returns whether a command was taken up; where it was refused or quarantined, that is the error.
pub async fn is_taken_up(store: &dyn StoreClient, command: &RequestKey) -> Result<bool, WaitError> {
    match store.command(command).await?.and_then(|stored| stored.answer) {
        None => Ok(false),
        Some(Answer::Taken) => Ok(true),
        Some(Answer::Refused(problem)) => Err(WaitError::Refused(problem)),
        Some(Answer::Quarantined(problem)) => Err(WaitError::Quarantined(problem)),
    }
}

/// Returns once a command was taken up, for whoever leaves the work to others. Safe to drop.
pub async fn until_taken_up(store: &dyn StoreClient, command: &RequestKey) -> Result<(), WaitError> {
    let mut seen = None;
    while !is_taken_up(store, command).await? {
        seen = Some(store.changed(seen).await);
    }
    Ok(())
}

impl Target {
    /// Returns the run if `done` holds of it already. Where its request was refused or quarantined, so that there will be no such
    /// run, that is the error.
    pub async fn look(
        &self,
        store: &dyn StoreClient,
        done: impl Fn(&RunView) -> bool,
    ) -> Result<Option<RunView>, WaitError> {
        let found = self.read(store).await?;
        if let (None, Target::Request(key)) = (&found, self) {
            is_taken_up(store, key).await?;
        }
        Ok(found.filter(done))
    }

    /// Returns the run as soon as `done` holds of it, for whoever leaves the work to others. Safe to drop.
    pub async fn until(
        &self,
        store: &dyn StoreClient,
        done: impl Fn(&RunView) -> bool,
    ) -> Result<RunView, WaitError> {
        let mut seen = None;
        loop {
            if let Some(view) = self.look(store, &done).await? {
                return Ok(view);
            }
            seen = Some(store.changed(seen).await);
        }
    }

    /// Returns the run as it is stored; `None` where no leader has taken up the request yet.
    pub async fn read(&self, store: &dyn StoreClient) -> Result<Option<RunView>, StoreError> {
        match self {
            Target::Request(key) => store.run_of(key).await,
            Target::Run(run) => store.run(*run).await,
        }
    }

    /// Returns the run as the scheduler has it.
    pub fn find_in(&self, scheduler: &Scheduler) -> Option<RunView> {
        match self {
            Target::Request(key) => scheduler.view(scheduler.run_of(key)?),
            Target::Run(run) => scheduler.view(*run),
        }
    }
}
