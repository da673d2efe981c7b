//! Pages over HTTP.
//!
//! `/metrics` is the page that was chosen, `/metrics/native` and `/metrics/dcgm` are both. `/health` says that the process
//! lives, and asks no driver: a driver that hangs must not get its exporter killed. `/ready` says whether devices can be read.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::{Html, IntoResponse, Response},
    routing::get,
    serve::Listener,
};
use blueproof_core::metrics::Format;
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_http::Limits;
use tokio::{
    net::TcpListener,
    runtime::{self, Runtime},
    signal::unix,
    sync::Semaphore,
};

use crate::{
    cli::{Listen, PageKind},
    exporter::{Coding, Exporter, Wanted},
    web::{TlsListener, Web, authorize},
};

/// More connections than any setup has scrapers.
const LIMITS: Limits = Limits {
    connections: 256,
    alive: "/health",
};

/// How many requests may wait for the driver at a time; more wait. Each thread keeps the memory of a page.
const AT_A_TIME: usize = 4;

/// The header in which Prometheus says how many seconds it waits.
const SCRAPE_TIMEOUT: &str = "x-prometheus-scrape-timeout-seconds";

/// How long one waits who does not say it: Prometheus' default.
const SCRAPES_TAKE: Duration = Duration::from_secs(10);

/// What an answer needs besides, to be written and sent. Prometheus' blackbox_exporter takes off as much.
const FOR_THE_WAY: Duration = Duration::from_millis(500);

const INDEX: &str = "<!doctype html><title>blueproof-exporter</title><h1>blueproof-exporter</h1><ul>\
    <li><a href=/metrics>/metrics</a><li><a href=/metrics/native>/metrics/native</a>\
    <li><a href=/metrics/dcgm>/metrics/dcgm</a><li><a href=/health>/health</a><li><a href=/ready>/ready</a></ul>";

/// Answers until the process is asked to end.
pub(crate) fn serve(exporter: Exporter, listen: &Listen, web: Option<Web>) -> Result<(), Diagnostic> {
    let failed = |error: std::io::Error| {
        Diagnostic::error(Code::NotListening, format!("could not listen on {listen}"))
            .because(error.to_string())
            .hint("choose another address with `--listen`; dcgm-exporter has port 9400, node_exporter 9100")
    };
    let runtime = runtime().map_err(failed)?;
    let served = runtime.block_on(listen_on(exporter, listen, web.map(Arc::new)));
    // Nobody waits at the end for a driver that hangs.
    runtime.shutdown_background();
    served.map_err(failed)
}

/// Returns what requests are answered on. One thread more than there are turns waits for no driver: with it the web
/// configuration is read, for `/health` too.
fn runtime() -> std::io::Result<Runtime> {
    runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(AT_A_TIME + 1)
        .build()
}

async fn listen_on(exporter: Exporter, listen: &Listen, web: Option<Arc<Web>>) -> std::io::Result<()> {
    let listener = TcpListener::bind(&listen.addresses[..]).await?;
    let exporter = Arc::new(exporter);
    let ends = until_terminated(Arc::clone(&exporter))?;
    let tls = web.clone().filter(|web| web.speaks_tls());
    let scheme = if tls.is_some() { "https" } else { "http" };
    eprintln!("listening on {scheme}://{}/metrics", listener.local_addr()?);
    let app = app(exporter, web);
    match tls {
        Some(web) => serve_on(TlsListener::new(listener, LIMITS, web), app, ends).await,
        None => serve_on(listener, app, ends).await,
    }
    Ok(())
}

async fn serve_on(listener: impl Listener, app: Router, ends: impl Future<Output = ()>) {
    blueproof_http::serve(listener, LIMITS, |_| app.clone(), ends).await;
}

/// Returns when the process is asked to end. Meanwhile it does what else signals ask for: SIGHUP has it read its files and
/// open the driver anew, SIGUSR1 close the driver for a while.
fn until_terminated(exporter: Arc<Exporter>) -> std::io::Result<impl Future<Output = ()>> {
    let mut terminated = unix::signal(unix::SignalKind::terminate())?;
    let mut interrupted = unix::signal(unix::SignalKind::interrupt())?;
    let mut hung_up = unix::signal(unix::SignalKind::hangup())?;
    let mut released = unix::signal(unix::SignalKind::user_defined1())?;
    Ok(async move {
        loop {
            tokio::select! {
                _ = terminated.recv() => return,
                _ = interrupted.recv() => return,
                _ = hung_up.recv() => exporter.reload(),
                _ = released.recv() => exporter.release(),
            }
        }
    })
}

/// The exporter, and turns to ask it.
#[derive(Clone)]
struct Asked {
    exporter: Arc<Exporter>,
    turns: Turns,
}

impl Asked {
    /// Asks what may wait for a driver.
    async fn in_turn<T: Send + 'static>(
        self,
        ask: impl FnOnce(&Exporter) -> T + Send + 'static,
    ) -> Option<T> {
        let Self { exporter, turns } = self;
        turns.take(move || ask(&exporter)).await
    }
}

/// Turns to wait for a driver in a thread.
#[derive(Clone)]
struct Turns(Arc<Semaphore>);

impl Default for Turns {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_A_TIME)))
    }
}

impl Turns {
    /// Waits for a turn, which lasts as long as the thread does, though the client may be gone by then.
    async fn take<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let turn = self.0.acquire_owned().await.ok()?;
        let worked = tokio::task::spawn_blocking(move || {
            let worked = work();
            drop(turn);
            worked
        });
        worked.await.ok()
    }
}

fn app(exporter: Arc<Exporter>, web: Option<Arc<Web>>) -> Router {
    let app = Router::new()
        .route("/", get(|| async { Html(INDEX) }))
        .route("/metrics", get(usual))
        .route("/metrics/native", get(native))
        .route("/metrics/dcgm", get(dcgm))
        .route(LIMITS.alive, get(|| async { "alive\n" }))
        .route("/ready", get(ready))
        .with_state(Asked {
            exporter,
            turns: Turns::default(),
        });
    match web {
        Some(web) => app.layer(middleware::from_fn_with_state(web, authorize)),
        None => app,
    }
}

async fn usual(State(asked): State<Asked>, headers: HeaderMap) -> Response {
    let page = asked.exporter.page;
    answer(asked, page, &headers).await
}

async fn native(State(asked): State<Asked>, headers: HeaderMap) -> Response {
    answer(asked, PageKind::Native, &headers).await
}

async fn dcgm(State(asked): State<Asked>, headers: HeaderMap) -> Response {
    answer(asked, PageKind::Dcgm, &headers).await
}

async fn ready(State(asked): State<Asked>, headers: HeaderMap) -> Response {
    let within = deadline(&headers, asked.exporter.wait);
    match asked.in_turn(move |exporter| exporter.blind(within)).await {
        Some(None) => "devices are read\n".into_response(),
        Some(Some(why)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why:#}\n")).into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn answer(asked: Asked, page: PageKind, headers: &HeaderMap) -> Response {
    let format = match page {
        PageKind::Native => format(headers),
        // Its counters are not called as OpenMetrics wants it.
        PageKind::Dcgm => Format::Prometheus,
    };
    let coding = if takes(headers, header::ACCEPT_ENCODING, "gzip") {
        Coding::Gzip
    } else {
        Coding::Identity
    };
    let wanted = Wanted { page, format, coding };
    let within = deadline(headers, asked.exporter.wait);
    let asked_at = Instant::now();
    let answered = asked.in_turn(move |exporter| {
        // Where many ask, some wait until a thread is free.
        let left = within.saturating_sub(asked_at.elapsed());
        let answer = exporter.answer(wanted, left);
        exporter.tell_once(&answer);
        answer.page
    });
    let Some(body) = answered.await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut response = Response::builder()
        .header(header::CONTENT_TYPE, format.content_type())
        .header(header::VARY, "accept, accept-encoding");
    if coding == Coding::Gzip {
        response = response.header(header::CONTENT_ENCODING, "gzip");
    }
    response.body(Body::from(body)).expect("these headers are text")
}

/// Returns how long an answer may take: less than the scraper waits, and no longer than is allowed.
fn deadline(headers: &HeaderMap, at_most: Option<Duration>) -> Duration {
    let told = headers
        .get(SCRAPE_TIMEOUT)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or(SCRAPES_TAKE);
    let left = told.saturating_sub(FOR_THE_WAY).max(told / 2);
    at_most.map_or(left, |at_most| at_most.min(left))
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_is_left_for_the_web_configuration_though_all_others_wait_for_a_driver() {
        let runtime = runtime().expect("a runtime");
        let (answers, driver) = mpsc::channel::<()>();
        let driver = Arc::new(std::sync::Mutex::new(driver));
        let turns = Turns::default();
        let read = runtime.block_on(async {
            for _ in 0..AT_A_TIME * 2 {
                let driver = Arc::clone(&driver);
                let hangs = move || {
                    driver
                        .lock()
                        .map(|driver| driver.recv().is_ok())
                        .unwrap_or_default()
                };
                let scrape = tokio::spawn(turns.clone().take(hangs));
                drop(scrape);
                tokio::task::yield_now().await;
            }
            let read = tokio::task::spawn_blocking(|| "it is read");
            tokio::time::timeout(Duration::from_mins(1), read).await
        });
        drop(answers);
        assert!(matches!(read, Ok(Ok("it is read"))), "{read:?}");
    }

    #[test]
    fn the_deadline_follows_the_scraper_and_is_never_later_than_is_allowed() {
        let seconds = Duration::from_secs_f64;
        for (told, allowed, expected) in [
            (None, None, 9.5),
            (Some("10"), None, 9.5),
            (Some("60.000000"), None, 59.5),
            (Some("0.6"), None, 0.3),
            (Some("10"), Some(0.04), 0.04),
            (Some("2"), Some(60.0), 1.5),
            (Some("soon"), None, 9.5),
            (Some("-1"), None, 9.5),
            (Some("NaN"), None, 9.5),
            (Some("1e300"), None, 9.5),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(told) = told {
                headers.insert(SCRAPE_TIMEOUT, told.parse().expect("it is text"));
            }
            let deadline = deadline(&headers, allowed.map(seconds));
            assert_eq!(deadline, seconds(expected), "{told:?} {allowed:?}");
        }
    }
}
