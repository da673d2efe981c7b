//! Builds an environment: makes it, installs into it, and asks it what it has become.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use blueproof_diagnostic::{Code, Diagnostic};
use serde::Deserialize;

use super::{
    Host, Package, Patience, Tool, Unprepared,
    cache::{self, Description},
    child::{self, Ended, Unfinished},
    explain,
    interpreter::{Interpreter, PipSource},
    wanted::Wanted,
};

const DESCRIBE: &str = "
import importlib.metadata, json, os, sys, sysconfig
folder = sysconfig.get_path('purelib')
os.makedirs(os.path.join(folder, '__pycache__'), exist_ok=True)
found = {(d.metadata['Name'], d.version) for d in importlib.metadata.distributions()}
packages = [{'name': n, 'version': v} for n, v in sorted(found, key=lambda p: p[0].lower())]
# Compiles what every kernel imports, so that the first one need not; all else would take longer than it saves.
try:
    import ipykernel.kernelapp
except ImportError:
    pass
print(json.dumps({'folder': os.path.relpath(folder, sys.prefix), 'packages': packages}))
";

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

#[derive(Deserialize)]
struct Answer {
    folder: PathBuf,
    packages: Vec<Package>,
}

/// Builds an environment in `folder`, where it stays. Whatever stood there is removed first, and what a failure leaves.
///
/// `lock` is handed to each program that is started, so that the lock is held for as long as one of them lives.
pub(super) fn build(
    host: &Host,
    wanted: &Wanted,
    interpreter: &Interpreter,
    folder: &Path,
    lock: &File,
    patience: Patience<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Description, Unprepared> {
    let cannot = |error| cache::broken(folder, &error);
    if folder.symlink_metadata().is_ok() {
        fs::remove_dir_all(folder).map_err(cannot)?;
    }
    let installer = match (host.program("uv"), interpreter.pip_source()) {
        (Some(uv), _) => Installer::Uv(uv),
        (None, Some(PipSource::Own)) => Installer::OwnPip(interpreter.executable.clone()),
        (None, Some(PipSource::Ensured) | None) => Installer::EnvironmentPip,
    };
    let build = Build {
        host,
        folder,
        lock,
        patience,
        installer,
    };
    progress(&format!(
        "making an environment with Python {}",
        interpreter.version
    ));
    let built = build.all(interpreter, wanted, progress);
    if built.is_err() {
        // Best effort: what is left behind is no environment, and is removed by the next one who builds here.
        let _ = fs::remove_dir_all(folder);
    }
    built
}

impl Build<'_> {
    fn all(
        &self,
        interpreter: &Interpreter,
        wanted: &Wanted,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Description, Unprepared> {
        self.make(interpreter)?;
        self.install(wanted, progress)?;
        self.describe(interpreter)
    }

    fn make(&self, interpreter: &Interpreter) -> Result<(), Unprepared> {
        let mut command = if let Installer::Uv(uv) = &self.installer {
            let mut command = self.host.command(uv);
            command
                .args(["venv", "--no-config", "--quiet", "--python"])
                .arg(&interpreter.executable);
            command
        } else {
            let mut command = self.host.command(&interpreter.executable);
            command.args(["-I", "-m", "venv"]);
            if matches!(self.installer, Installer::OwnPip(_)) {
                command.arg("--without-pip");
            }
            command
        };
        command.arg(self.folder);
        let ended = self.run(command, &mut |_| {})?;
        if ended.status.success() {
            return Ok(());
        }
        Err(explain::unmade(interpreter, &ended.lines))
    }

    fn install(&self, wanted: &Wanted, progress: &mut dyn FnMut(&str)) -> Result<(), Unprepared> {
        let write = |name: &str, lines: &str| {
            let file = self.folder.join(name);
            fs::write(&file, lines).map_err(|error| cache::broken(&file, &error))?;
            Ok::<_, Unprepared>(file)
        };
        let requirements = write("requirements.txt", &(wanted.requirements.join("\n") + "\n"))?;
        let mut constraints = None;
        if let Some(lock) = &wanted.lock {
            constraints = Some(write("constraints.txt", &(lock.constraints.join("\n") + "\n"))?);
            let file = write("lock.txt", &(lock.file.clone() + "\n"))?;
            // Its hashes would be asked of everything that is installed together with it.
            let hashed = lock.file.contains("--hash");
            self.install_file(
                &file,
                constraints.as_deref().filter(|_| !hashed),
                wanted,
                progress,
            )?;
        }
        self.install_file(&requirements, constraints.as_deref(), wanted, progress)
    }

    fn install_file(
        &self,
        file: &Path,
        constraints: Option<&Path>,
        wanted: &Wanted,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), Unprepared> {
        let mut command = self.installer_command("install");
        if !matches!(self.installer, Installer::Uv(_)) {
            // As uv does: see `DESCRIBE`.
            command.arg("--no-compile");
        }
        command.arg("--requirement").arg(file);
        if let Some(constraints) = constraints {
            command.arg("--constraint").arg(constraints);
        }
        let mut on_line = |line: &str| {
            if let Some(told) = explain::progress(line) {
                progress(&told);
            }
        };
        let ended = self.run(command, &mut on_line)?;
        if ended.status.success() {
            return Ok(());
        }
        explain::failed(self, wanted, &ended.lines)
    }

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

    fn describe(&self, interpreter: &Interpreter) -> Result<Description, Unprepared> {
        let mut command = self.host.command(&self.folder.join("bin/python"));
        command.args(["-I", "-c", DESCRIBE]);
        let ended = self.run(command, &mut |_| {})?;
        let answer = ended
            .lines
            .iter()
            .find_map(|line| serde_json::from_str::<Answer>(line).ok());
        let Some(answer) = answer else {
            return Err(explain::unmade(interpreter, &ended.lines));
        };
        Ok(Description {
            version: interpreter.version.clone(),
            tool: match self.installer {
                Installer::Uv(_) => Tool::Uv,
                Installer::OwnPip(_) | Installer::EnvironmentPip => Tool::Venv,
            },
            packages_folder: answer.folder,
            packages: answer.packages,
        })
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
