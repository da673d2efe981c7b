//! Which path is answered by what, and how that is described.

use std::sync::Arc;

use aide::{
    axum::{
        ApiRouter,
        routing::{get_with, post_with},
    },
    openapi::{MediaType, ReferenceOr, Response, StatusCode},
    transform::TransformOperation,
};
use axum::Json;
use blueproof_core::ports::{StoredCommand, StoredDelivery};
use blueproof_diagnostic::Diagnostic;

use super::{Api, commands, deliveries, facts, outputs, queues, runs, status};

/// What is not JSON.
const EVENTS: &str = "text/event-stream";
const BYTES: &str = "application/octet-stream";
const TEXT: &str = "text/plain";

/// Adds paths that are read: each with its function, the operation's name, what it does, and what is answered with where that is
/// not JSON.
macro_rules! reads {
    ($router:expr; $($path:literal $function:path, $id:literal, $summary:literal $(, $media:expr)?;)*) => {
        $router$(.api_route($path, get_with($function, |of: TransformOperation<'_>| {
            let of = told(of, $id, $summary);
            $(let of = in_media(of, $summary, $media);)?
            of
        })))*
    };
}

/// Returns every path that needs a caller.
pub(super) fn routes() -> ApiRouter<Arc<Api>> {
    let router = ApiRouter::new().api_route(
        "/api/v1/commands",
        get_with(commands::list, |of: TransformOperation<'_>| {
            told(of, "listCommands", "What was asked for, the newest first")
        })
        .post_with(commands::submit, |of: TransformOperation<'_>| {
            let summary = "Ask for something; a command that was sent before, key and all, changes nothing";
            told(of, "submitCommand", summary)
                .response::<202, Json<StoredCommand>>()
                .response_with::<403, Json<Diagnostic>, _>(|of| {
                    of.description("The role of the token is too low for it")
                })
                .response_with::<409, Json<Diagnostic>, _>(|of| of.description("Another command has its key"))
        }),
    );
    let router = router.api_route(
        "/api/v1/deliveries/{delivery}/replay",
        post_with(deliveries::replay, |of: TransformOperation<'_>| {
            let summary = "Have a delivery worked on once more; nothing that came of it before is done twice";
            told(of, "replayDelivery", summary)
                .response::<202, Json<StoredDelivery>>()
                .response_with::<403, Json<Diagnostic>, _>(|of| {
                    of.description("The role of the token is too low")
                })
        }),
    );
    reads! { router;
        "/api/v1/status" status::status, "getStatus", "How the scheduler stands";
        "/api/v1/policy" queues::policy, "getPolicy", "What the scheduler goes by";
        "/api/v1/queues" queues::queues, "getQueues", "The queues that hold";
        "/api/v1/commands/{key}" commands::get, "getCommand", "What became of what was asked for";
        "/api/v1/deliveries" deliveries::list, "listDeliveries", "Deliveries of webhooks, the newest first";
        "/api/v1/deliveries/{delivery}" deliveries::get, "getDelivery", "A delivery as it stands";
        "/api/v1/deliveries/{delivery}/payload" deliveries::payload, "getPayload", "The body of a delivery, as it came", BYTES;
        "/api/v1/runs" runs::list, "listRuns", "Runs, the newest first";
        "/api/v1/runs/{run}" runs::get, "getRun", "A run as it stands";
        "/api/v1/runs/{run}/request" runs::request, "getRequest", "What was asked for with the request that made a run";
        "/api/v1/runs/{run}/files" outputs::kept, "listFiles", "All that is kept of a run";
        "/api/v1/requests/{key}/run" runs::of_request, "getRunOfRequest", "The run that a request made";
        "/api/v1/attempts/{attempt}/records" outputs::records, "listRecords", "What an attempt's agent has written down";
        "/api/v1/attempts/{attempt}/records/stream" outputs::follow, "followRecords", "Records as they are written, as server-sent events", EVENTS;
        "/api/v1/attempts/{attempt}/artifacts" outputs::artifacts, "listArtifacts", "The files that an attempt kept";
        "/api/v1/files" outputs::file, "getFile", "What is known of a file that is kept";
        "/api/v1/files/content" outputs::content, "getContent", "A file that is kept, or a part of it", BYTES;
        "/api/v1/facts" facts::list, "listFacts", "The log, the oldest facts first";
        "/api/v1/facts/stream" facts::follow, "followFacts", "The log as it goes on, as server-sent events", EVENTS;
        "/api/v1/changes" facts::changed, "waitForChange", "Wait until something was written, for some seconds at most";
        "/api/v1/snapshot" facts::snapshot, "getSnapshot", "The state of the scheduler as it was last written down", BYTES;
        "/metrics" status::metrics, "getMetrics", "What Prometheus reads", TEXT;
    }
}

fn told<'a>(of: TransformOperation<'a>, id: &str, summary: &str) -> TransformOperation<'a> {
    of.id(id)
        .summary(summary)
        .response_with::<401, Json<Diagnostic>, _>(|of| {
            of.description("No token that is known came with the request")
        })
        .default_response::<Json<Diagnostic>>()
}

fn in_media<'a>(mut of: TransformOperation<'a>, summary: &str, media: &str) -> TransformOperation<'a> {
    let content = Response {
        description: summary.into(),
        content: [(media.into(), MediaType::default())].into(),
        ..Response::default()
    };
    let responses = &mut of.inner_mut().responses.get_or_insert_default().responses;
    responses.insert(StatusCode::Code(200), ReferenceOr::Item(content));
    of
}
