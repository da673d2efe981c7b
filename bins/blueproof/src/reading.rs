//! Looking at a store that others may be writing, that nobody drives, or that is not there yet.

use std::{
    future::Future,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use blueproof_core::{
    domain::{RunId, RunState},
    engine,
    ports::{AttemptOutput, LoggedFact, Seq, StoreClient, StoreError},
    scheduler::Scheduler,
    view::RunView,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};

use crate::{
    backend::Backend,
    config::{Config, ConfigFlags, Origin, ProcessEnv},
    exit::{Exit, Problem},
    output,
    select::RunSelector,
    session,
    show::{self, runs::RunArtifacts},
};

/// How many events are read at once.
const CHUNK: usize = 4096;

/// Longer than it takes the next process to notice that it is its turn to drive.
const TAKE_OVER: Duration = Duration::from_secs(1);

/// The store of runs, to be read.
pub(crate) struct Reading {
    pub(crate) config: Config,
    /// `None` where nothing was ever stored.
    pub(crate) store: Option<Backend>,
}

impl Reading {
    /// Opens what is configured, and creates nothing.
    pub(crate) fn open(flags: &ConfigFlags) -> Result<Self, Problem> {
        let config = Config::load(flags, &ProcessEnv::of_this_process()?)?;
        let store = Backend::existing(&config)?;
        Ok(Self { config, store })
    }

    /// Returns everything as it stands after the last event. Where nobody ever asked for a run or applied queues, the
    /// queues are those that this machine makes.
    pub(crate) async fn scheduler(&self) -> Result<Scheduler, Problem> {
        if let Some(store) = &self.store
            && let (scheduler, Some(_)) = engine::replay(&**store).await?
        {
            return Ok(scheduler);
        }
        Ok(Scheduler::new(session::policy_here(&self.config).await?))
    }

    /// Returns the same to be shown as what the store says. One that somebody named and that is not there says nothing: a
    /// typing error or a disk that is not mounted is no idle machine. The usual one comes with the first run.
    pub(crate) async fn scheduler_as_stored(&self) -> Result<Scheduler, Problem> {
        if self.store.is_none() {
            let store = &self.config.store;
            if store.origin != Origin::BuiltIn {
                return Err(Problem::usage(named_but_missing(&store.value, &store.origin)));
            }
            self.say_there_is_no_store();
        }
        self.scheduler().await
    }

    /// Says on stderr that there is no store yet.
    pub(crate) fn say_there_is_no_store(&self) {
        output::note(&format!(
            "no store at {}, so no runs yet: `blueproof run BLUEPRINT` makes the first",
            self.config.store.value.display()
        ));
    }

    /// Returns the store where a run is looked for in it.
    pub(crate) fn store_with(&self, run: &RunSelector) -> Result<&Backend, Problem> {
        let store = self.store.as_ref();
        store.ok_or_else(|| Problem::usage(run.unknown(None)))
    }
}

/// Returns what is said of a store that somebody named and that is not there.
pub(crate) fn named_but_missing(store: &Path, named_by: &Origin) -> Diagnostic {
    Diagnostic::error(Code::StoreBroken, "the store that was named is not there")
        .at(SourceLocation::file(store.display().to_string()))
        .because(format!("{named_by} names it"))
        .hint("see that the name is right and that its disk is mounted; the first `blueproof run` or `quota apply` makes a store")
}

/// Hands on all facts of a store, the oldest first, a part of them at a time.
pub(crate) async fn facts(
    store: &Backend,
    mut take: impl FnMut(Vec<LoggedFact>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut after = Seq::default();
    loop {
        let facts = store.facts(after, CHUNK).await?;
        let Some(last) = facts.last() else { return Ok(()) };
        after = last.seq;
        take(facts)?;
    }
}

/// Returns what is kept of a run; nothing of one that goes on.
pub(crate) async fn kept(
    store: &dyn StoreClient,
    output: &Arc<dyn AttemptOutput>,
    run: &RunView,
) -> Result<Option<RunArtifacts>, Problem> {
    if !matches!(run.state, RunState::Ended(_)) {
        return Ok(None);
    }
    let passed = match &run.last_pass {
        Some(pass) => store.run(pass.attempt.run).await?,
        None => None,
    };
    Ok(Some(RunArtifacts::of(run, passed.as_ref(), output).await))
}

/// Waits for what a command does.
pub(crate) fn block_on<T>(command: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Problem {
        diagnostics: vec![
            Diagnostic::error(Code::StoreBroken, "nothing can be waited for").caused_by(&error),
        ],
        exit: Exit::Infrastructure,
    })?;
    let done = runtime.block_on(command);
    // Work that does not come to its end, such as a read of a disk that hangs, keeps nobody here.
    runtime.shutdown_background();
    done
}

/// Says on stderr which of these runs should go on and are driven by nobody.
pub(crate) fn say_who_is_left_alone(store: &Backend, views: &[RunView]) -> Result<(), StoreError> {
    if let Some(warning) = left_alone(store, views)? {
        show::aside(&warning);
    }
    Ok(())
}

/// Says on stderr, while runs are watched, that nobody drives them any more: once each time that this begins.
#[derive(Default)]
pub(crate) struct LeaderWatch {
    looked_at: Option<Instant>,
    found: Found,
}

/// What was found at the last look.
#[derive(Default, Clone, Copy)]
enum Found {
    #[default]
    Driven,
    Alone,
    AloneAndSaid,
}

impl LeaderWatch {
    /// Looks after the runs as they stand now. To be called often; the first look counts for nothing, because the next
    /// process may be about to take over.
    pub(crate) fn look(&mut self, store: &Backend, views: &[RunView]) -> Result<(), StoreError> {
        if self.looked_at.is_some_and(|at| at.elapsed() < TAKE_OVER) {
            return Ok(());
        }
        self.looked_at = Some(Instant::now());
        self.found = match (self.found, left_alone(store, views)?) {
            (_, None) => Found::Driven,
            (Found::Driven, Some(_)) => Found::Alone,
            (Found::Alone, Some(warning)) => {
                show::aside(&warning);
                Found::AloneAndSaid
            }
            (Found::AloneAndSaid, Some(_)) => Found::AloneAndSaid,
        };
        Ok(())
    }
}

/// Returns what is to be said where runs should go on and nobody drives.
fn left_alone(store: &Backend, views: &[RunView]) -> Result<Option<Diagnostic>, StoreError> {
    let unfinished: Vec<RunId> = views
        .iter()
        .filter(|view| needs_driving(view))
        .map(|view| view.id)
        .collect();
    if unfinished.is_empty() {
        return Ok(None);
    }
    let Some(file) = store.file() else {
        // A server works for as long as it answers.
        return Ok(None);
    };
    if file.is_led()? {
        return Ok(session::stopped_driver(store));
    }
    Ok(warning(&unfinished))
}

/// Returns whether something remains to be done that does not wait for a person.
fn needs_driving(view: &RunView) -> bool {
    !view.settled && view.state != RunState::AwaitingApproval
}

fn warning(ids: &[RunId]) -> Option<Diagnostic> {
    let (oldest, others) = (ids.iter().min()?, ids.len() - 1);
    let whom = match others {
        0 => oldest.to_string(),
        1 => format!("{oldest} and 1 other"),
        _ => format!("{oldest} and {others} others"),
    };
    let message = format!("no process drives {whom}: what runs goes on by itself, but nothing is started");
    let warning = Diagnostic::warning(Code::LeftAlone, message);
    Some(warning.hint(format!("`blueproof wait {oldest}` takes over")))
}
