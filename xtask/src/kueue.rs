//! Kueue as the judge of the embedded queue: files of cases, and random scenarios that Kueue's own code decides, too.
//!
//! Both sides are programs of their own: `tools/queue-judge` has our queue in it, `tools/kueue-oracle` has Kueue's
//! scheduler. The second needs Go, which not everybody has.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{
    process::{Ended, Invocation, print_line},
    workspace::Workspace,
};

/// The package with our side, and its program.
pub(crate) const JUDGE: &str = "blueproof-queue-judge";

const NO_GO: &str = "Go is not here: https://go.dev/doc/install, or `apt-get install golang-go`";
const NO_MODULES: &str = "Go could not fetch Kueue's module and what it needs; see `go env GOPROXY`";

/// What to compare.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// How many scenarios.
    #[arg(long, default_value_t = 1000)]
    pub(crate) cases: u64,
    /// Where the random numbers start.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Scenarios of this kind only: cycle, fair-cycle, script, fair-script or linger; `all` is all by turns.
    #[arg(long)]
    pub(crate) kind: Option<String>,
}

/// Kueue's code as a program.
#[derive(Debug)]
pub(crate) enum Oracle {
    /// It is built.
    Built(PathBuf),
    /// It cannot be built here, and why.
    Missing(&'static str),
    /// It should build, and does not.
    Broken,
}

/// Runs files of cases, or all that are in the repository.
pub(crate) fn cases(workspace: &Workspace, files: &[PathBuf]) -> Result<ExitCode> {
    let files = if files.is_empty() {
        own_cases(&workspace.root)?
    } else {
        files.to_vec()
    };
    let names = files.iter().map(|file| file.display().to_string());
    let run = Invocation::of(judge(workspace)?, ["cases".to_owned()].into_iter().chain(names));
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
        Oracle::Built(program) => program,
        Oracle::Missing(why) => {
            print_line(&format!("error: {why}"));
            return Ok(ExitCode::FAILURE);
        }
        Oracle::Broken => return Ok(ExitCode::FAILURE),
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
    Ok(Invocation::of(judge(workspace)?, words))
}

/// Returns the call that compares the names of metrics.
pub(crate) fn metrics(workspace: &Workspace, oracle: &Path) -> Result<Invocation> {
    let oracle = oracle.display().to_string();
    Ok(Invocation::of(
        judge(workspace)?,
        ["metrics", "--oracle", &oracle],
    ))
}

/// Builds our side, with the features that the tests are built with.
fn judge(workspace: &Workspace) -> Result<PathBuf> {
    let build = [
        "build",
        "--quiet",
        "--workspace",
        "--all-features",
        "--locked",
        "--bin",
        JUDGE,
    ];
    let build = Invocation::cargo(build);
    ensure!(build.show(&workspace.root)? == Ended::Well, "`{build}` failed");
    Ok(workspace.target.join("debug").join(JUDGE))
}

/// Builds Kueue's side; the first time that takes some minutes.
pub(crate) fn oracle(workspace: &Workspace) -> Result<Oracle> {
    let folder = workspace.root.join("tools/kueue-oracle");
    if Invocation::of("go", ["version"]).ask(&folder).is_none() {
        return Ok(Oracle::Missing(NO_GO));
    }
    let program = workspace.target.join("tools/kueue-oracle");
    let build = build_oracle(&program.display().to_string());
    print_line(&format!("$ {build}"));
    if build.show(&folder)? == Ended::Well {
        return Ok(Oracle::Built(program));
    }
    let has_modules = Invocation::of("go", ["list", "-mod=readonly", "-deps", "."]).ask(&folder);
    Ok(match has_modules {
        Some(_) => Oracle::Broken,
        None => Oracle::Missing(NO_MODULES),
    })
}

fn build_oracle(program: &str) -> Invocation {
    Invocation::of(
        "go",
        ["build", "-mod=readonly", "-buildvcs=false", "-o", program, "."],
    )
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
    fn the_oracle_is_built_into_the_target_folder_with_the_modules_that_are_pinned() {
        let expected = "go build -mod=readonly -buildvcs=false -o /t/tools/kueue-oracle .";
        assert_eq!(build_oracle("/t/tools/kueue-oracle").to_string(), expected);
    }

    #[test]
    fn the_cases_in_the_repository_are_found_and_in_order() {
        let workspace = Workspace::load().expect("our own workspace can be read");
        let files = own_cases(&workspace.root).expect("they can be listed");
        assert!(files.iter().any(|file| file.ends_with("kueue.yaml")), "{files:?}");
        assert!(files.is_sorted());
    }
}
