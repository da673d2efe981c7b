//! What is looked at before there is a run, where that takes its time.

use std::{
    io::{IsTerminal, stderr},
    path::Path,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::output;

/// Who waits no longer than this wants no word.
const SHOW_AFTER: Duration = Duration::from_millis(700);

/// A line on stderr that says where looking is.
pub(crate) struct Looking {
    begun: Instant,
    bar: ProgressBar,
    entries: u64,
}

impl Looking {
    /// Returns a line that is not shown yet.
    pub(crate) fn begin() -> Self {
        let target = if stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(8)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(indicatif::ProgressStyle::with_template("{wide_msg}").expect("it is one"));
        Self {
            begun: Instant::now(),
            bar,
            entries: 0,
        }
    }

    /// Says what is looked at now.
    pub(crate) fn at(&mut self, path: &Path) {
        self.entries += 1;
        if self.begun.elapsed() > SHOW_AFTER {
            let path = output::line(&path.display().to_string());
            self.bar.set_message(format!(
                "looking for blueprints: {} files and folders, at {path}",
                self.entries
            ));
            self.bar.tick();
        }
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Says on stderr what is being done, once that has taken a moment.
pub(crate) struct Meanwhile {
    done: Option<Sender<()>>,
    speaker: Option<JoinHandle<()>>,
}

impl Meanwhile {
    /// Says `text` unless this is dropped soon.
    pub(crate) fn say(text: String) -> Self {
        let (done, until_done) = mpsc::channel();
        let wait = move || {
            if until_done.recv_timeout(SHOW_AFTER) == Err(RecvTimeoutError::Timeout) {
                output::note(&text);
            }
        };
        Self {
            done: Some(done),
            // Where no thread can be had, nothing is said.
            speaker: thread::Builder::new().spawn(wait).ok(),
        }
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        drop(self.done.take());
        if let Some(speaker) = self.speaker.take() {
            let _ = speaker.join();
        }
    }
}
