//! Signals to processes that are the ones that are meant.

use std::io;

use blueproof_core::attempt::{Presence, ProcessName};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Sends a signal to a process, if it is still there.
pub(crate) fn signal(process: &ProcessName, signal: Signal) -> io::Result<()> {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    let opened = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(opened) => opened,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    // The number may have passed to another process before it was opened.
    if process.presence() != Presence::Alive {
        return Ok(());
    }
    match pidfd_send_signal(&opened, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
