//! What runs took and used.

use blueproof_core::{
    domain::{Cpus, Outcome, Usage, Verdict},
    event::Event,
    figures::{Figures, Used},
    metrics as m,
    queue::objects::WithinClusterQueue,
    testing::{outcome, teams},
};
use jiff::SignedDuration;

use super::{
    number,
    story::{Story, attempt},
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
        story.at(9, Event::Finished { attempt, outcome });
    }

    let page = story.page();
    let used = number(&page, &m::RUN_CPU_SECONDS, &["nano-lm", ""]);
    let usable = number(&page, &m::RUN_ALLOCATED_CPU_SECONDS, &["nano-lm", ""]);
    assert_eq!((used, usable), (10.0, 14.0));
    let reported = Figures::of(&usages.map(|usage| Used::of(&usage)));
    assert_eq!(reported.average_cpu, Some(used / usable));
}
