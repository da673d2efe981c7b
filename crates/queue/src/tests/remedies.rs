//! What is said to end a wait, on random trees of cohorts: it does, and nothing of it is too much.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::{
    Told, of_both,
    random::{self, Happening, QUEUES, USERS, at, workload},
    stories::configured,
};
use crate::{
    Objects, Queues, Remedy, WorkloadId, WorkloadStatus,
    objects::{
        AdmissionFairSharing, AdmissionMode, ClusterQueue, LocalQueue, QueueingStrategy, Weight,
        WithinClusterQueue,
    },
};

/// Returns the queues after a story, and who waits in them and may be tried.
fn told((objects, story): (Objects, Vec<Happening>)) -> (Told, Vec<WorkloadId>) {
    let mut told = Told::new(objects);
    for happening in &story {
        told.tell(happening);
    }
    let waiting = [
        told.those(WorkloadStatus::Queued),
        told.those(WorkloadStatus::Inadmissible),
    ]
    .concat();
    (told, waiting)
}

proptest! {
    // Each case asks for everybody who waits what would help, and tries that out.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_said_to_unblock_a_workload_gets_it_admitted(story in random::story()) {
        let (told, waiting) = told(story);
        for id in waiting {
            let wait = told.queues.wait(id).expect("it waits");
            let unblocks = told.queues.unblocked_by(id);
            prop_assert!(wait.can_ever_fit || !unblocks.contains(&Remedy::Time), "{:?}", wait);
            for remedy in unblocks {
                let mut queues = told.queues.clone();
                apply(&mut queues, id, &remedy);
                queues.drain_evicted();
                queues.settle();
                prop_assert_eq!(queues.standing(id), Some(WorkloadStatus::Admitted), "{:?}", remedy);
            }
        }
    }

    #[test]
    fn of_those_who_are_named_none_can_be_left_out(story in random::story()) {
        let (told, waiting) = told(story);
        for id in waiting {
            if after_the_end_of(&told.queues, &[]).standing(id) == Some(WorkloadStatus::Admitted) {
                continue;
            }
            let Some(Remedy::Ends { workloads, pending }) = told.queues.ends(id) else { continue };
            let named = [workloads, pending].concat();
            for spared in &named {
                let others: Vec<WorkloadId> = named.iter().filter(|one| *one != spared).copied().collect();
                let queues = after_the_end_of(&told.queues, &others);
                prop_assert_ne!(queues.standing(id), Some(WorkloadStatus::Admitted), "{} of {:?}", spared, named);
            }
        }
    }

    // Not the other way round: the end of some may do where the end of all brings others first who never leave room.
    #[test]
    fn where_the_end_of_all_others_would_do_waiting_is_said_to_be_enough(story in random::story()) {
        let (told, waiting) = told(story);
        for id in waiting {
            let all = (0..told.submitted as u64).map(WorkloadId);
            let others: Vec<WorkloadId> = all.filter(|other| *other != id).collect();
            let queues = after_the_end_of(&told.queues, &others);
            if queues.standing(id) == Some(WorkloadStatus::Admitted) {
                prop_assert!(told.queues.ends(id).is_some(), "{}", id);
            }
        }
    }
}

#[test]
fn one_that_goes_first_and_is_evicted_time_and_again_ends_as_soon_as_it_has_quota() {
    // By usage cy goes before ann, whose weight is nothing; by priority ann has cy's workload evicted, for ever.
    let mut queue = ClusterQueue {
        queueing_strategy: QueueingStrategy::StrictFIFO,
        admission_mode: AdmissionMode::UsageBasedAdmissionFairSharing,
        ..of_both(0, 2)
    };
    queue.preemption.within_cluster_queue = WithinClusterQueue::LowerPriority;
    let [ann, bob, cy] = [0, 1, 2];
    let weightless = LocalQueue {
        weight: Weight(0.0),
        ..LocalQueue::default()
    };
    let queues = Objects {
        local_queues: [(USERS[ann].to_owned(), weightless)].into(),
        admission_fair_sharing: Some(AdmissionFairSharing {
            usage_half_life_time: SignedDuration::ZERO,
            usage_sampling_interval: SignedDuration::from_secs(1),
            resource_weights: BTreeMap::new(),
        }),
        ..configured([(QUEUES[0], queue)])
    };
    let mut queues = Queues::new(queues);
    let ids = [(bob, 2), (cy, 0), (ann, 1)]
        .into_iter()
        .enumerate()
        .map(|(number, (user, priority))| {
            let workload = workload(number, (0, user), priority, [0, 2], 1);
            queues.submit(&workload).expect("the queue is configured");
            queues.cycle(at(1000));
            workload.id
        });
    let ids: Vec<WorkloadId> = ids.collect();
    let expected = Remedy::Ends {
        workloads: vec![ids[0]],
        pending: vec![ids[1]],
    };
    assert_eq!(queues.ends(ids[2]), Some(expected));
}

/// Makes the change that is said to unblock a workload.
fn apply(queues: &mut Queues, id: WorkloadId, remedy: &Remedy) {
    match remedy {
        Remedy::Time => {}
        Remedy::InTurn => panic!("these stories are short"),
        Remedy::Ends { workloads, pending } => {
            *queues = after_the_end_of(queues, &[&workloads[..], pending].concat());
        }
        Remedy::MoreQuota { increases } => {
            let name = queues.queue(queues.workloads[&id]).name.clone();
            queues.raise(&name, increases);
        }
        Remedy::Cancelled { workloads, then } => {
            *queues = queues.without(workloads);
            for remedy in then {
                apply(queues, id, remedy);
            }
        }
    }
}

/// Lets workloads end, each as soon as it has quota, and all who are told to go leave.
fn after_the_end_of(queues: &Queues, those: &[WorkloadId]) -> Queues {
    let mut queues = queues.clone();
    for _ in 0..1_000 {
        let holds = |id: &&WorkloadId| {
            matches!(
                queues.standing(**id),
                Some(WorkloadStatus::Admitted | WorkloadStatus::Evicted)
            )
        };
        for other in those.iter().filter(holds).collect::<Vec<_>>() {
            queues.remove(*other);
        }
        queues.drain_evicted();
        if !queues.has_work() {
            break;
        }
        queues.cycle(queues.now);
    }
    queues
}
