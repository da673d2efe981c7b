//! A store in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::{
    domain::{RequestKey, RunId, RunRequest},
    event::Event,
    fact::Fact,
    ports::{
        Batch, Command, CommandId, LeftCommand, LoggedFact, SNAPSHOTS_KEPT, Seq, Store, StoreClient,
        StoreError, StoredCommand, Version,
    },
    view::{OutlookView, RunView},
};

/// A store in memory. It outlives engines, not the process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: watch::Sender<State>,
}

#[derive(Debug, Default)]
struct State {
    version: u64,
    facts: Vec<LoggedFact>,
    runs: BTreeMap<RunId, RunView>,
    /// Every command that was left.
    commands: BTreeMap<CommandId, (StoredCommand, Command)>,
    /// By the fact after which it was made.
    snapshots: BTreeMap<Seq, (u32, Vec<u8>)>,
}

#[async_trait]
impl StoreClient for MemoryStore {
    async fn facts(&self, after: Seq, limit: usize) -> Result<Vec<LoggedFact>, StoreError> {
        let state = self.state.borrow();
        Ok(state
            .facts
            .iter()
            .filter(|logged| logged.seq > after)
            .take(limit)
            .cloned()
            .collect())
    }

    async fn snapshot(&self, version: u32) -> Result<Option<(Seq, Vec<u8>)>, StoreError> {
        let state = self.state.borrow();
        let last = Seq(state.facts.len() as u64);
        let snapshots = state.snapshots.range(..=last).rev();
        let mut fitting = snapshots.filter(|(_, (of, _))| *of == version);
        Ok(fitting.next().map(|(at, (_, bytes))| (*at, bytes.clone())))
    }

    async fn submit(&self, at: Timestamp, command: Command) -> Result<(), StoreError> {
        let key = command.key().clone();
        let mut is_of_another = false;
        self.state.send_if_modified(|state| {
            let mut stored = state.commands.values();
            if let Some((_, earlier)) = stored.find(|(stored, _)| stored.key == key) {
                is_of_another = *earlier != command;
                return false;
            }
            state.version += 1;
            let id = CommandId(state.commands.len() as u64 + 1);
            let stored = StoredCommand {
                key: key.clone(),
                at,
                kind: command.kind().into(),
                answer: None,
            };
            state.commands.insert(id, (stored, command.clone()));
            true
        });
        match is_of_another {
            true => Err(StoreError::key_reused(&key)),
            false => Ok(()),
        }
    }

    async fn command(&self, key: &RequestKey) -> Result<Option<StoredCommand>, StoreError> {
        let state = self.state.borrow();
        let mut stored = state.commands.values().map(|(stored, _)| stored);
        Ok(stored.find(|stored| stored.key == *key).cloned())
    }

    async fn all_commands(&self, limit: usize) -> Result<Vec<StoredCommand>, StoreError> {
        let state = self.state.borrow();
        let newest_first = state.commands.values().rev().map(|(stored, _)| stored.clone());
        Ok(newest_first.take(limit).collect())
    }

    async fn changed(&self, since: Option<Version>) -> Version {
        let mut state = self.state.subscribe();
        let changed = state
            .wait_for(|state| since != Some(Version(state.version)))
            .await;
        Version(changed.expect("the store lives as long as its borrower").version)
    }

    async fn request(&self, run: RunId) -> Result<Option<RunRequest>, StoreError> {
        let state = self.state.borrow();
        let key = state.runs.get(&run).map(|view| &view.request_key);
        let mut requests = state.facts.iter().filter_map(|logged| match &logged.fact {
            Fact::Input(Event::Requested { request }) => Some(&**request),
            Fact::Input(_) | Fact::Decision(_) => None,
        });
        Ok(requests.find(|request| Some(&request.key) == key).cloned())
    }

    async fn run(&self, run: RunId) -> Result<Option<RunView>, StoreError> {
        Ok(self.state.borrow().runs.get(&run).cloned())
    }

    async fn run_of(&self, key: &RequestKey) -> Result<Option<RunView>, StoreError> {
        Ok(self
            .state
            .borrow()
            .runs
            .values()
            .find(|view| view.request_key == *key)
            .cloned())
    }

    async fn runs_before(&self, before: Option<RunId>, limit: usize) -> Result<Vec<RunView>, StoreError> {
        Ok(self
            .state
            .borrow()
            .runs
            .values()
            .rev()
            .filter(|view| before.is_none_or(|before| view.id < before))
            .take(limit)
            .cloned()
            .collect())
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn append(&self, after: Seq, batch: Batch) -> Result<Seq, StoreError> {
        let (mut last, added) = (Seq::default(), batch.facts.len() as u64);
        self.state.send_if_modified(|state| {
            last = Seq(state.facts.len() as u64);
            if last != after {
                return false;
            }
            state.version += 1;
            for (at, fact) in batch.facts {
                let seq = Seq(state.facts.len() as u64 + 1);
                state.facts.push(LoggedFact { seq, at, fact });
            }
            state
                .runs
                .extend(batch.views.into_iter().map(|view| (view.id, view)));
            for (id, answer) in batch.taken {
                if let Some((stored, _)) = state.commands.get_mut(&id) {
                    stored.answer = Some(answer);
                }
            }
            true
        });
        if last != after {
            return Err(StoreError::overtaken(after, last));
        }
        Ok(Seq(last.0 + added))
    }

    async fn put_outlooks(&self, after: Seq, outlooks: Vec<(RunId, OutlookView)>) -> Result<(), StoreError> {
        let mut last = Seq::default();
        self.state.send_if_modified(|state| {
            last = Seq(state.facts.len() as u64);
            if last != after {
                return false;
            }
            state.version += 1;
            for (run, outlook) in outlooks {
                if let Some(view) = state.runs.get_mut(&run) {
                    view.outlook = Some(Box::new(outlook));
                }
            }
            true
        });
        if last != after {
            return Err(StoreError::overtaken(after, last));
        }
        Ok(())
    }

    async fn put_snapshot(&self, at: Seq, version: u32, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.state.send_modify(|state| {
            state.snapshots.insert(at, (version, bytes));
            while state.snapshots.len() > SNAPSHOTS_KEPT {
                state.snapshots.pop_first();
            }
        });
        Ok(())
    }

    async fn prune(&self, _at: Timestamp, runs: &[RunId]) -> Result<Vec<RunId>, StoreError> {
        let mut pruned = Vec::new();
        self.state.send_if_modified(|state| {
            for run in runs {
                if state.runs.get(run).is_some_and(|view| view.settled) {
                    state.runs.remove(run);
                    pruned.push(*run);
                }
            }
            state.version += u64::from(!pruned.is_empty());
            !pruned.is_empty()
        });
        Ok(pruned)
    }

    async fn commands(&self) -> Result<Vec<LeftCommand>, StoreError> {
        let state = self.state.borrow();
        let left = state.commands.iter();
        let left = left.filter(|(_, (stored, _))| stored.answer.is_none());
        Ok(left
            .map(|(id, (_, command))| (*id, Ok(command.clone())))
            .collect())
    }
}
