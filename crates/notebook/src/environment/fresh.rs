//! An environment before anything was installed into it, and what has become of it since.
//!
//! A wheel may put any file anywhere below its environment: another `bin/python`, or a `pyvenv.cfg` that names the folder of a
//! Python, which is in reach of its kernel. Nothing of that is used before it is known to be as it was.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{PermissionsExt, lchown},
    path::{Path, PathBuf},
};

use blueproof_diagnostic::{Code, Diagnostic};
use rustix::process::{getgid, getuid};
use walkdir::{DirEntry, WalkDir};

use super::{Unprepared, cache, requirements::DISPOSABLE};

/// What makes a folder an environment.
const SETTINGS: &str = "pyvenv.cfg";

/// What was there before anything was installed.
pub(super) struct Fresh {
    /// Where packages are installed, below the environment.
    pub(super) packages_folder: PathBuf,
    links: BTreeMap<PathBuf, PathBuf>,
    settings: Vec<u8>,
}

impl Fresh {
    /// Looks at an environment that no package was installed into.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        let mut links = BTreeMap::new();
        for entry in WalkDir::new(folder) {
            let entry = entry?;
            if entry.file_type().is_symlink() {
                links.insert(entry.path().to_owned(), fs::read_link(entry.path())?);
            }
        }
        let libraries = fs::read_dir(folder.join("lib"))?.flatten();
        let mut found = libraries
            .map(|entry| Path::new("lib").join(entry.file_name()).join("site-packages"))
            .filter(|packages| folder.join(packages).is_dir());
        let none = || io::Error::new(io::ErrorKind::NotFound, "no folder `lib/*/site-packages`");
        Ok(Self {
            packages_folder: found.next().ok_or_else(none)?,
            links,
            settings: fs::read(folder.join(SETTINGS))?,
        })
    }

    /// Returns whether no package is in the environment.
    pub(super) fn is_empty(&self, folder: &Path) -> bool {
        fs::read_dir(folder.join(&self.packages_folder)).is_ok_and(|mut entries| {
            entries.all(|entry| entry.is_ok_and(|entry| is_of_venv(&entry.file_name())))
        })
    }

    /// Makes the environment the agent's again, for all to read, once what installed packages is gone. Refuses one in which there is
    /// anything but files, folders and its own links, or another Python than before.
    pub(super) fn take_back(&self, folder: &Path) -> Result<(), Unprepared> {
        for entry in WalkDir::new(folder) {
            let entry = entry.map_err(|error| cache::broken(folder, &error.into()))?;
            self.take_back_entry(folder, &entry)?;
        }
        let is_there = |link: &&PathBuf| link.is_symlink();
        if let Some(replaced) = self.links.keys().find(|link| !is_there(link)) {
            return Err(refused(
                folder,
                replaced,
                "it takes the place of a link of the environment",
            ));
        }
        let settings = folder.join(SETTINGS);
        match fs::read(&settings) {
            Ok(says) if says == self.settings => Ok(()),
            Ok(_) | Err(_) => {
                let why = "it says which Python the environment is of";
                Err(refused(folder, &settings, why))
            }
        }
    }

    fn take_back_entry(&self, folder: &Path, entry: &DirEntry) -> Result<(), Unprepared> {
        let broken = |error: io::Error| cache::broken(folder, &error);
        let (path, kind) = (entry.path(), entry.file_type());
        let (user, group) = (getuid().as_raw(), getgid().as_raw());
        lchown(path, Some(user), Some(group)).map_err(broken)?;
        if kind.is_symlink() {
            let target = fs::read_link(path).map_err(broken)?;
            return match self.links.get(path) {
                Some(before) if *before == target => Ok(()),
                Some(_) | None => Err(refused(folder, path, "it is a link")),
            };
        }
        if !kind.is_dir() && !kind.is_file() {
            return Err(refused(folder, path, "it is neither a file nor a folder"));
        }
        let about = entry.metadata().map_err(|error| broken(error.into()))?;
        let is_run = kind.is_dir() || about.permissions().mode() & 0o111 != 0;
        let mode = if is_run { 0o755 } else { 0o644 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(broken)
    }
}

/// What uv puts there by itself.
fn is_of_venv(name: &std::ffi::OsStr) -> bool {
    ["_virtualenv.py", "_virtualenv.pth", "__pycache__"]
        .iter()
        .any(|known| name == *known)
}

fn refused(folder: &Path, path: &Path, why: &str) -> Unprepared {
    let place = path.strip_prefix(folder).unwrap_or(path);
    let message = format!(
        "a package changes its environment: `{}`",
        place.display().to_string().escape_debug()
    );
    let diagnostic = Diagnostic::error(Code::SandboxRefused, message).because(why);
    Unprepared::config(
        diagnostic
            .hint("leave the package out whose wheel holds that file")
            .hint(DISPOSABLE),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn environment() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("lib/python3.12/site-packages")).unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        symlink("/usr/bin/python3", folder.path().join("bin/python")).unwrap();
        fs::write(folder.path().join(SETTINGS), "home = /usr/bin\n").unwrap();
        folder
    }

    /// Returns what becomes of an environment that is changed like this.
    fn changed(change: impl FnOnce(&Path)) -> Result<(), Unprepared> {
        let folder = environment();
        let fresh = Fresh::of(folder.path()).unwrap();
        assert_eq!(fresh.packages_folder, Path::new("lib/python3.12/site-packages"));
        change(folder.path());
        fresh.take_back(folder.path())
    }

    #[test]
    fn links_pipes_and_another_python_are_refused_and_packages_are_not() {
        let package =
            |folder: &Path| fs::write(folder.join("lib/python3.12/site-packages/a.py"), "").unwrap();
        assert_eq!(changed(package), Ok(()));
        let link = |folder: &Path| symlink("/secret", folder.join("lib/away")).unwrap();
        assert!(changed(link).is_err());
        let other = |folder: &Path| {
            fs::remove_file(folder.join("bin/python")).unwrap();
            symlink("/secret/python", folder.join("bin/python")).unwrap();
        };
        assert!(changed(other).is_err());
        let replaced = |folder: &Path| {
            fs::remove_file(folder.join("bin/python")).unwrap();
            fs::write(folder.join("bin/python"), "").unwrap();
        };
        assert!(changed(replaced).is_err());
        let home = |folder: &Path| fs::write(folder.join(SETTINGS), "home = /secret/bin\n").unwrap();
        assert!(changed(home).is_err());
        let socket =
            |folder: &Path| drop(std::os::unix::net::UnixListener::bind(folder.join("lib/socket")).unwrap());
        assert!(changed(socket).is_err());
    }

    #[test]
    fn nothing_stays_that_only_its_user_could_read_or_that_gives_rights() {
        let folder = environment();
        let fresh = Fresh::of(folder.path()).unwrap();
        let file = |name: &str, mode: u32| {
            let path = folder.path().join("lib").join(name);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let files = [
            ("closed", 0o600, 0o644),
            ("program", 0o6777, 0o755),
            ("open", 0o666, 0o644),
        ];
        let files = files.map(|(name, before, after)| (file(name, before), after));
        fresh.take_back(folder.path()).unwrap();
        for (path, mode) in files {
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
                mode,
                "{path:?}"
            );
        }
    }
}
