//! Where a summary goes: to whoever looks at the terminal, to a step's summary on GitHub, and to files.

use std::{
    env,
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
};

use blueproof_diagnostic::Diagnostic;
use blueproof_gpu::account::JobSummary;

use super::push::push;
use crate::{
    cli::Published,
    files::{cannot, write_whole},
};

/// Where GitHub's runner shows the Markdown of a step.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Writes a summary to all places where it is wanted. All are tried; the first that failed is returned.
pub(super) fn publish(summary: &JobSummary, published: &Published) -> Result<(), Diagnostic> {
    let markdown = summary.to_markdown();
    let step = env::var_os(STEP_SUMMARY)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    let written = [
        published
            .json
            .as_deref()
            .map(|path| write_whole(path, json(summary).as_bytes())),
        published
            .markdown
            .as_deref()
            .map(|path| write_whole(path, markdown.as_bytes())),
        step.as_deref().map(|path| append(path, &markdown)),
        published.otlp.as_deref().map(|endpoint| push(summary, endpoint)),
    ];
    written.into_iter().flatten().collect()
}

/// Returns a summary as it is kept.
pub(super) fn json(summary: &JobSummary) -> String {
    serde_json::to_string_pretty(summary).expect("plain data") + "\n"
}

fn append(path: &Path, text: &str) -> Result<(), Diagnostic> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    // What a step printed there before may lack the end of its line.
    let written = file.and_then(|mut file| file.write_all(format!("\n{text}").as_bytes()));
    written.map_err(|error| cannot("write", path, &error))
}
