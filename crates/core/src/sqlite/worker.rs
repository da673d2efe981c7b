//! A connection on a thread of its own: SQLite blocks, its callers must not.

use std::{fmt, io, sync::mpsc, thread};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::columns;

type Work = Box<dyn FnOnce(&mut Connection) + Send>;

/// A connection that does one thing after the other. The thread ends when this is dropped.
pub(super) struct Worker {
    work: Option<mpsc::Sender<Work>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Worker {
    pub(super) fn new(name: &str, mut connection: Connection) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel::<Work>();
        let run = move || receiver.into_iter().for_each(|work| work(&mut connection));
        let thread = thread::Builder::new().name(name.into()).spawn(run)?;
        Ok(Self {
            work: Some(sender),
            thread: Some(thread),
        })
    }

    /// Does `work` and returns what came of it. Once called it is done, even when nobody waits for it any more.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, columns::Error> + Send + 'static,
    ) -> Result<T, columns::Error> {
        let (sender, receiver) = oneshot::channel();
        let work: Work = Box::new(move |connection| {
            // Nobody may be waiting any more; the work is done all the same.
            let _ = sender.send(work(connection));
        });
        let sent = self.work.as_ref().expect("there until dropped").send(work);
        sent.expect("the thread lives as long as its sender");
        receiver.await.expect("all work that is sent is done")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has already been reported there.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}
