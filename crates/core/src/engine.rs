//! Carries out what the scheduler wants, and decides nothing.
//!
//! Facts are in the log before the actions that follow are carried out. After a crash the log is replayed, and what is still
//! outstanding is carried out again: every action may be repeated, so it does not matter how far it came.

mod incoming;
mod journal;
mod perform;
mod reports;
mod rows;

use std::sync::Arc;

use blueproof_diagnostic::Diagnostic;
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::{
    action::Action,
    domain::RunState,
    event::Event,
    policy::Policy,
    ports::{
        Answer, Batch, Clock, Clusters, CommandId, Reporter, RunStatus, Seq, Store, StoreClient, StoreError,
        Version,
    },
    scheduler::{Changed, Replay, SNAPSHOT_VERSION, Scheduler, Snapshot},
    view::RunView,
};
use incoming::{Handle, Incoming};
use perform::{Calls, Came};
use rows::Rows;

/// How many facts are read from the log at once.
const REPLAY_CHUNK: usize = 4096;

/// How many facts may come before the state is written down again: replaying so many takes some ten milliseconds, as writing
/// down a thousand runs does. Where more runs are known than that, there are as many facts as runs between two snapshots, so
/// that each fact bears the same cost however many there are.
const SNAPSHOT_EVERY: u64 = 4096;

/// How many bytes of a snapshot a fact bears at most: runs of long jobs make it large, and then it is written less often.
const SNAPSHOT_BYTES: u64 = 4096;

/// The backends that an engine works with.
#[derive(Clone)]
pub struct Ports {
    /// What outlives us.
    pub store: Arc<dyn Store>,
    /// Where attempts run.
    pub clusters: Clusters,
    /// Where runs are reported to.
    pub reporters: Vec<Arc<dyn Reporter>>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// The scheduler with its log and its backends.
///
/// One engine works on a store at a time. A second one cannot append: whichever comes later is told that it was
/// [overtaken](StoreError::is_overtaken), and must be opened again. Dropping an engine leaves every attempt running; the
/// next one on the same store takes them over.
pub struct Engine {
    ports: Ports,
    scheduler: Scheduler,
    calls: Calls,
    seen: Option<Version>,
    /// Where the log ends, as far as this engine knows.
    last: Seq,
    /// After which fact the state was last written down, or was to be.
    written_down: Seq,
    /// How many bytes that had; zero where it was an earlier engine's.
    snapshot_bytes: u64,
    handle: Handle,
    /// Which rows are to be worked out again.
    rows: Rows,
    /// What is wrong with inputs that were quarantined, and was not told yet.
    quarantined: Vec<Diagnostic>,
    woken: Arc<Notify>,
}

/// Has an engine look whether it is done, though nothing has happened.
#[derive(Debug, Clone)]
pub struct Waker(Arc<Notify>);

impl Waker {
    /// Wakes the engine now, or as soon as it is about to wait. Does not wait.
    pub fn wake(&self) {
        self.0.notify_one();
    }
}

impl Engine {
    /// Replays the store's log, takes over what an earlier engine left, and from now on goes by `policy`.
    pub async fn open(ports: Ports, policy: Policy) -> Result<Self, StoreError> {
        Self::open_after(ports, |_| policy).await
    }

    /// Opens the store as [`Self::open`] does, by a policy that follows from the one that was in force, if there was one.
    pub async fn open_after(
        ports: Ports,
        policy: impl FnOnce(Option<&Policy>) -> Policy,
    ) -> Result<Self, StoreError> {
        let Replayed {
            mut scheduler,
            last,
            written_down,
        } = Replayed::of(&*ports.store).await?;
        let policy = policy(scheduler.policy());
        let is_new = scheduler.policy() != Some(&policy);
        let outstanding = scheduler.outstanding();
        scheduler.take_changed();
        let calls = Calls::new(ports.clone());
        let mut engine = Self {
            ports,
            scheduler,
            calls,
            seen: None,
            last,
            written_down,
            snapshot_bytes: 0,
            handle: Scheduler::handle,
            rows: Rows::default(),
            quarantined: Vec::new(),
            woken: Arc::default(),
        };
        engine.carry_out(outstanding);
        let configured = is_new.then(|| Event::Configured {
            policy: Box::new(policy),
        });
        // What a cluster has is known at once where it was looked at before: nothing is admitted by an older inventory.
        let known = engine.ready();
        let inputs = configured.into_iter().map(Incoming::from).chain(known);
        engine.take_in(inputs.collect(), Vec::new()).await?;
        Ok(engine)
    }

    /// Returns what wakes this engine.
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.woken))
    }

    /// Returns the state of everything.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Works until `done` holds; it is asked after everything that happens, and when it is [woken](Engine::waker).
    ///
    /// An error means that the log cannot be written, that somebody else has written to it, or that nothing can be decided:
    /// attempts go on by themselves then.
    pub async fn run_until(&mut self, mut done: impl FnMut(&Scheduler) -> bool) -> Result<(), StoreError> {
        loop {
            self.take_up_commands().await?;
            if self
                .rows
                .due(&self.scheduler)
                .is_some_and(|due| due <= self.ports.clock.now())
            {
                self.refresh_rows().await?;
            }
            if done(&self.scheduler) {
                return self.finish_rows().await;
            }
            let came = tokio::select! {
                came = self.calls.next() => came,
                version = self.ports.store.changed(self.seen) => {
                    self.seen = Some(version);
                    continue;
                }
                () = self.woken.notified() => continue,
                () = sleep_until(&*self.ports.clock, self.scheduler.next_wakeup()) => Came::Event(Event::Tick),
                () = sleep_until(&*self.ports.clock, self.rows.due(&self.scheduler)) => continue,
            };
            let mut inputs: Vec<_> = self.input_of(came).into_iter().collect();
            inputs.extend(self.ready());
            self.take_in(inputs, Vec::new()).await?;
        }
    }

    /// Returns what came meanwhile.
    fn ready(&mut self) -> Vec<Incoming> {
        let came: Vec<Came> = std::iter::from_fn(|| self.calls.try_next()).collect();
        came.into_iter().filter_map(|came| self.input_of(came)).collect()
    }

    /// Returns what is to be decided about what came, if anything is: what a cluster says of another's attempts, and what it
    /// said before of itself, is no input.
    fn input_of(&self, came: Came) -> Option<Incoming> {
        match came {
            Came::Event(event) => Some(event.into()),
            Came::News(cluster, news) => incoming::of_news(&self.scheduler, cluster, news),
        }
    }

    async fn take_up_commands(&mut self) -> Result<(), StoreError> {
        let left = self.ports.store.commands().await?;
        if left.is_empty() {
            return Ok(());
        }
        let (inputs, answered) = incoming::sort(left);
        self.take_in(inputs, answered).await
    }

    /// Decides about inputs, logs that, and carries out what follows. An input about which deciding fails is quarantined: the
    /// others are decided about as if it had not come. `taken` are commands that were answered before.
    async fn take_in(
        &mut self,
        mut inputs: Vec<Incoming>,
        mut taken: Vec<(CommandId, Answer)>,
    ) -> Result<(), StoreError> {
        let now = self.ports.clock.now();
        let handled = loop {
            match incoming::handle_all(&mut self.scheduler, self.handle, now, &inputs) {
                Ok(handled) => break handled,
                Err(panicked) => {
                    self.decide_without(now, &panicked.message).await?;
                    let Incoming { input, command } = inputs.remove(panicked.at);
                    let problem = incoming::quarantined(&input, &panicked.message);
                    taken.extend(command.map(|id| (id, Answer::Quarantined(Box::new(problem.clone())))));
                    journal::write_quarantined(&problem);
                    self.quarantined.push(problem);
                }
            }
        };
        taken.extend(handled.taken);
        let (mut facts, mut actions) = (Vec::new(), Vec::new());
        for step in handled.steps {
            facts.extend(step.facts.into_iter().map(|fact| (step.at, fact)));
            actions.extend(step.actions);
        }
        let Changed { runs, forgotten } = self.scheduler.take_changed();
        let mut views = self.rows.of_step(&self.scheduler, now, runs);
        views.extend(forgotten);
        let told = self.calls.reports().are_wanted().then(|| views.clone());
        if !facts.is_empty() {
            self.rows.on_facts();
        }
        if !(facts.is_empty() && views.is_empty() && taken.is_empty()) {
            let lines = journal::of(&self.scheduler, &facts);
            let batch = Batch { facts, views, taken };
            self.last = self.ports.store.append(self.last, batch).await?;
            // Only what is in the log has happened.
            lines.into_iter().for_each(journal::Line::write);
        }
        told.into_iter().flatten().for_each(|view| self.report(view));
        self.carry_out(actions);
        self.write_down().await;
        Ok(())
    }

    /// Works out again how runs stand among the others, and puts that into their rows.
    ///
    /// Rows that cannot be written, as on a disk that is full, stay as old as they say they are.
    async fn refresh_rows(&mut self) -> Result<(), StoreError> {
        let outlooks = self.rows.refresh(&self.scheduler, self.ports.clock.now());
        if outlooks.is_empty() {
            return Ok(());
        }
        let moved = match self.calls.reports().are_wanted() {
            true => self.rows.moved(&self.scheduler, &outlooks),
            false => Vec::new(),
        };
        match self.ports.store.put_outlooks(self.last, outlooks).await {
            Err(error) if error.is_overtaken() => return Err(error),
            Ok(()) | Err(_) => {}
        }
        moved.into_iter().for_each(|view| self.report(view));
        Ok(())
    }

    /// Leaves rows that say how runs stand after everything that happened, as far as one refresh goes: nobody may go on.
    async fn finish_rows(&mut self) -> Result<(), StoreError> {
        if self.rows.are_behind(self.ports.clock.now()) {
            return self.refresh_rows().await;
        }
        Ok(())
    }

    /// Writes the state down where many facts came since it was last. What is to be done is under way by then.
    ///
    /// Where that fails, as on a disk that has room for facts and not for this, nothing is lost but time when the store is
    /// opened: it is tried again as many facts later, and a store that is broken says so at the next append.
    async fn write_down(&mut self) {
        let known = u64::try_from(self.scheduler.runs().len()).unwrap_or(u64::MAX);
        let every = SNAPSHOT_EVERY
            .max(known)
            .max(self.snapshot_bytes / SNAPSHOT_BYTES);
        if self.last.0 - self.written_down.0 < every {
            return;
        }
        let bytes = self.scheduler.snapshot().to_bytes();
        (self.written_down, self.snapshot_bytes) = (self.last, bytes.len() as u64);
        let put = self.ports.store.put_snapshot(self.last, SNAPSHOT_VERSION, bytes);
        let _ = put.await;
    }

    /// Goes back to what the log says, after deciding about an input failed. Where what is due by time fails as well, it was not
    /// the input, and nothing can be decided any more.
    async fn decide_without(&mut self, now: Timestamp, message: &str) -> Result<(), StoreError> {
        self.rebuild().await?;
        let tick = [Incoming::from(Event::Tick)];
        let due = incoming::handle_all(&mut self.scheduler, self.handle, now, &tick);
        due.map_err(|_| incoming::cannot_decide(message))?;
        self.rebuild().await
    }

    async fn rebuild(&mut self) -> Result<(), StoreError> {
        let Replayed {
            mut scheduler, last, ..
        } = Replayed::of(&*self.ports.store).await?;
        if last != self.last {
            return Err(StoreError::overtaken(self.last, last));
        }
        scheduler.take_changed();
        self.scheduler = scheduler;
        Ok(())
    }

    /// Returns what is wrong with inputs that were quarantined since this was last asked.
    pub fn take_quarantined(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.quarantined)
    }

    /// Has another function decide, such as one that fails as a mistake in the scheduler would.
    #[cfg(any(test, feature = "testing"))]
    pub fn deciding_by(mut self, handle: Handle) -> Self {
        self.handle = handle;
        self
    }

    /// Has reporters told of a run that goes on; of its end they are told by an action.
    fn report(&self, view: RunView) {
        if let Some(request) = self.scheduler.request(view.id)
            && !matches!(view.state, RunState::Ended(_))
        {
            self.calls.reports().tell(RunStatus {
                revision: self.last.0,
                request: request.clone(),
                view,
                passed: None,
            });
        }
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            self.calls.begin(action, self.last);
        }
    }
}

/// Returns a scheduler that has come to what the store's log comes to, and the policy that was last in force.
///
/// It only reads, and decides nothing; whoever wants to know why a run waits asks this scheduler.
pub async fn replay(store: &dyn StoreClient) -> Result<(Scheduler, Option<Policy>), StoreError> {
    let replayed = Replayed::of(store).await?;
    let policy = replayed.scheduler.policy().cloned();
    Ok((replayed.scheduler, policy))
}

/// What a log comes to, up to its last fact.
struct Replayed {
    scheduler: Scheduler,
    last: Seq,
    /// After which fact the snapshot was made that it began with; zero is none.
    written_down: Seq,
}

impl Replayed {
    async fn of(store: &dyn StoreClient) -> Result<Self, StoreError> {
        let (mut replay, written_down) = begin(store).await;
        let mut last = written_down;
        loop {
            let facts = store.facts(last, REPLAY_CHUNK).await?;
            if facts.is_empty() {
                let scheduler = replay.finish();
                return Ok(Self {
                    scheduler,
                    last,
                    written_down,
                });
            }
            for logged in facts {
                last = logged.seq.follows(last)?;
                replay.apply(logged.at, &logged.fact);
            }
            replay.take_changed();
        }
    }
}

/// Returns where a replay begins: at the newest snapshot that can be taken up, or at the log's beginning. The log has it all,
/// so whatever is wrong with a snapshot is no error; what is wrong with the store the log's own reading tells.
async fn begin(store: &dyn StoreClient) -> (Replay, Seq) {
    let found = store.snapshot(SNAPSHOT_VERSION).await.ok().flatten();
    let taken_up = found.and_then(|(at, bytes)| {
        let replay = Snapshot::from_bytes(&bytes).and_then(Replay::from_snapshot);
        Some((replay.ok()?, at))
    });
    taken_up.unwrap_or_default()
}

async fn sleep_until(clock: &dyn Clock, at: Option<Timestamp>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}
