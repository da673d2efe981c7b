//! What installs packages into an environment, and how it is called and watched.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use blueproof_diagnostic::{Code, Diagnostic};

use super::{
    Host, Patience, Unprepared, cache,
    child::{self, Ended, Unfinished},
};

/// Everything that a step of a build needs.
pub(super) struct Build<'a> {
    pub(super) host: &'a Host,
    pub(super) folder: &'a Path,
    pub(super) lock: &'a File,
    pub(super) patience: Patience<'a>,
    pub(super) installer: Installer,
}

/// What installs packages, and how it is called.
pub(super) enum Installer {
    /// This `uv`.
    Uv(PathBuf),
    /// The pip of this interpreter, told to install into another environment.
    OwnPip(PathBuf),
    /// The environment's pip.
    EnvironmentPip,
}

impl Build<'_> {
    pub(super) fn installer_command(&self, verb: &str) -> Command {
        let python = self.folder.join("bin/python");
        match &self.installer {
            Installer::Uv(uv) => {
                let mut command = self.host.command(uv);
                command
                    .args(["pip", verb, "--no-progress", "--color", "never", "--python"])
                    .arg(python);
                command.env_remove("UV_PYTHON").env_remove("UV_SYSTEM_PYTHON");
                if self.host.variable("UV_HTTP_RETRIES").is_none() {
                    command.env("UV_HTTP_RETRIES", "1");
                }
                command
            }
            Installer::OwnPip(own) => {
                let mut command = self.host.command(own);
                command.args(["-I", "-m", "pip", "--python"]).arg(python);
                self.pip_arguments(&mut command, verb);
                command
            }
            Installer::EnvironmentPip => {
                let mut command = self.host.command(&python);
                command.args(["-I", "-m", "pip"]);
                self.pip_arguments(&mut command, verb);
                command
            }
        }
    }

    fn pip_arguments(&self, command: &mut Command, verb: &str) {
        command.args([
            verb,
            "--no-input",
            "--no-color",
            "--disable-pip-version-check",
            "--progress-bar",
            "off",
        ]);
        // These would install elsewhere than into the environment, or refuse to.
        for elsewhere in [
            "PIP_TARGET",
            "PIP_PREFIX",
            "PIP_ROOT",
            "PIP_USER",
            "PIP_REQUIRE_VIRTUALENV",
            "PIP_PYTHON",
        ] {
            command.env_remove(elsewhere);
        }
        // pip waits before its second retry, and without any it does not say what went wrong.
        if self.host.variable("PIP_RETRIES").is_none() {
            command.args(["--retries", "1"]);
        }
    }

    pub(super) fn run(
        &self,
        mut command: Command,
        on_line: &mut dyn FnMut(&str),
    ) -> Result<Ended, Unprepared> {
        let lock = self
            .lock
            .try_clone()
            .map_err(|error| cache::broken(self.folder, &error))?;
        command.stdin(Stdio::from(lock));
        child::run(command, self.patience, on_line).map_err(|unfinished| match unfinished {
            Unfinished::Killed(why) => why,
            Unfinished::NotStarted(error) => Unprepared::infrastructure(
                Diagnostic::error(Code::InstallFailed, "the installer cannot be started").caused_by(&error),
            ),
        })
    }
}
