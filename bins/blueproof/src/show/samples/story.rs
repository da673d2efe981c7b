//! What happened to runs in every kind of state. Unit tests tell it to a scheduler, integration tests to a store.

use std::collections::BTreeMap;

use blueproof_core::{
    domain::{
        Actor, Bytes, CellPlace, Cpus, Failure, FailureClass, LOCAL_CLUSTER, MetricResult, Outcome,
        Placement, PodSets, Repository, Resources, RunId, RunRequest, Usage, Verdict,
    },
    event::Event,
    policy::Policy,
    testing::{ask_for_commit, outcome, request},
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::{SignedDuration, Timestamp};

/// Returns a time `minutes` after the story begins.
pub(crate) fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + minutes * 60).expect("a time of our days")
}

/// Returns what happened: r-1 passes, r-2 fails with a hostile message, r-3 runs, r-4 waits for quota, r-5 of a pull
/// request waits for approval, r-6 asks for more than there is.
pub(crate) fn story() -> Vec<(Timestamp, Event)> {
    let quota = resources(2);
    let mut story = vec![(
        at(0),
        Event::Configured {
            policy: Box::new(Policy::local(quota)),
        },
    )];
    add_attempt(&mut story, 1, 1, asks("a", "nano-lm", 2));
    story.push((at(3), finished(1, passed())));
    add_end(&mut story, 1, 3);
    add_attempt(&mut story, 2, 4, asks("b", "jax-mnist", 1));
    story.push((at(5), finished(2, failed())));
    add_end(&mut story, 2, 5);
    let mut gpu = asks("c", "small-gpt", 2);
    gpu.subject.profile = Some("smoke".parse().expect("a name"));
    add_attempt(&mut story, 3, 50, gpu);
    story.push((at(55), requested(asks("d", "sharded-gpt", 1))));
    let mut change = asks("e", "qwen2.5-alpaca", 1);
    change.subject.repository = Repository::GitHub(3067);
    change.subject.pull_request = Some(12);
    ask_for_commit(&mut change, "1a2b3c4".repeat(6)[..40].into());
    change.requested_by = Actor::GitHub {
        id: 7,
        login: "ada".into(),
    };
    story.push((at(57), requested(change)));
    story.push((at(58), requested(asks("f", "too-much", 64))));
    let reported = Event::Reported {
        run: RunId(6),
        attempts: 0,
    };
    story.push((at(58), reported));
    story
}

fn resources(cores: u32) -> Resources {
    Resources {
        cpu: Cpus::cores(cores),
        memory: Bytes(u64::from(cores) << 30),
        ..Resources::default()
    }
}

fn asks(key: &str, blueprint: &str, cores: u32) -> RunRequest {
    let mut request = request(key, blueprint);
    request.job.pod_sets = PodSets::of_amounts(resources(cores), Resources::default());
    request
}

fn requested(request: RunRequest) -> Event {
    Event::Requested {
        request: Box::new(request),
    }
}

/// Adds a run from its request until its attempt runs.
fn add_attempt(story: &mut Vec<(Timestamp, Event)>, run: u64, minute: i64, request: RunRequest) {
    let attempt = RunId(run).attempt(1);
    let place = Placement::on(LOCAL_CLUSTER);
    story.push((at(minute), requested(request)));
    story.push((at(minute), Event::Reserved { attempt, place }));
    story.push((at(minute), Event::Started { attempt }));
}

/// Adds what follows the end of an attempt.
fn add_end(story: &mut Vec<(Timestamp, Event)>, run: u64, minute: i64) {
    let attempt = RunId(run).attempt(1);
    story.push((at(minute), Event::Released { attempt }));
    story.push((
        at(minute),
        Event::Reported {
            run: RunId(run),
            attempts: 1,
        },
    ));
}

fn finished(run: u64, outcome: Outcome) -> Event {
    Event::Finished {
        attempt: RunId(run).attempt(1),
        outcome: Box::new(outcome),
        ended_at: None,
    }
}

fn passed() -> Outcome {
    let loss = MetricResult {
        last: Some(0.352),
        count: 400,
        trace: vec![4.0, 2.5, 1.5, 0.9, 0.6, 0.45, 0.38, 0.352],
    };
    let speed = MetricResult {
        last: Some(31_250.0),
        count: 1,
        trace: vec![31_250.0],
    };
    Outcome {
        usage: Some(Usage {
            duration: SignedDuration::from_secs(92),
            cpu_granted: Cpus::cores(2),
            cpu_time: Some(SignedDuration::from_millis(151_240)),
            memory_peak: Some(Bytes(118 << 20)),
            gpu: None,
        }),
        metrics: BTreeMap::from([("final_loss".into(), loss), ("tokens_per_s".into(), speed)]),
        ..outcome(Verdict::Passed)
    }
}

fn failed() -> Outcome {
    let message =
        "URLError: Name or service not known\u{1b}[2J in load_mnist(\"https://storage.googleapis.com/x\")";
    let diagnostic = Diagnostic::error(Code::CellRaised, message)
        .because("urlretrieve failed\n::set-env name=PATH::/evil")
        .hint("allow the host under `spec.network.hosts`");
    let cell = CellPlace {
        cell: 11,
        line: Some(3),
        source: Some("    load_mnist()".into()),
        ..CellPlace::default()
    };
    outcome(Verdict::Failed(Box::new(Failure {
        class: FailureClass::Notebook,
        diagnostic,
        cell: Some(cell),
    })))
}
