//! What installs packages into an environment, and how it is called and watched.

use std::{
    fs::{self, File},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use blueproof_diagnostic::{Code, Diagnostic};

use super::{
    Host, Patience, Unprepared,
    apart::{Apart, Strangers},
    cache,
    child::{self, Ended, Unfinished},
    fresh::Fresh,
    interpreter::{Interpreter, PipSource},
    requirements::DISPOSABLE,
};

/// Runs the pip of another folder, whose `--only-binary` is no word on packages that a package names by an address: it would
/// fetch these, and build them. A pip without what is changed here installs nothing.
const PIP_BY_NAME: &str = "
import importlib.machinery, sys
folder = sys.argv.pop(1)
class Pip:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return importlib.machinery.PathFinder.find_spec(name, [folder], target) if name == 'pip' else None
sys.meta_path.insert(0, Pip)
from pip._internal.distributions.sdist import SourceDistribution
from pip._internal.exceptions import InstallationError
from pip._internal.req.req_install import InstallRequirement
def unbuilt(self, *_, **__):
    raise InstallationError(f'No sources permitted for {self.req.name}')
made = InstallRequirement.__init__
def by_name(self, req, *rest, **named):
    if getattr(req, 'url', None):
        raise InstallationError(f'No address permitted for {req.name}: {req.url}')
    made(self, req, *rest, **named)
SourceDistribution.prepare_distribution_metadata
SourceDistribution.prepare_distribution_metadata = unbuilt
InstallRequirement.__init__ = by_name
from pip._internal.cli.main import main
sys.exit(main(sys.argv[1:]))
";

/// Settings by which an installer would install elsewhere than into the environment, or refuse to.
const ELSEWHERE: [&str; 6] = [
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_PYTHON",
];

/// Settings by which it would build, write elsewhere, or start what it has installed.
const NOT_OF_STRANGERS: [&str; 18] = [
    "PIP_CACHE_DIR",
    "PIP_LOG",
    "PIP_NO_BINARY",
    "PIP_ONLY_BINARY",
    "PIP_REPORT",
    "PIP_REQUIREMENT",
    "PIP_EDITABLE",
    "PIP_SRC",
    "UV_CACHE_DIR",
    "UV_COMPILE_BYTECODE",
    "UV_LINK_MODE",
    "UV_LOG_DIR",
    "UV_NO_BINARY",
    "UV_NO_BINARY_PACKAGE",
    "UV_NO_BUILD",
    "UV_NO_BUILD_PACKAGE",
    "UV_PREFIX",
    "UV_TARGET",
];

/// Where an installer keeps what it downloads, below the environment, until that is complete.
pub(super) const TEMPORARY: &str = "installing";

/// Everything that a step of a build needs.
pub(super) struct Build<'a> {
    pub(super) host: &'a Host,
    pub(super) folder: &'a Path,
    /// Where it is written what is to be installed: where nothing but the agent writes.
    pub(super) asked: PathBuf,
    pub(super) lock: &'a File,
    pub(super) patience: Patience<'a>,
    pub(super) installer: Installer,
    /// The sandbox that packages are installed in, and the environment before; `None` outside of one.
    pub(super) apart: Option<(Apart<'a>, Fresh)>,
}

/// What installs packages, and how it is called.
#[derive(Debug, Clone)]
pub(super) enum Installer {
    /// This `uv`.
    Uv(PathBuf),
    /// The pip of this interpreter, told to install into another environment.
    OwnPip(PathBuf),
    /// The environment's pip.
    EnvironmentPip,
    /// A pip that can be imported from this folder, in the environment's interpreter: by name alone, and nothing but wheels.
    PipByName {
        /// Where it can be imported from.
        pip_folder: PathBuf,
        /// The interpreter that it is of.
        executable: PathBuf,
    },
}

impl Installer {
    /// Returns what installs packages for this interpreter.
    pub(super) fn choose(
        host: &Host,
        interpreter: &Interpreter,
        strangers: Option<&Strangers>,
    ) -> Result<Self, Unprepared> {
        let uv = host.program("uv");
        let executable = interpreter.executable.clone();
        if strangers.is_none() {
            return Ok(match (uv, interpreter.pip_source()) {
                (Some(uv), _) => Self::Uv(uv),
                (None, Some(PipSource::Own)) => Self::OwnPip(executable),
                (None, Some(PipSource::Ensured) | None) => Self::EnvironmentPip,
            });
        }
        // A shim is a script that looks for the program in the user's home, and that is not in reach.
        if let Some(uv) = uv
            .and_then(|uv| uv.canonicalize().ok())
            .filter(|uv| is_program(uv))
        {
            return Ok(Self::Uv(uv));
        }
        match (interpreter.pip_source(), interpreter.pip_folder.clone()) {
            (Some(PipSource::Own), Some(pip_folder)) => Ok(Self::PipByName {
                pip_folder,
                executable,
            }),
            (Some(PipSource::Own | PipSource::Ensured) | None, _) => Err(none_for_strangers(interpreter)),
        }
    }
}

fn is_program(file: &Path) -> bool {
    let mut start = [0; 4];
    let read = |mut file: File| std::io::Read::read_exact(&mut file, &mut start);
    File::open(file).and_then(read).is_ok() && start == *b"\x7fELF"
}

fn none_for_strangers(interpreter: &Interpreter) -> Unprepared {
    let message = "nothing here can install packages for a pull request";
    let why = format!("Python {} has no pip of its own, since 22.3", interpreter.version);
    Unprepared::config(
        Diagnostic::error(Code::InstallFailed, message)
            .because(why)
            .hint("have uv on PATH (the program, not a shim of pyenv), or give the interpreter a newer pip")
            .hint(DISPOSABLE),
    )
}

impl Build<'_> {
    pub(super) fn installer_command(&self, verb: &str) -> Command {
        let python = self.folder.join("bin/python");
        let mut command = match &self.installer {
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
            Installer::PipByName { pip_folder, .. } => {
                let mut command = self.host.command(&python);
                command.args(["-I", "-c", PIP_BY_NAME]).arg(pip_folder);
                self.pip_arguments(&mut command, verb);
                command
            }
        };
        if self.apart.is_some() {
            self.wheels_alone(&mut command);
        }
        command
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
        for elsewhere in ELSEWHERE {
            command.env_remove(elsewhere);
        }
        // pip waits before its second retry, and without any it does not say what went wrong.
        if self.host.variable("PIP_RETRIES").is_none() {
            command.args(["--retries", "1"]);
        }
    }

    /// Has nothing be built, and nothing be kept but the environment.
    fn wheels_alone(&self, command: &mut Command) {
        command.args(["--only-binary", ":all:"]);
        match &self.installer {
            Installer::Uv(_) => command.args(["--no-cache", "--link-mode", "copy"]),
            Installer::OwnPip(_) | Installer::EnvironmentPip | Installer::PipByName { .. } => {
                command.arg("--no-cache-dir")
            }
        };
        for setting in NOT_OF_STRANGERS {
            command.env_remove(setting);
        }
        command.env("TMPDIR", self.folder.join(TEMPORARY));
    }

    /// Returns whether the installer may be started again to explain a failure: not with packages of strangers in its interpreter.
    pub(super) fn may_ask(&self) -> bool {
        let apart = self.apart.as_ref();
        apart.is_none_or(|(_, fresh)| fresh.is_empty(self.folder))
    }

    /// Writes a file for the installer to read.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Unprepared> {
        let file = self.asked.join(name);
        fs::write(&file, text).map_err(|error| cache::broken(&file, &error))?;
        Ok(file)
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
        if let Some((apart, _)) = &self.apart {
            return apart.run(&command, OwnedFd::from(lock), self.patience, on_line);
        }
        command.stdin(Stdio::from(lock));
        child::run(command, self.patience, on_line).map_err(|unfinished| match unfinished {
            Unfinished::Killed(why) => why,
            Unfinished::NotStarted(error) => Unprepared::infrastructure(
                Diagnostic::error(Code::InstallFailed, "the installer cannot be started").caused_by(&error),
            ),
        })
    }
}
