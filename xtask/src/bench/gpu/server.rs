//! A server that is measured: started, looked at through `/proc`, and ended.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::super::memory::Memory;
use crate::process::Invocation;

/// A server, which ends with this.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    /// Where it listens.
    pub(super) address: String,
    /// Its log: were it closed, nothing could be told any more.
    _log: BufReader<std::process::ChildStderr>,
}

impl Server {
    /// Starts a program that says on its standard error where it listens. It finds the driver's library in `driver`.
    pub(super) fn start(invocation: &Invocation, driver: &Path) -> Result<Self> {
        let invocation = invocation
            .clone()
            .env("LD_LIBRARY_PATH", &driver.display().to_string());
        let mut command = invocation.command(driver);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("could not start `{invocation}`"))?;
        let mut log = BufReader::new(child.stderr.take().expect("it was asked for"));
        let mut said = String::new();
        log.read_line(&mut said)
            .with_context(|| format!("could not read what `{invocation}` says"))?;
        let address = address(&said).map(str::to_owned);
        let server = Self {
            address: address.clone().unwrap_or_default(),
            child,
            _log: log,
        };
        ensure!(address.is_some(), "`{invocation}` does not listen: {said}");
        Ok(server)
    }

    /// Returns how long it has had a processor.
    pub(super) fn processor_time(&self, tick: Duration) -> Result<Duration> {
        let stat = self.read("stat")?;
        let ticks = ticks(&stat).with_context(|| format!("not a process' figures: {stat}"))?;
        Ok(tick * ticks)
    }

    /// Returns what it holds now.
    pub(super) fn memory(&self) -> Result<Memory> {
        Memory::of_process(self.child.id())
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.child.id());
        fs::read_to_string(&path).with_context(|| format!("could not read `{path}`"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns how long a tick of the system's clock is, in which it counts processor time.
pub(super) fn tick() -> Duration {
    let per_second = Invocation::of("getconf", ["CLK_TCK"]).ask(Path::new("."));
    let per_second = per_second.and_then(|text| text.trim().parse::<u32>().ok());
    // All Linux systems in use have a hundred.
    Duration::from_secs(1) / per_second.unwrap_or(100).max(1)
}

fn ticks(stat: &str) -> Option<u32> {
    // The program's name stands in brackets and may hold brackets and spaces of its own.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace().skip(11);
    let (user, system): (u32, u32) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(user + system)
}

fn address(said: &str) -> Option<&str> {
    let rest = said.trim().strip_prefix("listening on http://")?;
    rest.strip_suffix("/metrics")
}

/// Puts a driver's library and its scenario into a folder.
pub(super) fn install(library: &Path, scenario: &serde_json::Value, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("could not make `{}`", folder.display()))?;
    let installed = folder.join("libnvidia-ml.so.1");
    fs::copy(library, &installed).with_context(|| format!("could not copy `{}`", library.display()))?;
    let path = folder.join("scenario.json");
    let file = File::create(&path).with_context(|| format!("could not write `{}`", path.display()))?;
    serde_json::to_writer(file, scenario).with_context(|| format!("could not write `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_that_of_the_program_and_of_the_system_for_it() {
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194304 900 0 0 0 17 5 0 0 20 0 3 0 100 1000 10\n";
        assert_eq!(ticks(stat), Some(22));
        assert_eq!(ticks("42 (a) S 1"), None);
    }

    #[test]
    fn a_server_says_where_it_listens() {
        let said = "listening on http://127.0.0.1:9477/metrics\n";
        assert_eq!(address(said), Some("127.0.0.1:9477"));
        assert_eq!(address("error: no\n"), None);
    }
}
