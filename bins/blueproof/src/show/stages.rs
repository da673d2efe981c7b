//! The stages that a run passes, as lines.
//!
//! This module only makes text: it is told what is known of the run and of its attempt, and says which lines are
//! complete and what is going on now. Where they go, and how often, is [`super::progress`]'s.

use std::fmt::Write as _;

use blueproof_core::{
    attempt::{CellEnd, Record, RecordKind, Stage},
    domain::{Actor, AttemptId, Gpus, Resources, RunState},
    view::{ReportView, RunView},
};
use blueproof_notebook::text::{line, shown};
use jiff::{SignedDuration, Timestamp};

use super::text::{duration, figure, sparkline};
use crate::output;

/// How many values of a metric are kept for its sparkline.
const TRACE: usize = 32;

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

/// What is known of a run's way through the pipeline.
#[derive(Debug)]
pub(crate) struct Stages {
    quota: Resources,
    passed: Passed,
    lines: Vec<Line>,
    doing: Doing,
    attempt: Option<AttemptId>,
    run: Cells,
    metrics: Vec<(String, Vec<f64>)>,
    printing: String,
    /// When it is likely to end.
    ends: Option<String>,
}

/// How far the lines are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Passed {
    Nothing,
    Gate,
    Place,
    Evicted,
    Report,
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
    ended: u32,
    begun_at: Option<Timestamp>,
    failed: bool,
}

impl Stages {
    /// Returns the stages of a run that nothing is known of; `quota` is what its queue may promise.
    pub(crate) fn new(quota: Resources) -> Self {
        Self {
            quota,
            passed: Passed::Nothing,
            lines: Vec::new(),
            doing: Doing::default(),
            attempt: None,
            run: Cells::default(),
            metrics: Vec::new(),
            printing: String::new(),
            ends: None,
        }
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
        let attempt = view.attempts.last();
        if attempt.map(|attempt| attempt.id) != self.attempt {
            self.next_attempt(view);
        }
        match view.state {
            RunState::AwaitingApproval => {
                self.begin(
                    "gate",
                    outlook.unwrap_or("waits for an approval"),
                    view.requested_at,
                );
            }
            RunState::Queued => self.begin("queue", outlook.unwrap_or("waits"), view.requested_at),
            RunState::Reserved => self.begin("place", "a place is being made", view.requested_at),
            RunState::Starting | RunState::Running | RunState::Ended(_) => {}
        }
        let goes_on = matches!(view.state, RunState::Starting | RunState::Running);
        self.ends = outlook.filter(|_| goes_on).map(output::line);
        if let Some(place) = attempt.and_then(|attempt| attempt.place.as_deref())
            && self.passed < Passed::Place
        {
            self.passed = Passed::Place;
            self.line("place", Mark::Well, place, None);
        }
        if let Some(eviction) = attempt.and_then(|attempt| attempt.eviction)
            && self.passed < Passed::Evicted
        {
            self.passed = Passed::Evicted;
            self.line("evicted", Mark::Note, &eviction.to_string(), None);
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
                stage: Stage::Run,
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
                self.doing_cell(0, record.at);
            }
            RecordKind::CellBegun { nth, .. } => self.doing_cell(*nth, record.at),
            RecordKind::CellEnded { end, .. } => {
                self.run.ended += 1;
                self.run.failed |= !matches!(end, CellEnd::Ok | CellEnd::RaisedAsAllowed);
            }
            RecordKind::Metric {
                name,
                value: Some(value),
            } => self.metric(name, *value),
            RecordKind::Text { text, .. } => self.printed(text),
            RecordKind::Noticed { diagnostic } => self.line("note", Mark::Note, &diagnostic.message, None),
            RecordKind::Finished { .. } => self.finish_run(record.at),
            RecordKind::Begun { .. }
            | RecordKind::Metric { value: None, .. }
            | RecordKind::Display { .. }
            | RecordKind::CellUsed { .. }
            | RecordKind::DevicesUnfit { .. }
            | RecordKind::Truncated { .. } => {}
        }
    }

    fn next_attempt(&mut self, view: &RunView) {
        let Some(attempt) = view.attempts.last() else {
            return;
        };
        if self.passed < Passed::Gate {
            self.line("gate", Mark::Well, &approval(view, &attempt.approved_by), None);
        }
        let waited = attempt.reserved_at.duration_since(view.requested_at);
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
        self.line(
            "quota",
            Mark::Well,
            &format!("{} of {}", brief(view.resources), brief(self.quota)),
            None,
        );
        self.attempt = Some(attempt.id);
        self.passed = Passed::Gate;
        self.run = Cells::default();
        self.metrics.clear();
    }

    fn doing_cell(&mut self, nth: u32, since: Timestamp) {
        self.printing.clear();
        self.begin("run", &format!("cell {}/{}", nth + 1, self.run.total), since);
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
        let mut text = match self.run.ended {
            1 => "1 cell".into(),
            cells => format!("{cells} cells"),
        };
        if self.run.ended < self.run.total {
            let _ = write!(text, " of {}", self.run.total);
        }
        self.add_metrics(&mut text);
        let mark = if self.run.failed { Mark::Badly } else { Mark::Well };
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

/// Says who let the run through, and by which rule where it was nobody else than who asked.
fn approval(view: &RunView, by: &Actor) -> String {
    if *by == view.requested_by {
        return format!("own run of {by}, needs no other's approval (local.selfApprove)");
    }
    format!("approved by {by}")
}

/// Returns resources with memory as people read it.
fn brief(resources: Resources) -> String {
    let gpus = if resources.gpu == Gpus(0) {
        String::new()
    } else {
        format!(", {} gpu", resources.gpu)
    };
    format!("{} cpu, {}{gpus}", resources.cpu, output::size(resources.memory))
}

#[cfg(test)]
mod tests {
    use blueproof_core::{
        action::Action,
        attempt::Stream,
        diagnostic::{Code, Diagnostic},
        domain::{Bytes, Cpus, RunId},
        event::Event,
        policy::Policy,
        scheduler::{EvictionReason, Scheduler},
        testing,
        view::Eviction,
    };

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("small")
    }

    fn two_cores() -> Resources {
        Resources {
            cpu: Cpus::cores(2),
            memory: Bytes(24 << 30),
            ..Resources::default()
        }
    }

    /// Returns a run's views from the request to its place, as the scheduler gives them.
    fn views() -> Vec<RunView> {
        let mut scheduler = Scheduler::new(Policy::local(two_cores()));
        let request = Box::new(testing::request("a", "nano-lm"));
        let actions = scheduler.handle(at(0), Event::Requested { request });
        let Some(Action::Reserve { attempt, .. }) = actions.first() else {
            panic!("it is admitted at once")
        };
        let first = scheduler.view(attempt.run).expect("it is known");
        scheduler.handle(
            at(1),
            Event::Reserved {
                attempt: *attempt,
                place: "here".into(),
            },
        );
        vec![first, scheduler.view(attempt.run).expect("it is known")]
    }

    fn tell(stages: &mut Stages, records: Vec<RecordKind>) {
        for (second, kind) in (2..).zip(records) {
            stages.on_record(&Record { at: at(second), kind });
        }
    }

    fn texts(stages: &mut Stages) -> Vec<String> {
        stages.take_lines().iter().map(Line::text).collect()
    }

    #[test]
    fn each_stage_is_a_line_as_soon_as_it_is_passed_and_only_once() {
        let mut stages = Stages::new(two_cores());
        for view in views().iter().chain(&views()) {
            stages.on_view(view, None);
        }
        let lines = texts(&mut stages);
        assert_eq!(
            lines,
            [
                "  gate    ✓ own run of ada, needs no other's approval (local.selfApprove)",
                "  queue   ✓ admitted in queue \"local\"  0 ms",
                "  quota   ✓ 1 cpu, 1.0 MiB of 2 cpu, 24 GiB",
                "  place   ✓ here",
            ]
        );
    }

    #[test]
    fn a_long_cell_says_where_it_is_and_what_it_prints() {
        let mut stages = Stages::new(two_cores());
        stages.on_view(&views()[1], None);
        texts(&mut stages);
        let loss = |value| RecordKind::Metric {
            name: "loss".into(),
            value: Some(value),
        };
        let printed = |text: &str| RecordKind::Text {
            cell: 3,
            stream: Stream::Stdout,
            text: text.into(),
        };
        tell(
            &mut stages,
            vec![
                RecordKind::KernelReady { pid: 1, cells: 2 },
                RecordKind::CellBegun { cell: 3, nth: 1 },
                loss(3.0),
                loss(2.0),
                loss(1.0),
                printed("step 1\nstep 2\x1b]0;evil\x07 ##[group]\r"),
            ],
        );
        let (stage, text, _) = stages.doing().expect("it runs");
        assert_eq!(
            (stage, text.as_str()),
            ("run", "cell 2/2 · loss █▅▁ 1 · step 2 # #[group]")
        );
    }

    #[test]
    fn while_it_runs_it_is_said_when_it_is_likely_to_end() {
        let mut stages = Stages::new(two_cores());
        let mut view = views()[1].clone();
        view.state = RunState::Running;
        tell(&mut stages, vec![RecordKind::KernelReady { pid: 1, cells: 2 }]);
        let mut doing = |ends| {
            stages.on_view(&view, ends);
            stages.doing().expect("it runs").1
        };
        assert_eq!(
            doing(Some("ends about 14:21Z (p90 14:40Z)")),
            "cell 1/2 · ends about 14:21Z (p90 14:40Z)"
        );
        assert_eq!(doing(None), "cell 1/2", "where nothing is known, nothing is said");
    }

    #[test]
    fn nothing_that_others_wrote_is_obeyed_in_a_line() {
        let mut stages = Stages::new(two_cores());
        let diagnostic = Diagnostic::warning(Code::CellRaised, "a\x1b[2J\n::error::b ##[group]");
        tell(&mut stages, vec![RecordKind::Noticed { diagnostic }]);
        assert_eq!(
            texts(&mut stages),
            ["  note    ! a\\u{1b}[2J ::error::b # #[group]"]
        );
    }

    #[test]
    fn a_run_that_is_looked_at_when_it_is_over_is_told_in_its_order() {
        let mut stages = Stages::new(two_cores());
        let reserved = &views()[0];
        stages.on_view(reserved, None);
        assert_eq!(stages.attempt(), None, "its place comes first");
        let mut over = views()[1].clone();
        (over.settled, over.report) = (true, ReportView::Written);
        stages.on_view(&over, None);
        assert_eq!(stages.attempt(), Some(over.attempts[0].id));
        let (stage, detail, took) = (Stage::Collect, "0 artifacts".into(), SignedDuration::ZERO);
        tell(&mut stages, vec![RecordKind::StageEnded { stage, detail, took }]);
        stages.on_end(&over);
        let told: Vec<&str> = stages.take_lines().iter().map(|line| line.stage).collect();
        assert_eq!(told, ["gate", "queue", "quota", "place", "collect", "report"]);
    }

    #[test]
    fn one_that_has_to_give_way_is_told_for_whom() {
        let mut stages = Stages::new(two_cores());
        let mut view = views()[1].clone();
        view.attempts[0].eviction = Some(Eviction {
            reason: EvictionReason::InCohortReclamation,
            by: Some(RunId(4)),
            at: view.requested_at,
        });
        stages.on_view(&view, None);
        stages.on_view(&view, None);
        assert_eq!(
            texts(&mut stages)[4..],
            ["  evicted ! for r-4: another queue takes back what is its own (InCohortReclamation)"]
        );
    }

    #[test]
    fn a_cell_that_failed_marks_the_stage_once_whoever_tells_of_the_end() {
        let mut stages = Stages::new(two_cores());
        stages.on_view(&views()[1], None);
        texts(&mut stages);
        let took = SignedDuration::from_secs(1);
        let ended = |end| RecordKind::CellEnded { cell: 1, end, took };
        let outcome = Box::new(testing::outcome(blueproof_core::domain::Verdict::Stopped));
        tell(
            &mut stages,
            vec![
                RecordKind::KernelReady { pid: 1, cells: 2 },
                ended(CellEnd::Raised),
                RecordKind::StageEnded {
                    stage: Stage::Run,
                    detail: String::new(),
                    took,
                },
                RecordKind::Finished { outcome },
            ],
        );
        assert_eq!(texts(&mut stages), ["  run     ✗ 1 cell of 2  1.0 s"]);
        assert_eq!(stages.doing(), None);
    }
}
