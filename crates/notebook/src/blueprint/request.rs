//! From a resolved blueprint in a local folder to the request for a run of exactly what is there now.

use blueproof_core::domain::{
    Actor, Job, Priority, QueueName, Repository, RequestKey, Retries, RunRequest, Source, Subject,
};

use super::Resolved;
use crate::{
    revision,
    snapshot::{self, SnapshotError},
};

impl Resolved {
    /// Returns the request that `requested_by` makes for a run of the folder's content as it is now.
    ///
    /// Blocks: every file of the folder is read once, to name the content. What this process' own standard output and error
    /// are written to is none.
    ///
    /// # Errors
    ///
    /// Something in the folder cannot be read.
    pub fn request(
        mut self,
        key: RequestKey,
        requested_by: Actor,
        queue: QueueName,
        priority: Priority,
    ) -> Result<RunRequest, SnapshotError> {
        let checkout = snapshot::canonical(&self.checkout)?;
        let left_out = snapshot::own_output(&checkout)?;
        let head = snapshot::digest(&checkout, &left_out)?;
        let revision = revision::of(&checkout, &left_out);
        self.plan.left_out = left_out;
        let subject = Subject {
            repository: Repository::Local(checkout.clone()),
            pull_request: None,
            base: None,
            head,
            blueprint: self.name.clone(),
            profile: self.profile.clone(),
        };
        let (job, retries) = self.into_job(Source::Folder(checkout));
        Ok(RunRequest {
            key,
            revision,
            subject,
            requested_by,
            author: None,
            asked_from: None,
            queue,
            priority,
            retries,
            job,
        })
    }

    /// Returns what is carried out where the content comes from `source`, and how often it may be tried again.
    pub fn into_job(self, source: Source) -> (Job, Retries) {
        let retries = Retries {
            infrastructure: self.retries.infrastructure.0,
            blueprint: self.retries.blueprint.0,
        };
        let job = Job {
            source,
            pod_sets: self.pod_sets,
            timeouts: self.timeouts,
            work: serde_json::to_value(&self.plan).expect("a plan is plain data"),
        };
        (job, retries)
    }
}
