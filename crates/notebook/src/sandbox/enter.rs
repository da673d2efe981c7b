//! Becoming bubblewrap: what happens in a new process between the agent and its kernel.
//!
//! Where the process becomes another user, that one may not be able to find what it is to bind: the agent's user may keep it in a
//! home that is closed to all others. So it is mounted before, in a mount namespace of this process, where that user finds it.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use nix::sched::{CloneFlags, unshare};
use rustix::{
    fs::{MemfdFlags, Mode, OFlags, SeekFrom, memfd_create, open, seek},
    mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change},
    process::{Resource, Rlimit, setrlimit},
};

use super::{Identity, Sandbox};

/// Where things are mounted for bubblewrap to find them. It is there on every machine, and bubblewrap binds nothing else of it.
const STAGE: &str = "/tmp";

/// The users that a sandbox knows of.
const PASSWD: &str = "notebook:x:1000:1000::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n";
const GROUP: &str = "notebook:x:1000:\nnogroup:x:65534:\n";

/// Runs a program in a sandbox in the place of this process. Returns only when that failed.
pub(crate) fn enter(
    sandbox: &str,
    program: &OsString,
    arguments: impl Iterator<Item = OsString>,
) -> io::Error {
    match prepared(sandbox) {
        Ok((mut command, _open)) => command.arg("--").arg(program).args(arguments).exec(),
        Err(error) => error,
    }
}

/// Returns the call of bubblewrap, and what has to stay open until it runs.
fn prepared(sandbox: &str) -> io::Result<(Command, Vec<OwnedFd>)> {
    let sandbox: Sandbox = serde_json::from_str(sandbox)?;
    let paths = sandbox.binds.iter().map(|bind| bind.path.as_path());
    let sources = match sandbox.identity {
        Some(_) => stage(paths.collect())?,
        None => paths.map(Path::to_owned).collect(),
    };
    let mut files = Vec::new();
    let mut open = Vec::new();
    for (path, text) in [("/etc/passwd", PASSWD), ("/etc/group", GROUP)] {
        let file = in_memory(text.as_bytes())?;
        files.push((file.as_raw_fd().to_string(), path));
        open.push(file);
    }
    let mut command = Command::new(&sandbox.bubblewrap);
    command.args(sandbox.arguments(&sources, &files)).current_dir("/");
    sandbox.limit()?;
    if let Some(Identity(user)) = sandbox.identity {
        // Further groups go with it.
        command.uid(user).gid(user);
    }
    Ok((command, open))
}

/// Mounts each of `paths` where every user can find it, for this process alone, and returns where.
fn stage(paths: Vec<&Path>) -> io::Result<Vec<PathBuf>> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // Opened while each can still be found by its own path.
    let mut opened = Vec::new();
    for path in paths {
        let file = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        opened.push(file.map_err(|error| of_path(path, &error.into()))?);
    }
    mount(
        "tmpfs",
        STAGE,
        "tmpfs",
        MountFlags::NODEV | MountFlags::NOSUID,
        c"mode=0755,size=1m",
    )?;
    let mut staged = Vec::new();
    for (at, file) in opened.iter().enumerate() {
        let place = Path::new(STAGE).join(at.to_string());
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        match fs::metadata(&path)?.is_dir() {
            true => fs::create_dir(&place)?,
            false => drop(File::create(&place)?),
        }
        mount_bind_recursive(&path, &place).map_err(|error| of_path(&place, &error.into()))?;
        staged.push(place);
    }
    Ok(staged)
}

fn of_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Sandbox {
    fn limit(&self) -> io::Result<()> {
        let limit = |resource, most| {
            let both = Rlimit {
                current: Some(most),
                maximum: Some(most),
            };
            setrlimit(resource, both).map_err(io::Error::from)
        };
        if let Some(bytes) = self.file_bytes {
            limit(Resource::Fsize, bytes)?;
        }
        if let Some(bytes) = self.address_space_bytes {
            limit(Resource::As, bytes)?;
        }
        // The system counts a user's processes: one who is somebody else, too, would be kept from starting any.
        match self.identity {
            Some(_) => limit(Resource::Nproc, self.processes),
            None => Ok(()),
        }
    }
}

/// Returns a file that is inherited and has no name.
fn in_memory(content: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("sandbox", MemfdFlags::empty())?);
    file.write_all(content)?;
    seek(&file, SeekFrom::Start(0))?;
    Ok(file.into())
}
