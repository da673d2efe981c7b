//! Who did what, as a table, and what became of commands.

use blueproof_core::{
    approval::{ApprovalTarget, Selection},
    audit::{AuditEntry, AuditTarget},
    ports::{Answer, StoredCommand},
};

use crate::output::{self, Table};

/// Returns what was done, a row each.
pub(crate) fn table(entries: &[AuditEntry]) -> Table {
    let mut table = Table::new(["AT", "ACTION", "OF", "BY", "WHY", "VIA"]);
    for entry in entries {
        let text = |text: Option<String>| text.map_or_else(|| "-".into(), |text| output::line(&text));
        table.row([
            output::absolute(entry.at).into(),
            entry.action.clone().into(),
            output::line(&target(&entry.target)).into(),
            text(entry.by.as_ref().map(ToString::to_string)).into(),
            text(entry.reason.clone()).into(),
            text(entry.via.as_ref().map(|via| via.0.clone())).into(),
        ]);
    }
    table
}

fn target(target: &AuditTarget) -> String {
    match target {
        AuditTarget::Content(content) => head(content),
        AuditTarget::Held(held) => held.to_string(),
        AuditTarget::Run(run) => run.to_string(),
        AuditTarget::Attempt(attempt) => attempt.to_string(),
        AuditTarget::Entitlement { repository, source } => match repository {
            Some(repository) => format!("approvers of {repository} ({source})"),
            None => format!("approvers ({source})"),
        },
    }
}

/// Names content as it is approved: all digits of the head, since fewer name nothing.
fn head(content: &ApprovalTarget) -> String {
    let mut text = content.head.to_string();
    if let Some(number) = content.pull_request {
        text.push_str(&format!(" #{number}"));
    }
    if let Selection::Named(blueprints) = &content.scope.blueprints {
        let names: Vec<String> = blueprints.iter().map(ToString::to_string).collect();
        text.push_str(&format!(" ({})", names.join(", ")));
    }
    text
}

/// Returns commands and what became of them, a row each.
pub(crate) fn commands(commands: &[StoredCommand]) -> Table {
    let mut table = Table::new(["AT", "KIND", "STATE", "WHY", "KEY"]);
    for command in commands {
        let (state, why) = match &command.answer {
            None => ("waiting", None),
            Some(Answer::Taken) => ("taken", None),
            Some(Answer::Refused(problem)) => ("refused", Some(problem)),
            Some(Answer::Quarantined(problem)) => ("quarantined", Some(problem)),
        };
        let why = why.map_or_else(
            || "-".into(),
            |problem| {
                let causes = problem
                    .causes
                    .iter()
                    .map(|cause| format!(": {}", output::line(cause)));
                format!("{}{}", output::joined(problem), causes.collect::<String>())
            },
        );
        let kind = if command.kind.is_empty() {
            "-"
        } else {
            &command.kind
        };
        table.row([
            output::absolute(command.at).into(),
            output::line(kind).into(),
            state.to_owned().into(),
            why.into(),
            output::line(&command.key.0).into(),
        ]);
    }
    table
}
