//! Looking at a store that others may be writing, that nobody drives, or that is not there yet.

use std::future::Future;

use blueproof_core::{
    diagnostic::{Code, Diagnostic},
    domain::{RunId, RunState},
    ports::StoreError,
    sqlite::SqliteStore,
    view::RunView,
};

use crate::{
    cli::Place,
    config::{Config, Surroundings},
    exit::{Exit, Problem},
    select::RunSelector,
    show,
};

/// The store of runs, to be read.
pub(crate) struct Reading {
    pub(crate) config: Config,
    /// `None` where nothing was ever stored.
    pub(crate) store: Option<SqliteStore>,
}

impl Reading {
    /// Opens what is configured, and creates nothing.
    pub(crate) fn open(place: &Place) -> Result<Self, Problem> {
        let config = Config::load(place, &Surroundings::of_this_process()?)?;
        let store = SqliteStore::open_existing(&config.store.value)?;
        Ok(Self { config, store })
    }

    /// Returns the store where a run is looked for in it.
    pub(crate) fn store_with(&self, run: &RunSelector) -> Result<&SqliteStore, Problem> {
        let store = self.store.as_ref();
        store.ok_or_else(|| Problem::usage(run.unknown(None)))
    }
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
    runtime.block_on(command)
}

/// Says on stderr which of these runs should go on and are driven by nobody.
pub(crate) fn say_who_is_left_alone(store: &SqliteStore, views: &[RunView]) -> Result<(), StoreError> {
    let unfinished: Vec<&RunView> = views.iter().filter(|view| needs_driving(view)).collect();
    if !unfinished.is_empty()
        && !store.is_led()?
        && let Some(warning) = left_alone(&unfinished)
    {
        show::aside(&warning);
    }
    Ok(())
}

/// Returns whether something remains to be done that does not wait for a person.
fn needs_driving(view: &RunView) -> bool {
    !view.settled && view.state != RunState::AwaitingApproval
}

fn left_alone(views: &[&RunView]) -> Option<Diagnostic> {
    let ids: Vec<RunId> = views.iter().map(|view| view.id).collect();
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
