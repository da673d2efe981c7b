//! What the scheduler goes by.

use std::sync::Arc;

use axum::{Json, extract::State};
use blueproof_core::{engine, policy::Policy, scheduler::Scheduler};
use blueproof_queue::objects::Objects;

use super::{Api, ApiError};

pub(super) async fn policy(State(api): State<Arc<Api>>) -> Result<Json<Policy>, ApiError> {
    let own = api.service.host().policy().clone();
    let in_force = api.of_scheduler(|scheduler| scheduler.policy().cloned()).await?;
    Ok(Json(in_force.unwrap_or(own)))
}

pub(super) async fn queues(State(api): State<Arc<Api>>) -> Result<Json<Objects>, ApiError> {
    Ok(Json(
        api.of_scheduler(|scheduler| scheduler.objects().clone()).await?,
    ))
}

impl Api {
    /// Asks the scheduler that works here, or, where another process leads, one that has come to what the log comes to.
    async fn of_scheduler<T: Send + 'static>(
        &self,
        question: impl Fn(&Scheduler) -> T + Clone + Send + 'static,
    ) -> Result<T, ApiError> {
        if let Some(answer) = self.service.ask(question.clone()).await {
            return Ok(answer);
        }
        let (scheduler, _) = engine::replay(&*self.store).await?;
        Ok(question(&scheduler))
    }
}
