//! What a log comes to from its beginning on, whatever snapshots there are of it.

use crate::{
    fact::{Decision, Fact},
    ports::{Seq, StoreClient, StoreError},
    scheduler::{Replay, Scheduler},
    view::RunView,
};

/// How many facts are read from the log at once.
const CHUNK: usize = 4096;

/// A replay of a whole log that goes on part by part, so that no more is in memory than a scheduler remembers.
#[derive(Debug, Default)]
pub(super) struct Projection {
    replay: Replay,
    last: Seq,
}

impl Projection {
    /// Goes on by some facts, at most to the one at a position, and returns the runs that are forgotten with them, as they stood
    /// last. `None` where the log, or the way to that position, ends.
    pub(super) async fn go_on(
        &mut self,
        store: &dyn StoreClient,
        to: Seq,
    ) -> Result<Option<Vec<RunView>>, StoreError> {
        let left = usize::try_from(to.0.saturating_sub(self.last.0)).unwrap_or(usize::MAX);
        let facts = store.facts(self.last, left.min(CHUNK)).await?;
        if facts.is_empty() {
            return Ok(None);
        }
        let mut forgotten = Vec::new();
        for logged in facts {
            self.last = logged.seq.follows(self.last)?;
            if let Fact::Decision(Decision::Forgotten { runs }) = &logged.fact {
                let scheduler = self.replay.scheduler();
                forgotten.extend(runs.iter().filter_map(|run| scheduler.view(*run)));
            }
            self.replay.apply(logged.at, &logged.fact);
        }
        self.replay.take_changed();
        Ok(Some(forgotten))
    }

    /// Returns the position of the last fact that was applied.
    pub(super) fn last(&self) -> Seq {
        self.last
    }

    /// Returns the state so far.
    pub(super) fn scheduler(&self) -> &Scheduler {
        self.replay.scheduler()
    }
}
