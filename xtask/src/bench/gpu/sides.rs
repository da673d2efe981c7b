//! The exporters that are compared: ours as released, one in Python and one in Go, all on the same fake driver.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use super::{
    super::build,
    server::{Server, install},
};
use crate::{
    go::{self, Program},
    process::Invocation,
    python::MadeFor,
    workspace::Workspace,
};

/// What the exporter in Python stands on.
const PACKAGES: [&str; 2] = ["nvidia-ml-py==13.615.71", "prometheus_client==0.26.0"];

const NO_PYTHON: &str = "there is no `python3`";
const NO_COMPILER: &str = "there is no C compiler `cc`, which go-nvml needs: `apt-get install gcc`";

/// An exporter.
#[derive(Debug, Clone)]
pub(super) struct Side {
    /// What it is called in tables.
    pub(super) name: &'static str,
    /// How it is started.
    invocation: Invocation,
}

/// All exporters, and the driver's library.
#[derive(Debug)]
pub(super) struct Sides {
    pub(super) ours: Side,
    pub(super) others: Vec<Side>,
    /// Which side does not run here, and why.
    pub(super) missing: Vec<String>,
    library: PathBuf,
    folder: PathBuf,
}

impl Side {
    /// Starts it on a driver.
    pub(super) fn start(&self, driver: &Path) -> Result<Server> {
        Server::start(&self.invocation, driver)
    }
}

impl Sides {
    /// Builds and installs what is there to run; of what cannot be had here it says why.
    pub(super) fn prepare(workspace: &Workspace) -> Result<Self> {
        build(workspace, &["blueproof-exporter", "fake-nvml"])?;
        let release = workspace.target.join("release");
        let folder = workspace.target.join("bench/gpu");
        let (mut others, mut missing) = (Vec::new(), Vec::new());
        for (name, side) in [
            ("Python", python(workspace, &folder)?),
            ("Go", golang(workspace)?),
        ] {
            match side {
                Ok(invocation) => others.push(Side { name, invocation }),
                Err(why) => missing.push(format!("{name} did not run: {why}")),
            }
        }
        Ok(Self {
            ours: Side {
                name: "blueproof",
                invocation: Invocation::of(
                    release.join("blueproof-exporter"),
                    ["--listen", "127.0.0.1:0", "--wait", "40"],
                ),
            },
            others,
            missing,
            library: release.join("libfake_nvml.so"),
            folder,
        })
    }

    /// Returns all sides, ours first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Side> {
        std::iter::once(&self.ours).chain(&self.others)
    }

    /// Returns the folder of a driver with this scenario. No side may run on the one before.
    pub(super) fn driver(&self, scenario: &Value) -> Result<PathBuf> {
        let folder = self.folder.join("driver");
        install(&self.library, scenario, &folder)?;
        Ok(folder)
    }
}

/// Returns the exporter in Python, or why it cannot run here.
fn python(workspace: &Workspace, folder: &Path) -> Result<Result<Invocation, &'static str>> {
    let find = Invocation::of("python3", ["-c", "import sys; print(sys.executable)"]);
    let Some(python) = find.ask(&workspace.root) else {
        return Ok(Err(NO_PYTHON));
    };
    let wanted = MadeFor {
        python: python.trim().into(),
        packages: PACKAGES.map(str::to_owned).into(),
    };
    let environment = folder.join("python");
    wanted.install("the exporter in Python", &environment)?;
    let program = workspace.root.join("tools/gpu-exporters/exporter.py");
    let program = program.display().to_string();
    Ok(Ok(Invocation::of(environment.join("bin/python"), [program])))
}

/// Returns the exporter in Go, or why it cannot run here.
fn golang(workspace: &Workspace) -> Result<Result<Invocation, &'static str>> {
    if Invocation::of("cc", ["--version"]).ask(&workspace.root).is_none() {
        return Ok(Err(NO_COMPILER));
    }
    match go::build(workspace, "gpu-exporters/go", "gpu-exporter")? {
        Program::Built(program) => Ok(Ok(Invocation::of(program, [""; 0]))),
        Program::Missing(why) => Ok(Err(why)),
        Program::Broken => anyhow::bail!("the exporter in Go does not build"),
    }
}
