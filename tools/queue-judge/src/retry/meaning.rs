//! What a sentence means: what is seen of a workload, under which terms, and for how long.

use blueproof_simulation::retry::{Component, DesiredState, FaultTolerance, ObservedState, Phase, PodPhase};
use jiff::SignedDuration;

use super::{
    samples::{all_gone, on_bad_node, pods, second_component, wanted},
    words::Words,
};

/// An exit code that the cases' lists hold.
const LISTED: i32 = 3;

/// An exit code that they do not.
const OTHER: i32 = 1;

/// How it is said that a time is over.
const OVER: &[&str] = &["pass", "over", "elapsed", "expired"];

/// What a case's sentence says.
#[derive(Debug)]
pub(super) struct Meaning {
    pub(super) terms: FaultTolerance,
    pub(super) seen: ObservedState,
    /// How many seconds it has lasted, when the sentence says so itself.
    pub(super) lasted: Option<i64>,
}

/// Returns what a sentence means in a phase, or `None` when it is not understood.
pub(super) fn meaning(from: Phase, words: &Words, terms: &FaultTolerance) -> Option<Meaning> {
    let asked = words.wanted();
    let called_off = (asked == Some(DesiredState::Suspended)).then(|| plain(wanted(DesiredState::Suspended)));
    match from {
        Phase::Suspended => asked.map(|asked| plain(all_gone(asked))),
        Phase::Resuming => called_off.or_else(|| creating(words).map(plain)),
        Phase::Running => called_off
            .or_else(|| running(words).map(plain))
            .or_else(|| pod_failed(words)),
        Phase::Resetting => called_off.or_else(|| leaving(words, DesiredState::Running, terms)),
        Phase::Suspending => leaving(words, DesiredState::Suspended, terms),
        Phase::Terminating => leaving(words, DesiredState::Deleted, terms),
        Phase::Failed => failed(words),
        Phase::Succeeded => succeeded(words, terms),
    }
}

fn plain(seen: ObservedState) -> Meaning {
    Meaning {
        terms: FaultTolerance::default(),
        seen,
        lasted: None,
    }
}

fn creating(words: &Words) -> Option<ObservedState> {
    if !words.any(&["creat"]) {
        return None;
    }
    if !words.any(&["error", "fail"]) {
        return (!words.denies()).then(|| pods(&[]));
    }
    let is_fatal = words.any(&["fatal"]) != words.denies();
    Some(second_component(if is_fatal {
        Component::Refused
    } else {
        Component::Missing
    }))
}

fn running(words: &Words) -> Option<ObservedState> {
    const RUNNING: &[&str] = &["run"];
    const SUCCEEDED: &[&str] = &["succeed", "success"];
    if words.any(&["noexecute"]) {
        return Some(on_bad_node());
    }
    if words.any(&["code"]) {
        return None;
    }
    if words.any(&["component"]) && words.any(&["missing", "deleted", "deleting", "gone", "removed"]) {
        return Some(second_component(Component::Deleting));
    }
    if words.any(&["fail"]) && words.is_before(&["component", "job", "pytorchjob"], &["pod"]) {
        return Some(second_component(Component::Failed));
    }
    if words.any(&["fewer", "few"]) {
        return Some(pods(&[PodPhase::Running]));
    }
    if words.any(&["exist"]) && (words.any(&["pending"]) || words.denies() && words.any(RUNNING)) {
        return Some(pods(&[PodPhase::Running, PodPhase::Pending]));
    }
    if words.is_before(SUCCEEDED, RUNNING) && words.says_none() {
        return Some(pods(&[PodPhase::Succeeded; 2]));
    }
    (words.is_before(RUNNING, SUCCEEDED) && words.any(&["expected"]))
        .then(|| pods(&[PodPhase::Running, PodPhase::Succeeded]))
}

fn pod_failed(words: &Words) -> Option<Meaning> {
    let listed = || [LISTED].into_iter().collect();
    let mut meaning = plain(pods(&[PodPhase::Running, PodPhase::Failed]));
    let speaks_of_codes = words.any(&["code"]);
    let speaks_of_pods = words.any(&["pod"]) && words.any(&["fail"]);
    if !speaks_of_codes && !speaks_of_pods {
        return None;
    }
    if speaks_of_codes && words.any(&["terminal"]) {
        meaning.terms.terminal_exit_codes = listed();
    }
    if speaks_of_codes && words.any(&["retryable", "retriable"]) {
        meaning.terms.retryable_exit_codes = listed();
    }
    let is_listed = speaks_of_codes && !words.denies();
    meaning.seen.pods[1].exit_codes = vec![if is_listed { LISTED } else { OTHER }];
    Some(meaning)
}

/// Reads what is said of a deletion, and of the pause after it.
fn leaving(words: &Words, wanted: DesiredState, terms: &FaultTolerance) -> Option<Meaning> {
    const GONE: &[&str] = &["delet", "gone"];
    if !words.any(GONE) {
        return None;
    }
    let seen = if words.affirms(GONE) {
        all_gone(wanted)
    } else {
        ObservedState {
            wanted,
            ..second_component(Component::Deleting)
        }
    };
    let pause = words.seconds().unwrap_or(terms.retry_pause.as_secs());
    let lasted = words
        .any(OVER)
        .then_some(if words.affirms(OVER) { pause } else { pause - 1 });
    Some(Meaning {
        lasted,
        ..plain(seen)
    })
}

fn failed(words: &Words) -> Option<Meaning> {
    const DELAY: SignedDuration = SignedDuration::from_mins(10);
    if !words.any(&["delay"]) {
        return None;
    }
    let mut meaning = plain(wanted(words.wanted().unwrap_or(DesiredState::Running)));
    if !words.says_none() {
        meaning.terms.deletion_delay = DELAY;
    }
    let is_over = words.affirms(OVER);
    meaning.lasted = Some(if is_over { DELAY.as_secs() } else { 1 });
    Some(meaning)
}

fn succeeded(words: &Words, terms: &FaultTolerance) -> Option<Meaning> {
    let is_over = words.affirms(OVER);
    words.any(&["live", "ttl"]).then(|| Meaning {
        lasted: Some(if is_over { terms.success_ttl.as_secs() } else { 1 }),
        ..plain(pods(&[PodPhase::Succeeded; 2]))
    })
}
