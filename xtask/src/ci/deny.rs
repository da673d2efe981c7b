//! Licences, sources, bans and advisories of what we depend on, by cargo-deny.
//!
//! The first three need nothing but the lock file and the packages. Advisories come from a repository on github.com,
//! which not every machine reaches: where it cannot be fetched the rest still decides, and the summary says what is missing.

use anyhow::Result;

use super::{StepEnd, run_all, tally::Tally};
use crate::{
    process::{Ended, Invocation, print_line},
    tool::Tool,
    workspace::Workspace,
};

const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    ask: &["--version"],
};

const NO_ADVISORIES: &str = "advisories did not run: their database could not be fetched";

/// Checks what we depend on; installs cargo-deny where the right version is neither on the PATH nor installed before.
pub(super) fn run(workspace: &Workspace) -> Result<StepEnd> {
    let Some(program) = DENY.find_or_install(workspace)? else {
        return Ok(StepEnd::Failed(Tally::default()));
    };
    let deny = |arguments: &[&str]| {
        let all = ["--all-features", "--locked"].iter().chain(arguments).copied();
        Invocation::of(program.clone(), all)
    };

    let offline = run_all(&[deny(&["check", "licenses", "bans", "sources"])], workspace)?;
    if offline != StepEnd::Passed(Tally::default()) {
        return Ok(offline);
    }
    if deny(&["fetch", "db"]).show(&workspace.root)? == Ended::Badly {
        print_line(&format!("\nWARNING: {NO_ADVISORIES}"));
        return Ok(StepEnd::Partly(NO_ADVISORIES));
    }
    run_all(&[deny(&["check", "--disable-fetch", "advisories"])], workspace)
}
