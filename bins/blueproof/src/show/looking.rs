//! What is looked at while blueprints are looked for, where that takes its time and there is a terminal.

use std::{
    io::{IsTerminal, stderr},
    path::Path,
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
