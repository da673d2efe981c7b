//! The stages that a run passes, as lines.
//!
//! This module only makes text: it is told what is known of the run and of its attempt, and says which lines are
//! complete and what is going on now. Where they go, and how often, is [`super::progress`]'s.

use std::fmt::Write as _;

use blueproof_core::{
    attempt::{AttemptStage, Record, RecordKind},
    domain::{Actor, AttemptId, RunState, Verdict},
    event::Call,
    pending::PendingReason,
    policy::LocalApproval,
    view::{AttemptView, FailingCall, ReportView, RunView},
};
use blueproof_diagnostic::Diagnostic;
use blueproof_notebook::text::{counted, line, shown};
use blueproof_queue::objects::Objects;
use jiff::{SignedDuration, Timestamp};

use super::{
    quotas::nominal,
    text::{duration, figure, sparkline},
};
use crate::output;

/// How many values of a metric are kept for its sparkline.
const TRACE: usize = 32;

/// A run that waited for less was not held up.
const HELD_UP: SignedDuration = SignedDuration::from_secs(1);

/// One stage that has been passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Which.
    pub(crate) stage: &'static str,
    /// Whether it went well.
    pub(crate) mark: Mark,
    /// What came of it.
    pub(crate) text: String,
    /// How long it took.
    pub(crate) took: Option<SignedDuration>,
}

/// Whether a stage went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Well,
    Badly,
    Note,
}

/// What a run goes by that is shown.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Whether users of this machine approve their own runs by asking for them.
    pub(crate) approval: LocalApproval,
    /// The queues that hold.
    pub(crate) queues: Objects,
}

/// What is known of a run's way through the pipeline.
#[derive(Debug)]
pub(crate) struct Stages {
    terms: Terms,
    /// The last attempt of an earlier request: what became of it is not shown again.
    earlier: Option<AttemptId>,
    /// Whether it was seen to wait for an approval.
    awaited_approval: bool,
    passed: Passed,
    lines: Vec<Line>,
    /// The stages before the place, where nothing held the run up: they and its place make one line.
    unhindered: Option<Unhindered>,
    doing: Doing,
    attempt: Option<AttemptId>,
    run: Cells,
    metrics: Vec<(String, Vec<f64>)>,
    printing: String,
    /// What failed last, and was or is tried again.
    failing_calls: Vec<FailingCall>,
    /// When it is likely to end.
    ends: Option<String>,
}

/// How far the lines are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Passed {
    Nothing,
    Gate,
    Unplaced,
    Place,
    Evicted,
    Report,
}

/// Stages that took no time.
#[derive(Debug)]
struct Unhindered {
    /// What is worth knowing of them.
    brief: String,
    /// Their lines, for where the place is not made as quickly.
    lines: Vec<Line>,
}

/// What is going on now.
#[derive(Debug, Default)]
struct Doing {
    stage: &'static str,
    text: String,
    since: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Cells {
    total: u32,
    /// How many had begun, and so ended, before the one that runs.
    begun: u32,
    ended: u32,
    begun_at: Option<Timestamp>,
    failed: bool,
}

impl Stages {
    /// Returns the stages of a run that nothing is known of.
    pub(crate) fn new(terms: Terms) -> Self {
        Self {
            terms,
            earlier: None,
            awaited_approval: false,
            passed: Passed::Nothing,
            lines: Vec::new(),
            unhindered: None,
            doing: Doing::default(),
            attempt: None,
            run: Cells::default(),
            metrics: Vec::new(),
            printing: String::new(),
            failing_calls: Vec::new(),
            ends: None,
        }
    }

    /// Leaves out an attempt of an earlier request, and all before it.
    pub(crate) fn after(self, earlier: Option<AttemptId>) -> Self {
        Self { earlier, ..self }
    }

    /// Returns the lines that were completed since this was last asked.
    pub(crate) fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    /// Returns the attempt whose records are wanted: none before it is told where it runs.
    pub(crate) fn attempt(&self) -> Option<AttemptId> {
        self.attempt.filter(|_| self.passed >= Passed::Place)
    }

    /// Returns the stage that is being passed, what is going on in it, and since when.
    pub(crate) fn doing(&self) -> Option<(&'static str, String, Option<Timestamp>)> {
        if self.doing.stage.is_empty() {
            return None;
        }
        let mut text = self.doing.text.clone();
        if let Some(ends) = &self.ends {
            let _ = write!(text, " · {ends}");
        }
        if self.doing.stage == "run" {
            self.add_metrics(&mut text);
            let last = self.printing.trim();
            if !last.is_empty() {
                let _ = write!(text, " · {last}");
            }
        }
        Some((self.doing.stage, text, self.doing.since))
    }

    /// Takes in how the run stands, and what there is to say of that: why it waits, or when it is likely to end.
    pub(crate) fn on_view(&mut self, view: &RunView, outlook: Option<&str>) {
        let last = view.attempts.last();
        let attempt = last.filter(|last| Some(last.id) > self.earlier);
        self.awaited_approval |= matches!(view.waits(), Some(PendingReason::AwaitingApproval { .. }));
        if attempt.map(|attempt| attempt.id) != self.attempt {
            self.next_attempt(view);
        }
        match view.state {
            RunState::AwaitingApproval => {
                let text = outlook.unwrap_or("waits for an approval");
                self.begin("gate", &format!("{} {text}", view.id), view.waiting_since());
            }
            RunState::Queued => {
                let text = outlook.unwrap_or("waits");
                self.begin("queue", &format!("{} {text}", view.id), view.waiting_since());
            }
            RunState::Reserved => {
                let since = attempt.map_or(view.requested_at, |attempt| attempt.reserved_at);
                self.begin("place", "a place is being made", since);
            }
            RunState::Starting | RunState::Running | RunState::Ended(_) => {}
        }
        self.on_troubles(&view.failing_calls);
        let goes_on = matches!(view.state, RunState::Starting | RunState::Running);
        self.ends = outlook.filter(|_| goes_on).map(output::line);
        if let Some(place) = attempt.and_then(|attempt| attempt.place_in_words(view.resources))
            && self.passed < Passed::Place
        {
            self.passed = Passed::Place;
            match self.unhindered.take() {
                Some(Unhindered { brief, .. }) => {
                    self.line("start", Mark::Well, &format!("{brief} · {place}"), None);
                }
                None => self.line("place", Mark::Well, &place, None),
            }
        }
        if let Some(why) = attempt.and_then(why_unplaced)
            && self.passed < Passed::Unplaced
        {
            self.passed = Passed::Unplaced;
            self.line("place", Mark::Badly, &why.message, None);
        }
        if let Some(eviction) = attempt.and_then(|attempt| attempt.eviction.as_ref())
            && self.passed < Passed::Evicted
        {
            self.passed = Passed::Evicted;
            self.line("evicted", Mark::Note, &eviction.to_string(), None);
        }
    }

    /// Says what fails: a line for each thing that had not failed so before, and how it goes on beside what is going on.
    fn on_troubles(&mut self, failing_calls: &[FailingCall]) {
        for trouble in failing_calls {
            // It is made again within minutes, so that the day goes without saying.
            let text = trouble.told(&output::clock(trouble.again_at, trouble.again_at));
            let is_known = self
                .failing_calls
                .iter()
                .any(|known| (known.call, &known.last) == (trouble.call, &trouble.last));
            if !is_known {
                self.line(stage_of(trouble.call), Mark::Note, &text, None);
            }
            self.doing.text = output::line(&text);
        }
        if !failing_calls.is_empty() {
            self.failing_calls = failing_calls.to_vec();
        }
    }

    /// Takes in whether the run is over: after the last records of its last attempt.
    pub(crate) fn on_end(&mut self, view: &RunView) {
        if view.settled && self.passed < Passed::Report {
            self.passed = Passed::Report;
            self.doing = Doing::default();
            match &view.report {
                ReportView::Written => {
                    self.line("report", Mark::Well, "report.html, report.json, junit.xml", None);
                }
                ReportView::GivenUp(problem) => self.line("report", Mark::Badly, &problem.message, None),
                ReportView::NotDue | ReportView::Due => {}
            }
        }
    }

    /// Takes in what the attempt's agent wrote.
    pub(crate) fn on_record(&mut self, record: &Record) {
        match &record.kind {
            RecordKind::StageBegun { stage } => self.begin(stage.as_str(), "", record.at),
            RecordKind::StageProgress { stage, message } => {
                let since = self.doing.since.unwrap_or(record.at);
                self.begin(stage.as_str(), message, since);
            }
            RecordKind::StageEnded {
                stage: AttemptStage::Run,
                took,
                ..
            } => self.end_run(*took),
            RecordKind::StageEnded { stage, detail, took } => {
                self.line(stage.as_str(), Mark::Well, detail, Some(*took));
            }
            RecordKind::KernelReady { cells, .. } => {
                self.run = Cells {
                    total: *cells,
                    begun_at: Some(record.at),
                    ..Cells::default()
                };
                self.doing_cells(record.at, None);
            }
            RecordKind::CellBegun { cell, nth } => {
                self.run.begun = *nth;
                self.doing_cells(record.at, Some(*cell));
            }
            RecordKind::CellEnded { end, .. } => {
                // A cell for which an exception comes late ends twice.
                self.run.ended = (self.run.ended + 1).min(self.run.total);
                self.run.failed |= !end.is_good();
            }
            RecordKind::Metric { name, value } => self.metric(name, value.unwrap_or(f64::NAN)),
            RecordKind::Text { text, .. } => self.printed(text),
            RecordKind::Noticed { diagnostic } => {
                self.line("note", Mark::Note, &with_cell(diagnostic), None);
            }
            RecordKind::Finished { .. } => self.finish_run(record.at),
            RecordKind::Begun { .. }
            | RecordKind::EnvironmentReady { .. }
            | RecordKind::ExpectationsChecked { .. }
            | RecordKind::FilesKept { .. }
            | RecordKind::Display { .. }
            | RecordKind::CellUsed { .. }
            | RecordKind::DevicesUnhealthy { .. }
            | RecordKind::MachineSeen { .. }
            | RecordKind::Truncated { .. }
            | RecordKind::LeftOut { .. } => {}
        }
    }

    fn next_attempt(&mut self, view: &RunView) {
        let Some(attempt) = view.attempts.last() else {
            return;
        };
        let before = self.lines.len();
        if self.passed < Passed::Gate {
            let approval = self.approval(view, &attempt.approved_by);
            self.line("gate", Mark::Well, &approval, None);
        }
        let waited = view.waited_for(attempt);
        let which = if attempt.id.number > 1 {
            format!("attempt {}", attempt.id.number)
        } else {
            "admitted".into()
        };
        self.line(
            "queue",
            Mark::Well,
            &format!("{which} in queue \"{}\"", view.queue),
            Some(waited),
        );
        let quota = match nominal(view, &self.terms.queues) {
            Some(nominal) => format!("{} of {nominal}", view.asked()),
            None => view.asked().to_string(),
        };
        self.line("quota", Mark::Well, &quota, None);
        if attempt.id.number == 1 && self.is_own(view, &attempt.approved_by) && waited < HELD_UP {
            let brief = format!("own run of {} · {quota}", view.requested_by);
            let lines = self.lines.split_off(before);
            self.unhindered = Some(Unhindered { brief, lines });
        }
        self.attempt = Some(attempt.id);
        self.passed = Passed::Gate;
        self.run = Cells::default();
        self.metrics.clear();
    }

    /// Says who let the run through, and by which rule where it was nobody else than who asked.
    fn approval(&self, view: &RunView, by: &Actor) -> String {
        if self.is_own(view, by) {
            return format!("own run of {by}, needs no other's approval (local.selfApprove)");
        }
        format!("approved by {by}")
    }

    /// Returns whether whoever asked for the run needed nobody's approval. One who approves by hand what they asked for did.
    fn is_own(&self, view: &RunView, by: &Actor) -> bool {
        let needs_none = match self.terms.approval {
            LocalApproval::Own => !self.awaited_approval,
            LocalApproval::Required => false,
        };
        needs_none && *by == view.requested_by
    }

    /// Says which cell runs, by the number that it has in the verdict and on the page, and how far that is.
    fn doing_cells(&mut self, since: Timestamp, cell: Option<u32>) {
        self.printing.clear();
        let (done, total) = (self.run.begun, self.run.total);
        let cell = match cell {
            Some(0) => "parameters, ".into(),
            Some(cell) => format!("cell {cell}, "),
            None => String::new(),
        };
        self.begin("run", &format!("{cell}{done} of {total} done"), since);
    }

    /// Ends the stage of the cells, once, whether the agent said so itself or ended before it could.
    fn finish_run(&mut self, at: Timestamp) {
        if let Some(begun_at) = self.run.begun_at {
            self.end_run(at.duration_since(begun_at));
        }
        self.doing = Doing::default();
    }

    fn end_run(&mut self, took: SignedDuration) {
        self.run.begun_at = None;
        let mut text = counted(self.run.ended as usize, "cell");
        let is_cut_off = self.run.ended < self.run.total;
        if is_cut_off {
            let _ = write!(text, " of {}", self.run.total);
        }
        self.add_metrics(&mut text);
        let mark = match self.run.failed || is_cut_off {
            true => Mark::Badly,
            false => Mark::Well,
        };
        self.line("run", mark, &text, Some(took));
    }

    /// Adds the metrics that have a course; one that has a single value belongs to the verdict.
    fn add_metrics(&self, text: &mut String) {
        for (name, values) in &self.metrics {
            if let [_, _, .., last] = values.as_slice() {
                let _ = write!(text, " · {name} {} {}", sparkline(values, 8), figure(*last));
            }
        }
    }

    fn metric(&mut self, name: &str, value: f64) {
        let at = self
            .metrics
            .iter()
            .position(|(known, _)| known == name)
            .unwrap_or_else(|| {
                self.metrics.push((name.into(), Vec::new()));
                self.metrics.len() - 1
            });
        let values = &mut self.metrics[at].1;
        values.push(value);
        if values.len() > TRACE {
            // Every second one goes, so that the shape stays however many come; the last one always stays.
            let last = values.len() - 1;
            let mut index = 0;
            values.retain(|_| {
                index += 1;
                index % 2 == 1 || index - 1 == last
            });
        }
    }

    fn printed(&mut self, text: &str) {
        let text = shown(text);
        if let Some(last) = text.lines().rfind(|line| !line.trim().is_empty()) {
            self.printing = line(last).chars().take(60).collect();
        }
    }

    fn begin(&mut self, stage: &'static str, text: &str, since: Timestamp) {
        self.doing = Doing {
            stage,
            text: output::line(text),
            since: Some(since),
        };
    }

    fn line(&mut self, stage: &'static str, mark: Mark, text: &str, took: Option<SignedDuration>) {
        let passed = self.unhindered.take();
        self.lines
            .extend(passed.into_iter().flat_map(|passed| passed.lines));
        self.lines.push(Line {
            stage,
            mark,
            text: output::line(text),
            took,
        });
    }
}

impl Line {
    /// Returns the line as text without colour: stage, mark, text, time.
    pub(crate) fn text(&self) -> String {
        let mark = match self.mark {
            Mark::Well => '✓',
            Mark::Badly => '✗',
            Mark::Note => '!',
        };
        let took = self
            .took
            .map(|took| format!("  {}", duration(took)))
            .unwrap_or_default();
        format!("  {:<7} {mark} {}{took}", self.stage, self.text)
    }
}

/// Returns why an attempt was over before it had a place.
fn why_unplaced(attempt: &AttemptView) -> Option<&Diagnostic> {
    match (&attempt.place, &attempt.outcome.as_ref()?.verdict) {
        (None, Verdict::Failed(failure)) => Some(&failure.diagnostic),
        (Some(_), _) | (None, Verdict::Passed | Verdict::Stopped) => None,
    }
}

/// Returns the stage in which a call is made.
/// Returns what a notice says, and which cell it is of where it is of one.
fn with_cell(notice: &Diagnostic) -> String {
    let cell = notice
        .place
        .as_ref()
        .filter(|place| place.file.starts_with("cell "));
    cell.map_or_else(
        || notice.message.clone(),
        |cell| format!("{}: {}", cell.file, notice.message),
    )
}

fn stage_of(call: Call) -> &'static str {
    match call {
        Call::Reserve(_) | Call::Release(_) => "place",
        Call::Start(_) | Call::Observe(_) | Call::Stop(_) => "run",
        Call::Report(_) => "report",
    }
}

#[cfg(test)]
mod tests;
