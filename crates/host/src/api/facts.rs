//! The log: what came in and what was decided, from a position on, and as it goes on.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName, header},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use blueproof_core::ports::{LoggedFact, Seq, StoreClient, Version};
use futures_util::{Stream, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::{Api, ApiError, extract::Query};
use crate::wire::{Changed, FACTS_A_PAGE, SNAPSHOT_AT, WAITS_AT_MOST};

/// How many facts are returned at once where nobody says how many, and how many at most.
const FACTS: (u32, u32) = (1_000, FACTS_A_PAGE);

/// How many are read at once for a page, and how many bytes as JSON end it: most facts are short, and some have the job of a run.
const FACTS_AT_ONCE: usize = 64;
const PAGE_BYTES: usize = 1 << 20;

/// How many are read at once for a follower. One that does not read them has them in memory.
const FACTS_AHEAD: usize = 16;

/// Which facts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Only those after the fact at this position; 0 is before the first.
    #[serde(default)]
    after: Seq,
    /// How many at most. There are fewer, and at least one where there is one, where they are long.
    #[schemars(range(min = 1, max = 4_096))]
    limit: Option<u32>,
}

/// Which snapshot.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfVersion {
    /// The version of its shape: one of another version is of no use.
    #[schemars(range(max = 4_294_967_295_u32))]
    version: u32,
}

/// Facts, the oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FactList {
    // As JSON, which is what a page is measured by.
    #[schemars(with = "Vec<LoggedFact>")]
    items: Vec<Box<RawValue>>,
}

/// From where a stream of facts begins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    /// After the fact at this position; the header `Last-Event-ID` goes before it.
    #[serde(default)]
    after: Seq,
}

/// What is known of the store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Since {
    /// The version that is known.
    since: Option<u64>,
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<FactList>, ApiError> {
    let limit = super::bounded(wanted.limit, FACTS)?;
    let mut items: Vec<Box<RawValue>> = Vec::new();
    let (mut last, mut bytes) = (wanted.after, 0);
    while items.len() < limit && bytes < PAGE_BYTES {
        let part = (limit - items.len()).min(FACTS_AT_ONCE);
        let facts = api.store.facts(last, part).await?;
        let Some(newest) = facts.last() else { break };
        last = newest.seq;
        for fact in &facts {
            let written = to_raw_value(fact).expect("a fact is plain data");
            bytes += written.get().len();
            items.push(written);
        }
    }
    Ok(Json(FactList { items }))
}

/// Returns once the store is another than is known, or after some seconds.
pub(super) async fn changed(
    State(api): State<Arc<Api>>,
    Query(Since { since }): Query<Since>,
) -> Json<Changed> {
    let waits = Duration::from_secs(WAITS_AT_MOST.into());
    let changed = api.store.changed(since.map(Version));
    let version = tokio::time::timeout(waits, changed).await;
    let version = version.ok().map(|Version(version)| version).or(since);
    Json(Changed {
        version: version.unwrap_or_default(),
    })
}

/// Returns the state of the scheduler as it was last written down.
pub(super) async fn snapshot(
    State(api): State<Arc<Api>>,
    Query(OfVersion { version }): Query<OfVersion>,
) -> Result<Response, ApiError> {
    let Some((at, bytes)) = api.store.snapshot(version).await? else {
        return Err(ApiError::missing("snapshot yet"));
    };
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (HeaderName::from_static(SNAPSHOT_AT), at.0.to_string()),
    ];
    Ok((headers, bytes).into_response())
}

/// Sends each fact as a server-sent event whose id is its position, so that whoever comes back goes on where it was.
pub(super) async fn follow(
    State(api): State<Arc<Api>>,
    Query(From { after }): Query<From>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // What is no text is no position either.
    let last = headers
        .get("last-event-id")
        .map(|id| id.to_str().unwrap_or_default());
    let after = match last.map(str::parse) {
        Some(Ok(after)) => Seq(after),
        Some(Err(_)) => {
            let status = axum::http::StatusCode::BAD_REQUEST;
            return Err(ApiError::malformed(
                status,
                "Last-Event-ID is not the position of a fact",
            ));
        }
        None => after,
    };
    let events = Sse::new(events(Arc::clone(&api.store), after));
    Ok(events.keep_alive(KeepAlive::default()).into_response())
}

/// Where a stream is.
struct Position {
    store: Arc<dyn StoreClient>,
    last: Seq,
    seen: Option<Version>,
    ready: VecDeque<LoggedFact>,
}

fn events(store: Arc<dyn StoreClient>, after: Seq) -> impl Stream<Item = Result<Event, Infallible>> {
    let position = Position {
        store,
        last: after,
        seen: None,
        ready: VecDeque::new(),
    };
    stream::unfold(position, async |mut position| {
        // A store that cannot be read ends the stream: whoever comes back is told why.
        let fact = position.next().await?;
        let event = Event::default().id(fact.seq.0.to_string()).event("fact");
        let event = event.json_data(&fact).ok()?;
        Some((Ok(event), position))
    })
}

impl Position {
    async fn next(&mut self) -> Option<LoggedFact> {
        loop {
            if let Some(fact) = self.ready.pop_front() {
                self.last = fact.seq;
                return Some(fact);
            }
            let facts = self.store.facts(self.last, FACTS_AHEAD).await.ok()?;
            if facts.is_empty() {
                self.seen = Some(self.store.changed(self.seen).await);
            }
            self.ready.extend(facts);
        }
    }
}
