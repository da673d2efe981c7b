//! For how long a store keeps runs that are over, and what they left.
//!
//! The log stays as it is: what was counted and learnt, and who approved what, follows from all of it.

use blueproof_core::{
    domain::{Bytes, RunId},
    ports::{OutputError, RemovableOutput, Store, StoreClient, StoreError},
    view::RunView,
};
use blueproof_diagnostic::Diagnostic;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How many rows are read and removed at once.
const CHUNK: usize = 1000;

/// For how long runs that are over are kept; with no limit at all, for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// How long after its end a run is kept.
    pub age: Option<SignedDuration>,
    /// How many runs are kept: those that ended last.
    pub runs: Option<usize>,
    /// How many bytes all that attempts left may take, with the reports. Of the runs that ended first it is removed until the rest
    /// takes no more; the runs themselves stay.
    pub output: Option<Bytes>,
}

/// What is to be removed, the run that ended first at the front.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "api", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PrunePlan {
    /// What is to be removed.
    pub items: Vec<PruneItem>,
    /// How many runs that are over are kept.
    pub kept_runs: usize,
    /// How many bytes of output are kept of them; absent where that was not measured, because nothing limits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_output: Option<Bytes>,
}

/// A run of which something is to be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "api", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PruneItem {
    /// The run.
    pub run: RunId,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How many attempts it has.
    pub attempts: u32,
    /// How many bytes are kept of it.
    pub output: Bytes,
    /// Which limit it is beyond.
    pub beyond: RetentionLimit,
}

/// A limit of what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "api", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum RetentionLimit {
    /// How long a run is kept: it goes with its output.
    Age,
    /// How many runs are kept: it goes with its output.
    Runs,
    /// How many bytes of output are kept: its output goes, and it stays.
    Output,
}

/// What was removed.
#[derive(Debug, Default)]
pub struct Pruned {
    /// The runs that are not kept any more.
    pub runs: Vec<RunId>,
    /// The runs whose output was removed, those that are not kept any more among them.
    pub outputs: Vec<RunId>,
    /// How many bytes that freed.
    pub freed: Bytes,
    /// What could not be removed. It is tried again the next time.
    pub problems: Vec<Diagnostic>,
}

/// Why it cannot be told what is to be removed.
#[derive(Debug, thiserror::Error)]
pub enum RetentionError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is kept of a run cannot be measured.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Retention {
    /// Returns whether everything is kept for ever.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Returns what is to be removed as things stand. Nothing is removed; it takes time in proportion to how much is kept.
    pub async fn plan(
        &self,
        store: &dyn StoreClient,
        output: &dyn RemovableOutput,
        now: Timestamp,
    ) -> Result<PrunePlan, RetentionError> {
        if self.is_unlimited() {
            return Ok(PrunePlan::default());
        }
        let mut settled = settled_runs(store).await?;
        settled.sort_by_key(|run| (run.ended_at, run.run));
        let n_settled = settled.len();
        let mut plan = PrunePlan {
            kept_output: self.output.map(|_| Bytes(0)),
            ..PrunePlan::default()
        };
        let mut kept = Vec::new();
        for (index, run) in settled.into_iter().enumerate() {
            match self.beyond(&run, n_settled - index, now) {
                Some(beyond) => {
                    let output = output.size(run.run).await?;
                    plan.items.push(run.item(output, beyond));
                }
                None => kept.push(run),
            }
        }
        plan.kept_runs = kept.len();
        if let Some(limit) = self.output {
            plan.limit_output(kept, limit, output).await?;
        }
        Ok(plan)
    }

    /// Returns which limit a run is beyond; `newest` is how many runs ended last, with it.
    fn beyond(&self, run: &Settled, newest: usize, now: Timestamp) -> Option<RetentionLimit> {
        let age = run.ended_at.map(|ended_at| now.duration_since(ended_at));
        if let (Some(age), Some(limit)) = (age, self.age)
            && age > limit
        {
            return Some(RetentionLimit::Age);
        }
        self.runs
            .is_some_and(|runs| newest > runs)
            .then_some(RetentionLimit::Runs)
    }
}

impl PrunePlan {
    /// Adds the output of runs that ended first, until the rest takes no more than the limit.
    async fn limit_output(
        &mut self,
        kept: Vec<Settled>,
        limit: Bytes,
        output: &dyn RemovableOutput,
    ) -> Result<(), RetentionError> {
        let (mut rest, mut measured) = (0_u64, Vec::new());
        for run in kept {
            let bytes = output.size(run.run).await?;
            rest = rest.saturating_add(bytes.0);
            measured.push((run, bytes));
        }
        for (run, bytes) in measured {
            if rest <= limit.0 {
                break;
            }
            if bytes > Bytes(0) {
                rest -= bytes.0;
                self.items.push(run.item(bytes, RetentionLimit::Output));
            }
        }
        self.kept_output = Some(Bytes(rest));
        Ok(())
    }

    /// Returns how many bytes carrying it out frees.
    pub fn freed(&self) -> Bytes {
        Bytes(self.items.iter().map(|item| item.output.0).sum())
    }

    /// Removes what the plan names: first output, then rows, so that what cannot be removed is found again. A run that is tried
    /// again since the plan was made stays. It may be carried out again, and by a process that does not lead. `progress` is told
    /// how many of the items are done.
    pub async fn carry_out(
        &self,
        store: &dyn Store,
        output: &dyn RemovableOutput,
        now: Timestamp,
        progress: impl Fn(usize),
    ) -> Result<Pruned, StoreError> {
        let (mut pruned, mut done) = (Pruned::default(), 0);
        for items in self.items.chunks(CHUNK) {
            let mut rows = Vec::new();
            for item in items {
                let removed = still_over(store, item).await? && pruned.remove_output(item, output).await;
                if removed && item.beyond != RetentionLimit::Output {
                    rows.push(item.run);
                }
                done += 1;
                progress(done);
            }
            pruned.runs.extend(store.prune(now, &rows).await?);
        }
        Ok(pruned)
    }
}

impl Pruned {
    /// Removes what is kept of a run, and returns whether all of it is gone.
    async fn remove_output(&mut self, item: &PruneItem, output: &dyn RemovableOutput) -> bool {
        match output.remove(item.run, item.attempts).await {
            Ok(()) => {
                self.outputs.push(item.run);
                self.freed.0 += item.output.0;
                true
            }
            Err(error) => {
                self.problems.push(error.to_diagnostic());
                false
            }
        }
    }
}

/// A run that is over.
struct Settled {
    run: RunId,
    ended_at: Option<Timestamp>,
    attempts: u32,
}

impl Settled {
    fn of(view: &RunView) -> Option<Self> {
        view.settled.then(|| Self {
            run: view.id,
            ended_at: view.ended_at,
            attempts: u32::try_from(view.attempts.len()).unwrap_or(u32::MAX),
        })
    }

    fn item(self, output: Bytes, beyond: RetentionLimit) -> PruneItem {
        PruneItem {
            run: self.run,
            ended_at: self.ended_at,
            attempts: self.attempts,
            output,
            beyond,
        }
    }
}

async fn settled_runs(store: &dyn StoreClient) -> Result<Vec<Settled>, StoreError> {
    let (mut settled, mut before) = (Vec::new(), None);
    loop {
        let views = store.runs_before(before, CHUNK).await?;
        let Some(last) = views.last() else {
            return Ok(settled);
        };
        before = Some(last.id);
        settled.extend(views.iter().filter_map(Settled::of));
    }
}

/// Returns whether a run is as it was when the plan was made.
async fn still_over(store: &dyn StoreClient, item: &PruneItem) -> Result<bool, StoreError> {
    let view = store.run(item.run).await?;
    Ok(view.is_some_and(|view| view.settled && view.ended_at == item.ended_at))
}
