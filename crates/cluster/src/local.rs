//! Attempts as processes on this machine.
//!
//! For each attempt a process of its own is started, the agent, in a folder of its own. The agent writes down what
//! happens there and needs nobody to listen: a scheduler that comes later reads on from where the file is. The driver
//! keeps nothing in memory that a crash could lose; all it goes by is what the agent has signed in the folder, and the
//! agent's process. `attempts` does what is asked for; what comes of it is told by `follow`.

mod agent;
mod attempts;
mod changes;
mod devices;
mod ending;
mod files;
mod follow;
mod isolation;
mod labels;
mod log;
mod machine;
mod occupancy;
mod output;
mod unhealthy;

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use blueproof_core::{
    action::{Reservation, ReservedQuota, StartAction},
    attempt::{AttemptLayout, RunsFolder},
    domain::{AttemptId, Inventory},
    event::StopMode,
    ports::{AttemptNews, CallError, ClusterDriver, News},
};
use blueproof_diagnostic::{Code, Diagnostic};
use tokio::sync::mpsc;

pub use agent::AgentCommand;
use attempts::Attempts;
pub use devices::{Devices, Holder, LookForDevices};
use follow::Followed;
pub use isolation::{IsolationPolicy, TryIsolation};
pub use occupancy::{Occupancy, Occupant};
pub use output::LocalOutput;

/// The driver that runs attempts as processes on this machine.
#[derive(Debug)]
pub struct LocalDriver {
    attempts: Arc<Attempts>,
    followed: Followed,
}

impl LocalDriver {
    /// Returns a driver that keeps attempts in the folder `runs` and Python environments in `environments`.
    /// Nothing is made before it is needed.
    pub fn new(runs: RunsFolder, environments: PathBuf, agent: AgentCommand) -> Self {
        Self {
            attempts: Arc::new(Attempts::new(runs, environments, agent)),
            followed: Followed::default(),
        }
    }

    /// Has it look for accelerators when they are first asked for, give them to attempts, and look again before that
    /// whether they are fit.
    pub fn with_devices(mut self, look: LookForDevices) -> Self {
        self.change(|attempts| attempts.set_devices(look));
        self
    }

    /// Has it run notebooks in a sandbox by this policy, and try whether it can when it is first asked. Without this it says
    /// that it does not isolate.
    pub fn with_isolation(mut self, policy: IsolationPolicy, attempt: TryIsolation) -> Self {
        self.change(|attempts| attempts.set_isolation(policy, attempt));
        self
    }

    /// Sets how long an agent has to end by itself before it is killed; 20 seconds otherwise.
    pub fn with_release_grace(mut self, grace: Duration) -> Self {
        self.change(|attempts| attempts.set_release_grace(grace));
        self
    }

    fn change(&mut self, change: impl FnOnce(&mut Attempts)) {
        change(Arc::get_mut(&mut self.attempts).expect("nothing was asked of a driver that is being made"));
    }

    /// Returns what this machine has. It looks for accelerators the first time, which may take seconds.
    pub async fn inventory(&self) -> Result<Inventory, CallError> {
        let inventory = self.attempts.inventory().await?;
        self.followed.tell_inventory(inventory.clone()).await;
        Ok(inventory)
    }

    /// Returns what the attempts leave.
    pub fn output(&self) -> Arc<LocalOutput> {
        self.attempts.output()
    }

    /// Returns where an attempt's files are.
    pub fn layout(&self, attempt: AttemptId) -> AttemptLayout {
        self.attempts.layout(attempt)
    }
}

fn decides_nothing(cluster_queue: &str) -> CallError {
    let message = format!("nothing on this machine decides about quota of the ClusterQueue {cluster_queue}");
    let diagnostic = Diagnostic::error(Code::QuotaNotDecided, message);
    CallError::never(
        diagnostic.hint("take `blueproof.dev/admission: External` from the ClusterQueue, and apply it again"),
    )
}

#[async_trait]
impl ClusterDriver for LocalDriver {
    fn news(&self) -> mpsc::Receiver<News> {
        self.followed.listen(&self.attempts)
    }

    async fn reserve(&self, reservation: &Reservation) -> Result<(), CallError> {
        let attempt = reservation.attempt;
        match &reservation.quota {
            ReservedQuota::Requested(request) => return Err(decides_nothing(&request.cluster_queue)),
            ReservedQuota::Assigned(assignment) => labels::check(reservation, assignment)?,
        }
        let placement = self.attempts.reserve(attempt, reservation.resources()).await;
        // It was looked at which devices are fit.
        self.followed.look_at_inventory(&self.attempts).await;
        let placement = placement?;
        self.followed
            .tell(attempt, AttemptNews::Reserved(placement))
            .await;
        Ok(())
    }

    async fn start(&self, start: &StartAction) -> Result<(), CallError> {
        self.attempts.start(start).await?;
        self.followed.follow(&self.attempts, start.attempt);
        Ok(())
    }

    async fn observe(&self, attempt: AttemptId) -> Result<(), CallError> {
        self.followed.follow(&self.attempts, attempt);
        Ok(())
    }

    async fn stop(&self, attempt: AttemptId, how: StopMode) -> Result<(), CallError> {
        self.attempts.stop(attempt, how).await
    }

    async fn release(&self, attempt: AttemptId) -> Result<(), CallError> {
        self.followed.release(&self.attempts, attempt);
        Ok(())
    }
}
