//! Programs that the chores need: those that cargo installs, each in one version, and our own.
//!
//! The first are pinned, because a newer one may judge otherwise, and then a change would fail that is not to blame.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::{
    process::{Ended, Invocation, print_line},
    workspace::Workspace,
};

/// A program from crates.io.
#[derive(Debug)]
pub(crate) struct Tool {
    /// Its name, and its package's.
    pub(crate) name: &'static str,
    /// The version that we use.
    pub(crate) version: &'static str,
    /// What makes it print its name and version.
    pub(crate) ask: &'static [&'static str],
}

impl Tool {
    /// Returns the program: from the PATH, or installed before, or installed now. `None` is that it could not be built,
    /// which has been shown.
    pub(crate) fn find_or_install(&self, workspace: &Workspace) -> Result<Option<PathBuf>> {
        let tools = workspace.target.join("tools");
        let ours = tools.join("bin").join(self.name);
        let mut places = [PathBuf::from(self.name), ours.clone()].into_iter();
        if let Some(found) = places.find(|place| self.is(place, workspace)) {
            return Ok(Some(found));
        }
        let install = self.install(&tools.to_string_lossy());
        let Self { name, version, .. } = self;
        print_line(&format!(
            "{name} {version} is not here; building it, once\n$ {install}"
        ));
        match install.show(&workspace.root)? {
            Ended::Well => Ok(Some(ours)),
            Ended::Badly => {
                print_line(&format!(
                    "\nfailed: {name} could not be built; put version {version} on the PATH and try again"
                ));
                Ok(None)
            }
        }
    }

    /// Returns whether a program is this one, in the right version.
    fn is(&self, program: &Path, workspace: &Workspace) -> bool {
        let answer = Invocation::of(program, self.ask.iter().copied()).ask(&workspace.root);
        answer.is_some_and(|answer| answer.trim() == format!("{} {}", self.name, self.version))
    }

    /// An optimised build takes several times as long, for programs that do little themselves.
    fn install(&self, root: &str) -> Invocation {
        let arguments = [
            "install",
            "--quiet",
            "--locked",
            "--debug",
            "--root",
            root,
            "--version",
            self.version,
            self.name,
        ];
        Invocation::cargo(arguments).env("CARGO_PROFILE_DEV_DEBUG", "false")
    }
}

/// Builds a program of `tools/`, which has its package's name, with the features that the tests are built with.
pub(crate) fn built(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let build = [
        "build",
        "--quiet",
        "--workspace",
        "--all-features",
        "--locked",
        "--bin",
        name,
    ];
    let build = Invocation::cargo(build);
    ensure!(build.show(&workspace.root)? == Ended::Well, "`{build}` failed");
    Ok(workspace.target.join("debug").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: Tool = Tool {
        name: "cargo-deny",
        version: "0.20.2",
        ask: &["--version"],
    };

    #[test]
    fn the_pinned_version_is_installed_beside_what_cargo_builds() {
        let expected = "CARGO_PROFILE_DEV_DEBUG=false cargo install --quiet --locked --debug --root /t/tools \
                        --version 0.20.2 cargo-deny";
        assert_eq!(TOOL.install("/t/tools").to_string(), expected);
    }

    #[test]
    fn another_program_is_not_taken_for_the_tool() {
        let workspace = Workspace {
            root: ".".into(),
            ..Workspace::default()
        };
        assert!(!TOOL.is("cargo".as_ref(), &workspace));
        assert!(!TOOL.is("no-such-program-anywhere".as_ref(), &workspace));
    }
}
