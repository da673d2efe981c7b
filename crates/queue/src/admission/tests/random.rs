//! What holds in random stories: the queue contradicts itself nowhere, and one that only hears of the decisions comes to
//! the same state.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::tests::random::{QUEUES, USERS, configured};

/// Something that happens to the queue.
#[derive(Debug, Clone)]
pub(super) enum Happening {
    /// A workload of so many cores and GPUs comes through the LocalQueue of this number.
    Submit(usize, i32, [i64; 2]),
    /// One of the workloads is withdrawn.
    Withdraw(usize),
    /// One of the admitted workloads is released; if it was evicted, it is submitted again.
    Release(usize),
    /// One of the workloads backs off for so many seconds.
    BackOff(usize, i64),
    /// A LocalQueue, and its ClusterQueue, are stopped, or not.
    Stop(usize, StopPolicy, StopPolicy),
    /// A ClusterQueue is removed, or is there again.
    Toggle(usize),
    /// The clock is set.
    Clock(i64),
    /// So many seconds pass.
    Pass(i64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let policy = || {
        prop_oneof![
            Just(StopPolicy::None),
            Just(StopPolicy::Hold),
            Just(StopPolicy::HoldAndDrain)
        ]
    };
    prop_oneof![
        6 => (0..USERS.len(), -1..3_i32, 0..4_i64, 1..5_i64)
            .prop_map(|(user, priority, cpus, gpus)| Happening::Submit(user, priority, [cpus, gpus])),
        1 => any::<usize>().prop_map(Happening::Withdraw),
        3 => any::<usize>().prop_map(Happening::Release),
        1 => (any::<usize>(), 0..30_i64).prop_map(|(number, span)| Happening::BackOff(number, span)),
        1 => (0..USERS.len(), policy(), policy()).prop_map(|(user, local, of)| Happening::Stop(user, local, of)),
        1 => (0..QUEUES.len()).prop_map(Happening::Toggle),
        1 => (-30..0_i64).prop_map(Happening::Clock),
        3 => (0..20_i64).prop_map(Happening::Pass),
    ]
}

/// Objects whose LocalQueues lead to their ClusterQueues, and what happens to them.
pub(super) fn story() -> impl Strategy<Value = (Objects, Vec<Happening>)> {
    let objects = configured().prop_map(|mut objects| {
        for (user, queue) in USERS.iter().zip(QUEUES) {
            local_queue(&mut objects, user).cluster_queue = queue.into();
        }
        local_queue(&mut objects, USERS[0]).users = LocalQueueUsers::Author;
        objects
    });
    (objects, vec(happening(), 1..50))
}

/// A queue that decides, and another that hears of it.
#[derive(Debug, Clone)]
pub(super) struct Story {
    objects: Objects,
    pub(super) live: AdmissionQueue,
    pub(super) again: AdmissionQueue,
    pub(super) second: i64,
    submitted: u64,
    evicted: BTreeSet<WorkloadId>,
}

impl Story {
    pub(super) fn new(objects: Objects) -> Self {
        let mut live = AdmissionQueue::new(objects.clone());
        live.protect_for(Some(SignedDuration::from_secs(5)));
        Self {
            objects,
            again: live.clone(),
            live,
            second: 1000,
            submitted: 0,
            evicted: BTreeSet::new(),
        }
    }

    fn now(&self) -> Timestamp {
        at(self.second)
    }

    fn both(&mut self, change: impl Fn(&mut AdmissionQueue)) {
        change(&mut self.live);
        change(&mut self.again);
    }

    fn pick(&self, number: usize, is_candidate: impl Fn(&AdmissionEntry) -> bool) -> Option<AdmissionEntry> {
        let candidates: Vec<_> = self.live.entries().filter(|entry| is_candidate(entry)).collect();
        let entry = candidates.get(number.checked_rem(candidates.len())?)?;
        Some((*entry).clone())
    }

    /// Lets something happen and the queue decide, and returns what was decided.
    pub(super) fn tell(&mut self, happening: &Happening) -> Decisions {
        let now = self.now();
        match *happening {
            Happening::Submit(user, priority, [cpus, gpus]) => {
                self.submitted += 1;
                let mut workload = workload(self.submitted, self.second, cpus);
                workload.priority = priority;
                workload.pod_sets[0].requests.insert("gpu".into(), Quantity(gpus));
                let author = USERS[usize::try_from(self.submitted % 3).expect("small")];
                self.both(|queue| queue.submit(now, workload.clone(), from(USERS[user], author)));
            }
            Happening::Withdraw(number) => {
                if let Some(entry) = self.pick(number, |entry| entry.status() != AdmissionStatus::Admitted) {
                    self.both(|queue| drop(queue.withdraw(entry.workload.id)));
                }
            }
            Happening::Release(number) => {
                if let Some(entry) = self.pick(number, |entry| entry.status() == AdmissionStatus::Admitted) {
                    self.release(&entry);
                }
            }
            Happening::BackOff(number, span) => {
                if let Some(entry) = self.pick(number, |entry| entry.status() == AdmissionStatus::Pending) {
                    let until = at(self.second + span);
                    self.both(|queue| queue.back_off(entry.workload.id, until));
                }
            }
            Happening::Stop(user, local, of) => {
                let mut objects = self.live.objects().clone();
                local_queue(&mut objects, USERS[user]).stop_policy = local;
                if let Some(queue) = objects.cluster_queues.get_mut(QUEUES[user]) {
                    queue.stop_policy = of;
                }
                self.both(|queue| queue.set_objects(objects.clone()));
            }
            Happening::Toggle(queue) => {
                let mut objects = self.live.objects().clone();
                if objects.cluster_queues.remove(QUEUES[queue]).is_none() {
                    let before = self.objects.cluster_queues[QUEUES[queue]].clone();
                    objects.cluster_queues.insert(QUEUES[queue].into(), before);
                }
                self.both(|queue| queue.set_objects(objects.clone()));
            }
            Happening::Clock(by) => self.both(|queue| queue.move_times(SignedDuration::from_secs(by))),
            Happening::Pass(seconds) => {
                self.second += seconds;
                self.both(AdmissionQueue::wake);
            }
        }
        self.decide()
    }

    fn release(&mut self, entry: &AdmissionEntry) {
        let now = self.now();
        self.both(|queue| drop(queue.release(entry.workload.id)));
        if self.evicted.remove(&entry.workload.id) {
            let workload = Workload {
                evictions: entry.workload.evictions + 1,
                ..entry.workload().clone()
            };
            self.both(|queue| queue.submit(now, workload.clone(), entry.origin().clone()));
        }
    }

    /// Has the one decide, and tells the other what was decided.
    pub(super) fn decide(&mut self) -> Decisions {
        let now = self.now();
        let decided = self.live.decide(now);
        self.hear(&decided);
        decided
    }

    fn hear(&mut self, decided: &Decisions) {
        let now = self.now();
        let Self { again, evicted, .. } = self;
        assert_eq!(again.advance(now), decided.retried);
        for decision in &decided.quota {
            match decision {
                QuotaDecision::Reserved(reserved) => {
                    let waited = again.reserve(now, reserved.workload, &reserved.assignment);
                    assert_eq!(waited, Some(reserved.waited));
                }
                QuotaDecision::Evicted(eviction) => {
                    let workload = eviction.workload;
                    let was = again.evict(now, workload, eviction.by).expect("it is known");
                    assert_eq!(was == AdmissionStatus::Admitted, eviction.was_admitted);
                    evicted.extend(eviction.was_admitted.then_some(workload));
                }
                QuotaDecision::PreemptionAwaited(workload) => again.await_preemption(*workload),
            }
        }
        for id in &decided.admitted {
            again.admit(*id);
        }
    }
}

/// What is known of each workload from outside.
pub(super) fn stand(queue: &AdmissionQueue) -> Vec<(Workload, AdmissionStatus, [Timestamp; 2], Assignment)> {
    let entries = queue.entries().map(|entry| {
        let times = [entry.entered_at(), entry.reserved_at()];
        (
            entry.workload().clone(),
            entry.status(),
            times,
            entry.assignment(),
        )
    });
    entries.collect()
}

/// What is told of the usage of each user of each queue.
pub(super) fn usage(queue: &AdmissionQueue, now: Timestamp) -> Vec<Option<Vec<UserUsage>>> {
    let names = queue.queues().names();
    names
        .map(|name| queue.queues().users(name, now).expect("it is there"))
        .collect()
}

/// Which workload of each queue waits for others that were evicted, and whether it stays the head.
fn preemptors(queue: &AdmissionQueue) -> Vec<(&str, Option<WorkloadId>, bool)> {
    let queues = queue.queues().trees.iter().flat_map(|tree| &tree.queues);
    let preemptors = queues.map(|queue| {
        let (preemptor, is_sticky) = queue.pending.preemptor();
        (queue.name.as_str(), preemptor, is_sticky)
    });
    preemptors.collect()
}

proptest! {
    #[test]
    fn one_that_hears_of_the_decisions_comes_to_the_same_state((objects, story) in story()) {
        let mut told = Story::new(objects);
        for happening in &story {
            told.tell(happening);
            told.live.check();
            told.again.check();
            prop_assert_eq!(stand(&told.live), stand(&told.again));
            prop_assert_eq!(usage(&told.live, told.now()), usage(&told.again, told.now()));
            prop_assert_eq!(preemptors(&told.live), preemptors(&told.again));
        }
    }

    #[test]
    fn an_admitted_workload_has_room_beside_all_that_are_admitted((objects, story) in story()) {
        let mut told = Story::new(objects);
        for happening in &story {
            for id in told.tell(happening).admitted {
                let has_it = |other| told.live.status(other) == Some(AdmissionStatus::Admitted);
                prop_assert!(told.live.queues().has_room_beside(id, has_it), "{}", id);
            }
        }
    }

    #[test]
    fn a_queue_that_is_written_down_and_taken_up_goes_on_as_one_that_heard_of_everything(
        (objects, story) in story(),
        cut in 0..50_usize,
    ) {
        let mut told = Story::new(objects);
        let (before, after) = story.split_at(cut.min(story.len()));
        for happening in before {
            told.tell(happening);
        }
        // As the engine does it: of the queue that decides, and by way of a text.
        let text = serde_json::to_string(&told.live.snapshot()).expect("plain data");
        let snapshot = serde_json::from_str(&text).expect("it comes back");
        let taken_up = AdmissionQueue::from_snapshot(snapshot).expect("it is whole");
        taken_up.check();
        prop_assert_eq!(taken_up.snapshot(), told.live.snapshot());
        prop_assert_eq!(stand(&taken_up), stand(&told.live));
        prop_assert_eq!(usage(&taken_up, told.now()), usage(&told.live, told.now()));

        // Either goes on as one that heard of all decisions would.
        let mut heard = Story { live: told.again.clone(), ..told.clone() };
        let mut resumed = Story { live: taken_up, ..told };
        for happening in after {
            heard.live.wake();
            resumed.live.wake();
            prop_assert_eq!(resumed.tell(happening), heard.tell(happening));
            prop_assert_eq!(stand(&resumed.live), stand(&heard.live));
            prop_assert_eq!(usage(&resumed.live, resumed.now()), usage(&heard.live, heard.now()));
        }
    }
}
