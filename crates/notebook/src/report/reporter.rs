//! From a run that has ended to its report: what the scheduler knows, and what the agent has left.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use blueproof_core::{
    attempt::{AttemptStage, Checked, Record, RecordKind},
    domain::{FailureClass, Priority, RunId, RunRequest, Source, Verdict},
    figures::{Figures, RunUsage, build_seconds, queue_seconds, start_seconds},
    ports::{AttemptOutput, CallError, Interest, OutputError, ReportKind, ReportOutput, Reporter, RunStatus},
    view::{AttemptView, RunView},
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;
use tokio::runtime::Handle;

use super::{
    Bounds, Comparison, EarlierAttempt, ExpectationReport, ExpectationResult, FailedLine, Report,
    StageReport, left::Left, render,
};
use crate::plan::{Expectation, Plan};

/// How long a report may take. Only a file system that does not answer takes that long.
const REPORT_WITHIN: Duration = Duration::from_mins(2);

/// Writes the report of each run to where what is kept of the run is.
#[derive(Clone)]
pub struct FolderReporter {
    output: Arc<dyn ReportOutput>,
}

impl FolderReporter {
    /// Returns a reporter that reads what attempts left from `output`, and puts the reports beside it.
    pub fn new(output: Arc<dyn ReportOutput>) -> Self {
        Self { output }
    }

    async fn write(
        &self,
        view: &RunView,
        request: &RunRequest,
        passed: Option<&RunView>,
    ) -> Result<(), Box<Diagnostic>> {
        let output: Arc<dyn AttemptOutput> = self.output.clone();
        let report = assemble(view, request, passed, &output).await;
        for kind in ReportKind::ALL {
            let text = render(&report, kind);
            let put = self.output.put_report(view.id, kind, text.as_bytes()).await;
            put.map_err(|error| Box::new(refused(view.id, &error)))?;
        }
        Ok(())
    }
}

#[async_trait]
impl Reporter for FolderReporter {
    fn name(&self) -> &str {
        "files"
    }

    fn interest(&self) -> Interest {
        Interest::End
    }

    async fn report(&self, status: &RunStatus) -> Result<(), CallError> {
        let (reporter, status) = (self.clone(), status.clone());
        let (run, runtime) = (status.view.id, Handle::current());
        let write =
            move || runtime.block_on(reporter.write(&status.view, &status.request, status.passed.as_ref()));
        within(REPORT_WITHIN, run, write).await
    }
}

/// Writes a report elsewhere, and gives up one that cannot be made: a run like that keeps no other run from its own.
async fn within(
    limit: Duration,
    run: RunId,
    write: impl FnOnce() -> Result<(), Box<Diagnostic>> + Send + 'static,
) -> Result<(), CallError> {
    let written = tokio::task::spawn_blocking(write);
    match tokio::time::timeout(limit, written).await {
        Ok(Ok(written)) => written.map_err(|problem| CallError::later(*problem)),
        Ok(Err(broken)) => Err(CallError::never(unwritten(run).caused_by(&broken))),
        Err(_) => Err(CallError::never(
            unwritten(run).because(format!("its folder did not answer within {limit:?}")),
        )),
    }
}

fn unwritten(run: RunId) -> Diagnostic {
    let message = format!("the report of {run} could not be made");
    Diagnostic::error(Code::ReportUnwritten, message)
        .hint("what the attempt left is in its folder; `blueproof describe run` says how it ended")
}

fn refused(run: RunId, error: &OutputError) -> Diagnostic {
    let message = format!("the report of {run} could not be written");
    Diagnostic::error(Code::ReportUnwritten, message)
        .caused_by(error)
        .hint("free some space, or make the folder writable; after `blueproof retry` it is written anew")
}

/// Returns all that is known of a run: of its last attempt, and of `passed`, the run of its last pass. Reading takes its time with
/// a large notebook, and so belongs to a thread that may block.
pub async fn assemble(
    view: &RunView,
    request: &RunRequest,
    passed: Option<&RunView>,
    output: &Arc<dyn AttemptOutput>,
) -> Report {
    let plan = serde_json::from_value::<Plan>(request.job.work.clone()).ok();
    let asked = without_attempt(view, request, plan.as_ref());
    let last = view.attempts.last();
    let left = match last {
        Some(attempt) => Some(Left::by(attempt.id, output).await),
        None => None,
    };
    let comparison = match passed {
        Some(passed) => Comparison::with(view, left.as_ref(), passed, output).await,
        None => None,
    };
    let asked = Report {
        comparison,
        failed_line: FailedLine::of(view, request),
        ..asked
    };
    match last.zip(left) {
        Some((attempt, left)) => with_attempt(asked, view, attempt, plan.as_ref(), &left),
        None => asked,
    }
}

/// Returns what is known of a run that was over before it had an attempt: what was asked for, and why nothing came of it.
fn without_attempt(view: &RunView, request: &RunRequest, plan: Option<&Plan>) -> Report {
    let verdict = match &view.failure {
        Some(failure) => Verdict::Failed(Box::new(failure.clone())),
        None => Verdict::Stopped,
    };
    let took = view
        .ended_at
        .unwrap_or(view.asked_at())
        .duration_since(view.asked_at());
    Report {
        run: view.id,
        attempt: None,
        earlier: Vec::new(),
        blueprint: view.subject.blueprint.clone(),
        profile: view.subject.profile.clone(),
        head: view.subject.head.clone(),
        pull_request: view.subject.pull_request,
        revision: view.revision.clone(),
        parameters: plan.map(|plan| plan.parameters.clone()).unwrap_or_default(),
        requested_by: view.requested_by.clone(),
        machine: None,
        version: None,
        notebook: plan.map(|plan| plan.notebook.clone()).unwrap_or_default(),
        began_at: view.asked_at(),
        took,
        verdict,
        failed_line: None,
        notices: Vec::new(),
        stages: vec![StageReport {
            name: "queue".into(),
            detail: format!("queue {}: {} before any attempt", view.queue, view.state),
            took: Some(took),
        }],
        cells: Vec::new(),
        metrics: BTreeMap::new(),
        expectations: plan.map(|plan| expectations(plan, &[])).unwrap_or_default(),
        usage: None,
        figures: Figures::default(),
        environment: None,
        files: Vec::new(),
        artifacts_folder: None,
        artifacts: Vec::new(),
        reproduce: vec![reproduce(view, request, plan)],
        caveats: Vec::new(),
        comparison: None,
    }
}

/// Adds what came of an attempt. What the agent could not leave behind any more is left out.
fn with_attempt(
    asked: Report,
    view: &RunView,
    attempt: &AttemptView,
    plan: Option<&Plan>,
    left: &Left,
) -> Report {
    let outcome = attempt.outcome.as_ref();
    let verdict = outcome.map_or(Verdict::Stopped, |outcome| outcome.verdict.clone());
    let ended_at = attempt.ended_at.unwrap_or(attempt.reserved_at);
    Report {
        attempt: Some(attempt.id),
        earlier: view
            .attempts
            .iter()
            .filter(|earlier| earlier.id != attempt.id)
            .filter_map(earlier)
            .collect(),
        began_at: attempt.reserved_at,
        took: attempt.took(ended_at),
        notices: super::late(view).into_iter().chain(left.notices()).collect(),
        stages: stages(view, attempt, &left.log),
        cells: left.cells(),
        machine: left.machine.clone(),
        version: left.version.clone(),
        metrics: outcome.map(|outcome| outcome.metrics.clone()).unwrap_or_default(),
        expectations: plan
            .map(|plan| expectations(plan, looked_at(&verdict, left)))
            .unwrap_or_default(),
        usage: outcome.and_then(|outcome| outcome.usage.clone()),
        figures: figures(attempt),
        environment: left.environment.clone(),
        files: left.files.clone(),
        artifacts_folder: Some(left.artifacts_folder.clone()),
        artifacts: left.artifacts.clone(),
        caveats: outcome
            .map(|outcome| outcome.notices.iter().map(sentence).collect())
            .unwrap_or_default(),
        verdict,
        ..asked
    }
}

fn figures(attempt: &AttemptView) -> Figures {
    let outcome = attempt.outcome.as_ref();
    let usage = outcome.and_then(|outcome| outcome.usage.as_ref());
    let used = RunUsage {
        queue_seconds: queue_seconds(attempt.queued_at, Some(attempt.reserved_at)),
        start_seconds: start_seconds(Some(attempt.reserved_at), attempt.started_at),
        build_seconds: build_seconds(attempt.started_at, attempt.ended_at),
        ..usage.map(RunUsage::of).unwrap_or_default()
    };
    Figures::of(&[used])
}

fn earlier(attempt: &AttemptView) -> Option<EarlierAttempt> {
    let verdict = attempt.outcome.as_ref()?.verdict.clone();
    Some(EarlierAttempt {
        attempt: attempt.id,
        verdict,
    })
}

fn sentence(notice: &Diagnostic) -> String {
    notice.message.clone()
}

/// Returns the stages up to the place, which the scheduler knows, and those that the agent went through.
fn stages(view: &RunView, attempt: &AttemptView, log: &[Record]) -> Vec<StageReport> {
    let mut stages = vec![
        StageReport {
            name: "gate".into(),
            detail: format!("approved by {}", attempt.approved_by),
            took: None,
        },
        StageReport {
            name: "queue".into(),
            detail: format!("queue {}", view.queue),
            took: Some(view.waited_for(attempt)),
        },
        StageReport {
            name: "quota".into(),
            detail: view.asked().to_string(),
            took: None,
        },
    ];
    if let Some(place) = attempt.place_in_words(view.resources) {
        stages.push(StageReport {
            name: "place".into(),
            detail: place,
            took: None,
        });
    }
    stages.extend(gone_through(log));
    stages
}

/// Returns the stages that the agent went through; the last one may not have ended well, or not at all.
fn gone_through(log: &[Record]) -> Vec<StageReport> {
    let mut stages = Vec::new();
    let mut open: Option<(AttemptStage, Timestamp)> = None;
    let since = |at: Timestamp, begun: Option<(AttemptStage, Timestamp)>| {
        begun.map(|(_, begun)| at.duration_since(begun))
    };
    for Record { at, kind } in log {
        if let RecordKind::StageBegun { stage } = kind {
            open = Some((*stage, *at));
        }
        if let RecordKind::KernelReady { .. } = kind {
            stages.push(StageReport {
                name: "kernel".into(),
                detail: "started, and answered".into(),
                took: since(*at, open),
            });
            // What follows is the cells' time alone, so that the stages add up to the whole.
            open = open.map(|(stage, _)| (stage, *at));
        }
        if let RecordKind::StageEnded { stage, detail, took } = kind {
            open = None;
            stages.push(StageReport {
                name: stage.as_str().into(),
                detail: detail.clone(),
                took: Some(*took),
            });
        }
        if let (RecordKind::Finished { .. }, Some((stage, _))) = (kind, open) {
            stages.push(StageReport {
                name: stage.as_str().into(),
                detail: "did not end well".into(),
                took: since(*at, open),
            });
        }
    }
    stages
}

/// Returns what was found of each expectation, in order: nothing where the attempt ended before they were looked at.
fn looked_at<'l>(verdict: &Verdict, left: &'l Left) -> &'l [Checked] {
    let looked_at = match verdict {
        Verdict::Passed => true,
        Verdict::Failed(failure) => failure.class == FailureClass::Expectation,
        Verdict::Stopped => false,
    };
    if looked_at { &left.expectations } else { &[] }
}

fn expectations(plan: &Plan, found: &[Checked]) -> Vec<ExpectationReport> {
    let result = |at: usize| match found.get(at) {
        Some(Checked::Met { actual }) => ExpectationResult::Met {
            actual: actual.clone(),
        },
        Some(Checked::Unmet(diagnostic)) => ExpectationResult::Unmet(diagnostic.clone()),
        Some(Checked::NotLookedAt(why)) => ExpectationResult::NotLookedAt(why.clone()),
        None => ExpectationResult::Unchecked,
    };
    let expectations = plan.expectations.iter().enumerate();
    expectations
        .map(|(at, expectation)| ExpectationReport {
            text: expectation.to_string(),
            result: result(at),
            bounds: bounds(expectation),
        })
        .collect()
}

fn bounds(expectation: &Expectation) -> Option<Bounds> {
    match expectation {
        Expectation::Metric { name, min, max, .. } => Some(Bounds {
            metric: name.clone(),
            min: *min,
            max: *max,
        }),
        Expectation::Artifact(_) | Expectation::Output(_) | Expectation::TrainJobs => None,
    }
}

/// The queue of whoever names none, where nobody applied others.
const DEFAULT_QUEUE: &str = "local";

/// Returns the command line that asks for the same run, as it can be pasted into a shell.
fn reproduce(view: &RunView, request: &RunRequest, plan: Option<&Plan>) -> String {
    let (begin, folder) = match &request.job.source {
        Source::Folder(folder) => (String::new(), folder.clone()),
        Source::Git(git) => {
            let (repository, commit) = (quoted(git.repository.as_str()), &git.commit);
            let begin = format!("git clone {repository} checkout && git -C checkout checkout {commit} && ");
            (begin, Path::new("checkout").join(&git.folder))
        }
    };
    // A notebook finds the blueprint that lies beside it; a folder finds neither the notebook that has none, nor which one
    // of several is meant.
    let beside = |plan: &&Plan| plan.notebook.components().count() == 1;
    let what = match plan.filter(beside) {
        Some(plan) => folder.join(&plan.notebook),
        None => folder,
    };
    let mut command = format!("{begin}blueproof run {}", quoted(&what.display().to_string()));
    if let Some(profile) = &view.subject.profile {
        command.push_str(&format!(" --profile {profile}"));
    }
    if view.queue.as_str() != DEFAULT_QUEUE {
        command.push_str(&format!(" --queue {}", view.queue));
    }
    if view.priority != Priority::default() {
        command.push_str(&format!(" --priority={}", view.priority.0));
    }
    for (name, value) in plan.iter().flat_map(|plan| &plan.parameters) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        command.push_str(&format!(" -p {}", quoted(&format!("{name}={text}"))));
    }
    command
}

/// Returns a word as a shell takes it for itself.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use blueproof_core::domain::Outcome;

    use super::*;

    #[test]
    fn the_stage_that_a_run_ended_in_is_among_its_stages_and_so_is_the_kernels_start() {
        let at = |second| Timestamp::from_second(second).expect("small");
        let record = |second, kind| Record { at: at(second), kind };
        let outcome = Box::new(Outcome {
            verdict: Verdict::Stopped,
            usage: None,
            metrics: BTreeMap::new(),
            notices: Vec::new(),
        });
        let ended = RecordKind::StageEnded {
            stage: AttemptStage::Env,
            detail: "python".into(),
            took: jiff::SignedDuration::from_secs(3),
        };
        let log = [
            record(
                0,
                RecordKind::StageBegun {
                    stage: AttemptStage::Env,
                },
            ),
            record(3, ended),
            record(
                4,
                RecordKind::StageBegun {
                    stage: AttemptStage::Run,
                },
            ),
            record(6, RecordKind::KernelReady { pid: 1, cells: 2 }),
            record(9, RecordKind::Finished { outcome }),
        ];
        let stages = gone_through(&log);
        let told: Vec<_> = stages
            .iter()
            .map(|stage| (stage.name.as_str(), stage.took.map(|took| took.as_secs())))
            .collect();
        assert_eq!(told, [("env", Some(3)), ("kernel", Some(2)), ("run", Some(3))]);
    }

    #[test]
    fn what_reproduces_a_run_asks_for_its_queue_and_its_priority() {
        use blueproof_core::{event::Event, policy::Policy, scheduler::Scheduler, testing};

        let command = |queue: &str, priority: i32| {
            let mut request = testing::request("a", "nano-lm");
            request.queue = queue.parse().expect("a name");
            request.priority = Priority(priority);
            let mut scheduler = Scheduler::new(Policy::local(request.job.driver()));
            let requested = Event::Requested {
                request: Box::new(request.clone()),
            };
            scheduler.handle(Timestamp::UNIX_EPOCH, requested);
            let view = scheduler.view(RunId(1)).expect("it was asked for");
            reproduce(&view, &request, None)
        };
        let usual = command("local", 0);
        assert!(usual.starts_with("blueproof run "), "{usual}");
        assert_eq!(command("red", -3), format!("{usual} --queue red --priority=-3"));
    }

    #[tokio::test]
    async fn a_report_that_cannot_be_made_is_given_up_and_one_that_cannot_be_written_is_tried_again() {
        use blueproof_core::ports::Retry;

        let run = RunId(1);
        let broken = within(REPORT_WITHIN, run, || panic!("it is poisonous")).await;
        let broken = broken.expect_err("it panicked");
        assert_eq!(
            (broken.retry, broken.diagnostic.code),
            (Retry::Never, Code::ReportUnwritten)
        );

        let (answer, hangs) = std::sync::mpsc::channel::<()>();
        let write = move || hangs.recv().map_err(|_| Box::new(unwritten(RunId(1))));
        let late = within(Duration::ZERO, run, write).await.expect_err("it hangs");
        assert_eq!(late.retry, Retry::Never);
        assert!(late.diagnostic.causes[0].contains("did not answer"), "{late:?}");
        drop(answer);

        let full = within(REPORT_WITHIN, run, || Err(Box::new(unwritten(RunId(1))))).await;
        assert_eq!(full.expect_err("it is unwritten").retry, Retry::Later);
        within(REPORT_WITHIN, run, || Ok(()))
            .await
            .expect("it is written");
    }

    #[tokio::test]
    async fn reports_are_put_beside_what_the_attempt_left_and_again_and_a_refusal_is_told() {
        use blueproof_core::testing::{FakeOutput, contract::OutputWriter as _, request};
        use blueproof_core::{
            event::Event,
            policy::Policy,
            ports::{OutputName, whole},
            scheduler::Scheduler,
        };

        let output = Arc::new(FakeOutput::default());
        let request = request("key", "nano-lm");
        let mut scheduler = Scheduler::new(Policy::local(request.job.driver()));
        let event = Event::Requested {
            request: Box::new(request.clone()),
        };
        scheduler.handle(Timestamp::UNIX_EPOCH, event);
        let view = scheduler.view(RunId(1)).expect("it was asked for");
        output.put(&OutputName::Report(RunId(1), ReportKind::Html), b"of before");

        let reporter = FolderReporter::new(output.clone());
        let status = RunStatus {
            revision: 1,
            view,
            request,
            passed: None,
        };
        for _ in 0..2 {
            reporter.report(&status).await.expect("it is written");
        }
        let kept = output.kept(RunId(1), 9).await.expect("listed");
        let names: Vec<_> = kept.files.iter().filter_map(|(path, _)| path.to_str()).collect();
        assert_eq!(names, ["junit.xml", "report.html", "report.json"]);
        let json = OutputName::Report(RunId(1), ReportKind::Json);
        let json = whole(&*output, &json, 1 << 20).await.expect("it reads");
        let json: serde_json::Value = serde_json::from_slice(&json).expect("it is JSON");
        assert_eq!(json["apiVersion"], "blueproof.dev/v1alpha1");

        output.fail_next_write("the disk is full");
        let refused = reporter.report(&status).await.expect_err("it is full");
        assert_eq!(refused.diagnostic.code, Code::ReportUnwritten);
        assert!(
            refused
                .diagnostic
                .causes
                .iter()
                .any(|cause| cause.contains("full")),
            "{refused:?}"
        );
    }

    #[test]
    fn a_word_is_quoted_where_a_shell_would_take_it_apart() {
        assert_eq!(quoted("examples/nano-lm"), "examples/nano-lm");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("$(rm)"), "'$(rm)'");
        assert_eq!(quoted(""), "''");
    }
}
