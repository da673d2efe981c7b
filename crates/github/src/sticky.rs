//! The one comment that a pull request gets, for what a check run cannot carry: that a commit needs an approval, and that a run failed.
//!
//! A check run notifies nobody. So the first time that somebody has to do something there is a comment; afterwards it is edited in place,
//! which notifies nobody either. It is found by a hidden marker with its state, and counts only where our own account wrote it. Nobody is
//! mentioned. A pull request whose runs pass gets none.

use std::collections::BTreeMap;

use blueproof_core::{
    domain::{Ending, RunId, RunState},
    ports::RunStatus,
};
use serde::{Deserialize, Serialize};

use crate::{
    check::{CheckSettings, check_name, run_title},
    markdown::{Document, code, plain},
    payload::Comment,
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
pub enum StickyWrite {
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

/// What the comment knows of the runs, by the names of their check runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StickyState {
    runs: BTreeMap<String, StickyRun>,
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

/// Returns our comment among those of a pull request: the first with our marker that our own account wrote.
pub fn find(comments: &[Comment], our_account: u64) -> Option<&Comment> {
    let is_ours = |comment: &&Comment| {
        let by_us = comment.user.as_ref().is_some_and(|user| user.id == our_account);
        let body = comment.body.as_deref().unwrap_or_default();
        by_us && body.starts_with(MARKER)
    };
    comments.iter().find(is_ours)
}

/// Returns what is to be written for a pull request, whose comment and whose runs these are; `None` where nothing is.
pub fn plan(
    existing: Option<&Comment>,
    statuses: &[RunStatus],
    settings: &CheckSettings,
) -> Option<StickyWrite> {
    let body = existing.and_then(|comment| comment.body.as_deref());
    let mut state = body.and_then(StickyState::read).unwrap_or_default();
    for status in statuses {
        state.take_in(status, settings);
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
        let need = need(status.view.state);
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
        self.runs.values().any(|known| known.need != StickyNeed::Nothing)
    }

    fn render(&self, settings: &CheckSettings) -> String {
        let mut document = Document::default();
        document.push(&self.marker());
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

fn need(state: RunState) -> StickyNeed {
    match state {
        RunState::AwaitingApproval => StickyNeed::Approval,
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
    use crate::{check::InfrastructureConclusion, payload::Account, testing::run_status};

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

    fn comment(by: u64, body: &str) -> Comment {
        Comment {
            id: 5,
            body: Some(body.into()),
            user: Some(Account {
                id: by,
                login: "blueproof[bot]".into(),
                kind: Default::default(),
            }),
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
            assert_eq!(plan(None, &[of(1, "a", state)], &settings()), None);
        }
    }

    #[test]
    fn there_is_one_comment_that_is_edited_as_things_change() {
        let first = plan(None, &[of(1, "a", RunState::AwaitingApproval)], &settings());
        assert!(matches!(first, Some(StickyWrite::Create(_))));
        let first = comment(OURS, &written(first));
        assert_eq!(
            plan(
                Some(&first),
                &[of(1, "a", RunState::AwaitingApproval)],
                &settings()
            ),
            None
        );

        let second = written(plan(Some(&first), &[failed(1, "a", "it broke")], &settings()));
        let shown = second.split_once("\n\n").expect("the marker comes first").1;
        assert_eq!(
            shown,
            "GPU tests that did not pass:\n\n- `GPU · a`: `Failed: it broke`\n\nDetails are in the checks. This comment is edited in place."
        );
        let late = plan(
            Some(&comment(OURS, &second)),
            &[of(0, "a", RunState::Ended(Ending::Passed))],
            &settings(),
        );
        assert_eq!(late, None, "an older run says nothing");
        let third = written(plan(
            Some(&comment(OURS, &second)),
            &[of(2, "a", RunState::Ended(Ending::Passed))],
            &settings(),
        ));
        assert!(third.contains("needs anything"), "{third}");
    }

    #[test]
    fn five_failures_are_listed_at_most() {
        let all: Vec<RunStatus> = (1..=7).map(|run| failed(run, &format!("b{run}"), "x")).collect();
        let markdown = written(plan(None, &all, &settings()));
        assert_eq!(markdown.matches("\n- ").count(), FAILURES);
        assert!(markdown.contains("… and 2 more."));
    }

    #[test]
    fn only_our_own_comment_counts() {
        let body = written(plan(None, &[failed(1, "a", "x")], &settings()));
        let (theirs, ours) = (comment(3, &body), comment(OURS, &body));
        assert_eq!(find(std::slice::from_ref(&theirs), OURS), None);
        assert_eq!(find(&[theirs, ours.clone()], OURS), Some(&ours));
        assert_eq!(find(&[comment(OURS, &format!("> {body}"))], OURS), None);
    }

    #[test]
    fn no_text_ends_the_marker_or_mentions_anybody() {
        let hostile = "--> @ada fixes #1 ` <b> https://e.org ü \u{1f600}";
        let markdown = written(plan(None, &[failed(1, "a", hostile)], &settings()));
        let (marker, shown) = markdown.split_once("\n\n").expect("the marker comes first");
        assert_eq!(marker.matches("-->").count(), 1);
        assert!(!marker.contains('@') && !marker.contains('#') && marker.is_ascii());
        let is_outside = |event| matches!(event, pulldown_cmark::Event::Text(text) if text.contains("ada"));
        assert!(!pulldown_cmark::Parser::new(shown).any(is_outside), "{shown}");
        let again = plan(
            Some(&comment(OURS, &markdown)),
            &[failed(1, "a", hostile)],
            &settings(),
        );
        assert_eq!(again, None, "its state reads back what it wrote");
    }
}
