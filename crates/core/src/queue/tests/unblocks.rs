//! What is said to end a wait, on random trees of cohorts: it does, and nothing of it is too much.

use proptest::prelude::*;

use super::{
    Told,
    random::{self, Happening},
};
use crate::queue::{Objects, Queues, Standing, Unblock, WorkloadId};

/// Returns the queues after a story, and who waits in them and may be tried.
fn told((objects, story): (Objects, Vec<Happening>)) -> (Told, Vec<WorkloadId>) {
    let mut told = Told::new(objects);
    for happening in &story {
        told.tell(happening);
    }
    let waiting = [told.those(Standing::Queued), told.those(Standing::Parked)].concat();
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
            prop_assert!(wait.can_ever_fit || !unblocks.contains(&Unblock::Time), "{:?}", wait);
            for unblock in unblocks {
                let mut queues = told.queues.clone();
                apply(&mut queues, id, &unblock);
                queues.let_leave();
                queues.settle();
                prop_assert_eq!(queues.standing(id), Some(Standing::Admitted), "{:?}", unblock);
            }
        }
    }

    #[test]
    fn of_those_who_are_named_none_can_be_left_out(story in random::story()) {
        let (told, waiting) = told(story);
        for id in waiting {
            if after_the_end_of(&told.queues, id, &[]).standing(id) == Some(Standing::Admitted) {
                continue;
            }
            let Some(Unblock::Ends { workloads, pending }) = told.queues.ends(id) else { continue };
            let named = [workloads, pending].concat();
            for spared in &named {
                let others: Vec<WorkloadId> = named.iter().filter(|one| *one != spared).copied().collect();
                let queues = after_the_end_of(&told.queues, id, &others);
                prop_assert_ne!(queues.standing(id), Some(Standing::Admitted), "{} of {:?}", spared, named);
            }
        }
    }

    #[test]
    fn where_the_end_of_all_others_would_do_waiting_is_said_to_be_enough(story in random::story()) {
        let (told, waiting) = told(story);
        for id in waiting {
            let all = (0..told.submitted as u64).map(WorkloadId);
            let others: Vec<WorkloadId> = all.filter(|other| *other != id).collect();
            let queues = after_the_end_of(&told.queues, id, &others);
            let waiting_is_enough = queues.standing(id) == Some(Standing::Admitted);
            prop_assert_eq!(told.queues.ends(id).is_some(), waiting_is_enough, "{}", id);
        }
    }
}

/// Makes the change that is said to unblock a workload.
fn apply(queues: &mut Queues, id: WorkloadId, unblock: &Unblock) {
    match unblock {
        Unblock::Time => {}
        Unblock::InTurn => panic!("these stories are short"),
        Unblock::Ends { workloads, pending } => {
            *queues = after_the_end_of(queues, id, &[&workloads[..], pending].concat());
        }
        Unblock::MoreQuota { raises } => {
            let name = queues.queue(queues.workloads[&id]).name.clone();
            queues.raise(&name, raises);
        }
    }
}

/// Lets workloads end, each once it has quota, as long as one still waits.
fn after_the_end_of(queues: &Queues, waiting: WorkloadId, those: &[WorkloadId]) -> Queues {
    let mut queues = queues.clone();
    for _ in 0..=those.len() {
        for other in those {
            if matches!(
                queues.standing(*other),
                Some(Standing::Admitted | Standing::Evicted)
            ) {
                queues.remove(*other);
            }
        }
        queues.let_leave();
        queues.settle();
        if queues.standing(waiting) == Some(Standing::Admitted) {
            break;
        }
    }
    queues
}
