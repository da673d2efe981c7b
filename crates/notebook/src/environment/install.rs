//! Builds an environment: makes it, installs into it, and asks it what it has become.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{
    Host, Package, Patience, Tool, Unprepared,
    cache::{self, Description},
    explain,
    installer::{Build, Installer},
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
}
