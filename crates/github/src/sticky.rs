//! The one comment that a pull request gets, for what a check run cannot carry: that a commit needs an approval, and that a run failed.
//!
//! A check run notifies nobody. So the first time that somebody has to do something there is a comment; afterwards it is edited in place,
//! which notifies nobody either. It also says why the last command was not done, where it was not. It is found by a hidden marker with its
//! state, and counts only where our own App wrote it. Nobody is mentioned. A pull request whose runs pass gets none.

mod write;

use std::collections::BTreeMap;

use blueproof_core::{
    domain::{Ending, RunId, RunState},
    pending::PendingReason,
    ports::RunStatus,
    view::RunView,
};
use serde::{Deserialize, Serialize};

pub use write::StickyComments;

use crate::{
    answer::{Answer, ApprovalProblem},
    check::{CheckSettings, check_name, run_title},
    markdown::{Document, code, cut, fence, plain},
    payload::{AccountKind, Comment},
};

/// What the comment begins with; JSON and [`MARKER_END`] follow.
const MARKER: &str = "<!-- blueproof-runs: ";
const MARKER_END: &str = " -->";
/// The most failures that are listed.
const FAILURES: usize = 5;
/// The most runs that the state has; the oldest are dropped.
const RUNS: usize = 50;
/// The most characters of a line about a run.
const LINE_AT_MOST: usize = 200;

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StickyWrite {
    /// A comment, where there is none.
    Create(String),
    /// Another text for the comment.
    Update {
        /// The comment.
        id: u64,
        /// Its Markdown.
        markdown: String,
    },
}

/// What there is to tell.
#[derive(Debug, Clone, Copy)]
pub enum StickyNews<'a> {
    /// How a run stands.
    Run(&'a RunStatus),
    /// Why what somebody asked for last was not done; `None` where it was.
    Answer(Option<&'a Answer>),
}

/// What the comment knows of the runs, by the names of their check runs, and of the last command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StickyState {
    runs: BTreeMap<String, StickyRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<StickyAnswer>,
}

/// Why the last command was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StickyAnswer {
    reason: String,
    /// The command to write in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instead: Option<String>,
}

/// What the comment knows of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StickyRun {
    run: RunId,
    need: StickyNeed,
    /// What is told of it, where it failed.
    line: String,
}

/// What somebody has to do about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum StickyNeed {
    /// To approve it.
    Approval,
    /// To look why it failed.
    Look,
    /// Nothing.
    Nothing,
}

/// Returns our comment among those of a pull request: the first with our marker that our own App wrote by itself.
fn find(comments: &[Comment], our_app: u64) -> Option<&Comment> {
    let is_ours = |comment: &&Comment| {
        let user = comment.user.as_ref();
        let by_program = user.is_some_and(|user| user.kind == AccountKind::Bot);
        let by_us = by_program && comment.app.is_some_and(|app| app.id == our_app);
        let body = comment.body.as_deref().unwrap_or_default();
        by_us && body.starts_with(MARKER)
    };
    comments.iter().find(is_ours)
}

/// Returns what is to be written for a pull request of which this is the comment and the news; `None` where nothing is.
fn plan(existing: Option<&Comment>, news: &StickyNews<'_>, settings: &CheckSettings) -> Option<StickyWrite> {
    let body = existing.and_then(|comment| comment.body.as_deref());
    let mut state = body.and_then(StickyState::read).unwrap_or_default();
    match news {
        StickyNews::Run(status) => state.take_in(status, settings),
        StickyNews::Answer(answer) => state.answer = answer.map(StickyAnswer::of),
    }
    let markdown = state.render(settings);
    match existing {
        None => state.is_needed().then_some(StickyWrite::Create(markdown)),
        Some(_) if body == Some(&markdown) => None,
        Some(comment) => Some(StickyWrite::Update {
            id: comment.id,
            markdown,
        }),
    }
}

impl StickyState {
    /// Reads the state of a comment; one that cannot be read says nothing.
    fn read(body: &str) -> Option<Self> {
        let (json, _) = body.strip_prefix(MARKER)?.split_once(MARKER_END)?;
        serde_json::from_str(json).ok()
    }

    /// Takes in how a run stands. An older run of the same name says nothing about a newer one.
    fn take_in(&mut self, status: &RunStatus, settings: &CheckSettings) {
        let (name, run) = (check_name(&status.view.subject), status.view.id);
        if self.runs.get(&name).is_some_and(|known| known.run > run) {
            return;
        }
        let need = need(&status.view);
        // Only of a failure more is told than that it is so: else the comment would be edited with every progress.
        let line = match need {
            StickyNeed::Look => plain(&run_title(&status.view, settings), LINE_AT_MOST),
            StickyNeed::Approval | StickyNeed::Nothing => String::new(),
        };
        self.runs.insert(name, StickyRun { run, need, line });
        while self.runs.len() > RUNS {
            let oldest = self.runs.iter().min_by_key(|(_, known)| known.run);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
                return;
            };
            self.runs.remove(&oldest);
        }
    }

    fn is_needed(&self) -> bool {
        self.answer.is_some() || self.runs.values().any(|known| known.need != StickyNeed::Nothing)
    }

    fn render(&self, settings: &CheckSettings) -> String {
        let mut document = Document::default();
        document.push(&self.marker());
        if let Some(StickyAnswer { reason, instead }) = &self.answer {
            document.push(&format!("The last command was not done: {}", code(reason)));
            if let Some(command) = instead {
                document.push(&fence(command, LINE_AT_MOST));
            }
        }
        let of = |need: StickyNeed| self.runs.iter().filter(move |(_, known)| known.need == need);
        let waiting: Vec<String> = of(StickyNeed::Approval).map(|(name, _)| code(name)).collect();
        if !waiting.is_empty() {
            let role = plain(&settings.approver_role, LINE_AT_MOST);
            let names = waiting.join(", ");
            document.push(&format!(
                "The GPU tests of this commit wait for approval by {role}: the button is on the checks {names}."
            ));
        }
        let told = |(name, known): (&String, &StickyRun)| format!("- {}: {}", code(name), code(&known.line));
        let failures: Vec<String> = of(StickyNeed::Look).map(told).collect();
        if !failures.is_empty() {
            let listed = failures[..failures.len().min(FAILURES)].join("\n");
            document.push(&format!("GPU tests that did not pass:\n\n{listed}"));
        }
        if let Some(more @ 1..) = failures.len().checked_sub(FAILURES) {
            document.push(&format!("… and {more} more."));
        }
        if !self.is_needed() {
            document.push("No GPU test of this pull request needs anything.");
        }
        document.push("Details are in the checks. This comment is edited in place.");
        document.finish()
    }

    /// Returns the state, hidden. Only letters, digits and JSON's own marks stand in it as they are, so that no text ends the marker.
    fn marker(&self) -> String {
        let json = serde_json::to_string(self).expect("plain data");
        let mut hidden = String::from(MARKER);
        for c in json.chars() {
            match c {
                '<' | '>' | '-' | '@' | '#' | '&' | '\u{80}'.. => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        hidden += &format!("\\u{unit:04x}");
                    }
                }
                _ => hidden.push(c),
            }
        }
        hidden + MARKER_END
    }
}

impl StickyAnswer {
    fn of(answer: &Answer) -> Self {
        let instead = match answer {
            Answer::Approval(ApprovalProblem::WhichHead(head)) => Some(format!("/gpu-test {head}")),
            Answer::Approval(
                ApprovalProblem::NoPerson
                | ApprovalProblem::NotEntitled
                | ApprovalProblem::Own
                | ApprovalProblem::Closed
                | ApprovalProblem::HeadChanged(_)
                | ApprovalProblem::Budget(_)
                | ApprovalProblem::Nothing,
            )
            | Answer::Budget(_)
            | Answer::Comment(_)
            | Answer::MayNot
            | Answer::NoRun => None,
        };
        Self {
            reason: cut(&answer.to_string(), LINE_AT_MOST),
            instead,
        }
    }
}

fn need(view: &RunView) -> StickyNeed {
    match view.state {
        RunState::AwaitingApproval => match view.waits() {
            // It has its approval.
            Some(PendingReason::WaitingForIsolation(_)) => StickyNeed::Nothing,
            Some(_) | None => StickyNeed::Approval,
        },
        RunState::Queued | RunState::Reserved | RunState::Starting | RunState::Running => StickyNeed::Nothing,
        RunState::Ended(ending) => match ending {
            Ending::Failed | Ending::TimedOut | Ending::InfrastructureFailed | Ending::Refused => {
                StickyNeed::Look
            }
            Ending::Passed | Ending::Cancelled | Ending::Superseded => StickyNeed::Nothing,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use blueproof_core::domain::{Failure, FailureClass};
    use blueproof_diagnostic::{Code, Diagnostic};
    use jiff::Timestamp;

    use super::*;
    use crate::{
        check::InfrastructureConclusion,
        payload::{Account, App},
        testing::run_status,
    };

    const OURS: u64 = 99;

    fn settings() -> CheckSettings {
        CheckSettings {
            approver_role: "an approver in OWNERS".into(),
            infrastructure: InfrastructureConclusion::Neutral,
            simulated_clusters: BTreeSet::new(),
        }
    }

    fn of(run: u64, blueprint: &str, state: RunState) -> RunStatus {
        let mut status = run_status(state);
        status.view.id = RunId(run);
        status.view.subject.blueprint = blueprint.parse().expect("a name");
        status
    }

    fn failed(run: u64, blueprint: &str, message: &str) -> RunStatus {
        let mut status = of(run, blueprint, RunState::Ended(Ending::Failed));
        let diagnostic = Diagnostic::error(Code::CellRaised, message);
        status.view.failure = Some(Failure::outside_cells(FailureClass::Notebook, diagnostic));
        status
    }

    /// Returns what is to be written once all of this was told.
    fn plan_all(existing: Option<&Comment>, statuses: &[RunStatus]) -> Option<StickyWrite> {
        let (mut existing, mut last) = (existing.cloned(), None);
        for status in statuses {
            let write = plan(existing.as_ref(), &StickyNews::Run(status), &settings());
            existing = write
                .clone()
                .map(|write| comment(OURS, &written(Some(write))))
                .or(existing);
            last = write.or(last);
        }
        last
    }

    fn comment(app: u64, body: &str) -> Comment {
        Comment {
            id: 5,
            body: Some(body.into()),
            user: Some(Account {
                id: 990,
                login: "blueproof[bot]".into(),
                kind: AccountKind::Bot,
            }),
            app: Some(App { id: app }),
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn written(write: Option<StickyWrite>) -> String {
        match write.expect("something is to be written") {
            StickyWrite::Create(markdown) | StickyWrite::Update { markdown, .. } => markdown,
        }
    }

    #[test]
    fn a_pull_request_whose_runs_pass_gets_no_comment() {
        for state in [
            RunState::Queued,
            RunState::Running,
            RunState::Ended(Ending::Passed),
        ] {
            assert_eq!(plan_all(None, &[of(1, "a", state)]), None);
        }
    }

    #[test]
    fn there_is_one_comment_that_is_edited_as_things_change() {
        let first = plan_all(None, &[of(1, "a", RunState::AwaitingApproval)]);
        assert!(matches!(first, Some(StickyWrite::Create(_))));
        let first = comment(OURS, &written(first));
        assert_eq!(
            plan_all(Some(&first), &[of(1, "a", RunState::AwaitingApproval)]),
            None
        );

        let second = written(plan_all(Some(&first), &[failed(1, "a", "it broke")]));
        let shown = second.split_once("\n\n").expect("the marker comes first").1;
        assert_eq!(
            shown,
            "GPU tests that did not pass:\n\n- `GPU · a`: `Failed: it broke`\n\nDetails are in the checks. This comment is edited in place."
        );
        let late = plan_all(
            Some(&comment(OURS, &second)),
            &[of(0, "a", RunState::Ended(Ending::Passed))],
        );
        assert_eq!(late, None, "an older run says nothing");
        let third = written(plan_all(
            Some(&comment(OURS, &second)),
            &[of(2, "a", RunState::Ended(Ending::Passed))],
        ));
        assert!(third.contains("needs anything"), "{third}");
    }

    #[test]
    fn five_failures_are_listed_at_most() {
        let all: Vec<RunStatus> = (1..=7).map(|run| failed(run, &format!("b{run}"), "x")).collect();
        let markdown = written(plan_all(None, &all));
        assert_eq!(markdown.matches("\n- ").count(), FAILURES);
        assert!(markdown.contains("… and 2 more."));
    }

    #[test]
    fn only_our_own_comment_counts() {
        let body = written(plan_all(None, &[failed(1, "a", "x")]));
        let (theirs, ours) = (comment(3, &body), comment(OURS, &body));
        assert_eq!(find(std::slice::from_ref(&theirs), OURS), None);
        assert_eq!(find(&[theirs, ours.clone()], OURS), Some(&ours));
        assert_eq!(find(&[comment(OURS, &format!("> {body}"))], OURS), None);
        let mut by_a_person = ours;
        by_a_person
            .user
            .iter_mut()
            .for_each(|user| user.kind = AccountKind::User);
        assert_eq!(
            find(&[by_a_person], OURS),
            None,
            "somebody wrote it through our App"
        );
    }

    #[test]
    fn what_was_not_done_is_told_with_what_to_write_until_something_is_done() {
        let head = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d";
        let answer = ApprovalProblem::WhichHead(head.parse().expect("a commit")).into();
        let first = written(plan(None, &StickyNews::Answer(Some(&answer)), &settings()));
        assert!(
            first.contains(&format!("```text\n/gpu-test {head}\n```")),
            "{first}"
        );
        let first = comment(OURS, &first);
        assert_eq!(
            plan(Some(&first), &StickyNews::Answer(Some(&answer)), &settings()),
            None
        );
        let done = written(plan(Some(&first), &StickyNews::Answer(None), &settings()));
        assert!(done.contains("needs anything") && !done.contains(head), "{done}");
        assert_eq!(plan(None, &StickyNews::Answer(None), &settings()), None);
    }

    #[test]
    fn no_text_ends_the_marker_or_mentions_anybody() {
        let hostile = "--> @ada fixes #1 ` <b> https://e.org ü \u{1f600}";
        let markdown = written(plan_all(None, &[failed(1, "a", hostile)]));
        let (marker, shown) = markdown.split_once("\n\n").expect("the marker comes first");
        assert_eq!(marker.matches("-->").count(), 1);
        assert!(!marker.contains('@') && !marker.contains('#') && marker.is_ascii());
        let is_outside = |event| matches!(event, pulldown_cmark::Event::Text(text) if text.contains("ada"));
        assert!(!pulldown_cmark::Parser::new(shown).any(is_outside), "{shown}");
        let again = plan_all(Some(&comment(OURS, &markdown)), &[failed(1, "a", hostile)]);
        assert_eq!(again, None, "its state reads back what it wrote");
    }
}
