//! Leading while nobody else does, and following otherwise, until something is done.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use blueproof_core::{
    domain::RequestKey,
    engine::{Engine, Ports},
    policy::Policy,
    ports::{Leadership, StoreError, Term},
    scheduler::Scheduler,
    view::RunView,
};
use blueproof_diagnostic::Diagnostic;

use crate::{Target, WaitError, target::is_taken_up};

/// How often a process that follows looks whether it may lead.
pub(crate) const LOOK_FOR_TURN: Duration = Duration::from_millis(200);

/// What is told about inputs that were quarantined.
type Tell = Box<dyn Fn(&Diagnostic) + Send + Sync>;

/// A process at a store, which leads while nobody else does.
pub struct Host {
    ports: Ports,
    leadership: Arc<dyn Leadership>,
    policy: Policy,
    kept: KeptGate,
    tell: Tell,
}

/// What of the gate's policy stays as it is in the store when this process leads, because nobody configured it otherwise: a
/// command does not open what a server that leads otherwise keeps closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptGate {
    /// Whether users approve their own runs.
    pub self_approval: bool,
    /// Who may approve the runs of others.
    pub approvers: bool,
}

impl KeptGate {
    fn apply(self, mut policy: Policy, in_force: Option<&Policy>) -> Policy {
        let Some(in_force) = in_force else {
            return policy;
        };
        if self.self_approval {
            policy.gate.local = in_force.gate.local;
        }
        if self.approvers {
            policy.gate.approvers.clone_from(&in_force.gate.approvers);
        }
        policy
    }
}

/// How far this process has led.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Led {
    /// As far as it was to.
    ToTheEnd,
    /// Somebody else leads.
    Elsewhere,
}

impl Host {
    /// Returns a host of a store; nothing happens yet. From when it leads, `policy` is in force.
    pub fn new(ports: Ports, leadership: Arc<dyn Leadership>, policy: Policy) -> Self {
        Self {
            ports,
            leadership,
            policy,
            kept: KeptGate::default(),
            tell: Box::new(|_| ()),
        }
    }

    /// Keeps these parts of the policy that is in force in the store.
    pub fn keeping(self, kept: KeptGate) -> Self {
        Self { kept, ..self }
    }

    /// Has told what is wrong with each input that was quarantined while this process led.
    pub fn telling(mut self, tell: impl Fn(&Diagnostic) + Send + Sync + 'static) -> Self {
        self.tell = Box::new(tell);
        self
    }

    /// Returns the backends.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Returns what this process is configured with: in force while it leads, but for what it [keeps](Self::keeping).
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Leads or follows until `done` holds of the target, and returns the run. Safe to drop: what runs goes on by itself.
    pub async fn until(
        &self,
        target: &Target,
        done: impl Fn(&RunView) -> bool,
    ) -> Result<RunView, WaitError> {
        let was_there = AtomicBool::new(false);
        // One that is there no more is forgotten: the store says how it ended.
        let is_done = |scheduler: &Scheduler| match target.find_in(scheduler) {
            Some(view) => {
                was_there.store(true, Relaxed);
                done(&view)
            }
            None => was_there.load(Relaxed),
        };
        loop {
            if let Some(view) = target.look(&*self.ports.store, &done).await? {
                return Ok(view);
            }
            self.lead_or_wait(&is_done).await?;
        }
    }

    /// Leads or follows until a command was taken up. Safe to drop.
    pub async fn until_taken_up(&self, command: &RequestKey) -> Result<(), WaitError> {
        while !is_taken_up(&*self.ports.store, command).await? {
            self.lead_or_wait(&|_: &Scheduler| true).await?;
        }
        Ok(())
    }

    /// Leads or follows until nothing remains to be done for any run. Safe to drop.
    pub async fn until_idle(&self) -> Result<(), StoreError> {
        loop {
            let led = self.lead(&Scheduler::is_idle).await?;
            if led == Led::ToTheEnd && self.ports.store.commands().await?.is_empty() {
                return Ok(());
            }
            // Whoever leads instead may stop as soon as its own run is over; what then remains is done here.
            tokio::time::sleep(LOOK_FOR_TURN).await;
        }
    }

    async fn lead_or_wait(&self, is_done: &impl Fn(&Scheduler) -> bool) -> Result<(), StoreError> {
        if self.lead(is_done).await? == Led::Elsewhere {
            tokio::time::sleep(LOOK_FOR_TURN).await;
        }
        Ok(())
    }

    /// Leads until `is_done` holds, or until somebody else has led, too: what they decided is read from the log then. Returns
    /// at once where somebody else leads. Safe to drop.
    pub async fn lead(&self, is_done: &impl Fn(&Scheduler) -> bool) -> Result<Led, StoreError> {
        let Some(term) = self.try_lead().await? else {
            return Ok(Led::Elsewhere);
        };
        tokio::select! {
            led = self.work(is_done) => match led {
                Ok(()) => Ok(Led::ToTheEnd),
                Err(error) if error.is_overtaken() => Ok(Led::Elsewhere),
                Err(error) => Err(error),
            },
            () = term.lost() => Ok(Led::Elsewhere),
        }
    }

    async fn work(&self, is_done: &impl Fn(&Scheduler) -> bool) -> Result<(), StoreError> {
        let mut engine = self.open_engine().await?;
        let worked = engine.run_until(is_done).await;
        engine
            .take_quarantined()
            .iter()
            .for_each(|problem| self.tell(problem));
        worked
    }

    pub(crate) async fn try_lead(&self) -> Result<Option<Box<dyn Term>>, StoreError> {
        self.leadership.try_lead().await
    }

    pub(crate) async fn open_engine(&self) -> Result<Engine, StoreError> {
        let (kept, policy) = (self.kept, self.policy.clone());
        Engine::open_after(self.ports.clone(), |in_force| kept.apply(policy, in_force)).await
    }

    pub(crate) fn tell(&self, problem: &Diagnostic) {
        (self.tell)(problem);
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
