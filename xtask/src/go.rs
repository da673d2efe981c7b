//! Programs in Go that lie below `tools`, built into the target folder. Not everybody has Go.

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    process::{Ended, Invocation, print_line},
    workspace::Workspace,
};

const NO_GO: &str = "Go is not here: https://go.dev/doc/install, or `apt-get install golang-go`";
const NO_MODULES: &str = "Go could not fetch the modules that it needs; see `go env GOPROXY`";

/// A program in Go.
#[derive(Debug)]
pub(crate) enum Program {
    /// It is built.
    Built(PathBuf),
    /// It cannot be built here, and why.
    Missing(&'static str),
    /// It should build, and does not.
    Broken,
}

/// Builds the program that lies in a folder of `tools`, with the modules that are pinned there.
pub(crate) fn build(workspace: &Workspace, folder: &str, name: &str) -> Result<Program> {
    let folder = workspace.root.join("tools").join(folder);
    if Invocation::of("go", ["version"]).ask(&folder).is_none() {
        return Ok(Program::Missing(NO_GO));
    }
    let program = workspace.target.join("tools").join(name);
    let build = into(&program.display().to_string());
    print_line(&format!("$ {build}"));
    if build.show(&folder)? == Ended::Well {
        return Ok(Program::Built(program));
    }
    let has_modules = Invocation::of("go", ["list", "-mod=readonly", "-deps", "."]).ask(&folder);
    Ok(match has_modules {
        Some(_) => Program::Broken,
        None => Program::Missing(NO_MODULES),
    })
}

fn into(program: &str) -> Invocation {
    Invocation::of(
        "go",
        ["build", "-mod=readonly", "-buildvcs=false", "-o", program, "."],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_built_with_the_modules_that_are_pinned() {
        let expected = "go build -mod=readonly -buildvcs=false -o /t/tools/kueue-oracle .";
        assert_eq!(into("/t/tools/kueue-oracle").to_string(), expected);
    }
}
