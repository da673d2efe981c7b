//! Ends a sandbox whose files take more than they may.
//!
//! There are no quotas on a folder without rights that most machines do not give. So it is looked, several times a second, and
//! what was written between two looks is there for a moment. The machine's disk is kept from filling, too: files that were
//! removed and are still open take space that no folder shows.

use std::{
    io,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use blueproof_core::domain::Bytes;
use rustix::{
    fs::statvfs,
    process::{Signal, pidfd_send_signal},
};
use walkdir::WalkDir;

use super::Child;

const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How many files there may be: each takes an inode, however small it is.
const MOST_FILES: u64 = 500_000;

/// How much of the disk is left free for everybody else, and the part of a small disk that is.
const LEFT_FREE: u64 = 1 << 30;
const LEFT_PART: u64 = 20;

/// A look that goes on until this is dropped.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    limit: Bytes,
    is_over: Arc<AtomicBool>,
    has_ended_it: Arc<AtomicBool>,
}

impl DiskWatch {
    /// Begins to look at folders, and kills the process of the sandbox once they hold more than `limit`. `None` where the process
    /// is gone already.
    pub(crate) fn begin(folders: Vec<PathBuf>, limit: Bytes, child: &Child) -> Option<Self> {
        Some(Self::over(folders, limit, child.descriptor().ok()?))
    }

    /// Does so for the process of this descriptor.
    pub(crate) fn over(folders: Vec<PathBuf>, limit: Bytes, process: OwnedFd) -> Self {
        let watch = Self {
            limit,
            is_over: Arc::default(),
            has_ended_it: Arc::default(),
        };
        let (is_over, has_ended_it) = (Arc::clone(&watch.is_over), Arc::clone(&watch.has_ended_it));
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                if takes_too_much(&folders, limit.0) {
                    has_ended_it.store(true, Ordering::Relaxed);
                    let _ = kill(&process);
                    return;
                }
                thread::sleep(LOOK_EVERY);
            }
        });
        watch
    }

    /// Returns the limit, if it has ended the sandbox.
    pub(crate) fn hit(&self) -> Option<Bytes> {
        self.has_ended_it.load(Ordering::Relaxed).then_some(self.limit)
    }
}

impl Drop for DiskWatch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn kill(process: &OwnedFd) -> io::Result<()> {
    Ok(pidfd_send_signal(process, Signal::KILL)?)
}

fn takes_too_much(folders: &[PathBuf], limit: u64) -> bool {
    let (mut bytes, mut files) = (0_u64, 0_u64);
    for entry in folders.iter().flat_map(WalkDir::new).flatten() {
        // Blocks are of 512 bytes, whatever the file system's own are.
        let taken = entry
            .metadata()
            .map_or(0, |about| about.blocks().saturating_mul(512));
        bytes = bytes.saturating_add(taken);
        files += 1;
        if bytes > limit || files > MOST_FILES {
            return true;
        }
    }
    folders.first().is_some_and(|folder| is_nearly_full(folder))
}

fn is_nearly_full(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|disk| {
        let (all, free) = (disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize);
        free < LEFT_FREE.min(all / LEFT_PART)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_written_counts_and_what_is_only_long_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        let sparse = fs::File::create(folder.path().join("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        std::os::unix::fs::symlink("/usr", folder.path().join("elsewhere")).unwrap();
        assert!(!takes_too_much(&folders, 1 << 20));
        fs::write(folder.path().join("real"), vec![1; 2 << 20]).unwrap();
        assert!(takes_too_much(&folders, 1 << 20));
    }
}
