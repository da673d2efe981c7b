//! Deliveries of webhooks, as a table and one in full.

use std::fmt::Write as _;

use blueproof_core::ports::{DeliveryState, StoredDelivery};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    cli::WebhookState,
    output::{self, Table},
    show,
};

/// How many digits of an id a table shows: among thousands two seldom have the same.
const ID_SHOWN: usize = 8;

/// What is in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Columns {
    /// What fits into 80 columns.
    Usual,
    /// With whole ids and times.
    Wide,
}

/// Returns deliveries, a row each.
pub(crate) fn table(deliveries: &[StoredDelivery], columns: Columns, now: Timestamp) -> Table {
    let mut table = match columns {
        Columns::Usual => Table::new(["ID", "AGE", "EVENT", "REPOSITORY", "STATE", "TRIES", "OUTCOME"]),
        Columns::Wide => Table::new([
            "ID",
            "RECEIVED",
            "EVENT",
            "REPOSITORY",
            "STATE",
            "TRIES",
            "NOTED",
            "BYTES",
            "OUTCOME",
        ]),
    };
    for delivery in deliveries {
        let repository = delivery.repository.as_deref().unwrap_or("-");
        let usual = [
            event(delivery),
            output::line(repository),
            word(state(&delivery.state)).to_owned(),
            delivery.attempts.to_string(),
        ];
        let id = output::line(&delivery.id);
        let cells: Vec<String> = match columns {
            Columns::Usual => {
                let age = output::ago(delivery.received_at, now);
                let age = age.trim_end_matches(" ago").to_owned();
                let id = id.chars().take(ID_SHOWN).collect();
                [id, age]
                    .into_iter()
                    .chain(usual)
                    .chain([outcome(&delivery.state)])
                    .collect()
            }
            Columns::Wide => {
                let noted = delivery.noted_at.map_or_else(|| "-".into(), output::absolute);
                let more = [noted, delivery.size.to_string(), outcome(&delivery.state)];
                [id, output::absolute(delivery.received_at)]
                    .into_iter()
                    .chain(usual)
                    .chain(more)
                    .collect()
            }
        };
        table.row(cells.into_iter().map(Into::into));
    }
    table
}

/// Returns how a delivery stands, without why.
pub(crate) fn state(state: &DeliveryState) -> WebhookState {
    match state {
        DeliveryState::Pending { .. } => WebhookState::Pending,
        DeliveryState::Done { .. } => WebhookState::Handled,
        DeliveryState::GivenUp { .. } => WebhookState::GivenUp,
    }
}

fn word(state: WebhookState) -> &'static str {
    match state {
        WebhookState::Pending => "pending",
        WebhookState::Handled => "handled",
        WebhookState::GivenUp => "given up",
    }
}

/// Returns the event with its action, as GitHub's own pages have it: `issue_comment.created`.
fn event(delivery: &StoredDelivery) -> String {
    let action = delivery.action.as_ref().map(|action| format!(".{action}"));
    output::line(&format!("{}{}", delivery.event, action.unwrap_or_default()))
}

fn outcome(state: &DeliveryState) -> String {
    match state {
        DeliveryState::Pending { problem: None } => "-".into(),
        DeliveryState::Pending {
            problem: Some(problem),
        }
        | DeliveryState::GivenUp { problem } => {
            let causes = problem
                .causes
                .iter()
                .map(|cause| format!(": {}", output::line(cause)));
            format!(
                "{} {}{}",
                problem.code,
                output::joined(problem),
                causes.collect::<String>()
            )
        }
        DeliveryState::Done { outcome } => output::line(outcome),
    }
}

/// Returns a delivery in full. The signature is not stored, and no secret is.
pub(crate) fn describe(delivery: &StoredDelivery, payload: &[u8], now: Timestamp) -> String {
    let at = |at: Timestamp| format!("{} ({})", output::absolute(at), output::ago(at, now));
    let optional = |text: Option<&str>| output::line(text.unwrap_or("-"));
    let mut rows = vec![
        ("Repository", optional(delivery.repository.as_deref())),
        ("Action", optional(delivery.action.as_deref())),
        ("Received", at(delivery.received_at)),
        ("State", word(state(&delivery.state)).to_owned()),
        ("Tries", delivery.attempts.to_string()),
    ];
    if let Some(noted) = delivery.noted_at {
        rows.push(("Noted", at(noted)));
    }
    if let DeliveryState::Done { outcome } = &delivery.state {
        rows.push(("Outcome", output::line(outcome)));
    }
    let mut text = String::new();
    for (name, value) in rows {
        let _ = writeln!(text, "{:<12}{value}", format!("{name}:"));
    }
    match &delivery.state {
        DeliveryState::Pending {
            problem: Some(problem),
        }
        | DeliveryState::GivenUp { problem } => {
            let _ = write!(text, "\n{}", show::render(problem));
        }
        DeliveryState::Pending { problem: None } | DeliveryState::Done { .. } => {}
    }
    let (event, id) = (output::line(&delivery.event), output::line(&delivery.id));
    let _ = writeln!(text, "\nX-GitHub-Event: {event}\nX-GitHub-Delivery: {id}");
    let _ = writeln!(text, "\n{}", pretty(payload));
    text
}

/// Returns a payload as people read it: JSON over many lines, and what is none as it came, made harmless.
fn pretty(payload: &[u8]) -> String {
    let json = serde_json::from_slice::<Value>(payload).ok();
    let text = json.and_then(|json| serde_json::to_string_pretty(&json).ok());
    let text = text.unwrap_or_else(|| String::from_utf8_lossy(payload).into_owned());
    output::block(&text).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use blueproof_diagnostic::{Code, Diagnostic};
    use jiff::SignedDuration;

    use super::*;
    use crate::output::Width;

    fn delivery(state: DeliveryState) -> StoredDelivery {
        StoredDelivery {
            id: "72d3162e-cc78-11e3-81ab-4c9367dc0958".into(),
            event: "check_run".into(),
            action: Some("requested_action".into()),
            repository: Some("kubeflow/trainer".into()),
            received_at: Timestamp::UNIX_EPOCH,
            size: 12,
            attempts: 1,
            noted_at: None,
            state,
        }
    }

    fn given_up() -> DeliveryState {
        let problem = Diagnostic::error(Code::DeliveryUnreadable, "the delivery cannot be read");
        DeliveryState::GivenUp {
            problem: Box::new(problem.because("expected `,`\u{1b}[2J")),
        }
    }

    #[test]
    fn a_list_fits_into_80_columns_and_its_ids_are_enough_to_name_one() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(3);
        let deliveries = [
            delivery(DeliveryState::Pending { problem: None }),
            delivery(given_up()),
        ];
        let usual = table(&deliveries, Columns::Usual, now).render(Width::Columns(80));
        for line in usual.lines() {
            assert!(line.chars().count() <= 80, "{usual}");
        }
        assert!(
            usual.contains("72d3162e  3m   check_run.requested_action"),
            "{usual}"
        );
        let wide = table(&deliveries, Columns::Wide, now).render(Width::Unlimited);
        assert!(
            wide.contains("72d3162e-cc78-11e3-81ab-4c9367dc0958  1970-01-01T00:00:00Z"),
            "{wide}"
        );
        assert!(
            wide.contains("given up  1") && wide.contains("BP1104 the delivery cannot be read: expected"),
            "{wide}"
        );
    }

    #[test]
    fn a_payload_is_shown_whatever_it_is_and_is_obeyed_by_no_terminal() {
        let shown = |payload: &[u8]| {
            let shown = describe(&delivery(given_up()), payload, Timestamp::UNIX_EPOCH);
            strip_str(&shown).to_string()
        };
        let json = shown(b"{\"a\":\"\\u001b[2J\"}");
        assert!(
            json.contains("X-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-4c9367dc0958\n\n{\n  \"a\""),
            "{json}"
        );
        for payload in [&b"\x1b[2J\xff"[..], b"", b"{\"a\":\"\\u009b\"}"] {
            let shown = shown(payload);
            assert!(!shown.contains(['\u{1b}', '\u{9b}']), "{shown:?}");
        }
    }
}
