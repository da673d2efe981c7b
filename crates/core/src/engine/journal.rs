//! What whoever watches over the process is told, as it happens: how runs go on, and which calls failed.
//!
//! A line is written in the span of its run, and of its attempt where it is about one. It holds ids, the log's own words and
//! codes, and nothing that a notebook or a blueprint says; of a cluster the word of a reason at most.

use blueproof_diagnostic::Diagnostic;
use jiff::Timestamp;
use tracing::{Span, debug, error, info, info_span, warn};

use crate::{
    domain::{AttemptId, RunId, Verdict},
    event::Event,
    fact::{Decision, Fact},
    scheduler::Scheduler,
};

/// A line about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    about: About,
    weight: Weight,
    /// What happened, as the log calls it.
    kind: &'static str,
    /// How it ended, or why it happened.
    detail: Option<String>,
}

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Run(RunId),
    Attempt(AttemptId),
}

/// Who wants to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// Whoever looks for a mistake.
    Debug,
    /// Whoever looks how things are.
    Info,
    /// Whoever has to do something, if it goes on.
    Warn,
}

/// Returns the lines about what was decided in a step, of which the scheduler knows already.
pub(super) fn of(scheduler: &Scheduler, facts: &[(Timestamp, Fact)]) -> Vec<Line> {
    let lines = facts.iter().filter_map(|(_, fact)| {
        let (about, weight, detail) = match fact {
            Fact::Input(input) => of_input(scheduler, input)?,
            Fact::Decision(decision) => of_decision(decision)?,
        };
        let kind = fact.kind();
        Some(Line {
            about,
            weight,
            kind,
            detail,
        })
    });
    lines.collect()
}

/// Writes that an input was quarantined.
pub(super) fn write_quarantined(problem: &Diagnostic) {
    error!(code = %problem.code, "{}", problem.message);
}

impl Line {
    pub(super) fn write(self) {
        let Self {
            about,
            weight,
            kind,
            detail,
        } = self;
        let detail = detail.as_deref();
        about.span().in_scope(|| match weight {
            Weight::Debug => debug!(detail, "{kind}"),
            Weight::Info => info!(detail, "{kind}"),
            Weight::Warn => warn!(detail, "{kind}"),
        });
    }
}

impl About {
    fn span(self) -> Span {
        match self {
            About::Run(run) => info_span!("run", %run),
            About::Attempt(attempt) => info_span!("attempt", run = %attempt.run, %attempt),
        }
    }
}

type Told = Option<(About, Weight, Option<String>)>;

fn of_input(scheduler: &Scheduler, input: &Event) -> Told {
    let of_run = |run: RunId| (About::Run(run), Weight::Info, None);
    let of_attempt = |attempt: AttemptId| (About::Attempt(attempt), Weight::Info, None);
    Some(match input {
        Event::Requested { request } => of_run(scheduler.run_of(&request.key)?),
        Event::CancelRequested { run, .. } | Event::RetryRequested { run, .. } => of_run(*run),
        Event::Reported { run, .. } => of_run(*run),
        Event::Reserved { attempt, .. } | Event::Started { attempt } => of_attempt(*attempt),
        Event::Pending { attempt, .. } | Event::Released { attempt } => {
            (About::Attempt(*attempt), Weight::Debug, None)
        }
        Event::Finished { attempt, outcome, .. } => {
            let verdict = verdict(&outcome.verdict);
            (About::Attempt(*attempt), Weight::Info, Some(verdict))
        }
        Event::Evicted { attempt, reason, .. } => {
            (About::Attempt(*attempt), Weight::Warn, Some(reason.to_string()))
        }
        Event::Lost { attempt, .. } => (About::Attempt(*attempt), Weight::Warn, None),
        Event::CallFailed { call, error } => {
            let about = call.attempt().map_or(About::Run(call.run()), About::Attempt);
            (about, Weight::Warn, Some(error.diagnostic.code.to_string()))
        }
        Event::Configured { .. }
        | Event::QuotaApplied { .. }
        | Event::InventoryChanged { .. }
        | Event::Approved { .. }
        | Event::EntitlementChanged { .. }
        | Event::RevokeRequested { .. }
        | Event::HoldRequested { .. }
        | Event::ResumeRequested { .. }
        | Event::BaseChanged { .. }
        | Event::PullRequestClosed { .. }
        | Event::PullRequestReopened { .. }
        | Event::Synchronized { .. }
        | Event::Tick => return None,
    })
}

fn of_decision(decision: &Decision) -> Told {
    let of_run = |run: &RunId, detail| (About::Run(*run), Weight::Info, detail);
    let of_attempt = |attempt: &AttemptId, detail| (About::Attempt(*attempt), Weight::Info, detail);
    Some(match decision {
        Decision::ApprovalAwaited { run }
        | Decision::Enqueued { run, .. }
        | Decision::PreemptionAwaited { run }
        | Decision::RetryRefused { run, .. }
        | Decision::Requeued { run, .. } => of_run(run, None),
        Decision::QuotaRequested { attempt, .. }
        | Decision::QuotaReserved { attempt, .. }
        | Decision::Admitted { attempt, .. } => of_attempt(attempt, None),
        Decision::Evicted { attempt, reason, .. } => of_attempt(attempt, Some(reason.to_string())),
        Decision::StopRequested { attempt, why, .. } => of_attempt(attempt, Some(format!("{why:?}"))),
        Decision::AttemptEnded { attempt, outcome } => of_attempt(attempt, Some(verdict(&outcome.verdict))),
        Decision::Ended { run, ending, failure } => {
            let code = failure
                .as_ref()
                .map(|failure| format!(" ({})", failure.diagnostic.code));
            of_run(run, Some(format!("{ending}{}", code.unwrap_or_default())))
        }
        Decision::ReportGivenUp { run } => (About::Run(*run), Weight::Warn, None),
        Decision::CallPostponed { call, .. } | Decision::CallRepeated { call } => {
            let about = call.attempt().map_or(About::Run(call.run()), About::Attempt);
            (about, Weight::Debug, None)
        }
        Decision::ApprovalAccepted { .. }
        | Decision::ApprovalRefused { .. }
        | Decision::ApprovalRevoked { .. }
        | Decision::ApprovalExpired { .. }
        | Decision::Held { .. }
        | Decision::Resumed { .. }
        | Decision::ResumeRefused { .. }
        | Decision::CyclesRun { .. }
        | Decision::Forgotten { .. }
        | Decision::ClockSetBack { .. } => return None,
    })
}

/// Returns a verdict in a word, with the code of what failed.
fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed => "passed".into(),
        Verdict::Failed(failure) => format!("failed ({})", failure.diagnostic.code),
        Verdict::Stopped => "stopped".into(),
    }
}

#[cfg(test)]
mod tests {
    use blueproof_diagnostic::Code;

    use super::*;
    use crate::{
        domain::{Ending, Resources},
        event::Call,
        policy::Policy,
        ports::CallError,
        testing::samples::request,
    };

    #[test]
    fn a_run_is_told_from_its_request_to_its_end_with_verdicts_and_codes_and_no_word_of_a_message() {
        let mut scheduler = Scheduler::new(Policy::local(Resources::default()));
        let request = Box::new(request("one", "nano-lm"));
        let step = scheduler.handle(Timestamp::UNIX_EPOCH, Event::Requested { request });
        let mut facts = step.facts;
        let run = RunId(1);
        let error = CallError::later(Diagnostic::error(Code::ReportUnwritten, "secret"));
        let (call, error) = (Call::Report(run), Box::new(error));
        facts.push(Fact::Input(Event::CallFailed { call, error }));
        let (ending, failure) = (Ending::Cancelled, None);
        facts.push(Fact::Decision(Decision::Ended { run, ending, failure }));
        facts.push(Fact::Input(Event::Tick));
        let facts: Vec<_> = facts
            .into_iter()
            .map(|fact| (Timestamp::UNIX_EPOCH, fact))
            .collect();
        let told = of(&scheduler, &facts);
        assert!(told.iter().all(|line| line.about == About::Run(run)), "{told:?}");
        let kinds: Vec<_> = told.iter().map(|line| line.kind).collect();
        assert_eq!(
            (kinds[0], &kinds[kinds.len() - 2..]),
            ("requested", &["callFailed", "ended"][..])
        );
        let failed = &told[told.len() - 2];
        let code = Code::ReportUnwritten.to_string();
        assert_eq!(
            (failed.weight, failed.detail.as_ref()),
            (Weight::Warn, Some(&code))
        );
        assert!(!format!("{told:?}").contains("secret"), "{told:?}");
    }
}
