//! `blueproof logs RUN`: what the notebook printed, made harmless for a terminal.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    future,
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use blueproof_core::{
    attempt::{Record, RecordKind},
    domain::{AttemptId, RunId, RunState},
    ports::{AttemptOutput, OutputError, RecordFollower, StoreError},
    view::RunView,
};
use blueproof_notebook::text::Sanitiser;

use super::kept::gone;
use crate::{
    backend::Backend,
    cli::Logs,
    exit::{Exit, Problem},
    output,
    reading::{LeaderWatch, Reading},
    show,
};

/// How often it is looked whether somebody drives the run. What it prints, and how it goes on, is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Prints an attempt of a run, the last one unless another is named; with `--follow` until the run is over.
pub(crate) async fn logs(reading: &Reading, arguments: &Logs) -> Result<Exit, Problem> {
    let store = reading.store_with(&arguments.run)?;
    let run = arguments.attempt.of(arguments.run.resolve(&**store).await?)?;
    let output = store.output();
    if let Some(gone) = gone(&run, &*output).await? {
        return Err(Problem::usage(gone));
    }
    let Some(mut printer) = Printer::new(arguments, &run) else {
        anstream::eprintln!(
            "{} failed in no cell; `blueproof describe run {0}` says why it ended",
            run.id
        );
        return Ok(Exit::Ok);
    };
    match print_all(&output, store, arguments, run.id, &mut printer).await {
        // Whoever reads has seen enough, as in `blueproof logs last | head`.
        Err(Ended::NobodyReads) => Ok(Exit::Ok),
        Ok(()) => {
            match (printer.cell, printer.only) {
                (None, Some(wanted)) => {
                    output::note(&format!("{}: {}", run.id, without_text(wanted, &printer.begun)));
                }
                (None, None) if printer.begun.is_empty() => output::note(&nothing_ran(&run)),
                (None | Some(_), _) => {}
            }
            Ok(Exit::Ok)
        }
        Err(Ended::Problem(problem)) => Err(problem),
    }
}

/// Why printing ended early.
enum Ended {
    NobodyReads,
    Problem(Problem),
}

impl From<StoreError> for Ended {
    fn from(error: StoreError) -> Self {
        Ended::Problem(error.into())
    }
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Ended::NobodyReads
    }
}

async fn print_all(
    output: &Arc<dyn AttemptOutput>,
    store: &Backend,
    arguments: &Logs,
    run: RunId,
    printer: &mut Printer,
) -> Result<(), Ended> {
    let mut leader_watch = LeaderWatch::default();
    loop {
        // Before the run is read, so that no change of it is missed.
        let seen = store.changed(None).await;
        let view = store.run(run).await?;
        let Some(view) = view else { return Ok(()) };
        let view = arguments.attempt.of(view).map_err(Ended::Problem)?;
        if let Some(attempt) = view.attempts.last() {
            printer.print_ready(attempt.id, output).await?;
        }
        if view.settled || !arguments.follow {
            printer.end()?;
            if let Some(error) = &printer.unread {
                show::aside(&error.to_diagnostic());
            }
            return Ok(());
        }
        leader_watch.look(store, std::slice::from_ref(&view))?;
        tokio::select! {
            _ = store.changed(Some(seen)) => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
            ended = printer.print_on() => match ended? {},
        }
    }
}

/// Prints what the cells that are wanted printed.
struct Printer {
    only: Option<u32>,
    records: Option<RecordFollower>,
    /// Why what may follow was not read.
    unread: Option<OutputError>,
    cell: Option<u32>,
    /// The cells that ran.
    begun: BTreeSet<u32>,
    sanitiser: Sanitiser,
}

/// Returns why there is nothing to be read of a cell, by those that ran.
fn without_text(wanted: u32, begun: &BTreeSet<u32>) -> String {
    match begun.last() {
        _ if begun.contains(&wanted) => format!("cell {wanted} printed nothing"),
        Some(last) => format!("there is no cell {wanted} that ran; the last one that did is cell {last}"),
        None => "no cell ran".into(),
    }
}

/// Returns why there is nothing to be read of a run of which no cell was seen to begin.
fn nothing_ran(run: &RunView) -> String {
    match run.state {
        RunState::Ended(_) => format!(
            "{}: no cell ran; `blueproof describe run {0}` says why it ended",
            run.id
        ),
        RunState::AwaitingApproval
        | RunState::Queued
        | RunState::Reserved
        | RunState::Starting
        | RunState::Running => format!("{}: no cell has begun ({})", run.id, run.state_in_words()),
    }
}

impl Printer {
    /// `None` where only a failed cell is wanted and none failed.
    fn new(arguments: &Logs, run: &RunView) -> Option<Self> {
        let failed = run
            .failure
            .as_ref()
            .and_then(|failure| failure.cell.as_ref())
            .map(|place| place.cell);
        let only = if arguments.failed {
            Some(failed?)
        } else {
            arguments.cell
        };
        Some(Self {
            only,
            records: None,
            unread: None,
            cell: None,
            begun: BTreeSet::new(),
            sanitiser: Sanitiser::default(),
        })
    }

    /// Prints what there is. What cannot be read now may be later.
    async fn print_ready(&mut self, attempt: AttemptId, output: &Arc<dyn AttemptOutput>) -> io::Result<()> {
        if self
            .records
            .as_ref()
            .is_none_or(|records| records.attempt() != attempt)
        {
            self.records = Some(RecordFollower::new(output.clone(), attempt));
        }
        self.unread = None;
        while let Some(follower) = &mut self.records {
            match follower.ready().await {
                Ok(records) if records.is_empty() => break,
                Ok(records) => records.iter().try_for_each(|record| self.print(record))?,
                Err(error) => {
                    self.unread = Some(error);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Prints what comes, for ever; returns where nobody reads it. Safe to drop.
    async fn print_on(&mut self) -> io::Result<Infallible> {
        while let Some(follower) = &mut self.records
            && let Ok(records) = follower.next().await
        {
            records.iter().try_for_each(|record| self.print(record))?;
        }
        future::pending().await
    }

    fn print(&mut self, record: &Record) -> io::Result<()> {
        match &record.kind {
            RecordKind::CellBegun { cell, .. } => {
                self.begun.insert(*cell);
                Ok(())
            }
            RecordKind::Text { cell, text, .. } => self.print_text(*cell, text),
            RecordKind::Display { cell, output } => match plain_text(output) {
                Some(text) => self.print_text(*cell, &format!("{text}\n")),
                None => Ok(()),
            },
            RecordKind::Truncated { cell, limit } => self.print_text(
                *cell,
                &format!("\n(cell {cell} printed or showed more than {limit}; the end of its text follows when it is over)\n"),
            ),
            RecordKind::LeftOut { cell, bytes } => self.print_text(
                *cell,
                &format!("\n({} of what cell {cell} printed are left out here)\n", bytes.rounded()),
            ),
            RecordKind::Begun { .. }
            | RecordKind::StageBegun { .. }
            | RecordKind::StageProgress { .. }
            | RecordKind::StageEnded { .. }
            | RecordKind::EnvironmentReady { .. }
            | RecordKind::KernelReady { .. }
            | RecordKind::Metric { .. }
            | RecordKind::CellEnded { .. }
            | RecordKind::CellUsed { .. }
            | RecordKind::DevicesUnhealthy { .. }
            | RecordKind::MachineSeen { .. }
            | RecordKind::Noticed { .. }
            | RecordKind::ExpectationsChecked { .. }
            | RecordKind::FilesKept { .. }
            | RecordKind::Finished { .. } => Ok(()),
        }
    }

    fn print_text(&mut self, cell: u32, text: &str) -> io::Result<()> {
        if self.only.is_some_and(|only| only != cell) {
            return Ok(());
        }
        if self.cell != Some(cell) {
            self.end()?;
            self.cell = Some(cell);
            if self.only.is_none() {
                writeln!(anstream::stdout(), "── cell {cell}")?;
            }
        }
        let harmless = self.sanitiser.push(text);
        write!(anstream::stdout(), "{harmless}")
    }

    /// Prints what is left of the last line.
    fn end(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.sanitiser).finish();
        write!(anstream::stdout(), "{rest}")?;
        anstream::stdout().flush()
    }
}

/// Returns what a display output is in plain text: a traceback, or its text form.
fn plain_text(output: &serde_json::Value) -> Option<String> {
    let text = match output.get("traceback") {
        Some(traceback) => traceback,
        None => output.get("data")?.get("text/plain")?,
    };
    match text {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Array(lines) => {
            let separator = if output.get("traceback").is_some() {
                "\n"
            } else {
                ""
            };
            let lines: Vec<&str> = lines.iter().filter_map(serde_json::Value::as_str).collect();
            Some(lines.join(separator))
        }
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_did_not_run_is_not_said_to_have_printed_nothing() {
        let begun = BTreeSet::from([1, 2]);
        assert_eq!(without_text(2, &begun), "cell 2 printed nothing");
        assert_eq!(
            without_text(3, &begun),
            "there is no cell 3 that ran; the last one that did is cell 2"
        );
        assert_eq!(without_text(3, &BTreeSet::new()), "no cell ran");
    }
}
