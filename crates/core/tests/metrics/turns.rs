//! Who goes next and who goes back and forth: usage, and reversals.

use std::collections::BTreeMap;

use blueproof_core::{domain::Verdict, event::Event, metrics as m, testing::teams};
use blueproof_queue::{
    Quantity,
    objects::{
        AdmissionFairSharing, AdmissionMode, LocalQueue, Objects, StopPolicy, Weight, WithinClusterQueue,
    },
};
use jiff::SignedDuration;

use super::{
    number,
    story::{Story, attempt},
};

/// Gives a team so many of the three cores.
fn give(objects: &mut Objects, team: &str, cores: i64) {
    let queue = objects.cluster_queues.get_mut(team).expect("it is there");
    let resources = &mut queue.resource_groups[0].flavors[0].resources;
    resources.get_mut("cpu").expect("it is there").nominal = Quantity(cores * 1000);
}

#[test]
fn one_who_has_the_one_evicted_for_whom_it_went_is_counted_as_a_reversal() {
    let mut story = Story::new();
    let mut objects = teams(1, WithinClusterQueue::Never);
    story.apply(0, objects.clone());
    for (run, second) in [(1, 10), (2, 20), (3, 30)] {
        story.ask(second, run, "blue", 1);
        story.start(second + 1, second + 2, attempt(run, 1));
    }
    // Red takes its own back from the newest that borrows.
    story.ask(40, 4, "red", 1);
    story.end(45, 50, attempt(3, 1), Verdict::Stopped);
    story.start(51, 52, attempt(4, 1));
    let page = story.page();
    assert_eq!(
        number(&page, &m::PREEMPTED_WORKLOADS, &["red", "InCohortReclamation"]),
        1.0
    );
    for queue in ["blue", "red", "slack"] {
        assert_eq!(number(&page, &m::PREEMPTION_REVERSALS, &[queue]), 0.0);
    }

    // From now on all is blue's, but red's is protected for a while.
    give(&mut objects, "red", 0);
    give(&mut objects, "slack", 0);
    give(&mut objects, "blue", 3);
    story.apply(60, objects);
    assert_eq!(number(&story.page(), &m::PREEMPTION_REVERSALS, &["blue"]), 0.0);
    story.at(3600, Event::Tick);
    let page = story.page();
    assert_eq!(
        number(&page, &m::PREEMPTED_WORKLOADS, &["blue", "InCohortReclamation"]),
        1.0
    );
    assert_eq!(number(&page, &m::PREEMPTION_REVERSALS, &["blue"]), 1.0);
}

#[test]
fn usage_is_told_as_of_the_last_event_where_it_counts() {
    let mut story = Story::new();
    let mut objects = teams(2, WithinClusterQueue::Never);
    let blue = objects.cluster_queues.get_mut("blue").expect("it is there");
    blue.admission_mode = AdmissionMode::UsageBasedAdmissionFairSharing;
    let last = LocalQueue {
        cluster_queue: "blue".into(),
        stop_policy: StopPolicy::None,
        weight: Weight(0.0),
        ..LocalQueue::default()
    };
    objects.local_queues.insert("last".into(), last);
    objects.admission_fair_sharing = Some(AdmissionFairSharing {
        usage_half_life_time: SignedDuration::from_secs(100),
        usage_sampling_interval: SignedDuration::ZERO,
        resource_weights: BTreeMap::from([("memory".into(), 0.0)]),
    });
    story.apply(0, objects.clone());
    story.ask(10, 1, "blue", 2);
    let usage = &m::LOCAL_QUEUE_ADMISSION_FAIR_SHARING_USAGE;
    assert_eq!(number(&story.page(), usage, &["blue", "", "blue"]), 0.0);
    story.start(11, 12, attempt(1, 1));

    story.end(109, 110, attempt(1, 1), Verdict::Passed);
    let page = story.page();
    assert_eq!(number(&page, usage, &["blue", "", "blue"]), 1.0, "half of two");
    assert_eq!(number(&page, usage, &["last", "", "blue"]), f64::INFINITY);
    assert_eq!(page.series_of(usage).count(), 2, "red's order is by age");

    // No queue had anything to decide meanwhile.
    story.at(210, Event::Tick);
    assert_eq!(number(&story.page(), usage, &["blue", "", "blue"]), 0.5);
}
