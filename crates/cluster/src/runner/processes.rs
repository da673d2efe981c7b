//! What a runner started: found by the mark in its environment, and killed.
//!
//! What cleared its environment is not found so. Whoever runs jobs of strangers gives them a machine or a container that ends
//! with them.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    time::{Duration, Instant},
};

use blueproof_core::{attempt::ProcessName, ports::CallError};
use rustix::process::Signal;

use super::folder::RunnerFolder;
use crate::signal::signal;

/// How long the kernel may take to end what was killed.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// How often it is looked meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Kills all that has `variable` with the runner's folder in its environment, and returns once nothing has.
pub(super) async fn end_all(variable: &str, folder: &RunnerFolder) -> Result<(), CallError> {
    let mark = [variable.as_bytes(), b"=", folder.root().as_os_str().as_bytes()].concat();
    let began = Instant::now();
    loop {
        let found = marked(&mark).map_err(|error| folder.cannot("look for the processes of", &error))?;
        if found.is_empty() {
            return Ok(());
        }
        for process in &found {
            signal(process, Signal::KILL).map_err(|error| folder.cannot("end a process of", &error))?;
        }
        if began.elapsed() > GONE_WITHIN {
            let error = io::Error::other(format!(
                "{} processes were killed and are still there",
                found.len()
            ));
            return Err(folder.cannot("end the processes of", &error));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Returns the processes that were started with this variable in their environment.
fn marked(mark: &[u8]) -> io::Result<Vec<ProcessName>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = pid_of(&entry?.file_name()) else {
            continue;
        };
        // One that has ended meanwhile, or is another user's, has none to be read.
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|one| one == mark) {
            found.extend(ProcessName::of(pid));
        }
    }
    Ok(found)
}

fn pid_of(name: &OsStr) -> Option<u32> {
    name.to_str()?.parse().ok()
}
