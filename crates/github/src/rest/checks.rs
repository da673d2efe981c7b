//! Check runs as they are sent, and as commit statuses where there is no App.

use serde::Serialize;

use crate::{
    api::{Annotation, CheckAction, CheckConclusion, CheckOutput, CheckRunState},
    payload::CommitSha,
};

/// The body of a request that makes or changes a check run.
#[derive(Serialize)]
pub(super) struct CheckBody<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    head_sha: Option<&'a CommitSha>,
    external_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details_url: Option<&'a str>,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    conclusion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    output: Output<'a>,
    actions: Vec<Action>,
}

#[derive(Serialize)]
struct Output<'a> {
    title: &'a str,
    summary: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
    annotations: Vec<AnnotationBody<'a>>,
}

#[derive(Serialize)]
struct AnnotationBody<'a> {
    path: &'a str,
    start_line: u32,
    end_line: u32,
    annotation_level: &'static str,
    message: &'a str,
    title: &'a str,
}

#[derive(Serialize)]
struct Action {
    label: &'static str,
    description: &'static str,
    identifier: &'static str,
}

impl<'a> CheckBody<'a> {
    /// Returns the body that makes `check`, of a commit, or changes one into it.
    pub(super) fn of(check: &'a CheckOutput, head: Option<&'a CommitSha>) -> Self {
        let (conclusion, completed_at) = match check.state {
            CheckRunState::Queued | CheckRunState::InProgress => (None, None),
            CheckRunState::Completed { conclusion, at } => {
                (Some(conclusion.to_string()), Some(at.to_string()))
            }
        };
        Self {
            name: &check.name,
            head_sha: head,
            external_id: &check.external_id,
            details_url: check.details_url.as_deref(),
            status: check.state.status().to_string(),
            conclusion,
            started_at: check.started_at.map(|at| at.to_string()),
            completed_at,
            output: Output {
                title: &check.title,
                summary: &check.summary,
                text: &check.text,
                annotations: check.annotations.iter().map(annotation).collect(),
            },
            actions: check.actions.iter().map(|action| button(*action)).collect(),
        }
    }
}

fn annotation(annotation: &Annotation) -> AnnotationBody<'_> {
    AnnotationBody {
        path: &annotation.path,
        start_line: annotation.start_line,
        end_line: annotation.end_line,
        annotation_level: "failure",
        message: &annotation.message,
        title: &annotation.title,
    }
}

fn button(action: CheckAction) -> Action {
    Action {
        label: action.label(),
        description: action.description(),
        identifier: action.identifier(),
    }
}

/// The body of a request that sets a commit status.
#[derive(Serialize)]
pub(super) struct StatusBody<'a> {
    state: &'static str,
    context: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_url: Option<&'a str>,
}

impl<'a> StatusBody<'a> {
    /// Returns the body that shows a check run.
    pub(super) fn of(check: &'a CheckOutput) -> Self {
        Self {
            state: status_state(check.state),
            context: &check.name,
            // A title has 100 characters at most, and GitHub takes 140.
            description: &check.title,
            target_url: check.details_url.as_deref(),
        }
    }
}

/// Returns the state of a commit status. There is none that says neither: what is neutral keeps nothing from being merged.
fn status_state(state: CheckRunState) -> &'static str {
    let conclusion = match state {
        CheckRunState::Queued | CheckRunState::InProgress => return "pending",
        CheckRunState::Completed { conclusion, .. } => conclusion,
    };
    match conclusion {
        CheckConclusion::ActionRequired => "pending",
        CheckConclusion::Success | CheckConclusion::Neutral | CheckConclusion::Skipped => "success",
        CheckConclusion::Failure | CheckConclusion::TimedOut => "failure",
        CheckConclusion::Cancelled => "error",
    }
}
