//! What attempts leave: records, artifacts, reports.
//!
//! It is a notebook's: no page of it may act as this server's.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Json,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderName, header},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use blueproof_core::{
    domain::{self, AttemptId, RunId},
    ports::{
        AttemptOutput, OutputError, OutputFile, OutputName, RecordFollower, RecordPosition, Records, RunFiles,
    },
};
use futures_util::{Stream, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Api, ApiError,
    extract::{Path, Query},
};
use crate::{
    output_name,
    wire::{FILES_LISTED, File, RECORDS_A_PAGE, WAITS_AT_MOST},
};

/// How many records are returned at once where nobody says how many, and how many at most.
const RECORDS: (u32, u32) = (1_000, RECORDS_A_PAGE);

/// How many are read at once for a follower. One that does not read them has them in memory.
const RECORDS_AHEAD: usize = 64;

/// How many files of a run are listed where nobody says how many, and how many at most.
const FILES: (u32, u32) = (100, FILES_LISTED);

/// How much of a file is read at once.
const PART: usize = 1 << 20;

/// An attempt.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct OfAttempt {
    /// Its id.
    attempt: AttemptId,
}

/// A run.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct OfRun {
    /// Its id.
    run: RunId,
}

/// Which records.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Only those after this position, which an earlier answer has given.
    #[serde(default)]
    after: RecordPosition,
    /// How many at most.
    #[schemars(range(min = 1, max = 4_096))]
    limit: Option<u32>,
    /// How many seconds to wait where there are none yet.
    #[serde(default)]
    #[schemars(range(max = 25))]
    wait: u32,
}

/// From where a stream of records begins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    /// After this position; the header `Last-Event-ID` goes before it.
    #[serde(default)]
    after: RecordPosition,
}

/// Files that are kept.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FileList {
    items: Vec<File>,
}

/// Which files of a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfFiles {
    /// How many at most.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
}

/// A file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    /// Its name: `r-41/report.html`, `r-41.2/executed.ipynb`, `r-41.2/artifacts/loss.png`.
    name: String,
}

/// A part of a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    /// Its name, as a list or another answer has given it.
    name: String,
    /// The first byte.
    #[serde(default)]
    offset: u64,
    /// How many bytes at most; all, where nothing is said.
    limit: Option<u64>,
}

pub(super) async fn records(
    State(api): State<Arc<Api>>,
    Path(OfAttempt { attempt }): Path<OfAttempt>,
    Query(Wanted { after, limit, wait }): Query<Wanted>,
) -> Result<Json<Records>, ApiError> {
    let limit = super::bounded(limit, RECORDS)?;
    let mut changes = api.output.changes(attempt);
    let read = api.output.records(attempt, &after, limit).await;
    if read.as_ref().is_ok_and(|read| read.next != after) || wait == 0 {
        return Ok(Json(read?));
    }
    let waits = Duration::from_secs(wait.min(WAITS_AT_MOST).into());
    let _ = tokio::time::timeout(waits, changes.next(&after)).await;
    Ok(Json(api.output.records(attempt, &after, limit).await?))
}

/// Sends records as they come; the id of an event is the position after them.
pub(super) async fn follow(
    State(api): State<Arc<Api>>,
    Path(OfAttempt { attempt }): Path<OfAttempt>,
    Query(From { after }): Query<From>,
    headers: HeaderMap,
) -> Response {
    let last = headers
        .get("last-event-id")
        .map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    let after = last.map_or(after, RecordPosition);
    let follower = RecordFollower::after(after, Arc::clone(&api.output), attempt).at_once(RECORDS_AHEAD);
    Sse::new(events(follower))
        .keep_alive(KeepAlive::default())
        .into_response()
}

fn events(follower: RecordFollower) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(Some(follower), async |follower| {
        let mut follower = follower?;
        let event = match follower.next().await {
            Ok(records) => {
                let event = Event::default()
                    .id(follower.position().0.clone())
                    .event("records");
                (event.json_data(&records).ok()?, Some(follower))
            }
            // It ends there: whoever comes back is told again.
            Err(error) => (
                Event::default()
                    .event("error")
                    .json_data(error.to_diagnostic())
                    .ok()?,
                None,
            ),
        };
        Some((Ok(event.0), event.1))
    })
}

pub(super) async fn artifacts(
    State(api): State<Arc<Api>>,
    Path(OfAttempt { attempt }): Path<OfAttempt>,
) -> Result<Json<FileList>, ApiError> {
    let files = api.output.artifacts(attempt).await?;
    let items = files.iter().map(sent).collect();
    Ok(Json(FileList { items }))
}

pub(super) async fn kept(
    State(api): State<Arc<Api>>,
    Path(OfRun { run }): Path<OfRun>,
    Query(OfFiles { limit }): Query<OfFiles>,
) -> Result<Json<RunFiles>, ApiError> {
    let limit = super::bounded(limit, FILES)?;
    Ok(Json(api.output.kept(run, limit).await?))
}

pub(super) async fn file(
    State(api): State<Arc<Api>>,
    Query(Named { name }): Query<Named>,
) -> Result<Json<File>, ApiError> {
    let name = parsed(&name)?;
    let file = api.output.file(&name).await?;
    let file = file.ok_or(OutputError::NoFile(name))?;
    Ok(Json(sent(&file)))
}

/// Sends a file, a part of it at a time.
pub(super) async fn content(
    State(api): State<Arc<Api>>,
    Query(Part { name, offset, limit }): Query<Part>,
) -> Result<Response, ApiError> {
    let name = parsed(&name)?;
    let rest = limit.unwrap_or(u64::MAX);
    // What cannot be read at all is told with a status.
    let first = api.output.read(&name, offset, part_of(rest)).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            HeaderName::from_static("content-security-policy"),
            "sandbox; default-src 'none'",
        ),
    ];
    let parts = parts(Arc::clone(&api.output), name, offset, rest, first);
    Ok((headers, Body::from_stream(parts)).into_response())
}

/// Where a file is that is being sent.
struct Sending {
    output: Arc<dyn AttemptOutput>,
    name: OutputName,
    offset: u64,
    rest: u64,
    ready: Vec<u8>,
}

fn parts(
    output: Arc<dyn AttemptOutput>,
    name: OutputName,
    offset: u64,
    rest: u64,
    ready: Vec<u8>,
) -> impl Stream<Item = Result<Bytes, OutputError>> {
    let sending = Sending {
        output,
        name,
        offset,
        rest,
        ready,
    };
    stream::try_unfold(sending, async |mut sending| {
        let part = std::mem::take(&mut sending.ready);
        if part.is_empty() {
            return Ok(None);
        }
        sending.offset += part.len() as u64;
        sending.rest -= (part.len() as u64).min(sending.rest);
        if sending.rest > 0 {
            let read = sending
                .output
                .read(&sending.name, sending.offset, part_of(sending.rest));
            sending.ready = read.await?;
        }
        Ok(Some((Bytes::from(part), sending)))
    })
}

fn part_of(rest: u64) -> usize {
    usize::try_from(rest).unwrap_or(usize::MAX).min(PART)
}

fn parsed(name: &str) -> Result<OutputName, ApiError> {
    output_name::from_text(name).ok_or_else(|| ApiError::missing(format_args!("file `{name}`")))
}

fn sent(file: &OutputFile) -> File {
    let domain::Bytes(size) = file.size;
    File {
        name: output_name::to_text(&file.name),
        size,
    }
}
