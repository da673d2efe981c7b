//! What `nvidia-smi` says, beside which we look.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

const PROGRAM: &str = "nvidia-smi";

/// Returns why there is none.
pub(super) fn missing() -> Option<String> {
    let asked = Command::new(PROGRAM)
        .arg("-L")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match asked {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("{PROGRAM} ended with {status}")),
        Err(error) => Some(format!("no {PROGRAM}: {error}")),
    }
}

/// Asks for these of each device: a row of fields for each.
pub(super) fn ask(fields: &[&str]) -> Result<Vec<Vec<String>>> {
    let output = Command::new(PROGRAM)
        .arg(format!("--query-gpu={}", fields.join(",")))
        .arg("--format=csv,noheader,nounits")
        .output()
        .with_context(|| format!("could not start {PROGRAM}"))?;
    ensure!(
        output.status.success(),
        "{PROGRAM} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stdout)
    );
    Ok(rows(&String::from_utf8_lossy(&output.stdout)))
}

pub(super) fn rows(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| line.split(',').map(|cell| cell.trim().to_owned()).collect();
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(cells)
        .collect()
}

/// Returns the number; of what a card does not have there is none.
pub(super) fn number(text: &str) -> Option<f64> {
    match text {
        "Yes" => Some(1.0),
        "No" => Some(0.0),
        _ => text.parse().ok(),
    }
}

/// Writes them down, ten times a second, until it is ended.
pub(super) fn log(fields: &[&str], to: &Path) -> Result<Child> {
    Command::new(PROGRAM)
        .arg(format!("--query-gpu={}", fields.join(",")))
        .args(["--format=csv,noheader,nounits", "-lms", "100", "-f"])
        .arg(to)
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("could not start {PROGRAM}"))
}
