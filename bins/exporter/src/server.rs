//! Pages over HTTP.
//!
//! `/metrics` is the page that was chosen, `/metrics/native` and `/metrics/dcgm` are both. `/health` says that the process
//! lives, and asks no driver: a driver that hangs must not get its exporter killed. `/ready` says whether devices can be read.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::{Html, IntoResponse, Response},
    routing::get,
};
use blueproof_core::{
    diagnostic::{Code, Diagnostic},
    metrics::Format,
};
use tokio::{net::TcpListener, signal::unix};

use crate::{
    cli::PageKind,
    exporter::Exporter,
    web::{TlsListener, Web, authorize},
};

/// How many scrapes are answered at a time; more wait.
const AT_A_TIME: usize = 16;

/// Smaller pages are not worth a compression.
const COMPRESSED_FROM: usize = 1024;

const INDEX: &str = "<!doctype html><title>blueproof-exporter</title><h1>blueproof-exporter</h1><ul>\
    <li><a href=/metrics>/metrics</a><li><a href=/metrics/native>/metrics/native</a>\
    <li><a href=/metrics/dcgm>/metrics/dcgm</a><li><a href=/health>/health</a><li><a href=/ready>/ready</a></ul>";

/// Answers until the process is asked to end.
pub(crate) fn serve(exporter: Exporter, listen: SocketAddr, web: Option<Web>) -> Result<(), Diagnostic> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(AT_A_TIME)
        .build();
    let failed = |error: std::io::Error| {
        Diagnostic::error(Code::NotListening, format!("could not listen on {listen}"))
            .because(error.to_string())
            .hint("choose another address with `--listen`; dcgm-exporter has port 9400, node_exporter 9100")
    };
    let served = runtime.and_then(|runtime| runtime.block_on(listen_on(exporter, listen, web.map(Arc::new))));
    served.map_err(failed)
}

async fn listen_on(exporter: Exporter, listen: SocketAddr, web: Option<Arc<Web>>) -> std::io::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    let mut terminated = unix::signal(unix::SignalKind::terminate())?;
    let tls = web.clone().filter(|web| web.speaks_tls());
    let scheme = if tls.is_some() { "https" } else { "http" };
    eprintln!("listening on {scheme}://{}/metrics", listener.local_addr()?);
    let app = app(exporter, web);
    let until_asked = async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminated.recv() => {}
        }
    };
    match tls {
        Some(web) => {
            axum::serve(TlsListener::new(listener, web), app)
                .with_graceful_shutdown(until_asked)
                .await
        }
        None => {
            axum::serve(listener, app)
                .with_graceful_shutdown(until_asked)
                .await
        }
    }
}

fn app(exporter: Exporter, web: Option<Arc<Web>>) -> Router {
    let app = Router::new()
        .route("/", get(|| async { Html(INDEX) }))
        .route("/metrics", get(usual))
        .route("/metrics/native", get(native))
        .route("/metrics/dcgm", get(dcgm))
        .route("/health", get(|| async { "alive\n" }))
        .route("/ready", get(ready))
        .with_state(Arc::new(exporter));
    match web {
        Some(web) => app.layer(middleware::from_fn_with_state(web, authorize)),
        None => app,
    }
}

async fn usual(State(exporter): State<Arc<Exporter>>, headers: HeaderMap) -> Response {
    let page = exporter.page;
    answer(exporter, page, &headers).await
}

async fn native(State(exporter): State<Arc<Exporter>>, headers: HeaderMap) -> Response {
    answer(exporter, PageKind::Native, &headers).await
}

async fn dcgm(State(exporter): State<Arc<Exporter>>, headers: HeaderMap) -> Response {
    answer(exporter, PageKind::Dcgm, &headers).await
}

async fn ready(State(exporter): State<Arc<Exporter>>) -> Response {
    let blind = tokio::task::spawn_blocking(move || exporter.blind());
    match blind.await {
        Ok(None) => "devices are read\n".into_response(),
        Ok(Some(why)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why:#}\n")).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn answer(exporter: Arc<Exporter>, page: PageKind, headers: &HeaderMap) -> Response {
    let format = match page {
        PageKind::Native => format(headers),
        // Its counters are not called as OpenMetrics wants it.
        PageKind::Dcgm => Format::Prometheus,
    };
    let takes_gzip = takes(headers, header::ACCEPT_ENCODING, "gzip");
    let wait = exporter.wait;
    let answered = tokio::task::spawn_blocking(move || {
        let answer = exporter.answer(page, format, wait);
        exporter.tell_once(&answer);
        let text = answer.page;
        if takes_gzip && text.len() >= COMPRESSED_FROM {
            return (Some("gzip"), exporter.packer.pack(text.as_bytes()));
        }
        (None, text.into_bytes())
    });
    let Ok((encoding, body)) = answered.await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut response = Response::builder()
        .header(header::CONTENT_TYPE, format.content_type())
        .header(header::VARY, "accept, accept-encoding");
    if let Some(encoding) = encoding {
        response = response.header(header::CONTENT_ENCODING, encoding);
    }
    response.body(Body::from(body)).expect("these headers are text")
}

/// Returns the format that is asked for: Prometheus' own where nothing is said.
fn format(headers: &HeaderMap) -> Format {
    if takes(headers, header::ACCEPT, "application/openmetrics-text") {
        Format::OpenMetrics
    } else {
        Format::Prometheus
    }
}

/// Returns whether a header lists something, and not with a weight of zero.
fn takes(headers: &HeaderMap, name: header::HeaderName, what: &str) -> bool {
    let values = headers.get_all(name);
    let values = values.iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let is_it = parts.next().is_some_and(|first| first.eq_ignore_ascii_case(what));
        is_it && !parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)))
    })
}
