//! What the process finds around it: variables, folders. Tests bring their own.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use blueproof_diagnostic::{Code, Diagnostic};

use crate::exit::{Exit, Problem};

/// What the process finds around it.
#[derive(Debug, Clone)]
pub(crate) struct ProcessEnv {
    /// The environment variables.
    pub(crate) variables: BTreeMap<OsString, OsString>,
    /// The current folder.
    pub(crate) folder: PathBuf,
    /// The folder with the configuration of the whole machine.
    pub(crate) machine: PathBuf,
}

impl ProcessEnv {
    /// Returns those of this process.
    pub(crate) fn of_this_process() -> Result<Self, Problem> {
        let folder = std::env::current_dir().map_err(|error| {
            let gone = Diagnostic::error(Code::Usage, "the current folder cannot be used").caused_by(&error);
            Problem {
                diagnostics: vec![gone.hint("change into a folder that is there, such as with `cd ~`")],
                exit: Exit::Usage,
            }
        })?;
        Ok(Self {
            variables: std::env::vars_os().collect(),
            folder,
            machine: "/etc/blueproof".into(),
        })
    }

    /// Returns a variable; one that is empty counts as not set.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsString> {
        let value = self.variables.get(std::ffi::OsStr::new(name))?;
        (!value.is_empty()).then_some(value)
    }

    /// Returns the home folder.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.absolute("HOME")
    }

    /// Returns the folder of the user's configuration. `None` without a home.
    pub(crate) fn user(&self) -> Option<PathBuf> {
        self.ours("XDG_CONFIG_HOME", ".config").ok()
    }

    /// Returns where a file that must not be lost lies when nothing is configured.
    pub(crate) fn data(&self, name: &str) -> Result<PathBuf, Problem> {
        Ok(self.ours("XDG_DATA_HOME", ".local/share")?.join(name))
    }

    /// Returns where a file that can be made again lies when nothing is configured.
    pub(crate) fn cache(&self, name: &str) -> Result<PathBuf, Problem> {
        Ok(self.ours("XDG_CACHE_HOME", ".cache")?.join(name))
    }

    fn ours(&self, variable: &str, below_home: &str) -> Result<PathBuf, Problem> {
        let base = match self.absolute(variable) {
            Some(base) => base.to_owned(),
            None => self.home().ok_or_else(|| self.no_home())?.join(below_home),
        };
        Ok(base.join("blueproof"))
    }

    /// Returns a folder that a variable names. A relative one counts as not set, as the XDG rules have it.
    fn absolute(&self, variable: &str) -> Option<&Path> {
        let path = Path::new(self.variable(variable)?);
        path.is_absolute().then_some(path)
    }

    /// Says why there is no home folder.
    pub(crate) fn why_no_home(&self) -> String {
        match self.variable("HOME") {
            None => "HOME is not set".to_owned(),
            Some(home) => format!("HOME is no whole path: `{}`", home.display()),
        }
    }

    fn no_home(&self) -> Problem {
        let message = format!("there is no home folder: {}", self.why_no_home());
        Problem::usage(
            Diagnostic::error(Code::NoHome, message)
                .hint("set HOME, or say where things go: `--store FILE` and `BLUEPROOF_ENVIRONMENTS=FOLDER`"),
        )
    }
}
