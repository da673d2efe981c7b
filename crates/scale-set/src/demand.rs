//! How many jobs need a runner.
//!
//! The service's statistics say so, and counts of messages do not: a job is assigned again when no runner takes it. But statistics
//! have been seen to be zero while a message assigned jobs. Then the larger of both is believed, for a while. There is no clock in here.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;

use crate::{
    message::Event,
    types::{RunnerRequestId, Statistics},
};

/// How many jobs need a runner, those that run among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// How many.
    pub jobs: u32,
    /// Who says so.
    pub source: DemandSource,
}

/// Who says how many jobs need a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemandSource {
    /// The service's statistics.
    Statistics,
    /// The messages that came: the statistics say less, and are not believed yet.
    Messages,
}

/// Works out the demand from statistics and messages.
#[derive(Debug, Clone)]
pub struct DemandLedger {
    grace: Duration,
    live: BTreeSet<RunnerRequestId>,
    assigned_jobs: u32,
    suspicious_since: Option<Timestamp>,
    /// Whether the messages are of an earlier process, and no statistics have come since.
    is_restored: bool,
}

impl DemandLedger {
    /// Returns an empty one, which doubts statistics for `grace` where they are zero and should not be.
    pub fn new(grace: Duration) -> Self {
        Self {
            grace,
            live: BTreeSet::new(),
            assigned_jobs: 0,
            suspicious_since: None,
            is_restored: false,
        }
    }

    /// Takes in what an answer says: its events, and its statistics where it has any.
    pub fn observe(&mut self, now: Timestamp, events: &[Event], statistics: Option<Statistics>) {
        let is_assigning = self.keep(events) || self.is_restored;
        if let Some(statistics) = statistics {
            self.assigned_jobs = statistics.total_assigned_jobs;
            self.is_restored = false;
        }
        let is_missing = self.assigned_jobs == 0 && !self.live.is_empty();
        if !is_missing {
            self.suspicious_since = None;
        } else if is_assigning {
            self.suspicious_since = self.suspicious_since.or(Some(now));
        }
    }

    /// Takes in the events of messages that an earlier process had: the first statistics are held to them, too.
    pub fn restore(&mut self, events: &[Event]) {
        self.keep(events);
        self.is_restored = true;
    }

    /// Keeps which jobs are live, and returns whether one was assigned.
    fn keep(&mut self, events: &[Event]) -> bool {
        let mut is_assigning = false;
        for event in events {
            match event {
                Event::Assigned(job) | Event::Started { job, .. } => {
                    self.live.insert(job.runner_request_id);
                    is_assigning = true;
                }
                Event::Completed { job, .. } => {
                    self.live.remove(&job.runner_request_id);
                }
                Event::Available(_) | Event::Unknown { .. } => {}
            }
        }
        is_assigning
    }

    /// Returns the demand.
    pub fn demand(&mut self, now: Timestamp) -> Demand {
        let doubted = self.suspicious_since.is_some_and(|since| {
            let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
            passed < self.grace
        });
        let live = u32::try_from(self.live.len()).unwrap_or(u32::MAX);
        if doubted && live > self.assigned_jobs {
            return Demand {
                jobs: live,
                source: DemandSource::Messages,
            };
        }
        if self.suspicious_since.take().is_some() {
            self.live.clear();
        }
        Demand {
            jobs: self.assigned_jobs,
            source: DemandSource::Statistics,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{Job, JobResult};

    const GRACE: Duration = Duration::from_secs(300);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn job(number: i64) -> Job {
        Job {
            runner_request_id: RunnerRequestId(number),
            ..Job::default()
        }
    }

    fn statistics(jobs: u32) -> Option<Statistics> {
        Some(Statistics {
            total_assigned_jobs: jobs,
            ..Statistics::default()
        })
    }

    #[test]
    fn zero_beside_an_assigned_job_is_doubted_for_a_while() {
        let mut ledger = DemandLedger::new(GRACE);
        ledger.observe(
            at(0),
            &[Event::Assigned(job(1)), Event::Assigned(job(1))],
            statistics(0),
        );
        assert_eq!(
            ledger.demand(at(0)),
            Demand {
                jobs: 1,
                source: DemandSource::Messages
            }
        );
        assert_eq!(ledger.demand(at(299)).jobs, 1);
        assert_eq!(
            ledger.demand(at(300)),
            Demand {
                jobs: 0,
                source: DemandSource::Statistics
            }
        );
    }

    #[test]
    fn statistics_that_say_something_are_believed() {
        let mut ledger = DemandLedger::new(GRACE);
        ledger.observe(at(0), &[Event::Assigned(job(1))], statistics(0));
        ledger.observe(at(1), &[], statistics(3));
        assert_eq!(
            ledger.demand(at(1)),
            Demand {
                jobs: 3,
                source: DemandSource::Statistics
            }
        );
    }

    proptest! {
        #[test]
        fn the_demand_is_never_below_the_statistics_nor_above_both(
            steps in prop::collection::vec((0..4u8, 1..5i64, 0..3u32, 0..200i64), 1..60),
        ) {
            let mut ledger = DemandLedger::new(GRACE);
            let mut now = 0;
            for (kind, number, jobs, passed) in steps {
                now += passed;
                let event = match kind {
                    0 => Event::Available(job(number)),
                    1 => Event::Assigned(job(number)),
                    _ => Event::Completed { job: job(number), result: JobResult::Succeeded, runner: None },
                };
                ledger.observe(at(now), &[event], statistics(jobs));
                let live = u32::try_from(ledger.live.len()).expect("few");
                let demand = ledger.demand(at(now));
                prop_assert!(demand.jobs >= jobs && demand.jobs <= jobs.max(live));
                prop_assert!(jobs == 0 || demand.jobs == jobs);
            }
            let later = ledger.demand(at(now + 300));
            prop_assert_eq!(later.source, DemandSource::Statistics);
        }
    }
}
