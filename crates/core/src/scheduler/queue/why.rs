//! Why a run waits in its queue, in figures: nothing here decides.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_queue::{
    AdmissionEntry, AdmissionStatus, Quantity, Queues, StopPolicy, Wait, WaitReason, WorkloadId,
    WorkloadStatus, objects::QueueingStrategy,
};

use super::{Entry, Queue, run_id, workload_id};
use crate::{
    domain::RunId,
    pending::{
        FlavorRoom, InactiveQueue, NAMED, PendingReason, Queued, RunRemedy, UsageOrder, free_in_words,
    },
    scheduler::why::Lost,
    view::QueuePosition,
};

/// In how long a line it is told who goes first because they had less lately.
const USAGE_TOLD_OF: usize = 1_000;

/// Where a run is in its line.
#[derive(Debug, Clone)]
pub(in super::super) struct LinePlace {
    pub(in super::super) of: QueuePosition,
    /// The first few before it.
    first: Vec<RunId>,
    /// The one right before it.
    last: Option<RunId>,
}

impl Queue {
    /// Returns why the run's attempt still waits, or `None` when it does not wait here. `place` is where it is in its line,
    /// if that is known.
    pub(in super::super) fn why_at(&self, run: RunId, place: Option<&LinePlace>) -> Option<PendingReason> {
        let (asks, entry) = self.waiting(run)?;
        let id = entry.workload().id;
        let (reason, mut queued) = self.queued(asks, entry);
        if let Some(place) = place {
            queued.ahead.clone_from(&place.first);
            queued.n_ahead = Some(place.of.position - 1);
            queued.last_ahead = place.last;
            // It goes through the whole line for each run that is asked about.
            if place.of.waiting <= USAGE_TOLD_OF {
                queued.usage = self.queues().usage_order(id).map(UsageOrder::from);
            }
        }
        Some(PendingReason::in_queue(reason, queued))
    }

    /// Returns why the run's attempt still waits, with all figures.
    #[cfg(test)]
    pub(in super::super) fn why(&self, run: RunId) -> Option<PendingReason> {
        let places = self.places(&[run].into(), usize::MAX);
        self.why_at(run, places.get(&run))
    }

    /// Returns where runs are in the lines of their ClusterQueues, of those lines in which at most so many wait. It goes
    /// through each of these lines once, however many runs are asked about.
    pub(in super::super) fn places(
        &self,
        runs: &BTreeSet<RunId>,
        line_at_most: usize,
    ) -> BTreeMap<RunId, LinePlace> {
        let mut by_queue: BTreeMap<&str, BTreeSet<RunId>> = BTreeMap::new();
        for run in runs {
            if let Some((_, entry)) = self.waiting(*run)
                && entry.status() == AdmissionStatus::Pending
            {
                let queue = entry.workload().cluster_queue.as_str();
                by_queue.entry(queue).or_default().insert(*run);
            }
        }
        let mut places = BTreeMap::new();
        for (queue, wanted) in by_queue {
            if self.queues().n_waiting(queue).is_ok_and(|n| n <= line_at_most) {
                places.extend(self.places_in(queue, &wanted));
            }
        }
        places
    }

    /// Returns where runs are in the line of a ClusterQueue. As in Kueue one that backs off is before nobody.
    fn places_in(&self, queue: &str, wanted: &BTreeSet<RunId>) -> Vec<(RunId, LinePlace)> {
        let (mut first, mut last, mut n_before, mut found) = (Vec::new(), None, 0, Vec::new());
        for id in self.queues().waiting(queue).unwrap_or_default() {
            let run = run_id(id);
            if wanted.contains(&run) {
                found.push((run, n_before, first.clone(), last));
            }
            if self.queues().backs_off_until(id).is_none() {
                n_before += 1;
                last = Some(run);
                if first.len() < NAMED {
                    first.push(run);
                }
            }
        }
        let places = found.into_iter().map(|(run, before, first, last)| {
            let of = QueuePosition {
                cluster_queue: queue.to_owned(),
                position: before + 1,
                waiting: n_before,
            };
            (run, LinePlace { of, first, last })
        });
        places.collect()
    }

    /// Returns the first few of each line.
    pub(in super::super) fn firsts(&self, of_each: usize) -> Vec<RunId> {
        let lines = self.queues().names().flat_map(|queue| {
            let waiting = self.queues().waiting(queue).unwrap_or_default();
            waiting.into_iter().take(of_each).map(run_id)
        });
        lines.collect()
    }

    /// Returns how many wait in the longest line.
    pub(in super::super) fn longest_line(&self) -> usize {
        let lines = self
            .queues()
            .names()
            .filter_map(|queue| self.queues().n_waiting(queue).ok());
        lines.max().unwrap_or(0)
    }

    /// Returns why an entry waits and how it stands, but not who is before it.
    fn queued(&self, asks: &Entry, entry: &AdmissionEntry) -> (WaitReason, Queued) {
        let (id, queue) = (entry.workload().id, &entry.workload().cluster_queue);
        let job = &asks.request.job;
        let wait = self.queues().wait(id).unwrap_or_else(|| self.outside(entry));
        let strict_head = self.strict_head(entry);
        let queued = Queued {
            asked: job.gang(),
            further_asked: job.further(),
            flavors: self.rooms(queue, &job.pod_sets.total()),
            ahead: Vec::new(),
            n_ahead: None,
            last_ahead: None,
            obstacles: wait.obstacles,
            can_ever_fit: wait.can_ever_fit || wait.reason == WaitReason::Misconfigured,
            inactive: InactiveQueue::of(self.queues(), &entry.origin().local_queue),
            head_never_fits: strict_head.is_some_and(|head| !self.queues().fits_ever(workload_id(head))),
            strict_head,
            usage: None,
        };
        (wait.reason, queued)
    }

    /// Returns the head of an entry's queue where nobody may overtake it, unless the entry is the head itself.
    fn strict_head(&self, entry: &AdmissionEntry) -> Option<RunId> {
        let queue = &entry.workload().cluster_queue;
        let configured = self.objects().cluster_queues.get(queue)?;
        let is_strict = configured.queueing_strategy == QueueingStrategy::StrictFIFO;
        let head = self.queues().head(queue);
        let head = head.filter(|head| is_strict && *head != entry.workload().id)?;
        (entry.status() == AdmissionStatus::Pending).then_some(run_id(head))
    }

    /// Returns why one waits that no queue has: it is held back for room that others leave, or its LocalQueue takes
    /// nobody.
    fn outside(&self, entry: &AdmissionEntry) -> Wait {
        let inactive = InactiveQueue::of(self.queues(), &entry.origin().local_queue);
        let reason = match inactive {
            _ if entry.status() == AdmissionStatus::QuotaReserved => WaitReason::WaitingForPreemptedWorkloads,
            Some(inactive) if inactive.is_stopped() => WaitReason::Suspended,
            Some(_) | None => WaitReason::Misconfigured,
        };
        // Where something is missing, nobody knows what there will be room for.
        let fits = self.queues().can_ever_fit(entry.workload()).unwrap_or(true);
        Wait {
            reason,
            obstacles: Vec::new(),
            can_ever_fit: fits || reason != WaitReason::Suspended,
        }
    }

    /// Returns who waits behind each LocalQueue that is stopped, in no ClusterQueue; also where nobody does.
    pub(in super::super) fn behind_stopped(&self) -> BTreeMap<&str, Vec<RunId>> {
        let stopped = self
            .objects()
            .local_queues
            .iter()
            .filter(|(_, local)| local.stop_policy != StopPolicy::None);
        let mut behind: BTreeMap<&str, Vec<RunId>> =
            stopped.map(|(name, _)| (name.as_str(), Vec::new())).collect();
        for entry in self.admission.entries() {
            let through = self.queues().local_queue(&entry.origin().local_queue);
            if let Some(runs) = through.and_then(|(name, _)| behind.get_mut(name))
                && entry.status() == AdmissionStatus::Inactive
            {
                runs.push(run_id(entry.workload().id));
            }
        }
        behind
    }

    /// Returns who waits in no ClusterQueue because their LocalQueue is not there, or names one that is not.
    pub(in super::super) fn lost(&self) -> Vec<Lost<'_>> {
        let configured = &self.objects().cluster_queues;
        let mut lost: BTreeMap<_, Lost<'_>> = BTreeMap::new();
        for entry in self.admission.entries() {
            let (name, workload) = (entry.origin().local_queue.as_str(), entry.workload());
            let behind = self.queues().local_queue(name);
            let behind = behind.map(|(_, local)| local.cluster_queue.as_str());
            let waits = matches!(
                entry.status(),
                AdmissionStatus::Inactive | AdmissionStatus::Pending | AdmissionStatus::External
            );
            if !waits || behind.is_some_and(|behind| configured.contains_key(behind)) {
                continue;
            }
            let cluster_queue = behind.unwrap_or(&workload.cluster_queue);
            let Some(missing) = InactiveQueue::of(self.queues(), name) else {
                continue;
            };
            let those = lost.entry((name, cluster_queue)).or_insert_with(|| Lost {
                local_queue: name,
                cluster_queue,
                missing,
                runs: Vec::new(),
            });
            those.runs.push(run_id(workload.id));
        }
        lost.into_values().collect()
    }

    /// Returns changes each of which would get a waiting run admitted.
    pub(in super::super) fn unblocked_by(&self, run: RunId) -> Vec<RunRemedy> {
        let Some((_, entry)) = self.waiting(run) else {
            return Vec::new();
        };
        if InactiveQueue::of(self.queues(), &entry.origin().local_queue).is_some() {
            return self.resumed(entry).into_iter().collect();
        }
        match entry.status() {
            AdmissionStatus::Pending => unblockers(self.queues(), entry.workload().id),
            AdmissionStatus::Inactive
            | AdmissionStatus::External
            | AdmissionStatus::QuotaReserved
            | AdmissionStatus::Admitted => Vec::new(),
        }
    }

    /// Returns what it takes where queues that are stopped keep a run from being admitted: they admit again on a copy, and
    /// what is still missing there is missing too. `None` is that more is wrong with them, or nothing that was tried helps.
    fn resumed(&self, entry: &AdmissionEntry) -> Option<RunRemedy> {
        let (mut copy, mut stopped) = (self.admission.clone(), Vec::new());
        while let Some(inactive) = InactiveQueue::of(copy.queues(), &entry.origin().local_queue) {
            if !inactive.is_stopped() {
                return None;
            }
            let mut objects = copy.objects().clone();
            inactive.resume(&mut objects);
            copy.set_objects(objects);
            stopped.push(inactive);
        }
        let (mut queues, id) = (copy.into_queues(), entry.workload().id);
        queues.drain_evicted();
        queues.settle();
        if queues.standing(id) == Some(WorkloadStatus::Admitted) {
            let then = Vec::new();
            return Some(RunRemedy::Resumed { stopped, then });
        }
        let then = unblockers(&queues, id);
        (!then.is_empty()).then_some(RunRemedy::Resumed { stopped, then })
    }

    /// Returns what keeps the run's attempt waiting, in a few words, or `None` when it does not wait here: what [`Self::why_at`]
    /// says.
    ///
    /// Unlike that it does not count those before it, and so costs the same however many they are.
    pub(in super::super) fn obstacle(&self, run: RunId) -> Option<String> {
        let (asks, entry) = self.waiting(run)?;
        let (reason, queued) = self.queued(asks, entry);
        if !matches!(
            reason,
            WaitReason::PendingEvaluation | WaitReason::WaitingForQuota
        ) {
            return Some(PendingReason::in_queue(reason, queued).to_string());
        }
        let needs = format!(
            "asks for {}; {}",
            queued.all_asked(),
            free_in_words(&queued.flavors)
        );
        let head = self.queues().head(&entry.workload().cluster_queue);
        let head = head.filter(|head| *head != entry.workload().id);
        Some(match head {
            Some(head) => format!("{needs}; {} is first in the queue", run_id(head)),
            None => needs,
        })
    }

    /// Returns what a queue has of each of its flavors of what is asked for, the flavors as they are tried.
    fn rooms(&self, queue: &str, asked: &BTreeMap<String, Quantity>) -> Vec<FlavorRoom> {
        let Some(configured) = self.objects().cluster_queues.get(queue) else {
            return Vec::new();
        };
        let groups = configured.resource_groups.iter().enumerate();
        let flavors = groups.flat_map(|(group, of)| of.flavors.iter().map(move |flavor| (group, flavor)));
        let rooms = flavors.flat_map(|(group, flavor)| {
            let resources = asked
                .iter()
                .filter(|(resource, amount)| {
                    **amount > Quantity::ZERO && flavor.resources.contains_key(*resource)
                })
                .map(|(resource, _)| resource);
            resources.filter_map(move |resource| {
                Some(FlavorRoom {
                    group,
                    flavor: flavor.name.clone(),
                    resource: resource.clone(),
                    free: self
                        .queues()
                        .available(queue, &flavor.name, resource)
                        .ok()?
                        .or_zero(),
                    most: self.queues().potential(queue, &flavor.name, resource).ok()?,
                })
            })
        });
        rooms.collect()
    }
}

/// Returns changes each of which would get a waiting workload admitted.
fn unblockers(queues: &Queues, id: WorkloadId) -> Vec<RunRemedy> {
    queues.unblocked_by(id).into_iter().map(RunRemedy::from).collect()
}
