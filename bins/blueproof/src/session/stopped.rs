//! A process that leads and was stopped, as by Ctrl-Z: it holds the store all the same.

use std::fs;

use blueproof_diagnostic::{Code, Diagnostic};

use crate::backend::Backend;

/// Returns what is to be said where the process that drives was stopped, as by Ctrl-Z: it holds the store all the same.
pub(crate) fn stopped_driver(store: &Backend) -> Option<Diagnostic> {
    let pid = store.file()?.leader()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let state = status.lines().find_map(|line| line.strip_prefix("State:"))?;
    if !state.trim_start().starts_with(['T', 't']) {
        return None;
    }
    let message = format!(
        "process {pid}, which drives the runs of this store, is stopped: nothing is started or ended"
    );
    let warning = Diagnostic::warning(Code::LeftAlone, message);
    Some(warning.hint(format!(
        "`fg` in its terminal, or `kill -CONT {pid}`, lets it go on; after `kill -KILL {pid}` whoever waits takes over"
    )))
}
