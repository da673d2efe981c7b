//! A command that keeps a GPU busy.

use std::{
    ffi::OsString,
    io,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};

/// How long it has to begin: it loads a framework, and the framework a driver.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);

/// One that runs, and ends with this.
#[derive(Debug)]
pub(super) struct Load(Child);

impl Load {
    /// Starts it, and waits until it has begun; `None` where there is none.
    pub(super) fn start(words: &[OsString]) -> Result<Option<Self>> {
        let Some((program, arguments)) = words.split_first() else {
            return Ok(None);
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command
            .spawn()
            .with_context(|| format!("could not start {}", program.display()))?;
        thread::sleep(BEGINS_WITHIN);
        Ok(Some(Self(child)))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _: io::Result<()> = self.0.kill();
        let _: io::Result<_> = self.0.wait();
    }
}
