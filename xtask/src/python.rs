//! Python environments for programs from PyPI, which ours are measured beside or tested by: made once, and kept.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::process::{Ended, Invocation, print_line};

/// What an environment is made for.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MadeFor {
    pub(crate) python: PathBuf,
    pub(crate) packages: Vec<String>,
}

impl MadeFor {
    /// Makes an environment, unless it is there already.
    pub(crate) fn install(&self, whose: &str, folder: &Path) -> Result<()> {
        let marker = folder.join("made-for.json");
        if read_json::<Self>(&marker).is_ok_and(|made| made == *self) {
            return Ok(());
        }
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("could not remove `{}`", folder.display()))?;
        }
        let name = folder.display().to_string();
        let make = Invocation::of(&self.python, ["-m", "venv", &name]);
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let packages = self.packages.iter().map(String::as_str);
        let install = Invocation::of(folder.join("bin/python"), pip.into_iter().chain(packages));
        for step in [make, install] {
            print_line(&format!("$ {step}"));
            ensure!(
                step.show(Path::new("."))? == Ended::Well,
                "{whose}'s environment could not be made"
            );
        }
        let text = serde_json::to_vec_pretty(self).expect("plain data");
        fs::write(&marker, text).with_context(|| format!("could not write `{}`", marker.display()))
    }
}

/// Reads a file of JSON.
pub(crate) fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    let text = fs::read(path).with_context(|| format!("could not read `{}`", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("could not understand `{}`", path.display()))
}
