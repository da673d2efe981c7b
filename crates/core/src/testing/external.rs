//! The queues of a cluster that admits workloads itself, as Kueue does there.

use std::collections::BTreeMap;

use blueproof_queue::{
    AdmissionQueue, Assignment, Origin, QuotaDecision, Workload, WorkloadId, objects::Objects,
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    action::QuotaRequest,
    domain::{AttemptId, EvictionReason, Placement, PodSets},
    ports::AttemptNews,
};

/// The queues of a cluster that admits workloads itself. Time is counted in what it is asked.
#[derive(Debug)]
pub struct ExternalQueue {
    queue: AdmissionQueue,
    now: Timestamp,
    attempts: BTreeMap<WorkloadId, AttemptId>,
    placed: BTreeMap<AttemptId, Placement>,
    /// What was told of those that wait.
    told: BTreeMap<AttemptId, String>,
}

impl ExternalQueue {
    /// Returns queues by these objects, about all of which the cluster decides.
    pub fn new(objects: Objects) -> Self {
        Self {
            queue: AdmissionQueue::new(objects.with_embedded_admission()),
            now: Timestamp::UNIX_EPOCH,
            attempts: BTreeMap::new(),
            placed: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    /// Applies other objects. What has quota keeps it.
    pub fn set_objects(&mut self, objects: Objects) {
        self.queue.set_objects(objects.with_embedded_admission());
    }

    /// Submits an attempt; one that is there already stays as it is.
    pub fn request(&mut self, attempt: AttemptId, request: &QuotaRequest, pod_sets: &PodSets) {
        if self.attempts.values().any(|known| *known == attempt) {
            return;
        }
        self.now += SignedDuration::from_secs(1);
        let id = WorkloadId(attempt.run.0 * 1_000 + u64::from(attempt.number));
        let workload = Workload {
            priority: request.priority.0,
            ..Workload::new(id, self.now, pod_sets.as_slice().to_vec())
        };
        let origin = Origin {
            local_queue: request.local_queue.clone(),
            ..Origin::default()
        };
        self.attempts.insert(id, attempt);
        self.queue.submit(self.now, workload, origin);
    }

    /// Removes an attempt, however far it is; an unknown one is no mistake.
    pub fn remove(&mut self, attempt: AttemptId) {
        self.attempts.retain(|id, known| {
            let stays = *known != attempt;
            if !stays {
                self.queue.remove(*id);
            }
            stays
        });
        self.placed.remove(&attempt);
        self.told.remove(&attempt);
    }

    /// Returns the place of an attempt, if it has one.
    pub fn placement(&self, attempt: AttemptId) -> Option<&Placement> {
        self.placed.get(&attempt)
    }

    /// Returns whether an attempt waits.
    pub fn waits(&self, attempt: AttemptId) -> bool {
        self.attempts.values().any(|known| *known == attempt) && !self.placed.contains_key(&attempt)
    }

    /// Decides about all that are there, and returns what is to be told of it.
    pub fn decide(&mut self) -> Vec<(AttemptId, AttemptNews)> {
        let decided = self.queue.decide(self.now);
        let mut news = Vec::new();
        for decision in &decided.quota {
            let QuotaDecision::Evicted(eviction) = decision else {
                continue;
            };
            if eviction.was_admitted {
                news.push((
                    self.attempts[&eviction.workload],
                    AttemptNews::Evicted {
                        reason: EvictionReason::from(eviction.reason),
                        message: format!("to make room: {}", eviction.reason.as_words()),
                    },
                ));
            }
        }
        for id in decided.admitted {
            let attempt = self.attempts[&id];
            let assignment = self.queue.get(id).expect("it is admitted").assignment();
            let placement = placement(&assignment);
            self.told.remove(&attempt);
            self.placed.insert(attempt, placement.clone());
            news.push((attempt, AttemptNews::Reserved(placement)));
        }
        news.extend(self.pending());
        news
    }

    /// Returns why those wait of whom that was not told yet.
    fn pending(&mut self) -> Vec<(AttemptId, AttemptNews)> {
        let mut news = Vec::new();
        for (id, attempt) in &self.attempts {
            if self.placed.contains_key(attempt) {
                continue;
            }
            let wait = self.queue.queues().wait(*id);
            let said = wait.map_or_else(|| "Inadmissible".to_owned(), |wait| wait.to_string());
            if self.told.get(attempt) == Some(&said) {
                continue;
            }
            self.told.insert(*attempt, said.clone());
            let (reason, message) = said.split_once(": ").unwrap_or((&said, "it is to be tried"));
            news.push((
                *attempt,
                AttemptNews::Pending {
                    reason: reason.into(),
                    message: message.into(),
                },
            ));
        }
        news
    }

    /// Has it told once more why an attempt waits.
    pub fn forget_told(&mut self, attempt: AttemptId) {
        self.told.remove(&attempt);
    }
}

fn placement(assignment: &Assignment) -> Placement {
    let sets = assignment.pod_sets.iter();
    Placement {
        flavors: sets.map(|set| (set.name.clone(), set.flavors.clone())).collect(),
        ..Placement::on("memory")
    }
}
