//! What was recorded, replayed under the queues that it was recorded with, goes as it went.

use std::collections::BTreeMap;

use blueproof_core::{
    action::Action,
    domain::{Actor, Cpus, Failure, FailureClass, Priority, Resources, RunId, Verdict},
    event::{Event, StopMode},
    policy::Policy,
    ports::{LoggedFact, Seq},
    scheduler::{Replay, Scheduler},
    testing::{TEAMS, finished, request, teams},
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::{
    Quantity,
    objects::{
        AdmissionFairSharing, AdmissionMode, Objects, QueueingStrategy, Requeuing, RequeuingTimestamp,
        StopPolicy, WithinClusterQueue,
    },
};
use blueproof_simulation::{Recorder, Recording};
use jiff::{SignedDuration, Timestamp};
use proptest::{collection::vec, option, prelude::*, sample::select};

fn objects() -> Objects {
    teams(2, WithinClusterQueue::LowerOrNewerEqualPriority)
}

/// The same, each with a second LocalQueue, by what each of the two had lately.
fn by_usage() -> Objects {
    let mut objects = objects();
    for team in TEAMS {
        let local = objects.local_queues[team].clone();
        objects.local_queues.insert(format!("{team}-2"), local);
        let queue = objects.cluster_queues.get_mut(team).expect("it is there");
        queue.admission_mode = AdmissionMode::UsageBasedAdmissionFairSharing;
    }
    let red = objects.cluster_queues.get_mut("red").expect("it is there");
    red.queueing_strategy = QueueingStrategy::StrictFIFO;
    objects.admission_fair_sharing = Some(AdmissionFairSharing {
        usage_half_life_time: SignedDuration::from_mins(3),
        usage_sampling_interval: SignedDuration::from_secs(20),
        resource_weights: BTreeMap::from([("memory".into(), 0.0)]),
    });
    objects
}

/// Something that happens next.
#[derive(Debug, Clone, Copy)]
enum Step {
    Ask {
        queue: usize,
        priority: i32,
    },
    /// A call of the scheduler's is carried out.
    Answer(usize),
    /// An attempt that runs comes to its end.
    End {
        which: usize,
        passes: bool,
    },
    Cancel(usize),
    /// A queue is drained, or no longer.
    Drain(bool),
    Wait(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6_usize, 0..3_i32).prop_map(|(queue, priority)| Step::Ask { queue, priority }),
        8 => any::<usize>().prop_map(Step::Answer),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(which, passes)| Step::End { which, passes }),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => any::<bool>().prop_map(Step::Drain),
        2 => (1..400_i64).prop_map(Step::Wait),
    ]
}

fn requeuing() -> impl Strategy<Value = Requeuing> {
    let timestamp = select(vec![RequeuingTimestamp::Eviction, RequeuingTimestamp::Creation]);
    (timestamp, 0..120_u32, 0..200_u32).prop_map(|(timestamp, backoff_base_seconds, backoff_max_seconds)| {
        Requeuing {
            timestamp,
            backoff_base_seconds,
            backoff_max_seconds,
            backoff_limit_count: None,
        }
    })
}

/// A scheduler with backends that do as they are told, and the log of it.
struct Story {
    scheduler: Scheduler,
    objects: Objects,
    second: i64,
    log: Vec<LoggedFact>,
    calls: Vec<Action>,
    asked: u64,
}

impl Story {
    fn new(protected_for: SignedDuration, objects: Objects) -> Self {
        let mut story = Self {
            scheduler: Scheduler::new(Policy::local(Resources::default())),
            objects: objects.clone(),
            second: 0,
            log: Vec::new(),
            calls: Vec::new(),
            asked: 0,
        };
        let mut policy = Policy::local(Resources {
            cpu: Cpus::cores(1),
            ..Resources::default()
        });
        policy.retry.protected_run_time = protected_for;
        story.tell(Event::Configured {
            policy: Box::new(policy),
        });
        story.apply(objects);
        story
    }

    fn apply(&mut self, objects: Objects) {
        self.tell(Event::QuotaApplied {
            objects: Box::new(objects),
            by: Actor::Local("admin".into()),
        });
    }

    /// Tells the scheduler an event a second after the last, and before it, at their times, whatever it waited for.
    fn tell(&mut self, event: Event) {
        self.second += 1;
        let now = Timestamp::from_second(self.second).expect("small");
        while let Some(at) = self.scheduler.next_wakeup().filter(|at| *at <= now) {
            self.log(at, Event::Tick);
        }
        self.log(now, event);
    }

    fn log(&mut self, at: Timestamp, event: Event) {
        let step = self.scheduler.handle(at, event);
        for fact in step.facts {
            let seq = Seq(self.log.len() as u64 + 1);
            self.log.push(LoggedFact { seq, at, fact });
        }
        self.calls.extend(step.actions);
        self.scheduler.check();
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Ask { queue, priority } => {
                let mut names = self.objects.local_queues.keys().cycle();
                let name = names.nth(queue).expect("there are some").clone();
                self.ask(&name, priority);
            }
            Step::Answer(which) => self.answer(which),
            Step::End { which, passes } => self.end(which, passes),
            Step::Cancel(which) => self.cancel(which),
            Step::Drain(drained) => self.drain(drained),
            Step::Wait(seconds) => self.second += seconds,
        }
    }

    fn ask(&mut self, queue: &str, priority: i32) {
        self.asked += 1;
        let mut request = request(&format!("ask-{}", self.asked), "nano-lm");
        request.queue = queue.parse().expect("a name");
        request.priority = Priority(priority);
        request.retries.infrastructure = 2;
        let limit = SignedDuration::from_secs(200);
        request.job.timeouts.execution = self.asked.is_multiple_of(2).then_some(limit);
        let request = Box::new(request);
        self.tell(Event::Requested { request });
    }

    fn answer(&mut self, which: usize) {
        let call = match self.calls.len() {
            0 => return,
            count => self.calls.remove(which % count),
        };
        match call {
            Action::Reserve(reservation) => {
                let attempt = reservation.attempt;
                let place = "here".into();
                self.tell(Event::Reserved { attempt, place });
            }
            Action::Start(start) => {
                let attempt = start.attempt;
                self.tell(Event::Started { attempt });
            }
            Action::Stop { attempt, .. } => {
                self.tell(finished(attempt, Verdict::Stopped));
            }
            Action::Release { attempt, .. } => self.tell(Event::Released { attempt }),
            Action::Observe { .. } | Action::Report { .. } => {}
        }
    }

    fn end(&mut self, which: usize, passes: bool) {
        let runs: Vec<_> = self
            .scheduler
            .runs()
            .filter(|run| run.ended_at.is_none())
            .collect();
        let live = runs.iter().filter_map(|run| run.attempts.last());
        let running: Vec<_> = live.filter(|attempt| attempt.started_at.is_some()).collect();
        if running.is_empty() {
            return;
        }
        let verdict = if passes { Verdict::Passed } else { failed() };
        let attempt = running[which % running.len()].id;
        self.tell(finished(attempt, verdict));
    }

    fn cancel(&mut self, which: usize) {
        if self.asked > 0 {
            let run = RunId(which as u64 % self.asked + 1);
            let by = Actor::Local("ada".into());
            let how = StopMode::Terminate;
            self.tell(Event::CancelRequested {
                run,
                by,
                how,
                via: None,
            });
        }
    }

    fn drain(&mut self, drained: bool) {
        let mut changed = self.objects.clone();
        if drained {
            let red = changed.cluster_queues.get_mut("red").expect("it is there");
            red.stop_policy = StopPolicy::HoldAndDrain;
        }
        self.apply(changed);
    }

    /// Returns what the log alone leads to.
    fn replay(&self) -> Scheduler {
        let mut replay = Replay::new();
        for logged in &self.log {
            replay.apply(logged.at, &logged.fact);
        }
        let again = replay.finish();
        again.check();
        assert_eq!(again.decided(), 0);
        again
    }

    fn recording(&self) -> Recording {
        let mut recorder = Recorder::default();
        for logged in &self.log {
            recorder.take_in(logged);
        }
        recorder.finish()
    }
}

fn failed() -> Verdict {
    let diagnostic = Diagnostic::error(Code::AttemptLost, "the machine is gone");
    Verdict::Failed(Box::new(Failure {
        class: FailureClass::Infrastructure,
        diagnostic,
        cell: None,
    }))
}

/// Returns how many attempts got quota, by the scheduler's own account.
fn attempts(story: &Story) -> usize {
    story.scheduler.runs().map(|run| run.attempts.len()).sum()
}

proptest! {
    #[test]
    fn the_recorded_queues_give_the_recorded_admissions(
        steps in vec(step(), 1..120),
        protected_seconds in prop_oneof![Just(0_i64), 1..300_i64],
        objects in prop_oneof![Just(objects()), Just(by_usage())],
        requeuing in option::of(requeuing()),
    ) {
        let objects = Objects { requeuing, ..objects };
        let mut story = Story::new(SignedDuration::from_secs(protected_seconds), objects);
        for step in steps {
            story.take(step);
        }
        let again = story.replay();
        prop_assert!(story.scheduler.runs().eq(again.runs()));
        prop_assert_eq!(story.scheduler.outstanding(), again.outstanding());
        let recording = story.recording();
        prop_assert_eq!(recording.admissions.len(), attempts(&story));
        let history = recording.scenario.play();
        prop_assert_eq!(history.admissions().collect::<Vec<_>>(), recording.admissions);
    }
}

#[test]
fn with_more_quota_nobody_waits() {
    let mut story = Story::new(SignedDuration::ZERO, objects());
    for _ in 0..9 {
        story.ask("blue", 0);
    }
    story.tell(Event::Tick);
    let recording = story.recording();
    assert_eq!(recording.admissions.len(), 6);
    let mut more = objects();
    let groups = &mut more
        .cluster_queues
        .get_mut("slack")
        .expect("it is there")
        .resource_groups;
    let cpu = groups[0].flavors[0]
        .resources
        .get_mut("cpu")
        .expect("it is there");
    cpu.nominal = Quantity(5000);
    let scenario = recording.under(more);
    let history = scenario.play();
    assert_eq!(history.admissions().count(), 9);
    let waits: Vec<_> = history
        .job_records
        .iter()
        .filter_map(|job_record| job_record.wait())
        .collect();
    assert_eq!(waits, [SignedDuration::ZERO; 9]);
    let blue = scenario
        .jobs
        .iter()
        .filter(|job| job.queue == "blue" && job.class == "nano-lm");
    assert_eq!(blue.count(), 9);
}
