//! The retry machine by AppWrapper's transitions, one row each, and by what was decided otherwise.

mod annotations;

use super::*;

const NODE: &str = "node-1";
const GPU: &str = "nvidia.com/gpu";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("small")
}

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

/// Two components with two pods of these phases.
fn pods(phases: &[PodPhase]) -> ObservedState {
    let pods = phases.iter().map(|phase| Pod {
        phase: *phase,
        node: Some(NODE.into()),
        resources: [GPU.to_owned()].into(),
        exit_codes: Vec::new(),
    });
    ObservedState {
        wanted: DesiredState::Running,
        components: vec![Component::Deployed; 2],
        expected_pods: 2,
        pods: pods.collect(),
        ..ObservedState::default()
    }
}

fn components(second: Component) -> ObservedState {
    ObservedState {
        components: vec![Component::Deployed, second],
        ..pods(&[PodPhase::Running; 2])
    }
}

fn gone() -> ObservedState {
    ObservedState {
        components: vec![Component::Missing; 2],
        ..pods(&[])
    }
}

fn suspended(seen: ObservedState) -> ObservedState {
    ObservedState {
        wanted: DesiredState::Suspended,
        ..seen
    }
}

fn failed_with(exit_codes: &[i32]) -> ObservedState {
    let mut seen = pods(&[PodPhase::Running, PodPhase::Failed]);
    seen.pods[1].exit_codes = exit_codes.to_vec();
    seen
}

fn on_bad_node(phase: PodPhase) -> ObservedState {
    ObservedState {
        no_execute: [(NODE.to_owned(), [GPU.to_owned()].into())].into(),
        ..pods(&[phase; 2])
    }
}

fn terms() -> FaultTolerance {
    FaultTolerance {
        terminal_exit_codes: [2].into_iter().collect(),
        deletion_delay: seconds(600),
        ..FaultTolerance::default()
    }
}

/// A machine, its terms, and what was the time when it got where it is.
struct Story {
    machine: Machine,
    terms: FaultTolerance,
    now: i64,
}

impl Story {
    fn new() -> Self {
        Self {
            machine: Machine::default(),
            terms: terms(),
            now: 0,
        }
    }

    /// Looks, so many seconds after the look before.
    fn look(&mut self, after: i64, seen: &ObservedState) -> Step {
        self.now += after;
        self.machine.observe(at(self.now), &self.terms, seen)
    }

    fn running() -> Self {
        let mut story = Self::new();
        story.look(0, &gone());
        story.look(0, &pods(&[]));
        assert_eq!(story.machine.phase(), Phase::Running);
        story
    }

    fn running_after_retries(retries: u32) -> Self {
        let mut story = Self::running();
        while story.machine.retries() < retries {
            story.look(0, &components(Component::Failed));
            story.look(90, &gone());
            story.look(0, &pods(&[]));
            assert_eq!(story.machine.phase(), Phase::Running);
        }
        story
    }

    fn in_phase(phase: Phase) -> Self {
        let mut story = Self::running();
        match phase {
            Phase::Suspended => return Self::new(),
            Phase::Resuming => {
                story = Self::new();
                story.look(0, &gone());
            }
            Phase::Running => {}
            Phase::Resetting => drop(story.look(0, &on_bad_node(PodPhase::Running))),
            Phase::Suspending => drop(story.look(0, &suspended(pods(&[])))),
            Phase::Succeeded => drop(story.look(0, &pods(&[PodPhase::Succeeded; 2]))),
            Phase::Failed => drop(story.look(0, &components(Component::Missing))),
            Phase::Terminating => drop(story.look(
                0,
                &ObservedState {
                    wanted: DesiredState::Deleted,
                    ..pods(&[])
                },
            )),
        }
        assert_eq!(story.machine.phase(), phase);
        story
    }
}

/// Where a look leads to.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    phase: Phase,
    reason: Option<Reason>,
    retries: u32,
    quota: Quota,
    look_again: Option<SignedDuration>,
}

fn to(phase: Phase, reason: Option<Reason>, retries: u32, quota: Quota, look_again: i64) -> Outcome {
    Outcome {
        phase,
        reason,
        retries,
        quota,
        look_again: Some(seconds(look_again)),
    }
}

type Row = (&'static str, Story, Vec<(i64, ObservedState)>, Outcome);

fn starting() -> Vec<Row> {
    use Phase::{Failed, Resetting, Resuming, Running, Suspended};
    use Quota::Held;
    let failed = Some(Reason::CreateFailed);
    let refused = ObservedState {
        components: vec![Component::Deployed, Component::Refused],
        ..pods(&[])
    };
    vec![
        (
            "1: what may run is created, with its quota",
            Story::in_phase(Suspended),
            vec![(0, gone())],
            to(Resuming, None, 0, Held, 0),
        ),
        (
            "2: what is created runs, and no retry is counted",
            Story::in_phase(Resuming),
            vec![(5, pods(&[]))],
            to(Running, None, 0, Held, 0),
        ),
        (
            "3: creating is tried again each second of its grace",
            Story::in_phase(Resuming),
            vec![(59, components(Component::Missing))],
            to(Resuming, None, 0, Held, 1),
        ),
        (
            "4: after the admission grace it costs a retry",
            Story::in_phase(Resuming),
            vec![(60, components(Component::Missing))],
            to(Resetting, failed, 1, Held, 0),
        ),
        (
            "5: trying again does not mend a refusal",
            Story::in_phase(Resuming),
            vec![(0, refused)],
            to(Failed, failed, 0, Held, 0),
        ),
    ]
}

fn failing_components() -> Vec<Row> {
    use Phase::{Failed, Resetting, Running};
    use Quota::Held;
    let component = Some(Reason::FailedComponent);
    let node = Some(Reason::AutopilotNoExecute);
    vec![
        (
            "6: somebody took a component away, so nobody wants it retried",
            Story::in_phase(Running),
            vec![(0, components(Component::Deleting))],
            to(Failed, Some(Reason::MissingComponent), 0, Held, 0),
        ),
        (
            "7: a failed component does not mend itself, so there is no grace",
            Story::running_after_retries(2),
            vec![(0, components(Component::Failed))],
            to(Resetting, component, 3, Held, 0),
        ),
        (
            "8: three retries are all",
            Story::running_after_retries(3),
            vec![(0, components(Component::Failed))],
            to(Failed, component, 3, Held, 0),
        ),
        (
            "13: moving away from a bad node costs no retry",
            Story::running_after_retries(2),
            vec![(0, on_bad_node(PodPhase::Running))],
            to(Resetting, node, 2, Held, 0),
        ),
        (
            "14: but none are left to one that has used them up",
            Story::running_after_retries(3),
            vec![(0, on_bad_node(PodPhase::Running))],
            to(Failed, node, 3, Held, 0),
        ),
    ]
}

fn failing_pods() -> Vec<Row> {
    use Phase::{Failed, Resetting, Running};
    use Quota::Held;
    let pod = Some(Reason::FoundFailedPods);
    vec![
        (
            "9: its controller may replace a failed pod",
            Story::in_phase(Running),
            vec![(0, failed_with(&[1])), (59, failed_with(&[1]))],
            to(Running, pod, 0, Held, 1),
        ),
        (
            "10: its controller did not, and that costs a retry",
            Story::in_phase(Running),
            vec![(0, failed_with(&[1])), (60, failed_with(&[1]))],
            to(Resetting, pod, 1, Held, 0),
        ),
        (
            "11: a terminal exit code is final, whatever retries are left",
            Story::in_phase(Running),
            vec![(0, failed_with(&[2])), (60, failed_with(&[2]))],
            to(Failed, pod, 0, Held, 0),
        ),
        (
            "12: so is one that is not among the retryable ones",
            Story {
                terms: FaultTolerance {
                    retryable_exit_codes: [7].into_iter().collect(),
                    ..FaultTolerance::default()
                },
                ..Story::in_phase(Running)
            },
            vec![(0, failed_with(&[1])), (60, failed_with(&[1]))],
            to(Failed, pod, 0, Held, 0),
        ),
    ]
}

fn going() -> Vec<Row> {
    use Phase::{Resetting, Running, Succeeded, Suspending};
    use PodPhase as Pod;
    use Quota::{Held, Released};
    let few = Some(Reason::InsufficientPodsReady);
    vec![
        (
            "15: all is well, and looked at each minute",
            Story::in_phase(Running),
            vec![(0, pods(&[Pod::Running, Pod::Succeeded]))],
            to(Running, None, 0, Held, 60),
        ),
        (
            "16: too few pods by the end of the admission grace",
            Story::in_phase(Running),
            vec![(60, pods(&[Pod::Running]))],
            to(Resetting, few, 1, Held, 0),
        ),
        (
            "17: pods that exist have five minutes to start",
            Story::in_phase(Running),
            vec![(299, pods(&[Pod::Running, Pod::Pending]))],
            to(Running, None, 0, Held, 5),
        ),
        (
            "18: and not more",
            Story::in_phase(Running),
            vec![(300, pods(&[Pod::Running, Pod::Pending]))],
            to(Resetting, few, 1, Held, 0),
        ),
        (
            "19: the last pod has succeeded, so nothing uses the quota",
            Story::in_phase(Running),
            vec![(0, pods(&[Pod::Succeeded; 2]))],
            to(Succeeded, None, 0, Released, 0),
        ),
        (
            "20: the queue wants the quota back, and gets it when all is gone",
            Story::in_phase(Running),
            vec![(0, suspended(pods(&[Pod::Running; 2])))],
            to(Suspending, None, 0, Held, 0),
        ),
    ]
}

fn ending() -> Vec<Row> {
    use Phase::{Failed, Resetting, Resuming, Suspended, Suspending};
    use Quota::{Held, Released};
    let missing = Some(Reason::MissingComponent);
    let rest = Outcome {
        look_again: None,
        ..to(Failed, missing, 0, Released, 0)
    };
    vec![
        (
            "20, then: all is gone",
            Story::in_phase(Suspending),
            vec![(0, suspended(gone()))],
            to(Suspended, None, 0, Released, 0),
        ),
        (
            "21: the pause is over, and the quota was never given back",
            Story::in_phase(Resetting),
            vec![(5, gone()), (85, gone())],
            to(Resuming, None, 0, Held, 0),
        ),
        (
            "21, before: the pause counts from the failure",
            Story::in_phase(Resetting),
            vec![(5, gone()), (84, gone())],
            to(Resetting, Some(Reason::AutopilotNoExecute), 0, Held, 1),
        ),
        (
            "22: giving the quota back goes before trying again",
            Story::in_phase(Resetting),
            vec![(0, suspended(gone()))],
            to(Suspending, None, 0, Held, 0),
        ),
        (
            "23: what has failed is kept for somebody to look at, and keeps its quota",
            Story::in_phase(Failed),
            vec![(599, pods(&[]))],
            to(Failed, missing, 0, Held, 1),
        ),
        (
            "24: unless the queue wants the quota back",
            Story::in_phase(Failed),
            vec![(1, suspended(pods(&[]))), (5, suspended(gone()))],
            rest,
        ),
    ]
}

#[test]
fn each_transition_is_appwrappers() {
    let rows = [
        starting(),
        failing_components(),
        failing_pods(),
        going(),
        ending(),
    ];
    for (why, mut story, looks, expected) in rows.into_iter().flatten() {
        let mut step = Step::REST;
        for (after, seen) in &looks {
            step = story.look(*after, seen);
        }
        let machine = &story.machine;
        let actual = Outcome {
            phase: machine.phase(),
            reason: machine.reason(),
            retries: machine.retries(),
            quota: machine.quota(),
            look_again: step.look_again,
        };
        assert_eq!(actual, expected, "{why}");
    }
}

#[test]
fn only_at_a_look_that_finds_all_pods_running_are_they_ready() {
    let mut story = Story::running();
    assert_eq!(story.machine.pods_ready(), PodsReady::NotReady);
    story.look(0, &pods(&[PodPhase::Running; 2]));
    assert_eq!(story.machine.pods_ready(), PodsReady::Ready);
    story.look(60, &pods(&[PodPhase::Running]));
    assert_eq!(story.machine.pods_ready(), PodsReady::NotReady);
}

#[test]
fn a_pod_that_is_replaced_in_time_is_forgotten() {
    let mut story = Story::running();
    story.look(0, &failed_with(&[1]));
    story.look(30, &pods(&[PodPhase::Running; 2]));
    assert_eq!(story.machine.reason(), None);
    story.look(40, &failed_with(&[1]));
    assert_eq!(story.machine.phase(), Phase::Running, "the grace counts anew");
}

#[test]
fn pods_that_were_ready_once_have_a_grace_of_their_own_when_one_goes() {
    let mut story = Story::running();
    story.terms.failure_grace = seconds(20);
    story.look(50, &pods(&[PodPhase::Running; 2]));
    story.look(3600, &pods(&[PodPhase::Running]));
    story.look(19, &pods(&[PodPhase::Running]));
    assert_eq!(story.machine.phase(), Phase::Running);
    story.look(1, &pods(&[PodPhase::Running]));
    assert_eq!(story.machine.phase(), Phase::Resetting);
}

#[test]
fn each_failed_creation_is_followed_by_the_whole_pause() {
    let mut story = Story::in_phase(Phase::Resuming);
    for _ in 0..2 {
        story.look(60, &gone());
        assert_eq!(story.machine.phase(), Phase::Resetting);
        assert_eq!(story.look(0, &gone()).look_again, Some(seconds(90)));
        story.look(90, &gone());
        assert_eq!(story.machine.phase(), Phase::Resuming);
    }
    assert_eq!(story.machine.retries(), 2);
}

#[test]
fn what_cannot_be_read_decides_nothing() {
    let mut story = Story::running();
    let step = story.look(3600, &components(Component::Unknown));
    assert_eq!(step.look_again, Some(seconds(5)));
    assert_eq!(story.machine.phase(), Phase::Running);
}

#[test]
fn a_pod_on_a_bad_node_counts_before_it_runs_and_not_when_it_goes() {
    let rows = [
        (PodPhase::Pending, Phase::Resetting),
        (PodPhase::Running, Phase::Resetting),
        (PodPhase::Leaving, Phase::Running),
    ];
    for (phase, then) in rows {
        let mut story = Story::running();
        story.look(0, &on_bad_node(phase));
        assert_eq!(story.machine.phase(), then, "{phase:?}");
    }
}

#[test]
fn a_bad_node_is_none_for_pods_that_ask_for_something_else() {
    let mut story = Story::running();
    let mut seen = on_bad_node(PodPhase::Running);
    for pod in &mut seen.pods {
        pod.resources = ["cpu".to_owned()].into();
    }
    story.look(0, &seen);
    assert_eq!(story.machine.pods_ready(), PodsReady::Ready);
}

#[test]
fn a_terminal_exit_code_makes_a_failed_component_final() {
    let mut story = Story::running();
    let seen = ObservedState {
        components: vec![Component::Deployed, Component::Failed],
        ..failed_with(&[2])
    };
    story.look(0, &seen);
    assert_eq!(
        (story.machine.phase(), story.machine.retries()),
        (Phase::Failed, 0)
    );
}

#[test]
fn a_deletion_that_takes_too_long_goes_on_without_grace() {
    let mut story = Story::in_phase(Phase::Resetting);
    let leaving = components(Component::Deleting);
    assert_eq!(story.look(0, &leaving).todo, Some(Operation::Delete));
    assert_eq!(story.look(599, &leaving).todo, Some(Operation::Delete));
    assert_eq!(story.look(1, &leaving).todo, Some(Operation::DeleteForcefully));
    let pods_left = ObservedState {
        components: gone().components,
        ..pods(&[PodPhase::Leaving])
    };
    assert_eq!(story.look(5, &pods_left).todo, Some(Operation::DeleteForcefully));
    story.look(5, &gone());
    assert_eq!(story.machine.phase(), Phase::Resuming);
}

#[test]
fn a_deletion_once_begun_is_finished() {
    let mut story = Story::in_phase(Phase::Failed);
    story.look(1, &suspended(pods(&[])));
    assert_eq!(story.look(1, &pods(&[])).todo, Some(Operation::Delete));
}

#[test]
fn a_success_is_kept_for_a_week_without_its_quota() {
    let mut story = Story::in_phase(Phase::Succeeded);
    let done = pods(&[PodPhase::Succeeded; 2]);
    let week = 7 * 24 * 3600;
    let step = story.look(week - 1, &suspended(done.clone()));
    assert_eq!((step.todo, step.look_again), (None, Some(seconds(1))));
    assert_eq!(story.look(1, &done).todo, Some(Operation::Delete));
    assert_eq!(story.look(5, &gone()), Step::REST);
    assert_eq!(story.machine.quota(), Quota::Released);
}

#[test]
fn what_is_no_longer_wanted_goes_from_every_phase() {
    let rows = [
        (Phase::Suspended, Quota::Released),
        (Phase::Resuming, Quota::Held),
        (Phase::Running, Quota::Held),
        (Phase::Resetting, Quota::Held),
        (Phase::Suspending, Quota::Held),
        (Phase::Succeeded, Quota::Released),
        (Phase::Failed, Quota::Held),
        (Phase::Terminating, Quota::Held),
    ];
    for (phase, quota) in rows {
        let mut story = Story::in_phase(phase);
        let unwanted = |seen| ObservedState {
            wanted: DesiredState::Deleted,
            ..seen
        };
        story.look(0, &unwanted(pods(&[])));
        assert_eq!(story.machine.phase(), Phase::Terminating, "{phase:?}");
        assert_eq!(story.machine.quota(), quota, "{phase:?}: until all is gone");
        assert_eq!(story.look(0, &unwanted(gone())), Step::REST);
        assert_eq!(story.machine.quota(), Quota::Released, "{phase:?}: all is gone");
    }
}

#[test]
fn a_machine_that_was_kept_goes_on_where_it_was() {
    let mut story = Story::running();
    story.look(0, &failed_with(&[1]));
    let kept = serde_json::to_string(&story.machine).expect("it can be written");
    let mut other = Story {
        machine: serde_json::from_str(&kept).expect("it can be read"),
        ..story
    };
    other.look(60, &failed_with(&[1]));
    assert_eq!(other.machine.phase(), Phase::Resetting);
}
