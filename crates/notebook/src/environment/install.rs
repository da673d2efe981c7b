//! Builds an environment: makes it, installs into it, and asks it what it has become.
//!
//! One of a stranger's packages is not asked: no code of them runs before it is in the sandbox of a notebook. They are installed
//! at once, so that no interpreter starts that already has some, and in a sandbox.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use blueproof_core::attempt::remove_folder;
use serde::Deserialize;

use super::{
    Host, Package, Patience, Tool, Unprepared,
    apart::{Apart, Strangers},
    cache::{self, Description},
    explain,
    fresh::Fresh,
    installer::{Build, Installer, TEMPORARY},
    interpreter::Interpreter,
    metadata,
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

#[derive(Deserialize)]
struct Answer {
    folder: PathBuf,
    packages: Vec<Package>,
}

/// Where environments are built, and for whom.
#[derive(Clone, Copy)]
pub(super) struct Maker<'a> {
    pub(super) host: &'a Host,
    /// How packages of strangers are installed, where these are some.
    pub(super) strangers: Option<&'a Strangers>,
}

/// Builds an environment in `folder`, where it stays. Whatever stood there is removed first, and what a failure leaves.
///
/// `lock` is handed to each program that is started, so that the lock is held for as long as one of them lives.
pub(super) fn build(
    maker: Maker<'_>,
    wanted: &Wanted,
    interpreter: &Interpreter,
    folder: &Path,
    lock: &File,
    patience: Patience<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Description, Unprepared> {
    let cannot = |error| cache::broken(folder, &error);
    cache::forget(folder).map_err(cannot)?;
    remove_folder(folder).map_err(cannot)?;
    let asked = maker.strangers.map(|_| cache::beside(folder, cache::ASKED));
    let mut build = Build {
        host: maker.host,
        folder,
        asked: asked.clone().unwrap_or_else(|| folder.to_owned()),
        lock,
        patience,
        installer: Installer::choose(maker.host, interpreter, maker.strangers)?,
        apart: None,
    };
    progress(&format!(
        "making an environment with Python {}",
        interpreter.version
    ));
    let built = match maker.strangers {
        None => build.all(interpreter, wanted, progress),
        Some(strangers) => build.all_apart(strangers, interpreter, wanted, progress),
    };
    // Best effort: what is left behind is no environment, and is removed by the next one who builds here.
    if built.is_err() {
        let _ = remove_folder(folder);
    }
    if let Some(asked) = asked {
        let _ = remove_folder(&asked);
    }
    built
}

impl<'a> Build<'a> {
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

    fn all_apart(
        &mut self,
        strangers: &'a Strangers,
        interpreter: &Interpreter,
        wanted: &Wanted,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Description, Unprepared> {
        self.make(interpreter)?;
        let cannot = |error| cache::broken(self.folder, &error);
        let fresh = Fresh::of(self.folder).map_err(cannot)?;
        let temporary = self.folder.join(TEMPORARY);
        fs::create_dir(&temporary).map_err(cannot)?;
        remove_folder(&self.asked).map_err(cannot)?;
        fs::create_dir(&self.asked).map_err(cannot)?;
        let apart = self.sandbox(strangers)?;
        apart.own().map_err(cannot)?;
        self.apart = Some((apart, fresh));
        let lines = wanted.all().join("\n") + "\n";
        let requirements = self.write("requirements.txt", &lines)?;
        let constraints = wanted
            .lock
            .as_ref()
            .map(|lock| lock.constraints.join("\n") + "\n");
        let constraints = constraints
            .map(|lines| self.write("constraints.txt", &lines))
            .transpose()?;
        self.install_file(&requirements, constraints.as_deref(), wanted, progress)?;
        let (_, fresh) = self.apart.take().expect("it was made above");
        remove_folder(&temporary).map_err(|error| cache::broken(&temporary, &error))?;
        fresh.take_back(self.folder)?;
        let packages = metadata::packages_in(&self.folder.join(&fresh.packages_folder))?;
        Ok(self.description(interpreter, fresh.packages_folder, packages))
    }

    fn sandbox(&self, strangers: &'a Strangers) -> Result<Apart<'a>, Unprepared> {
        let mut programs = vec![self.folder.join("bin/python")];
        let mut file = None;
        match &self.installer {
            Installer::Uv(uv) => file = Some(uv),
            Installer::PipByName { executable, .. } => programs.push(executable.clone()),
            Installer::OwnPip(_) | Installer::EnvironmentPip => {}
        }
        let apart = Apart::plan(strangers, self.host, &programs, self.folder, &self.asked)?;
        Ok(match file {
            Some(file) => apart.reading(file),
            None => apart,
        })
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
            match &self.installer {
                Installer::OwnPip(_) | Installer::PipByName { .. } => {
                    command.arg("--without-pip");
                }
                Installer::Uv(_) | Installer::EnvironmentPip => {}
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
        let requirements = self.write("requirements.txt", &(wanted.requirements.join("\n") + "\n"))?;
        let mut constraints = None;
        if let Some(lock) = &wanted.lock {
            constraints = Some(self.write("constraints.txt", &(lock.constraints.join("\n") + "\n"))?);
            let file = self.write("lock.txt", &(lock.file.clone() + "\n"))?;
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
        match &self.installer {
            // As uv does: see `DESCRIBE`.
            Installer::OwnPip(_) | Installer::EnvironmentPip => {
                command.arg("--no-compile");
            }
            // Nobody can write what Python compiles to a stranger's environment later, and pip runs nothing for it.
            Installer::Uv(_) | Installer::PipByName { .. } => {}
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
        Ok(self.description(interpreter, answer.folder, answer.packages))
    }

    fn description(
        &self,
        interpreter: &Interpreter,
        packages_folder: PathBuf,
        packages: Vec<Package>,
    ) -> Description {
        Description {
            version: interpreter.version.clone(),
            tool: match self.installer {
                Installer::Uv(_) => Tool::Uv,
                Installer::OwnPip(_) | Installer::EnvironmentPip | Installer::PipByName { .. } => Tool::Venv,
            },
            packages_folder,
            packages,
        }
    }
}
