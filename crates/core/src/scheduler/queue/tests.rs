//! The queue as the scheduler meets it: by runs, with the one queue that holds where nobody applied others.

use super::*;
use crate::{domain::Cpus, domain::Priority, testing::request};

fn cpus(cores: u32) -> Resources {
    Resources {
        cpu: Cpus::cores(cores),
        ..Resources::default()
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("small")
}

fn submit(queue: &mut Queue, run: u64, priority: i32, since: i64, cores: u32) {
    let mut request = request("a", "nano-lm");
    request.priority = Priority(priority);
    request.job.driver = cpus(cores);
    queue.submit(at(since), RunId(run).attempt(1), &request, at(since), 0);
}

fn admitted(queue: &mut Queue) -> Vec<u64> {
    let decisions = queue.decide(at(100));
    queue.check();
    decisions
        .admitted
        .into_iter()
        .map(|attempt| attempt.run.0)
        .collect()
}

#[test]
fn the_order_is_by_priority_then_by_time_then_by_id() {
    let mut queue = Queue::new(cpus(1));
    for (run, priority, since) in [(1, 0, 5), (2, 0, 3), (3, 9, 7), (4, 0, 3)] {
        submit(&mut queue, run, priority, since, 1);
    }
    let mut order = Vec::new();
    while let [run] = admitted(&mut queue)[..] {
        order.push(run);
        queue.release(RunId(run).attempt(1));
    }
    assert_eq!(order, [3, 2, 4, 1]);
}

#[test]
fn nobody_overtakes_the_one_in_front() {
    let mut queue = Queue::new(cpus(2));
    submit(&mut queue, 1, 0, 1, 1);
    submit(&mut queue, 2, 0, 2, 2);
    submit(&mut queue, 3, 0, 3, 1);
    assert_eq!(admitted(&mut queue), [1]);
    let Some(PendingReason::PendingEvaluation(queued)) = queue.why(RunId(3)) else {
        panic!("it would fit, but waits: {:?}", queue.why(RunId(3)));
    };
    assert_eq!((queued.ahead, queued.free), (vec![RunId(2)], cpus(1)));
    assert_eq!(
        queue.obstacle(RunId(3)).as_deref(),
        Some("asks for 1 cpu, 0 memory; free are 1 cpu, 0 memory; r-2 is first in the queue")
    );
    queue.release(RunId(1).attempt(1));
    assert_eq!(admitted(&mut queue), [2]);
}

#[test]
fn releasing_twice_gives_nothing_back_twice() {
    let mut queue = Queue::new(cpus(1));
    submit(&mut queue, 1, 0, 1, 1);
    assert_eq!(admitted(&mut queue), [1]);
    let attempt = RunId(1).attempt(1);
    queue.release(attempt);
    queue.release(attempt);
    queue.check();
    assert_eq!(queue.promised(attempt), None);
}
