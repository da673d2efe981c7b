//! One request, and what its answer says of another try.

use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use jiff::{SignedDuration, Timestamp};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Serialize, de::DeserializeOwned};

use super::{ApiToken, RestGitHub, transport::Transport};
use crate::api::{ApiError, ApiRetry};

/// The most bytes of an answer: a page of a hundred pull requests has some two million.
const LARGEST: usize = 32 << 20;
/// The most pages of a list: ten thousand entries.
const MOST_PAGES: usize = 100;
/// How often a request is made elsewhere: a repository that was renamed has one other name.
const MOST_REDIRECTS: usize = 2;
/// How long GitHub asks to be left alone where it does not say how long.
const SECONDARY_LIMIT: SignedDuration = SignedDuration::from_mins(1);
/// The version of the API that the requests are written for.
const API_VERSION: &str = "2022-11-28";

/// What of a part of a path is written as it is.
const PART: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A request to be made.
#[derive(Debug)]
pub(super) struct Call {
    method: Method,
    /// Below the API's address.
    path: String,
    accept: &'static str,
    body: Option<Vec<u8>>,
}

/// What came of a request.
enum Reply {
    Answer(Answer),
    /// It is to be made with this path.
    MovedTo(String),
}

/// An answer that says yes.
pub(super) struct Answer {
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    /// Reads what it says.
    pub(super) fn json<T: DeserializeOwned>(&self, doing: &str) -> Result<T, ApiError> {
        serde_json::from_slice(&self.body).map_err(|source| ApiError {
            source: Some(Box::new(source)),
            ..ApiError::never(format!("{doing}: understand GitHub's answer"))
        })
    }
}

impl Call {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            accept: "application/vnd.github+json",
            body: None,
        }
    }

    pub(super) fn post(path: impl Into<String>, body: &impl Serialize) -> Self {
        Self {
            method: Method::POST,
            body: Some(serde_json::to_vec(body).expect("what is sent is plain data")),
            ..Self::get(path)
        }
    }

    /// Makes a request that says all in its path.
    pub(super) fn post_nothing(path: impl Into<String>) -> Self {
        Self {
            method: Method::POST,
            ..Self::get(path)
        }
    }

    pub(super) fn patch(path: impl Into<String>, body: &impl Serialize) -> Self {
        Self {
            method: Method::PATCH,
            ..Self::post(path, body)
        }
    }

    pub(super) fn delete(path: impl Into<String>) -> Self {
        Self {
            method: Method::DELETE,
            ..Self::get(path)
        }
    }

    /// Asks for a file as it is.
    pub(super) fn raw(self) -> Self {
        Self {
            accept: "application/vnd.github.raw+json",
            ..self
        }
    }
}

impl RestGitHub {
    /// Makes a request and reads its answer.
    pub(super) async fn get<T: DeserializeOwned>(&self, call: &Call, doing: &str) -> Result<T, ApiError> {
        self.send(call, doing).await?.json(doing)
    }

    /// Reads every page of a list, of which `entries` takes the entries out of an answer.
    pub(super) async fn pages<T, P: DeserializeOwned>(
        &self,
        first: Call,
        doing: &str,
        entries: impl Fn(P) -> Vec<T>,
    ) -> Result<Vec<T>, ApiError> {
        let mut all = Vec::new();
        let mut call = first;
        for _ in 0..MOST_PAGES {
            let answer = self.send(&call, doing).await?;
            let page: P = answer.json(doing)?;
            all.extend(entries(page));
            match next_page(&answer.headers) {
                Some(next) => call = Call::get(next),
                None => return Ok(all),
            }
        }
        Err(ApiError::never(format!(
            "{doing}: read more than {MOST_PAGES} pages"
        )))
    }

    /// Makes a request and returns its body as text; `None` where GitHub has no such thing.
    pub(super) async fn text(&self, call: &Call, doing: &str) -> Result<Option<String>, ApiError> {
        let answer = match self.send(call, doing).await {
            Err(error) if error.is_not_found() => return Ok(None),
            other => other?,
        };
        let text = String::from_utf8(answer.body);
        let text = text.map_err(|source| ApiError {
            source: Some(Box::new(source)),
            ..ApiError::never(format!("{doing}: read it as UTF-8"))
        })?;
        Ok(Some(text))
    }

    /// Makes a request.
    pub(super) async fn send(&self, call: &Call, doing: &str) -> Result<Answer, ApiError> {
        let token = self.tokens.token().await?;
        self.transport.send(call, Some(&token), doing).await
    }
}

impl Transport {
    /// Makes a request. Where what it is about has another place now, as when a repository was renamed, it is made there, at the
    /// same server.
    pub(super) async fn send(
        &self,
        call: &Call,
        token: Option<&ApiToken>,
        doing: &str,
    ) -> Result<Answer, ApiError> {
        let mut path = call.path.clone();
        for _ in 0..=MOST_REDIRECTS {
            match self.send_once(call, token, &path, doing).await? {
                Reply::Answer(answer) => return Ok(answer),
                Reply::MovedTo(elsewhere) => path = elsewhere,
            }
        }
        Err(ApiError::never(format!(
            "{doing}: follow more than {MOST_REDIRECTS} redirections"
        )))
    }

    async fn send_once(
        &self,
        call: &Call,
        token: Option<&ApiToken>,
        path: &str,
        doing: &str,
    ) -> Result<Reply, ApiError> {
        let mut request = Request::builder().method(&call.method).uri(path);
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.expose()));
        }
        let request = request
            .header(header::ACCEPT, call.accept)
            .header("X-GitHub-Api-Version", API_VERSION)
            .header(
                header::USER_AGENT,
                concat!("blueproof/", env!("CARGO_PKG_VERSION")),
            )
            .header(header::CONTENT_TYPE, "application/json")
            .body(call.body.clone().unwrap_or_default());
        let request = request.map_err(|source| ApiError {
            source: Some(Box::new(source)),
            ..ApiError::never(doing)
        })?;
        let response = self.client.execute(request).await;
        let (parts, body) = response
            .map_err(|error| not_reached(doing, Box::new(error)))?
            .into_parts();
        let body = Limited::new(body, LARGEST).collect().await;
        let body = body
            .map_err(|error| not_reached(doing, error))?
            .to_bytes()
            .to_vec();
        if parts.status.is_success() {
            return Ok(Reply::Answer(Answer {
                headers: parts.headers,
                body,
            }));
        }
        match parts
            .headers
            .get(header::LOCATION)
            .filter(|_| parts.status.is_redirection())
        {
            Some(place) => place
                .to_str()
                .ok()
                .and_then(path_of)
                .map(Reply::MovedTo)
                .ok_or_else(|| ApiError::never(format!("{doing}: follow GitHub's redirection"))),
            None => Err(refused(doing, parts.status, &parts.headers, &body)),
        }
    }
}

fn not_reached(doing: &str, source: Box<dyn std::error::Error + Send + Sync>) -> ApiError {
    ApiError {
        source: Some(source),
        ..ApiError::later(doing)
    }
}

/// Returns the path of a repository of a name.
pub(super) fn repository_path(full_name: &str) -> Result<String, ApiError> {
    let parts = full_name.split_once('/').filter(|(owner, name)| {
        let is_part = |part: &str| !part.is_empty() && !part.contains('/') && part != "." && part != "..";
        is_part(owner) && is_part(name)
    });
    let (owner, name) =
        parts.ok_or_else(|| ApiError::never(format!("take `{full_name}` for OWNER/NAME of a repository")))?;
    Ok(format!("/repos/{}/{}", part(owner), part(name)))
}

/// Returns a part of a path, with whatever would end it or begin another one written otherwise.
pub(super) fn part(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

/// Returns a path of a file, each part of it as [`part`].
pub(super) fn file_path(path: &str) -> String {
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Returns what the address of the next page says of a parameter, where there is one.
pub(super) fn query_of_next_page(answer: &Answer, name: &str) -> Option<String> {
    let next = next_page(&answer.headers)?;
    let (_, query) = next.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(known, _)| *known == name)?;
    let value = percent_decode_str(value).decode_utf8().ok()?;
    Some(value.into_owned())
}

/// Returns the path of the next page, where there is one. Where it names another server, whoever answers there is not asked.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let links = headers.get(header::LINK)?.to_str().ok()?;
    let next = links.split(',').find(|link| link.contains("rel=\"next\""))?;
    path_of(next.split_once('<')?.1.split_once('>')?.0)
}

/// Returns the path of an address with its query: which server it is on is known.
fn path_of(address: &str) -> Option<String> {
    let after_scheme = address.split_once("://")?.1;
    let path = after_scheme.find('/')?;
    Some(after_scheme[path..].to_owned())
}

fn refused(doing: &str, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ApiError {
    let said = serde_json::from_slice::<Said>(body).ok();
    let retry = retry(status, headers, said.as_ref(), Timestamp::now());
    let request_id = headers.get("x-github-request-id").and_then(|id| id.to_str().ok());
    ApiError {
        doing: doing.into(),
        retry,
        status: Some(status.as_u16()),
        request_id: request_id.map(str::to_owned),
        source: said.map(|said| Box::new(said) as _),
    }
}

/// What GitHub says with a refusal.
#[derive(Debug, serde::Deserialize, thiserror::Error)]
#[error("{message}")]
struct Said {
    message: String,
}

fn retry(status: StatusCode, headers: &HeaderMap, said: Option<&Said>, now: Timestamp) -> ApiRetry {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
    let is_limit = status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::FORBIDDEN;
    if is_limit {
        let after = |span: SignedDuration| now.checked_add(span).map_or(ApiRetry::Later, ApiRetry::After);
        if let Some(seconds) = number("retry-after") {
            return after(SignedDuration::from_secs(seconds.clamp(1, 3600)));
        }
        if number("x-ratelimit-remaining") == Some(0) {
            let reset = number("x-ratelimit-reset").and_then(|reset| Timestamp::from_second(reset).ok());
            let latest = now + SignedDuration::from_hours(1);
            return reset.map_or(after(SECONDARY_LIMIT), |reset| {
                ApiRetry::After(reset.clamp(now, latest))
            });
        }
        let is_secondary = said.is_some_and(|said| said.message.contains("secondary rate limit"));
        if is_secondary || status == StatusCode::TOO_MANY_REQUESTS {
            return after(SECONDARY_LIMIT);
        }
    }
    match status.is_server_error()
        || status == StatusCode::UNAUTHORIZED
        || status == StatusCode::REQUEST_TIMEOUT
    {
        true => ApiRetry::Later,
        false => ApiRetry::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn a_rate_limit_says_until_when_it_lasts_and_never_longer_than_an_hour() {
        let now = Timestamp::from_second(1_000_000).expect("a time");
        let at = |seconds: i64| ApiRetry::After(now + SignedDuration::from_secs(seconds));
        let secondary = Said {
            message: "You have exceeded a secondary rate limit. Please wait.".into(),
        };
        let cases = [
            (403, headers(&[("retry-after", "7")]), None, at(7)),
            (429, headers(&[("retry-after", "999999999999")]), None, at(3600)),
            (
                403,
                headers(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1000060")]),
                None,
                at(60),
            ),
            (
                403,
                headers(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "9000000")]),
                None,
                at(3600),
            ),
            (
                403,
                headers(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "5")]),
                None,
                at(0),
            ),
            (403, headers(&[("x-ratelimit-remaining", "0")]), None, at(60)),
            (403, headers(&[]), Some(&secondary), at(60)),
            (429, headers(&[]), None, at(60)),
            (
                403,
                headers(&[("x-ratelimit-remaining", "17")]),
                None,
                ApiRetry::Never,
            ),
            (404, headers(&[]), None, ApiRetry::Never),
            (422, headers(&[]), None, ApiRetry::Never),
            (401, headers(&[]), None, ApiRetry::Later),
            (502, headers(&[]), None, ApiRetry::Later),
        ];
        for (status, headers, said, expected) in cases {
            let status = StatusCode::from_u16(status).expect("a status");
            assert_eq!(
                retry(status, &headers, said, now),
                expected,
                "{status} {headers:?}"
            );
        }
    }

    #[test]
    fn the_next_page_is_asked_of_the_same_server() {
        let links = |text: &str| next_page(&headers(&[("link", text)]));
        let both = "<https://api.github.com/repositories/7/pulls?page=2>; rel=\"next\", <https://api.github.com/x>; rel=\"last\"";
        assert_eq!(links(both).as_deref(), Some("/repositories/7/pulls?page=2"));
        assert_eq!(
            links("<https://evil.example/x?page=2>; rel=\"next\"").as_deref(),
            Some("/x?page=2")
        );
        assert_eq!(links("<https://api.github.com/x>; rel=\"last\""), None);
        assert_eq!(links("nonsense; rel=\"next\""), None);
        assert_eq!(next_page(&HeaderMap::new()), None);
    }

    #[test]
    fn nothing_in_a_name_leaves_its_place_in_the_path() {
        assert_eq!(
            repository_path("kubeflow/trainer").expect("a name"),
            "/repos/kubeflow/trainer"
        );
        for name in ["", "a", "a/", "/b", "a/b/c", "a/..", "../b"] {
            assert!(repository_path(name).is_err(), "{name}");
        }
        assert_eq!(repository_path("a?x/b#y").expect("a name"), "/repos/a%3Fx/b%23y");
        assert_eq!(file_path("docs/ä b?.md"), "docs/%C3%A4%20b%3F.md");
    }
}
