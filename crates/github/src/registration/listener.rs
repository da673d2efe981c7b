//! The page that somebody opens in a browser of this machine, and where the browser comes back to.
//!
//! Other users of this machine reach the port, and so do pages that the browser has open. So the page has a name that only whoever
//! started this was told, the answer must have the state that stands on it, and nothing is answered under another host's name.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    extract::{Query, Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use serde::Deserialize;
use subtle::ConstantTimeEq as _;
use tokio::{
    net::TcpListener,
    sync::{Notify, oneshot},
    time::timeout,
};
use uuid::Uuid;

use super::{AppManifest, AppOwner};

/// How long the browser has to read the last page.
const LAST_PAGE_WITHIN: Duration = Duration::from_secs(5);

/// The most characters of a code.
const CODE_AT_MOST: usize = 128;

/// What GitHub gives for an App that was just registered. It is good for an hour, and once; it is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct RegistrationCode(String);

/// Waits on loopback for a browser that comes from GitHub.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    secret: Secret,
    html: String,
    /// GitHub's address.
    web: String,
}

/// What only whoever was told, and their browser, know.
struct Secret {
    page: String,
    state: String,
}

struct Page {
    address: SocketAddr,
    secret: Secret,
    html: String,
    web: String,
    code: Mutex<Option<oneshot::Sender<RegistrationCode>>>,
}

/// What GitHub sends the browser back with.
#[derive(Deserialize)]
struct Back {
    #[serde(default)]
    code: String,
    #[serde(default)]
    state: String,
}

impl RegistrationCode {
    /// Takes a code as GitHub gave it; `None` where it is none.
    pub fn new(code: impl Into<String>) -> Option<Self> {
        let code = code.into();
        let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_code = (1..=CODE_AT_MOST).contains(&code.len()) && code.bytes().all(is_usual);
        is_code.then_some(Self(code))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for RegistrationCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RegistrationCode(..)")
    }
}

impl Listener {
    /// Listens on a free port of loopback. Nobody is answered yet.
    ///
    /// # Errors
    ///
    /// No port is free.
    pub async fn bind(manifest: &AppManifest, owner: &AppOwner, web: &str) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let secret = Secret {
            page: random(),
            state: random(),
        };
        let back = format!("http://{address}/{}/registered", secret.page);
        let action = format!("{}?state={}", owner.page(web), secret.state);
        let manifest_json = manifest.to_json(Some(&back)).to_string();
        Ok(Self {
            listener,
            address,
            html: page(&manifest.name, &action, &manifest_json),
            secret,
            web: web.to_owned(),
        })
    }

    /// Returns the address that is to be opened in a browser.
    pub fn address(&self) -> String {
        format!("http://{}/{}", self.address, self.secret.page)
    }

    /// Answers until a browser comes back from GitHub, and returns the code that it brings.
    ///
    /// # Errors
    ///
    /// The port was taken away.
    pub async fn code(self) -> std::io::Result<RegistrationCode> {
        let (sender, mut code) = oneshot::channel();
        let path = format!("/{}", self.secret.page);
        let page = Arc::new(Page {
            address: self.address,
            secret: self.secret,
            html: self.html,
            web: self.web,
            code: Mutex::new(Some(sender)),
        });
        let router = Router::new()
            .route(&path, get(show))
            .route(&format!("{path}/registered"), get(registered))
            .layer(middleware::from_fn_with_state(page.clone(), only_here))
            .with_state(page);
        let end = Arc::new(Notify::new());
        let ends = end.clone();
        let serving =
            axum::serve(self.listener, router).with_graceful_shutdown(async move { ends.notified().await });
        let mut serving = tokio::spawn(async move { serving.await });
        let gone = || std::io::Error::other("nobody answers at the page any more");
        let code = tokio::select! {
            code = &mut code => code.map_err(|_| gone())?,
            _ = &mut serving => return Err(gone()),
        };
        end.notify_one();
        // A browser that does not read keeps nobody waiting.
        if timeout(LAST_PAGE_WITHIN, &mut serving).await.is_err() {
            serving.abort();
        }
        Ok(code)
    }
}

/// Returns what nobody guesses: 122 random bits.
fn random() -> String {
    Uuid::new_v4().simple().to_string()
}

async fn show(State(page): State<Arc<Page>>) -> Html<String> {
    Html(page.html.clone())
}

async fn registered(State(page): State<Arc<Page>>, Query(back): Query<Back>) -> (StatusCode, String) {
    let is_ours: bool = back.state.as_bytes().ct_eq(page.secret.state.as_bytes()).into();
    if !is_ours {
        let why = "This is not the answer to what was asked here. Open the page once more.\n";
        return (StatusCode::FORBIDDEN, why.into());
    }
    let Some(code) = RegistrationCode::new(back.code) else {
        let why = "GitHub sent no code. Open the page once more.\n";
        return (StatusCode::BAD_REQUEST, why.into());
    };
    let sender = page.code.lock().unwrap_or_else(PoisonError::into_inner).take();
    match sender.map(|sender| sender.send(code)) {
        Some(Ok(())) => (
            StatusCode::OK,
            "The App is registered. Go on where you started this.\n".into(),
        ),
        Some(Err(_)) | None => (StatusCode::CONFLICT, "A code came before.\n".into()),
    }
}

/// Refuses whoever came under another name, as a page does that had the name of its own server lead here.
async fn only_here(State(page): State<Arc<Page>>, request: Request, next: Next) -> Response {
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    if host != Some(&page.address.to_string()) {
        return StatusCode::MISDIRECTED_REQUEST.into_response();
    }
    let mut response = next.run(request).await;
    let policy = format!(
        "default-src 'none'; form-action {}; frame-ancestors 'none'; base-uri 'none'",
        page.web
    );
    let headers = [
        (header::CONTENT_SECURITY_POLICY, HeaderValue::try_from(policy)),
        (header::CACHE_CONTROL, HeaderValue::try_from("no-store")),
        (header::REFERRER_POLICY, HeaderValue::try_from("no-referrer")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::try_from("nosniff")),
    ];
    let headers = headers
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.ok()?)));
    response.headers_mut().extend(headers);
    response
}

fn page(name: &str, action: &str, manifest: &str) -> String {
    let (name, action, manifest) = (escaped(name), escaped(action), escaped(manifest));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Register {name}</title>\n\
         <h1>Register the GitHub App \u{201c}{name}\u{201d}</h1>\n\
         <p>GitHub shows the name once more, and registers the App when you agree. Its private key comes back to this machine.</p>\n\
         <form action=\"{action}\" method=\"post\">\n<input type=\"hidden\" name=\"manifest\" value=\"{manifest}\">\n\
         <button>Go on to GitHub</button>\n</form>\n</html>\n"
    )
}

/// Returns a text as it stands in HTML, between quotes as well.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
