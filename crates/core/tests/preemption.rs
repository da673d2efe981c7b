//! Two teams and a slack queue: what one team borrows, it gives back when the other wants it, and comes back in its turn.

use blueproof_core::{
    action::Action,
    domain::{
        Actor, AttemptId, Cpus, Ending, FailureClass, Priority, RequestKey, Resources, RunId, RunRequest,
        RunState, TimeLimit, Verdict,
    },
    event::{Event, StopMode},
    pending::{PendingReason, RunRemedy},
    policy::Policy,
    scheduler::Scheduler,
    testing::{ask_for_cpu, finished, request, reserved, teams},
};
use blueproof_queue::{
    EvictionReason,
    objects::{Objects, StopPolicy, WithinClusterQueue},
};
use jiff::{SignedDuration, Timestamp};

fn objects() -> Objects {
    teams(1, WithinClusterQueue::LowerPriority)
}

/// A scheduler, and the time.
struct Story {
    scheduler: Scheduler,
    second: i64,
    asked: usize,
}

impl Story {
    fn new() -> Self {
        let policy = Policy::local(Resources {
            cpu: Cpus::cores(3),
            ..Resources::default()
        });
        let mut story = Self {
            scheduler: Scheduler::new(policy),
            second: 0,
            asked: 0,
        };
        let objects = Box::new(objects());
        let by = Actor::Local("admin".into());
        story.tell(Event::QuotaApplied { objects, by });
        story
    }

    fn tell(&mut self, event: Event) -> Vec<Action> {
        self.second += 1;
        let actions = self.scheduler.handle(self.now(), event).actions;
        self.scheduler.check();
        actions
    }

    fn ask(&mut self, queue: &str, priority: i32) -> (RunId, Vec<Action>) {
        self.ask_for(queue, |request| request.priority = Priority(priority))
    }

    fn ask_for(&mut self, queue: &str, change: impl FnOnce(&mut RunRequest)) -> (RunId, Vec<Action>) {
        self.asked += 1;
        let mut request = request(&format!("ask-{}", self.asked), "nano-lm");
        request.queue = queue.parse().expect("a name");
        change(&mut request);
        let request = Box::new(request);
        (RunId(self.asked as u64), self.tell(Event::Requested { request }))
    }

    /// Asks for a run, and takes its attempt to where it runs.
    fn run(&mut self, queue: &str) -> RunId {
        let (run, actions) = self.ask(queue, 0);
        let attempt = run.attempt(1);
        assert_eq!(reserved(&actions), [attempt]);
        self.start(attempt);
        run
    }

    fn start(&mut self, attempt: AttemptId) {
        let place = "here".into();
        self.tell(Event::Reserved { attempt, place });
        self.tell(Event::Started { attempt });
        assert_eq!(self.state(attempt.run), RunState::Running);
    }

    fn stopped(&mut self, attempt: AttemptId) {
        self.tell(finished(attempt, Verdict::Stopped));
    }

    /// Applies queues of which all are as before but blue, which has this stop policy.
    fn stop_blue(&mut self, stop_policy: StopPolicy) -> Vec<Action> {
        let mut objects = objects();
        let blue = objects.cluster_queues.get_mut("blue").expect("it is there");
        blue.stop_policy = stop_policy;
        self.apply(objects)
    }

    fn apply(&mut self, objects: Objects) -> Vec<Action> {
        let by = Actor::Local("admin".into());
        let objects = Box::new(objects);
        self.tell(Event::QuotaApplied { objects, by })
    }

    /// Evicts blue's one run, and lets it come back.
    fn drain_and_go_on(&mut self, attempt: AttemptId) -> Vec<Action> {
        self.stop_blue(StopPolicy::HoldAndDrain);
        self.stopped(attempt);
        self.tell(Event::Released { attempt });
        self.stop_blue(StopPolicy::None)
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.second).expect("small")
    }

    fn state(&self, run: RunId) -> RunState {
        self.scheduler.view(run).expect("it is known").state
    }
}

fn stop(run: RunId, how: StopMode) -> Action {
    stop_of(run.attempt(1), how)
}

fn stop_of(attempt: AttemptId, how: StopMode) -> Action {
    Action::Stop {
        attempt,
        cluster: Default::default(),
        how,
    }
}

#[test]
fn a_borrower_gives_back_what_another_team_wants_and_comes_back_in_its_turn() {
    let mut story = Story::new();
    let blue: Vec<RunId> = (0..3).map(|_| story.run("blue")).collect();
    let (red, actions) = story.ask("red", 0);

    // The newest borrower goes, and the newcomer waits until it is gone.
    assert_eq!(actions, [stop(blue[2], StopMode::Interrupt)]);
    assert!(matches!(
        story.scheduler.why(red),
        Some(PendingReason::WaitingForPreemptedWorkloads(_))
    ));
    assert_eq!(story.scheduler.unblocked_by(red), [RunRemedy::Time]);
    let view = story.scheduler.view(blue[2]).expect("it is known");
    let eviction = view.attempts[0].eviction.clone().expect("it was evicted");
    assert_eq!(
        (eviction.reason, eviction.by),
        (EvictionReason::InCohortReclamation.into(), Some(red))
    );

    story.stopped(blue[2].attempt(1));
    assert_eq!(story.state(blue[2]), RunState::Queued);
    let actions = story.tell(Event::Released {
        attempt: blue[2].attempt(1),
    });
    assert_eq!(reserved(&actions), [red.attempt(1)]);

    // It waits for any of the others to end, and is then tried once more.
    let Some(PendingReason::WaitingForQuota(_)) = story.scheduler.why(blue[2]) else {
        panic!("{:?}", story.scheduler.why(blue[2]));
    };
    assert_eq!(
        story.scheduler.unblocked_by(blue[2])[0],
        RunRemedy::Ends {
            runs: vec![blue[0]],
            pending: Vec::new(),
        }
    );
    let attempt = blue[0].attempt(1);
    story.tell(finished(attempt, Verdict::Passed));
    let actions = story.tell(Event::Released { attempt });
    assert_eq!(reserved(&actions), [blue[2].attempt(2)]);
}

#[test]
fn one_that_does_not_heed_an_interrupt_is_ended_after_its_grace() {
    let mut story = Story::new();
    let blue: Vec<RunId> = (0..3).map(|_| story.run("blue")).collect();
    story.ask("red", 0);
    story.second += 40;
    assert_eq!(story.tell(Event::Tick), [stop(blue[2], StopMode::Terminate)]);
}

#[test]
fn one_that_is_cancelled_while_it_gives_way_does_not_come_back() {
    let mut story = Story::new();
    let blue: Vec<RunId> = (0..3).map(|_| story.run("blue")).collect();
    story.ask("red", 0);
    let by = Actor::Local("ada".into());
    let how = StopMode::Terminate;
    let run = blue[2];
    story.tell(Event::CancelRequested {
        run,
        by,
        how,
        via: None,
    });
    story.stopped(run.attempt(1));
    assert_eq!(story.state(run), RunState::Ended(Ending::Cancelled));
}

#[test]
fn one_that_passes_although_it_was_to_give_way_has_passed() {
    let mut story = Story::new();
    let blue: Vec<RunId> = (0..3).map(|_| story.run("blue")).collect();
    story.ask("red", 0);
    let attempt = blue[2].attempt(1);
    story.tell(finished(attempt, Verdict::Passed));
    assert_eq!(story.state(blue[2]), RunState::Ended(Ending::Passed));
}

#[test]
fn a_queue_that_is_drained_gives_up_what_it_runs_and_goes_on_later() {
    let mut story = Story::new();
    let run = story.run("blue");
    let actions = story.stop_blue(StopPolicy::HoldAndDrain);
    assert_eq!(actions, [stop(run, StopMode::Interrupt)]);
    story.stopped(run.attempt(1));
    let attempt = run.attempt(1);
    story.tell(Event::Released { attempt });
    assert!(matches!(
        story.scheduler.why(run),
        Some(PendingReason::Suspended(_))
    ));
    let actions = story.stop_blue(StopPolicy::None);
    assert_eq!(reserved(&actions), [run.attempt(2)]);
}

#[test]
fn a_local_queue_that_is_drained_gives_up_what_it_runs_and_goes_on_later() {
    let mut story = Story::new();
    let run = story.run("blue");
    let mut drained = objects();
    let blue = drained.local_queues.get_mut("blue").expect("it is there");
    blue.stop_policy = StopPolicy::HoldAndDrain;
    assert_eq!(story.apply(drained), [stop(run, StopMode::Interrupt)]);
    let view = story.scheduler.view(run).expect("it is known");
    let eviction = view.attempts[0].eviction.clone().expect("it was evicted");
    assert_eq!(
        (eviction.reason, eviction.by),
        (EvictionReason::LocalQueueStopped.into(), None)
    );
    let attempt = run.attempt(1);
    story.stopped(attempt);
    story.tell(Event::Released { attempt });
    assert!(matches!(
        story.scheduler.why(run),
        Some(PendingReason::Suspended(_))
    ));
    assert_eq!(reserved(&story.apply(objects())), [run.attempt(2)]);
}

#[test]
fn what_an_evicted_attempt_had_counts_toward_the_execution_time() {
    let mut story = Story::new();
    let limit = SignedDuration::from_secs(30);
    let (run, _) = story.ask_for("blue", |request| request.job.timeouts.execution = Some(limit));
    let first = story.now();
    assert_eq!(story.scheduler.next_wakeup(), Some(first + limit));
    story.start(run.attempt(1));
    let actions = story.drain_and_go_on(run.attempt(1));
    assert_eq!(reserved(&actions), [run.attempt(2)]);

    // It had its quota until it was cleared away, a second before the queue went on.
    let had = story.now().duration_since(first) - SignedDuration::from_secs(1);
    let left = limit - had;
    let end = story.now() + left;
    assert_eq!(story.scheduler.next_wakeup(), Some(end));
    story.start(run.attempt(2));
    story.second = end.as_second() - 2;
    assert_eq!(story.tell(Event::Tick), []);
    let attempt = run.attempt(2);
    assert_eq!(story.tell(Event::Tick), [stop_of(attempt, StopMode::Interrupt)]);

    story.stopped(attempt);
    assert_eq!(story.state(run), RunState::Ended(Ending::TimedOut));
    let failure = story.scheduler.view(run).and_then(|view| view.failure);
    let failure = failure.expect("it says why");
    assert_eq!(failure.class, FailureClass::Timeout(TimeLimit::Execution));
    assert_eq!(failure.diagnostic.causes, ["MaximumExecutionTimeExceeded"]);

    // Whoever asks once more begins anew.
    story.tell(Event::Released { attempt });
    let (key, by) = (RequestKey("again".into()), Actor::Local("ada".into()));
    let actions = story.tell(Event::RetryRequested { key, run, by });
    assert_eq!(reserved(&actions), [run.attempt(3)]);
    assert_eq!(story.scheduler.next_wakeup(), Some(story.now() + limit));
}

#[test]
fn a_run_whose_queue_is_not_there_waits_for_it() {
    let mut story = Story::new();
    let (run, actions) = story.ask("green", 0);
    assert_eq!(actions, []);
    assert!(matches!(
        story.scheduler.why(run),
        Some(PendingReason::Misconfigured(_))
    ));
    let mut with_green = objects();
    let green = with_green.local_queues["blue"].clone();
    with_green.local_queues.insert("green".into(), green);
    let objects = Box::new(with_green);
    let by = Actor::Local("admin".into());
    let actions = story.tell(Event::QuotaApplied { objects, by });
    assert_eq!(reserved(&actions), [run.attempt(1)]);
}

#[test]
fn a_run_that_asks_for_more_than_was_applied_waits_as_in_kueue_and_is_admitted_once_there_is_more() {
    let mut story = Story::new();
    let four = Cpus::cores(4);
    let (run, _) = story.ask_for("blue", |request| ask_for_cpu(request, four));
    let why = story.scheduler.why(run).expect("it waits");
    assert!(matches!(why, PendingReason::ExceedsMaxQuota(_)), "{why:?}");
    assert_eq!(
        why.to_string(),
        "asks for 4 cpu, 1Mi memory, more than its queue could ever have: 3 cpu, 3Ti memory"
    );
    let mut objects = objects();
    for queue in objects.cluster_queues.values_mut() {
        for quota in queue.resource_groups[0].flavors[0].resources.values_mut() {
            quota.nominal = quota.nominal.times(2);
        }
    }
    let by = Actor::Local("admin".into());
    let objects = Box::new(objects);
    assert_eq!(
        reserved(&story.tell(Event::QuotaApplied { objects, by })),
        [run.attempt(1)]
    );
}
