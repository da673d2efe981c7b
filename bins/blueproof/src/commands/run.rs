//! `blueproof run BLUEPRINT`: from a blueprint to a request, and with it to the end.

use std::path::{Path, PathBuf};

use blueproof_core::{
    diagnostic::{Code, Diagnostic, Place},
    domain::{Priority, QueueName, RunRequest},
    ports::Command,
};
use blueproof_notebook::{
    blueprint::{self, Blueprint, Resolved},
    plan::Network,
    report::UNFENCED,
};

use super::{
    follow::{conclude, detach, follow},
    quota::unknown_queue,
};
use crate::{
    cli::Run,
    exit::{Exit, Problem},
    output,
    session::{Session, Target, local_user, new_key},
};

/// The queue of whoever names none.
const DEFAULT_QUEUE: &str = "local";

pub(crate) async fn run(session: &Session, arguments: &Run) -> Result<Exit, Problem> {
    let resolved = resolve(arguments)?;
    if resolved.plan.network != Network::Any {
        output::note(&format!("note: {UNFENCED}"));
    }
    let queue = queue(session, arguments.queue.as_deref()).await?;
    let request = request(resolved, queue, arguments.priority)?;
    let target = Target::Request(request.key.clone());
    anstream::eprintln!(
        "{} · store {}",
        session.description,
        brief_path(session.store.path())
    );
    session
        .submit(Command::Run {
            request: Box::new(request),
        })
        .await?;
    if arguments.detach {
        return detach(session, &target, |_| true, arguments.output).await;
    }
    match follow(session, &target, |view| view.settled).await? {
        Some(view) => conclude(session, &view, arguments.output),
        None => Ok(Exit::Interrupted),
    }
}

/// Returns a path as people write it: what lies in their home begins with `~`.
fn brief_path(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_path_buf)) {
        Some(inside) => format!("~/{}", inside.display()),
        None => path.display().to_string(),
    }
}

fn resolve(arguments: &Run) -> Result<Resolved, Problem> {
    let path = find(&arguments.blueprint)?;
    let loaded = Blueprint::load(&path)?;
    Ok(loaded.resolve(arguments.profile.as_deref(), &arguments.parameters)?)
}

/// Returns the path that was typed, or that of the blueprint which is called so in this checkout.
pub(crate) fn find(typed: &str) -> Result<PathBuf, Problem> {
    let path = Path::new(typed);
    if path.exists() || typed.contains('/') || typed.ends_with(".ipynb") || typed.ends_with(".yaml") {
        return Ok(path.into());
    }
    Ok(blueprint::find(&checkout_root()?, typed)?)
}

/// Returns the folder that the checkout we stand in begins with, or the one we stand in.
pub(crate) fn checkout_root() -> Result<PathBuf, Problem> {
    let here = std::env::current_dir().map_err(|error| {
        Problem::usage(Diagnostic::error(Code::FileMissing, "the current folder is gone").caused_by(&error))
    })?;
    let root = here
        .ancestors()
        .find(|folder| folder.join(".git").exists() || folder.join(".blueproof").is_dir());
    Ok(root.unwrap_or(&here).to_path_buf())
}

/// Returns the LocalQueue that was named, or the one that goes without saying.
async fn queue(session: &Session, named: Option<&str>) -> Result<QueueName, Problem> {
    let applied = session.store.applied_quota().await?;
    let objects = applied.unwrap_or_else(|| session.policy.default_objects());
    let known = objects.local_queues.keys();
    let only = known.clone().next().filter(|_| known.len() == 1);
    let wanted = match (named, only) {
        (Some(named), _) => named,
        (None, Some(only)) => only,
        (None, None) => DEFAULT_QUEUE,
    };
    let found = known.clone().find(|known| *known == wanted);
    let name = found.and_then(|found| found.parse().ok());
    name.ok_or_else(|| {
        let unknown = unknown_queue("LocalQueue", wanted, known);
        Problem::usage(unknown.hint("`blueproof run BLUEPRINT --queue NAME` chooses one"))
    })
}

fn request(resolved: Resolved, queue: QueueName, priority: i32) -> Result<RunRequest, Problem> {
    let folder = resolved.checkout.clone();
    let request = resolved.request(new_key(), local_user(), queue, Priority(priority));
    request.map_err(|error| unreadable(&folder, &error))
}

fn unreadable(folder: &Path, error: &dyn std::error::Error) -> Problem {
    let diagnostic = Diagnostic::error(Code::FileMissing, "could not read the blueprint's folder");
    Problem::usage(
        diagnostic
            .at(Place::file(folder.display().to_string()))
            .caused_by(error),
    )
}
