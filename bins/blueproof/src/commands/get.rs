//! `blueproof get runs`, and which things can be got.

use std::{collections::BTreeMap, time::Duration};

use blueproof_core::{
    domain::{RunId, RunState},
    ports::Version,
    view::RunView,
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;

use crate::{
    backend::Backend,
    cli::{Get, GetCommands, GetKind, GetRuns, Status},
    config::ConfigFlags,
    exit::{Exit, Problem},
    output::{self, Document, Encoding, Format, Width},
    reading::{self, LeaderWatch, Reading},
    select::RunSelector,
    show::{
        self,
        runs::{self, Columns, Listed, RunArtifacts},
    },
};

/// How often it is looked whether there is a store at last, and whether somebody drives.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) fn get(arguments: &Get, flags: &ConfigFlags) -> Result<Exit, Problem> {
    match &arguments.kind {
        GetKind::Runs(arguments) => reading::block_on(get_runs(arguments, flags)),
        GetKind::Blueprints(arguments) => super::blueprints::get_blueprints(arguments),
        GetKind::Commands(arguments) => reading::block_on(get_commands(arguments, flags)),
        GetKind::Events(arguments) => reading::block_on(super::events::get_events(arguments, flags)),
    }
}

async fn get_commands(arguments: &GetCommands, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let reading = Reading::open(flags)?;
    let commands = match &reading.store {
        Some(store) => store.all_commands(arguments.limit as usize).await?,
        None => Vec::new(),
    };
    match arguments.output {
        Some(format) => {
            let document = Document::list("CommandList", "Command", commands);
            output::print(&output::encode(&document, format.into())?)?;
        }
        None if commands.is_empty() => output::note("no commands yet"),
        None => output::print(&show::audit::commands(&commands).render(output::width()))?,
    }
    Ok(Exit::Ok)
}

pub(crate) async fn get_runs(arguments: &GetRuns, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let mut reading = Reading::open(flags)?;
    if let (None, Some(named)) = (&reading.store, arguments.runs.first()) {
        return Err(Problem::usage(named.unknown(None)));
    }
    let format = arguments.output;
    while reading.store.is_none() && arguments.watch {
        tokio::time::sleep(LOOK_EVERY).await;
        reading = Reading::open(flags)?;
    }
    let Some(store) = &reading.store else {
        print_all(&[], None, format, Shape::List)?;
        reading.say_there_is_no_store();
        return Ok(Exit::Ok);
    };
    if arguments.watch {
        return watch(store, arguments).await;
    }
    let mut found = find(store, arguments).await?;
    let shape = shape(arguments);
    found.runs = match shape {
        Shape::One => found
            .runs
            .into_iter()
            .map(|run| arguments.attempt.of(run))
            .collect::<Result<_, _>>()?,
        Shape::List if arguments.attempt.attempt.is_some() => return Err(Problem::usage(attempt_of_many())),
        Shape::List => found.runs,
    };
    let kept = match (shape, found.runs.as_slice()) {
        (Shape::One, [run]) => reading::kept(&**store, &store.output(), run).await?,
        (Shape::One | Shape::List, _) => None,
    };
    print_all(&found.runs, kept, format, shape)?;
    found.say_what_is_left_out(arguments);
    reading::say_who_is_left_alone(store, &found.runs)?;
    Ok(Exit::Ok)
}

fn attempt_of_many() -> Diagnostic {
    Diagnostic::error(Code::Usage, "`--attempt` is of one run, and a list was asked for")
        .hint("name the run by its id, or as `last`: `blueproof get run last --attempt 1`")
}

/// Runs that were asked for, and whether there are more.
struct Found {
    runs: Vec<RunView>,
    rest: Rest,
}

enum Rest {
    None,
    Older,
}

impl Found {
    fn say_what_is_left_out(&self, arguments: &GetRuns) {
        match self.rest {
            Rest::Older => output::note(&format!(
                "older runs are left out: `--limit {}` shows more",
                arguments.limit.saturating_mul(2)
            )),
            Rest::None if self.runs.is_empty() => output::note("no such runs"),
            Rest::None => {}
        }
    }
}

async fn find(store: &Backend, arguments: &GetRuns) -> Result<Found, Problem> {
    let limit = arguments.limit as usize;
    let mut runs = if arguments.runs.is_empty() {
        // A filter may pass over any number of runs; without one, one more than wanted tells whether there are more.
        let filtered = arguments.blueprint.is_some() || !arguments.status.is_empty();
        let most = if filtered { i64::MAX as usize } else { limit + 1 };
        store.runs(most).await?
    } else {
        named(store, &arguments.runs).await?
    };
    runs.retain(|view| is_wanted(view, arguments));
    let rest = if runs.len() > limit {
        Rest::Older
    } else {
        Rest::None
    };
    runs.truncate(limit);
    Ok(Found { runs, rest })
}

async fn named(store: &Backend, selectors: &[RunSelector]) -> Result<Vec<RunView>, Problem> {
    let mut runs = BTreeMap::new();
    for selector in selectors {
        let named = match selector {
            RunSelector::Blueprint(_) => of_blueprint(store, selector).await?,
            RunSelector::Id(_) | RunSelector::Last => vec![selector.resolve(&**store).await?],
        };
        runs.extend(named.into_iter().map(|view| (view.id, view)));
    }
    Ok(runs.into_values().rev().collect())
}

/// Returns all runs of a blueprint: who lists runs by its name wants more than the newest.
async fn of_blueprint(store: &Backend, selector: &RunSelector) -> Result<Vec<RunView>, Problem> {
    let mut runs = store.runs(i64::MAX as usize).await?;
    runs.retain(|view| selector.may_be(view));
    if runs.is_empty() {
        let newest = store.runs(1).await?.pop();
        return Err(Problem::usage(selector.unknown(newest.as_ref())));
    }
    Ok(runs)
}

fn is_wanted(view: &RunView, arguments: &GetRuns) -> bool {
    let blueprint = arguments.blueprint.as_ref();
    let statuses = &arguments.status;
    blueprint.is_none_or(|name| view.subject.blueprint == *name)
        && (statuses.is_empty() || statuses.iter().any(|status| status.holds(view.state)))
}

/// Whether one run was asked for, or a list.
#[derive(Clone, Copy)]
enum Shape {
    One,
    List,
}

fn shape(arguments: &GetRuns) -> Shape {
    match arguments.runs.as_slice() {
        [RunSelector::Id(_) | RunSelector::Last] => Shape::One,
        _ => Shape::List,
    }
}

/// Prints runs; of a single one also what is kept of it.
fn print_all(
    views: &[RunView],
    kept: Option<RunArtifacts>,
    format: Option<Format>,
    shape: Shape,
) -> Result<(), Problem> {
    let encoding = match format {
        Some(Format::Json) => Encoding::Json,
        Some(Format::Yaml) => Encoding::Yaml,
        Some(Format::Name) => return output::print(&names(views)),
        Some(Format::Wide) => return print_table(views, Columns::Wide),
        None => return print_table(views, Columns::Usual),
    };
    let text = match (shape, views) {
        (Shape::One, [view]) => {
            let run = Listed::of(view).with(kept);
            output::encode(&Document::new("Run", run), encoding)?
        }
        (Shape::One | Shape::List, _) => {
            let listed = views.iter().map(Listed::of);
            output::encode(&Document::list("RunList", "Run", listed), encoding)?
        }
    };
    output::print(&text)
}

fn print_table(views: &[RunView], columns: Columns) -> Result<(), Problem> {
    if views.is_empty() {
        return Ok(());
    }
    let table = runs::table(views, views, Timestamp::now(), columns);
    output::print(&table.render(output::width()))
}

fn names(views: &[RunView]) -> String {
    views.iter().map(|view| format!("{}\n", view.id)).collect()
}

/// Lists runs, and each of them again whenever it has changed, for ever.
async fn watch(store: &Backend, arguments: &GetRuns) -> Result<Exit, Problem> {
    let mut shown: BTreeMap<RunId, Shown> = BTreeMap::new();
    let mut seen: Option<Version> = None;
    let mut widths: Vec<usize> = Vec::new();
    let (mut leader_watch, mut listed) = (LeaderWatch::default(), Vec::new());
    loop {
        let Ok(version) = tokio::time::timeout(LOOK_EVERY, store.changed(seen)).await else {
            leader_watch.look(store, &listed)?;
            continue;
        };
        seen = Some(version);
        listed = find(store, arguments).await?.runs;
        let mut runs = listed.clone();
        runs.retain(|view| shown.get(&view.id) != Some(&Shown::of(view)));
        if runs.is_empty() {
            continue;
        }
        print_changed(&runs, &listed, arguments.output, &mut widths)?;
        shown.extend(runs.iter().map(|view| (view.id, Shown::of(view))));
    }
}

/// What counts as a change of a run that is shown: others come and go all the time before one that waits.
#[derive(PartialEq)]
struct Shown {
    facts: RunView,
    reason: Option<String>,
}

impl Shown {
    fn of(view: &RunView) -> Self {
        Self {
            facts: view.clone().without_outlook(),
            reason: view.waits().map(|reason| reason.as_str().to_owned()),
        }
    }
}

fn print_changed(
    views: &[RunView],
    among: &[RunView],
    format: Option<Format>,
    widths: &mut Vec<usize>,
) -> Result<(), Problem> {
    let encoding = match format {
        Some(Format::Json) => Encoding::JsonLine,
        Some(Format::Yaml) => Encoding::YamlStream,
        Some(Format::Name) => return output::print(&names(views)),
        Some(Format::Wide) => return print_more(views, among, Columns::Wide, widths),
        None => return print_more(views, among, Columns::Usual, widths),
    };
    for view in views {
        output::print(&output::encode(
            &Document::new("Run", Listed::of(view)),
            encoding,
        )?)?;
    }
    Ok(())
}

/// Goes on with a table whose header has been printed, if it has.
fn print_more(
    views: &[RunView],
    among: &[RunView],
    columns: Columns,
    widths: &mut Vec<usize>,
) -> Result<(), Problem> {
    let table = runs::table(views, among, Timestamp::now(), columns);
    let limit: Width = output::width();
    let text = if widths.is_empty() {
        *widths = table.widths();
        table.render(limit)
    } else {
        table.render_rows(widths, limit)
    };
    output::print(&text)
}

impl Status {
    fn holds(self, state: RunState) -> bool {
        use blueproof_core::domain::Ending;
        let ended = |ending| state == RunState::Ended(ending);
        match self {
            Status::Active => !matches!(state, RunState::Ended(_)),
            Status::Ended => matches!(state, RunState::Ended(_)),
            Status::AwaitingApproval => state == RunState::AwaitingApproval,
            Status::Queued => state == RunState::Queued,
            Status::Reserved => state == RunState::Reserved,
            Status::Starting => state == RunState::Starting,
            Status::Running => state == RunState::Running,
            Status::Passed => ended(Ending::Passed),
            Status::Failed => ended(Ending::Failed),
            Status::InfrastructureFailed => ended(Ending::InfrastructureFailed),
            Status::TimedOut => ended(Ending::TimedOut),
            Status::Cancelled => ended(Ending::Cancelled),
            Status::Refused => ended(Ending::Refused),
            Status::Superseded => ended(Ending::Superseded),
        }
    }
}
