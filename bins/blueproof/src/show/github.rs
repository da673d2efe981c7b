//! What GitHub Actions makes of a run: a note at the notebook's line, a summary of the step, and folded progress.
//!
//! The commands are lines that begin with `::`, which the runner takes out of what a step prints:
//! <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>. What a notebook says stands in them
//! escaped, so that none of it is a command.

use std::{
    env,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
};

use blueproof_core::{domain::Failure, ports::AttemptOutput, view::RunView};
use blueproof_diagnostic::Diagnostic;
use blueproof_notebook::{report::FailedLine, text::block};

/// Whether this is a step of a workflow.
fn is_here() -> bool {
    env::var("GITHUB_ACTIONS").is_ok_and(|value| value == "true")
}

/// Folds what is printed until [`end_group`].
pub(crate) fn begin_group(title: &str) {
    if is_here() {
        eprintln!("::group::{}", data(title));
    }
}

/// Ends what [`begin_group`] began.
pub(crate) fn end_group() {
    if is_here() {
        eprintln!("::endgroup::");
    }
}

/// Marks the line at which a run failed, and writes the step's summary. `verdict` is what a terminal shows.
pub(crate) async fn tell(run: &RunView, output: &dyn AttemptOutput, verdict: &str) {
    if !is_here() {
        return;
    }
    if let Some(failure) = &run.failure {
        let failed = FailedLine::in_report(run, output).await;
        eprintln!("{}", annotation(run, failure, failed.as_ref().map(place)));
    }
    // A summary that cannot be written is missed by nobody who sees the step's log.
    if let Some(file) = env::var_os("GITHUB_STEP_SUMMARY") {
        let _ = append(Path::new(&file), &summary(run, verdict));
    }
}

fn annotation(run: &RunView, failure: &Failure, at: Option<(PathBuf, Option<u32>)>) -> String {
    let Diagnostic { code, message, .. } = &failure.diagnostic;
    let title = format!("{} {}: {code}", run.subject.blueprint, run.id);
    let place = at.map(|(file, line)| {
        let line = line.map(|line| format!("line={line},")).unwrap_or_default();
        format!("file={},{line}", property(&file.display().to_string()))
    });
    let place = place.unwrap_or_default();
    format!("::error {place}title={}::{}", property(&title), data(message))
}

/// Returns the notebook's file, relative to the workspace, and its line that failed, where it is one.
fn place(failed: &FailedLine) -> (PathBuf, Option<u32>) {
    let workspace = env::var_os("GITHUB_WORKSPACE").unwrap_or_default();
    let inside = failed.file.strip_prefix(workspace);
    let file = inside.unwrap_or(failed.file_in_repository());
    (file.to_path_buf(), failed.line)
}

fn summary(run: &RunView, verdict: &str) -> String {
    let plain = anstream::adapter::strip_str(verdict).to_string();
    // A fence that is longer than any run of backticks within it.
    let longest = plain.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!(
        "### {} {}\n\n{fence}text\n{}\n{fence}\n",
        run.subject.blueprint,
        run.id,
        plain.trim_end()
    )
}

fn append(file: &Path, text: &str) -> std::io::Result<()> {
    File::options()
        .append(true)
        .create(true)
        .open(file)?
        .write_all(text.as_bytes())
}

fn data(text: &str) -> String {
    block(text)
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_notebook_says_is_no_command() {
        let hostile = "100 %\r\n::set-env name=X::y\x1b[2J";
        let told = data(hostile);
        assert!(
            told.starts_with("100 %25%0A") && !told.contains(['\n', '\r', '\x1b']),
            "{told}"
        );
        assert_eq!(property("a:b,c"), "a%3Ab%2Cc");
    }
}
