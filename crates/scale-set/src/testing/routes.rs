//! Which request means what, and who may make it.

use jiff::Timestamp;
use reqwest::{
    Method, StatusCode,
    header::{HeaderValue, RETRY_AFTER},
};
use serde_json::json;

use super::{
    faults::Fault,
    model::Model,
    reply::{Asked, Reply, answer, empty, refuse, text},
};
use crate::{
    transport::{Request, Response},
    types::{NewScaleSet, RunnerId, ScaleSet, ScaleSetId, ScaleSetPatch},
};

impl Model {
    /// Returns whether a path is one of the service's, or of the way to it.
    pub fn handles(path: &str) -> bool {
        let is_service = path.contains("/_apis/") || path.contains("/queue/");
        is_service
            || path.ends_with("/access_tokens")
            || path.ends_with("/registration-token")
            || path.ends_with("/actions/runner-registration")
    }

    /// Answers a request that came at `since`; it is asked again for one that is held.
    pub fn respond(&mut self, now: Timestamp, since: Timestamp, request: &Request) -> Reply {
        if self.take(Fault::ServerError) {
            return Reply::Answer(text(StatusCode::BAD_GATEWAY, "upstream is away"));
        }
        if self.take(Fault::TooManyRequests) {
            let mut response = text(StatusCode::TOO_MANY_REQUESTS, "slow down");
            response
                .headers
                .insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return Reply::Answer(response);
        }
        let reply = self.route(now, since, &Asked::of(request));
        match reply {
            Reply::Answer(_) if self.take(Fault::AnswerLost) => Reply::Lost,
            Reply::Answer(mut response) => {
                self.sign(&mut response);
                Reply::Answer(response)
            }
            Reply::Hold { .. } | Reply::Lost => reply,
        }
    }

    fn sign(&mut self, response: &mut Response) {
        let id = HeaderValue::from(self.next_id());
        response.headers.insert("ActivityId", id.clone());
        response.headers.insert("X-GitHub-Request-Id", id);
        if !response.body.is_empty() && self.take(Fault::ByteOrderMark) {
            response.body.splice(0..0, *b"\xef\xbb\xbf");
        }
    }

    fn route(&mut self, now: Timestamp, since: Timestamp, asked: &Asked<'_>) -> Reply {
        match asked.parts[..] {
            ["app", "installations", _, "access_tokens"] => self.token(now),
            [.., "actions", "runners", "registration-token"] => self.registration_token(now, asked),
            ["actions", "runner-registration"] => self.registration(now, asked),
            ["queue", id, "messages", ..] => self.queue(now, since, set_id(id), asked),
            ["_apis", "runtime", "runnerscalesets", id, "acquirejobs"] => {
                self.acquire(now, set_id(id), asked)
            }
            ["_apis", ref rest @ ..] => {
                if !self.is_valid(now, asked.token("Bearer ")) {
                    return refuse(StatusCode::UNAUTHORIZED, "GitHub.UnauthorizedException, GitHub");
                }
                self.service(now, rest, asked)
            }
            _ => empty(StatusCode::NOT_FOUND),
        }
    }

    fn token(&mut self, now: Timestamp) -> Reply {
        let token = self.issue(now, self.options.admin_token_for);
        let expires_at = (now + self.options.admin_token_for).to_string();
        answer(
            StatusCode::CREATED,
            &json!({"token": token, "expires_at": expires_at}),
        )
    }

    /// Any token opens this, as a personal access token would.
    fn registration_token(&mut self, now: Timestamp, asked: &Asked<'_>) -> Reply {
        match asked.token("Bearer ") {
            Some(_) => self.token(now),
            None => empty(StatusCode::UNAUTHORIZED),
        }
    }

    fn registration(&mut self, now: Timestamp, asked: &Asked<'_>) -> Reply {
        if self.take(Fault::RegistrationUnauthorized) {
            return empty(StatusCode::UNAUTHORIZED);
        }
        if self.take(Fault::RegistrationForbidden) {
            return empty(StatusCode::FORBIDDEN);
        }
        if !self.is_valid(now, asked.token("RemoteAuth ")) {
            return empty(StatusCode::UNAUTHORIZED);
        }
        let token = self.issue(now, self.options.admin_token_for);
        let url = format!("{}/tenant/", self.options.base);
        answer(StatusCode::OK, &json!({"url": url, "token": token}))
    }

    fn is_valid(&self, now: Timestamp, token: Option<&str>) -> bool {
        let expires_at = token.and_then(|token| self.tokens.get(token));
        expires_at.is_some_and(|expires_at| now < *expires_at)
    }

    fn service(&mut self, now: Timestamp, parts: &[&str], asked: &Asked<'_>) -> Reply {
        match *parts {
            ["runtime", "runnergroups"] => groups(asked),
            ["runtime", "runnerscalesets"] => self.scale_sets(asked),
            ["runtime", "runnerscalesets", id, ref rest @ ..] => {
                let id = set_id(id);
                if !self.sets.contains_key(&id) || self.take(Fault::ScaleSetNotFound) {
                    return refuse(
                        StatusCode::NOT_FOUND,
                        "GitHub.RunnerScaleSetNotFoundException, GitHub",
                    );
                }
                self.scale_set(now, id, rest, asked)
            }
            ["distributedtask", "pools", "0", "agents", ref rest @ ..] => self.agents(rest, asked),
            _ => empty(StatusCode::NOT_FOUND),
        }
    }

    fn scale_sets(&mut self, asked: &Asked<'_>) -> Reply {
        if asked.method == Method::POST {
            return match serde_json::from_slice::<NewScaleSet>(asked.body) {
                Ok(new) => self.create(new),
                Err(_) => empty(StatusCode::BAD_REQUEST),
            };
        }
        let name = asked.query("name");
        let sets = self.sets.values().map(|set| &set.set);
        let found: Vec<&ScaleSet> = sets
            .filter(|set| name.is_none_or(|name| set.name == name))
            .collect();
        list(&found)
    }

    fn create(&mut self, new: NewScaleSet) -> Reply {
        let is_taken = |set: &ScaleSet| set.name == new.name && set.runner_group_id == new.runner_group_id;
        if self.sets.values().any(|set| is_taken(&set.set)) {
            return refuse(
                StatusCode::BAD_REQUEST,
                "GitHub.RunnerScaleSetExistsException, GitHub",
            );
        }
        let set = self.add_set(ScaleSet {
            name: new.name,
            runner_group_id: new.runner_group_id,
            labels: new.labels,
            runner_setting: new.runner_setting,
            ..ScaleSet::default()
        });
        answer(StatusCode::OK, &json!(set))
    }

    fn scale_set(&mut self, now: Timestamp, id: ScaleSetId, parts: &[&str], asked: &Asked<'_>) -> Reply {
        match (asked.method.as_str(), parts) {
            ("GET", []) => answer(StatusCode::OK, &json!(self.sets.get(&id).map(|set| &set.set))),
            ("PATCH", []) => self.update(id, asked),
            ("DELETE", []) => {
                self.sets.remove(&id);
                empty(StatusCode::NO_CONTENT)
            }
            ("GET", ["acquirablejobs"]) => self.acquirable(id),
            ("POST", ["sessions"]) => {
                let owner = asked.json()["ownerName"].as_str().unwrap_or_default().to_owned();
                self.open_session(now, id, &owner)
            }
            ("PATCH", ["sessions", session]) => self.refresh_session(now, id, session),
            ("DELETE", ["sessions", session]) => self.close_session(id, session),
            ("POST", ["generatejitconfig"]) => self.jit_config(id, asked),
            _ => empty(StatusCode::NOT_FOUND),
        }
    }

    fn update(&mut self, id: ScaleSetId, asked: &Asked<'_>) -> Reply {
        let patch: ScaleSetPatch = serde_json::from_slice(asked.body).unwrap_or_default();
        let Some(set) = self.sets.get_mut(&id) else {
            return empty(StatusCode::NOT_FOUND);
        };
        let set = &mut set.set;
        set.name = patch.name.unwrap_or_else(|| set.name.clone());
        set.runner_group_id = patch.runner_group_id.unwrap_or(set.runner_group_id);
        set.runner_setting = patch.runner_setting.unwrap_or_else(|| set.runner_setting.clone());
        answer(StatusCode::OK, &json!(set))
    }

    fn acquirable(&self, id: ScaleSetId) -> Reply {
        let jobs = self.jobs.values().filter(|job| job.scale_set == id);
        let offered = jobs.filter(|job| job.state == super::model::FakeJobState::Available);
        let offered: Vec<_> = offered.map(|job| &job.job).collect();
        if offered.is_empty() {
            return empty(StatusCode::NO_CONTENT);
        }
        list(&offered)
    }

    fn jit_config(&mut self, id: ScaleSetId, asked: &Asked<'_>) -> Reply {
        let name = asked.json()["name"].as_str().unwrap_or_default().to_owned();
        if self.runners.values().any(|runner| runner.runner.name == name) {
            return refuse(StatusCode::CONFLICT, "GitHub.AgentExistsException, GitHub");
        }
        let (runner, config) = self.register(id, &name);
        answer(
            StatusCode::OK,
            &json!({"runner": runner, "encodedJITConfig": config}),
        )
    }

    fn agents(&mut self, parts: &[&str], asked: &Asked<'_>) -> Reply {
        let Some(id) = parts.first() else {
            let name = asked.query("agentName");
            let runners = self.runners();
            let found = runners
                .into_iter()
                .filter(|runner| name.is_none_or(|name| runner.name == name));
            return list(&found.collect::<Vec<_>>());
        };
        let id = RunnerId(id.parse().unwrap_or_default());
        let Some(runner) = self.runners.get(&id) else {
            return match *asked.method {
                Method::DELETE => empty(StatusCode::NO_CONTENT),
                _ => refuse(StatusCode::NOT_FOUND, "GitHub.AgentNotFoundException, GitHub"),
            };
        };
        if asked.method == Method::DELETE {
            if runner.runner.busy == Some(true) {
                return refuse(StatusCode::BAD_REQUEST, "GitHub.JobStillRunningException, GitHub");
            }
            self.runners.remove(&id);
            return empty(StatusCode::NO_CONTENT);
        }
        answer(StatusCode::OK, &json!(runner.runner))
    }
}

fn groups(asked: &Asked<'_>) -> Reply {
    let name = asked.query("groupName").unwrap_or_default();
    let group = json!({"id": 1, "name": "default", "size": 0, "isDefaultGroup": true});
    let found = Vec::from_iter((name.eq_ignore_ascii_case("default")).then_some(group));
    list(&found)
}

fn list(values: &[impl serde::Serialize]) -> Reply {
    answer(StatusCode::OK, &json!({"count": values.len(), "value": values}))
}

fn set_id(text: &str) -> ScaleSetId {
    ScaleSetId(text.parse().unwrap_or_default())
}
