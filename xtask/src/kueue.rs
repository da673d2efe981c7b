//! Kueue as the judge of the embedded queue: files of cases, and random scenarios that Kueue's own code decides, too.
//!
//! Both sides are programs of their own: `tools/queue-judge` has our queue in it, `tools/kueue-oracle` has Kueue's
//! scheduler. The second needs Go, which not everybody has.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::Args;

use crate::{
    go::{self, Program},
    process::{Ended, Invocation, print_line},
    tool::built,
    workspace::Workspace,
};

/// The package with our side, and its program.
pub(crate) const JUDGE: &str = "blueproof-queue-judge";

/// What to compare.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// How many scenarios.
    #[arg(long, default_value_t = 1000)]
    pub(crate) cases: u64,
    /// Where the random numbers start.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Scenarios of this kind only: cycle, fair-cycle, script, fair-script, linger, usage or edits; `all` is all by turns.
    #[arg(long)]
    pub(crate) kind: Option<String>,
}

/// Runs files of cases, or all that are in the repository.
pub(crate) fn cases(workspace: &Workspace, files: &[PathBuf]) -> Result<ExitCode> {
    let files = if files.is_empty() {
        own_cases(&workspace.root)?
    } else {
        files.to_vec()
    };
    let names = files.iter().map(|file| file.display().to_string());
    let run = Invocation::of(
        built(workspace, JUDGE)?,
        ["cases".to_owned()].into_iter().chain(names),
    );
    Ok(exit_code(run.show(Path::new("."))?))
}

fn own_cases(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = root.join("tools/queue-judge/cases");
    let listed = fs::read_dir(&folder).with_context(|| format!("could not list `{}`", folder.display()))?;
    let mut files = Vec::new();
    for file in listed {
        files.push(
            file.with_context(|| format!("could not list `{}`", folder.display()))?
                .path(),
        );
    }
    files.sort();
    Ok(files)
}

/// Compares both sides on random scenarios.
pub(crate) fn diff(workspace: &Workspace, arguments: &DiffArguments) -> Result<ExitCode> {
    let oracle = match oracle(workspace)? {
        Program::Built(program) => program,
        Program::Missing(why) => {
            print_line(&format!("error: {why}"));
            return Ok(ExitCode::FAILURE);
        }
        Program::Broken => return Ok(ExitCode::FAILURE),
    };
    let compare = compare(workspace, &oracle, arguments)?;
    Ok(exit_code(compare.show(&workspace.root)?))
}

/// Returns the call that compares both sides.
pub(crate) fn compare(workspace: &Workspace, oracle: &Path, arguments: &DiffArguments) -> Result<Invocation> {
    let (cases, seed) = (arguments.cases.to_string(), arguments.seed.to_string());
    let oracle = oracle.display().to_string();
    let mut words = vec!["diff", "--cases", &cases, "--seed", &seed, "--oracle", &oracle];
    if let Some(kind) = &arguments.kind {
        words.extend(["--kind", kind]);
    }
    Ok(Invocation::of(built(workspace, JUDGE)?, words))
}

/// Returns the call that compares the names of metrics.
pub(crate) fn metrics(workspace: &Workspace, oracle: &Path) -> Result<Invocation> {
    let oracle = oracle.display().to_string();
    Ok(Invocation::of(
        built(workspace, JUDGE)?,
        ["metrics", "--oracle", &oracle],
    ))
}

/// Builds Kueue's side; the first time that takes some minutes.
pub(crate) fn oracle(workspace: &Workspace) -> Result<Program> {
    go::build(workspace, "kueue-oracle", "kueue-oracle")
}

fn exit_code(ended: Ended) -> ExitCode {
    match ended {
        Ended::Well => ExitCode::SUCCESS,
        Ended::Badly => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cases_in_the_repository_are_found_and_in_order() {
        let workspace = Workspace::load().expect("our own workspace can be read");
        let files = own_cases(&workspace.root).expect("they can be listed");
        assert!(files.iter().any(|file| file.ends_with("kueue.yaml")), "{files:?}");
        assert!(files.is_sorted());
    }
}
