//! The embedded queue beside Kueue's own code: what metrics are called, and random scenarios, always the same ones.
//!
//! Kueue's code needs Go. Where it cannot be built, the summary says that nothing was compared.

use anyhow::Result;

use super::{StepEnd, run_all, tally::Tally};
use crate::{
    go::Program,
    kueue::{self, DiffArguments},
    process::print_line,
    workspace::Workspace,
};

/// How many scenarios of each seed.
const CASES: u64 = 1000;

/// Always the same, so that a change is judged by itself alone: `cargo xtask kueue-diff --seed N` looks at others.
const SEEDS: [u64; 2] = [1, 2];

const NOT_COMPARED: &str = "the queue was not compared with Kueue: its code could not be built";

/// Builds both sides and compares them.
pub(super) fn run(workspace: &Workspace) -> Result<StepEnd> {
    let oracle = match kueue::oracle(workspace)? {
        Program::Built(program) => program,
        Program::Missing(why) => {
            print_line(&format!("\nWARNING: {NOT_COMPARED}\n{why}"));
            return Ok(StepEnd::Partly(NOT_COMPARED));
        }
        Program::Broken => return Ok(StepEnd::Failed(Tally::default())),
    };
    let mut invocations = vec![kueue::metrics(workspace, &oracle)?];
    for seed in SEEDS {
        let arguments = DiffArguments {
            cases: CASES,
            seed,
            kind: None,
        };
        invocations.push(kueue::compare(workspace, &oracle, &arguments)?);
    }
    run_all(&invocations, workspace)
}
