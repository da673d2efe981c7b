//! The two programs that run the same notebook: blueproof as released, and papermill.
//!
//! Both use the same interpreter, the same versions of ipykernel and of what the notebook asks for, and the same caps
//! on threads. blueproof makes its environment; papermill's is made after it, once, and kept.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use super::{
    PROGRAMS, build,
    timed::{Timed, Watch, time},
};
use crate::{
    process::Invocation,
    python::{MadeFor, read_json},
    workspace::Workspace,
};

/// The variables by which blueproof caps the threads of a kernel that was granted one core.
const THREADS: [&str; 9] = [
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NPROC",
    "NUMEXPR_MAX_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PJRT_NPROC",
    "VECLIB_MAXIMUM_THREADS",
];

/// Packages that papermill needs and blueproof does not.
const PAPERMILL: &str = "papermill";

/// Where the two programs and what they leave are.
#[derive(Debug)]
pub(super) struct Sides {
    blueproof: PathBuf,
    folder: PathBuf,
}

/// How blueproof ran a blueprint.
#[derive(Debug)]
pub(super) struct Proof {
    pub(super) timed: Timed,
    /// The folder that is kept of the run.
    pub(super) kept: PathBuf,
}

/// papermill in an environment of its own.
#[derive(Debug)]
pub(super) struct Papermill {
    program: PathBuf,
    folder: PathBuf,
    /// What it stands on, in a few words.
    pub(super) described: String,
}

/// What is read of the report of a run.
#[derive(Debug, Deserialize)]
struct Reported {
    environment: Environment,
}

/// What blueproof says of the environment that it ran a notebook in.
#[derive(Debug, Deserialize)]
struct Environment {
    key: String,
    python: String,
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
}

impl Sides {
    /// Builds blueproof for release, with an empty store. Environments that were made before stay.
    pub(super) fn prepare(workspace: &Workspace) -> Result<Self> {
        build(workspace, &PROGRAMS)?;
        let folder = workspace.target.join("bench");
        let runs = folder.join("home");
        if runs.exists() {
            fs::remove_dir_all(&runs).with_context(|| format!("could not empty `{}`", runs.display()))?;
        }
        make(&runs)?;
        Ok(Self {
            blueproof: workspace.target.join("release/blueproof"),
            folder,
        })
    }

    /// Returns a folder for what a bench makes up.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        make(&folder)?;
        Ok(folder)
    }

    /// Runs a blueprint to its end; it must pass.
    pub(super) fn prove(&self, blueprint: &Path, watch: Watch) -> Result<Proof> {
        let home = self.folder.join("home");
        let run = self.blueproof(["run", &shown(blueprint)]).env(
            "BLUEPROOF_ENVIRONMENTS",
            &shown(&self.folder.join("environments")),
        );
        let timed = time(&with_capped_threads(run), &self.folder, &home, watch)?;
        let address = timed
            .printed
            .lines()
            .find_map(|line| line.trim().strip_prefix("file://"));
        let report = address.context("blueproof named no report")?;
        let kept = Path::new(report).parent().context("a report lies in a folder")?;
        Ok(Proof {
            kept: kept.into(),
            timed,
        })
    }

    /// Returns what the store says of the run that was asked for last.
    pub(super) fn newest_run(&self) -> Result<Value> {
        let get = self.blueproof(["get", "runs", "--output", "json"]);
        let answer = get.ask(&self.folder).with_context(|| format!("`{get}` failed"))?;
        let mut list: Value = serde_json::from_str(&answer).context("the list of runs is not JSON")?;
        Ok(list["items"][0].take())
    }

    fn blueproof<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
        let store = self.folder.join("home/blueproof.db");
        Invocation::of(&self.blueproof, arguments).env("BLUEPROOF_STORE", &shown(&store))
    }

    /// Returns papermill on what a run of blueproof used, installed where it is not there yet.
    pub(super) fn papermill(&self, like: &Proof) -> Result<Papermill> {
        let Reported { environment } = read_json(&like.kept.join("report.json"))?;
        let python = self
            .folder
            .join("environments")
            .join(&environment.key)
            .join("bin/python");
        let python = fs::canonicalize(&python)
            .with_context(|| format!("blueproof's interpreter `{}` is not there", python.display()))?;
        let pinned = environment
            .packages
            .iter()
            .map(|package| format!("{}=={}", package.name, package.version));
        let wanted = MadeFor {
            python,
            packages: pinned.chain([PAPERMILL.into()]).collect(),
        };
        let folder = self.folder.join("papermill").join(&environment.key);
        wanted.install("papermill", &folder)?;
        let installed = Invocation::of(folder.join("bin/papermill"), ["--version"]).ask(&self.folder);
        let version = installed.unwrap_or_default();
        Ok(Papermill {
            program: folder.join("bin/papermill"),
            described: format!(
                "papermill {} and blueproof on the same python {}",
                version.split_whitespace().next().unwrap_or("?"),
                environment.python
            ),
            folder,
        })
    }
}

impl Proof {
    /// Returns the folder of the first attempt.
    pub(super) fn attempt(&self) -> PathBuf {
        self.kept.join("attempts/1")
    }
}

impl Papermill {
    /// Executes a notebook to its end, in a working folder of its own.
    pub(super) fn execute(&self, notebook: &Path, watch: Watch) -> Result<Timed> {
        let work = self.folder.join("work");
        make(&work)?;
        let arguments = [
            shown(notebook),
            shown(&work.join("executed.ipynb")),
            "--kernel=python3".into(),
            format!("--cwd={}", work.display()),
            "--no-progress-bar".into(),
        ];
        let execute = Invocation::of(&self.program, arguments);
        time(&with_capped_threads(execute), &work, &self.folder, watch)
    }
}

fn with_capped_threads(invocation: Invocation) -> Invocation {
    THREADS
        .into_iter()
        .fold(invocation, |invocation, name| invocation.env(name, "1"))
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("could not make `{}`", folder.display()))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
