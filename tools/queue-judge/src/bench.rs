//! How many decisions a second our queue makes, and what a waiting workload costs, on the load of the oracle's bench.
//!
//! Queues of 20 units in cohorts of 6, workloads of one unit. Plainly, half of each queue runs, a cycle admits the head
//! of each, the oldest end, and others come. With preemption all queues are full, and to each comes one more urgent than
//! all before: a cycle evicts, the next admits; one decision is both.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use blueproof_queue::{
    Cycle, PodSet, Quantity, Queues, Workload, WorkloadId,
    objects::{
        ClusterQueue, FairSharing, FlavorQuotas, Objects, Preemption, Quota, ResourceFlavor, ResourceGroup,
        WithinClusterQueue,
    },
};
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

const PER_COHORT: usize = 6;
const PER_QUEUE: usize = 20;

const FLAVOR: &str = "default";
const RESOURCE: &str = "cpu";

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How many queues, in cohorts of 6.
    #[arg(long, default_value_t = 30)]
    queues: usize,
    /// How many workloads wait.
    #[arg(long, default_value_t = 1000)]
    waiting: usize,
    /// With fair sharing.
    #[arg(long)]
    fair: bool,
    /// Each admission evicts another workload first.
    #[arg(long)]
    preempt: bool,
    /// How long to measure.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

/// What was measured. Times are in seconds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Measured {
    queues: usize,
    waiting: usize,
    fair: bool,
    preempt: bool,
    decisions: usize,
    /// Decisions in a second of cycles, as the oracle counts them.
    per_second: f64,
    /// Decisions in a second of cycles and of everything around them: who ends, who comes.
    per_second_with_all: f64,
    /// One cycle in which every queue decides.
    cycle: Spread,
    /// One workload ends, its queue's next is admitted, another comes.
    turn: Spread,
    bytes_per_waiting: Option<f64>,
}

/// The middle, and what one in a hundred is above.
#[derive(Debug, Serialize)]
struct Spread {
    p50: f64,
    p99: f64,
}

/// Measures, and prints a line of JSON.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    ensure!(
        arguments.queues > 0 && arguments.waiting >= arguments.queues,
        "want at least one queue, and a waiting workload for each"
    );
    let mut load = Load::new(arguments);
    let bytes = load.crowd(arguments.waiting)?;
    let (mut cycles, mut decisions) = (Vec::new(), 0);
    let long = Duration::from_secs_f64(arguments.seconds);
    let begun = Instant::now();
    while begun.elapsed() < long {
        let made = if arguments.preempt {
            load.evict_and_admit(&mut cycles)?
        } else {
            load.admit(&mut cycles)?
        };
        ensure!(made > 0, "a round without a decision, after {decisions}");
        decisions += made;
    }
    let with_all = begun.elapsed();
    let in_cycles: Duration = cycles.iter().sum();
    let turns = if arguments.preempt {
        Vec::new()
    } else {
        load.turns(long / 2)?
    };
    let measured = Measured {
        queues: arguments.queues,
        waiting: arguments.waiting,
        fair: arguments.fair,
        preempt: arguments.preempt,
        decisions,
        per_second: decisions as f64 / in_cycles.as_secs_f64(),
        per_second_with_all: decisions as f64 / with_all.as_secs_f64(),
        cycle: Spread::of(cycles),
        turn: Spread::of(turns),
        bytes_per_waiting: bytes.map(|bytes| bytes / arguments.waiting as f64),
    };
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

impl Spread {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |part: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a part of a length is one"
            )]
            let place = (times.len() as f64 * part) as usize;
            let time = times.get(place.min(times.len().saturating_sub(1)));
            time.map_or(0.0, Duration::as_secs_f64)
        };
        Self {
            p50: at(0.5),
            p99: at(0.99),
        }
    }
}

/// Queues under load.
struct Load {
    queues: Queues,
    names: Vec<String>,
    /// Who runs in each queue, the oldest first.
    running: Vec<VecDeque<WorkloadId>>,
    made: usize,
    urgency: i32,
}

impl Load {
    /// Fills half of each queue, or all of it where workloads are to be evicted.
    fn new(arguments: &Arguments) -> Self {
        let names: Vec<_> = (0..arguments.queues).map(|number| format!("q{number}")).collect();
        let mut load = Self {
            queues: Queues::new(objects(&names, arguments.fair)),
            running: vec![VecDeque::new(); names.len()],
            names,
            made: 0,
            urgency: 0,
        };
        let full = if arguments.preempt {
            PER_QUEUE
        } else {
            PER_QUEUE / 2
        };
        for _ in 0..full {
            for queue in 0..load.names.len() {
                load.submit(queue);
            }
            let admitted = load.queues.cycle(load.now());
            load.note(&admitted);
        }
        load
    }

    /// Lets so many wait, and returns how many bytes that took, where that can be read.
    fn crowd(&mut self, waiting: usize) -> Result<Option<f64>> {
        let before = memory()?;
        for number in 0..waiting {
            self.submit(number % self.names.len());
        }
        Ok(before.zip(memory()?).map(|(before, after)| after - before))
    }

    fn now(&self) -> Timestamp {
        let second = i64::try_from(self.made).expect("they are few");
        Timestamp::from_second(second).expect("they are few")
    }

    /// Returns the queue that a workload was submitted to: that is in its id.
    fn queue_of(&self, id: WorkloadId) -> usize {
        usize::try_from(id.0).expect("they are few") % self.names.len()
    }

    fn submit(&mut self, queue: usize) {
        self.made += 1;
        let workload = Workload {
            id: WorkloadId((self.made * self.names.len() + queue) as u64),
            cluster_queue: self.names[queue].clone(),
            local_queue: self.names[queue].clone(),
            user: None,
            priority: self.urgency,
            queued_at: self.now(),
            evictions: 0,
            evicted_by: None,
            pod_sets: vec![PodSet {
                name: "main".into(),
                count: 1,
                requests: BTreeMap::from([(RESOURCE.into(), Quantity(1000))]),
                ..PodSet::default()
            }],
        };
        self.queues.submit(&workload).expect("the queue is configured");
    }

    /// Runs a cycle, and notes how long it took.
    fn timed(&mut self, cycles: &mut Vec<Duration>) -> Cycle {
        let now = self.now();
        let begun = Instant::now();
        let cycle = self.queues.cycle(now);
        cycles.push(begun.elapsed());
        cycle
    }

    /// Notes who runs now.
    fn note(&mut self, cycle: &Cycle) {
        for admission in &cycle.admitted {
            let queue = self.queue_of(admission.workload);
            self.running[queue].push_back(admission.workload);
        }
    }

    /// Ends who runs the longest in a queue.
    fn end_oldest(&mut self, queue: usize) -> Result<()> {
        let oldest = self.running[queue]
            .pop_front()
            .context("somebody runs in every queue")?;
        self.queues.remove(oldest);
        Ok(())
    }

    /// Runs a cycle that admits the head of every queue. As many of those who run the longest end, and others come.
    fn admit(&mut self, cycles: &mut Vec<Duration>) -> Result<usize> {
        let cycle = self.timed(cycles);
        self.note(&cycle);
        for admission in &cycle.admitted {
            let queue = self.queue_of(admission.workload);
            self.end_oldest(queue)?;
            self.submit(queue);
        }
        Ok(cycle.admitted.len())
    }

    /// Lets one more urgent than all before come to every queue: a cycle evicts others for them, and one admits them.
    fn evict_and_admit(&mut self, cycles: &mut Vec<Duration>) -> Result<usize> {
        self.urgency += 1;
        for queue in 0..self.names.len() {
            self.submit(queue);
        }
        for victim in self.timed(cycles).preempted {
            self.queues.remove(victim.workload);
        }
        Ok(self.timed(cycles).admitted.len())
    }

    /// Lets one after the other end, in one queue after the other, and returns how long each took with what follows.
    fn turns(&mut self, long: Duration) -> Result<Vec<Duration>> {
        // Half of each queue is free: first it is filled.
        let mut cycles = Vec::new();
        while self.admit_more(&mut cycles) {}
        let (begun, mut turns) = (Instant::now(), Vec::new());
        for queue in (0..self.names.len()).cycle() {
            if begun.elapsed() > long {
                break;
            }
            let turn = Instant::now();
            self.end_oldest(queue)?;
            let cycle = self.queues.cycle(self.now());
            self.submit(queue);
            turns.push(turn.elapsed());
            self.note(&cycle);
        }
        Ok(turns)
    }

    fn admit_more(&mut self, cycles: &mut Vec<Duration>) -> bool {
        let cycle = self.timed(cycles);
        self.note(&cycle);
        !cycle.admitted.is_empty()
    }
}

fn objects(queues: &[String], fair: bool) -> Objects {
    let quota = Quota {
        nominal: Quantity(1000 * PER_QUEUE as i64),
        ..Quota::default()
    };
    let flavor = FlavorQuotas {
        name: FLAVOR.into(),
        resources: BTreeMap::from([(RESOURCE.into(), quota)]),
    };
    let queue = |number: usize| ClusterQueue {
        cohort: Some(format!("c{}", number / PER_COHORT)),
        resource_groups: vec![ResourceGroup {
            flavors: vec![flavor.clone()],
        }],
        preemption: Preemption {
            within_cluster_queue: WithinClusterQueue::LowerPriority,
            ..Preemption::default()
        },
        ..ClusterQueue::default()
    };
    let queues = queues.iter().enumerate();
    Objects {
        flavors: BTreeMap::from([(FLAVOR.into(), ResourceFlavor::default())]),
        cluster_queues: queues
            .map(|(number, name)| (name.clone(), queue(number)))
            .collect(),
        fair_sharing: fair.then(FairSharing::default),
        ..Objects::default()
    }
}

/// Returns how many bytes this process has in memory, where the system says it.
fn memory() -> Result<Option<f64>> {
    let Ok(status) = fs::read_to_string("/proc/self/status") else {
        return Ok(None);
    };
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let text = line.context("the system does not say how much memory a process has")?;
    let kib: f64 = text
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .context("not a number of KiB")?;
    Ok(Some(kib * 1024.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_leads_to_a_decision_for_each_queue() {
        for (fair, preempt) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut load = Load::new(&Arguments {
                queues: 7,
                waiting: 20,
                fair,
                preempt,
                seconds: 0.0,
            });
            load.crowd(20).expect("memory can be read");
            let mut cycles = Vec::new();
            let decided = if preempt {
                load.evict_and_admit(&mut cycles)
            } else {
                load.admit(&mut cycles)
            };
            assert_eq!(
                decided.expect("all queues are busy"),
                7,
                "fair {fair}, preempt {preempt}"
            );
        }
    }
}
