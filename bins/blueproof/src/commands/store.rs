//! `blueproof store`: whether it is whole, and what is removed from it.

use std::cell::RefCell;

use blueproof_cluster::local::LocalOutput;
use blueproof_core::{
    ports::Leadership,
    sqlite::{SqliteStore, StoreCheck, StoreProblem},
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use blueproof_host::{PrunePlan, Pruned, RetentionError, RetentionLimit};
use jiff::Timestamp;

use crate::{
    cli::{StoreArguments, StoreCommand, StorePrune},
    config::{Config, ConfigFlags, Origin, ProcessEnv},
    exit::{Exit, Problem},
    output::{self, Cell, Document, Table},
    reading::{block_on, named_but_missing},
    show::{self, pace::Pace, text::counted},
};

/// The most problems that are listed.
const LISTED: usize = 20;

pub(crate) fn store(arguments: &StoreArguments, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let config = Config::load(flags, &ProcessEnv::of_this_process()?)?;
    let Some(store) = open(&config)? else {
        let store = &config.store;
        if store.origin != Origin::BuiltIn {
            return Err(Problem::usage(named_but_missing(&store.value, &store.origin)));
        }
        output::note(&format!("no store at {}", config.store.value.display()));
        return Ok(Exit::Ok);
    };
    block_on(async {
        match &arguments.command {
            StoreCommand::Check(_) => check(&store).await,
            StoreCommand::Repair(_) => repair(&store).await,
            StoreCommand::Prune(arguments) => prune(&store, &config, arguments).await,
        }
    })
}

/// Opens the store's file: what is done here is done where that is.
fn open(config: &Config) -> Result<Option<SqliteStore>, Problem> {
    if let Some(server) = &config.server.value {
        let message = "a store is looked after on the machine where it is";
        let elsewhere = Diagnostic::error(Code::Usage, message)
            .because(format!("`{server}` is asked, as {} has it", config.server.origin));
        return Err(Problem::usage(elsewhere.hint(
            "name the file there with `--store FILE`; `blueproof-scheduler serve --retention-age 90d` prunes by itself",
        )));
    }
    Ok(SqliteStore::open_existing(&config.store.value)?)
}

async fn check(store: &SqliteStore) -> Result<Exit, Problem> {
    let found = with_pace(async |progress| store.check(progress).await).await?;
    tell(
        store,
        &found,
        "`blueproof store repair` makes them again as the log says",
    )
}

async fn repair(store: &SqliteStore) -> Result<Exit, Problem> {
    let Some(_term) = store.try_lead().await? else {
        return Err(Problem::usage(led(store)));
    };
    let found = with_pace(async |progress| store.repair(progress).await).await?;
    if found.problems.is_empty() || found.problems.iter().any(|problem| !problem.is_repairable()) {
        return tell(store, &found, "all else was repaired");
    }
    let repaired = counted(found.problems.len(), "problem");
    output::print(&format!("{}repaired {repaired}\n", listed(&found.problems)))?;
    Ok(Exit::Ok)
}

fn led(store: &SqliteStore) -> Diagnostic {
    let who = store
        .leader()
        .map_or_else(String::new, |pid| format!(" (process {pid})"));
    Diagnostic::error(
        Code::StoreInUse,
        format!("another process works with the store{who}"),
    )
    .at(SourceLocation::file(store.path().display().to_string()))
    .hint("stop it, or wait until its runs are over; `blueproof store check` works beside it")
}

/// Says what was found; what is wrong is a failure.
fn tell(store: &SqliteStore, found: &StoreCheck, remedy: &str) -> Result<Exit, Problem> {
    let StoreCheck {
        facts,
        runs,
        pruned,
        problems,
    } = found;
    let told = |count: u64, noun| counted(usize::try_from(count).unwrap_or(usize::MAX), noun);
    let (facts, runs) = (told(*facts, "fact"), told(*runs, "run"));
    let gone = match pruned {
        0 => String::new(),
        pruned => format!(", {pruned} of them not kept any more"),
    };
    if problems.is_empty() {
        output::print(&format!("the store is whole: {facts}, {runs}{gone}\n"))?;
        return Ok(Exit::Ok);
    }
    let message = format!("the store is not whole: {}", counted(problems.len(), "problem"));
    let mut diagnostic = Diagnostic::error(Code::StoreNotWhole, message)
        .at(SourceLocation::file(store.path().display().to_string()));
    diagnostic.causes = problems.iter().take(LISTED).map(ToString::to_string).collect();
    if problems.len() > LISTED {
        diagnostic
            .causes
            .push(format!("and {} more", problems.len() - LISTED));
    }
    if problems.iter().any(|problem| !problem.is_repairable()) {
        let hint = "what SQLite finds damaged is not repaired here: go on with a copy of the store, or try `sqlite3 FILE .recover`";
        diagnostic = diagnostic.hint(hint);
    }
    Err(Problem {
        diagnostics: vec![diagnostic.hint(remedy)],
        exit: Exit::Failed,
    })
}

fn listed(problems: &[StoreProblem]) -> String {
    let lines = problems.iter().take(LISTED).map(|problem| format!("{problem}\n"));
    let more = problems.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("and {more} more\n"));
    lines.chain(more).collect()
}

async fn prune(store: &SqliteStore, config: &Config, arguments: &StorePrune) -> Result<Exit, Problem> {
    let kept = LocalOutput::new(config.runs_of(store.identity()));
    let now = Timestamp::now();
    let plan = arguments.limits.retention().plan(store, &kept, now).await;
    let plan = plan.map_err(problem)?;
    if arguments.dry_run {
        show_plan(&plan, arguments, now)?;
        return Ok(Exit::Ok);
    }
    let pace = RefCell::new(Pace::new("runs pruned"));
    let pruned = plan
        .carry_out(store, &kept, now, |_| pace.borrow_mut().add(1))
        .await?;
    drop(pace);
    show_plan(&plan, arguments, now)?;
    pruned.problems.iter().for_each(show::aside);
    if arguments.output.is_none() {
        output::note(&told(&pruned));
    }
    Ok(match pruned.problems.is_empty() {
        true => Exit::Ok,
        false => Exit::Infrastructure,
    })
}

fn problem(error: RetentionError) -> Problem {
    match error {
        RetentionError::Store(error) => error.into(),
        RetentionError::Output(error) => error.into(),
    }
}

fn show_plan(plan: &PrunePlan, arguments: &StorePrune, now: Timestamp) -> Result<(), Problem> {
    if let Some(format) = arguments.output {
        return output::print(&output::encode(&Document::new("PrunePlan", plan), format.into())?);
    }
    let removed = match arguments.dry_run {
        true => "TO REMOVE",
        false => "REMOVED",
    };
    let mut table = Table::new(["RUN", "ENDED", "OUTPUT", removed, "BEYOND"]);
    for item in &plan.items {
        let (removed, beyond) = match item.beyond {
            RetentionLimit::Age => ("run and output", "--retention-age"),
            RetentionLimit::Runs => ("run and output", "--retention-runs"),
            RetentionLimit::Output => ("output", "--retention-output"),
        };
        let ended = item.ended_at.map_or_else(String::new, |at| output::ago(at, now));
        table.row([
            Cell::from(item.run.to_string()),
            Cell::from(ended),
            Cell::from(item.output.rounded().to_string()),
            Cell::from(removed),
            Cell::from(beyond),
        ]);
    }
    if !plan.items.is_empty() {
        output::print(&table.render(output::width()))?;
    }
    let rest = match plan.kept_output {
        Some(bytes) => format!(" with {} of output", bytes.rounded()),
        None => String::new(),
    };
    let kept = counted(plan.kept_runs, "run");
    let would = match arguments.dry_run {
        true => format!("would free {}; ", plan.freed().rounded()),
        false => String::new(),
    };
    output::note(&format!("{would}kept of those that are over: {kept}{rest}"));
    Ok(())
}

fn told(pruned: &Pruned) -> String {
    let runs = counted(pruned.runs.len(), "run");
    let outputs = counted(pruned.outputs.len(), "run");
    format!(
        "removed {runs}, and the output of {outputs}: {} freed",
        pruned.freed.rounded()
    )
}

/// Shows how far something is that goes through the log.
async fn with_pace<T>(work: impl AsyncFnOnce(&dyn Fn(u64, u64)) -> T) -> T {
    let pace = RefCell::new((Pace::new("facts compared"), 0));
    let progress = |facts: u64, _: u64| {
        let (pace, before) = &mut *pace.borrow_mut();
        pace.add(facts.saturating_sub(*before));
        *before = facts;
    };
    work(&progress).await
}
