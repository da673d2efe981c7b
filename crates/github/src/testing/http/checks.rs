//! Check runs and reactions, read from what was sent.

use serde_json::{Value, json};

use crate::api::{Annotation, CheckConclusion, CheckOutput, CheckRunState, ExistingCheckRun, Reaction};

/// Returns a check run in GitHub's words.
pub(super) fn told(run: &ExistingCheckRun, state: Option<CheckRunState>, app: u64) -> Value {
    let state = state.unwrap_or(CheckRunState::Queued);
    let conclusion = match state {
        CheckRunState::Queued | CheckRunState::InProgress => None,
        CheckRunState::Completed { conclusion, .. } => Some(conclusion.to_string()),
    };
    json!({
        "id": run.id.0,
        "name": run.name,
        "external_id": run.external_id,
        "status": state.status().to_string(),
        "conclusion": conclusion,
        "app": { "id": app },
        "output": { "annotations_count": run.n_annotations },
    })
}

/// Returns what a request says of a check run.
pub(super) fn of(body: &Value) -> CheckOutput {
    let text = |pointer: &str| {
        let text = body.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let list = |pointer: &str| {
        body.pointer(pointer)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    CheckOutput {
        name: text("/name"),
        external_id: text("/external_id"),
        details_url: body["details_url"].as_str().map(str::to_owned),
        state: state(body),
        started_at: body["started_at"].as_str().and_then(|at| at.parse().ok()),
        title: text("/output/title"),
        summary: text("/output/summary"),
        text: text("/output/text"),
        annotations: list("/output/annotations").iter().map(annotation).collect(),
        actions: list("/actions")
            .iter()
            .filter_map(|action| action["identifier"].as_str()?.parse().ok())
            .collect(),
    }
}

fn state(body: &Value) -> CheckRunState {
    match body["status"].as_str() {
        Some("completed") => CheckRunState::Completed {
            conclusion: conclusion(body["conclusion"].as_str().unwrap_or_default()),
            at: body["completed_at"]
                .as_str()
                .and_then(|at| at.parse().ok())
                .unwrap_or_default(),
        },
        Some("in_progress") => CheckRunState::InProgress,
        _ => CheckRunState::Queued,
    }
}

fn conclusion(word: &str) -> CheckConclusion {
    use CheckConclusion::{ActionRequired, Cancelled, Failure, Neutral, Skipped, Success, TimedOut};
    let all = [
        Success,
        Failure,
        Neutral,
        Cancelled,
        TimedOut,
        ActionRequired,
        Skipped,
    ];
    let named = all.into_iter().find(|conclusion| conclusion.to_string() == word);
    named.unwrap_or(Neutral)
}

fn annotation(body: &Value) -> Annotation {
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let line = |name: &str| {
        body[name]
            .as_u64()
            .and_then(|line| line.try_into().ok())
            .unwrap_or(0)
    };
    Annotation {
        path: text("path"),
        start_line: line("start_line"),
        end_line: line("end_line"),
        message: text("message"),
        title: text("title"),
    }
}

/// Returns the reaction of a word of GitHub's.
pub(super) fn reaction(word: &str) -> Option<Reaction> {
    match word {
        "eyes" => Some(Reaction::Eyes),
        "rocket" => Some(Reaction::Rocket),
        "confused" => Some(Reaction::Confused),
        _ => None,
    }
}
