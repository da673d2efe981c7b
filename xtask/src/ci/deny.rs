//! Licences, sources, bans and advisories of what we depend on, by cargo-deny.
//!
//! The first three need nothing but the lock file and the packages. Advisories come from a repository on github.com,
//! which not every machine reaches: where it cannot be fetched the rest still decides, and the summary says what is missing.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{StepEnd, run_all, tally::Tally};
use crate::{
    process::{Ended, Invocation, print_line},
    workspace::Workspace,
};

// Pinned, because a newer one may know new lints, and then the gate would close on a change that is not to blame.
const VERSION: &str = "0.20.2";

const NO_ADVISORIES: &str = "advisories did not run: their database could not be fetched";

/// Checks what we depend on; installs cargo-deny where the right version is neither on the PATH nor installed before.
pub(super) fn run(workspace: &Workspace) -> Result<StepEnd> {
    let Some(program) = find_or_install(workspace)? else {
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

fn find_or_install(workspace: &Workspace) -> Result<Option<PathBuf>> {
    let tools = workspace.target.join("tools");
    let ours = tools.join("bin/cargo-deny");
    let mut places = [PathBuf::from("cargo-deny"), ours.clone()].into_iter();
    if let Some(found) = places.find(|place| is_the_right_version(place, workspace)) {
        return Ok(Some(found));
    }
    let install = install(&tools.to_string_lossy());
    print_line(&format!(
        "cargo-deny {VERSION} is not here; building it, once\n$ {install}"
    ));
    match install.show(&workspace.root)? {
        Ended::Well => Ok(Some(ours)),
        Ended::Badly => {
            print_line(&format!(
                "\nfailed: cargo-deny could not be built; put version {VERSION} on the PATH and try again"
            ));
            Ok(None)
        }
    }
}

fn is_the_right_version(program: &Path, workspace: &Workspace) -> bool {
    let answer = Invocation::of(program, ["--version"]).ask(&workspace.root);
    answer.is_some_and(|answer| answer.trim() == format!("cargo-deny {VERSION}"))
}

/// An optimised build takes several times as long, for a program that runs for a second.
fn install(root: &str) -> Invocation {
    let arguments = [
        "install",
        "--quiet",
        "--locked",
        "--debug",
        "--root",
        root,
        "--version",
        VERSION,
    ];
    Invocation::cargo(arguments.into_iter().chain(["cargo-deny"])).env("CARGO_PROFILE_DEV_DEBUG", "false")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_version_is_installed_beside_what_cargo_builds() {
        let expected = "CARGO_PROFILE_DEV_DEBUG=false cargo install --quiet --locked --debug --root /t/tools \
                        --version 0.20.2 cargo-deny";
        assert_eq!(install("/t/tools").to_string(), expected);
    }

    #[test]
    fn another_program_is_not_taken_for_cargo_deny() {
        let workspace = Workspace {
            root: ".".into(),
            ..Workspace::default()
        };
        assert!(!is_the_right_version("cargo".as_ref(), &workspace));
        assert!(!is_the_right_version(
            "no-such-program-anywhere".as_ref(),
            &workspace
        ));
    }
}
