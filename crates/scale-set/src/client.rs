//! The service's operations, each a method.

use std::{fmt, sync::Arc};

use reqwest::{Method, StatusCode, header::HeaderValue};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::{
    call::{Answer, Call, Caller, Expected},
    clock::Clock,
    connection::{Admin, Connection},
    credentials::Credentials,
    error::{Cause, Error, RefusalKind},
    retry::{Idempotency, RetryPolicy},
    scope::ConfigUrl,
    secret::Secret,
    transport::{HttpTransport, Transport, TransportError},
    types::{
        AcquirableJob, JitConfig, List, NewScaleSet, Runner, RunnerGroup, RunnerGroupId, RunnerId,
        RunnerRequestId, ScaleSet, ScaleSetId, ScaleSetPatch, SessionGrant,
    },
};

const SCALE_SETS: &str = "_apis/runtime/runnerscalesets";
const RUNNERS: &str = "_apis/distributedtask/pools/0/agents";

/// Which program calls. GitHub sees it as the User-Agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SystemInfo {
    /// The program's name.
    pub system: String,
    /// Its version.
    pub version: String,
    /// The commit that it was built from.
    pub commit_sha: String,
    /// Which part of it calls.
    pub subsystem: String,
}

/// A client of the service. Clones share its connections and its token.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    agent: HeaderValue,
}

struct Shared {
    connection: Connection,
    caller: Caller,
    system: SystemInfo,
    clock: Clock,
}

/// How a client is made.
pub struct ClientBuilder {
    config: ConfigUrl,
    credentials: Credentials,
    system: SystemInfo,
    policy: RetryPolicy,
    clock: Clock,
}

/// What came of the removal of a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// There is no such runner now; whether there was one is not told.
    Gone,
    /// It has a job, and stays.
    JobStillRunning,
}

impl ClientBuilder {
    /// Says which program calls.
    #[must_use]
    pub fn system(mut self, system: SystemInfo) -> Self {
        self.system = system;
        self
    }

    /// Says how calls are repeated.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Says what tells the time.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Makes the client, which speaks HTTP. Nothing is asked yet.
    pub fn build(self) -> Result<Client, TransportError> {
        let transport = Arc::new(HttpTransport::new()?);
        Ok(self.build_with(transport))
    }

    /// Makes the client, which speaks by a transport of the caller's.
    pub fn build_with(self, transport: Arc<dyn Transport>) -> Client {
        let agent = agent(&self.system, None);
        let shared = Shared {
            connection: Connection::new(self.config, self.credentials, self.clock),
            caller: Caller {
                transport,
                policy: self.policy,
            },
            system: self.system,
            clock: self.clock,
        };
        Client {
            shared: Arc::new(shared),
            agent,
        }
    }
}

impl Client {
    /// Begins a client for what `config` names.
    pub fn builder(config: ConfigUrl, credentials: Credentials) -> ClientBuilder {
        ClientBuilder {
            config,
            credentials,
            system: SystemInfo::default(),
            policy: RetryPolicy::default(),
            clock: Clock::system(),
        }
    }

    /// Returns the same client, which names a scale set to GitHub.
    #[must_use]
    pub fn of_scale_set(&self, id: ScaleSetId) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            agent: agent(&self.shared.system, Some(id)),
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        self.shared.clock
    }

    pub(crate) fn policy(&self) -> &RetryPolicy {
        &self.shared.caller.policy
    }

    /// Finds a runner group by its name. The default group need not be looked up: it is [`DEFAULT_GROUP`](crate::DEFAULT_GROUP).
    pub async fn runner_group(&self, name: &str) -> Result<Option<RunnerGroup>, Error> {
        let doing = format!("find runner group `{name}`");
        let request = Ask::new(doing, Method::GET, "_apis/runtime/runnergroups/").query("groupName", name);
        one_of(&self.ask(&request).await?)
    }

    /// Finds a scale set by its name in a group.
    pub async fn find_scale_set(&self, group: RunnerGroupId, name: &str) -> Result<Option<ScaleSet>, Error> {
        let group = group.to_string();
        let request = Ask::new(format!("find scale set `{name}`"), Method::GET, SCALE_SETS)
            .query("runnerGroupId", &group)
            .query("name", name);
        one_of(&self.ask(&request).await?)
    }

    /// Lists all scale sets.
    pub async fn scale_sets(&self) -> Result<Vec<ScaleSet>, Error> {
        let answer = self
            .ask(&Ask::new("list scale sets", Method::GET, SCALE_SETS))
            .await?;
        Ok(answer.json::<List<_>>()?.value)
    }

    /// Returns a scale set.
    pub async fn scale_set(&self, id: ScaleSetId) -> Result<ScaleSet, Error> {
        let request = Ask::new(
            format!("get scale set {id}"),
            Method::GET,
            format!("{SCALE_SETS}/{id}"),
        );
        self.ask(&request).await?.json()
    }

    /// Makes a scale set. One of that name in the same group is refused.
    pub async fn create_scale_set(&self, new: &NewScaleSet) -> Result<ScaleSet, Error> {
        let doing = format!("create scale set `{}`", new.name);
        self.ask(&Ask::new(doing, Method::POST, SCALE_SETS).body(new))
            .await?
            .json()
    }

    /// Changes a scale set. Read back what is in force: not every server takes every change.
    pub async fn update_scale_set(&self, id: ScaleSetId, patch: &ScaleSetPatch) -> Result<ScaleSet, Error> {
        let path = format!("{SCALE_SETS}/{id}");
        let request = Ask::new(format!("update scale set {id}"), Method::PATCH, path).body(patch);
        self.ask(&request).await?.json()
    }

    /// Deletes a scale set. The service refuses while jobs are assigned to its runners.
    pub async fn delete_scale_set(&self, id: ScaleSetId) -> Result<(), Error> {
        let path = format!("{SCALE_SETS}/{id}");
        let request = Ask::new(format!("delete scale set {id}"), Method::DELETE, path);
        self.ask(&request.expecting(NO_CONTENT)).await.map(drop)
    }

    /// Lists jobs that are offered to a scale set and that nobody has acquired. Not every server has this.
    pub async fn acquirable_jobs(&self, id: ScaleSetId) -> Result<Vec<AcquirableJob>, Error> {
        let path = format!("{SCALE_SETS}/{id}/acquirablejobs");
        let request = Ask::new(
            format!("list the acquirable jobs of scale set {id}"),
            Method::GET,
            path,
        );
        let expected = Expected::Either(StatusCode::OK, StatusCode::NO_CONTENT);
        let answer = self.ask(&request.expecting(expected)).await?;
        if answer.status() == StatusCode::NO_CONTENT {
            return Ok(Vec::new());
        }
        Ok(answer.json::<List<_>>()?.value)
    }

    /// Registers a runner and returns what to start it with. It is for one use: a runner that is started again needs another one.
    pub async fn jit_config(
        &self,
        id: ScaleSetId,
        runner: &str,
        work_folder: &str,
    ) -> Result<JitConfig, Error> {
        let path = format!("{SCALE_SETS}/{id}/generatejitconfig");
        let doing = format!("register runner `{runner}` of scale set {id}");
        let request =
            Ask::new(doing, Method::POST, path).body(&json!({"name": runner, "workFolder": work_folder}));
        self.ask(&request).await?.json()
    }

    /// The same, where a runner of that name may be left from before: one of this scale set is removed first, and one of another
    /// is [`Cause::NameTaken`]. So a call whose answer was lost can be made again.
    pub async fn replace_runner(
        &self,
        id: ScaleSetId,
        runner: &str,
        work_folder: &str,
    ) -> Result<JitConfig, Error> {
        let error = match self.jit_config(id, runner, work_folder).await {
            Err(error) if error.refusal_kind() == Some(RefusalKind::RunnerExists) => error,
            other => return other,
        };
        let Some(left) = self.find_runner(runner).await? else {
            return self.jit_config(id, runner, work_folder).await;
        };
        if left.runner_scale_set_id != id {
            let cause = Cause::NameTaken { runner: left.id.0 };
            let doing = format!("register runner `{runner}` of scale set {id}");
            return Err(Error::new(doing, error.correlation().clone(), cause));
        }
        match self.remove_runner(left.id).await? {
            Removal::Gone => self.jit_config(id, runner, work_folder).await,
            Removal::JobStillRunning => Err(error),
        }
    }

    /// Returns a runner; `None` if there is none of that number.
    pub async fn runner(&self, id: RunnerId) -> Result<Option<Runner>, Error> {
        let request = Ask::new(format!("get runner {id}"), Method::GET, format!("{RUNNERS}/{id}"));
        match self.ask(&request).await {
            Ok(answer) => answer.json().map(Some),
            Err(error) => match error.refusal_kind() {
                Some(RefusalKind::RunnerNotFound | RefusalKind::NotFound) => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Finds a runner by its name.
    pub async fn find_runner(&self, name: &str) -> Result<Option<Runner>, Error> {
        let request =
            Ask::new(format!("find runner `{name}`"), Method::GET, RUNNERS).query("agentName", name);
        one_of(&self.ask(&request).await?)
    }

    /// Lists all runners, of all scale sets.
    pub async fn runners(&self) -> Result<Vec<Runner>, Error> {
        let answer = self.ask(&Ask::new("list runners", Method::GET, RUNNERS)).await?;
        Ok(answer.json::<List<_>>()?.value)
    }

    /// Removes a runner. One that is not there is a success; one that has a job stays. The call is costly for the service: do not use it
    /// to ask.
    pub async fn remove_runner(&self, id: RunnerId) -> Result<Removal, Error> {
        let request = Ask::new(
            format!("remove runner {id}"),
            Method::DELETE,
            format!("{RUNNERS}/{id}"),
        );
        match self.ask(&request.expecting(NO_CONTENT)).await {
            Ok(_) => Ok(Removal::Gone),
            Err(error) => match error.refusal_kind() {
                Some(RefusalKind::JobStillRunning) => Ok(Removal::JobStillRunning),
                Some(RefusalKind::RunnerNotFound) => Ok(Removal::Gone),
                _ => Err(error),
            },
        }
    }

    pub(crate) async fn open_session(&self, id: ScaleSetId, owner: &str) -> Result<SessionGrant, Error> {
        let path = format!("{SCALE_SETS}/{id}/sessions");
        let doing = format!("open a session of scale set {id}");
        let request = Ask::new(doing, Method::POST, path).body(&json!({"ownerName": owner}));
        self.ask(&request).await?.json()
    }

    pub(crate) async fn refresh_session(&self, id: ScaleSetId, session: Uuid) -> Result<SessionGrant, Error> {
        let path = format!("{SCALE_SETS}/{id}/sessions/{session}");
        let request = Ask::new(
            format!("refresh the session of scale set {id}"),
            Method::PATCH,
            path,
        );
        self.ask(&request).await?.json()
    }

    pub(crate) async fn close_session(&self, id: ScaleSetId, session: Uuid) -> Result<(), Error> {
        let path = format!("{SCALE_SETS}/{id}/sessions/{session}");
        let request = Ask::new(
            format!("close the session of scale set {id}"),
            Method::DELETE,
            path,
        );
        self.ask(&request.expecting(NO_CONTENT)).await.map(drop)
    }

    /// Acquires jobs. A second time grants none of those that were granted, and does no harm.
    pub(crate) async fn acquire_jobs(
        &self,
        id: ScaleSetId,
        queue_token: &Secret,
        jobs: &[RunnerRequestId],
    ) -> Result<Vec<RunnerRequestId>, Error> {
        let admin = self.admin().await?;
        let url = admin.path(&format!("{SCALE_SETS}/{id}/acquirejobs"), &[]);
        let call = Call::new(format!("acquire jobs for scale set {id}"), Method::POST, url)
            .class(Idempotency::Repeatable)
            .json(&jobs)
            .agent(&self.agent)
            .authorize("Bearer", queue_token)?;
        Ok(self.shared.caller.send(&call).await?.json::<List<_>>()?.value)
    }

    /// Sends a call to a session's queue, whose URL and token are its own.
    pub(crate) async fn ask_queue(&self, call: Call, token: &Secret) -> Result<Answer, Error> {
        let call = call.agent(&self.agent).authorize("Bearer", token)?;
        self.shared.caller.send(&call).await
    }

    async fn admin(&self) -> Result<Arc<Admin>, Error> {
        self.shared
            .connection
            .admin(&self.shared.caller, &self.agent)
            .await
    }

    /// Asks the service. A token that is refused before its time is replaced, once.
    async fn ask(&self, request: &Ask<'_>) -> Result<Answer, Error> {
        let admin = self.admin().await?;
        match self.ask_with(request, &admin).await {
            Err(error) if error.refusal_kind() == Some(RefusalKind::Unauthorized) => {
                self.shared.connection.forget(&admin).await;
                let admin = self.admin().await?;
                self.ask_with(request, &admin).await
            }
            other => other,
        }
    }

    async fn ask_with(&self, request: &Ask<'_>, admin: &Admin) -> Result<Answer, Error> {
        let url = admin.path(&request.path, &request.query);
        let mut call = Call::new(&request.doing, request.method.clone(), url).expecting(request.expected);
        if let Some(body) = &request.body {
            call = call.json(body);
        }
        let call = call.agent(&self.agent).authorize("Bearer", &admin.token)?;
        self.shared.caller.send(&call).await
    }
}

/// A request to the service, before it is known where that is.
struct Ask<'a> {
    doing: String,
    method: Method,
    path: String,
    query: Vec<(&'static str, &'a str)>,
    body: Option<serde_json::Value>,
    expected: Expected,
}

const NO_CONTENT: Expected = Expected::Status(StatusCode::NO_CONTENT);

impl<'a> Ask<'a> {
    fn new(doing: impl Into<String>, method: Method, path: impl Into<String>) -> Self {
        Self {
            doing: doing.into(),
            method,
            path: path.into(),
            query: Vec::new(),
            body: None,
            expected: Expected::Status(StatusCode::OK),
        }
    }

    fn query(mut self, name: &'static str, value: &'a str) -> Self {
        self.query.push((name, value));
        self
    }

    fn body(mut self, body: &impl Serialize) -> Self {
        self.body = Some(serde_json::to_value(body).expect("plain data is JSON"));
        self
    }

    fn expecting(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }
}

/// Reads a list that has one or none.
fn one_of<T: serde::de::DeserializeOwned>(answer: &Answer) -> Result<Option<T>, Error> {
    let List { value, .. } = answer.json::<List<T>>()?;
    let count = value.len();
    if count > 1 {
        return Err(answer.fails(Cause::Ambiguous { count }));
    }
    Ok(value.into_iter().next())
}

/// Returns the User-Agent: the service reads it as an object of JSON.
fn agent(system: &SystemInfo, scale_set: Option<ScaleSetId>) -> HeaderValue {
    let agent = json!({
        "system": system.system,
        "version": system.version,
        "commit_sha": system.commit_sha,
        "scale_set_id": scale_set.unwrap_or_default(),
        "subsystem": system.subsystem,
        "build_version": env!("CARGO_PKG_VERSION"),
        "build_commit_sha": system.commit_sha,
        "kind": "scaleset",
    });
    let plain = agent
        .to_string()
        .replace(|c: char| !(' '..='~').contains(&c), "?");
    HeaderValue::from_str(&plain).expect("visible ASCII is a header")
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_agent_is_an_object_that_says_who_calls() {
        let system = SystemInfo {
            system: "blüproof".into(),
            subsystem: "listener".into(),
            ..SystemInfo::default()
        };
        let header = agent(&system, Some(ScaleSetId(7)));
        let read: serde_json::Value = serde_json::from_str(header.to_str().expect("ASCII")).expect("JSON");
        assert_eq!(read["system"], "bl?proof");
        assert_eq!(
            (&read["scale_set_id"], &read["kind"]),
            (&json!(7), &json!("scaleset"))
        );
        assert_eq!(read.as_object().map(serde_json::Map::len), Some(8));
    }
}
