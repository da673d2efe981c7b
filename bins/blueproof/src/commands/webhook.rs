//! `blueproof webhook`: deliveries of GitHub's webhooks, as they are stored, and one that is sent by hand.

mod send;

use std::io::Write as _;

use blueproof_core::ports::{DeliveryClient, StoredDelivery};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_github::webhook::DeliveryId;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::{
    cli::{Webhook, WebhookCommand, WebhookList, WebhookReplay, WebhookShow},
    config::ConfigFlags,
    exit::{Exit, Problem},
    output::{self, Document, Encoding, Format},
    reading::{self, Reading},
    show::deliveries::{self, Columns},
};

/// How many deliveries are looked through for one whose id begins as was typed.
const LOOKED_THROUGH: usize = 1000;

/// A delivery as documents have it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole {
    #[serde(flatten)]
    stored: StoredDelivery,
    /// The payload, where it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Value>,
    /// What there is in place of it where it is none, as far as it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_text: Option<String>,
}

pub(super) fn webhook(arguments: &Webhook, flags: &ConfigFlags) -> Result<Exit, Problem> {
    match &arguments.command {
        WebhookCommand::List(arguments) => reading::block_on(list(arguments, flags)),
        WebhookCommand::Show(arguments) => reading::block_on(show(arguments, flags)),
        WebhookCommand::Replay(arguments) => reading::block_on(replay(arguments, flags)),
        WebhookCommand::Send(arguments) => reading::block_on(send::send(arguments)),
    }
}

async fn list(arguments: &WebhookList, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let reading = Reading::open(flags)?;
    let mut stored = match &reading.store {
        Some(store) => store.deliveries().deliveries(arguments.limit as usize).await?,
        None => Vec::new(),
    };
    let states = &arguments.state;
    stored.retain(|one| states.is_empty() || states.contains(&deliveries::state(&one.state)));
    let is_empty = stored.is_empty();
    let table = |columns| deliveries::table(&stored, columns, Timestamp::now()).render(output::width());
    let answer = match arguments.output {
        Some(Format::Json) => document(stored, Encoding::Json)?,
        Some(Format::Yaml) => document(stored, Encoding::Yaml)?,
        Some(Format::Name) => stored
            .iter()
            .map(|one| format!("{}\n", output::line(&one.id)))
            .collect(),
        Some(Format::Wide) if !is_empty => table(Columns::Wide),
        None if !is_empty => table(Columns::Usual),
        Some(Format::Wide) | None => String::new(),
    };
    output::print(&answer)?;
    if is_empty {
        output::note(match states.is_empty() {
            true => {
                "no deliveries: `blueproof-scheduler serve --github FILE` takes them, where the file has a `webhook`"
            }
            false => "no such deliveries",
        });
    }
    Ok(Exit::Ok)
}

fn document(stored: Vec<StoredDelivery>, encoding: Encoding) -> Result<String, Problem> {
    output::encode(&Document::list("DeliveryList", "Delivery", stored), encoding)
}

async fn show(arguments: &WebhookShow, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let reading = Reading::open(flags)?;
    let (stored, payload) = find(&reading, &arguments.id).await?;
    if arguments.payload {
        return print_bytes(&payload);
    }
    let answer = match arguments.output {
        Some(format) => {
            let json: Option<Value> = serde_json::from_slice(&payload).ok();
            let text = json
                .is_none()
                .then(|| String::from_utf8_lossy(&payload).into_owned());
            let whole = Whole {
                stored,
                payload: json,
                payload_text: text,
            };
            output::encode(&Document::new("Delivery", whole), format.into())?
        }
        None => deliveries::describe(&stored, &payload, Timestamp::now()),
    };
    output::print(&answer)?;
    Ok(Exit::Ok)
}

/// Writes bytes as they are: they are asked for by a program.
fn print_bytes(bytes: &[u8]) -> Result<Exit, Problem> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(|error| output::unwritten(&error))?;
    Ok(Exit::Ok)
}

async fn replay(arguments: &WebhookReplay, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let reading = Reading::open(flags)?;
    let (stored, _) = find(&reading, &arguments.id).await?;
    let store = reading.store.as_ref().expect("a delivery was found in it");
    match store.deliveries().replay_delivery(&stored.id).await? {
        true => output::note(&format!(
            "delivery {} is pending: the scheduler works on it at its next poll at the latest",
            output::line(&stored.id)
        )),
        false => return Err(unknown(&arguments.id)),
    }
    Ok(Exit::Ok)
}

/// Returns the delivery of an id, or the only one whose id begins so.
async fn find(reading: &Reading, id: &DeliveryId) -> Result<(StoredDelivery, Vec<u8>), Problem> {
    let Some(store) = &reading.store else {
        return Err(unknown(id));
    };
    let store = store.deliveries();
    if let Some(found) = store.delivery(id.as_str()).await? {
        return Ok(found);
    }
    let whole = whole_id(store, id).await?;
    store.delivery(&whole).await?.ok_or_else(|| unknown(id))
}

async fn whole_id(store: &dyn DeliveryClient, id: &DeliveryId) -> Result<String, Problem> {
    let all = store.deliveries(LOOKED_THROUGH).await?;
    let mut named: Vec<_> = all
        .into_iter()
        .filter(|one| one.id.starts_with(id.as_str()))
        .collect();
    match named.len() {
        0 => Err(unknown(id)),
        1 => Ok(named.remove(0).id),
        several => {
            let message = format!("{several} deliveries have an id that begins with `{id}`");
            let problem = Diagnostic::error(Code::DeliveryUnknown, message)
                .hint("type more of it: `blueproof webhook list -o wide` shows whole ids");
            Err(Problem::usage(problem))
        }
    }
}

fn unknown(id: &DeliveryId) -> Problem {
    let problem = Diagnostic::error(Code::DeliveryUnknown, format!("there is no delivery `{id}`"));
    Problem::usage(problem.hint("`blueproof webhook list` shows the deliveries that are stored"))
}
