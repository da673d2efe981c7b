//! Requests to stop, as signals: SIGINT once is "after this cell", twice is "now", and so is SIGTERM.

use std::io;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use crate::executor::{Stop, Stops};

/// Listens from now on. Must be called within a runtime.
pub(crate) fn listen() -> io::Result<Stops> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    // The terminal that the agent was started from may go; the agent stays.
    let mut hangups = signal(SignalKind::hangup())?;
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut was_interrupted = false;
        loop {
            let stop = tokio::select! {
                _ = terminations.recv() => Stop::Now,
                _ = hangups.recv() => continue,
                _ = interrupts.recv() => {
                    let again = std::mem::replace(&mut was_interrupted, true);
                    if again { Stop::Now } else { Stop::AfterCell }
                }
            };
            if sender.send(stop).is_err() {
                return;
            }
        }
    });
    Ok(Stops::new(receiver))
}
