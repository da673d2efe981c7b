//! A scale set's session and its queue of messages.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    faults::Fault,
    model::{FakeJobState, Model},
    reply::{Asked, Reply, answer, empty, refuse},
    state::FakeSession,
};
use crate::types::{RunnerRequestId, ScaleSetId};

impl Model {
    pub(super) fn open_session(&mut self, now: Timestamp, id: ScaleSetId, owner: &str) -> Reply {
        let session = self.sets.get(&id).and_then(|set| set.session.as_ref());
        let is_held = session.is_some_and(|session| now < session.seen_at + self.options.session_idle_for);
        if is_held {
            return refuse(
                StatusCode::CONFLICT,
                "GitHub.RunnerScaleSetSessionConflictException, GitHub",
            );
        }
        let session = Uuid::from_u128(self.next_id().unsigned_abs().into());
        self.grant(now, id, session, owner)
    }

    pub(super) fn refresh_session(&mut self, now: Timestamp, id: ScaleSetId, session: &str) -> Reply {
        if self.take(Fault::RefreshNotFound) {
            self.end_session(id);
        }
        let known = self.sets.get(&id).and_then(|set| set.session.as_ref());
        match known.filter(|known| known.id.to_string() == session) {
            Some(known) => {
                let (session, owner) = (known.id, known.owner.clone());
                self.grant(now, id, session, &owner)
            }
            None => refuse(
                StatusCode::NOT_FOUND,
                "GitHub.RunnerScaleSetSessionNotFoundException, GitHub",
            ),
        }
    }

    pub(super) fn close_session(&mut self, id: ScaleSetId, session: &str) -> Reply {
        let known = self.sets.get(&id).and_then(|set| set.session.as_ref());
        if known.is_none_or(|known| known.id.to_string() != session) {
            return refuse(
                StatusCode::NOT_FOUND,
                "GitHub.RunnerScaleSetSessionNotFoundException, GitHub",
            );
        }
        if !self.take(Fault::StaleSession) {
            self.end_session(id);
        }
        empty(StatusCode::NO_CONTENT)
    }

    fn grant(&mut self, now: Timestamp, id: ScaleSetId, session: Uuid, owner: &str) -> Reply {
        let token = self.issue(now, self.options.queue_token_for);
        let statistics = self.statistics(id);
        let url = format!("{}/queue/{id}/messages?session={session}", self.options.base);
        let Some(set) = self.sets.get_mut(&id) else {
            return refuse(
                StatusCode::NOT_FOUND,
                "GitHub.RunnerScaleSetNotFoundException, GitHub",
            );
        };
        set.session = Some(FakeSession {
            id: session,
            owner: owner.into(),
            token: token.clone(),
            seen_at: now,
        });
        answer(
            StatusCode::OK,
            &json!({
                "sessionId": session, "ownerName": owner, "runnerScaleSet": set.set,
                "messageQueueUrl": url, "messageQueueAccessToken": token, "statistics": statistics,
            }),
        )
    }

    /// Returns whether a request has the token of a scale set's session.
    pub(super) fn has_queue_token(&mut self, now: Timestamp, id: ScaleSetId, asked: &Asked<'_>) -> bool {
        let token = asked.token("Bearer ").unwrap_or_default();
        if self.take(Fault::QueueTokenExpired) {
            self.tokens.remove(token);
        }
        let session = self.sets.get_mut(&id).and_then(|set| set.session.as_mut());
        let is_current = session.is_some_and(|session| {
            session.seen_at = now;
            session.token == token
        });
        is_current && self.tokens.get(token).is_some_and(|expires_at| now < *expires_at)
    }

    pub(super) fn queue(
        &mut self,
        now: Timestamp,
        since: Timestamp,
        id: ScaleSetId,
        asked: &Asked<'_>,
    ) -> Reply {
        if !self.sets.contains_key(&id) {
            return refuse(
                StatusCode::NOT_FOUND,
                "GitHub.RunnerScaleSetNotFoundException, GitHub",
            );
        }
        if !self.has_queue_token(now, id, asked) {
            return refuse(StatusCode::UNAUTHORIZED, "GitHub.InvalidTokenException, GitHub");
        }
        if asked.method == Method::DELETE {
            let message: Option<i64> = asked.parts.last().and_then(|part| part.parse().ok());
            if let (Some(set), Some(message)) = (self.sets.get_mut(&id), message) {
                set.messages.remove(&message);
            }
            return empty(StatusCode::NO_CONTENT);
        }
        self.poll(now, since, id, asked)
    }

    fn poll(&mut self, now: Timestamp, since: Timestamp, id: ScaleSetId, asked: &Asked<'_>) -> Reply {
        self.offer(now, id, asked.capacity());
        self.collect(id);
        let last: i64 = asked
            .query("lastMessageId")
            .and_then(|text| text.parse().ok())
            .unwrap_or_default();
        let set = self.sets.get(&id);
        let next = set.and_then(|set| set.messages.range(last + 1..).next());
        let next = next.map(|(number, body)| (*number, body.clone()));
        let until = since + self.options.hold;
        match next {
            Some(_) if self.take(Fault::EmptyBody) => empty(StatusCode::OK),
            Some((number, body)) => {
                let statistics = self.statistics(id);
                answer(
                    StatusCode::OK,
                    &json!({
                        "messageId": number, "messageType": "RunnerScaleSetJobMessages",
                        "body": body, "statistics": statistics,
                    }),
                )
            }
            None if now < until => Reply::Hold { until },
            None => empty(StatusCode::ACCEPTED),
        }
    }

    /// Offers as many jobs as there is capacity for beyond those that are with the scale set.
    fn offer(&mut self, _now: Timestamp, id: ScaleSetId, capacity: usize) {
        let of_set = self.jobs.values_mut().filter(|job| job.scale_set == id);
        let mut n_with_set = 0;
        let mut queued = Vec::new();
        for job in of_set {
            match job.state {
                FakeJobState::Queued => queued.push(job),
                FakeJobState::Available | FakeJobState::Assigned | FakeJobState::Running(_) => {
                    n_with_set += 1;
                }
                FakeJobState::Completed => {}
            }
        }
        let mut offered = Vec::new();
        for job in queued.into_iter().take(capacity.saturating_sub(n_with_set)) {
            job.state = FakeJobState::Available;
            offered.push(job.job.runner_request_id);
        }
        for request in offered {
            self.tell(request, "JobAvailable", None);
        }
    }

    /// Makes a message of what happened, if nothing waits to be acknowledged.
    fn collect(&mut self, id: ScaleSetId) {
        let batch = self.options.batch;
        let Some(set) = self.sets.get_mut(&id) else { return };
        if set.events.is_empty() || !set.messages.is_empty() {
            return;
        }
        let n_events = set.events.len().min(batch);
        let mut events: Vec<Value> = set.events.drain(..n_events).collect();
        if self.faults.take(Fault::OutOfOrder) {
            events.reverse();
        }
        let body = Value::from(events).to_string();
        if self.faults.take(Fault::DuplicateMessage) {
            set.keep(body.clone());
        }
        set.keep(body);
    }

    pub(super) fn acquire(&mut self, now: Timestamp, id: ScaleSetId, asked: &Asked<'_>) -> Reply {
        if !self.has_queue_token(now, id, asked) {
            return refuse(StatusCode::UNAUTHORIZED, "GitHub.InvalidTokenException, GitHub");
        }
        let requests: Vec<RunnerRequestId> = serde_json::from_slice(asked.body).unwrap_or_default();
        let is_partial = requests.len() > 1 && self.take(Fault::PartialAcquire);
        let n_most = if is_partial { 1 } else { requests.len() };
        let mut granted = Vec::new();
        let mut left = Vec::new();
        for request in requests {
            let job = self.jobs.get(&request);
            let is_available =
                job.is_some_and(|job| job.scale_set == id && job.state == FakeJobState::Available);
            if is_available && granted.len() < n_most {
                granted.push(request);
            } else if is_available {
                left.push(request);
            }
        }
        for request in &granted {
            self.assign(now, *request);
        }
        // What was not granted is offered again.
        for request in left {
            if let Some(job) = self.jobs.get_mut(&request) {
                job.state = FakeJobState::Queued;
            }
        }
        answer(StatusCode::OK, &json!({"count": granted.len(), "value": granted}))
    }

    /// Returns for how long a poll is held.
    pub fn hold(&self) -> Duration {
        self.options.hold
    }
}
