//! What one event costs the scheduler while 10, 1,000 and 100,000 runs wait, one JSON line for each figure.
//!
//! `cargo xtask bench scheduler` runs this and makes a table of it.

mod measure;

use std::{hint::black_box, time::Duration};

use blueproof_core::{
    action::Action,
    approval::{Approval, ApprovalTarget},
    domain::{
        Actor, Head, Priority, PullRequest, Repository, Resources, RunId, RunRequest, RunState, Verdict,
    },
    event::{Call, Event, StopMode},
    policy::Policy,
    scheduler::Scheduler,
    testing::{finished, isolating, request},
};
use jiff::{SignedDuration, Timestamp};
use measure::{Figure, Samples, timed};

/// How many runs wait.
const WAITING: [usize; 3] = [10, 1_000, 100_000];

const REPOSITORY: Repository = Repository::GitHub(7);

/// How often each event is measured.
const ROUNDS: usize = 2_000;

fn main() {
    for waiting in WAITING {
        measure_at(waiting);
    }
}

fn measure_at(waiting: usize) {
    let mut crowd = Crowd::of(waiting);
    let report = |name: &str, samples: &mut Samples| {
        Figure::new(name, samples).with("waiting", waiting).print();
    };
    report("an unrelated push", &mut crowd.unrelated());
    report("one request", &mut crowd.requests());
    report("one approval", &mut crowd.approvals());
    report("one end and next start", &mut crowd.turns());
    report("the last one times out", &mut crowd.timeouts());
}

/// A scheduler with one attempt that runs and many runs that wait for its quota.
struct Crowd {
    scheduler: Scheduler,
    now: Timestamp,
    asked: u64,
    running: RunId,
    /// What the last event led to.
    actions: Vec<Action>,
}

impl Crowd {
    fn of(waiting: usize) -> Self {
        let quota = request("quota", "nano-lm").job.gang();
        let mut crowd = Self {
            scheduler: Scheduler::new(policy(quota)),
            now: Timestamp::UNIX_EPOCH,
            asked: 0,
            running: RunId(1),
            actions: Vec::new(),
        };
        crowd.handle(isolating());
        for number in 0..=waiting {
            crowd.approve(number as u64);
            let request = crowd.next_request();
            crowd.ask(request);
        }
        crowd.start(RunId(1));
        crowd
    }

    /// A push to a pull request that nobody asked to test.
    fn unrelated(&mut self) -> Samples {
        let event = Event::Synchronized {
            pull_request: PullRequest {
                repository: REPOSITORY,
                number: u64::MAX,
            },
            head: Head::Commit("b".repeat(40)),
            via: None,
        };
        (0..ROUNDS).map(|_| self.handle(event.clone())).collect()
    }

    /// A request that comes to wait; it is cancelled again, so that as many wait as before.
    fn requests(&mut self) -> Samples {
        let mut samples = Samples::default();
        for _ in 0..ROUNDS {
            let request = self.next_request();
            samples.push(self.ask(request));
            let run = RunId(self.asked);
            self.cancel(run);
        }
        samples
    }

    /// An approval of a run of a pull request, by which it comes to wait for quota; it is cancelled again.
    fn approvals(&mut self) -> Samples {
        let mut samples = Samples::default();
        for round in 0..ROUNDS as u64 {
            let mut request = self.next_request();
            request.subject.repository = REPOSITORY;
            request.subject.pull_request = Some(1_000_000 + round);
            let target = ApprovalTarget::of(&request.subject);
            self.ask(request);
            let approval = Approval::new(target, "local", maintainer());
            samples.push(self.handle(Event::Approved { approval }));
            let run = RunId(self.asked);
            assert_eq!(
                self.scheduler.view(run).map(|view| view.state),
                Some(RunState::Queued)
            );
            self.cancel(run);
        }
        samples
    }

    /// An attempt that ends and is cleared away, by which the next one is promised its quota.
    fn turns(&mut self) -> Samples {
        let mut samples = Samples::default();
        for _ in 0..ROUNDS {
            let (ended, attempt) = (self.running, self.running.attempt(1));
            let request = self.next_request();
            self.ask(request);
            let finished = self.handle(finished(attempt, Verdict::Passed));
            samples.push(finished + self.handle(Event::Released { attempt }));
            let next = self.actions.iter().find_map(reserved).expect("somebody waits");
            self.handle(Event::Reported {
                run: ended,
                attempts: 1,
            });
            self.start(next);
        }
        samples
    }

    /// The last one in the queue has waited as long as it may.
    fn timeouts(&mut self) -> Samples {
        let mut samples = Samples::default();
        for _ in 0..ROUNDS / 20 {
            let mut request = self.next_request();
            request.priority = Priority(-1);
            request.job.timeouts.queue = Some(SignedDuration::from_secs(1));
            self.ask(request);
            self.now += SignedDuration::from_secs(2);
            samples.push(self.handle(Event::Tick));
            self.handle(Event::Reported {
                run: RunId(self.asked),
                attempts: 0,
            });
        }
        samples
    }

    /// Approves a pull request of which no run has come yet.
    fn approve(&mut self, number: u64) {
        let mut subject = request("approved", "nano-lm").subject;
        subject.repository = REPOSITORY;
        subject.pull_request = Some(number);
        self.handle(Event::Approved {
            approval: Approval::new(ApprovalTarget::of(&subject), "local", maintainer()),
        });
    }

    fn next_request(&mut self) -> RunRequest {
        self.asked += 1;
        request(&format!("key-{}", self.asked), "nano-lm")
    }

    /// Ends a run that never ran.
    fn cancel(&mut self, run: RunId) {
        self.handle(Event::CancelRequested {
            run,
            by: Actor::Local("ada".into()),
            how: StopMode::Terminate,
            via: None,
        });
        self.handle(Event::Reported { run, attempts: 0 });
    }

    fn ask(&mut self, request: RunRequest) -> Duration {
        self.handle(Event::Requested {
            request: Box::new(request),
        })
    }

    fn start(&mut self, run: RunId) {
        let attempt = run.attempt(1);
        self.handle(Event::Reserved {
            attempt,
            place: "here".into(),
        });
        self.handle(Event::Started { attempt });
        self.running = run;
    }

    /// Does what the engine does with an event, without the store.
    fn handle(&mut self, event: Event) -> Duration {
        let (scheduler, now, actions) = (&mut self.scheduler, self.now, &mut self.actions);
        timed(|| {
            *actions = scheduler.handle(now, event).actions;
            black_box((scheduler.take_changed(), scheduler.next_wakeup()));
        })
    }
}

fn policy(quota: Resources) -> Policy {
    let mut policy = Policy::local(quota);
    policy.gate.approvers.insert(maintainer());
    policy
}

fn maintainer() -> Actor {
    Actor::GitHub {
        id: 1,
        login: "ada".into(),
    }
}

fn reserved(action: &Action) -> Option<RunId> {
    match action.call() {
        Call::Reserve(attempt) => Some(attempt.run),
        Call::Start(_) | Call::Observe(_) | Call::Stop(_) | Call::Release(_) | Call::Report(_) => None,
    }
}
