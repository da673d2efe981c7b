//! Where in the cgroup v2 hierarchy attempts' cgroups can be made: below the cgroup that the agent is in.
//!
//! A cgroup with processes of its own gives no controllers to those below it ("no internal processes", cgroups(7)). Where the
//! agent's cgroup is blueproof's to manage (delegated by systemd, or a container's own root), its processes are moved to a
//! leaf beside the attempts, as container engines do that run in a container. Elsewhere they are somebody else's, and stay.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use blueproof_core::attempt::{Cgroup, unescaped};
use rustix::fs::{Access, access};

/// The leaf that processes are moved to which are not of an attempt.
const LEAF: &str = "blueproof-agents";

/// So often it is tried to empty a cgroup whose processes go on starting others.
const MOVES_AT_MOST: usize = 10;

/// The cgroup below which those of attempts are made.
#[derive(Debug)]
pub(super) struct Home {
    folder: PathBuf,
    /// Whether its own processes may be moved to a leaf.
    is_ours: bool,
}

impl Home {
    /// Finds the cgroup that this process is in, or says why there is none in which others can be made.
    pub(super) fn find() -> Result<Self, String> {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        Self::of(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
    }

    /// Finds it in the text of both files of `/proc`: see cgroups(7) and proc_pid_mountinfo(5).
    fn of(own: &str, mounts: &str) -> Result<Self, String> {
        let own = own.lines().find_map(|line| line.strip_prefix("0::"));
        let own = Path::new(own.ok_or("this machine has no cgroup v2")?);
        let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
        let below = mounts.iter().filter(|mount| own.starts_with(&mount.root));
        let Some(mount) = below.max_by_key(|mount| mount.is_writable) else {
            return Err("cgroup v2 is not mounted where this process could see its own".into());
        };
        if !mount.is_writable {
            return Err(format!(
                "cgroup v2 is mounted to be read only, at {}",
                mount.point.display()
            ));
        }
        let below = own.strip_prefix(&mount.root).expect("it was looked at");
        let folder = mount.point.join(below);
        let is_root = own == Path::new("/");
        if folder.file_name().is_some_and(|name| name == LEAF)
            && let Some(parent) = folder.parent()
        {
            return Self::at(parent.into(), true);
        }
        let is_ours = is_root || is_delegated(&folder);
        Self::at(folder, is_ours)
    }

    /// Takes the cgroup of this folder, if others can be made in it.
    pub(super) fn at(folder: PathBuf, is_ours: bool) -> Result<Self, String> {
        // Whoever moves a process writes to the file of the cgroup that both its old and its new one are below.
        for path in [&folder, &folder.join("cgroup.procs")] {
            if let Err(error) = access(path, Access::WRITE_OK) {
                let error = io::Error::from(error);
                return Err(format!(
                    "the cgroup {} is not delegated to this user: {error}",
                    folder.display()
                ));
            }
        }
        Ok(Self { folder, is_ours })
    }

    /// Names the cgroup of an attempt.
    pub(super) fn cgroup(&self, name: &str) -> Cgroup {
        Cgroup::new(self.folder.join(name))
    }

    /// Makes a cgroup. One of the same name is left of the same attempt, and is ended first.
    pub(super) fn make(&self, cgroup: &Cgroup) -> io::Result<()> {
        match fs::create_dir(cgroup.folder()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                cgroup.end()?;
                fs::create_dir(cgroup.folder())
            }
            made => made,
        }
    }

    /// Has the cgroups below this one have a controller, or says why they have not.
    pub(super) fn give(&self, controller: &str) -> Result<(), String> {
        let names = |file: &str| {
            let text = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
            text.split_whitespace().any(|name| name == controller)
        };
        if names("cgroup.subtree_control") {
            return Ok(());
        }
        if !names("cgroup.controllers") {
            let here = self.folder.display();
            return Err(format!("cgroup v2 has no controller `{controller}` at {here}"));
        }
        let given = self.enable(controller).or_else(|error| {
            if error.kind() != io::ErrorKind::ResourceBusy || !self.is_ours {
                return Err(error);
            }
            self.move_own_to_leaf()?;
            self.enable(controller)
        });
        given.map_err(|error| self.not_given(controller, &error))
    }

    fn enable(&self, controller: &str) -> io::Result<()> {
        fs::write(
            self.folder.join("cgroup.subtree_control"),
            format!("+{controller}"),
        )
    }

    fn not_given(&self, controller: &str, error: &io::Error) -> String {
        let here = self.folder.display();
        if error.kind() == io::ErrorKind::ResourceBusy && !self.is_ours {
            return format!(
                "the cgroup {here} has other processes and is not delegated \
                 (`systemd-run --user --scope -p Delegate=yes` gives one that is)"
            );
        }
        format!("the controller `{controller}` cannot be given to cgroups below {here}: {error}")
    }

    fn move_own_to_leaf(&self) -> io::Result<()> {
        let leaf = self.folder.join(LEAF);
        fs::create_dir_all(&leaf)?;
        for _ in 0..MOVES_AT_MOST {
            let own = fs::read_to_string(self.folder.join("cgroup.procs"))?;
            if own.trim().is_empty() {
                return Ok(());
            }
            for pid in own.lines() {
                match fs::write(leaf.join("cgroup.procs"), pid) {
                    // It has ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {}
                    moved => moved?,
                }
            }
        }
        Ok(())
    }
}

/// Returns whether systemd has left a cgroup to whoever runs in it.
fn is_delegated(folder: &Path) -> bool {
    // systemd says so in an attribute; that of the system's manager was for root alone before version 251.
    let says_so = |name: &str| {
        let mut value = [0; 8];
        rustix::fs::getxattr(folder, name, &mut value).is_ok_and(|length| value[..length] == *b"1")
    };
    if says_so("user.delegate") || says_so("trusted.delegate") {
        return true;
    }
    // Else the folder was given to this user, and the one above it was not.
    let owner = |folder: &Path| fs::metadata(folder).ok().map(|folder| folder.uid());
    let own = rustix::process::getuid();
    !own.is_root()
        && owner(folder) == Some(own.as_raw())
        && folder
            .parent()
            .and_then(owner)
            .is_some_and(|above| above != own.as_raw())
}

/// A mounted cgroup v2 hierarchy, or a part of one.
struct Mount {
    root: PathBuf,
    point: PathBuf,
    is_writable: bool,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (mount, source) = line.split_once(" - ")?;
        let mount: Vec<&str> = mount.split(' ').collect();
        let source: Vec<&str> = source.split(' ').collect();
        let [_, _, _, root, point, options, ..] = mount[..] else {
            return None;
        };
        let [kind, _, own_options, ..] = source[..] else {
            return None;
        };
        let is_read_only = |options: &str| options.split(',').any(|option| option == "ro");
        (kind == "cgroup2").then(|| Self {
            root: unescaped(root),
            point: unescaped(point),
            is_writable: !is_read_only(options) && !is_read_only(own_options),
        })
    }
}

#[cfg(test)]
mod tests;
