//! A terminal that a command is typed into.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::fd::OwnedFd,
    process::{Child, Command},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// A terminal of a given width, and the command that is shown in it.
pub(crate) struct Terminal {
    screen: File,
    command: Child,
}

impl Terminal {
    /// Starts a command in a terminal with so many columns.
    pub(crate) fn start(mut command: Command, columns: u16) -> io::Result<Self> {
        let screen: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&screen)?;
        unlockpt(&screen)?;
        let size = Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&screen, size)?;
        let name = ptsname(&screen, Vec::new())?;
        let name = name.to_str().expect("device files have plain names");
        let keyboard = OpenOptions::new().read(true).write(true).open(name)?;
        command.env_remove("CI").env("TERM", "xterm");
        command.stdout(keyboard.try_clone()?).stderr(keyboard);
        let started = Self {
            screen: screen.into(),
            command: command.spawn()?,
        };
        Ok(started)
    }

    /// Does something once all of these have been on the screen, then waits for the command's end, and returns its exit
    /// code and everything that it wrote.
    pub(crate) fn end_once_seen(mut self, texts: &[&str], then: impl FnOnce()) -> (Option<i32>, String) {
        let mut written = Vec::new();
        let mut then = Some(then);
        let mut some = [0; 4096];
        // When nobody has it open any more, a terminal ends with an error.
        while let Ok(count @ 1..) = self.screen.read(&mut some) {
            written.extend_from_slice(&some[..count]);
            let so_far = String::from_utf8_lossy(&written);
            if texts.iter().all(|text| so_far.contains(text))
                && let Some(then) = then.take()
            {
                then();
            }
        }
        let ended = self.command.wait().expect("it ends");
        (ended.code(), String::from_utf8(written).expect("text"))
    }
}
