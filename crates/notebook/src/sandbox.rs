//! The sandbox that a notebook of strangers runs in: what of the machine is in its reach.
//!
//! bubblewrap makes it. Here is which arguments it is given, and what it becomes before; the agent, its log and the store stay
//! outside. What is not named here is not there: no home, no store, no socket, no other attempt. Whether a machine can make a
//! sandbox at all is tried in `isolation`, not here.

mod accelerators;
mod enter;
mod identity;
mod system;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use blueproof_core::domain::Bytes;
use serde::{Deserialize, Serialize};

pub(crate) use accelerators::nodes_of;
pub(crate) use enter::enter;
pub(crate) use identity::Identity;
pub(crate) use system::{interpreter_folders, is_in_every_sandbox};

/// The program that makes sandboxes.
const BUBBLEWRAP: &str = "bwrap";

/// The user and the group that processes are in there, as they see it.
const USER_INSIDE: &str = "1000";

/// The largest size of `/tmp`, which is memory.
const TEMPORARY: Bytes = Bytes(1 << 30);

/// How much shared memory there is where no memory was granted.
const SHARED_MEMORY: Bytes = Bytes(1 << 30);

/// A sandbox that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sandbox {
    bubblewrap: PathBuf,
    identity: Option<Identity>,
    network: SandboxNetwork,
    binds: Vec<Bind>,
    /// Nodes of accelerators.
    devices: Vec<PathBuf>,
    /// The size of `/dev/shm`.
    shared_memory_bytes: u64,
    /// The largest file that can be written.
    file_bytes: Option<u64>,
    /// How many processes and threads its user may have, where that user is this sandbox's alone.
    processes: u64,
    /// How much memory each process may have; what uses a GPU reserves more than it ever has.
    address_space_bytes: Option<u64>,
    /// Where its program works.
    folder: PathBuf,
}

/// What network a sandbox has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SandboxNetwork {
    /// A loopback of its own, and nothing else.
    None,
    /// The machine's. No sandbox of a kernel has it.
    Machine,
}

/// A file or folder of the machine that is in reach, at the same path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Bind {
    path: PathBuf,
    access: Access,
}

/// What may be done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Access {
    Read,
    Write,
}

/// This machine lacks the program that makes sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no program `{BUBBLEWRAP}` in PATH")]
pub(crate) struct NoBubblewrap;

impl Sandbox {
    /// Describes a sandbox that has nothing but the system's programs and libraries, and works in `folder`. Nothing is made.
    ///
    /// # Errors
    ///
    /// Where bubblewrap is not installed.
    pub(crate) fn new(folder: &Path) -> Result<Self, NoBubblewrap> {
        let bubblewrap = program_in(std::env::var_os("PATH")).ok_or(NoBubblewrap)?;
        Ok(Self::made_by(bubblewrap, folder))
    }

    fn made_by(bubblewrap: PathBuf, folder: &Path) -> Self {
        Self {
            bubblewrap,
            identity: None,
            network: SandboxNetwork::None,
            binds: Vec::new(),
            devices: Vec::new(),
            shared_memory_bytes: SHARED_MEMORY.0,
            file_bytes: None,
            processes: u64::MAX,
            address_space_bytes: None,
            folder: folder.into(),
        }
    }

    /// Has its processes be another user of the machine.
    pub(crate) fn of_user(mut self, identity: Option<Identity>) -> Self {
        self.identity = identity;
        self
    }

    /// Has it read a file or folder of the machine.
    pub(crate) fn reading(self, path: impl Into<PathBuf>) -> Self {
        self.bind(path.into(), Access::Read)
    }

    /// Has it read a folder of the machine, and write there.
    pub(crate) fn writing(self, path: impl Into<PathBuf>) -> Self {
        self.bind(path.into(), Access::Write)
    }

    fn bind(mut self, path: PathBuf, access: Access) -> Self {
        self.binds.push(Bind { path, access });
        self
    }

    /// Gives it nodes of accelerators.
    pub(crate) fn with_devices(mut self, nodes: Vec<PathBuf>) -> Self {
        self.devices = nodes;
        self
    }

    /// Limits what is kept in memory as files. Where nothing was granted, a default holds.
    pub(crate) fn with_memory(mut self, granted: Bytes) -> Self {
        if granted > Bytes(0) {
            self.shared_memory_bytes = granted.0;
        }
        self
    }

    /// Limits the size of a file, and how many processes a user of its own has.
    pub(crate) fn limited(mut self, file: Bytes, processes: u64) -> Self {
        (self.file_bytes, self.processes) = (Some(file.0), processes);
        self
    }

    /// Limits the memory of each process.
    pub(crate) fn with_address_space(mut self, most: Bytes) -> Self {
        self.address_space_bytes = Some(most.0);
        self
    }

    /// Gives it a network.
    pub(crate) fn with_network(mut self, network: SandboxNetwork) -> Self {
        self.network = network;
        self
    }

    /// Writes it for the launcher, as one argument; `None` where a path in it is no UTF-8.
    pub(crate) fn to_argument(&self) -> Option<OsString> {
        serde_json::to_string(self).ok().map(OsString::from)
    }

    /// Returns the arguments of bubblewrap, before the program that it starts: `sources` is where that lies which is bound, in
    /// its order, and `files` are the descriptors of files that are made there.
    fn arguments(&self, sources: &[PathBuf], files: &[(String, &str)]) -> Vec<OsString> {
        let mut all = Arguments::default();
        // Each namespace by its name: where one cannot be had, there shall be no sandbox.
        all.add([
            "--unshare-user",
            "--unshare-ipc",
            "--unshare-pid",
            "--unshare-uts",
        ]);
        all.add(["--unshare-cgroup-try", "--disable-userns"]);
        match self.network {
            SandboxNetwork::None => all.add(["--unshare-net"]),
            SandboxNetwork::Machine => {}
        }
        all.add([
            "--uid",
            USER_INSIDE,
            "--gid",
            USER_INSIDE,
            "--hostname",
            "sandbox",
        ]);
        all.add(["--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
        all.add(["--proc", "/proc", "--dev", "/dev"]);
        all.add(["--perms", "1777"]);
        all.add([
            "--size",
            &self.shared_memory_bytes.to_string(),
            "--tmpfs",
            "/dev/shm",
        ]);
        all.add(["--perms", "1777"]);
        all.add(["--size", &self.temporary_bytes().to_string(), "--tmpfs", "/tmp"]);
        system::add(&mut all);
        match self.network {
            SandboxNetwork::None => {}
            SandboxNetwork::Machine => system::add_resolver(&mut all),
        }
        for (opened, path) in files {
            all.add(["--ro-bind-data", opened, path]);
        }
        self.add_devices(&mut all);
        for (bind, source) in self.binds.iter().zip(sources) {
            let option = match bind.access {
                Access::Read => "--ro-bind",
                Access::Write => "--bind",
            };
            all.add_paths(option, source, &bind.path);
        }
        // Both are memory without a limit, and nothing has to be written there.
        all.add(["--remount-ro", "/dev", "--remount-ro", "/"]);
        all.add(["--chdir"]);
        all.0.push(self.folder.clone().into());
        all.0
    }

    fn add_devices(&self, all: &mut Arguments) {
        for node in &self.devices {
            all.add_paths("--dev-bind", node, node);
        }
        if !self.devices.is_empty() {
            // What uses a GPU looks for its place in the machine, as in a container.
            all.add(["--ro-bind", "/sys", "/sys"]);
        }
    }

    fn temporary_bytes(&self) -> u64 {
        self.shared_memory_bytes.min(TEMPORARY.0)
    }
}

/// The arguments of a program, as they come together.
#[derive(Debug, Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add<'a>(&mut self, arguments: impl IntoIterator<Item = &'a str>) {
        self.0.extend(arguments.into_iter().map(OsString::from));
    }

    fn add_paths(&mut self, option: &str, from: &Path, to: &Path) {
        self.add([option]);
        self.0.extend([from.into(), to.into()]);
    }
}

/// Returns bubblewrap's program in a list of folders. Relative ones mean nothing: a checkout could have it.
fn program_in(path: Option<OsString>) -> Option<PathBuf> {
    let folders = std::env::split_paths(&path?).collect::<Vec<_>>();
    let absolute = folders.into_iter().filter(|folder| folder.is_absolute());
    absolute
        .map(|folder| folder.join(BUBBLEWRAP))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(sandbox: &Sandbox) -> String {
        let sources: Vec<PathBuf> = (0..9).map(|at| format!("/staged/{at}").into()).collect();
        let words = sandbox.arguments(&sources, &[]);
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        format!(" {} ", words.join(" "))
    }

    fn sandbox() -> Sandbox {
        Sandbox::made_by("/usr/bin/bwrap".into(), Path::new("/work/checkout"))
    }

    #[test]
    fn every_namespace_is_its_own_and_nothing_can_be_gained_inside() {
        let arguments = arguments(&sandbox());
        for wanted in [
            "--unshare-user",
            "--unshare-ipc",
            "--unshare-pid",
            "--unshare-uts",
            "--unshare-net",
            "--disable-userns",
            "--cap-drop ALL",
            "--die-with-parent",
            "--new-session",
            "--remount-ro /",
        ] {
            assert!(
                arguments.contains(&format!(" {wanted} ")),
                "{wanted}: {arguments}"
            );
        }
    }

    #[test]
    fn what_is_not_named_is_not_bound() {
        let bare = arguments(&sandbox());
        for never in ["/root", "/home", "/var", "/run", "/etc ", "/sys "] {
            assert!(!bare.contains(&format!("bind {never}")), "{never}: {bare}");
        }
        let bound = arguments(&sandbox().reading("/env").writing("/work/checkout"));
        assert!(bound.contains(" --ro-bind /staged/0 /env --bind /staged/1 /work/checkout --remount-ro "));
    }

    #[test]
    fn files_in_memory_take_no_more_than_was_granted() {
        let few = arguments(&sandbox().with_memory(Bytes(4096)));
        assert!(few.contains(" --size 4096 --tmpfs /dev/shm ") && few.contains(" --size 4096 --tmpfs /tmp "));
        let many = arguments(&sandbox().with_memory(Bytes(1 << 40)));
        assert!(many.contains(&format!(" --size {} --tmpfs /tmp ", 1_u64 << 30)));
        let nothing = arguments(&sandbox().with_memory(Bytes(0)));
        assert!(nothing.contains(&format!(" --size {} --tmpfs /dev/shm ", 1_u64 << 30)));
    }

    #[test]
    fn a_launcher_reads_what_an_agent_writes() {
        let sandbox = sandbox()
            .reading("/env")
            .with_devices(vec!["/dev/nvidia0".into()]);
        let argument = sandbox.to_argument().unwrap();
        assert_eq!(
            serde_json::from_str::<Sandbox>(argument.to_str().unwrap()).unwrap(),
            sandbox
        );
    }

    #[test]
    fn bubblewrap_is_not_taken_from_a_relative_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bwrap"), "").unwrap();
        let path = |text: String| program_in(Some(text.into()));
        assert_eq!(path(":.:bin".into()), None);
        let found = path(format!(".:{}", folder.path().display()));
        assert_eq!(found, Some(folder.path().join("bwrap")));
        assert_eq!(program_in(None), None);
    }
}
