//! What holds whatever is configured and whoever asks, on random trees of cohorts.

mod changes;
pub(super) mod random;
mod remedies;
mod reversals;
mod rules;
mod searches;
pub(super) mod stories;

use proptest::{collection::vec, prelude::*};

use super::{
    cycle_state::Victim,
    objects::{ClusterQueue, FlavorQuotas, QueueingStrategy},
    quotas::{FlavorResource, Usage},
    victims::Borrowing,
    *,
};
use random::{Happening, QUEUES, RESOURCES, at, happening, story, workload};
use stories::{configured, group, quota};

/// The queues while a story is told.
struct Told {
    queues: Queues,
    submitted: usize,
    second: i64,
}

impl Told {
    fn new(objects: Objects) -> Self {
        Self {
            queues: Queues::new(objects),
            submitted: 0,
            second: 1000,
        }
    }

    /// Panics when more is promised than there is. What those hold who were told to go does not count: as in Kueue, one
    /// may be admitted in the cycle that evicts them, into room that they leave.
    fn check(&self) {
        for tree in &self.queues.trees {
            let mut quotas = tree.quotas.clone();
            for queue in &tree.queues {
                for leaving in queue.holders.values().filter(|holder| holder.evicted) {
                    quotas.remove(queue.node, &leaving.usage);
                }
            }
            quotas.check_limits();
        }
        self.queues.check();
    }

    fn those(&self, standing: WorkloadStatus) -> Vec<WorkloadId> {
        let all = (0..self.submitted as u64).map(WorkloadId);
        all.filter(|id| self.queues.standing(*id) == Some(standing))
            .collect()
    }

    /// Lets something happen, and returns what a cycle decided, if it was one.
    fn tell(&mut self, happening: &Happening) -> Cycle {
        self.second += 1;
        self.queues.end_back_offs(at(self.second));
        match *happening {
            Happening::Submit {
                queue,
                user,
                priority,
                asks,
                pods,
                min_pods,
            } => {
                let mut workload = workload(self.submitted, (queue, user), priority, asks, pods);
                workload.pod_sets[0].min_count = min_pods;
                self.queues.submit(&workload).expect("the queue is configured");
                self.submitted += 1;
            }
            Happening::Cycle => return self.queues.cycle(at(self.second)),
            Happening::Gone(number) => {
                if let Some(id) = pick(&self.those(WorkloadStatus::Evicted), number) {
                    self.queues.requeue(id);
                }
            }
            Happening::End(number) => {
                if let Some(id) = pick(&self.those(WorkloadStatus::Admitted), number) {
                    self.queues.remove(id);
                }
            }
            Happening::BackOff(number, span) => {
                if let Some(id) = pick(&self.those(WorkloadStatus::Queued), number) {
                    self.queues.back_off(id, at(self.second + span));
                }
            }
        }
        Cycle::default()
    }
}

fn pick(ids: &[WorkloadId], number: usize) -> Option<WorkloadId> {
    ids.get(number.checked_rem(ids.len())?).copied()
}

/// What each queue's head asks for that it cannot have now: the tree, the queue, what it would use, and of that what
/// others would have to give up.
fn searches(queues: &Queues) -> Vec<(usize, usize, Usage, Vec<FlavorResource>, Entry)> {
    let mut found = Vec::new();
    for (number, tree) in queues.trees.iter().enumerate() {
        for (queue, known) in tree.queues.iter().enumerate() {
            let Some((_, entry)) = known.head() else { continue };
            let set = &known.shapes[entry.class.shape].sets[0];
            for place in (0..tree.places.len()).map(FlavorResource) {
                let resource = &tree.places[place.0].1;
                let asked = RESOURCES
                    .iter()
                    .position(|name| name == resource)
                    .expect("both are covered");
                let amount = set.requests[0].per_pod[asked].1.times(set.count);
                if amount <= tree.quotas.available(known.node, place) {
                    continue;
                }
                found.push((number, queue, vec![(place, amount)], vec![place], entry));
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn admission_never_takes_a_tree_above_its_quota((objects, story) in story()) {
        let mut told = Told::new(objects);
        for happening in &story {
            told.tell(happening);
            told.check();
        }
    }

    #[test]
    fn who_is_preempted_had_quota_and_whoever_takes_it_waits((objects, story) in story()) {
        let mut told = Told::new(objects);
        for happening in &story {
            let held = told.those(WorkloadStatus::Admitted);
            told.queues.end_back_offs(at(told.second + 1));
            let away = told.those(WorkloadStatus::BackingOff);
            let cycle = told.tell(happening);
            for preempted in &cycle.preempted {
                prop_assert!(held.contains(&preempted.workload));
                prop_assert_eq!(told.queues.standing(preempted.workload), Some(WorkloadStatus::Evicted));
                prop_assert_eq!(told.queues.standing(preempted.by), Some(WorkloadStatus::Queued));
            }
            for admission in &cycle.admitted {
                prop_assert!(!away.contains(&admission.workload));
                prop_assert_eq!(told.queues.standing(admission.workload), Some(WorkloadStatus::Admitted));
            }
        }
    }

    #[test]
    fn looking_for_victims_changes_nothing_and_finds_a_least_set_that_helps((objects, story) in story()) {
        let mut told = Told::new(objects);
        for happening in &story {
            told.tell(happening);
        }
        let fair = told.queues.objects.fair_sharing.clone();
        let rules = Rules { fair: fair.as_ref(), safe_since: None };
        for (tree, queue, usage, needs, entry) in searches(&told.queues) {
            let tree = &mut told.queues.trees[tree];
            let before = tree.quotas.clone();
            let request = Request {
                queue,
                evictions: 0,
                priority: entry.class.priority,
                queued_at: entry.queued_at,
                shape: &Shape { sets: Vec::new() },
            };
            let mut state = tree.cycle_state(rules);
            let (victims, borrowing) = victims::find_in_mode(&mut state, &request, &usage, &needs);
            prop_assert_eq!(&*state.quotas, &before, "looking changes nothing");
            if victims.is_empty() {
                continue;
            }
            prop_assert!(fits_without(&mut state, &request, &usage, borrowing, &victims), "it fits once they are gone");
            for spared in &victims {
                let others: Vec<Victim> = victims.iter().filter(|victim| *victim != spared).copied().collect();
                prop_assert!(!fits_without(&mut state, &request, &usage, borrowing, &others), "each is needed");
            }
        }
    }

    #[test]
    fn with_the_guard_nobody_takes_turns((objects, story) in story()) {
        let mut told = Told::new(objects);
        told.queues.protect_for(Some(SignedDuration::from_hours(1)));
        let mut evicted = std::collections::BTreeSet::new();
        for happening in &story {
            for preempted in told.tell(happening).preempted {
                prop_assert!(!evicted.contains(&preempted.by), "{:?} was evicted itself", preempted.by);
                evicted.insert(preempted.workload);
            }
        }
    }

    #[test]
    fn with_the_guard_no_reversal_comes_within_the_protected_time((objects, story) in story(), seconds in 1..8_i64) {
        let mut told = Told::new(objects);
        let span = SignedDuration::from_secs(seconds);
        told.queues.protect_for(Some(span));
        let mut reserved_at = BTreeMap::new();
        for happening in &story {
            let cycle = told.tell(happening);
            for preempted in cycle.preempted.iter().filter(|preempted| preempted.reversal) {
                prop_assert!(reserved_at[&preempted.workload] + span <= at(told.second), "{:?}", preempted);
            }
            reserved_at.extend(cycle.admitted.iter().map(|admission| (admission.workload, at(told.second))));
        }
    }

    #[test]
    fn the_first_of_a_queue_by_usage_is_of_a_user_who_had_least((objects, story) in story()) {
        let mut told = Told::new(objects);
        for happening in &story {
            told.tell(happening);
            for queue in told.queues.trees.iter().flat_map(|tree| &tree.queues) {
                let Some((first, entry)) = queue.head() else { continue };
                let waits = |id: &WorkloadId| !queue.pending.is_inadmissible(*id) && !queue.pending.backs_off(*id);
                for id in queue.pending.ids().filter(waits) {
                    let other = queue.pending.entry(id).expect("it waits");
                    prop_assert!(queue.users.usage(entry.user) <= queue.users.usage(other.user));
                }
                let before = queue.pending.before(first, &queue.users);
                prop_assert!(before.iter().all(|id| queue.pending.is_inadmissible(*id)), "it is next in what is told, too");
            }
        }
    }

    #[test]
    fn where_usage_does_not_count_it_is_no_matter_whose_a_workload_is((objects, story) in story()) {
        let mut objects = objects;
        objects.admission_fair_sharing = None;
        let alone: Vec<Happening> = story.iter().cloned().map(of_one_user).collect();
        let (mut first, mut second) = (Told::new(objects.clone()), Told::new(objects));
        for (happening, alone) in story.iter().zip(&alone) {
            prop_assert_eq!(first.tell(happening), second.tell(alone));
        }
    }

    #[test]
    fn the_same_story_is_decided_in_the_same_way((objects, story) in story()) {
        let (mut first, mut second) = (Told::new(objects.clone()), Told::new(objects));
        for happening in &story {
            prop_assert_eq!(first.tell(happening), second.tell(happening));
        }
    }

    #[test]
    fn other_objects_leave_who_holds_and_who_waits_where_they_are((objects, story) in story(), other in random::configured()) {
        let mut told = Told::new(objects.clone());
        for happening in &story {
            told.tell(happening);
        }
        let holding = told.those(WorkloadStatus::Admitted);
        told.queues.set_objects(other);
        prop_assert_eq!(told.those(WorkloadStatus::Admitted), holding);
        told.queues.set_objects(objects);
        told.check();
    }

    #[test]
    fn the_same_objects_again_change_nothing((objects, story) in story(), rest in vec(happening(), 1..20)) {
        let (mut told, mut told_again) = (Told::new(objects.clone()), Told::new(objects.clone()));
        for happening in &story {
            told.tell(happening);
            told_again.tell(happening);
        }
        told_again.queues.set_objects(objects);
        for happening in &rest {
            prop_assert_eq!(told.queues.has_work(), told_again.queues.has_work());
            prop_assert_eq!(told.tell(happening), told_again.tell(happening));
        }
    }
}

fn of_one_user(mut happening: Happening) -> Happening {
    if let Happening::Submit { user, .. } = &mut happening {
        *user = 0;
    }
    happening
}

fn fits_without(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    usage: &Usage,
    borrowing: Borrowing,
    victims: &[Victim],
) -> bool {
    state.remove_all(victims);
    let fits = victims::fits(state, request, usage, borrowing);
    state.add_all(victims);
    fits
}

/// A queue with both resources of one flavor.
fn of_both(cpus: i64, gpus: i64) -> ClusterQueue {
    let quotas = [("cpu", cpus), ("gpu", gpus)].map(|(name, nominal)| (name.into(), quota(nominal)));
    let flavor = FlavorQuotas {
        name: "a10".into(),
        resources: quotas.into(),
    };
    ClusterQueue {
        resource_groups: vec![group(vec![flavor])],
        ..ClusterQueue::default()
    }
}

#[test]
fn one_that_backs_off_holds_nobody_up_and_comes_back_in_its_place() {
    let queue = ClusterQueue {
        queueing_strategy: QueueingStrategy::StrictFIFO,
        ..of_both(1, 1)
    };
    let mut queues = Queues::new(configured([(QUEUES[0], queue)]));
    let first = WorkloadId(0);
    for number in 0..3 {
        queues
            .submit(&workload(number, (0, 0), 0, [1, 1], 1))
            .expect("the queue is configured");
    }
    queues.back_off(first, at(20));
    assert_eq!(queues.standing(first), Some(WorkloadStatus::BackingOff));
    assert_eq!(
        (queues.next_back_off_ends(), queues.backs_off_until(first)),
        (Some(at(20)), Some(at(20)))
    );
    assert_eq!(queues.ahead_of(WorkloadId(2)), [WorkloadId(1)]);
    let who = |cycle: Cycle| cycle.admitted.iter().map(|one| one.workload).collect::<Vec<_>>();
    assert_eq!(who(queues.cycle(at(10))), [WorkloadId(1)]);
    queues.remove(WorkloadId(1));

    assert_eq!(queues.end_back_offs(at(19)), []);
    let objects = queues.objects().clone();
    queues.set_objects(objects);
    assert_eq!(queues.end_back_offs(at(20)), [first]);
    assert_eq!(queues.ahead_of(WorkloadId(2)), [first]);
    assert_eq!(who(queues.cycle(at(20))), [first]);
    queues.check();
}

#[test]
fn who_is_short_of_two_resources_is_told_the_least_of_both() {
    let mut queues = Queues::new(configured([(QUEUES[0], of_both(4, 2))]));
    let raise = |resource: &str, more| QuotaIncrease {
        flavor: "a10".into(),
        resource: resource.into(),
        more: Quantity(more),
    };
    for (number, asks, increases) in [
        (0, [9, 3], vec![raise("cpu", 5), raise("gpu", 1)]),
        (1, [4, 8], vec![raise("gpu", 6)]),
        (2, [5, 2], vec![raise("cpu", 1)]),
    ] {
        let workload = workload(number, (0, 0), 0, asks, 1);
        queues.submit(&workload).expect("the queue is configured");
        let unblocks = queues.unblocked_by(workload.id);
        assert_eq!(unblocks, [Remedy::MoreQuota { increases }], "{asks:?}");
        queues.remove(workload.id);
    }
}
