//! A store, and what its attempts leave, that a scheduler's API serves (feature `client`).
//!
//! Every request may be repeated: it reads, or carries a key. So a server that was there and is not for a moment, as while it is
//! upgraded, is asked again.

mod output;

use std::{
    fmt,
    path::PathBuf,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use blueproof_core::{
    domain::{RequestKey, RunId, RunRequest},
    policy::Policy,
    ports::{
        Command, DeliveryClient, LoggedFact, Seq, StoreClient, StoreError, StoredCommand, StoredDelivery,
        Version,
    },
    view::RunView,
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::objects::Objects;
use jiff::Timestamp;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio_rustls::rustls::crypto::ring;

use crate::{
    output_problem::OUTPUT_PROBLEM,
    wire::{COMMANDS_A_PAGE, Changed, DELIVERIES_A_PAGE, FACTS_A_PAGE, RUNS_A_PAGE, SNAPSHOT_AT},
};

/// How long it may take to reach the server.
const REACHED_WITHIN: Duration = Duration::from_secs(10);

/// How long a part of an answer may take: longer than a server waits for a change.
const ANSWERED_WITHIN: Duration = Duration::from_secs(40);

/// The most bytes of an answer: a snapshot of a store with a million facts has less.
const ANSWER_AT_MOST: usize = 256 << 20;

/// For how long a server that was there before is asked again.
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// How long to wait before it is asked again.
const PAUSE: Duration = Duration::from_millis(250);

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// On a unix socket of this machine, `unix:PATH`.
    Unix(PathBuf),
    /// At a URL, `https://HOST[:PORT]` or `http://HOST[:PORT]`.
    Url(Url),
}

/// A text that is no address of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no address of a server: they look like unix:/run/blueproof/scheduler.sock and https://blueproof.example.org"
)]
pub struct ServerAddressError(String);

/// The store behind a scheduler's API, and what its attempts leave. Clones ask the same server.
#[derive(Clone)]
pub struct ServerClient {
    http: reqwest::Client,
    base: Url,
    address: ServerAddress,
    token: Option<String>,
    /// Whether it has answered before: one that never did is not waited for.
    has_answered: Arc<AtomicBool>,
}

/// What came of a request.
enum Answer {
    Is(Response),
    Refused {
        diagnostic: Box<Diagnostic>,
        /// The word for what there is a problem with, where that is an attempt's output.
        output: Option<String>,
    },
}

impl FromStr for ServerAddress {
    type Err = ServerAddressError;

    fn from_str(text: &str) -> Result<Self, ServerAddressError> {
        let wrong = || ServerAddressError(text.into());
        if let Some(path) = text.strip_prefix("unix:") {
            let is_path = !path.is_empty();
            return is_path
                .then(|| ServerAddress::Unix(path.into()))
                .ok_or_else(wrong);
        }
        let mut url: Url = text.parse().map_err(|_| wrong())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() || url.query().is_some() {
            return Err(wrong());
        }
        // So that what is asked for is below it.
        if !url.path().ends_with('/') {
            let below = format!("{}/", url.path());
            url.set_path(&below);
        }
        Ok(ServerAddress::Url(url))
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            ServerAddress::Url(url) => write!(f, "{}", url.as_str().trim_end_matches('/')),
        }
    }
}

/// What a list is sent as.
#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

impl ServerClient {
    /// Returns the store behind a server. Nothing is asked yet.
    pub fn new(address: ServerAddress, token: Option<String>) -> Result<Self, Diagnostic> {
        // Where the program has chosen one already, that stays.
        let _ = ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(REACHED_WITHIN)
            .read_timeout(ANSWERED_WITHIN)
            .redirect(reqwest::redirect::Policy::none());
        let base = match &address {
            ServerAddress::Unix(path) => {
                builder = builder.unix_socket(path.clone());
                "http://localhost/".parse().expect("a URL")
            }
            ServerAddress::Url(url) => url.clone(),
        };
        let http = builder.build().map_err(|error| not_reached(&address, &error))?;
        Ok(Self {
            http,
            base,
            address,
            token,
            has_answered: Arc::default(),
        })
    }

    /// Returns where the server is.
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Returns what the scheduler there goes by.
    pub async fn policy(&self) -> Result<Policy, StoreError> {
        self.there(self.get(&["api", "v1", "policy"])).await
    }

    /// Returns the queues that hold there.
    pub async fn queues(&self) -> Result<Objects, StoreError> {
        self.there(self.get(&["api", "v1", "queues"])).await
    }

    fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(path);
        }
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    fn get(&self, path: &[&str]) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    /// Sends a request, again where a server that was there before is not there for a moment.
    async fn ask(&self, request: RequestBuilder) -> Answer {
        let began = Instant::now();
        loop {
            let attempt = request.try_clone().expect("no body is a stream");
            let diagnostic = match attempt.send().await {
                Ok(response) if response.status().is_success() => {
                    self.has_answered.store(true, Ordering::Relaxed);
                    return Answer::Is(response);
                }
                Ok(response) => {
                    let is_away = matches!(
                        response.status(),
                        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
                    );
                    let output = response.headers().get(OUTPUT_PROBLEM);
                    let output = output.and_then(|word| Some(word.to_str().ok()?.to_owned()));
                    let diagnostic = Box::new(self.refusal(response).await);
                    if !is_away {
                        return Answer::Refused { diagnostic, output };
                    }
                    diagnostic
                }
                Err(error) => Box::new(not_reached(&self.address, &error)),
            };
            if !self.has_answered.load(Ordering::Relaxed) || began.elapsed() > BACK_WITHIN {
                let output = None;
                return Answer::Refused { diagnostic, output };
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Sends a request. `None` is that there is no such thing, which a server of ours says in its own words.
    async fn send(&self, request: RequestBuilder) -> Result<Option<Response>, StoreError> {
        match self.ask(request).await {
            Answer::Is(response) => Ok(Some(response)),
            Answer::Refused { diagnostic, .. } if diagnostic.code == Code::NotFound => Ok(None),
            Answer::Refused { diagnostic, .. } => Err(StoreError { diagnostic }),
        }
    }

    /// Returns what a server says why it does not do what it was asked.
    async fn refusal(&self, response: Response) -> Diagnostic {
        let status = response.status();
        match self.body(response).await {
            Ok(problem) => problem,
            Err(_) => {
                let message = format!(
                    "the server at {} does not answer as blueproof-scheduler does",
                    self.address
                );
                Diagnostic::error(Code::ServerNotReached, message)
                    .because(format!("its answer is {status}"))
                    .hint("see that the address is that of blueproof-scheduler, or of a proxy before it")
            }
        }
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<Option<T>, StoreError> {
        match self.send(request).await? {
            Some(response) => Ok(Some(self.body(response).await?)),
            None => Ok(None),
        }
    }

    async fn body<T: DeserializeOwned>(&self, response: Response) -> Result<T, StoreError> {
        let bytes = self.bytes(response).await?;
        let read = serde_json::from_slice(&bytes);
        Ok(read.map_err(|error| not_reached(&self.address, &error))?)
    }

    /// Reads an answer to its end. One that does not come to one is no server of ours.
    async fn bytes(&self, mut response: Response) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        loop {
            let chunk = response.chunk().await;
            let Some(chunk) = chunk.map_err(|error| not_reached(&self.address, &error))? else {
                return Ok(bytes);
            };
            bytes.extend_from_slice(&chunk);
            if bytes.len() > ANSWER_AT_MOST {
                let message = format!("the answer of the server at {} does not end", self.address);
                let endless = Diagnostic::error(Code::ServerNotReached, message)
                    .because(format!("it has more than {ANSWER_AT_MOST} bytes"))
                    .hint("see that the address is that of blueproof-scheduler");
                return Err(endless.into());
            }
        }
    }

    /// Reads what is always there.
    async fn there<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, StoreError> {
        let read = self.read(request).await?;
        let missing = || {
            let message = format!("the server at {} lacks a part of the API", self.address);
            Diagnostic::error(Code::ServerNotReached, message).hint("it may be of an older version")
        };
        Ok(read.ok_or_else(missing)?)
    }
}

fn not_reached(address: &ServerAddress, error: &dyn std::error::Error) -> Diagnostic {
    Diagnostic::error(
        Code::ServerNotReached,
        format!("the server at {address} was not reached"),
    )
    .caused_by(error)
    .hint("see that blueproof-scheduler runs there, and listens at this address")
}

#[async_trait]
impl StoreClient for ServerClient {
    async fn facts(&self, after: Seq, limit: usize) -> Result<Vec<LoggedFact>, StoreError> {
        let mut facts: Vec<LoggedFact> = Vec::new();
        while facts.len() < limit {
            let after = facts.last().map_or(after, |fact| fact.seq);
            let limit = (limit - facts.len()).min(FACTS_A_PAGE as usize);
            let query = [("after", after.0), ("limit", limit as u64)];
            let page: List<_> = self
                .there(self.get(&["api", "v1", "facts"]).query(&query))
                .await?;
            let is_last = page.items.len() < limit;
            facts.extend(page.items);
            if is_last {
                break;
            }
        }
        Ok(facts)
    }

    async fn snapshot(&self, version: u32) -> Result<Option<(Seq, Vec<u8>)>, StoreError> {
        let request = self
            .get(&["api", "v1", "snapshot"])
            .query(&[("version", version)]);
        let Some(response) = self.send(request).await? else {
            return Ok(None);
        };
        let at = response
            .headers()
            .get(SNAPSHOT_AT)
            .and_then(|at| at.to_str().ok()?.parse().ok());
        let bytes = self.bytes(response).await?;
        Ok(at.map(|at| (Seq(at), bytes)))
    }

    /// The server says itself when a command came.
    async fn submit(&self, _: Timestamp, command: Command) -> Result<(), StoreError> {
        let request = self
            .request(Method::POST, &["api", "v1", "commands"])
            .json(&command);
        self.there::<StoredCommand>(request).await.map(drop)
    }

    async fn command(&self, key: &RequestKey) -> Result<Option<StoredCommand>, StoreError> {
        self.read(self.get(&["api", "v1", "commands", &key.0])).await
    }

    async fn all_commands(&self, limit: usize) -> Result<Vec<StoredCommand>, StoreError> {
        let query = [("limit", limit.clamp(1, COMMANDS_A_PAGE as usize))];
        let page: List<_> = self
            .there(self.get(&["api", "v1", "commands"]).query(&query))
            .await?;
        Ok(page.items)
    }

    /// A server that cannot be asked says so at the next read; here its store just seems to have changed.
    async fn changed(&self, since: Option<Version>) -> Version {
        loop {
            let since_query = since.map(|Version(since)| ("since", since));
            let request = self.get(&["api", "v1", "changes"]).query(since_query.as_slice());
            match self.there::<Changed>(request).await {
                Ok(Changed { version }) if since == Some(Version(version)) => {}
                Ok(Changed { version }) => return Version(version),
                Err(_) => return Version(since.map_or(0, |Version(since)| since.wrapping_add(1))),
            }
        }
    }

    async fn request(&self, run: RunId) -> Result<Option<RunRequest>, StoreError> {
        self.read(self.get(&["api", "v1", "runs", &run.to_string(), "request"]))
            .await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunView>, StoreError> {
        self.read(self.get(&["api", "v1", "runs", &run.to_string()]))
            .await
    }

    async fn run_of(&self, key: &RequestKey) -> Result<Option<RunView>, StoreError> {
        self.read(self.get(&["api", "v1", "requests", &key.0, "run"]))
            .await
    }

    async fn runs_before(&self, before: Option<RunId>, limit: usize) -> Result<Vec<RunView>, StoreError> {
        #[derive(Serialize)]
        struct Page {
            before: Option<RunId>,
            limit: usize,
        }
        let mut runs: Vec<RunView> = Vec::new();
        while runs.len() < limit {
            let before = runs.last().map(|run| run.id).or(before);
            let limit = (limit - runs.len()).min(RUNS_A_PAGE as usize);
            let query = Page { before, limit };
            let page: List<_> = self.there(self.get(&["api", "v1", "runs"]).query(&query)).await?;
            let is_last = page.items.len() < limit;
            runs.extend(page.items);
            if is_last {
                break;
            }
        }
        Ok(runs)
    }
}

#[async_trait]
impl DeliveryClient for ServerClient {
    async fn deliveries(&self, limit: usize) -> Result<Vec<StoredDelivery>, StoreError> {
        let query = [("limit", limit.clamp(1, DELIVERIES_A_PAGE as usize))];
        let page: List<_> = self
            .there(self.get(&["api", "v1", "deliveries"]).query(&query))
            .await?;
        Ok(page.items)
    }

    async fn delivery(&self, id: &str) -> Result<Option<(StoredDelivery, Vec<u8>)>, StoreError> {
        let Some(stored) = self.read(self.get(&["api", "v1", "deliveries", id])).await? else {
            return Ok(None);
        };
        let payload = self.get(&["api", "v1", "deliveries", id, "payload"]);
        match self.send(payload).await? {
            Some(response) => Ok(Some((stored, self.bytes(response).await?))),
            // It was removed meanwhile.
            None => Ok(None),
        }
    }

    async fn replay_delivery(&self, id: &str) -> Result<bool, StoreError> {
        let request = self.request(Method::POST, &["api", "v1", "deliveries", id, "replay"]);
        let replayed: Option<StoredDelivery> = self.read(request).await?;
        Ok(replayed.is_some())
    }
}

impl fmt::Debug for ServerClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerClient")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
