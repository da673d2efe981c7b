//! A real Prometheus for tests, from Debian's package `prometheus`, and pages for it to read.
//!
//! What is asked, and what should come of it, is the tests' business.

mod page;
mod server;

pub use page::Page;
pub use server::{Job, Server, Setup};

use std::{
    env,
    io::{self, Write as _},
    path::Path,
    process::Command,
    time::Duration,
};

/// Longer than a scrape takes on a machine that has much else to do.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Returns `prometheus` or `promtool`, or says what is not tested because it is not here.
pub fn program(name: &str, what: &str) -> Option<Command> {
    let is_there = |folder: &Path| folder.join(name).is_file();
    let path = env::var_os("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|folder| is_there(&folder)) {
        return Some(Command::new(name));
    }
    // Not by a macro, whose words the test harness keeps to itself where a test passes.
    let _ = writeln!(
        io::stderr(),
        "NOT TESTED: {what}, because `{name}` is not here; Debian's package `prometheus` has it"
    );
    None
}
