//! Connections, each with its limits, so that nobody who is slow or silent keeps others out.
//!
//! A request has to be there whole, and an answer to be taken, in a bounded time; a connection on which nothing is asked is
//! closed after the same time. There are only so many: a new one takes the place of the oldest that waits for its client.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::Future,
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    extract::Request,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    serve::Listener,
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rustix::process::{Resource, getrlimit};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{Semaphore, watch},
    task::{AbortHandle, JoinSet},
    time::{Sleep, sleep, timeout},
};

/// How long a request may take to be there whole, an answer to be taken by the client, and a connection to rest between
/// two requests: as long as in dcgm-exporter.
const CLIENT_WITHIN: Duration = Duration::from_secs(10);

/// How long answers that are being made are waited for at the end. Kubernetes gives thirty seconds, and people less.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// One of so many is kept for who asks whether the program is alive: that depends on no scraper.
const ONE_IN: usize = 8;

/// What is left of file descriptors for everything else.
const OTHER_FILES: u64 = 64;

/// The most that a request's head may have.
const HEAD_AT_MOST: usize = 64 << 10;

/// What a server bounds.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many connections there may be at a time, where there are file descriptors enough.
    pub connections: usize,
    /// The path at which it is asked whether the program is alive, which is answered however many ask for something else.
    pub alive: &'static str,
}

impl Limits {
    /// Returns how many connections there may be: twice as many need file descriptors, such as those whose handshake is not
    /// over.
    pub fn at_most(self) -> usize {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let half = files.saturating_sub(OTHER_FILES) / 2;
        let half = usize::try_from(half).unwrap_or(self.connections);
        half.clamp(2, self.connections.max(2))
    }
}

/// Answers those who connect until it is told to end, and then for a few seconds those who have asked already. `app` makes
/// what answers on a connection.
pub async fn serve<L: Listener>(
    mut listener: L,
    limits: Limits,
    app: impl Fn(&L::Io) -> Router,
    ends: impl Future<Output = ()>,
) {
    let mut ends = pin!(ends);
    let mut connections = Connections::new(limits);
    loop {
        tokio::select! {
            (stream, _) = listener.accept() => {
                let app = app(&stream);
                connections.open(stream, app);
            }
            () = &mut ends => break,
        }
    }
    drop(listener);
    connections.end().await;
}

/// The connections that are open.
struct Connections {
    at_most: usize,
    alive: &'static str,
    open: VecDeque<Connection>,
    tasks: JoinSet<()>,
    /// One for each request that may be answered at a time, but for those at `alive`.
    turns: Arc<Semaphore>,
    /// Tells all of them to end.
    ends: watch::Sender<bool>,
}

/// One that is open.
struct Connection {
    task: AbortHandle,
    /// Whether an answer is being made.
    is_answered: Arc<AtomicBool>,
}

impl Connections {
    fn new(limits: Limits) -> Self {
        let at_most = limits.at_most();
        Self {
            at_most,
            alive: limits.alive,
            open: VecDeque::new(),
            tasks: JoinSet::new(),
            turns: Arc::new(Semaphore::new(at_most - at_most.div_ceil(ONE_IN))),
            ends: watch::Sender::new(false),
        }
    }

    fn open(&mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, app: Router) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|connection| !connection.task.is_finished());
        if self.open.len() >= self.at_most && !self.close_oldest() {
            // All are being answered, which those that are kept free of scrapes are at once; this one may come again.
            return;
        }
        let is_answered = Arc::new(AtomicBool::new(false));
        let answers = Answers {
            app: TowerToHyperService::new(app),
            alive: self.alive,
            turns: Arc::clone(&self.turns),
            is_answered: Arc::clone(&is_answered),
        };
        let answering = answer(stream, answers, self.ends.subscribe());
        let task = self.tasks.spawn(answering);
        self.open.push_back(Connection { task, is_answered });
    }

    /// Closes the oldest one that waits for its client. Returns whether there was any.
    fn close_oldest(&mut self) -> bool {
        let mut open = self.open.iter();
        let waiting = open.position(|connection| !connection.is_answered.load(Ordering::SeqCst));
        let Some(closed) = waiting.and_then(|place| self.open.remove(place)) else {
            return false;
        };
        closed.task.abort();
        true
    }

    /// Ends all of them, those that will not end by themselves too.
    async fn end(mut self) {
        self.ends.send_replace(true);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // Those that are left are dropped with this.
        let _ = timeout(ENDS_WITHIN, ended).await;
    }
}

/// Answers what is asked on one connection.
#[derive(Clone)]
struct Answers {
    app: TowerToHyperService<Router>,
    alive: &'static str,
    turns: Arc<Semaphore>,
    is_answered: Arc<AtomicBool>,
}

impl Answers {
    async fn to(self, request: Request<Incoming>) -> Result<Response, Infallible> {
        self.is_answered.store(true, Ordering::SeqCst);
        let turn = self.turns.try_acquire();
        let answer = if turn.is_ok() || request.uri().path() == self.alive {
            hyper::service::Service::call(&self.app, request).await
        } else {
            Ok((StatusCode::SERVICE_UNAVAILABLE, "too many ask at a time\n").into_response())
        };
        self.is_answered.store(false, Ordering::SeqCst);
        answer
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    answers: Answers,
    mut ends: watch::Receiver<bool>,
) {
    let service = service_fn(move |request| answers.clone().to(request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CLIENT_WITHIN)
        .max_buf_size(HEAD_AT_MOST)
        .serve_connection(TokioIo::new(Taken::within(CLIENT_WITHIN, stream)), service);
    let mut connection = pin!(connection);
    // That a client goes away, or is too slow, is nothing to tell of.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = told(&mut ends) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Returns when all are to end.
async fn told(ends: &mut watch::Receiver<bool>) {
    // Whoever tells it is there until then.
    let _ = ends.wait_for(|ends| *ends).await.is_ok();
}

/// A stream whose other side has to take something again and again.
struct Taken<S> {
    stream: S,
    within: Duration,
    /// Runs while nothing is taken.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S> Taken<S> {
    fn within(within: Duration, stream: S) -> Self {
        Self {
            stream,
            within,
            waits: None,
        }
    }

    /// Fails what cannot go on for too long.
    fn limited<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = None;
            return written;
        }
        let within = self.within;
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(within)));
        match waits.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Taken<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Taken<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.limited(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.limited(context, shut)
    }
}
