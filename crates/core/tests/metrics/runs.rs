//! What runs took and used.

use blueproof_core::{
    domain::{Cpus, Outcome, RunId, Usage, Verdict},
    event::Event,
    figures::{Figures, RunUsage},
    metrics as m,
    testing::{outcome, teams},
};
use blueproof_queue::objects::WithinClusterQueue;
use jiff::{SignedDuration, Timestamp};

use super::{
    number,
    story::{Story, attempt},
    times,
};

#[test]
fn what_runs_could_have_used_is_the_same_in_metrics_and_reports_and_never_less_than_what_they_used() {
    // The first used what was no limit; the second left most idle.
    let usages = [(100, 9), (1000, 1)].map(|(millis, used)| Usage {
        duration: SignedDuration::from_secs(5),
        cpu_granted: Cpus::millis(millis),
        cpu_time: Some(SignedDuration::from_secs(used)),
        memory_peak: None,
        gpu: None,
    });
    let mut story = Story::new();
    story.apply(0, teams(2, WithinClusterQueue::Never));
    for (run, usage) in (1..).zip(&usages) {
        story.ask(1, run, "blue", 1);
        story.start(2, 3, attempt(run, 1));
        let outcome = Box::new(Outcome {
            usage: Some(usage.clone()),
            ..outcome(Verdict::Passed)
        });
        let attempt = attempt(run, 1);
        story.at(
            9,
            Event::Finished {
                attempt,
                outcome,
                ended_at: None,
            },
        );
    }

    let page = story.page();
    let used = number(&page, &m::RUN_CPU_SECONDS, &["nano-lm", ""]);
    let usable = number(&page, &m::RUN_ALLOCATED_CPU_SECONDS, &["nano-lm", ""]);
    assert_eq!((used, usable), (10.0, 14.0));
    let reported = Figures::of(&usages.map(|usage| RunUsage::of(&usage)));
    assert_eq!(reported.average_cpu, Some(used / usable));
}

#[test]
fn a_run_took_until_its_attempt_ended_and_not_until_somebody_looked() {
    let mut story = Story::new();
    story.apply(0, teams(2, WithinClusterQueue::Never));
    let at = |second| Timestamp::from_second(second).expect("small");
    let mut took = 0.0;
    // Of the second nobody knows when it ended but by when that was seen, and the third says what cannot be.
    for (run, told, seconds) in [(1, Some(30), 27), (2, None, 4997), (3, Some(1), 0)] {
        let begins = i64::try_from(run).expect("small") * 10_000;
        story.ask(begins + 1, run, "blue", 1);
        story.start(begins + 2, begins + 3, attempt(run, 1));
        let (attempt, outcome) = (attempt(run, 1), Box::new(outcome(Verdict::Passed)));
        let finished = Event::Finished {
            attempt,
            outcome,
            ended_at: told.map(|second| at(begins + second)),
        };
        story.at(begins + 5000, finished);
        story.at(begins + 5001, Event::Released { attempt });

        let view = story.scheduler.view(RunId(run)).expect("it is known");
        let ended_at = at(begins + 3 + seconds);
        assert_eq!(
            (view.attempts[0].ended_at, view.ended_at),
            (Some(ended_at), Some(ended_at))
        );
        took += ended_at.duration_since(at(begins + 3)).as_secs_f64();
        let page = story.page();
        assert_eq!(times(&page, &m::RUN_SECONDS, &["nano-lm", ""]).1, took);
        let green = number(&page, &m::BLUEPRINT_LAST_GREEN, &["nano-lm", ""]);
        assert_eq!(green, ended_at.duration_since(at(0)).as_secs_f64());
    }
}
