//! A small disk that can be full: a file system in memory, seen by nobody but the commands that are started on it.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// A disk that is gone with this.
#[derive(Debug)]
pub(crate) struct SmallDisk {
    /// Holds the namespace in which it is mounted.
    keeper: Child,
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts one at a folder. `None`, which is said, where this user may not mount anything.
    pub(crate) fn mount(folder: &Path, kib: u32) -> Option<Self> {
        let mut keeper = Command::new("unshare");
        keeper
            .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
            .arg("mount -t tmpfs -o size=\"$2k\" none \"$1\" && echo mounted && exec cat")
            .arg("sh")
            .arg(folder)
            .arg(kib.to_string());
        keeper.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mounted = keeper.spawn().ok().and_then(|mut keeper| {
            let mut said = String::new();
            BufReader::new(keeper.stdout.take()?).read_line(&mut said).ok()?;
            let folder = folder.to_owned();
            let disk = Self { keeper, folder };
            (said == "mounted\n").then_some(disk)
        });
        if mounted.is_none() {
            // Not by a macro, whose words the test harness keeps to itself where a test passes.
            let _ = writeln!(
                io::stderr(),
                "NOT TESTED: a full disk, because `unshare --user --mount` may not be used here"
            );
        }
        mounted
    }

    /// Returns the command as one that sees this disk.
    pub(crate) fn seen_by(&self, command: &Command) -> Command {
        let mut entering = Command::new("nsenter");
        entering
            .args(["--preserve-credentials", "--user", "--mount", "--target"])
            .arg(self.keeper.id().to_string())
            .args(["env", "-C"])
            .arg(command.get_current_dir().unwrap_or(Path::new("/")))
            .arg(command.get_program())
            .args(command.get_args());
        for (variable, value) in command.get_envs() {
            match value {
                Some(value) => entering.env(variable, value),
                None => entering.env_remove(variable),
            };
        }
        entering.stdin(Stdio::null());
        entering
    }

    /// Has only so much space left.
    pub(crate) fn fill_up_to(&self, free_kib: u64) {
        let mut filler = File::create(self.filler()).expect("it can be written");
        let full = io::copy(&mut io::repeat(b'x'), &mut filler).expect_err("it is small");
        assert_eq!(full.kind(), io::ErrorKind::StorageFull, "{full}");
        let length = filler.metadata().expect("it is there").len();
        filler
            .set_len(length - free_kib * 1024)
            .expect("it can be shortened");
    }

    /// Has all the space again that it was filled with.
    pub(crate) fn empty(&self) {
        fs::remove_file(self.filler()).expect("it was filled");
    }

    fn filler(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.keeper.id()));
        let below = self.folder.strip_prefix("/").expect("an absolute path");
        root.join(below).join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What cannot be ended has ended.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}
