//! Waking when a file is written to.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use async_trait::async_trait;
use blueproof_core::ports::{RecordChanges, RecordPosition};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::{Interest, unix::AsyncFd};

/// The shortest time between two wakes: a file that is written to without pause is not looked at without pause.
const AT_LEAST: Duration = Duration::from_millis(2);

/// The longest: another file may have been put in its place, and where the system does not tell, such as on a network file
/// system, of a file that is not there yet, or when it has no watch left to give, only time passes.
const AT_MOST: Duration = Duration::from_millis(100);

/// Tells when a file is written to.
#[derive(Debug)]
pub(super) struct Changes {
    path: PathBuf,
    at_most: Duration,
    events: Option<AsyncFd<OwnedFd>>,
}

impl Changes {
    /// Watches the file that is at `path`.
    pub(super) fn of(path: PathBuf) -> Self {
        let events = watch(&path).ok();
        Self {
            path,
            at_most: AT_MOST,
            events,
        }
    }
}

#[async_trait]
impl RecordChanges for Changes {
    async fn next(&mut self, _after: &RecordPosition) {
        tokio::time::sleep(AT_LEAST).await;
        let rest = self.at_most.saturating_sub(AT_LEAST);
        let Some(events) = &self.events else {
            tokio::time::sleep(rest).await;
            self.events = watch(&self.path).ok();
            return;
        };
        if let Ok(Ok(mut ready)) = tokio::time::timeout(rest, events.readable()).await {
            read_all(events.get_ref());
            ready.clear_ready();
        }
    }
}

impl Drop for Changes {
    /// Leaves closing to another thread: the system waits there until nobody can be about to tell of anything, which takes a
    /// hundredth of a second, and then has nothing more to say.
    fn drop(&mut self) {
        if let Some(events) = self.events.take() {
            let events = events.into_inner();
            let _ = thread::Builder::new().spawn(move || drop(events));
        }
    }
}

fn watch(path: &Path) -> io::Result<AsyncFd<OwnedFd>> {
    let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&events, path, WatchFlags::MODIFY)?;
    #[expect(
        deprecated,
        reason = "the new way is unsafe code; an owned descriptor keeps its promise anyway"
    )]
    AsyncFd::with_interest(events, Interest::READABLE)
}

/// Takes all events away: that there is one says it all.
fn read_all(events: &OwnedFd) {
    let mut buffer = [MaybeUninit::<u8>::uninit(); 1024];
    while rustix::io::read(events, &mut buffer).is_ok_and(|(read, _)| !read.is_empty()) {}
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;

    /// Only ever reached by a test that fails.
    const BOUND: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_file_that_is_written_to_wakes_at_once() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut changes = Changes::of(file.path().into());
        changes.at_most = Duration::from_secs(3600);
        if changes.events.is_none() {
            println!("NOT TESTED: no inotify here");
            return;
        }
        for _ in 0..2 {
            file.write_all(b"a line\n").unwrap();
            let woken = tokio::time::timeout(BOUND, changes.next(&RecordPosition::default())).await;
            assert!(woken.is_ok(), "not woken");
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_watched_or_is_not_written_to_is_looked_at_when_time_is_up() {
        let folder = tempfile::tempdir().unwrap();
        let quiet = folder.path().join("quiet");
        fs::write(&quiet, "").unwrap();
        for path in [quiet, folder.path().join("missing")] {
            Changes::of(path).next(&RecordPosition::default()).await;
        }
    }

    #[tokio::test]
    async fn a_file_is_watched_once_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("later");
        let mut changes = Changes::of(path.clone());
        assert!(changes.events.is_none(), "there is nothing to watch");
        fs::write(&path, "").unwrap();
        changes.next(&RecordPosition::default()).await;
        if watch(&path).is_ok() {
            assert!(changes.events.is_some(), "it is there now");
        }
    }
}
