//! The folder with a kernel's sockets and connection file.
//!
//! It is for its owner only, because whoever reaches the sockets' folder reaches the kernel, and its path is short,
//! because a unix socket's path has at most 108 bytes. The notebook's temporary folder is reached through it for the
//! same reason: Python's multiprocessing makes sockets there.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
};

use blueproof_core::attempt::remove_folder;

use super::wire::Endpoints;

/// The longest path of a unix socket, its final zero byte included.
const SOCKET_PATH_MAX: usize = 108;

/// What the name of a kernel's folder begins with.
const PREFIX: &str = "bp-";

/// What a kernel listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Unix sockets, which no two kernels ever share. Not every kernel has them.
    Unix,
    /// TCP ports of this machine alone. Every kernel has them, and a port that was free may be another's a moment later.
    Tcp,
}

/// What a kernel needs on disk while it runs. The folder is removed with this.
#[derive(Debug)]
pub(crate) struct Runtime {
    folder: PathBuf,
    endpoints: Endpoints,
}

impl Runtime {
    /// Returns a folder that no runtime has or ever had.
    pub(crate) fn new_folder() -> PathBuf {
        let name: String = uuid::Uuid::new_v4()
            .simple()
            .to_string()
            .chars()
            .take(8)
            .collect();
        short_base().join(format!("{PREFIX}{name}"))
    }

    /// Removes the folders of kernels that ended and whose notebook had its temporary folder in `work`.
    pub(crate) fn remove_left(work: &Path) {
        let temporary = work.join("tmp");
        let Ok(entries) = fs::read_dir(short_base()) else {
            return;
        };
        for entry in entries.flatten() {
            let is_ours = entry.file_name().as_bytes().starts_with(PREFIX.as_bytes());
            if is_ours && fs::read_link(entry.path().join("t")).is_ok_and(|link| link == temporary) {
                let _ = remove_folder(&entry.path());
            }
        }
    }

    /// Makes `folder`, which must not be there, and the notebook's temporary folder in `work`.
    pub(crate) fn create(folder: PathBuf, work: &Path, transport: Transport) -> io::Result<Self> {
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let sockets = folder.join("k");
        fs::DirBuilder::new().mode(0o700).create(&sockets)?;
        let key = format!(
            "{}{}",
            uuid::Uuid::new_v4().simple(),
            uuid::Uuid::new_v4().simple()
        );
        let endpoints = match transport {
            Transport::Unix => Endpoints::unix(&sockets.join("s"), key),
            Transport::Tcp => Endpoints::tcp(key)?,
        };
        let runtime = Self { folder, endpoints };
        write_private(&runtime.connection_file(), &runtime.endpoints.to_file())?;
        let temporary = work.join("tmp");
        fs::create_dir_all(&temporary)?;
        std::os::unix::fs::symlink(fs::canonicalize(&temporary)?, runtime.temporary())?;
        Ok(runtime)
    }

    /// Returns whether another process has taken an address that was free when it was chosen, and chooses others then.
    pub(crate) fn renew_if_taken(&mut self) -> io::Result<bool> {
        if !self.endpoints.are_taken() {
            return Ok(false);
        }
        self.endpoints = self.endpoints.renewed()?;
        fs::remove_file(self.connection_file())?;
        write_private(&self.connection_file(), &self.endpoints.to_file())?;
        Ok(true)
    }

    /// Returns the folder itself.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns where the kernel listens.
    pub(crate) fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Returns the file that a kernel reads its endpoints from.
    pub(crate) fn connection_file(&self) -> PathBuf {
        self.folder().join("kernel.json")
    }

    /// Returns the notebook's temporary folder, by a path that is short enough for sockets in it.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.folder().join("t")
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let _ = remove_folder(&self.folder);
    }
}

/// Returns the machine's temporary folder, or `/tmp` where the former's path is too long for sockets, or leads elsewhere from
/// another folder.
fn short_base() -> PathBuf {
    // `/bp-XXXXXXXX/t/pymp-XXXXXXXX/listener-XXXXXXXX` is the longest that is usual below it.
    const BELOW: usize = 50;
    let base = std::env::temp_dir();
    usable(base, BELOW)
}

fn usable(base: PathBuf, below: usize) -> PathBuf {
    if base.is_absolute() && base.as_os_str().len() + below < SOCKET_PATH_MAX {
        base
    } else {
        PathBuf::from("/tmp")
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn sockets_lie_in_the_temporary_folder_unless_it_is_too_long_or_no_whole_path() {
        let of = |base: &str| usable(base.into(), 50);
        assert_eq!(of("/var/tmp"), Path::new("/var/tmp"));
        for base in ["", "relative", &format!("/{}", "x".repeat(100))] {
            assert_eq!(of(base), Path::new("/tmp"), "{base}");
        }
    }

    #[test]
    fn a_port_that_was_taken_meanwhile_is_given_up_for_another() {
        let work = tempfile::tempdir().unwrap();
        let mut runtime = Runtime::create(Runtime::new_folder(), work.path(), Transport::Tcp).unwrap();
        let file = |runtime: &Runtime| fs::read_to_string(runtime.connection_file()).unwrap();
        let port = |text: &str| {
            let file: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(
                (&file["transport"], &file["ip"]),
                (&"tcp".into(), &"127.0.0.1".into())
            );
            u16::try_from(file["shell_port"].as_u64().unwrap()).unwrap()
        };
        let first = file(&runtime);
        let taken = std::net::TcpListener::bind(("127.0.0.1", port(&first))).unwrap();
        assert!(runtime.renew_if_taken().unwrap());
        assert_ne!(port(&file(&runtime)), port(&first));
        drop(taken);
    }

    #[test]
    fn nobody_else_can_enter_and_sockets_have_short_paths() {
        let deep = tempfile::tempdir().unwrap();
        let work = deep.path().join("deep".repeat(40));
        let runtime = Runtime::create(Runtime::new_folder(), &work, Transport::Unix).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(runtime.folder()), 0o700);
        assert_eq!(mode(&runtime.connection_file()), 0o600);
        let listener = runtime.temporary().join("pymp-12345678/listener-12345678");
        assert!(listener.as_os_str().len() < SOCKET_PATH_MAX);
        assert!(runtime.temporary().is_dir());
    }
}
