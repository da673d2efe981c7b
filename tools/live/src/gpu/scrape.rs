//! What a scrape of the exporter takes with this driver.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result};

use super::{
    Arguments, Finding,
    table::{Table, spread},
};

const TIMES: usize = 1000;

/// The exporter, which ends with this.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Finding> {
    let mut command = Command::new(&arguments.exporter);
    command.args(["--listen", "127.0.0.1:0", "--wait", "10000"]);
    command.arg("--library").arg(arguments.library());
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let started = command
        .spawn()
        .with_context(|| format!("could not start {}", arguments.exporter.display()))?;
    let mut server = Server(started);
    let mut log = BufReader::new(server.0.stderr.take().expect("it was asked for"));
    let mut said = String::new();
    log.read_line(&mut said)
        .context("it does not say where it listens")?;
    let address = said.trim().strip_prefix("listening on ");
    let address = address.with_context(|| format!("it does not listen: {said}"))?;

    let mut table = Table::new(&["scrape", "milliseconds", "bytes"]);
    let mut times = Vec::new();
    for number in 0..TIMES {
        let began = Instant::now();
        let page = ureq::get(address).call()?.body_mut().read_to_string()?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        table.push([
            number.to_string(),
            format!("{:.3}", times[number]),
            page.len().to_string(),
        ]);
    }
    let [p50, p99, most] = spread(&times).expect("it was scraped");
    let mut words = vec![format!("p50 {p50:.2} ms, p99 {p99:.2} ms, at most {most:.2} ms")];
    words.extend(resident(server.0.id()).map(|kibibytes| format!("{kibibytes} KiB are resident")));
    Ok(Finding::Measured(table, words))
}

fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}
