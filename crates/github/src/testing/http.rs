//! The fake behind HTTP, as GitHub's REST API has it: paths, pages, refusals.
//!
//! What it answers is what the port answers, put into GitHub's JSON. It stands on wiremock, so that each request that came can be
//! looked at afterwards.

mod actions;
mod checks;
mod content;

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use jiff::SignedDuration;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate, matchers::any};

use super::{FakeGitHub, hook::of_sending, payloads, registration};
use crate::{
    api::{
        ApiError, AppHook as _, CheckRunId, GitHub as _, HookCursor, HookDelivery, HookDeliveryId,
        Permission, RepositoryId, RunnerScope,
    },
    payload::{Comment, CommitSha},
};

/// The token that the fake takes.
pub const FAKE_TOKEN: &str = "ghs_fakeTokenOfTheFakeGitHub";

/// How many entries a page has at most, whatever is asked for: so that pages are met without a hundred of anything.
const PAGE: usize = 2;

/// The fake behind HTTP on loopback, until it is dropped.
pub struct HttpFake {
    server: MockServer,
    answers: Arc<Mutex<Vec<FakeAnswer>>>,
}

/// What the fake answered with, where that was JSON and no refusal.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeAnswer {
    /// The method of the request.
    pub method: String,
    /// The path of the request, without its query.
    pub path: String,
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Value,
}

struct Face {
    github: Arc<FakeGitHub>,
    answers: Arc<Mutex<Vec<FakeAnswer>>>,
}

/// An answer: its status and its body.
type Answer = (u16, Body);

enum Body {
    Json(Value),
    /// A list, of which a page is told.
    List(Option<&'static str>, Vec<Value>),
    Text(String),
    /// A page of a list, and from where the next one is asked for.
    Page(Vec<Value>, Option<String>),
}

impl HttpFake {
    /// Has a fake answer on a free port of loopback.
    pub async fn start(github: Arc<FakeGitHub>) -> Self {
        let server = MockServer::start().await;
        let answers = Arc::default();
        let face = Face {
            github,
            answers: Arc::clone(&answers),
        };
        Mock::given(any()).respond_with(face).mount(&server).await;
        Self { server, answers }
    }

    /// Returns the address of the API.
    pub fn address(&self) -> String {
        self.server.uri()
    }

    /// Returns every request that came, the first one first.
    pub async fn requests(&self) -> Vec<Request> {
        self.server.received_requests().await.unwrap_or_default()
    }

    /// Returns what was answered in JSON, the first answer first, without refusals.
    pub fn answers(&self) -> Vec<FakeAnswer> {
        self.answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Face {
    /// Answers in JSON, and notes it.
    fn json(&self, request: &Request, status: u16, body: Value) -> ResponseTemplate {
        let template = ResponseTemplate::new(status).set_body_json(&body);
        let answer = FakeAnswer {
            method: request.method.to_string(),
            path: request.url.path().to_owned(),
            status,
            body,
        };
        self.answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(answer);
        template
    }

    fn template(&self, request: &Request, status: u16, body: Body) -> ResponseTemplate {
        let (key, entries) = match body {
            Body::Json(body) => return self.json(request, status, body),
            Body::Text(text) => return ResponseTemplate::new(status).set_body_string(text),
            Body::Page(entries, next) => {
                let template = self.json(request, status, Value::Array(entries));
                return match next {
                    Some(next) => template.insert_header("link", format!("<{next}>; rel=\"next\"")),
                    None => template,
                };
            }
            Body::List(key, entries) => (key, entries),
        };
        let total = entries.len();
        let (told, next) = page(request, entries);
        let body = match key {
            Some(key) => json!({ "total_count": total, key: told }),
            None => Value::Array(told),
        };
        let template = self.json(request, status, body);
        match next {
            Some(next) => template.insert_header("link", format!("<{next}>; rel=\"next\"")),
            None => template,
        }
    }
}

impl Respond for Face {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        if let Some(answer) = registration::page(&self.github, request) {
            return answer;
        }
        if let Some(code) = code(request) {
            return match self.github.convert(code) {
                Some(app) => self.json(request, 201, app),
                None => refusal(404, "Not Found"),
            };
        }
        match as_app(&self.github, request) {
            Some(Ok((status, body))) => return self.template(request, status, body),
            Some(Err(refusal)) => return refusal,
            None => {}
        }
        let authorised = request
            .headers
            .get("authorization")
            .and_then(|value| value.to_str().ok());
        if authorised != Some(&format!("Bearer {FAKE_TOKEN}")) {
            return refusal(401, "Bad credentials");
        }
        if self.github.lock().is_down {
            return refusal(503, "Service unavailable");
        }
        if let Some(elsewhere) = moved(&self.github, request) {
            return ResponseTemplate::new(301).insert_header("location", elsewhere);
        }
        let answer = answer(&self.github, request).now_or_never();
        let answer = answer.expect("the fake waits for nothing");
        match answer {
            Ok(Some((status, body))) => self.template(request, status, body),
            Ok(None) => refusal(404, "Not Found"),
            Err(error) => refusal(error.status.unwrap_or(502), "Not Found"),
        }
    }
}

/// Returns the code for which somebody asks for the App that they registered.
fn code(request: &Request) -> Option<&str> {
    let path = request.url.path().strip_prefix("/app-manifests/")?;
    path.strip_suffix("/conversions")
        .filter(|_| request.method.as_str() == "POST")
}

/// Returns the answer to an App that asks as itself, where that is asked. Its signature is not checked.
fn as_app(github: &FakeGitHub, request: &Request) -> Option<Result<Answer, ResponseTemplate>> {
    let path = request.url.path().strip_prefix("/app/")?;
    let authorised = request
        .headers
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    let is_signed = authorised
        .and_then(|value| value.strip_prefix("Bearer "))
        .is_some_and(|token| token.split('.').count() == 3);
    if !is_signed {
        return Some(Err(refusal(401, "A JSON web token could not be decoded")));
    }
    let path: Vec<&str> = path.split('/').collect();
    let answer = match (request.method.as_str(), path.as_slice()) {
        ("POST", ["installations", _, "access_tokens"]) => Ok(installation_token(github)),
        ("GET", ["installations"]) => Ok((200, Body::List(None, github.installations()))),
        ("GET", ["hook", "deliveries"]) => hook_deliveries(github, request),
        ("POST", ["hook", "deliveries", id, "attempts"]) => {
            let asked = github.redeliver(HookDeliveryId(parsed(id))).now_or_never();
            let asked = asked.expect("the fake waits for nothing");
            asked.map(|()| (202, Body::Json(json!({}))))
        }
        _ => return None,
    };
    Some(answer.map_err(|error| refusal(error.status.unwrap_or(502), "Not Found")))
}

fn hook_deliveries(github: &FakeGitHub, request: &Request) -> Result<Answer, ApiError> {
    let from = query(request, "cursor").map(HookCursor);
    let page = github.hook_deliveries(from).now_or_never();
    let page = page.expect("the fake waits for nothing")?;
    let state = github.lock();
    let event = |told: &HookDelivery| {
        let sending = state.sent.iter().find(|one| one.told.id == told.id);
        sending.map_or_else(String::new, |sending| sending.delivery.event.to_string())
    };
    let told = page.deliveries.iter().map(|told| of_sending(told, &event(told)));
    let next = page.next.map(|HookCursor(next)| {
        let mut address = request.url.clone();
        address
            .query_pairs_mut()
            .clear()
            .append_pair("per_page", "100")
            .append_pair("cursor", &next);
        address.to_string()
    });
    Ok((200, Body::Page(told.collect(), next)))
}

fn installation_token(github: &FakeGitHub) -> Answer {
    let in_an_hour = github.lock().now + SignedDuration::from_hours(1);
    let body = json!({ "token": FAKE_TOKEN, "expires_at": in_an_hour.to_string() });
    (201, Body::Json(body))
}

/// Returns where something is whose repository has another name by now.
fn moved(github: &FakeGitHub, request: &Request) -> Option<String> {
    let path = request.url.path().strip_prefix("/repos/")?;
    let mut parts = path.splitn(3, '/');
    let former = format!("{}/{}", parts.next()?, parts.next()?);
    let name = github.name_after(&former)?;
    let mut elsewhere = request.url.clone();
    let rest = parts.next().map_or_else(String::new, |rest| format!("/{rest}"));
    elsewhere.set_path(&format!("/repos/{name}{rest}"));
    Some(elsewhere.to_string())
}

fn refusal(status: u16, message: &str) -> ResponseTemplate {
    ResponseTemplate::new(status)
        .insert_header("x-github-request-id", "FAKE:1")
        .set_body_json(json!({ "message": message }))
}

/// Returns the page of a list that is asked for, and the address of the next one.
fn page(request: &Request, entries: Vec<Value>) -> (Vec<Value>, Option<String>) {
    let asked = request.url.query_pairs().find(|(name, _)| name == "page");
    let page: usize = asked.and_then(|(_, page)| page.parse().ok()).unwrap_or(1);
    let has_more = page * PAGE < entries.len();
    let told = entries
        .into_iter()
        .skip(page.saturating_sub(1) * PAGE)
        .take(PAGE)
        .collect();
    let next = has_more.then(|| {
        let mut next = request.url.clone();
        let others = request.url.query_pairs().filter(|(name, _)| name != "page");
        let others: Vec<(String, String)> = others.map(|(name, value)| (name.into(), value.into())).collect();
        next.query_pairs_mut()
            .clear()
            .extend_pairs(others)
            .append_pair("page", &(page + 1).to_string());
        next.to_string()
    });
    (told, next)
}

/// Returns what the fake answers; `None` where it has no such path.
async fn answer(github: &FakeGitHub, request: &Request) -> Result<Option<Answer>, ApiError> {
    let path = request.url.path().trim_start_matches('/');
    let decoded = path
        .split('/')
        .map(|part| percent_decode_str(part).decode_utf8_lossy());
    let decoded: Vec<_> = decoded.collect();
    let parts: Vec<&str> = decoded.iter().map(|part| &**part).collect();
    let method = request.method.as_str();
    match parts.as_slice() {
        ["users", login] => account(github, login).await,
        ["orgs", organization, "actions", "runner-groups"] => actions::groups(github, organization).await,
        ["orgs", organization, "actions", "runners", rest @ ..] => {
            let scope = RunnerScope::Organization((*organization).to_owned());
            actions::runners(github, &scope, method, rest, request).await
        }
        ["repos", owner, name, "actions", "runners", rest @ ..] => {
            let scope = RunnerScope::Repository(format!("{owner}/{name}"));
            actions::runners(github, &scope, method, rest, request).await
        }
        ["repos", owner, name, "actions", rest @ ..] => match github.id_of(&format!("{owner}/{name}")) {
            Some(id) => actions::of_repository(github, id, method, rest).await,
            None => Ok(None),
        },
        ["repos", owner, name, rest @ ..] => match github.id_of(&format!("{owner}/{name}")) {
            Some(id) if method == "GET" => read(github, id, rest, request).await,
            Some(id) => write(github, id, method, rest, request).await,
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

async fn account(github: &FakeGitHub, login: &str) -> Result<Option<Answer>, ApiError> {
    let account = github.account(login).await?;
    Ok(account.map(|account| (200, Body::Json(payloads::of_account(&account)))))
}

async fn read(
    github: &FakeGitHub,
    id: RepositoryId,
    rest: &[&str],
    request: &Request,
) -> Result<Option<Answer>, ApiError> {
    let body = match rest {
        [] => Body::Json(payloads::of_repository(&github.repository(id).await?)),
        ["pulls"] => {
            let open = github.open_pull_requests(id).await?;
            Body::List(None, open.iter().map(payloads::of_pull_request).collect())
        }
        ["pulls", number] => Body::Json(payloads::of_pull_request(
            &github.pull_request(id, parsed(number)).await?,
        )),
        ["pulls", number, "files"] => {
            let changed = github.changed_paths(id, parsed(number)).await?;
            let files = changed
                .paths
                .iter()
                .map(|path| json!({ "filename": path, "status": "modified" }));
            Body::List(None, files.collect())
        }
        ["branches", name] => content::branch(github, id, name).await?,
        ["rules", "branches", name] => content::rules(github, id, name).await?,
        ["contents", path @ ..] => match github.file(id, &path.join("/"), &commit(request, "ref")).await? {
            Some(text) => Body::Text(text),
            None => return Ok(None),
        },
        ["git", "trees", sha] => content::tree(github, id, sha).await?,
        ["git", "matching-refs", "heads", "gh-readonly-queue", ..] => content::groups(github, id).await?,
        ["compare", both] => content::comparison(github, id, both).await?,
        ["collaborators"] => {
            let all = github.collaborators(id).await?;
            let told = all.iter().map(|one| {
                let mut told = payloads::of_account(&one.account);
                told["permissions"] = permissions(one.permission);
                told
            });
            Body::List(None, told.collect())
        }
        ["issues", number, "comments"] => {
            let comments = github.comments(id, parsed(number)).await?;
            Body::List(None, comments.iter().map(of_comment).collect())
        }
        ["issues", "comments"] => comments_since(github, id, request).await?,
        ["commits", sha, "check-runs"] => {
            let runs = github
                .check_runs(id, &sha.parse().unwrap_or_else(|_| no_commit()))
                .await?;
            let stored = github.stored_states(id);
            let told = runs
                .iter()
                .map(|run| checks::told(run, stored.get(&run.id).copied(), github.app()));
            Body::List(Some("check_runs"), told.collect())
        }
        _ => return Ok(None),
    };
    Ok(Some((200, body)))
}

async fn comments_since(github: &FakeGitHub, id: RepositoryId, request: &Request) -> Result<Body, ApiError> {
    let since = query(request, "since").and_then(|since| since.parse().ok());
    let comments = github.comments_since(id, since.unwrap_or_default()).await?;
    let told = comments.iter().map(|one| {
        let mut told = of_comment(&one.comment);
        told["issue_url"] = json!(format!("https://api.github.com/repos/x/y/issues/{}", one.number));
        told
    });
    Ok(Body::List(None, told.collect()))
}

async fn write(
    github: &FakeGitHub,
    id: RepositoryId,
    method: &str,
    rest: &[&str],
    request: &Request,
) -> Result<Option<Answer>, ApiError> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    match (method, rest) {
        ("POST", ["issues", number, "comments"]) => {
            let comment = github.create_comment(id, parsed(number), &text("body")).await?;
            Ok(Some((201, Body::Json(of_comment(&comment)))))
        }
        ("PATCH", ["issues", "comments", comment]) => {
            github.update_comment(id, parsed(comment), &text("body")).await?;
            Ok(Some((200, Body::Json(json!({})))))
        }
        ("POST", ["issues", "comments", comment, "reactions"]) => {
            let Some(reaction) = checks::reaction(&text("content")) else {
                return Ok(None);
            };
            github.react(id, parsed(comment), reaction).await?;
            Ok(Some((201, Body::Json(json!({})))))
        }
        ("POST", ["check-runs"]) => {
            let head = text("head_sha").parse().unwrap_or_else(|_| no_commit());
            let made = github.create_check_run(id, &head, &checks::of(&body)).await?;
            Ok(Some((201, Body::Json(json!({ "id": made.0 })))))
        }
        ("POST", ["statuses", head]) => {
            let head = head.parse().unwrap_or_else(|_| no_commit());
            let (context, state) = (text("context"), text("state"));
            github.set_status(id, &head, &context, &state, &text("description"))?;
            Ok(Some((
                201,
                Body::Json(json!({ "context": context, "state": state })),
            )))
        }
        ("PATCH", ["check-runs", number]) => {
            let number = CheckRunId(parsed(number));
            github
                .update_check_run(id, &no_commit(), number, &checks::of(&body))
                .await?;
            Ok(Some((200, Body::Json(json!({ "id": number.0 })))))
        }
        _ => Ok(None),
    }
}

fn of_comment(comment: &Comment) -> Value {
    json!({
        "id": comment.id,
        "body": comment.body,
        "user": comment.user.as_ref().map(payloads::of_account),
        "performed_via_github_app": comment.app.map(|app| json!({ "id": app.id })),
        "created_at": comment.created_at,
        "updated_at": comment.updated_at,
    })
}

fn permissions(permission: Permission) -> Value {
    json!({
        "pull": permission >= Permission::Read,
        "triage": permission >= Permission::Triage,
        "push": permission >= Permission::Write,
        "maintain": permission >= Permission::Maintain,
        "admin": permission >= Permission::Admin,
    })
}

fn query(request: &Request, name: &str) -> Option<String> {
    let mut pairs = request.url.query_pairs();
    pairs
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

fn commit(request: &Request, name: &str) -> CommitSha {
    let named = query(request, name).and_then(|sha| sha.parse().ok());
    named.unwrap_or_else(no_commit)
}

/// A commit that no repository has.
fn no_commit() -> CommitSha {
    "0".repeat(40).parse().expect("40 digits")
}

/// Returns a number of a path; what is none is that of nothing.
fn parsed(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}
