//! Stories whose waits are known.

use blueproof_core::{
    domain::{
        Actor, AttemptId, Bytes, Cpus, Failure, FailureClass, PodSets, Priority, Resources, RunId,
        RunRequest, Verdict,
    },
    event::Event,
    fact::Fact,
    metrics::{Format, Page},
    policy::Policy,
    scheduler::{Replay, Scheduler},
    testing::{finished, request, teams},
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::objects::{LocalQueue, Objects, StopPolicy, WithinClusterQueue};
use jiff::Timestamp;

/// A scheduler, and the log of it.
pub(crate) struct Story {
    pub(crate) scheduler: Scheduler,
    facts: Vec<(Timestamp, Fact)>,
}

impl Story {
    pub(crate) fn new() -> Self {
        Self {
            scheduler: Scheduler::new(Policy::local(Resources::default())),
            facts: Vec::new(),
        }
    }

    pub(crate) fn at(&mut self, second: i64, event: Event) {
        let now = Timestamp::from_second(second).expect("small");
        let step = self.scheduler.handle(now, event);
        self.facts
            .extend(step.facts.into_iter().map(|fact| (step.at, fact)));
        self.scheduler.check();
    }

    pub(crate) fn apply(&mut self, second: i64, objects: Objects) {
        let by = Actor::Local("admin".into());
        self.at(
            second,
            Event::QuotaApplied {
                objects: Box::new(objects),
                by,
            },
        );
    }

    pub(crate) fn ask(&mut self, second: i64, run: u64, queue: &str, cores: u32) {
        self.ask_as(second, run, queue, |request| asks_for(request, cores));
    }

    pub(crate) fn ask_as(
        &mut self,
        second: i64,
        run: u64,
        queue: &str,
        change: impl FnOnce(&mut RunRequest),
    ) {
        let mut request = request(&run.to_string(), "nano-lm");
        request.queue = queue.parse().expect("a name");
        change(&mut request);
        self.at(
            second,
            Event::Requested {
                request: Box::new(request),
            },
        );
    }

    pub(crate) fn start(&mut self, placed: i64, started: i64, attempt: AttemptId) {
        let place = "here".into();
        self.at(placed, Event::Reserved { attempt, place });
        self.at(started, Event::Started { attempt });
    }

    pub(crate) fn end(&mut self, ended: i64, released: i64, attempt: AttemptId, verdict: Verdict) {
        self.at(ended, finished(attempt, verdict));
        self.at(released, Event::Released { attempt });
    }

    /// Returns the page, which a replay comes to as well.
    pub(crate) fn page(&self) -> Page {
        let mut replay = Replay::new();
        for (at, fact) in &self.facts {
            replay.apply(*at, fact);
        }
        let mut again = replay.finish();
        again.handle(self.scheduler.now(), Event::Tick);
        let page = self.scheduler.metrics();
        let text = page.render(Format::OpenMetrics);
        assert_eq!(again.metrics().render(Format::OpenMetrics), text);
        page
    }
}

pub(crate) fn cpus(cores: u32) -> Resources {
    Resources {
        cpu: Cpus::cores(cores),
        memory: Bytes(1 << 30),
        ..Resources::default()
    }
}

fn asks_for(request: &mut RunRequest, cores: u32) {
    request.job.pod_sets = PodSets::of_amounts(cpus(cores), Resources::default());
}

pub(crate) fn attempt(run: u64, number: u32) -> AttemptId {
    RunId(run).attempt(number)
}

pub(crate) fn failed() -> Verdict {
    let diagnostic = Diagnostic::error(Code::CellRaised, "a cell raised");
    Verdict::Failed(Box::new(Failure::outside_cells(
        FailureClass::Notebook,
        diagnostic,
    )))
}

/// Two teams and their slack, of a cpu each: blue borrows all, red takes its own back and has something urgent.
pub(crate) fn two_teams() -> Story {
    let mut story = Story::new();
    let mut objects = teams(1, WithinClusterQueue::LowerPriority);
    objects.priority_classes.insert("urgent".into(), 9);
    story.apply(0, objects);
    for (run, second, placed, started) in [(1, 10, 12, 15), (2, 20, 21, 24), (3, 30, 31, 34)] {
        story.ask(second, run, "blue", 1);
        story.start(placed, started, attempt(run, 1));
    }
    // Red takes its own back from the newest that borrows.
    story.ask(40, 4, "red", 1);
    story.end(45, 50, attempt(3, 1), Verdict::Stopped);
    story.start(52, 55, attempt(4, 1));
    story.end(100, 101, attempt(1, 1), Verdict::Passed);
    story.start(102, 104, attempt(3, 2));
    story.ask_as(110, 5, "red", |request| {
        asks_for(request, 1);
        request.priority = Priority(9);
    });
    story.end(112, 113, attempt(4, 1), Verdict::Stopped);
    story.start(114, 115, attempt(5, 1));
    story.end(135, 136, attempt(5, 1), failed());
    // There is no room for one more.
    story.ask(139, 6, "blue", 1);
    story
}

/// Four queues of two cpus: what slack runs on seven is to go, and into that room more is admitted than is free.
pub(crate) fn room_that_is_still_left() -> Story {
    let mut story = Story::new();
    let mut objects = teams(2, WithinClusterQueue::LowerPriority);
    let (queue, local) = (
        objects.cluster_queues["red"].clone(),
        objects.local_queues["red"].clone(),
    );
    objects.cluster_queues.insert("green".into(), queue);
    objects.local_queues.insert(
        "green".into(),
        LocalQueue {
            cluster_queue: "green".into(),
            ..local
        },
    );
    let mut held = objects.clone();
    for team in ["blue", "red", "green"] {
        held.cluster_queues
            .get_mut(team)
            .expect("it is there")
            .stop_policy = StopPolicy::Hold;
    }
    story.apply(0, held);
    story.ask(1, 1, "slack", 7);
    story.start(2, 3, attempt(1, 1));
    for (run, queue, cores) in [(2, "blue", 2), (3, "red", 1), (4, "green", 1)] {
        story.ask(90, run, queue, cores);
    }
    story.apply(100, objects);
    story
}
