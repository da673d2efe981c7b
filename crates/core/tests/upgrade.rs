//! A log is opened by a binary with other rules: what was decided stays, and only what comes later is decided otherwise.
//!
//! Rules are how inputs are understood. So a binary with other rules is one that understands the inputs of the log otherwise:
//! here priorities count the other way round, queues preempt by other rules, and what fails is tried again by others. The
//! decisions of the log are left as they are.

use std::collections::BTreeSet;

use blueproof_core::{
    action::Action,
    domain::{Actor, AttemptId, Failure, FailureClass, Priority, RunId, Verdict},
    event::{Event, StopMode},
    fact::Fact,
    scheduler::{Replay, Scheduler},
    testing::{finished, request, scenario::describe, teams},
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::objects::{ReclaimWithinCohort, WithinClusterQueue};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

/// The cores of all teams together.
const CORES: u64 = 6;

/// Something that happens.
#[derive(Debug, Clone)]
enum Happening {
    Ask {
        team: &'static str,
        priority: i32,
    },
    /// The world answers one of the calls that wait for it.
    Answer(usize),
    /// A running attempt ends.
    End {
        which: usize,
        passes: bool,
    },
    Cancel(u64),
    Wait(i64),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (prop_oneof![Just("blue"), Just("red"), Just("slack")], -2..3_i32)
            .prop_map(|(team, priority)| Happening::Ask { team, priority }),
        6 => any::<usize>().prop_map(Happening::Answer),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(which, passes)| Happening::End { which, passes }),
        1 => (1..20_u64).prop_map(Happening::Cancel),
        1 => (1..90_i64).prop_map(Happening::Wait),
    ]
}

/// A scheduler in a world that answers when it is told to.
struct World {
    scheduler: Scheduler,
    calls: Vec<Action>,
    running: BTreeSet<AttemptId>,
    asked: u32,
    second: i64,
    log: Vec<(Timestamp, Fact)>,
}

impl World {
    fn new() -> Self {
        let mut world = Self::going_on(Replay::new().finish());
        world.tell(Event::QuotaApplied {
            objects: Box::new(teams(2, WithinClusterQueue::LowerPriority)),
            by: Actor::Local("admin".into()),
        });
        world
    }

    fn going_on(scheduler: Scheduler) -> Self {
        let second = scheduler.now().as_second().max(0);
        Self {
            calls: scheduler.outstanding(),
            scheduler,
            running: BTreeSet::new(),
            asked: 0,
            second,
            log: Vec::new(),
        }
    }

    fn tell(&mut self, input: Event) {
        self.second += 1;
        let now = Timestamp::from_second(self.second).expect("small");
        let step = self.scheduler.handle(now, input);
        self.scheduler.check();
        self.log
            .extend(step.facts.into_iter().map(|fact| (step.at, fact)));
        self.calls.extend(step.actions);
        assert!(self.promised() <= CORES, "no more is promised than there is");
    }

    /// Returns how many cores attempts have of which something is left.
    fn promised(&self) -> u64 {
        let outstanding = self.scheduler.outstanding();
        let releasing = outstanding
            .iter()
            .filter(|action| matches!(action, Action::Release { .. }));
        let live = self.scheduler.runs().filter(|run| {
            let last = run.attempts.last();
            last.is_some_and(|last| last.outcome.is_none())
        });
        (releasing.count() + live.count()) as u64
    }

    fn play(&mut self, happening: &Happening) {
        match happening {
            Happening::Ask { team, priority } => self.ask(team, *priority),
            Happening::Answer(which) if !self.calls.is_empty() => {
                let call = self.calls.remove(which % self.calls.len());
                self.answer(call);
            }
            Happening::End { which, passes } if !self.running.is_empty() => {
                let attempt = *self
                    .running
                    .iter()
                    .nth(which % self.running.len())
                    .expect("there are some");
                self.running.remove(&attempt);
                self.tell(finished(attempt, if *passes { Verdict::Passed } else { lost() }));
            }
            Happening::Answer(_) | Happening::End { .. } => {}
            Happening::Cancel(run) => self.tell(Event::CancelRequested {
                run: RunId(*run),
                by: Actor::Local("ada".into()),
                how: StopMode::Terminate,
                via: None,
            }),
            Happening::Wait(seconds) => {
                self.second += seconds;
                self.tell(Event::Tick);
            }
        }
    }

    fn ask(&mut self, team: &str, priority: i32) {
        self.asked += 1;
        let mut request = request(&format!("ask-{}", self.asked), "nano-lm");
        request.queue = team.parse().expect("a name");
        request.priority = Priority(priority);
        request.retries.infrastructure = 2;
        request.job.timeouts.queue = Some(SignedDuration::from_mins(10));
        self.tell(Event::Requested {
            request: Box::new(request),
        });
    }

    fn answer(&mut self, call: Action) {
        match call {
            Action::Reserve(reservation) => self.tell(Event::Reserved {
                attempt: reservation.attempt,
                place: "here".into(),
            }),
            Action::Start(start) => {
                self.running.insert(start.attempt);
                self.tell(Event::Started {
                    attempt: start.attempt,
                });
            }
            Action::Observe { attempt, .. } => {
                self.running.insert(attempt);
            }
            Action::Stop { attempt, .. } => {
                self.running.remove(&attempt);
                self.tell(finished(attempt, Verdict::Stopped));
            }
            Action::Release { attempt, .. } => {
                self.running.remove(&attempt);
                self.tell(Event::Released { attempt });
            }
            Action::Report { view, .. } => self.tell(Event::Reported {
                run: view.id,
                attempts: u32::try_from(view.attempts.len()).expect("few"),
            }),
        }
    }

    /// Answers whatever is asked, and lets attempts pass, until nothing remains to be done.
    fn come_to_an_end(&mut self) {
        for _ in 0..5_000 {
            if self.scheduler.is_idle() {
                return;
            }
            if let Some(call) = self.calls.pop() {
                self.answer(call);
            } else if let Some(attempt) = self.running.pop_first() {
                self.tell(finished(attempt, Verdict::Passed));
            } else {
                let next = self.scheduler.next_wakeup().expect("something is still to come");
                self.second = self.second.max(next.as_second());
                self.tell(Event::Tick);
            }
        }
        panic!("it comes to no end");
    }
}

fn lost() -> Verdict {
    let diagnostic = Diagnostic::error(Code::AttemptLost, "the machine is gone");
    Verdict::Failed(Box::new(Failure {
        class: FailureClass::Infrastructure,
        diagnostic,
        cell: None,
    }))
}

/// Returns a fact as a binary with other rules understands it.
fn understood_otherwise(fact: &Fact) -> Fact {
    let mut fact = fact.clone();
    match &mut fact {
        Fact::Input(Event::Requested { request }) => {
            request.priority = Priority(-request.priority.0);
            request.retries.infrastructure = 0;
            request.job.timeouts.queue = Some(SignedDuration::from_mins(1));
        }
        Fact::Input(Event::QuotaApplied { objects, .. }) => {
            for queue in objects.cluster_queues.values_mut() {
                queue.preemption.within_cluster_queue = WithinClusterQueue::Never;
                queue.preemption.reclaim_within_cohort = ReclaimWithinCohort::Never;
            }
        }
        Fact::Input(Event::Configured { policy }) => {
            policy.retry.first_after = SignedDuration::from_secs(17);
            policy.retry.eviction_grace = SignedDuration::from_secs(3);
        }
        Fact::Input(_) | Fact::Decision(_) => {}
    }
    fact
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn other_rules_decide_otherwise_only_from_where_they_take_over(
        before in proptest::collection::vec(happening(), 1..80),
        after in proptest::collection::vec(happening(), 0..40),
    ) {
        let mut old = World::new();
        for happening in &before {
            old.play(happening);
        }

        let mut replay = Replay::new();
        for (at, fact) in &old.log {
            replay.apply(*at, &understood_otherwise(fact));
        }
        let scheduler = replay.finish();

        // Each attempt is there, once, as it was, and whatever was asked for is asked for again.
        scheduler.check();
        prop_assert_eq!(scheduler.decided(), 0);
        let attempts = |of: &Scheduler| of.runs().map(|run| (run.id, run.state, run.attempts)).collect::<Vec<_>>();
        prop_assert_eq!(attempts(&old.scheduler), attempts(&scheduler));
        prop_assert_eq!(describe(&old.scheduler.outstanding()), describe(&scheduler.outstanding()));

        // It goes on by the new rules, and nothing is started twice or promised over on the way.
        let started: BTreeSet<AttemptId> = scheduler
            .runs()
            .flat_map(|run| run.attempts)
            .filter(|attempt| attempt.started_at.is_some())
            .map(|attempt| attempt.id)
            .collect();
        let mut new = World { asked: old.asked, ..World::going_on(scheduler) };
        new.running.clone_from(&old.running);
        for happening in &after {
            new.play(happening);
        }
        new.come_to_an_end();
        let began = new.log.iter().filter_map(|(_, fact)| match fact {
            Fact::Input(Event::Started { attempt }) => Some(*attempt),
            Fact::Input(_) | Fact::Decision(_) => None,
        });
        let again: Vec<_> = began.filter(|attempt| started.contains(attempt)).collect();
        prop_assert_eq!(again, vec![]);
    }
}
