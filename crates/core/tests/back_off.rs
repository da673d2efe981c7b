//! What failed for no fault of its own is tried again after a pause, in which it holds nobody up.

use blueproof_core::{
    domain::{
        Actor, AttemptId, Bytes, Cpus, Ending, Failure, FailureClass, Resources, RunId, RunState, Verdict,
    },
    event::Event,
    pending::PendingReason,
    policy::Policy,
    scheduler::Scheduler,
    testing::{finished, request, reserved},
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::objects::{Requeuing, RequeuingTimestamp};
use jiff::{SignedDuration, Timestamp};

/// A scheduler with room for one, and the time.
struct Story {
    scheduler: Scheduler,
    policy: Policy,
    second: i64,
    asked: u64,
}

impl Story {
    fn new(requeuing: Option<Requeuing>) -> Self {
        let mut policy = Policy::local(Resources {
            cpu: Cpus::cores(1),
            memory: Bytes(1 << 30),
            ..Resources::default()
        });
        policy.retry.first_after = SignedDuration::from_secs(10);
        let mut story = Self {
            scheduler: Scheduler::new(policy.clone()),
            policy,
            second: 0,
            asked: 0,
        };
        let mut objects = story.policy.default_objects();
        objects.requeuing = requeuing;
        let (objects, by) = (Box::new(objects), Actor::Local("admin".into()));
        story.tell(Event::QuotaApplied { objects, by });
        story
    }

    fn without_pauses() -> Self {
        Self::new(Some(Requeuing {
            backoff_base_seconds: 0,
            ..Requeuing::default()
        }))
    }

    fn tell(&mut self, event: Event) -> Vec<AttemptId> {
        self.second += 1;
        self.at(self.second, event)
    }

    fn at(&mut self, second: i64, event: Event) -> Vec<AttemptId> {
        self.second = second;
        let actions = self.scheduler.handle(at(second), event).actions;
        self.scheduler.check();
        reserved(&actions)
    }

    fn ask(&mut self) -> (RunId, Vec<AttemptId>) {
        self.ask_with(9)
    }

    fn ask_with(&mut self, retries: u32) -> (RunId, Vec<AttemptId>) {
        self.asked += 1;
        let mut request = request(&format!("ask-{}", self.asked), "nano-lm");
        request.retries.infrastructure = retries;
        let request = Box::new(request);
        (RunId(self.asked), self.tell(Event::Requested { request }))
    }

    /// Takes an attempt to where it runs, and lets its machine fail; who is reserved for then is returned.
    fn fail(&mut self, attempt: AttemptId) -> Vec<AttemptId> {
        self.fail_by(attempt, Code::AttemptLost)
    }

    fn fail_by(&mut self, attempt: AttemptId, code: Code) -> Vec<AttemptId> {
        let failure = Failure {
            class: FailureClass::Infrastructure,
            diagnostic: Diagnostic::error(code, "the machine is gone"),
            cell: None,
        };
        let place = "here".into();
        self.tell(Event::Reserved { attempt, place });
        self.tell(Event::Started { attempt });
        self.tell(finished(attempt, Verdict::Failed(Box::new(failure))));
        self.tell(Event::Released { attempt })
    }

    fn pass(&mut self, attempt: AttemptId) -> Vec<AttemptId> {
        let place = "here".into();
        self.tell(Event::Reserved { attempt, place });
        self.tell(Event::Started { attempt });
        self.tell(finished(attempt, Verdict::Passed));
        self.tell(Event::Released { attempt })
    }

    fn state(&self, run: RunId) -> RunState {
        self.scheduler.view(run).expect("it is known").state
    }

    fn backs_off_until(&self, run: RunId) -> Option<Timestamp> {
        match self.scheduler.why(run) {
            Some(PendingReason::BackingOff(back_off)) => Some(back_off.until),
            _ => None,
        }
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("small")
}

#[test]
fn one_that_backs_off_holds_nobody_up_though_nobody_may_overtake() {
    let mut story = Story::new(None);
    let (first, reserved) = story.ask();
    assert_eq!(reserved, [first.attempt(1)]);
    let (second, reserved) = story.ask();
    assert_eq!(reserved, []);

    assert_eq!(story.fail(first.attempt(1)), [second.attempt(1)]);
    // It failed a second before it was cleared away.
    let until = at(story.second - 1 + 10);
    assert_eq!(story.backs_off_until(first), Some(until));
    assert_eq!(story.scheduler.next_wakeup(), Some(until));
    assert_eq!(story.state(first), RunState::Queued);
    assert_eq!(story.scheduler.unblocked_by(first), []);

    assert_eq!(
        story.pass(second.attempt(1)),
        [],
        "there is room, and it is too early"
    );
    let until = until.as_second();
    assert_eq!(story.at(until - 1, Event::Tick), []);
    assert_eq!(story.at(until, Event::Tick), [first.attempt(2)]);
}

#[test]
fn each_further_pause_is_twice_as_long_until_there_were_enough() {
    let mut story = Story::new(Some(Requeuing {
        backoff_base_seconds: 60,
        backoff_max_seconds: 100,
        backoff_limit_count: Some(3),
        ..Requeuing::default()
    }));
    let (run, _) = story.ask();
    for (attempt, pause) in [(1, 60), (2, 100), (3, 100)] {
        assert_eq!(story.fail(run.attempt(attempt)), []);
        let until = story.second - 1 + pause;
        assert_eq!(story.backs_off_until(run), Some(at(until)));
        assert_eq!(story.at(until, Event::Tick), [run.attempt(attempt + 1)]);
    }
    assert_eq!(story.fail(run.attempt(4)), []);
    assert_eq!(story.state(run), RunState::Ended(Ending::InfrastructureFailed));
    let failure = story.scheduler.view(run).and_then(|view| view.failure);
    let told = failure.expect("it failed").diagnostic;
    assert_eq!(told.code, Code::AttemptLost);
    assert_eq!(
        told.causes,
        ["RequeuingLimitExceeded: a run is requeued 3 times at most (requeuingStrategy.backoffLimitCount)"]
    );
}

#[test]
fn one_whose_agent_is_killed_each_time_is_tried_again_three_times_at_most_and_says_so() {
    let mut story = Story::without_pauses();
    let (run, _) = story.ask();
    for attempt in 1..=3 {
        let next = story.fail_by(run.attempt(attempt), Code::AgentLost);
        assert_eq!(next, [run.attempt(attempt + 1)]);
    }
    assert_eq!(story.fail_by(run.attempt(4), Code::AgentLost), []);
    assert_eq!(story.state(run), RunState::Ended(Ending::InfrastructureFailed));
    let failure = story.scheduler.view(run).and_then(|view| view.failure);
    assert_eq!(
        failure.expect("it failed").diagnostic.causes,
        ["a run whose agent is killed is tried again 3 times at most: most likely its own notebook kills it"]
    );
}

#[test]
fn an_agent_that_was_killed_in_every_attempt_is_said_to_be_killed_by_its_own_notebook() {
    let retried = |codes: [Code; 3]| {
        let mut story = Story::without_pauses();
        let (run, _) = story.ask_with(2);
        for (attempt, code) in (1..).zip(codes) {
            story.fail_by(run.attempt(attempt), code);
        }
        assert_eq!(story.state(run), RunState::Ended(Ending::InfrastructureFailed));
        let failure = story.scheduler.view(run).and_then(|view| view.failure);
        failure.expect("it failed").diagnostic.causes
    };
    assert_eq!(
        retried([Code::AgentLost; 3]),
        ["the agent was killed in each of 3 attempts: most likely its own notebook kills it"]
    );
    let once = retried([Code::AttemptLost, Code::AttemptLost, Code::AgentLost]);
    assert!(once.is_empty(), "{once:?}");
}

#[test]
fn only_killed_agents_count_against_their_limit_and_all_of_them_do() {
    let mut story = Story::without_pauses();
    let (run, _) = story.ask();
    let codes = [Code::AttemptLost, Code::AttemptLost, Code::AttemptLost];
    let killed = [
        Code::AgentLost,
        Code::AgentLost,
        Code::AttemptLost,
        Code::AgentLost,
    ];
    for (attempt, code) in (1..).zip(codes.into_iter().chain(killed)) {
        let next = story.fail_by(run.attempt(attempt), code);
        assert_eq!(next, [run.attempt(attempt + 1)], "after attempt {attempt}");
    }
    assert_eq!(story.fail_by(run.attempt(8), Code::AgentLost), []);
    assert_eq!(story.state(run), RunState::Ended(Ending::InfrastructureFailed));
}

#[test]
fn a_log_from_before_killed_agents_had_a_limit_replays_as_it_was_then() {
    let mut story = Story::without_pauses();
    let mut policy = serde_json::to_value(&story.policy).expect("it is written");
    let retry = policy["retry"].as_object_mut().expect("it has rules of retries");
    assert!(retry.remove("killedAgents").is_some());
    let policy = serde_json::from_value(policy).expect("it is read");
    story.tell(Event::Configured { policy });
    let (run, _) = story.ask();
    for attempt in 1..=4 {
        let next = story.fail_by(run.attempt(attempt), Code::AgentLost);
        assert_eq!(next, [run.attempt(attempt + 1)]);
    }
    story.pass(run.attempt(5));
    assert_eq!(story.state(run), RunState::Ended(Ending::Passed));
}

#[test]
fn one_that_had_all_the_retries_that_it_asked_for_has_not_exceeded_the_limit() {
    let mut story = Story::new(Some(Requeuing {
        backoff_base_seconds: 0,
        backoff_limit_count: Some(9),
        ..Requeuing::default()
    }));
    let (run, _) = story.ask();
    for attempt in 1..=9 {
        assert_eq!(story.fail(run.attempt(attempt)), [run.attempt(attempt + 1)]);
    }
    assert_eq!(story.fail(run.attempt(10)), []);
    let failure = story.scheduler.view(run).and_then(|view| view.failure);
    assert_eq!(failure.expect("it failed").diagnostic.causes, [""; 0]);
}

#[test]
fn one_that_failed_is_as_old_as_its_failure_or_as_its_creation() {
    use RequeuingTimestamp::{Creation, Eviction};
    for timestamp in [Eviction, Creation] {
        let mut story = Story::new(Some(Requeuing {
            timestamp,
            backoff_base_seconds: 5,
            ..Requeuing::default()
        }));
        let (failing, _) = story.ask();
        let (holding, waiting) = (story.ask().0, story.ask().0);
        assert_eq!(story.fail(failing.attempt(1)), [holding.attempt(1)]);
        story.at(100, Event::Tick);
        assert_eq!(story.backs_off_until(failing), None);
        let next = match timestamp {
            Eviction => waiting.attempt(1),
            Creation => failing.attempt(2),
        };
        assert_eq!(story.pass(holding.attempt(1)), [next], "{timestamp:?}");
    }
}

#[test]
fn one_that_backs_off_does_so_in_other_queues_too() {
    let mut story = Story::new(None);
    let (run, _) = story.ask();
    story.fail(run.attempt(1));
    let until = story.backs_off_until(run).expect("it backs off");
    let mut objects = story.policy.default_objects();
    let queue = objects.cluster_queues.remove("local").expect("it is there");
    objects.cluster_queues.insert("other".into(), queue);
    objects
        .local_queues
        .get_mut("local")
        .expect("it is there")
        .cluster_queue = "other".into();
    let (objects, by) = (Box::new(objects), Actor::Local("admin".into()));
    assert_eq!(story.tell(Event::QuotaApplied { objects, by }), []);
    assert_eq!(story.backs_off_until(run), Some(until));
    assert_eq!(story.at(until.as_second(), Event::Tick), [run.attempt(2)]);
}
