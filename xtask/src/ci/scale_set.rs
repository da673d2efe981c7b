//! The fake of GitHub's runner scale sets, by GitHub's own client: a program in Go that does what a listener does.
//!
//! What our client is tested with is only as good as the fake. Where Go or its modules cannot be had, the summary says that the fake was
//! not compared.

use anyhow::Result;

use super::{StepEnd, run_all, tally::Tally};
use crate::{
    go::{self, Program},
    process::{Invocation, print_line},
    workspace::Workspace,
};

const PROGRAM: &str = "scale-set-conformance";

const NOT_COMPARED: &str = "the fake of scale sets was not tried with GitHub's client: it could not be built";

/// Builds GitHub's client, and lets it work with the fake.
pub(super) fn run(workspace: &Workspace) -> Result<StepEnd> {
    let program = match go::build(workspace, PROGRAM, PROGRAM)? {
        Program::Built(program) => program,
        Program::Missing(why) => {
            print_line(&format!("\nWARNING: {NOT_COMPARED}\n{why}"));
            return Ok(StepEnd::Partly(NOT_COMPARED));
        }
        Program::Broken => return Ok(StepEnd::Failed(Tally::default())),
    };
    run_all(&[test(&program.display().to_string())], workspace)
}

fn test(program: &str) -> Invocation {
    let test = [
        "test",
        "--workspace",
        "--all-features",
        "--locked",
        "--test",
        "conformance",
    ];
    Invocation::cargo(test).env("SCALE_SET_CONFORMANCE", program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_is_told_where_githubs_client_is() {
        let expected = "SCALE_SET_CONFORMANCE=/t/tools/a cargo test --workspace --all-features --locked --test conformance";
        assert_eq!(test("/t/tools/a").to_string(), expected);
    }
}
