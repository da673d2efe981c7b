//! A cluster in memory.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::objects::Objects;
use tokio::sync::{mpsc, watch};

use super::{contract::Upset, external::ExternalQueue, samples::outcome};
use crate::{
    action::{QuotaRequest, Reservation, ReservedQuota, StartAction},
    domain::{AttemptId, Inventory, Isolation, Outcome, Placement, Resources, Verdict},
    event::StopMode,
    ports::{AttemptNews, CallError, ClusterDriver, NEWS_AT_MOST, News},
};

/// A cluster in memory, on which attempts end when the test says so.
#[derive(Debug)]
pub struct FakeCluster {
    inventory: watch::Sender<Arc<Inventory>>,
    /// Whether an attempt has its place as soon as that is asked for.
    places_at_once: bool,
    ends: Ends,
    /// What decides about quota, where the cluster does.
    queue: Option<Mutex<ExternalQueue>>,
    state: watch::Sender<State>,
    listeners: Mutex<Vec<mpsc::Sender<News>>>,
}

/// When attempts end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    AtOnce,
    WhenTold,
}

#[derive(Debug, Default)]
struct State {
    attempts: BTreeMap<AttemptId, Phase>,
    starts: BTreeMap<AttemptId, u32>,
    failing: Option<CallError>,
}

#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Pending,
    /// Its cluster has not given it quota.
    Requested,
    Reserved,
    Running,
    Finished(Box<Outcome>),
    Released,
}

impl FakeCluster {
    /// Returns a cluster on which every attempt passes at once.
    pub fn passing(total: Resources) -> Self {
        Self::new(total, true, Ends::AtOnce)
    }

    /// Returns a cluster on which attempts run until [`finish`](Self::finish) is called or they are stopped.
    pub fn waiting(total: Resources) -> Self {
        Self::new(total, true, Ends::WhenTold)
    }

    /// Returns a cluster on which attempts wait for a place until [`place`](Self::place) is called, and then run as on
    /// [`waiting`](Self::waiting).
    pub fn crowded(total: Resources) -> Self {
        Self::new(total, false, Ends::WhenTold)
    }

    /// Returns a cluster that decides about quota itself, by these objects and Kueue's rules, and on which attempts run as on
    /// [`waiting`](Self::waiting). Those that come with quota have a place at once.
    pub fn admitting(total: Resources, objects: Objects) -> Self {
        Self {
            queue: Some(Mutex::new(ExternalQueue::new(objects))),
            ..Self::waiting(total)
        }
    }

    fn new(total: Resources, places_at_once: bool, ends: Ends) -> Self {
        Self {
            queue: None,
            inventory: watch::Sender::new(Arc::new(inventory(total))),
            places_at_once,
            ends,
            state: watch::Sender::default(),
            listeners: Mutex::default(),
        }
    }

    /// Gives a waiting attempt its place.
    pub fn place(&self, attempt: AttemptId) {
        self.change(attempt, |phase| match phase {
            Phase::Pending => Some(Phase::Reserved),
            Phase::Requested | Phase::Reserved | Phase::Running | Phase::Finished(_) | Phase::Released => {
                None
            }
        });
    }

    /// Takes the quota of an attempt back, for a reason that only the cluster knows.
    pub fn evict(&self, attempt: AttemptId, reason: &str) {
        self.tell_news(
            attempt,
            AttemptNews::Evicted {
                reason: reason.into(),
                message: "the test says so".into(),
            },
        );
    }

    /// Loses an attempt: nothing of it is left, and nobody knows why.
    pub fn lose(&self, attempt: AttemptId) {
        self.state.send_modify(|state| {
            state.attempts.insert(attempt, Phase::Released);
        });
        self.tell_news(
            attempt,
            AttemptNews::Lost {
                message: "the test says so".into(),
            },
        );
    }

    /// Has something else than before, and tells of it.
    pub fn change_inventory(&self, total: Resources) {
        let inventory = Arc::new(inventory(total));
        self.inventory.send_replace(Arc::clone(&inventory));
        self.tell_all(&News::Inventory(inventory));
    }

    /// Tells whatever a test wants told, true or not.
    pub fn tell_news(&self, attempt: AttemptId, news: AttemptNews) {
        self.tell_all(&News::Attempt { attempt, news });
    }

    fn tell_all(&self, news: &News) {
        // Tests tell of fewer things than may wait, and one that listens no more is told nothing.
        self.listeners()
            .retain(|listener| listener.try_send(news.clone()).is_ok());
    }

    /// Ends a running attempt.
    pub fn finish(&self, attempt: AttemptId, outcome: Outcome) {
        self.change(attempt, |_| Some(Phase::Finished(Box::new(outcome))));
    }

    /// Tells once more how an attempt stands, as clusters do.
    pub fn repeat(&self, attempt: AttemptId) {
        let phase = self.state.borrow().attempts.get(&attempt).cloned();
        if let Some(phase) = phase {
            self.tell(attempt, &phase);
        }
    }

    /// Lets the next reserve or start fail.
    pub fn fail_next(&self, error: CallError) {
        self.state.send_modify(|state| state.failing = Some(error));
    }

    /// Returns the attempts that run.
    pub fn running(&self) -> Vec<AttemptId> {
        let is_running = |phase: &Phase| *phase == Phase::Running;
        self.those(is_running)
    }

    /// Returns the attempts that wait for a place.
    pub fn pending(&self) -> Vec<AttemptId> {
        self.those(|phase| matches!(phase, Phase::Pending | Phase::Requested))
    }

    /// Returns the attempts of which something is left.
    pub fn left(&self) -> Vec<AttemptId> {
        self.those(|phase| *phase != Phase::Released)
    }

    fn those(&self, of: impl Fn(&Phase) -> bool) -> Vec<AttemptId> {
        let state = self.state.borrow();
        let those = state.attempts.iter().filter(|(_, phase)| of(phase));
        those.map(|(id, _)| *id).collect()
    }

    /// Returns how often an attempt really began.
    pub fn starts(&self, attempt: AttemptId) -> u32 {
        self.state.borrow().starts.get(&attempt).copied().unwrap_or(0)
    }

    /// Waits until `holds` is true of the attempts that run.
    pub async fn until_running(&self, holds: impl Fn(&[AttemptId]) -> bool) {
        self.until(|cluster| holds(&cluster.running())).await;
    }

    /// Waits until something holds.
    pub async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let mut state = self.state.subscribe();
        while !holds(self) {
            let changed = state.changed().await;
            changed.expect("the cluster lives as long as its borrower");
        }
    }

    /// Takes an attempt to its next phase, if it has one, and tells of it.
    fn change(&self, attempt: AttemptId, next: impl FnOnce(&Phase) -> Option<Phase>) {
        let mut changed = None;
        self.state.send_modify(|state| {
            changed = state.attempts.get(&attempt).and_then(next);
            if let Some(phase) = &changed {
                state.attempts.insert(attempt, phase.clone());
            }
        });
        if let Some(phase) = changed {
            self.tell(attempt, &phase);
        }
    }

    fn tell(&self, attempt: AttemptId, phase: &Phase) {
        let news = match phase {
            Phase::Pending => AttemptNews::Pending {
                reason: "Crowded".into(),
                message: "others have every place".into(),
            },
            // Why it waits its queue tells.
            Phase::Requested => return,
            Phase::Reserved => AttemptNews::Reserved(self.placement(attempt)),
            Phase::Running => AttemptNews::Running,
            Phase::Finished(outcome) => AttemptNews::Finished {
                outcome: outcome.clone(),
                ended_at: None,
            },
            Phase::Released => AttemptNews::Released,
        };
        self.tell_news(attempt, news);
    }

    fn placement(&self, attempt: AttemptId) -> Placement {
        let placement = self
            .with_queue(|queue| queue.placement(attempt).cloned())
            .flatten();
        placement.unwrap_or_else(|| Placement::on("memory"))
    }

    /// Has the queue of the cluster do something, where it has one.
    fn with_queue<T>(&self, work: impl FnOnce(&mut ExternalQueue) -> T) -> Option<T> {
        let queue = self.queue.as_ref()?;
        Some(work(&mut queue.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Tells what the queue of the cluster decides now.
    fn decide(&self) {
        for (attempt, news) in self.with_queue(ExternalQueue::decide).unwrap_or_default() {
            if let AttemptNews::Reserved(_) = news {
                self.state.send_modify(|state| {
                    state.attempts.insert(attempt, Phase::Reserved);
                });
            }
            self.tell_news(attempt, news);
        }
    }

    /// Asks the queue of the cluster for quota.
    fn request(&self, reservation: &Reservation, request: &QuotaRequest) -> Result<(), CallError> {
        let attempt = reservation.attempt;
        let asked = self.with_queue(|queue| {
            queue.forget_told(attempt);
            queue.request(attempt, request, &reservation.pod_sets);
        });
        if asked.is_none() {
            let message = "this cluster decides about no quota";
            return Err(CallError::never(Diagnostic::error(
                Code::QuotaNotDecided,
                message,
            )));
        }
        self.state.send_modify(|state| {
            let phase = state.attempts.entry(attempt).or_insert(Phase::Requested);
            // One that was released before it began may be asked for again.
            if *phase == Phase::Released && !state.starts.contains_key(&attempt) {
                *phase = Phase::Requested;
            }
        });
        self.repeat(attempt);
        self.decide();
        Ok(())
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<mpsc::Sender<News>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fails(&self) -> Result<(), CallError> {
        let mut failing = None;
        self.state.send_modify(|state| failing = state.failing.take());
        failing.map_or(Ok(()), Err)
    }
}

impl Upset for FakeCluster {
    fn evict(&self, attempt: AttemptId, reason: &str) {
        self.evict(attempt, reason);
    }

    fn lose(&self, attempt: AttemptId) {
        self.lose(attempt);
    }
}

#[async_trait]
impl ClusterDriver for FakeCluster {
    fn news(&self) -> mpsc::Receiver<News> {
        let (sender, receiver) = mpsc::channel(NEWS_AT_MOST);
        let inventory = News::Inventory(self.inventory.borrow().clone());
        sender.try_send(inventory).expect("it has room");
        self.listeners().push(sender);
        receiver
    }

    async fn reserve(&self, reservation: &Reservation) -> Result<(), CallError> {
        self.fails()?;
        let attempt = reservation.attempt;
        if let ReservedQuota::Requested(request) = &reservation.quota {
            return self.request(reservation, request);
        }
        let asked = match self.places_at_once {
            true => Phase::Reserved,
            false => Phase::Pending,
        };
        self.state.send_modify(|state| {
            state.attempts.entry(attempt).or_insert(asked);
        });
        self.repeat(attempt);
        Ok(())
    }

    async fn start(&self, start: &StartAction) -> Result<(), CallError> {
        self.fails()?;
        let attempt = start.attempt;
        let begun = match self.ends {
            Ends::AtOnce => Phase::Finished(Box::new(outcome(Verdict::Passed))),
            Ends::WhenTold => Phase::Running,
        };
        self.state.send_modify(|state| {
            if state.attempts.get(&attempt) == Some(&Phase::Reserved) {
                *state.starts.entry(attempt).or_default() += 1;
                state.attempts.insert(attempt, begun);
            }
        });
        self.repeat(attempt);
        Ok(())
    }

    async fn observe(&self, attempt: AttemptId) -> Result<(), CallError> {
        if !self.state.borrow().attempts.contains_key(&attempt) {
            let lost = Diagnostic::error(Code::AttemptLost, format!("nothing is known of {attempt}"));
            return Err(CallError::never(lost));
        }
        self.repeat(attempt);
        Ok(())
    }

    async fn stop(&self, attempt: AttemptId, _how: StopMode) -> Result<(), CallError> {
        self.change(attempt, |phase| match phase {
            Phase::Running => Some(Phase::Finished(Box::new(outcome(Verdict::Stopped)))),
            Phase::Pending | Phase::Requested | Phase::Reserved | Phase::Finished(_) | Phase::Released => {
                None
            }
        });
        Ok(())
    }

    async fn release(&self, attempt: AttemptId) -> Result<(), CallError> {
        self.state.send_modify(|state| {
            if let Some(phase) = state.attempts.get_mut(&attempt) {
                *phase = Phase::Released;
            }
        });
        self.with_queue(|queue| queue.remove(attempt));
        self.tell(attempt, &Phase::Released);
        self.decide();
        Ok(())
    }
}

fn inventory(total: Resources) -> Inventory {
    Inventory {
        // What runs in memory runs nothing.
        isolation: Isolation::Sandboxed,
        ..Inventory::of_one_node("memory", total, "a cluster in memory")
    }
}
