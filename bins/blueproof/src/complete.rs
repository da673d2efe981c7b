//! What can be typed next: the runs, blueprints and codes that a shell offers when it is asked to complete a command.
//!
//! Somebody has pressed a key and waits. So little is looked at, nothing is written, and what cannot be had is not offered.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    fs, io,
    path::PathBuf,
    time::Duration,
};

use blueproof_core::{sqlite::SqliteStore, view::RunView};
use blueproof_diagnostic::Code;
use blueproof_notebook::blueprint;
use clap::Command;
use clap_complete::{
    CompleteEnv, Shell,
    engine::{CompletionCandidate, PathCompleter, ValueCompleter},
    env::Shells,
};
use tokio::{runtime::Builder, time::timeout};

use crate::{
    backend::Backend,
    config::{Config, ConfigFlags, ProcessEnv},
    current_project::CurrentProject,
};

/// Set by the scripts of `blueproof completion`, to the shell that asks.
const VARIABLE: &str = "BLUEPROOF_COMPLETE";

/// As many as fit on a screen.
const MOST_RUNS: usize = 20;

/// Whoever has pressed a key notices longer than this.
const SERVER_WITHIN: Duration = Duration::from_millis(500);

/// Looking at these takes less than a person notices.
const MOST_ENTRIES: usize = 10_000;

/// Answers a shell, if it is one that asks. Returns whether it is; there is nothing else to be done then.
pub(crate) fn answer_shell(command: fn() -> Command) -> bool {
    let here = env::current_dir().ok();
    CompleteEnv::with_factory(command)
        .var(VARIABLE)
        .try_complete(env::args_os(), here.as_deref())
        // What is said now would stand in the middle of the line that is typed.
        .unwrap_or(true)
}

/// Writes the script that has a shell ask.
pub(crate) fn write_script(shell: Shell, script: &mut Vec<u8>) -> io::Result<()> {
    match Shells::builtins().completer(&shell.to_string()) {
        Some(completer) => {
            completer.write_registration(VARIABLE, "blueproof", "blueproof", "blueproof", script)
        }
        None => Ok(()),
    }
}

/// Returns what stands for a run: ids, `last`, and blueprints that have runs.
pub(crate) fn runs() -> Vec<CompletionCandidate> {
    let runs = newest_runs();
    let blueprints: BTreeSet<String> = runs.iter().map(|run| run.subject.blueprint.to_string()).collect();
    let last = runs.first().map(|_| CompletionCandidate::new("last"));
    let ids = runs.iter().take(MOST_RUNS).map(|run| {
        let what = format!("{}, {}", run.subject.blueprint, run.state);
        CompletionCandidate::new(run.id.to_string()).help(Some(what.into()))
    });
    let last = last.into_iter();
    ids.chain(last)
        .chain(blueprints.into_iter().map(CompletionCandidate::new))
        .collect()
}

/// Returns the names of blueprints, of this checkout and of those that have runs.
pub(crate) fn blueprints() -> Vec<CompletionCandidate> {
    let mut names = names_here();
    names.extend(newest_runs().iter().map(|run| run.subject.blueprint.to_string()));
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Returns the names of this checkout's blueprints that begin like this, and paths.
pub(crate) fn blueprints_and_paths(typed: &OsStr) -> Vec<CompletionCandidate> {
    let begin = typed.to_str().unwrap_or_default();
    let names = names_here().into_iter().filter(|name| name.starts_with(begin));
    let mut all: Vec<_> = names.map(CompletionCandidate::new).collect();
    all.extend(PathCompleter::any().complete(typed));
    all
}

/// Returns every code, with what it means.
pub(crate) fn codes() -> Vec<CompletionCandidate> {
    let code = |code: &Code| CompletionCandidate::new(code.to_string()).help(Some(code.title().into()));
    Code::ALL.iter().map(code).collect()
}

fn names_here() -> BTreeSet<String> {
    let Ok(here) = CurrentProject::of_this_process() else {
        return BTreeSet::new();
    };
    let listing = blueprint::list_at_most(MOST_ENTRIES, here.checkout(), &mut |_| ());
    listing.found.into_iter().map(|found| found.name).collect()
}

fn newest_runs() -> Vec<RunView> {
    let runs = || {
        let config = Config::load(&typed_flags(), &ProcessEnv::of_this_process().ok()?).ok()?;
        if config.server.value.is_some() {
            return runs_of_server(&config);
        }
        // A pipe in its place would keep whoever opens it.
        fs::metadata(&config.store.value)
            .ok()
            .filter(fs::Metadata::is_file)?;
        SqliteStore::glance(&config.store.value, 2 * MOST_RUNS).ok()
    };
    runs().unwrap_or_default()
}

/// Returns the newest runs of the server that is configured, where it answers at once.
fn runs_of_server(config: &Config) -> Option<Vec<RunView>> {
    let server = Backend::server(config).ok()??;
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        timeout(SERVER_WITHIN, server.runs(2 * MOST_RUNS))
            .await
            .ok()?
            .ok()
    })
}

/// Returns the store and the configuration file that the line names, which is not parsed yet.
fn typed_flags() -> ConfigFlags {
    let typed: Vec<OsString> = env::args_os().collect();
    let value = |option: &str| {
        let with_value = format!("{option}=");
        typed.iter().enumerate().find_map(|(at, word)| {
            let word = word.to_str()?;
            if word == option {
                return typed.get(at + 1).map(PathBuf::from);
            }
            word.strip_prefix(&with_value).map(PathBuf::from)
        })
    };
    ConfigFlags {
        store: value("--store"),
        server: value("--server").and_then(|address| address.into_os_string().into_string().ok()),
        context: value("--context").and_then(|name| name.into_os_string().into_string().ok()),
        config: value("--config"),
    }
}
